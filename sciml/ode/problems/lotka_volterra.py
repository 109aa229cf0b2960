"""Predators and prey of Lotka and Volterra, as in the benchmark of Lueckmann et al."""

from numpyro.distributions import LogNormal as Prior

from sciml.ode.methods.runge_kutta import RungeKutta4
from sciml.ode.observe.noise import LogNormal
from sciml.ode.observe.observation import Observation
from sciml.ode.system import System

TRUTH = (0.6859157, 0.10761319, 0.88789904, 0.116794825)  # sourced: sbibm 1.1, observation 1


def vector_field(_time, state, parameters):
    """Return d(x, y)/dt; `lotka_volterra` has the equation."""
    x, y = state
    alpha, beta, gamma, delta = parameters
    return alpha * x - beta * x * y, -gamma * y + delta * x * y


def lotka_volterra() -> System:
    """Return the Lotka-Volterra task of the benchmark of simulation-based inference.

    dx/dt =  α x − β x y      prey
    dy/dt = −γ y + δ x y      predators

    x(0) = 30, y(0) = 1; time in days. Both populations are seen at t = 0, 2.1, …, 18.9 (each
    21st of the values at 0, 0.1, …, 20), each value drawn log-normally around the solution with
    sd 0.1 of its logarithm. α, γ ~ LogNormal(−0.125, 0.5), β, δ ~ LogNormal(−3, 0.5).

    Source: Lueckmann, Boelts, Greenberg, Gonçalves, Macke, "Benchmarking Simulation-Based
    Inference", arXiv 2101.04653, task T.10.

    >>> lotka_volterra().parameter_names
    ('alpha', 'beta', 'gamma', 'delta')
    """
    return System(
        name="lotka_volterra",
        vector_field=vector_field,
        initial_state=(30.0, 1.0),
        prior={
            "alpha": Prior(-0.125, 0.5),
            "beta": Prior(-3.0, 0.5),
            "gamma": Prior(-0.125, 0.5),
            "delta": Prior(-3.0, 0.5),
        },
        observation=Observation.regular(states=(0, 1), interval=2.1, length=10),
        noise=LogNormal(sd=0.1),
        time_unit="day",
        observed=("prey", "predators"),
        method=RungeKutta4(longest_step=0.025),
        reference="Lueckmann et al., arXiv 2101.04653",
    )
