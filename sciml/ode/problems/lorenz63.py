"""The convection of Lorenz, 1963, over a window in which it can be predicted."""

from numpyro.distributions import TruncatedNormal

from sciml.ode.methods.runge_kutta import RungeKutta4
from sciml.ode.observe.noise import Gaussian
from sciml.ode.observe.observation import Observation
from sciml.ode.system import System

TRUTH = (10.0, 28.0, 2.66)  # sourced: SciML Bayesian benchmarks


def vector_field(_time, state, parameters):
    """Return d(x, y, z)/dt; `lorenz63` has the equation."""
    x, y, z = state
    sigma, rho, beta = parameters
    return sigma * (y - x), x * (rho - z) - y, x * y - beta * z


def lorenz63() -> System:
    """Return the Lorenz system with the priors of the SciML Bayesian benchmark.

    dx/dt = σ (y − x)
    dy/dt = x (ρ − z) − y
    dz/dt = x y − β z

    (x, y, z)(0) = (1, 0, 0); no units. All states are seen at t = 0, 0.1, …, 2.9 with
    independent normal noise of sd 0.49. Priors, each normal and cut:
    σ ~ N(10, 2²) on [1, 15], ρ ~ N(30, 5²) on [1, 45], β ~ N(2.5, 0.5²) on [1, 4].

    That benchmark sees 30 values up to t = 30, where the largest Lyapunov exponent, near 0.9,
    has multiplied an error by e²⁷: no posterior of such data can be computed. Here the same 30
    values lie in the window of 3 time units of the benchmark of optimisers of the same authors.
    With ρ > 1 the fixed points are (0, 0, 0) and (±√(β(ρ − 1)), ±√(β(ρ − 1)), ρ − 1).

    Source: SciMLBenchmarks.jl, "Lorenz Bayesian Parameter Estimation"; equations: E. Lorenz,
    J. Atmos. Sci. 20:130-141, 1963.

    >>> lorenz63().parameter_names
    ('sigma', 'rho', 'beta')
    """
    return System(
        name="lorenz63",
        vector_field=vector_field,
        initial_state=(1.0, 0.0, 0.0),
        prior={
            "sigma": TruncatedNormal(10.0, 2.0, low=1.0, high=15.0),
            "rho": TruncatedNormal(30.0, 5.0, low=1.0, high=45.0),
            "beta": TruncatedNormal(2.5, 0.5, low=1.0, high=4.0),
        },
        observation=Observation.regular(states=(0, 1, 2), interval=0.1, length=30),
        noise=Gaussian(sd=0.49),  # sourced: SciML Bayesian benchmarks
        time_unit="1",
        observed=("x", "y", "z"),
        method=RungeKutta4(longest_step=0.01, tolerance=0.1),
        reference="SciMLBenchmarks.jl; Lorenz, J. Atmos. Sci. 20:130, 1963",
    )
