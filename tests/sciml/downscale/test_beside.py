"""What a net is shown beside the coarse wind: read in SI units, turned, averaged, and of use."""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from flax import nnx

from sciml import wind
from sciml.downscale.settings import settings
from sciml.estimator import Patches, fit_downscaling, load_downscaling
from sciml.models import (
    SRCNN,
    Cascade,
    Density,
    FlowRefinement,
    Generative,
    LocallyScaled,
    SuperResolution,
    UNet,
)
from sciml.train import Recipe

BESIDE = ("air_temperature", "x_wind_100m", "y_wind_100m")
NAMES = ("x_wind", "y_wind")
TIMES = np.datetime64("2020-01-01", "ns") + np.arange(24) * np.timedelta64(1, "h")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A file of wind at 10 and at 100 m, and of temperature."""
    rng = np.random.default_rng(0)
    unit, on = {"units": "m s-1"}, ("time", "lat", "lon")
    fields = {
        f"{c}{height}": (on, part[n].values, unit)
        for height, part in zip(
            (10, 100), (wind.gaussian(s, 24, n=32) for s in (0, 1)), strict=True
        )
        for c, n in (("u", "x_wind"), ("v", "y_wind"))
    }
    warm = (on, rng.normal(10, 3, (24, 32, 32)).astype(np.float32), {"units": "degC"})
    stored = xr.Dataset(
        fields | {"t2m": warm},
        {"time": TIMES, "lat": np.linspace(50, 51, 32), "lon": np.linspace(5, 6, 32)},
    )
    return write(stored, tmp_path_factory.mktemp("beside") / "more.nc")


def write(stored, path):
    """Write a dataset."""
    stored.to_netcdf(path, engine="h5netcdf")
    return path


def test_what_is_beside_is_in_si_units_and_turned_with_the_wind(path, tmp_path):
    plain = wind.open(path)
    more = wind.open(path, beside=BESIDE)
    assert "air_temperature" not in plain
    assert {*more.data_vars} - {*plain.data_vars} == {*BESIDE}
    stored = xr.load_dataset(path, engine="h5netcdf")
    assert np.allclose(more.air_temperature, stored.t2m + 273.15)
    assert more.air_temperature.attrs["units"] == "K"
    assert np.array_equal(more.y_wind_100m, stored.v100)
    north = wind.open(
        write(stored.isel(lat=slice(None, None, -1)), tmp_path / "n.nc"), beside=BESIDE
    )
    for name in (*BESIDE, "x_wind"):
        assert np.array_equal(north[name], more[name])


@pytest.mark.parametrize(
    ("beside", "said"),
    [
        (("surface_air_pressure",), "has no surface_air_pressure to show beside the wind; it has"),
        (("x_wind_300m",), "100"),
        (("humidity",), "beside has 'humidity'; it must be one of air_temperature"),
    ],
)
def test_what_is_not_there_is_refused(path, beside, said):
    with pytest.raises(ValueError, match=said):
        wind.open(path, beside=beside)


def test_an_unknown_unit_is_refused(path, tmp_path):
    stored = xr.load_dataset(path, engine="h5netcdf")
    stored["t2m"].attrs["units"] = "F"
    with pytest.raises(ValueError, match=r"unit of t2m of .* is 'F'; it must be one of K, degC"):
        wind.open(write(stored, tmp_path / "f.nc"), beside=BESIDE[:1])


@pytest.mark.parametrize(
    "kind", [SRCNN, Density, FlowRefinement, Generative, SuperResolution, UNet]
)
def test_every_net_takes_them_and_keeps_block_means(kind):
    rng = np.random.default_rng(1)
    coarse = jnp.asarray(rng.normal(size=(2, 5, 6, 7)), jnp.float32)
    for model in (
        kind(factor=2, wind=2, beside=3),
        LocallyScaled(kind(factor=2, wind=2, beside=3)),
    ):
        net = model.build(nnx.Rngs(0))
        fine = net(coarse)
        assert fine.shape == (2, 2, 12, 14)
        assert np.allclose(wind.block_mean(fine, 2), coarse[:, :2], atol=1e-5)
        # it starts as interpolation of the wind alone
        assert np.allclose(fine, wind.conservative_bicubic(coarse[:, :2], 2), atol=1e-5)
    with pytest.raises(
        ValueError, match="2 coarse channels were passed to a net of 2 of wind and 3"
    ):
        net(coarse[:, :2])


def test_a_cascade_refuses_them():
    with pytest.raises(ValueError, match=r"Cascade.beside is 1; .* take another net"):
        Cascade(factor=4, beside=1)


@pytest.fixture(scope="module")
def trained(path):
    """A net that was shown them in a short training."""
    winds = wind.channels(wind.open(path, beside=BESIDE), NAMES, beside=BESIDE)
    return fit_downscaling(
        SuperResolution(4, 4, 1, wind=2, beside=3), [winds[:18]], [winds[18:]],
        recipe=Recipe(8), epochs=1, patches=Patches(16, 16),
    )  # fmt: skip


@pytest.mark.slow
def test_a_net_learns_from_what_is_beside(path):
    """The coarse model's own wind at 10 m is noise here: only that at 100 m tells of the truth."""
    winds = wind.open(path, beside=BESIDE)
    truth = winds[["x_wind", "y_wind"]]
    truth = truth.assign({n: winds[f"{n}_100m"] for n in NAMES})
    error = {}
    for beside in ((), BESIDE):
        pairs = [
            wind.matched(winds.isel(time=t), truth.isel(time=t), 4, NAMES, (), beside, strict=False)
            for t in (slice(18), slice(18, 24))
        ]
        model = SuperResolution(4, 16, 1, conservative=False, wind=2, beside=len(beside))
        net = fit_downscaling(model, *([p] for p in pairs), recipe=Recipe(8, 5e-3), epochs=20,
                              patches=Patches(16, 64))  # fmt: skip
        off = net.refine(pairs[1].coarse) - pairs[1].fine.values
        error[beside] = float(np.sqrt((off**2).mean()))
    assert error[BESIDE] < 0.6 * error[()]


