"""What tells one simulation from another: every function and number, and no rounding."""

import copy
from dataclasses import replace

import jax.numpy as jnp
import pytest
from numpyro.distributions import Uniform

from sciml.ode import CATALOG, Observation, Static, System, accumulate
from sciml.ode.data.identity import check_same, identity

SEEN = Observation.regular(states=(0, 1), interval=1.0, length=12)


def shot(late: float = 1.0, fast: float = 1.0) -> System:
    """u' = v, v' = −θ u, and −θ `late` u after t = 5; where v exceeds 1, `fast` times that."""

    def field(t, u, p):
        pull = jnp.where(t > 5.0, late, 1.0) * jnp.where(u[1] > 1.0, fast, 1.0)
        return u[1], -p[0] * pull * u[0]

    return System("shot", field, (1.0, 1.0), {"theta": Uniform(0.5, 2.0)}, SEEN)


def compared(one: System, other: System) -> None:
    check_same("here.zarr", identity(other, {}, "float32"), identity(one, {}, "float32"))


def seeing(system: System, transform) -> System:
    return replace(system, observation=replace(SEEN, transform=transform))


def test_the_same_is_the_same():
    compared(shot(), shot())
    compared(shot(), seeing(shot(), lambda u: 1.0 * u))


@pytest.mark.parametrize(
    ("one", "other", "error"),
    [
        (shot(), shot(late=-1.0), "equation: stored"),
        (shot(), shot(fast=1.001), "equation: stored"),
        (shot(), replace(shot(), initial_state=(1.0, 1.001)), "initial_state: stored"),
        (shot(), replace(shot(), initial_state=lambda p: (1.0, p[0])), "initial_state: stored"),
        (shot(), replace(shot(), observation=replace(SEEN, start=-5.0)), "start: stored 0.0, gi"),
        (shot(), replace(shot(), observation=replace(SEEN, states=(1, 0))), "states: stored"),
        (
            shot(),
            replace(shot(), observation=replace(SEEN, times=[1e-6, *SEEN.times[1:]])),
            "times: stored",
        ),
        (seeing(shot(), lambda u: u), seeing(shot(), lambda u: -u), "transform: stored"),
        (seeing(shot(), lambda u: u.mean(0)), seeing(shot(), lambda u: u.max(0)), "transform"),
        (shot(), seeing(shot(), lambda u: u[:, :1]), "transform: stored"),
    ],
)
def test_another_function_or_number_is_named(one, other, error):
    with pytest.raises(ValueError, match=error):
        compared(one, other)


@pytest.mark.parametrize("name", ["hodgkin_huxley", "lorenz96"])
def test_rounding_is_not_a_difference(name):
    """Other machines and versions round otherwise, at most as float32 differs from float64."""
    single, double = (identity(CATALOG[name](), {}, dtype) for dtype in ("float32", "float64"))
    assert single != double
    check_same("here.zarr", single, double)
    for changed in ("equation", "transform"):
        other = copy.deepcopy(double)
        other[changed][0] = [1.001 * value for value in other[changed][0]]
        with pytest.raises(ValueError, match=f"{changed}: stored"):
            check_same("here.zarr", other, double)


def test_values_that_are_not_finite_are_compared_too():
    undefined = seeing(shot(), lambda u: jnp.log(u - 2.0))
    compared(undefined, undefined)
    with pytest.raises(ValueError, match="transform: stored"):
        compared(undefined, seeing(shot(), lambda u: jnp.log(u)))


def test_a_static_task_with_another_solution_is_not_gone_on_with(tmp_path):
    def task(power):
        prior = {"a": Uniform(0.5, 2.0)}
        return Static("task", prior, 2, None, solution=lambda p: jnp.stack([p[0], p[0] ** power]))

    accumulate(task(2), tmp_path / "store", samples=10)
    accumulate(task(2), tmp_path / "store", samples=20)
    with pytest.raises(ValueError, match="solution: stored"):
        accumulate(task(3), tmp_path / "store", samples=30)
