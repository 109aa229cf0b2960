"""Functions of arrays take labelled ones by their axes; functions of winds refuse what has none."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from sciml import wind

AXES = ("time", "y", "x")
FINE = xr.DataArray(np.random.default_rng(0).gamma(2, 4, (3, 8, 12)).astype("f4"), dims=AXES)
COARSE = FINE[:, ::4, ::4] + 1
SPEED = FINE.expand_dims(channel=["wind_speed"], axis=1)
FUNCTIONS = {
    "block_mean": lambda a: wind.block_mean(a, 2),
    "block_mean_present": lambda a: wind.block_mean_present(a, 2),
    "crop": lambda a: wind.crop(a, 3),
    "pair": lambda a: wind.pair(a, 2)[0],
    "restore_means": lambda a: wind.restore_means(a, COARSE),
    "restore_means_above": lambda a: wind.restore_means_above(a, COARSE),
    "block": lambda a: wind.block(a, 2),
    "bilinear": lambda a: wind.bilinear(a, 2),
    "bicubic": lambda a: wind.bicubic(a, 2),
    "conservative_bicubic": lambda a: wind.conservative_bicubic(a, 2),
    "spectral": lambda a: wind.spectral(a, 2),
    "refine_tiled": lambda a: wind.refine_tiled(lambda part: wind.block(part, 2), a, 2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(deadline=None, max_examples=4)
@given(axes=st.permutations(AXES))
def test_the_order_of_labelled_axes_says_nothing(name, axes):
    found, expected = FUNCTIONS[name](FINE.transpose(*axes)), FUNCTIONS[name](FINE)
    np.testing.assert_array_equal(found, expected)
    if "restore" not in name:
        np.testing.assert_array_equal(found, FUNCTIONS[name](FINE.values))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_labelled_array_without_y_and_x_is_refused(name):
    with pytest.raises(ValueError, match="the axes time, lat, x; y must be among them"):
        FUNCTIONS[name](FINE.rename(y="lat"))


@settings(deadline=None, max_examples=5)
@given(axes=st.permutations(SPEED.dims))
def test_turning_finds_the_axis_of_channels(axes):
    turned = wind.symmetry(SPEED.transpose(*axes), ("wind_speed",), 1)
    np.testing.assert_array_equal(turned[:, 0], np.rot90(FINE.values, axes=(2, 1)))


WINDS = wind.gaussian(seed=0, snapshots=6, n=16)
FIELDS = wind.channels(WINDS, ("x_wind", "y_wind"))
OF_DATASETS = {
    "coarser": lambda a: wind.coarser(a, 2),
    "finer": lambda a: wind.finer(a, 2),
    "check": wind.check,
    "channels": lambda a: wind.channels(a, ("x_wind",)),
    "covariates": lambda a: wind.covariates(a, ("orography",)),
    "log_law": lambda a: wind.log_law(a, 100.0, 0.1),
    "power_law": lambda a: wind.power_law(a, 100.0),
    "onto_blocks": lambda a: wind.onto_blocks(a, WINDS, 2),
    "matched": lambda a: wind.matched(WINDS, a, 2),
    "random_phases": lambda a: wind.random_phases(a, 0),
    "speed_and_direction": wind.speed_and_direction,
    "with_hills": lambda a: wind.with_hills(a, 0),
    "with_statics": lambda a: wind.with_statics(WINDS, a),
}
OF_ARRAYS = {
    "decorrelation_h": wind.decorrelation_h,
    "split": wind.split,
    "random_split": wind.random_split,
    "fit_normaliser": wind.fit_normaliser,
    "stream": lambda a: next(iter(wind.stream(a, wind.gridded(6, 16, 16, 4), 2))),
}


@pytest.mark.parametrize("other", [np.ones((3, 8, 8)), None, "a.nc", [WINDS]], ids=type)
@pytest.mark.parametrize("name", [*OF_DATASETS, *OF_ARRAYS, "fit_correction"])
def test_what_is_no_labelled_wind_is_refused_in_one_line(name, other, untyped):
    call = {**OF_DATASETS, **OF_ARRAYS, "fit_correction": wind.fit_correction}[name]
    kind = type(other).__name__
    with pytest.raises(TypeError, match=f"is a {kind}; {name} takes a .*: pass "):
        call(other)


@pytest.mark.parametrize("name", OF_DATASETS)
def test_nor_is_one_array_a_dataset(name, untyped):
    with pytest.raises(TypeError, match=f"is a DataArray; {name} takes a Dataset"):
        OF_DATASETS[name](WINDS["x_wind"])


def test_moments_are_those_of_the_channels_by_name():
    other = FIELDS.isel(channel=[1, 0]).assign_coords(time=FIELDS.time)
    both, twice = wind.fit_normaliser(FIELDS, other), wind.fit_normaliser(FIELDS, FIELDS)
    assert both.names == ("x_wind", "y_wind")
    np.testing.assert_allclose(both.std, twice.std, rtol=1e-12)
    speeds = xr.concat([WINDS["wind_speed"], 2 * WINDS["wind_speed"]], "channel").assign_coords(
        channel=["low", "high"]
    )
    turned = wind.fit_normaliser(speeds, speeds.isel(channel=[1, 0]))
    np.testing.assert_allclose(turned.mean, wind.fit_normaliser(speeds).mean, rtol=1e-6)
    with pytest.raises(ValueError, match="the channels must have names"):
        wind.fit_normaliser(WINDS["wind_speed"])


def test_statics_lie_where_their_labels_say():
    rows, columns = np.linspace(50, 53, 7), np.linspace(5, 8, 7)
    height = xr.DataArray(
        np.add.outer(10 * rows, columns).astype("f4"),
        {"latitude": rows, "longitude": columns},
        ("latitude", "longitude"),
    )
    statics = height.to_dataset(name="orography")
    places = {"latitude": (("y", "x"), np.full((16, 16), 51.3)),
              "longitude": (("y", "x"), np.full((16, 16), 6.2))}  # fmt: skip
    winds = WINDS.assign_coords(places)
    for laid in (statics, statics.isel(latitude=slice(None, None, -1)),
                 statics.transpose("longitude", "latitude")):  # fmt: skip
        found = wind.with_statics(winds, laid)["orography"]
        np.testing.assert_allclose(found, 519.2, rtol=1e-6)
    with pytest.raises(ValueError, match=r"the winds have .*they must have latitude"):
        wind.with_statics(WINDS, statics)


@pytest.mark.parametrize("names", [("x_wind", "y_wind"), ("wind_speed",)])
def test_winds_in_another_unit_or_upside_down_are_refused(names):
    """Of a net they would be other winds, or a mirror image, without a word."""
    winds = wind.gaussian(seed=0, snapshots=2, n=16)
    plain = wind.channels(winds, names)
    turned = winds.transpose("x", "time", "y")
    xr.testing.assert_identical(wind.channels(turned, names), plain)
    knots = winds.assign({names[0]: winds[names[0]].assign_attrs(units="knots")})
    with pytest.raises(ValueError, match=rf"{names[0]} is in knots; it must be in m s-1"):
        wind.channels(knots, names)
    for axis in ("y", "x"):
        flipped = winds.isel({axis: slice(None, None, -1)})
        with pytest.raises(ValueError, match=f"{axis} descends .* mirror image"):
            wind.channels(flipped, names)
        xr.testing.assert_identical(wind.channels(flipped.sortby(axis), names), plain)
    north = winds.drop_vars("y").assign_coords(latitude=("y", np.linspace(60, 50, 16)))
    with pytest.raises(ValueError, match=r"latitude descends .*sortby\('latitude'\)"):
        wind.channels(north, names)
