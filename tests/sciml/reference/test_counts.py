"""Densities and draws of counts, few and many, beside SciPy's in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sciml.ode import Binomial, NegativeBinomial, Poisson
from sciml.reference.likelihood import log_likelihood

SIZE = 8  # counts of a call: one compiled program serves all examples


def density(noise, counts, clean, levels=None):
    """The density of counts (time,), in float32 as nets and samplers ask for it."""
    observed = jnp.asarray(counts, jnp.float32)[:, None]
    ask = jax.vmap(lambda k, u: log_likelihood(noise, k[None], u[None], levels or {}))
    return np.asarray(ask(observed, jnp.full_like(observed, clean)), float)


def close(found, true):
    """Rounding of float32 alone: of the number itself, and of a share of the probability."""
    np.testing.assert_allclose(found, true, rtol=2e-5, atol=2e-3)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.floats(-3, 9), st.integers(0, 1000))
def test_poisson_of_any_size(size, seed):
    mean = float(np.float32(10**size))
    k = np.random.default_rng(seed).poisson(mean, SIZE).astype(np.float32)
    close(density(Poisson(), k, mean), stats.poisson.logpmf(k.astype(float), mean))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.floats(0, 9), st.floats(-6, -0.001), st.booleans(), st.integers(0, 1000))
def test_binomial_of_any_size(size, share, most, seed):
    n = int(10**size)
    p = np.float32(10**share)
    p = float(np.float32(1 - 1e-6) if most and p < 1e-6 else 1 - p if most else p)
    k = np.random.default_rng(seed).binomial(n, p, SIZE).astype(np.float32)
    k = np.minimum(k, np.float32(n))
    found = density(Binomial(trials=n, population=1.0), k, p)
    p = float(np.clip(np.float32(p), np.float32(1e-10), np.float32(1 - 1e-7)))
    close(found, stats.binom.logpmf(k.astype(float), float(np.float32(n)), p))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.floats(-1, 6), st.floats(-1, 7), st.integers(0, 1000))
def test_negative_binomial_of_any_size(concentration, size, seed):
    r, mean = (float(np.float32(10**x)) for x in (concentration, size))
    k = np.random.default_rng(seed).negative_binomial(r, r / (r + mean), SIZE).astype(np.float32)
    found = density(NegativeBinomial(concentration=r), k, mean)
    close(found, stats.nbinom.logpmf(k.astype(float), r, r / (r + mean)))


@pytest.mark.slow
def test_counts_that_cannot_be_have_no_density():
    assert np.isneginf(density(Binomial(trials=10, population=1.0), [11, -1, 2.5], 0.3)).all()
    assert np.isfinite(density(Binomial(trials=10, population=1.0), [0, 10, 3], 0.3)).all()
    assert np.isneginf(density(Poisson(), [-1, 2.5], 3.0)).all()


@pytest.mark.parametrize("k", [0.0, 3.0, 7.0, 7.5e6])
def test_the_slope_in_the_mean_is_k_over_m_less_one(k):
    def at(mean):
        return log_likelihood(Poisson(), jnp.array([[k]]), mean[None, None], {})

    mean = jnp.float32(7.0 if k < 100 else 7.51e6)
    assert float(jax.grad(at)(mean)) == pytest.approx(k / float(mean) - 1, rel=1e-3, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("mean", [3.0, 5e5, 2e6, 1e8, 1e10])
def test_events_scatter_as_they_should(mean):
    clean = jnp.full((100_000, 1), mean, jnp.float32)
    drawn = np.asarray(Poisson().apply(jax.random.key(1), clean, {}), float)
    true = float(np.float32(mean))
    assert (drawn.mean() - true) / np.sqrt(true / drawn.size) == pytest.approx(0, abs=4)
    assert drawn.std() / np.sqrt(true) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(("trials", "share"), [(2e6, 0.3), (1e8, 1e-6), (1e8, 0.5), (1e9, 0.75)])
def test_tests_of_many_scatter_as_they_should(trials, share):
    clean = jnp.full((100_000, 1), share, jnp.float32)
    noise = Binomial(trials=int(trials), population=1.0)
    drawn = np.asarray(noise.apply(jax.random.key(2), clean, {}), float)
    p = float(np.float32(share))
    variance = trials * p * (1 - p)
    assert (drawn.mean() - trials * p) / np.sqrt(variance / drawn.size) == pytest.approx(0, abs=4)
    assert drawn.std() / np.sqrt(variance) == pytest.approx(1, abs=0.01)
    assert 0 <= drawn.min() <= drawn.max() <= trials
