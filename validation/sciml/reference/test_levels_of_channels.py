"""Levels of noises per channel, from simulations through a fit to its weights."""

import pytest
from numpyro.distributions import Uniform

import sciml
from sciml.ode import Combined, NegativeBinomial, Observation, PerChannel, System, simulate
from sciml.reference import importance

pytestmark = pytest.mark.usefixtures("quick_compilation")


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


def test_estimated_levels_of_channels_go_from_the_fit_to_its_weights():
    noise = PerChannel(
        {
            "small": Combined(sd=0.02, share=Uniform(0.05, 0.2), estimate=True),
            "large": NegativeBinomial(concentration=5.0, exposure=10.0),
        }
    )
    data = simulate(growth(), samples=300, noise=noise, seed=1)
    fit = sciml.fit(sciml.models.SplineFlow(width=8, depth=1, layers=1, bins=4), data, epochs=3)
    assert fit.grid.parameters == ("r", "noise_small_share")
    draws = importance(fit, growth(), data.isel(sample=slice(0, 2)), noise=noise, draws=50)
    assert list(draws.parameter.values) == ["r", "noise_small_share"]
