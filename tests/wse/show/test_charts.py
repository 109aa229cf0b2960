"""Figures hold the numbers of their estimates, with units on the axes."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import wse
from wse.models import shapes
from wse.show import charts


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def made() -> wse.Estimate:
    return wse.estimate(shapes.get("GPT-2-small"), batch=128, machine=wse.CS2(2))


def test_bars_add_up_to_a_step_without_overlap(made) -> None:
    ax = charts.bars(made)
    total_ms = sum(bar.get_width() for bar in ax.patches)
    assert made.step is not None
    assert total_ms == pytest.approx(1e3 * made.step.layer_times_s().sum())
    assert [label.get_text() for label in ax.get_yticklabels()][:2] == ["embedding", "qkv"]
    assert "(ms)" in ax.get_xlabel()


def test_bars_of_a_small_net_name_every_layer() -> None:
    found = wse.estimate(wse.workload.dense(width=64), machine=wse.CS2(mode="streaming"))
    names = [label.get_text() for label in charts.bars(found).get_yticklabels()]
    assert names == [layer.name for layer in found.workload.layers]


def test_no_layer_stands_above_the_roof(made) -> None:
    ax = charts.roofline(made)
    points, roof, reached = ax.lines
    for line in (roof, reached):
        at, top = np.log(line.get_xdata()), np.log(line.get_ydata())
        below = np.interp(np.log(points.get_xdata()), at, top)
        assert (np.log(points.get_ydata()) <= below + 1e-9).all()
    assert "FLOP/B" in ax.get_xlabel()


def test_scaling_draws_a_line_to_every_model_and_batch_and_perfection() -> None:
    nets = {name: shapes.get(name) for name in ("GPT-2-small", "GPT-2-XL")}
    ax = charts.scaling(wse.sweep(nets, [64, 256], systems=[1, 2, 3, 4]))
    assert len(ax.lines) == 5
    assert list(ax.lines[0].get_xdata()) == [1, 2, 4]  # 3 does not divide 64


def test_the_timeline_ends_with_the_last_gradient(made) -> None:
    ax = charts.timeline(made)
    ends_ms = [path.vertices[:, 0].max() for bars in ax.collections for path in bars.get_paths()]
    assert made.step is not None
    t = made.step.times
    ordered_s = t.weights_s[0, 0] + sum(slot.sum() for slot in t.slots_s) + t.gradients_s[0, 0]
    assert max(ends_ms) == pytest.approx(1e3 * ordered_s)


def test_given_axes_are_drawn_on(made) -> None:
    _, ax = plt.subplots()
    for draw in (charts.bars, charts.timeline):
        assert draw(made, ax) is ax


@pytest.mark.parametrize("draw", [charts.bars, charts.roofline, charts.timeline])
def test_the_pipelined_mode_has_no_layers_to_draw(draw) -> None:
    with pytest.raises(ValueError, match="not known layer by layer: pass machine"):
        draw(wse.estimate(wse.workload.dense(width=64)))
