"""Each noise against its closed form; levels, fixed, drawn and refused; nothing depends on luck."""

import json
from decimal import Decimal
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from numpyro.distributions import Beta, Normal, TruncatedNormal, Uniform
from scipy import stats

from sciml.ode import (
    AR1,
    Binomial,
    Gaussian,
    LogNormal,
    Missing,
    Noise,
    draw_levels,
    measure,
)

pytestmark = pytest.mark.usefixtures("quick_compilation")
KEY = jax.random.key(0)
KINDS = {
    "Gaussian": Gaussian(sd=0.3),
    "AR1": AR1(sd=Uniform(0.1, 0.5), correlation=Uniform(0.2, 0.9), estimate=True),
    "LogNormal": LogNormal(sd=Uniform(0.1, 0.2)),
    "Binomial": Binomial(trials=50, population=2.0),
    "Missing": Missing(AR1(sd=0.3), Uniform(0.2, 0.4)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_keeps_the_protocol(kind):
    noise, clean = KINDS[kind], jnp.ones((6, 5, 2))
    assert isinstance(noise, Noise)
    compiled = jax.jit(lambda key: measure(noise, key, clean))
    seen, levels = compiled(KEY)
    assert seen.shape == clean.shape
    assert seen.dtype == clean.dtype
    np.testing.assert_array_equal(seen, compiled(KEY)[0])
    assert not np.array_equal(seen, compiled(jax.random.key(1))[0])
    assert set(levels) == set(noise.prior)  # a compiled function sorts them
    assert all(level.shape == (6,) for level in levels.values())
    assert json.loads(json.dumps(noise.describe()))["kind"] == kind


@pytest.mark.parametrize("correlation", [0.8, -0.5])
def test_marginal_deviation_and_correlation(correlation):
    noise = AR1(sd=0.28, correlation=correlation)
    x = np.asarray(noise.sample(jax.random.key(0), (4000, 50)))
    assert x.std(axis=0) == pytest.approx(np.full(50, 0.28), rel=0.05)  # stationary from the start
    for lag in (1, 2, 5):
        lagged = (x[:, lag:] * x[:, :-lag]).mean() / 0.28**2
        assert lagged == pytest.approx(correlation**lag, abs=0.01)


@settings(max_examples=10, deadline=None)
@given(time=st.sampled_from([1, 33]), correlation=st.floats(-0.99, 0.99))
def test_doubling_equals_the_recursion(time, correlation):
    noise = AR1(sd=1.0, correlation=correlation)
    key = jax.random.key(1)
    drawn = np.asarray(jax.random.normal(key, (3, time)), np.float64)
    expected = np.empty_like(drawn)
    expected[:, 0] = drawn[:, 0]
    for t in range(1, time):
        expected[:, t] = (
            correlation * expected[:, t - 1] + np.sqrt(1 - correlation**2) * drawn[:, t]
        )
    np.testing.assert_allclose(noise.sample(key, (3, time)), expected, atol=2e-5)


def test_sample_gives_the_numbers_that_results_depend_on():
    drawn = np.asarray(AR1(sd=0.28).sample(jax.random.key(7), (2, 3)))
    clean = jnp.zeros((2, 3))
    np.testing.assert_array_equal(AR1(sd=0.28).apply(jax.random.key(7), clean, {}), drawn)
    expected = [[0.12634584, 0.42925647, 0.25667694], [-0.03946328, 0.07183283, 0.11363144]]
    np.testing.assert_allclose(drawn, expected, rtol=1e-6)


def test_channels_have_independent_noise_along_time():
    x = np.asarray(AR1(sd=1.0, correlation=0.9).apply(KEY, jnp.zeros((3000, 20, 2)), {}))
    assert (x[:, 1:] * x[:, :-1]).mean() == pytest.approx(0.9, abs=0.02)
    assert (x[..., 0] * x[..., 1]).mean() == pytest.approx(0.0, abs=0.03)
    assert x.std(axis=(0, 1)) == pytest.approx([1.0, 1.0], rel=0.05)


@settings(max_examples=10, deadline=None)
@given(sd=st.floats(0.0, 10.0), mean=st.floats(-5.0, 5.0))
def test_gaussian_is_normal(sd, mean):
    x = np.asarray(Gaussian(sd=sd).apply(KEY, jnp.full((200, 100), mean), {}), np.float64)
    assert x.mean() == pytest.approx(mean, abs=0.04 * sd + 1e-5)
    assert x.std() == pytest.approx(sd, rel=0.03, abs=1e-6)
    if sd > 1e-3:
        assert stats.kstest(((x - mean) / sd).ravel()[:2000], "norm").pvalue > 1e-3


@settings(max_examples=10, deadline=None)
@given(sd=st.floats(0.0, 0.8), level=st.floats(0.1, 100.0))
def test_log_normal_has_its_median_and_mean(sd, level):
    x = np.asarray(LogNormal(sd=sd).apply(KEY, jnp.full((200, 100), level), {}), np.float64)
    assert np.log(x).std() == pytest.approx(sd, rel=0.03, abs=1e-6)
    assert np.median(x) == pytest.approx(level, rel=0.03)
    assert x.mean() == pytest.approx(level * np.exp(sd**2 / 2), rel=0.05)
    np.testing.assert_array_equal(LogNormal(sd=sd).apply(KEY, jnp.zeros((2, 2)), {}), 0)


@pytest.mark.parametrize(("trials", "share"), [(7, 0.9), (1000, 0.0007), (1000, 0.32)])
def test_binomial_has_its_distribution(trials, share):
    noise = Binomial(trials=trials, population=1e6)
    x = np.asarray(noise.apply(KEY, jnp.full((200, 100), share * 1e6), {}))
    exact = stats.binom(trials, share)
    assert x.mean() == pytest.approx(exact.mean(), rel=0.05)
    assert x.var() == pytest.approx(exact.var(), rel=0.05)
    assert (x == np.round(x)).all()
    values, counts = np.unique(x, return_counts=True)
    expected = exact.pmf(values) * x.size
    often = expected > 20
    chi2 = ((counts - expected)[often] ** 2 / expected[often]).sum()
    assert stats.chi2(often.sum()).sf(chi2) > 1e-3


def test_binomial_at_and_beyond_the_ends():
    ends = [-1e-3, 0.0, 1.0, 1.1, jnp.nan, jnp.inf]
    clean = jnp.zeros((200, 100)).at[0, :6].set(jnp.asarray(ends))
    counts = np.asarray(Binomial(trials=1000, population=1.0).apply(KEY, clean, {}))
    np.testing.assert_array_equal(counts[0, :6], [0, 0, 1000, 1000, np.nan, np.nan])


@pytest.mark.parametrize("fraction", [0.0, 0.3])
def test_missing_share_is_the_fraction(fraction):
    noise = Missing(Gaussian(sd=0.1), fraction)
    seen = np.asarray(noise.apply(KEY, jnp.ones((200, 100)), {}))
    missing = np.isnan(seen)
    assert missing.mean() == pytest.approx(fraction, abs=0.01)
    spread = np.sqrt(fraction * (1 - fraction) / 100)  # of the share of one series
    assert missing.mean(axis=1).std() == pytest.approx(spread, rel=0.15, abs=1e-9)
    assert np.nanstd(seen) == pytest.approx(0.1, rel=0.05)  # the noise beneath is still there


def test_fractions_are_drawn_from_their_distribution():
    share = Beta(2.0, 5.0)
    seen = Missing(None, share).apply(KEY, jnp.ones((1000, 400)), {})
    found = np.isnan(np.asarray(seen)).mean(axis=1)
    assert stats.kstest(found, stats.beta(2, 5).cdf).pvalue > 1e-3


@settings(max_examples=10, deadline=None)
@given(fraction=st.floats(0.0, 1.0), length=st.sampled_from([1, 3]), seed=st.integers(0, 1000))
def test_no_series_is_empty(fraction, length, seed):
    seen = Missing(None, fraction).apply(jax.random.key(seed), jnp.ones((50, length)), {})
    assert (~np.isnan(np.asarray(seen))).any(axis=1).all()


def test_levels_are_drawn_from_their_priors_and_used():
    noise = AR1(sd=Uniform(0.5, 1.5), correlation=TruncatedNormal(0.8, 0.1, low=0.0, high=0.99))
    levels = draw_levels(noise, KEY, 2000)
    assert stats.kstest(np.asarray(levels["sd"]), stats.uniform(0.5, 1.0).cdf).pvalue > 1e-3
    assert abs(np.corrcoef(levels["sd"], levels["correlation"])[0, 1]) < 0.05
    x = np.asarray(noise.apply(jax.random.key(1), jnp.zeros((2000, 200)), levels))
    assert np.corrcoef(x.std(axis=1), levels["sd"])[0, 1] > 0.7
    lagged = (x[:, 1:] * x[:, :-1]).mean(axis=1) / np.asarray(levels["sd"]) ** 2
    assert lagged.mean() == pytest.approx(float(levels["correlation"].mean()), abs=0.02)


def test_fixed_levels_are_no_levels():
    assert draw_levels(None, KEY, 3) == {}
    assert draw_levels(AR1(sd=0.1), KEY, 3) == {}
    assert AR1(sd=0.1).describe() == {"kind": "AR1", "sd": 0.1, "correlation": 0.8}
    assert Missing(None, 0.1).prior == {}
    assert Missing(Gaussian(sd=Uniform(0.1, 0.2), estimate=True), 0.1).estimate
    assert not Missing(None, 0.1).estimate


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: AR1(sd=-0.1), "AR1.sd is -0.1; it must"),
        (lambda: AR1(sd=float("nan")), "must"),
        (lambda: AR1(sd=0.1, correlation=1.0), "must"),
        (lambda: Gaussian(sd=Normal(0.0, 1.0)), r"\[-inf, inf\]; it must .*cut"),
        (lambda: Gaussian(sd=Uniform(np.zeros(2), np.ones(2))), "must be scalar"),
        (lambda: AR1(sd=0.1, correlation=Uniform(0.0, 1.5)), r"must lie in \(-1.0, 1.0\)"),
        (lambda: LogNormal(sd=0.1, estimate=True), "must be drawn"),
        (lambda: AR1(sd=Uniform(0.0, 1.0)).sample(KEY, (2, 2)), "use apply"),
        (lambda: Binomial(trials=0, population=1.0), "at least 1"),
        (lambda: Binomial(trials=10, population=0.0), "must be positive"),
        (lambda: Missing(None, 1.5), "must"),
        (lambda: Missing(None, Uniform(-0.1, 0.5)), "must"),
    ],
)
def test_impossible_levels_are_refused(make, error):
    with pytest.raises(ValueError, match=error):
        make()


