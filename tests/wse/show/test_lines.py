"""What answers show of themselves at a prompt: one line; `print` and notebooks show the rest."""

import pytest

import wse
from wse import layout, support

NET = wse.workload.dense(inputs=1000, width=512, depth=8, outputs=2)
CONV = layout.Shape("conv", batch=4, size=(64, 64), channels=3, filters=8, taps=(3, 3))
SHOWN = {
    "Estimate(": lambda: wse.estimate(NET),
    "Inference(dense": lambda: wse.inference(NET, 64, machine="cs2"),
    "Plan(3 layers on 757": lambda: layout.plan([CONV] * 3, layout.Wafer.of()),
    "Placement(3 layers on 3,660 PEs: 462 cycles": lambda: layout.pipeline(
        layout.dense_kernels(784, 500, 300, 10), pes=3660
    ),
    "Explorer(dense": lambda: wse.explore(NET, samples=120_000),
    "Rule(sort: native, sourced)": lambda: support.Rule(
        ("sort",),
        "native",
        (support.Where("WSE-2", "streaming"),),
        "it ran " * 50,
        "log",
        "sourced",
    ),
    "1 x CS-2": lambda: wse.CS2(),
}


@pytest.mark.parametrize("begin", SHOWN)
def test_it_is_one_line_that_says_what_it_is(begin):
    said = repr(SHOWN[begin]())
    assert said.startswith(begin) or begin in said
    assert "\n" not in said
    assert len(said) <= 160
