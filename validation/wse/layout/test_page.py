"""The page on layouts: its code runs, and gives what stands beside it."""

from tests.wse.test_pages import DOCS, run
from wse import layout


def test_code_runs_and_gives_what_the_page_says():
    assert run("layout") >= 6


def test_the_table_of_images():
    wafer = layout.Wafer.of()
    text = (DOCS / "lab" / "layouts.md").read_text()
    filters = (32, 64, 128, 256, 512, 1024)
    for net in (
        layout.unet((5120, 5120), filters, inputs=3),
        layout.unet((160, 512, 512), outputs=5, strided=True),
        layout.unet((512, 512, 512)),
    ):
        assert f"{layout.needed_bytes(net, wafer):,}" in text
    assert "largest is 7168" in text
    assert "largest cube is 408" in text
    wide = [layout.unet((n, n), filters, inputs=3) for n in (7168, 7200)]
    cubes = [layout.unet((n, n, n), strided=True) for n in (408, 416)]
    for fits, exceeds in (wide, cubes):
        assert layout.needed_bytes(fits, wafer) <= wafer.data_bytes
        assert layout.needed_bytes(exceeds, wafer) > wafer.data_bytes
