"""Labelled fields whose points are not evenly spaced: it is told where they are taken for even."""

import numpy as np
import pytest
import xarray as xr

import sciml
from sciml import diagnose
from sciml.diagnose.wind.scorecard import scorecard
from sciml.figure import view

LACKING = np.delete(3000.0 * np.arange(17), 8)
EVEN = 3000.0 * np.arange(16)


def field(y=EVEN, x=EVEN, dims=("y", "x"), **more):
    values = np.random.default_rng(0).normal(size=(2, len(y), len(x)))
    coords = {dims[0]: y, dims[1]: x} | more
    return xr.DataArray(values, coords, ("time", *dims), name="u", attrs={"units": "m s-1"})


TAKERS = {
    "cosine": lambda u: diagnose.cosine_spectrum(u, spacing_m=3000.0),
    "windowed": lambda u: diagnose.windowed_spectrum(u, spacing_m=3000.0),
    "gradient": lambda u: diagnose.gradient_length(u, spacing_m=3000.0),
    "structure": lambda u: diagnose.structure_function(u, distances=[1]),
    "scores": lambda u: scorecard({"none": u + 1}, u, baseline="none", factor=4, spacing_m=3000.0),
    "view": lambda u: view(u, {"none": 0 * u}, 4),
}


@pytest.mark.parametrize("taker", TAKERS)
def test_what_takes_points_for_even_says_where_they_are_not(taker, caplog):
    TAKERS[taker](field(x=LACKING))
    assert caplog.messages[0].startswith("u: x is not evenly spaced: 6000 after index 7, 3000 most")
    caplog.clear()
    TAKERS[taker](field())
    TAKERS[taker](field(y=EVEN[::-1]).astype("f4"))
    assert not caplog.messages


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (field(y=LACKING, dims=("lat", "lon")), "lat is not evenly spaced"),
        (field(dims=("lat", "lon"), x=(355 + np.arange(16.0)) % 360), ""),
        (field(x=LACKING).transpose("x", "time", "y"), "x is not evenly spaced"),
        (field().drop_vars(["y", "x"]), ""),
        (
            field(
                lat=(("y", "x"), np.meshgrid(50 + LACKING / 1e5, EVEN, indexing="ij")[0]),
                lon=(("y", "x"), np.meshgrid(EVEN, EVEN / 1e5, indexing="ij")[1]),
            ),
            "y, by lat and lon, is not evenly spaced",
        ),
        (field(x=xr.Variable("x", LACKING, {"spacing": "uneven"})), ""),
    ],
    ids=["names", "date line", "turned", "bare", "planes", "told"],
)
def test_places_are_known_by_any_axis_of_the_field(made, said, caplog):
    diagnose.cosine_spectrum(made, spacing_m=3000.0)
    assert [said in text for text in caplog.messages] == [True] * bool(said)


def test_spacing_of_a_view_is_that_of_most_points():
    x = np.concatenate([[-9000.0], EVEN[1:]])
    assert view(field(x=x[::-1]), {"none": np.zeros((2, 16, 16))}, 4).spacing_m == 3000.0


def test_spikes_at_uneven_times_are_refused():
    seen = xr.DataArray(np.ones((1, 4)), {"time": [0.0, 1.0, 2.0, 4.0]}, ("sample", "time"))
    with pytest.raises(ValueError, match="2 after index 2, 1 mostly"):
        sciml.baselines.spike_features(seen)
