"""An epidemic of susceptible, infected and recovered, as in the benchmark of Lueckmann et al."""

from math import log

from numpyro.distributions import LogNormal

from sciml.ode.methods.runge_kutta import RungeKutta4
from sciml.ode.observe.counts import Binomial
from sciml.ode.observe.observation import Observation
from sciml.ode.system import System

POPULATION = 1e6  # sourced: arXiv 2101.04653
TRUTH = (0.61479264, 0.19172086)  # sourced: sbibm 1.1, observation 1


def vector_field(_time, state, parameters):
    """Return d(S, I, R)/dt; `sir` has the equation."""
    s, i, _ = state
    beta, gamma = parameters
    infections = beta * s * i / POPULATION
    return -infections, infections - gamma * i, gamma * i


def sir() -> System:
    """Return the epidemic of the benchmark of simulation-based inference.

    dS/dt = −β S I / N
    dI/dt =  β S I / N − γ I
    dR/dt =  γ I

    N = 10⁶, I(0) = 1, R(0) = 0; time in days, rates per day. At t = 0, 17, …, 153 days a
    thousand people are tested: Binomial(1000, I/N). β ~ LogNormal(ln 0.4, 0.5),
    γ ~ LogNormal(ln 0.125, 0.2). S + I + R = N at all times.

    Without noise the observation is I itself, in people; with it, the positive tests.

    Source: Lueckmann et al., "Benchmarking Simulation-Based Inference", arXiv 2101.04653,
    task T.9.

    >>> sir().parameter_names
    ('beta', 'gamma')
    """
    return System(
        name="sir",
        vector_field=vector_field,
        initial_state=(POPULATION - 1, 1.0, 0.0),
        prior={"beta": LogNormal(log(0.4), 0.5), "gamma": LogNormal(log(0.125), 0.2)},
        observation=Observation.regular(states=(1,), interval=17.0, length=10),
        noise=Binomial(trials=1000, population=POPULATION),
        time_unit="day",
        observed="infected",
        method=RungeKutta4(longest_step=0.25),
        reference="Lueckmann et al., arXiv 2101.04653",
    )
