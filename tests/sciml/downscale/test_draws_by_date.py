"""Draws of a time are those of its date and seed, however times are grouped into calls."""

from itertools import combinations

import jax
import numpy as np
import pytest
import xarray as xr
from flax import nnx

from sciml import wind
from sciml.downscale import commands
from sciml.downscale.apply import predict
from sciml.downscale.comparison import scores
from sciml.downscale.result import Downscaling
from sciml.models import Generative
from sciml.train import Trained
from sciml.wind.prepare.channels import Normaliser

pytestmark = pytest.mark.usefixtures("quick_compilation")
VECTOR = ("x_wind", "y_wind")
HOURS = np.datetime64("2020-02-28T22", "ns") + np.arange(4) * np.timedelta64(1, "h")
LEAP = xr.date_range("2020-02-28T22", periods=4, freq="h", calendar="noleap", use_cftime=True)


@pytest.fixture(scope="module")
def net():
    params = nnx.split(Generative(2, 2, 1, wind=2).build(nnx.Rngs(0)), nnx.Param)[1]
    keys = iter(jax.random.split(jax.random.key(1), len(jax.tree.leaves(params))))
    noisy = jax.tree.map(lambda p: p + 0.1 * jax.random.normal(next(keys), p.shape), params)
    nothing = np.zeros(0, np.float32)
    trained = Trained(noisy, nothing, nothing, nothing, 0.0, 0.0, 0.0)
    return Downscaling(
        Generative(2, 2, 1, wind=2), Normaliser(VECTOR, (0.0,) * 2, (3.0,) * 2), trained
    )


@pytest.fixture(scope="module")
def coarse():
    """The same wind at all times, so that only noise differs."""
    drawn = wind.gaussian(seed=0, snapshots=1, n=24)[[*VECTOR]].isel(time=[0] * 4)
    return drawn.assign_coords(time=HOURS)


def noise(fine):
    """What differs between two draws of each time, which have all else in common."""
    one, other = fine.x_wind.transpose("draw", "time", "y", "x").values
    return (one - other).reshape(len(one), -1)


def related(fields):
    """The largest correlation of two of several fields of noise; of a shared one it is 0.9."""
    return max(abs(np.corrcoef(a, b)[0, 1]) for a, b in combinations(fields, 2))


@pytest.mark.parametrize("times", [HOURS, LEAP, np.arange(4.0), None])
def test_a_part_of_the_times_draws_what_all_draw(net, coarse, times):
    coarse = coarse.drop_vars("time") if times is None else coarse.assign_coords(time=times)
    whole = predict(net, coarse, draws=2)
    before = {} if times is not None else {"before": 2}
    part = predict(net, coarse.isel(time=[2, 3]), draws=2, **before)
    np.testing.assert_array_equal(part.x_wind, whole.x_wind[2:])
    assert related(noise(whole)) < 0.5


def test_dates_of_any_precision_and_in_any_order_are_the_same(net, coarse):
    whole = predict(net, coarse, draws=1)
    seconds = coarse.assign_coords(time=HOURS.astype("datetime64[s]")).isel(time=[3, 0])
    np.testing.assert_array_equal(predict(net, seconds, draws=1).x_wind, whole.x_wind[[3, 0]])


def test_a_date_that_is_there_twice_draws_twice(net, coarse):
    twice = predict(net, coarse.isel(time=[1, 1]), draws=2)
    assert related(noise(twice)) < 0.5


@pytest.mark.parametrize("dated", [True, False])
def test_pieces_draw_what_the_whole_draws_and_seeds_share_nothing(
    net, coarse, tmp_path, monkeypatch, dated
):
    coarse = coarse if dated else coarse.drop_vars("time")
    whole = predict(net, coarse, draws=2, seed=3)
    monkeypatch.setattr(commands, "IN_MEMORY_BYTES", 1)
    found = []
    for seed in (3, 4):
        path = commands.refine_file(net, coarse, tmp_path / f"{seed}.zarr", draws=2, seed=seed)
        found.append(commands.read_prediction(path))
    np.testing.assert_array_equal(found[0].x_wind, whole.x_wind)
    assert related([*noise(found[0]), *noise(found[1])]) < 0.5


def test_a_net_takes_the_seed_of_its_draws(net, coarse):
    one, other = (net.predict(coarse.isel(time=[0]), draws=2, seed=seed) for seed in (0, 1))
    assert related([*noise(one), *noise(other)]) < 0.5


def test_a_prediction_without_a_value_at_a_time_can_be_opened(net, coarse, tmp_path):
    gone = coarse.where(coarse.time != HOURS[1])
    path = commands.refine_file(net, gone, tmp_path / "fine.zarr")
    opened = wind.open(path, allow_missing=True)
    assert np.isnan(opened.x_wind[1]).all()
    assert np.isfinite(opened.x_wind[0]).all()


def test_where_a_draw_is_missing_no_mean_of_the_others_is_scored(net, coarse):
    fine = predict(net, coarse, draws=3)
    truth = fine.isel(draw=0, drop=True)
    known = scores(fine.isel(y=slice(8, None)), truth.isel(y=slice(8, None)), 2)
    rows = xr.DataArray(np.arange(48) >= 8, dims="y")
    holed = fine.where(rows | xr.DataArray(np.arange(3) != 1, dims="draw"))
    found = scores(holed, truth, 2)
    tables = [table[table.scheme == "prediction"].reset_index() for table in (found, known)]
    for column in ("rmse_m_s", "mae_m_s", "crps_m_s"):
        np.testing.assert_allclose(tables[0][column], tables[1][column], rtol=1e-6)
