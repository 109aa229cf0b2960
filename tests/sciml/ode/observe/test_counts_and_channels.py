"""Noises of counts, of relative and additive error, and of every channel by itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpyro.distributions import Uniform
from scipy import stats

import sciml
from sciml.baselines.residual import residual
from sciml.ode import (
    AR1,
    Binomial,
    Combined,
    Gaussian,
    LogNormal,
    Missing,
    NegativeBinomial,
    Observation,
    PerChannel,
    Poisson,
    System,
    accumulate,
    simulate,
)
from sciml.ode.observe.counts import warn_of_cut
from sciml.reference import log_likelihood, nuts
from sciml.train.recipe import Recipe

pytestmark = pytest.mark.usefixtures("quick_compilation")
KEY = jax.random.key(0)
MEAN = 7.3
LAWS = {
    "Poisson": (Poisson(exposure=0.5), stats.poisson(MEAN)),
    "NegativeBinomial": (
        NegativeBinomial(concentration=2.5, exposure=0.5),
        stats.nbinom(2.5, 2.5 / (2.5 + MEAN)),
    ),
    "Combined": (Combined(sd=0.4, share=0.1), stats.norm(2 * MEAN, np.hypot(0.4, 0.2 * MEAN))),
}


@pytest.mark.parametrize("kind", LAWS)
def test_draws_and_densities_are_those_of_scipy(kind):
    noise, law = LAWS[kind]
    drawn = np.asarray(noise.apply(KEY, jnp.full((200, 100), 2 * MEAN), {}), np.float64)
    assert drawn.mean() == pytest.approx(law.mean(), rel=0.02)
    assert drawn.var() == pytest.approx(law.var(), rel=0.05)
    with jax.enable_x64(True):
        few = jnp.asarray(drawn.ravel()[:50])
        found = float(log_likelihood(noise, few, jnp.full(50, 2 * MEAN), {}))
    expected = law.logpdf if kind == "Combined" else law.logpmf
    assert found == pytest.approx(expected(drawn.ravel()[:50]).sum(), rel=1e-9)
    errors = residual(noise, jnp.asarray(drawn[0]), jnp.full(100, 2 * MEAN))
    assert float(errors.std()) == pytest.approx(1.0, abs=0.35)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Poisson", "NegativeBinomial"])
def test_counts_that_cannot_be(kind):
    noise = LAWS[kind][0]
    clean = jnp.asarray([[-1e-3, 0.0, jnp.nan, jnp.inf, 4.0]])
    counts = np.asarray(noise.apply(KEY, clean, {}))[0]
    np.testing.assert_array_equal(counts[:4], [0, 0, np.nan, np.nan])
    assert counts[4] == round(float(counts[4]))
    for impossible in (-1.0, 2.5):
        assert log_likelihood(noise, jnp.asarray([impossible]), jnp.ones(1), {}) == -jnp.inf
    assert np.isfinite(log_likelihood(noise, jnp.asarray([jnp.nan, 3.0]), jnp.ones(2), {}))


@settings(max_examples=20, deadline=None)
@given(exposure=st.floats(1e-3, 1e3), factor=st.sampled_from([1e-6, 1.0, 1e6]))
def test_units_of_counts_do_not_matter(exposure, factor):
    """Exposure per unit of x: the same counts, whatever the unit."""
    clean = jnp.asarray([[3.0, 5.0]]) / exposure
    one = Poisson(exposure=exposure).apply(KEY, clean, {})
    other = Poisson(exposure=exposure / factor).apply(KEY, clean * factor, {})
    np.testing.assert_allclose(one, other, atol=1.0)


CHANNELS = PerChannel(
    {
        "prey": AR1(sd=Uniform(0.1, 0.2), correlation=0.5, estimate=True),
        "predator": LogNormal(sd=Uniform(0.1, 0.3), estimate=True),
        "births": Poisson(exposure=2.0),
    }
)


def test_every_channel_has_its_own_noise():
    clean = jnp.stack([jnp.zeros((50, 200)), jnp.full((50, 200), 5.0), jnp.full((50, 200), 4.0)], 2)
    assert list(CHANNELS.prior) == ["prey_sd", "predator_sd"]
    levels = {"prey_sd": jnp.full(50, 0.15), "predator_sd": jnp.full(50, 0.25)}
    seen = np.asarray(jax.jit(CHANNELS.apply)(KEY, clean, levels))
    clean = np.asarray(clean)
    assert seen[..., 0].std() == pytest.approx(0.15, rel=0.05)
    assert (seen[:, 1:, 0] * seen[:, :-1, 0]).mean() / 0.15**2 == pytest.approx(0.5, abs=0.05)
    assert np.log(seen[..., 1]).std() == pytest.approx(0.25, rel=0.05)
    assert seen[..., 2].mean() == pytest.approx(8.0, rel=0.02)
    one = {name: float(value[0]) for name, value in levels.items()}
    laws = [AR1(sd=0.15, correlation=0.5), LogNormal(sd=0.25), Poisson(exposure=2.0)]

    @jax.jit
    def both(seen, clean):
        alone = [log_likelihood(law, seen[:, i], clean[:, i], {}) for i, law in enumerate(laws)]
        return log_likelihood(CHANNELS, seen, clean, one), sum(alone)

    found, alone = both(seen[0], clean[0])
    assert float(found) == pytest.approx(float(alone), rel=1e-5)
    fixed = PerChannel({"a": Gaussian(sd=0.5), "b": Binomial(10, 2.0)})
    two = (jnp.ones((4, 2)), jnp.ones((4, 2)))
    assert residual(fixed, *two).shape == (4, 2)
    assert fixed.describe()["channels"]["a"] == {"kind": "Gaussian", "sd": 0.5}


def growth(**settings) -> System:
    """Two channels that grow: u' = r u, v' = r v."""
    return System(
        name="growth",
        vector_field=lambda t, u, p: (p[0] * u[0], p[0] * u[1]),
        initial_state=(1.0, 2.0),
        prior={"r": Uniform(0.0, 1.0)},
        observation=Observation.regular(interval=0.25, length=5, states=(0, 1)),
        observed=("small", "large"),
        **settings,
    )


def test_other_channels_or_another_order_are_refused(tmp_path):
    right = PerChannel({"small": Gaussian(sd=0.1), "large": Gaussian(sd=0.2)})
    swapped = PerChannel({"large": Gaussian(sd=0.2), "small": Gaussian(sd=0.1)})
    clean = simulate(growth(), samples=20)
    error = "the noise has the channels large, small; .* observes small, large: name these"
    for call in (
        lambda noise: simulate(growth(), samples=5, noise=noise),
        lambda noise: growth(noise=noise),
        lambda noise: accumulate(growth(), tmp_path / "a.zarr", samples=5, noise=noise),
        lambda noise: sciml.fit(sciml.models.Dense(4, 1), clean, epochs=1, noise=noise),
        lambda noise: nuts(growth(), clean.observation[0], noise=noise),
    ):
        for wrong in (swapped, Missing(swapped, 0.1)):
            with pytest.raises(ValueError, match=error):
                call(wrong)
    assert simulate(growth(noise=right), samples=5, noise=right).valid.all()
    with pytest.raises(ValueError, match=r"\(sample, time, 2\)"):
        right.apply(KEY, jnp.zeros((3, 4)), {})


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Poisson(exposure=-1.0), r"Poisson.exposure is -1.0; it must"),
        (lambda: Poisson(estimate=True), r"pass Poisson\(exposure="),
        (lambda: NegativeBinomial(concentration=0.0), r"must lie in \(0"),
        (lambda: Combined(sd=0.1, share=-0.1), "Combined.share is -0.1"),
        (lambda: PerChannel({}), "has the channels none"),
        (
            lambda: PerChannel(
                {"a": Gaussian(Uniform(0, 1)), "b": Gaussian(Uniform(0, 1), estimate=True)}
            ),
            "of which b estimate .* all drawn levels or none",
        ),
    ],
)
def test_impossible_noises_are_refused(make, error):
    with pytest.raises(ValueError, match=error):
        make()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "unit"),
    [
        (Binomial(trials=100, population=1.0), 1000.0),  # a share of thousands
        (Missing(Poisson(), 0.1), -1.0),
        (NegativeBinomial(concentration=2.0), -1.0),
    ],
)
@pytest.mark.filterwarnings("ignore:all 20 observations are the same")
def test_counts_of_what_cannot_be_counted_are_told(noise, unit, caplog):
    """They were cut off in silence: all tested were positive, or no event ever happened."""
    decay = System(
        name="decay",
        vector_field=lambda t, u, p: (-p[0] * u[0],),
        initial_state=(unit,),
        prior={"rate": Uniform(0.1, 0.5)},
        observation=Observation.regular(interval=0.5, length=8),
    )
    clean = simulate(decay, 20)
    assert not caplog.records
    simulate(decay, 20, noise=noise)
    assert "look at" in caplog.text
    caplog.clear()
    model = sciml.models.Gaussian(width=4, depth=1, embedding=None)
    if not isinstance(noise, Missing):
        sciml.fit(model, clean, epochs=1, noise=noise, recipe=Recipe(batch=10))
        assert "look at" in caplog.text
    each = PerChannel((("a", None), ("b", noise)))
    caplog.clear()
    warn_of_cut(each, np.stack([clean.observation.values] * 2, axis=-1))
    assert "look at" in caplog.text
