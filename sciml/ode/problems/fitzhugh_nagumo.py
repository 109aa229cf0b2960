"""The FitzHugh-Nagumo neuron, as in the published inverse problem."""

from numpyro.distributions import TruncatedNormal

from sciml.ode.observe.observation import Observation
from sciml.ode.system import System

GAMMA = 3.0  # sourced: Rudi, Bessac, Lenzi 2022; confirmed by the spikes of the published pairs
ZETA = -0.4  # sourced: as GAMMA; a membrane current
TRUTH = (0.7478, 0.6010)  # derived: a published pair, with 18 spikes


def vector_field(_time, state, parameters):
    """Return du/dt of one neuron; `fitzhugh_nagumo` has the equation."""
    u, w = state
    theta0, theta1 = parameters
    voltage = GAMMA * (u - u**3 / 3 + w + ZETA)
    recovery = -(u - theta0 + theta1 * w) / GAMMA
    return voltage, recovery


def fitzhugh_nagumo() -> System:
    """Return the FitzHugh-Nagumo system with its published prior, grid and observation.

    du₀/dt =  γ (u₀ − u₀³/3 + u₁ + ζ)
    du₁/dt = −(u₀ − θ₀ + θ₁ u₁) / γ

    γ = 3, ζ = −0.4, u(0) = (0, 0); time in ms. The membrane potential u₀ is observed at
    t = 0, 0.2, …, 199.8. Independent priors, each cut at two standard deviations:
    θ₀ ~ N(0.4, 0.3²) on [−0.2, 1], θ₁ ~ N(0.4, 0.4²) on [−0.4, 1.2].

    About 93 % of the prior spikes (13 to 23 times as a rule), the rest stays at rest, below
    threshold or depolarised. Phase errors add up over the spikes: step at most 0.05 ms with
    fourth order.

    Source: Rudi, Bessac, Lenzi, "Parameter Estimation with Dense and Convolutional Neural
    Networks Applied to the FitzHugh-Nagumo ODE", arXiv 2012.06691, PMLR 145:781-808.

    >>> fitzhugh_nagumo().parameter_names
    ('theta0', 'theta1')
    """
    return System(
        name="fitzhugh_nagumo",
        vector_field=vector_field,
        initial_state=(0.0, 0.0),
        prior={
            "theta0": TruncatedNormal(0.4, 0.3, low=-0.2, high=1.0),
            "theta1": TruncatedNormal(0.4, 0.4, low=-0.4, high=1.2),
        },
        observation=Observation.regular(interval=0.2, length=1000),
        time_unit="ms",
        observed="membrane potential",
        reference="Rudi, Bessac, Lenzi, arXiv 2012.06691",
    )
