"""Scores of labelled fields: the same in whatever order they lie, or refused."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from sciml import diagnose

SHAPE = {"time": 4, "y": 12, "x": 12}
RNG = np.random.default_rng(0)
TRUTH = xr.DataArray(
    RNG.gamma(2, 4, (4, 12, 12)),
    {
        "time": np.datetime64("2020-01-01", "ns") + np.arange(4) * np.timedelta64(1, "h"),
        "y": 2500.0 * np.arange(12),
        "x": 7e5 + 2500.0 * np.arange(12),
    },
    tuple(SHAPE),
)
ESTIMATE = TRUTH + RNG.normal(size=TRUTH.shape)
MEMBERS = xr.concat([TRUTH + RNG.normal(size=TRUTH.shape) for _ in range(3)], "draw")
SCORES = {
    "rmse": diagnose.rmse,
    "mae": diagnose.mae,
    "bias": diagnose.bias,
    "psnr": lambda a, b: diagnose.psnr(a, b, value_range=40.0),
    "ssim": lambda a, b: diagnose.ssim(a, b, value_range=40.0),
    "skill": lambda a, b: diagnose.skill(a, b, b + 1),
    "field_scores": lambda a, b: diagnose.field_scores(
        {"a": a, "b": b + 1}, b, baseline="b"
    ).to_array(),
    "interval": lambda a, b: diagnose.skill_interval(a, b, b + 1, block=1),
    "fractions": lambda a, b: diagnose.fractions_skill(a, b, threshold=8.0, width=3),
    "subgrid": lambda a, b: diagnose.subgrid_variance_ratio(a, b, 3),
    "by wind": lambda a, b: diagnose.subgrid_by_wind(a, b, 3, [0.0, 8.0, 99.0]).estimate,
    "structure": lambda a, b: diagnose.structure_function(a, b, distances=[1, 3]),
    "spectrum": lambda a, b: diagnose.cosine_spectrum(a, b, spacing_m=1.0).energy,
    "windowed": lambda a, b: diagnose.windowed_spectrum(a, b, spacing_m=1.0).energy,
}
DRAWN = {
    "crps": diagnose.crps,
    "histogram": diagnose.rank_histogram,
    "spread": lambda a, b: diagnose.spread_skill(a, b, bins=4).to_array("v").values,
}


@st.composite
def laid_otherwise(draw, field):
    """Give the same field with its axes and places in another order."""
    for dim in map(str, field.dims):
        field = field.isel({dim: draw(st.permutations(range(field.sizes[dim])))})
    return field.transpose(*draw(st.permutations(field.dims)))


@pytest.mark.parametrize("name", SCORES)
@settings(deadline=None, max_examples=5)
@given(data=st.data())
def test_the_order_of_axes_and_places_says_nothing(name, data):
    expected = np.asarray(SCORES[name](ESTIMATE, TRUTH))
    found = SCORES[name](data.draw(laid_otherwise(ESTIMATE)), TRUTH)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)
    np.testing.assert_allclose(SCORES[name](ESTIMATE.values, TRUTH.values), expected, rtol=1e-12)


@pytest.mark.parametrize("name", DRAWN)
@settings(deadline=None, max_examples=5)
@given(data=st.data())
def test_members_are_put_where_the_truth_has_them(name, data):
    expected = DRAWN[name](MEMBERS.values, TRUTH.values)
    order = data.draw(st.permutations(range(12)))
    axes = data.draw(st.permutations(MEMBERS.dims))
    found = DRAWN[name](MEMBERS.isel(y=order).transpose(*axes), TRUTH)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("name", [n for n in SCORES if n not in ("structure",)])
def test_axes_that_lie_otherwise_give_what_bare_ones_in_order_give(name):
    both = [field.transpose("x", "time", "y") for field in (ESTIMATE, TRUTH)]
    expected = np.asarray(SCORES[name](ESTIMATE.values, TRUTH.values))
    np.testing.assert_allclose(np.asarray(SCORES[name](*both)), expected, rtol=1e-12)


OTHER = {
    "another part": lambda field: field.assign_coords(x=field.x + 2500.0),
    "another hour": lambda field: field.assign_coords(time=field.time + np.timedelta64(1, "h")),
    "another axis": lambda field: field.rename(y="lat"),
    "fewer rows": lambda field: field.isel(y=slice(1, None)),
    "one axis more": lambda field: field.expand_dims(height=[10.0]),
    "other degrees": lambda field: field.drop_vars("y").assign_coords(
        latitude=(("y", "x"), np.mgrid[50.0:56.0:0.5, :12][0][::-1])
    ),
}


@pytest.mark.parametrize("how", OTHER)
@pytest.mark.parametrize("name", [*SCORES, *DRAWN])
def test_fields_of_other_places_are_refused(name, how):
    score, field = {**SCORES, **DRAWN}[name], MEMBERS if name in DRAWN else ESTIMATE
    degrees = np.mgrid[50.0:56.0:0.5, :12][0]
    truth = TRUTH.drop_vars("y").assign_coords(latitude=(("y", "x"), degrees))
    with pytest.raises(ValueError, match=r"in one field|the axes|places in one"):
        score(OTHER[how](field), truth if how == "other degrees" else TRUTH)


def test_rounded_places_are_the_same_and_vectors_keep_their_components_first():
    rounded = ESTIMATE.assign_coords(x=ESTIMATE.x.astype(np.float32))
    assert diagnose.rmse(rounded, TRUTH) == diagnose.rmse(ESTIMATE, TRUTH)
    wind, like = (xr.concat([f, 2 * f], "channel") for f in (ESTIMATE, TRUTH))
    expected = diagnose.vector_rmse(wind.values, like.values)
    turned = [f.transpose("time", "x", "channel", "y") for f in (wind, like)]
    assert diagnose.vector_rmse(*turned) == pytest.approx(expected, rel=1e-12)


SEEN_APART = ("by wind", "spread")  # blocks and bins without the gap keep their numbers


@pytest.mark.parametrize("name", [*SCORES, *DRAWN])
def test_a_gap_is_nan_or_refused_and_never_a_score(name):
    score, field = {**SCORES, **DRAWN}[name], MEMBERS if name in DRAWN else ESTIMATE
    gap = dict.fromkeys(field.dims, 1)
    field = field.copy()
    field[gap] = np.nan
    try:
        found = np.asarray(score(field, TRUTH))
    except ValueError as error:
        assert "a value is missing" in str(error)  # noqa: PT017
    else:
        assert np.isnan(found).any()
        assert np.isfinite(found).any() == (name in (*SEEN_APART, "field_scores"))


@pytest.mark.parametrize("name", [*SCORES, *DRAWN])
def test_units_must_be_the_same_in_any_spelling(name):
    score, field = {**SCORES, **DRAWN}[name], MEMBERS if name in DRAWN else ESTIMATE
    expected = np.asarray(score(field, TRUTH))
    truth = TRUTH.assign_attrs(units="m s**-1")
    found = score(field.assign_attrs(units="metres/second"), truth)
    np.testing.assert_array_equal(np.asarray(found), expected)
    with pytest.raises(ValueError, match=r"in 'km/h' and the other in 'm s\*\*-1'"):
        score(field.assign_attrs(units="km/h"), truth)


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize("name", [*SCORES, *DRAWN])
def test_no_field_and_a_data_set_are_refused(name):
    score, field = {**SCORES, **DRAWN}[name], MEMBERS if name in DRAWN else ESTIMATE
    with pytest.raises(ValueError, match="hold no values"):
        score(field.isel(time=slice(0)), TRUTH.isel(time=slice(0)))
    with pytest.raises(TypeError, match="a Dataset of wind"):
        score(field.to_dataset(name="wind"), TRUTH.to_dataset(name="wind"))
