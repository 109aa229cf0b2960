"""The oscillator of Goodwin: a gene that its own product shuts off."""

from math import log

from numpyro.distributions import LogNormal

from sciml.ode.methods.runge_kutta import RungeKutta4
from sciml.ode.observe.noise import Gaussian
from sciml.ode.observe.observation import Observation
from sciml.ode.system import System

HILL = 10  # sourced: Calderhead, Girolami 2009; PINTS
TRUTH = (2.0, 4.0, 0.12, 0.08, 0.1)  # sourced: PINTS, GoodwinOscillatorModel


def vector_field(_time, state, parameters):
    """Return d(x, y, z)/dt; `goodwin` has the equation."""
    x, y, z = state
    k2, k3, m1, m2, m3 = parameters
    return 1 / (1 + z**HILL) - m1 * x, k2 * x - m2 * y, k3 * y - m3 * z


def goodwin() -> System:
    """Return the three-state Goodwin oscillator.

    dx/dt = 1 / (1 + z¹⁰) − m₁ x      messenger RNA
    dy/dt = k₂ x − m₂ y               protein
    dz/dt = k₃ y − m₃ z               inhibitor

    (x, y, z)(0) = (0.0054, 0.053, 1.93); time in minutes by convention. All states are seen at
    t = 0, 0.5, …, 99.5. True values of the toy model: (2, 4, 0.12, 0.08, 0.1).

    Assumed: the noise, independent and normal with sd 0.05, and the prior, log-normal around the
    true values with sd 0.5 of the logarithm. No state becomes negative: at zero no term drains it.

    Source: B. Goodwin, Adv. Enzyme Regul. 3:425-438, 1965; Calderhead, Girolami, Comput. Stat.
    Data Anal. 53:4028-4045, 2009; values of PINTS.

    >>> goodwin().parameter_names
    ('k2', 'k3', 'm1', 'm2', 'm3')
    """
    names = ("k2", "k3", "m1", "m2", "m3")
    return System(
        name="goodwin",
        vector_field=vector_field,
        initial_state=(0.0054, 0.053, 1.93),  # sourced: PINTS
        prior={n: LogNormal(log(v), 0.5) for n, v in zip(names, TRUTH, strict=True)},
        observation=Observation.regular(states=(0, 1, 2), interval=0.5, length=200),
        noise=Gaussian(sd=0.05),  # assumed
        time_unit="min",
        observed=("messenger RNA", "protein", "inhibitor"),
        method=RungeKutta4(longest_step=0.125),
        reference="Calderhead, Girolami, Comput. Stat. Data Anal. 53:4028, 2009",
    )
