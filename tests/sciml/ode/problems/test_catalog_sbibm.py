"""Our tasks against the data files of the benchmark that defined them."""

from importlib.util import find_spec

import jax.numpy as jnp
import numpy as np
import pytest

from sciml.ode import CATALOG, simulate
from sciml.reference import sbibm_posterior

pytestmark = pytest.mark.skipif(find_spec("sbibm") is None, reason="needs the files of sbibm")
OBSERVATIONS = range(1, 11)


def pairs(task: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the true parameters of the ten observations, and the observations."""
    data = [sbibm_posterior(task, k) for k in OBSERVATIONS]
    return (np.stack([d[name].values for d in data]) for name in ("parameters", "observation"))


def clean(task: str, theta: np.ndarray) -> np.ndarray:
    return simulate(CATALOG[task](), parameters=theta).observation.values


def is_standard_normal(z: np.ndarray) -> bool:
    """Tell whether mean and sd lie within three standard errors, and no value beyond five."""
    z, n = z.ravel(), z.size
    return bool(
        abs(z.mean()) < 3 / n**0.5 and abs(z.std() - 1) < 3 / (2 * n) ** 0.5 and abs(z).max() < 5
    )


def test_lotka_volterra_leaves_log_normal_errors():
    theta, seen = pairs("lotka_volterra")
    solved = np.maximum(clean("lotka_volterra", theta), 1e-10)
    assert is_standard_normal(np.log(seen / solved) / 0.1)


def test_sir_leaves_binomial_errors():
    theta, seen = pairs("sir")
    share = np.clip(clean("sir", theta) / 1e6, 0, 1)
    many = (1000 * share > 5) & (1000 * (1 - share) > 5)
    z = (seen - 1000 * share)[many] / np.sqrt(1000 * share * (1 - share))[many]
    assert many.sum() > 20
    assert is_standard_normal(z)
    assert (seen[1000 * share < 1e-3] == 0).all()


def test_gaussian_linear_leaves_normal_errors():
    theta, seen = pairs("gaussian_linear")
    assert is_standard_normal((seen - theta) / 0.1**0.5)


def test_two_moons_leaves_a_half_ring():
    theta, seen = pairs("two_moons")
    u, v = (seen - np.asarray(CATALOG["two_moons"]().noise.centre(jnp.asarray(theta)))).T
    assert is_standard_normal((np.hypot(u, v) - 0.1) / 0.01)
    assert (u > 0).all()


def test_slcp_leaves_normal_errors():
    theta, seen = pairs("slcp")
    first, below, last = CATALOG["slcp"]().noise.cholesky(jnp.asarray(theta))
    x, y = np.moveaxis(seen.reshape(10, 4, 2) - theta[:, None, :2], -1, 0)
    e1 = x / np.asarray(first)[:, None]
    e2 = (y - np.asarray(below)[:, None] * e1) / np.asarray(last)[:, None]
    assert is_standard_normal(np.stack([e1, e2]))


@pytest.mark.parametrize("k", [1, 7])
def test_the_posterior_of_gaussian_linear_is_the_closed_form(k: int):
    data = sbibm_posterior("gaussian_linear", k)
    z = (data.posterior.values - data.observation.values / 2) / 0.05**0.5
    assert np.abs(z.mean(axis=0)).max() < 4 / 1e4**0.5
    assert np.abs(np.cov(z.T) - np.eye(10)).max() < 6 / 1e4**0.5


@pytest.mark.parametrize("k", [1, 4])
def test_the_posterior_of_two_moons_lies_on_our_rings(k: int):
    """Given x, the radius of θ's ring through x is again N(0.1, 0.01²), but for the box."""
    data = sbibm_posterior("two_moons", k)
    centre = CATALOG["two_moons"]().noise.centre(jnp.asarray(data.posterior.values))
    u, v = (data.observation.values - np.asarray(centre)).T
    radius = np.hypot(u, v)
    assert radius.mean() == pytest.approx(0.1, abs=4e-4)
    assert radius.std() == pytest.approx(0.01, rel=0.03)
    assert (u > 0).mean() > 0.999


def test_what_is_not_there_is_refused():
    with pytest.raises(ValueError, match="numbered 1 to 10"):
        sbibm_posterior("sir", 11)
    with pytest.raises(ValueError, match="the benchmark's are"):
        sbibm_posterior("lorenz63")
