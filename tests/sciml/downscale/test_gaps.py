"""Beside what is missing, a net answers as where all is there: a coast is no calm."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from sciml import wind
from sciml.downscale.apply import predict
from sciml.downscale.comparison import scores
from sciml.downscale.objective import executed_objective, objective_of, skeleton
from sciml.downscale.result import Downscaling
from sciml.models import Cascade, LocallyScaled, SuperResolution
from sciml.train import Trained
from sciml.wind.prepare.channels import Normaliser
from sciml.wind.prepare.coarsen import continued, pair_known
from sciml.wind.prepare.tiled import Tiles, refine_tiled

pytestmark = pytest.mark.usefixtures("quick_compilation")
PLAIN = SuperResolution(2, 4, 1, wind=2)
NETS = {"plain": PLAIN, "scaled": LocallyScaled(PLAIN, window=3)}
STEADY = np.array([2.0, -1.0], np.float32)[:, None, None]
FACTOR, SHORE = 2, 5  # the columns of the coarse grid that are missing


def fresh(model):
    """A net as it starts: conservative bicubic interpolation."""
    nothing = np.zeros(0, np.float32)
    params = nnx.split(model.build(nnx.Rngs(0)), nnx.Param)[1]
    trained = Trained(params, nothing, nothing, nothing, 0.0, 0.0, 0.0)
    return Downscaling(model, Normaliser(("x_wind", "y_wind"), (1.0, 0.0), (3.0, 3.0)), trained)


@pytest.fixture(scope="module")
def shore():
    """A steady wind that is not known in some columns, and in one a component alone."""
    sea = wind.coarser(wind.gaussian(seed=0, snapshots=1, n=40), 2)
    for name, speed in (("x_wind", 8.0), ("y_wind", -6.0)):
        sea[name][:] = speed
        sea[name][..., :SHORE] = np.nan
    sea["y_wind"][..., SHORE] = np.nan
    sea["wind_speed"] = np.hypot(sea["x_wind"], sea["y_wind"]).assign_attrs(sea["wind_speed"].attrs)
    return sea


@pytest.mark.parametrize("kind", NETS)
def test_a_steady_wind_is_steady_up_to_the_shore(kind, shore):
    fine = predict(fresh(NETS[kind]), shore)
    for name, speed, known in (("x_wind", 8, SHORE), ("y_wind", -6, SHORE + 1)):
        values = fine[name].values
        assert np.isnan(values[..., : known * FACTOR]).all()
        np.testing.assert_allclose(values[..., known * FACTOR :], speed, rtol=1e-5)


@pytest.mark.slow
def test_a_mirrored_shore_has_the_mirrored_wind_and_tiles_are_the_whole():
    rng = np.random.default_rng(0)
    coarse = rng.normal(size=(1, 2, 18, 40)).astype("f4")
    coarse[..., (rng.uniform(size=(18, 40)) < 0.4)] = np.nan
    net = fresh(PLAIN)
    whole = net.refine(coarse)
    turned = net.refine(coarse[..., ::-1] * np.array([-1, 1])[:, None, None] + [[[2]], [[0]]])
    there = np.isfinite(whole)
    assert 0.3 < 1 - there.mean() < 0.5
    back = (turned[..., ::-1] - [[[2]], [[0]]]) * np.array([-1, 1])[:, None, None]
    np.testing.assert_allclose(back[there], whole[there], atol=1e-5)
    names = {"x_wind": 0, "y_wind": 1}
    fields = wind.coarser(wind.gaussian(seed=0, snapshots=1, n=80), 2).isel(y=slice(18))
    for name, at in names.items():
        fields[name][:] = coarse[:, at]
    tiled = predict(net, fields, tiles=wind.Tiles(size=12, reach=net.model.reach, blend=2))
    for name, at in names.items():
        np.testing.assert_allclose(tiled[name].values, whole[:, at], atol=1e-5)


@pytest.mark.slow
def test_tiles_of_a_function_read_farther_beside_a_gap():
    """What a net is shown of a gap comes from twice its reach: a seam of 0.01 m/s was left."""
    net = fresh(PLAIN)
    keys = iter(jax.random.split(jax.random.key(1), 100))
    noisy = jax.tree.map(lambda p: 0.3 * jax.random.normal(next(keys), p.shape), net.trained.params)
    net = replace(net, trained=replace(net.trained, params=noisy))
    rough = np.random.default_rng(0).normal(size=(1, 60, 70)).astype("f4")
    rough[:, 20:34, 22:25] = np.nan

    def refine(part):
        return net.refine(np.stack([part, part], 1))[:, 0]

    whole = refine(rough)
    tiled = refine_tiled(refine, rough, FACTOR, Tiles(16, PLAIN.reach, 4))
    np.testing.assert_allclose(tiled, whole, atol=1e-5)
    assert np.isnan(whole).sum() == FACTOR**2 * np.isnan(rough).sum()


def test_a_training_shows_a_net_the_same():
    """The loss of a net that starts as interpolation is none, of a steady wind with a hole."""
    params = jax.tree.map(jnp.asarray, fresh(PLAIN).trained.params)
    for made in (objective_of, lambda *a, **k: without_key(executed_objective(*a, **k))):
        objective = made(PLAIN, skeleton(PLAIN)[0], gaps=True)
        error = jax.jit(lambda params, fine, of=objective: of(params, fine, None))
        assert float(error(params, holed(np.zeros((3, 2, 32, 32))))) < 1e-9


@pytest.mark.slow
def test_so_does_that_of_all_factors():
    """A hole in a steady wind changes nothing of the errors elsewhere, which are all there are."""
    model = Cascade(4, channels=4, blocks=1, wind=2)
    params = jax.tree.map(jnp.asarray, fresh(model).trained.params)
    objective = objective_of(model, skeleton(model)[0], gaps=True)
    storm = np.zeros((3, 2, 32, 32))
    storm[..., :8, 28:] = np.random.default_rng(0).normal(size=(3, 2, 8, 4))
    whole, known = (objective(params, jnp.asarray(f), None) for f in (storm + STEADY, holed(storm)))
    share = np.isfinite(np.asarray(pair_known(holed(storm), 4)[1])).mean()
    assert float(known) * share == pytest.approx(float(whole), rel=1e-4)


def holed(storm):
    fine = np.asarray(storm + STEADY, np.float32)
    fine[..., 12:, :12] = np.nan
    fine[:, 0, 20:25, 20:26] = np.nan
    return fine


def without_key(objective):
    return lambda params, fine, _: objective(params, fine)


def test_interpolations_are_shown_the_same(shore):
    truth = wind.gaussian(seed=0, snapshots=1, n=40)
    for name in ("x_wind", "y_wind", "wind_speed"):
        truth[name][:] = np.kron(shore[name], np.ones((1, FACTOR, FACTOR)))
    table = scores(predict(fresh(PLAIN), shore), truth, FACTOR, shore)
    assert float(table.rmse_m_s.max()) < 1e-4
    assert {"bicubic", "prediction"} < {*table.scheme}


def test_what_is_farther_than_a_net_sees_stays_nothing():
    line = np.full((1, 9), np.nan, np.float32)
    line[0, 0] = 4.0
    assert np.asarray(continued(line, 3)).tolist() == [[4.0] * 4 + [0.0] * 5]
    assert np.asarray(continued(line)).tolist() == [[4.0] + [0.0] * 8]
    assert np.asarray(continued(np.full((2, 3), np.nan, np.float32), 3)).tolist() == [[0.0] * 3] * 2
