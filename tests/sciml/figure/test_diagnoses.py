"""The figures of diagnoses show what the datasets say, with labels and units."""

import numpy as np
import pytest
import xarray as xr

from sciml.diagnose import (
    alarm,
    bootstrap,
    calibration,
    judge,
    learning_curve,
    predictive,
)
from sciml.figure import (
    draw_alarm,
    draw_calibration,
    draw_contraction,
    draw_coverage,
    draw_ecdf,
    draw_learning,
    draw_local_c2st,
    draw_predictive,
    draw_ranks,
    draw_scores,
    draw_tarp,
    panels,
    styled,
)

RNG = np.random.default_rng(0)
TRUTH = RNG.normal(size=(80, 2))
NAMES = ("theta0", "rate")


@pytest.fixture(scope="module")
def tree() -> xr.DataTree:
    posterior = 0.5 * RNG.normal(size=(30, 80, 2)) + TRUTH + 0.5 * RNG.normal(size=TRUTH.shape)
    labelled = xr.DataArray(TRUTH, dims=("sample", "parameter"), coords={"parameter": list(NAMES)})
    return calibration(posterior, labelled)


@pytest.fixture
def ax():
    with styled():
        figure, ax = panels(1, 1, (3.4, 2.8))
        yield ax
        figure.canvas.draw()  # lays out: warnings of overlong labels are errors


def said(ax) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_of_many_parameters_the_worst_are_named():
    """A legend of twenty names left no room for any curve."""
    rng, names = np.random.default_rng(1), [f"k{i}" for i in range(20)]
    truth = xr.DataArray(rng.normal(size=(50, 20)), dims=("sample", "parameter"))
    posterior = truth.values + rng.normal(size=(30, 50, 20)) + rng.normal(size=(50, 20))
    posterior[:, :, 17] += 3.0
    figure, axes = panels(2, 2, (8.4, 6.6))
    draw_calibration(calibration(posterior, truth.assign_coords(parameter=names)), axes)
    figure.canvas.draw()
    for ax in (axes[0, 0], axes[0, 1], axes[1, 1]):
        assert ax.get_legend().get_title().get_text() == "the worst 8 of 20:"
        named = [text.partition(":")[0].partition(" (")[0] for text in said(ax)]
        assert len({*named} & {*names}) == 8
        assert "k17" in named


@pytest.mark.parametrize(
    ("draw", "part", "labels"),
    [
        (draw_ranks, "sbc", ("rank of the truth / draws", "samples")),
        (draw_ecdf, "sbc", ("rank of the truth / draws", "ECDF − uniform")),
        (draw_coverage, "coverage", ("level of the region (%)", "truths inside (%)")),
        (draw_tarp, "tarp", ("level of the region (%)", "truths inside (%)")),
        (
            draw_contraction,
            "contraction",
            ("contraction of the variance (%)", "(mean − truth) / posterior sd"),
        ),
    ],
)
def test_calibration_panels(tree, ax, draw, part, labels):
    dataset = tree[part].to_dataset()
    assert draw(dataset, ax) is ax
    assert (ax.get_xlabel(), ax.get_ylabel()) == labels
    if part != "tarp":
        assert any("rate" in text for text in said(ax))
        assert any(r"\theta_{0}" in text for text in said(ax))


def test_coverage_tells_the_largest_deviation(tree, ax):
    dataset = tree.coverage.to_dataset()
    draw_coverage(dataset, ax)
    worst = f"{float(dataset.worst_points.sel(parameter='rate')):+.1f}".replace("-", "−")
    assert f"rate: {worst} points" in said(ax)


def test_four_panels_and_no_other_number(tree):
    with styled():
        figure, axes = panels(2, 2, (7.0, 6.0))
        assert draw_calibration(tree, axes) is axes
        figure.canvas.draw()
    with pytest.raises(ValueError, match=r"must be \(2, 2\)"):
        draw_calibration(tree, axes[0])


def test_predictive(ax):
    observed, copies = RNG.normal(size=(3, 20)), RNG.normal(size=(40, 3, 20))
    tree = predictive(observed, copies)
    draw_predictive(tree, ax, sample=1, time_unit="ms", observed="voltage (mV)")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time (ms)", "voltage (mV)")
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), observed[1])


def test_predictive_of_one_channel(ax):
    observed, copies = RNG.normal(size=(3, 20, 2)), RNG.normal(size=(40, 3, 20, 2))
    draw_predictive(predictive(observed, copies), ax, channel=1)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), observed[0, :, 1])


def test_alarm(ax):
    known = alarm(RNG.normal(size=(240, 5)))
    found = judge(known, RNG.normal(size=(30, 5)) + 9)
    draw_alarm(found, ax)
    assert any("100 % flagged (30)" in text for text in said(ax))
    assert ax.get_xscale() == "log"


def test_scores_and_learning(ax):
    estimate = TRUTH + 0.1
    regimes = {"low": TRUTH[:, 0] < 0}
    draw_scores(bootstrap(TRUTH, estimate, names=NAMES, regimes=regimes, resamples=10), ax)
    assert [t.get_text() for t in ax.get_xticklabels()] == [
        "all\n(80)",
        f"low\n({int(regimes['low'].sum())})",
    ]
    with pytest.raises(ValueError, match="score is 'r3'"):
        draw_scores(xr.Dataset(), ax, score="r3")
    ax.clear()
    curve = learning_curve(TRUTH, {10: estimate, 100: TRUTH + 0.01}, names=NAMES, resamples=10)
    draw_learning(curve, ax, score="mse")
    assert (ax.get_ylabel(), ax.get_yscale()) == ("mean squared error", "log")


def test_local_c2st(ax):
    null = RNG.random((20, 4)) / 10
    found = xr.Dataset(
        {
            "statistic": ("sample", [0.01, 0.02, 0.2, 0.03]),
            "null": (("null", "sample"), null),
            "p_value": ("sample", [0.5, 0.5, 0.01, 0.5]),
        }
    )
    draw_local_c2st(found, ax)
    right, wrong = ax.lines
    assert (len(right.get_xdata()), list(wrong.get_xdata())) == (3, [2])
