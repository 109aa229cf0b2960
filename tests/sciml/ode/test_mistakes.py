"""The first mistakes in a vector field: each gets one line that says what to write instead."""

import math
from typing import Any

import jax
import numpy as np
import pytest
from jax import numpy as jnp
from numpyro.distributions import (
    Bernoulli,
    DiscreteUniform,
    Poisson,
    TransformedDistribution,
    Uniform,
)
from numpyro.distributions.transforms import AffineTransform

from sciml.ode import (
    Diffrax,
    Gaussian,
    LogNormal,
    Missing,
    Observation,
    Static,
    System,
    simulate,
)
from sciml.reference import Population, smc

pytestmark = pytest.mark.usefixtures("untyped", "quick_compilation")


def system(field: Any, **changes: Any) -> System:
    """Return a system of one state with this vector field."""
    parts: dict[str, Any] = {
        "name": "mine",
        "vector_field": field,
        "initial_state": (1.0,),
        "prior": {"k": Uniform(0.1, 1.0), "s": Uniform(0.1, 1.0)},
        "observation": Observation.regular(interval=0.5, length=4),
    }
    return System(**parts | changes)


def filled(value: Any) -> np.ndarray:
    """Return an array of NumPy with a number of JAX in it."""
    array = np.zeros(1)
    array[0] = value
    return array


MISTAKES = {
    "a branch": (lambda t, u, p: (-u[0] if t > 1 else u[0],), "decides by a value.*jnp.where"),
    "a maximum": (lambda _t, u, p: (max(u[0], p[0]),), "decides by a value.*jnp.where"),
    "a Python number": (lambda _t, u, p: (float(p[0]) * u[0],), "makes a Python number"),
    "a function of math": (lambda _t, u, p: (math.exp(p[0]) * u[0],), "makes a Python number"),
    "a function of NumPy": (lambda _t, u, p: (np.exp(p[0]) * u[0],), "calls NumPy.*jax.numpy"),
    "a name": (lambda _t, u, p: (p["k"] * u[0],), "read by number from 0: p.0. is k, p.1. is s"),
    "a delay": (lambda _t, u, p, hist: (hist(1.0) * p[0],), "equations with delays or noise"),
    "an attribute": (lambda _t, u, p: (p.k * u[0],), "read by number from 0: p.0. is k"),
    "two states of one": (lambda _t, u, p: (p[0] * sum((lambda a, b: (a, b))(*u)),), "missing 1"),
    "a filled array": (lambda _t, u, p: filled(-p[0] * u[0]), "cannot be filled.*return a tuple"),
    "a random number": (
        lambda _t, u, p: (-p[0] * u[0] + np.random.default_rng().normal(),),
        "gives other numbers each time.*black_box",
    ),
    "another order": (lambda u, t, p: (-p[0] * u,), "takes .u, t, p.; it is called with .t, state"),
}


@pytest.mark.parametrize("method", [None, Diffrax()])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_has_one_line(mistake, method):
    field, message = MISTAKES[mistake]
    with pytest.raises(TypeError, match=f"vector field of 'mine' .*{message}") as caught:
        simulate(system(field), 2, method=method)
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)


def test_initial_states_and_transforms_are_explained_too():
    def field(_t, u, p):
        return (-p[0] * u[0],)

    with pytest.raises(TypeError, match="initial state of 'mine' makes a Python number"):
        simulate(system(field, initial_state=lambda p: (math.sqrt(p[0]),)), 2)
    seen = Observation.regular(interval=0.5, length=4, transform=lambda u: np.sort(u))
    with pytest.raises(TypeError, match="transform of 'mine' calls NumPy"):
        simulate(system(field, observation=seen), 2)


def test_what_a_user_refuses_is_said_in_the_user_s_words():
    def field(_t, u, p):
        raise ValueError("no table of rates was loaded")

    with pytest.raises(ValueError, match="no table of rates") as caught:
        simulate(system(field), 2)
    assert str(caught.value) == "no table of rates was loaded"


