"""Lorenz, 1996: a ring of sites under a seasonal forcing, seen through its variances."""

import math

import jax.numpy as jnp
from numpyro.distributions import Normal

from sciml.ode.methods.runge_kutta import RungeKutta4
from sciml.ode.observe.noise import Gaussian
from sciml.ode.observe.observation import Observation
from sciml.ode.system import System

SITES = 36  # sourced: CES example, N
PERIOD = 72.0  # sourced: CES example; a year of 360 days, 5 days to the unit of time
SEASONS = 4  # sourced: CES example; windows of 90 days
STEPS_PER_UNIT = 8  # assumed: how often the ring is looked at
TRUTH = (8.0, 2.5)  # sourced: CES example


def vector_field(time, state, parameters):
    """Return dX/dt of the ring; `lorenz96` has the equation."""
    force, amplitude = parameters
    forcing = force + amplitude * jnp.sin(2 * math.pi * time / PERIOD)
    ring = jnp.concatenate([state[-2:], state, state[:1]])
    return (ring[3:] - ring[:-3]) * ring[1:-2] - state + forcing


def seasonal_variance(states):
    """Return per season the mean of the variances of unit windows; states (time, site)."""
    year = states[-int(PERIOD) * STEPS_PER_UNIT :]  # the year before is spin-up
    windows = year.reshape(SEASONS, -1, STEPS_PER_UNIT * SITES)
    return jnp.var(windows, axis=-1).mean(axis=-1)


def lorenz96() -> System:
    """Return the seasonally forced ring of Lorenz, seen through four statistics.

    dXᵢ/dt = (Xᵢ₊₁ − Xᵢ₋₂) Xᵢ₋₁ − Xᵢ + F + A sin(2π t / 72),  i = 1, …, 36, periodic

    X(0) is a small fixed wave; no units (a unit is five days). After a year of spin-up the ring
    is followed for a year of 72 units. Seen are four numbers: for each season of 18 units the
    mean over its unit windows of the variance of X within a window, over sites and time.
    F ~ N(9, 2²), A ~ N(3, 1.25²); the true values are (8, 2.5).

    The system is chaotic: when X(0) is perturbed the four statistics of one year scatter by 0.35,
    0.33, 0.18 and 0.17, in the root mean square 0.26, and that is the noise here. The map from θ
    is rough at this scale too, and has no useful gradient.
    Advection conserves energy: Σ Xᵢ (Xᵢ₊₁ − Xᵢ₋₂) Xᵢ₋₁ = 0.

    Source: equations, priors and statistics as in the Lorenz-96 example of
    EnsembleKalmanProcesses.jl (Cleary et al., J. Comput. Phys. 424:109716, 2021), whose spin-up
    is 800 units; E. Lorenz, "Predictability: a problem partly solved", ECMWF, 1996.

    >>> lorenz96().parameter_names
    ('force', 'amplitude')
    """
    wave = tuple(0.01 * math.sin(1.0 + i * i) for i in range(SITES))  # assumed: no symmetry
    return System(
        name="lorenz96",
        vector_field=vector_field,
        initial_state=wave,
        prior={"force": Normal(9.0, 2.0), "amplitude": Normal(3.0, 1.25)},
        observation=Observation.regular(
            states=tuple(range(SITES)),
            interval=1 / STEPS_PER_UNIT,
            length=2 * int(PERIOD) * STEPS_PER_UNIT,
            transform=seasonal_variance,
        ),
        noise=Gaussian(sd=0.26),  # derived: scatter at the truth over 300 perturbed starts
        time_unit="1",
        observed="variance per season",
        # Nine steps to a gap are a loop; eight would be written out and run twenty times longer.
        # It is chaotic: solutions of different steps part, their statistics do not.
        method=RungeKutta4(longest_step=1 / 72, tolerance=math.inf),
        reference="Cleary et al., J. Comput. Phys. 424:109716, 2021; Lorenz 1996",
    )
