"""The pages of the machine and of the estimate say what the catalogue and the model say."""

import re
from pathlib import Path

import numpy as np
import pytest

import wse
from wse.machine import catalog, constants, specification
from wse.models import shapes as workloads
from wse.predict import arrays

DOCS = Path(__file__).parents[3] / "docs"
SITE = {  # row of the table in docs/machine.md -> field of the site and the row's unit
    "systems (CS-2)": ("systems", 1),
    "cores (million)": ("cores", 1e6),
    "half precision (EFLOP/s)": ("fp16_flops_per_s", 1e18),
    "memory for parameters (TB)": ("capacity_bytes", 1e12),
    "internal bandwidth (Tb/s)": ("internal_bits_per_s", 1e12),
    "cores of ordinary processors": ("host_cores", 1),
}


def text(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def test_the_site_s_table_equals_the_catalogue() -> None:
    cells = [[x.strip() for x in line.split("|")[1:-1]] for line in text("machine.md").splitlines()]
    rows = {row[0]: float(row[1].replace(",", "")) for row in cells if row and row[0] in SITE}
    assert set(rows) == set(SITE)
    for name, (field, size) in SITE.items():
        assert rows[name] == pytest.approx(getattr(catalog.CG1, field).value / size)


def test_the_file_on_the_page_is_a_machine(tmp_path) -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", text("machine.md"), flags=re.DOTALL)
    path = tmp_path / "mine.yaml"
    path.write_text(block)
    cluster = specification.read(path)
    assert (cluster.systems, cluster.machine.clock_hz.value) == (4, 1.1e9)


def test_constants_on_the_page_are_the_constants() -> None:
    page = text("lab/streaming-constants.md")
    for anchor in constants.SHARES.anchors:
        assert f"{anchor.value}" in page
    for _, factor in constants.SHARES.releases:
        assert f"{factor}" in page
    streaming = constants.STREAMING
    for found in (page, text("estimate.md")):
        assert f"{streaming.usable_sram.value} of the wafer's" in found
        assert f"{1e3 * streaming.step_s.value:.2f} ms" in found
        assert f"{streaming.input_bytes_per_s.value / 1e9} GB/s a system" in found


def test_the_memory_share_is_what_the_model_zoo_s_batch_takes() -> None:
    plan = {x.name: x for x in arrays.plans(workloads.get("GPT-3-1.3B"))}["blocks"]
    share = 121 * plan.bytes_per_sample / catalog.CS2.sram_bytes.value
    assert round(share, 3) == 0.914
    assert share < constants.STREAMING.usable_sram.value


@pytest.mark.parametrize(
    ("name", "systems", "batch", "unit_s"),
    [("GPT-3-175B", 64, 3840, 1), ("GPT-1T", 192, 1920, 1), ("GPT-120T", 192, 1920, 3600)],
)
def test_steps_of_the_largest_models(name: str, systems: int, batch: int, unit_s: int) -> None:
    result = wse.estimate(workloads.get(name), batch=batch, machine=wse.CS2(systems))
    steps = result.samples / batch
    ends = [result.step_s, *(end / steps for end in result.training_interval_s)]
    shown = [f"{end / unit_s:.{0 if unit_s == 1 else 1}f}" for end in ends]
    unit = "s" if unit_s == 1 else "h"
    told = f"{shown[0]} {unit} ({shown[1]} to {shown[2]}) on {systems}, batch {batch}"
    assert told in text("lab/streaming-constants.md")


def test_the_largest_needs_a_shorter_sequence() -> None:
    long = workloads.get("GPT-120T", max_sequence_length=4096)
    with pytest.raises(ValueError, match="shorten the sequence"):
        wse.estimate(long, batch=192, machine=wse.CS2(192))


def test_errors_of_the_computer_at_hand_are_those_of_the_table() -> None:
    lines = text("results/local.csv").splitlines()[1:]
    errors = [abs(float(line.rsplit(",", 1)[1])) for line in lines]
    least, most = np.median(errors), np.quantile(errors, 0.9)
    said = f"median error {least:.0f} %, 90th percentile {most:.0f} % over {len(lines)} cases"
    assert said in text("estimate.md")