SOLUTIONS = {
    "a function of NumPy": (lambda p: np.exp(p[0]) * jnp.ones(3), "calls NumPy"),
    "a branch": (lambda p: jnp.ones(3) if p[0] > 0.5 else jnp.zeros(3), "decides by a value"),
    "a name": (lambda p: p["k"] * jnp.ones(3), "p.0. is k"),
    "a random number": (lambda p: p[0] + np.random.default_rng().normal(size=3), "other numbers"),
    "no such parameter": (lambda p: p[2] * jnp.ones(3), "reads a state or parameter that is not"),
    "too many features": (lambda p: p[0] * jnp.ones(4), "returns .4,. for one θ; it must be .3,"),
    "a number": (lambda p: p[0], r"returns \(\) for one θ"),
    "a list": (lambda p: [p[0], p[1]], "returns .2,. for one θ.*jnp.stack makes it"),
    "nothing": (lambda p: None, "returns None for one θ"),
}


@pytest.mark.parametrize("mistake", SOLUTIONS)
def test_the_solution_of_a_static_task_is_tried_too(mistake):
    solution, message = SOLUTIONS[mistake]
    prior = {"k": Uniform(0.1, 1.0), "s": Uniform(0.1, 1.0)}
    task = Static("mine", prior, 3, Gaussian(0.1), solution=solution)
    with pytest.raises((TypeError, ValueError), match=message) as caught:
        simulate(task, 2)
    assert "\n" not in str(caught.value)


def test_a_tuple_of_features_is_a_solution():
    task = Static("mine", {"k": Uniform(0.1, 1.0)}, 2, Gaussian(0.1), solution=lambda p: (p[0], 1))
    found = simulate(task, 3)
    np.testing.assert_array_equal(found.observation[:, 0], found.parameters[:, 0])


@pytest.mark.parametrize("part", ["initial_state", "transform", "vector_field"])
def test_no_part_of_a_system_is_random(part):
    """It is traced once: the number drawn then would be that of all samples."""
    rng = np.random.default_rng(0)
    random = {
        "initial_state": {"initial_state": lambda p: (p[0] + rng.normal(),)},
        "vector_field": {"vector_field": lambda _t, u, p: (-p[0] * u[0] * rng.normal(),)},
        "transform": {
            "observation": Observation.regular(
                interval=0.5, length=4, transform=lambda u: u + rng.normal(size=u.shape)
            )
        },
    }
    with pytest.raises(TypeError, match="gives other numbers each time"):
        simulate(system(lambda _t, u, p: (-p[0] * u[0],), **random[part]), 2)


def of_time(t: Any, make: Any) -> Any:
    """A number that depends on a time."""
    return jax.random.normal(jax.random.fold_in(make(0), jnp.int32(1000 * t)))


@pytest.mark.parametrize("make", [jax.random.key, jax.random.PRNGKey])
def test_no_part_draws_with_a_key_that_all_samples_share(make):
    """It repeats itself, being a function of the key: all samples would go the same way."""
    key = make(0)
    seen = {"transform": lambda u: u + jax.random.normal(key, u.shape), "interval": 0.5}
    for changes in (
        {"vector_field": lambda t, u, p: (-p[0] * u[0] + p[1] * of_time(t, make),)},
        {"initial_state": lambda p: (p[0] + jax.random.uniform(key),)},
        {"observation": Observation.regular(length=4, **seen)},
    ):
        given = {"vector_field": lambda _t, u, p: (-p[0] * u[0],), **changes}
        with pytest.raises(TypeError, match=r"draws with jax.random .*same numbers.*black_box"):
            simulate(system(given.pop("vector_field"), **given), 2)
    drawn = jax.random.normal(key)  # a constant that was drawn before, and a telling name
    random_rate = jax.jit(lambda u, p: -p[0] * u[0] + drawn)
    assert simulate(system(lambda _t, u, p: (random_rate(u, p),)), 2).valid.all()


