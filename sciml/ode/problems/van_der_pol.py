"""The oscillator of van der Pol."""

from numpyro.distributions import Uniform

from sciml.ode.observe.noise import Gaussian
from sciml.ode.observe.observation import Observation
from sciml.ode.system import System

TRUTH = (1.0,)  # assumed: the damping whose period is tabulated, 6.6633


def vector_field(_time, state, parameters):
    """Return d(x, v)/dt; `van_der_pol` has the equation."""
    x, v = state
    (mu,) = parameters
    return v, mu * (1 - x**2) * v - x


def van_der_pol() -> System:
    """Return the relaxation oscillator, x seen with noise.

    d²x/dt² = μ (1 − x²) dx/dt − x

    x(0) = 2, dx/dt(0) = 0; no units. x is seen at t = 0, 0.1, …, 29.9 with independent normal
    noise of sd 0.1. μ ~ U(0.1, 5). The period is 2π for small μ, 6.6633 at μ = 1, and near
    (3 − 2 ln 2) μ for large μ.

    No published prior was found: prior, times and noise are assumed.

    Source of the equation: B. van der Pol, Phil. Mag. 2:978-992, 1926.

    >>> van_der_pol().parameter_names
    ('mu',)
    """
    return System(
        name="van_der_pol",
        vector_field=vector_field,
        initial_state=(2.0, 0.0),
        prior={"mu": Uniform(0.1, 5.0)},
        observation=Observation.regular(states=(0,), interval=0.1, length=300),
        noise=Gaussian(sd=0.1),  # assumed
        time_unit="1",
        observed="displacement",
        reference="van der Pol, Phil. Mag. 2:978, 1926",
    )