def test_what_is_no_distribution_is_refused(untyped):
    with pytest.raises(ValueError, match="must be a numpyro distribution"):
        Gaussian(sd="0.1")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="must be a whole number"):
        Binomial(trials=1000.5, population=1.0)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("samples", [3, 5])
def test_a_noise_of_its_own_measures_each_sample_by_its_own_level(samples):
    """As many samples as times would pass by the rules of shapes, with levels along time."""

    class Own(Gaussian):
        def apply(self, key, clean, levels):
            return clean + levels["sd"]

    class Right(Gaussian):
        def apply(self, key, clean, levels):
            return clean + levels["sd"][:, None]

    class Mean(Gaussian):
        def apply(self, key, clean, levels):
            return clean.mean(axis=0)

    clean, sd = jnp.zeros((samples, 5)), Uniform(0.1, 0.3)
    with pytest.raises(ValueError, match=r"Own.apply gives .* write levels\['sd'\]\[:, None\]"):
        measure(Own(sd, estimate=True), jax.random.key(0), clean)
    with pytest.raises(ValueError, match=r"Mean.apply gives \(5,\) of observations \(6, 5\)"):
        measure(Mean(0.1), jax.random.key(0), clean)
    seen, levels = measure(Right(sd), jax.random.key(0), clean)
    np.testing.assert_allclose(seen, np.repeat(levels["sd"][:, None], 5, axis=1))