@pytest.mark.parametrize("noise", [LogNormal, Gaussian])
def test_a_noise_that_is_meant_as_a_prior_says_so(noise):
    with pytest.raises(TypeError, match=f"noise sciml.ode.{noise.__name__}; a prior is one of"):
        noise(-1.5, 0.3)
    with pytest.raises(ValueError, match="must be a numpyro distribution"):
        system(lambda _t, u, p: (-p[0] * u[0],), prior={"k": noise(0.3)})


def test_a_prior_in_place_of_a_noise_is_refused():
    with pytest.raises(TypeError, match="it must be a noise or None"):
        Missing(Poisson(3.0), 0.1)


SCALED = TransformedDistribution(Poisson(3.0), AffineTransform(0.0, 0.5))


@pytest.mark.parametrize("prior", [DiscreteUniform(1, 4), Bernoulli(0.5), Poisson(3.0), SCALED])
def test_priors_of_whole_numbers_are_refused(prior):
    with pytest.raises(ValueError, match=r"gives whole numbers.*take a continuous prior"):
        system(lambda _t, u, p: (-p[0] * u[0],), prior={"n": prior})


@pytest.mark.slow
def test_arrays_of_numpy_in_a_solution_serve_samplers_or_say_what_to_write():
    """JAX keeps them in the precision of their first use; samplers take double."""
    times = np.linspace(0.0, 1.0, 3)
    prior = {"k": Uniform(0.1, 1.0)}
    few = Population(particles=50)

    def task(solution: Any) -> Static:
        return Static("mine", prior, 3, Gaussian(0.1), solution=solution)

    bare = task(lambda p: p[0] * times)
    seen = simulate(bare, 2, noise=bare.noise)
    assert smc(bare, seen.isel(sample=0), settings=few).posterior.shape == (50, 1)
    held = jax.make_jaxpr(lambda p: p * times)(1.0)  # as programs that live on
    with pytest.raises(TypeError, match=r"write jnp.asarray\(array\) inside the function"):
        smc(bare, seen.observation[0], settings=few)
    mended = task(lambda p: p[0] * jnp.asarray(times))
    assert smc(mended, seen.observation[0], settings=few).posterior.shape == (50, 1)
    np.testing.assert_array_equal(held.consts[0], times.astype(np.float32))


@pytest.mark.parametrize(
    "changes",
    [
        {"initial_state": lambda p: (p[0] * 1j,)},
        {"initial_state": (1j,)},
        {"vector_field": lambda _t, u, p: (-1j * p[0] * u[0],)},
        {
            "observation": Observation((0,), (1.0, 2.0), transform=lambda u: u * 1j),
        },
    ],
)
def test_complex_numbers_are_refused_and_not_cut(changes):
    """Their imaginary part was dropped, or came out of `simulate` beside real parameters."""
    with pytest.raises((TypeError, ValueError), match=r"complex.*must be real"):
        simulate(system(lambda _t, u, p: (-p[0] * u[0],), **changes), 4)
    task = Static(
        "t", {"k": Uniform(0.1, 1.0)}, 2, None, solution=lambda p: jnp.ones(2) * 1j * p[0]
    )
    with pytest.raises(TypeError, match=r"the solution of 't' gives complex.*return \.real"):
        simulate(task, 4)


@pytest.mark.parametrize("kind", [int, bool, jnp.float16])
def test_whole_numbers_and_short_ones_are_observed_as_float32(kind):
    """A whole number ended in 'cannot convert float NaN to integer'."""
    solution = lambda p: (jnp.arange(3) * (p[0] > 0)).astype(kind)  # noqa: E731
    data = simulate(Static("t", {"k": Uniform(0.1, 1.0)}, 3, None, solution=solution), 4)
    assert data.observation.dtype == np.float32
    np.testing.assert_array_equal(data.observation[0], np.arange(3).astype(kind))
    seen = Observation((0,), (1.0, 2.0), transform=lambda u: (u > 0).astype(kind))
    data = simulate(system(lambda _t, u, p: (-p[0] * u[0],), observation=seen), 4)
    assert data.observation.dtype == np.float32
    assert (data.observation == 1).all()
