"""The first mistakes in a vector field: each gets one line that says what to write instead."""

import math
from typing import Any

import numpy as np
import pytest
from numpyro.distributions import Bernoulli, DiscreteUniform, Poisson, Uniform

from sciml.ode import Diffrax, Observation, System, simulate

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


MISTAKES = {
    "a branch": (lambda t, u, p: (-u[0] if t > 1 else u[0],), "decides by a value.*jnp.where"),
    "a maximum": (lambda _t, u, p: (max(u[0], p[0]),), "decides by a value.*jnp.where"),
    "a Python number": (lambda _t, u, p: (float(p[0]) * u[0],), "makes a Python number"),
    "a function of math": (lambda _t, u, p: (math.exp(p[0]) * u[0],), "makes a Python number"),
    "a function of NumPy": (lambda _t, u, p: (np.exp(p[0]) * u[0],), "calls NumPy.*jax.numpy"),
    "a name": (lambda _t, u, p: (p["k"] * u[0],), "read by number from 0: p.0. is k, p.1. is s"),
    "a delay": (lambda _t, u, p, hist: (hist(1.0) * p[0],), "equations with delays or noise"),
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


@pytest.mark.parametrize("prior", [DiscreteUniform(1, 4), Bernoulli(0.5), Poisson(3.0)])
def test_priors_of_whole_numbers_are_refused(prior):
    with pytest.raises(ValueError, match=r"gives whole numbers.*take a continuous prior"):
        system(lambda _t, u, p: (-p[0] * u[0],), prior={"n": prior})