def test_a_noise_may_hold_the_error_of_each_sample_and_give_as_many_features_as_it_likes():
    class Known(Gaussian):
        def apply(self, key, clean, levels):
            return clean + jnp.arange(7.0)[:, None]

    class Features(Gaussian):
        def apply(self, key, clean, levels):
            return jnp.repeat(clean[:, :1], 6, axis=1)  # as many as samples are asked about

    seen, _ = measure(Known(0.1), jax.random.key(0), jnp.zeros((7, 5)))
    np.testing.assert_allclose(seen[:, 0], np.arange(7))
    seen, _ = measure(Features(0.1), jax.random.key(0), jnp.ones((2, 5)))
    assert seen.shape == (2, 6)


DRAWN = {
    "for one sample": (lambda key, x: jax.random.normal(key, x.shape[1:]), "all have one error"),
    "by a key of its own": (lambda _key, x: jax.random.normal(KEY, x.shape), "without the key"),
    "by NumPy": (lambda _key, x: np.random.default_rng().normal(size=x.shape), "without the key"),
}


@pytest.mark.parametrize("mistake", DRAWN)
def test_a_noise_of_its_own_draws_for_each_sample_by_the_key(mistake):
    """What it drew otherwise would be one for all samples, or for all batches of a training."""
    draw, message = DRAWN[mistake]

    class Own(Gaussian):
        def apply(self, key, clean, levels):
            return clean + draw(key, clean)

    with pytest.raises(ValueError, match=rf"Own.apply draws .*{message}"):
        measure(Own(0.1), KEY, jnp.zeros((3, 5)))