@pytest.mark.slow
def test_a_net_keeps_what_it_is_shown(trained, path, tmp_path):
    coarse = wind.coarser(wind.open(path, beside=BESIDE).isel(time=slice(2)), 4)
    net = trained
    assert net.normaliser.mean[3:] == (0.0, 0.0)  # a vector: turning it commutes
    again = load_downscaling(net.save(tmp_path / "net.wind"))
    assert again.beside == BESIDE
    assert np.array_equal(again.predict(coarse).x_wind, net.predict(coarse).x_wind)
    folded = net.folded().predict(coarse)
    assert np.allclose(wind.block_mean(folded.x_wind.values, 4), coarse.x_wind, atol=1e-4)
    shuffled = wind.channels(coarse, (*reversed(BESIDE), "y_wind", "x_wind"))
    direct = wind.channels(coarse, (*NAMES, *BESIDE))
    assert np.array_equal(net.refine(shuffled), net.refine(direct))
    with pytest.raises(ValueError, match="the net sees x_wind, y_wind, air_temperature"):
        net.refine(direct.isel(channel=slice(2)))
    gap = direct.copy()
    gap[:, 2] = np.nan  # a temperature that is missing leaves no hole in the wind
    assert np.isfinite(net.refine(gap)).all()


@pytest.mark.slow
def test_pairs_take_what_is_beside_from_the_coarse_model(path):
    winds = wind.open(path, beside=BESIDE)
    fine = winds[["x_wind", "y_wind", "eastward_wind", "northward_wind", "wind_speed"]]
    fine = fine + 0.01 * fine
    rng = np.random.default_rng(2)
    for name in fine.data_vars:
        smooth = np.kron(rng.normal(size=(24, 8, 8)), np.ones((4, 4))).astype(np.float32)
        fine[name] = winds[name] + smooth
    pairs = wind.matched(winds.assign(fine), fine, 4, beside=BESIDE)
    assert pairs.beside == BESIDE
    assert np.allclose(
        pairs.shown()[:, 2], wind.block_mean(winds.air_temperature.values, 4), rtol=1e-4
    )
    assert np.allclose(pairs.shown()[:, 3], wind.block_mean(winds.x_wind_100m.values, 4), atol=5e-3)
    net = fit_downscaling(
        SuperResolution(4, 4, 1, conservative=False, wind=2, beside=3), [pairs], [pairs],
        recipe=Recipe(4), epochs=1, patches=Patches(16, 8),
    )  # fmt: skip
    assert net.refine(pairs.coarse).shape == (24, 2, 32, 32)
    corrected = pairs.corrected_by(wind.fit_correction(pairs)).shown()
    assert np.array_equal(corrected[:, 2:], pairs.shown()[:, 2:])


def test_the_settings_name_them(tmp_path, path):
    text = (
        "data: [{path: more.nc, part: train}]\ntarget: vector\nbeside: [%s]\nmodel: {factor: 4}\n"
    )
    (tmp_path / "s.yaml").write_text(text % "air_temperature, x_wind_100m, y_wind_100m")
    read = settings(tmp_path / "s.yaml")
    assert read.beside == BESIDE
    assert read.model.beside == 3
    (tmp_path / "s.yaml").write_text(text % "rain")
    with pytest.raises(ValueError, match="beside has 'rain'"):
        settings(tmp_path / "s.yaml")
