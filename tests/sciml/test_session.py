"""What a session has set of JAX and NumPy changes no answer."""

import threading
import warnings
from contextlib import ExitStack, nullcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from numpyro.distributions import LogNormal, MultivariateNormal, Normal, Uniform

import sciml
from sciml import models, wind
from sciml._session import each
from sciml.estimator import Patches, fit_downscaling
from sciml.ode import AR1, BlackBox, Gaussian, Observation, Static, System
from sciml.train import Recipe

pytestmark = pytest.mark.usefixtures("untyped")

SESSIONS = {
    "as it is": nullcontext,
    "double precision": lambda: jax.enable_x64(True),
    "another generator": lambda: jax.default_prng_impl("rbg"),
    "another order of random bits": lambda: jax.threefry_partitionable(False),
    "no ranks raised": lambda: jax.numpy_rank_promotion("raise"),
    "no types mixed": lambda: jax.numpy_dtype_promotion("strict"),
    "nothing compiled": jax.disable_jit,
    "floating point errors": lambda: np.errstate(all="raise"),
}
SET = {name: each for name, each in SESSIONS.items() if name != "as it is"}


def decay():
    return System(
        name="decay",
        vector_field=lambda t, u, p: (-p[0] * u[0],),
        initial_state=lambda p: (p[1],),
        prior={"rate": LogNormal(0.0, 0.5), "start": Normal(2.0, 0.1)},
        observation=Observation.regular(interval=0.25, length=6),
    )


def answers():
    data = sciml.simulate(decay(), samples=100, seed=1, noise=AR1(sd=0.05))
    with warnings.catch_warnings(action="ignore"):  # one epoch learns little
        fit = sciml.fit(models.Gaussian(8, 1), data, epochs=1)
        seen = data.isel(sample=[3])
        drawn = fit.sample(seen, draws=4).posterior
        density = fit.log_prob(seen, seen.parameters)
    return [data.parameters, data.observation, drawn, density]


@pytest.fixture(scope="module")
def usual():
    return answers()


@pytest.mark.parametrize("session", SET.values(), ids=SET)
def test_a_seed_gives_the_same_and_a_net_answers_the_same(session, usual):
    with session():
        found = answers()
    for one, other in zip(found, usual, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def correlated():
    joint = MultivariateNormal(jnp.zeros(2), jnp.array([[1.0, 0.6], [0.6, 1.0]]))
    prior = {("a", "b"): joint, "c": LogNormal(jnp.array(0.5), 0.2)}
    return Static(name="joint", prior=prior, features=3, noise=Gaussian(sd=0.1))


def test_a_prior_made_in_double_precision_draws_the_same():
    plain = sciml.simulate(correlated(), samples=20).parameters
    with jax.enable_x64(True):
        wide = sciml.simulate(correlated(), samples=20).parameters
    assert wide.dtype == np.float32
    np.testing.assert_allclose(wide, plain, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_wind_is_refined_alike_in_double_precision():
    fields = wind.gaussian(seed=0, snapshots=12, n=32).x_wind.rename(None)
    coarse = wind.block_mean(fields.values[-2:], 4)

    def refined():
        net = fit_downscaling(
            models.SuperResolution(factor=4, channels=4, blocks=1),
            [fields[:6]],
            fields[8:10],
            recipe=Recipe(batch=4),
            epochs=1,
            patches=Patches(size=16, count=8),
        )
        return net.refine(np.asarray(coarse))

    plain = refined()
    with jax.enable_x64(True):
        wide = refined()
    assert wide.dtype == plain.dtype
    np.testing.assert_array_equal(wide, plain)


def test_nets_for_wind_that_are_built_in_double_precision_take_single():
    with jax.enable_x64(True):
        net = models.SuperResolution(factor=2, channels=4, blocks=1).build(nnx.Rngs(0))
        assert net(jnp.ones((1, 1, 8, 8), jnp.float32)).dtype == jnp.float32


def test_threads_have_what_the_caller_has_set():
    with ExitStack() as stack:
        stack.enter_context(jax.enable_x64(True))
        stack.enter_context(jax.default_matmul_precision("highest"))
        both = threading.Barrier(2)

        def told(number):
            both.wait(timeout=60)
            return jnp.asarray(0.5).dtype, jax.config.jax_default_matmul_precision

        for found in each(told, range(2), compiled=True):
            assert found == (np.float64, "highest")


def in_double(p):
    """Return 1e8 + p t − 1e8, which single precision loses."""
    return np.asarray(1e8 + p["rate"] * jnp.arange(4.0) - 1e8)


@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_a_simulator_of_ones_own_computes_as_its_owner_has_set(scheduler):
    box = BlackBox(in_double, {"rate": Uniform(0.25, 0.75)}, scheduler=scheduler)
    with jax.enable_x64(True):
        data = sciml.simulate(box, 8)
    np.testing.assert_array_equal(data.observation[:, 1], data.parameters[:, 0])
    with jax.enable_x64(True):  # and after a door within a door
        data = sciml.ode.black_box(in_double, box.prior, 8, scheduler=scheduler)
    rows = data.observation.values
    assert np.ptp(rows[:, 1]) > 0.1
    np.testing.assert_allclose(rows, rows[:, [1]] * np.arange(4.0), rtol=1e-6)
