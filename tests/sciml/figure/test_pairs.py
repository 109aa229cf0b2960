"""Pairs of parameters: contours hold the shares that they claim, and bad input is refused."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.path import Path

from sciml.figure import draw_pairs, panels

RNG = np.random.default_rng(0)
NAMES = ["rate", "theta_1", "theta_2"]


def draws(values, names=NAMES) -> xr.DataArray:
    return xr.DataArray(values, dims=("draw", "parameter"), coords={"parameter": names})


def normal(count=4000):
    return draws(RNG.normal(size=(count, 3)) @ np.array([[1, 0.9, 0], [0, 0.4, 0], [0, 0, 2]]))


def test_contours_hold_half_and_nine_tenths_of_the_draws():
    posterior = normal()
    _, axes = panels(3, 3, (6.0, 6.0))
    draw_pairs({"net": posterior}, axes)
    paths = axes[1, 0].collections[0].get_paths()
    points = posterior.values[:, :2]
    # The outer contour comes first: levels of density grow.
    inside = [np.mean(Path(p.vertices).contains_points(points)) for p in paths]
    np.testing.assert_allclose(inside, [0.9, 0.5], atol=0.05)


def test_densities_integrate_to_nearly_one_and_the_truth_is_marked():
    posterior = normal()
    _, axes = panels(3, 3, (6.0, 6.0))
    truth = xr.DataArray([0.1, 0.2, 9.0], dims="parameter", coords={"parameter": NAMES})
    draw_pairs({"net": posterior, "other": posterior + 1}, axes, truth=truth)
    for place in range(3):
        for curve in axes[place, place].lines[:2]:
            assert np.trapezoid(curve.get_ydata(), curve.get_xdata()) == pytest.approx(1, abs=0.03)
    np.testing.assert_array_equal(axes[2, 0].lines[-1].get_xydata(), [[0.1, 9.0]])
    assert axes[2, 2].get_xlim()[1] > 9.0
    assert axes[2, 0].get_ylabel() == axes[2, 2].get_xlabel() == r"$\theta_{2}$"
    texts = [text.get_text() for text in axes[0, 1].get_legend().get_texts()]
    assert texts == ["net", "other"]
    assert not axes[0, 2].axison


def test_one_parameter_needs_one_axis_and_another_order_is_put_right():
    _, ax = panels(1, 1, (3.0, 3.0))
    draw_pairs({"net": normal()[:, :1]}, ax)
    assert len(ax.lines) == 1
    first = normal()
    _, axes = panels(3, 3, (6.0, 6.0))
    draw_pairs({"a": first, "b": first.isel(parameter=[2, 0, 1])}, axes)
    np.testing.assert_array_equal(*(line.get_ydata() for line in axes[2, 2].lines))


def test_arrays_have_parameters_without_names():
    _, axes = panels(2, 2, (4.0, 4.0))
    draw_pairs({"net": RNG.normal(size=(300, 2))}, axes, truth=np.zeros(2))
    assert axes[1, 0].get_xlabel() == r"$\theta_{0}$"


def test_draws_that_are_lost_or_all_equal_are_drawn_without_a_warning(recwarn):
    posterior = normal()
    posterior[:50] = np.nan
    posterior[:, 2] = 3.0
    _, axes = panels(3, 3, (6.0, 6.0))
    draw_pairs({"net": posterior}, axes)
    assert len(recwarn) == 0
    low, high = axes[2, 2].get_xlim()
    assert low < 3.0 < high


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("posteriors", "shape", "error"),
    [
        ({}, (3, 3), "no posterior"),
        ({"net": normal()}, (2, 2), r"axes are 4; 3 parameters need 9"),
        ({"net": normal().expand_dims("sample")}, (3, 3), "choose one observation"),
        (
            {"a": normal(), "b": normal()[:, :2]},
            (3, 3),
            "the parameters are rate, theta_1; before: rate, theta_1, theta_2",
        ),
        ({"net": normal() * np.nan}, (3, 3), "has 0 finite draws"),
    ],
)
def test_bad_input_is_refused(posteriors, shape, error):
    _, axes = panels(*shape, (4.0, 4.0))
    with pytest.raises(ValueError, match=error):
        draw_pairs(posteriors, axes)


def test_a_truth_that_is_not_known_is_refused():
    _, axes = panels(3, 3, (4.0, 4.0))
    with pytest.raises(ValueError, match="must be finite, or left out"):
        draw_pairs({"net": normal()}, axes, truth=np.array([0.0, np.nan, 1.0]))