def test_a_noise_of_its_own_may_split_its_key_as_it_likes():
    errors = jax.random.normal(KEY, (5,))

    class Own(Gaussian):
        def apply(self, key, clean, levels):
            keys = jax.random.split(key, len(clean))
            return clean + jax.vmap(lambda one: jax.random.gamma(one, 2.0, (5,)))(keys) * errors

    seen, _ = measure(Own(0.1), KEY, jnp.zeros((3, 5)))
    assert len(np.unique(seen)) == 15


AS_ONE_NUMBER = (np.float32, np.float64, np.array, jnp.array, xr.DataArray, Fraction, Decimal)


@pytest.mark.parametrize("kind", AS_ONE_NUMBER)
@pytest.mark.parametrize("value", [0.125, 0.875])
def test_a_level_may_be_any_librarys_number(kind, value, untyped):
    for own, plain in [
        (Gaussian(sd=kind(value)), Gaussian(sd=value)),
        (AR1(sd=0.1, correlation=kind(value)), AR1(sd=0.1, correlation=value)),
        (Missing(None, kind(value)), Missing(None, value)),
        (Binomial(10, kind(value)), Binomial(10, value)),
    ]:
        assert own == plain
        assert hash(own) == hash(plain)
        assert json.dumps(own.describe()) == json.dumps(plain.describe())


@pytest.mark.parametrize("level", [True, "0.1", None, [0.1], np.array([0.1, 0.2]), 1j, np.True_])
def test_a_level_that_is_no_number_is_told_what_it_must_be(level, untyped):
    for noise in (lambda: Gaussian(sd=level), lambda: Binomial(10, level)):
        with pytest.raises(
            ValueError, match=r"must be a numpyro distribution.* or a number as 0\.1"
        ):
            noise()


@pytest.mark.parametrize("level", [np.inf, np.nan, np.float32("inf"), np.float32(-1.0)])
def test_a_level_is_finite_and_not_negative(level, untyped):
    with pytest.raises(ValueError, match=r"must lie in \[0.0, inf\], and be finite"):
        Gaussian(sd=level)
