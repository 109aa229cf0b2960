"""Coarse and fine, channels, heights, the ground, symmetries, plans and streams."""

import sys
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from sciml import wind
from sciml.wind.prepare.stream import read
from sciml.wind.prepare.symmetry import inverse

STREAM = sys.modules["sciml.wind.prepare.stream"]  # the package exports the function
RNG = np.random.default_rng(0)


def winds(times=3, y=8, x=12, **attrs):
    u, v = RNG.normal(5, 3, (2, times, y, x)).astype("float32")
    unit = {"units": "m s-1", "height_m": 10.0}
    return xr.Dataset(
        {
            "wind_speed": (("time", "y", "x"), np.hypot(u, v), unit),
            "x_wind": (("time", "y", "x"), u, unit),
            "y_wind": (("time", "y", "x"), v, unit),
        },
        coords={
            "time": np.datetime64("2020-01-01T00", "ns")
            + np.arange(times) * np.timedelta64(1, "h"),
            "latitude": ("y", 45 + 0.1 * np.arange(y)),
            "longitude": ("x", 5 + 0.1 * np.arange(x)),
        },
        attrs=attrs,
    )


@pytest.mark.parametrize("factor", [2, 3, 7, 16])
def test_coarsening_conserves_the_mean_at_every_factor(factor):
    field = RNG.gamma(2, 4, (2, 33, 50)).astype("float32")
    coarse, fine = wind.pair(field, factor)
    assert coarse.shape == (2, 33 // factor, 50 // factor)
    np.testing.assert_allclose(coarse.mean((1, 2)), fine.mean((1, 2)), rtol=1e-5)
    np.testing.assert_allclose(coarse, wind.block_mean(fine, factor), rtol=1e-6)


def test_missing_points_are_left_out_of_a_mean_until_too_few_are_there():
    field = np.arange(16, dtype="float32").reshape(4, 4)
    field[0, 0] = field[2, 2] = field[2, 3] = field[3, 3] = np.nan
    mean = np.asarray(wind.block_mean_present(field, 2))
    np.testing.assert_allclose(mean[0, 0], (1 + 4 + 5) / 3)
    assert np.isnan(mean[1, 1])
    np.testing.assert_allclose(wind.block_mean_present(field, 2, least=0.25)[1, 1], 14)
    with pytest.raises(ValueError, match="least is 0"):
        wind.block_mean_present(field, 2, least=0.0)
    with pytest.raises(ValueError, match="factor is 17; it must be 2 to 16"):
        wind.pair(field, 17)


def test_profiles_of_height_and_what_they_say():
    here = winds()
    power = wind.power_law(here, 80.0, exponent=0.2)
    np.testing.assert_allclose(power.wind_speed, here.wind_speed * 8**0.2, rtol=1e-6)
    assert power.y_wind.attrs["height_m"] == 80
    assert power.attrs["changes"] == "extrapolated from 10 m to 80 m by the power law with " + (
        "exponent 0.200"
    )
    roughness = xr.DataArray(np.full((8, 12), 0.03), dims=("y", "x"))
    log = wind.log_law(here, 100.0, roughness)
    expected = here.x_wind * np.log(100 / 0.03) / np.log(10 / 0.03)
    np.testing.assert_allclose(log.x_wind, expected, rtol=1e-6)
    assert log.x_wind.dims == ("time", "y", "x")
    back = wind.log_law(log, 10.0, roughness)
    np.testing.assert_allclose(back.x_wind, here.x_wind, rtol=1e-5)


def test_profiles_are_refused_without_a_height_or_below_the_roughness():
    bare = winds()
    for name in bare.data_vars:
        del bare[name].attrs["height_m"]
    with pytest.raises(ValueError, match="one positive height must be known"):
        wind.power_law(bare, 80.0)
    with pytest.raises(ValueError, match="must be positive and below both heights"):
        wind.log_law(winds(), 100.0, 20.0)


def test_channels_and_covariates():
    fields = wind.channels(winds(), ("x_wind", "y_wind"))
    assert fields.dims == ("time", "channel", "y", "x")
    np.testing.assert_array_equal(fields.sel(channel="y_wind"), fields[:, 1])
    static = wind.covariates(winds(), ("latitude", "longitude"))
    np.testing.assert_allclose(static[:, 2, 3], [45.2, 5.3], rtol=1e-6)
    layered = winds().expand_dims(pressure=[500.0, 850.0])
    with pytest.raises(ValueError, match="x_wind is on levels 500, 850; take one"):
        wind.channels(layered, ("x_wind",))
    with pytest.raises(ValueError, match="'gust' is not a variable on"):
        wind.channels(winds(), ("gust",))
    with pytest.raises(ValueError, match="'orography' is not among latitude, longitude; add it by"):
        wind.covariates(winds(), ("orography",))


def ground():
    y, x = 44.5 + 0.05 * np.arange(60), 4.5 + 0.05 * np.arange(60)
    plane = 100 * y[:, None] + 10 * x
    return xr.Dataset(
        {"orography": (("y", "x"), plane, {"units": "m"})},
        coords={"latitude": ("y", y), "longitude": ("x", x)},
    )


def test_statics_are_brought_to_the_points():
    here = wind.with_statics(winds(), ground())
    expected = 100 * here.latitude + 10 * here.longitude
    np.testing.assert_allclose(here.orography, expected, rtol=1e-6)  # linear: exact
    far = winds().assign_coords(longitude=("x", 6.6 + 0.1 * np.arange(12)))
    with pytest.raises(ValueError, match="points lie outside of the statics"):
        wind.with_statics(far, ground())


def test_real_masks_come_with_real_winds(shared):
    folder = shared / "data" / "wind" / "meteonet_arpege_0p1deg"
    statics = wind.open_statics(folder / "SE_masks.grib")
    assert float(statics.orography.max()) == pytest.approx(4119, abs=1)
    assert (np.diff(statics.latitude) > 0).all()
    fields = wind.open(folder / "arpege_10m_SE.grib").isel(y=slice(1, -1), x=slice(0, -1))
    here = wind.with_statics(fields, statics)
    alps = here.orography.where(here.orography > 2500)
    assert float(here.land_mask.where(alps > 0).min()) == 1
    assert 0.3 < float(here.land_mask.mean()) < 0.8
    with pytest.raises(ValueError, match="holds neither land_mask nor orography"):
        wind.open_statics(folder / "arpege_10m_SE.grib")


def test_normalising_gives_order_one_and_back():
    fields = wind.channels(winds(20), ("wind_speed", "x_wind", "y_wind"))
    fitted = wind.fit_normaliser(fields)
    normal = fitted.normal(fields.values)
    np.testing.assert_allclose(normal[:, 0].mean(), 0, atol=1e-4)
    np.testing.assert_allclose(normal[:, 0].std(), 1, rtol=1e-4)
    np.testing.assert_allclose((normal[:, 1:] ** 2).mean(), 1, rtol=1e-4)
    assert fitted.mean[1:] == (0, 0)
    np.testing.assert_allclose(fitted.physical(normal), fields, atol=1e-4)
    fields[0, 0, 0, 0] = np.nan
    assert np.isfinite(wind.fit_normaliser(fields).mean).all()


def test_normalising_and_turning_commute():
    names = ("x_wind", "y_wind")
    fields = wind.channels(winds(5, 8, 8), names)
    fitted = wind.fit_normaliser(fields)
    one = fitted.normal(wind.symmetry(fields.values, names, 3))
    other = wind.symmetry(fitted.normal(fields.values), names, 3)
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_a_constant_channel_is_refused():
    fields = wind.channels(winds(), ("wind_speed",)) * 0 + 3
    with pytest.raises(ValueError, match="is a channel constant"):
        wind.fit_normaliser(fields)
    with pytest.raises(ValueError, match="one of each for each channel"):
        wind.Normaliser(("a", "b"), (0.0,), (1.0,))


POSITIONS = np.stack(np.meshgrid(np.arange(4) - 1.5, np.arange(4) - 1.5)).astype("float32")


@pytest.mark.parametrize("element", range(8))
def test_the_position_vector_is_the_same_seen_from_anywhere(element):
    """The field (x, y) about the centre is mapped onto itself by every symmetry."""
    turned = wind.symmetry(POSITIONS, ("x_wind", "y_wind"), element)
    np.testing.assert_allclose(turned, POSITIONS, atol=1e-6)


@pytest.mark.parametrize("element", range(8))
def test_a_gradient_turns_with_its_potential(element):
    potential = RNG.normal(size=(9, 9)).astype("float32")

    def gradient(field):
        return np.stack(np.gradient(np.asarray(field))[::-1])  # along x, along y

    names = ("x_wind", "y_wind")
    one = wind.symmetry(gradient(potential), names, element)
    other = gradient(wind.symmetry(potential[None], ("wind_speed",), element)[0])
    np.testing.assert_allclose(one, other, atol=1e-5)


def test_the_eight_symmetries_are_eight_and_commute_with_block_means():
    square = RNG.normal(size=(3, 8, 8)).astype("float32")
    names = ("eastward_wind", "northward_wind", "wind_speed")
    moved = [np.asarray(wind.symmetry(square, names, e)) for e in range(8)]
    assert len({m.tobytes() for m in moved}) == 8
    for e, fine in enumerate(moved):
        coarse = wind.symmetry(wind.block_mean(square, 2), names, e)
        np.testing.assert_allclose(wind.block_mean(fine, 2), coarse, atol=1e-6)
    traced = jax.jit(lambda e: wind.symmetry(square, names, e))
    for e, fine in enumerate(moved):
        np.testing.assert_allclose(traced(jnp.asarray(e)), fine, atol=1e-6)
        np.testing.assert_array_equal(wind.symmetry(fine, names, inverse(e)), square)


@pytest.mark.parametrize(
    ("names", "message"),
    [(("x_wind",), "x_wind is there without"), (("wind_speed", "x_wind"), "2 names for 1")],
)
def test_half_a_vector_cannot_be_turned(names, message):
    with pytest.raises(ValueError, match=message):
        wind.symmetry(np.zeros((1, 4, 4), "float32"), names, 0)


def test_a_ninth_symmetry_is_refused():
    with pytest.raises(ValueError, match="element is 8; it must be 0 to 7"):
        wind.symmetry(POSITIONS, ("x_wind", "y_wind"), 8)


@settings(deadline=None, max_examples=30)
@given(
    st.integers(1, 3), st.integers(4, 20), st.integers(4, 20), st.integers(1, 4), st.integers(1, 6)
)
def test_a_grid_of_patches_covers_every_point(times, y, x, size, stride):
    plan = wind.gridded(times, y, x, size, min(stride, size))
    seen = np.zeros((times, y, x), bool)
    for t, j, i in plan.corners:
        seen[t, j : j + size, i : i + size] = True
    assert seen.all()
    assert (plan.corners[:, 1:] + size <= [y, x]).all()


def test_plans_are_repeated_by_seed_and_shuffled_by_groups():
    plan = wind.scattered(6, 20, 30, 8, count=5, seed=1)
    np.testing.assert_array_equal(
        plan.corners, wind.scattered(6, 20, 30, 8, count=5, seed=1).corners
    )
    assert len(plan) == 30
    mixed = plan.shuffled(0, times=2)
    np.testing.assert_array_equal(np.unique(mixed.corners, axis=0), np.unique(plan.corners, axis=0))
    groups = [len(np.unique(mixed.corners[k : k + 10, 0])) for k in (0, 10, 20)]
    assert groups == [2, 2, 2]
    with pytest.raises(ValueError, match="size is 21 on a 20×30 field"):
        wind.scattered(1, 20, 30, 21, count=1)


@pytest.fixture
def stored(tmp_path):
    """Chunked winds in a Zarr group, opened lazily."""
    winds(6, 16, 24).chunk(time=1).to_zarr(tmp_path / "a", consolidated=False)
    opened = wind.open(tmp_path / "a", lazy=True)
    return wind.channels(opened, ("x_wind", "y_wind"))


def test_a_stream_gives_every_patch_in_order(stored):
    whole = stored.values
    plan = wind.scattered(6, 16, 24, 8, count=3).shuffled(0)
    batches = list(wind.stream(stored, plan, 4))
    assert [b.shape for b in batches] == [(4, 2, 8, 8)] * 4
    for square, (t, j, i) in zip(np.concatenate(batches), plan.corners, strict=False):
        np.testing.assert_array_equal(square, whole[t, :, j : j + 8, i : i + 8])
    assert [len(b) for b in wind.stream(stored, plan, 4, whole=False)] == [4, 4, 4, 4, 2]


def test_no_more_is_read_ahead_than_asked_for(stored, monkeypatch):
    made = []

    def counted(fields, plan):
        made.append(len(plan))
        return read(fields, plan)

    monkeypatch.setattr(STREAM, "read", counted)
    batches = wind.stream(stored, wind.gridded(6, 16, 24, 8), 4, ahead=1)
    next(batches)
    time.sleep(0.5)  # longer than all nine batches need
    assert len(made) <= 3  # in use, waiting, in the reader's hands
    batches.close()
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if name.startswith("wind reader")]


def test_what_goes_wrong_while_reading_is_raised(stored, monkeypatch):
    def fails(fields, plan):
        raise OSError("disk")

    monkeypatch.setattr(STREAM, "read", fails)
    with pytest.raises(OSError, match="disk"):
        next(wind.stream(stored, wind.gridded(6, 16, 24, 8), 4))


def test_a_plan_beyond_the_fields_is_refused(stored):
    with pytest.raises(ValueError, match=r"patch 0 at \(0, 9, 0\) .* is not inside"):
        next(wind.stream(stored, wind.Plan(np.array([[0, 9, 0]]), 8), 1))
    with pytest.raises(ValueError, match="batch is 0"):
        next(wind.stream(stored, wind.gridded(6, 16, 24, 8), 0))
