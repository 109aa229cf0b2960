"""The FitzHugh-Nagumo equations in the form of Ramsay, both states seen."""

from numpyro.distributions import Uniform

from sciml.ode.methods.runge_kutta import RungeKutta4
from sciml.ode.observe.noise import Gaussian
from sciml.ode.observe.observation import Observation
from sciml.ode.system import System

TRUTH = (0.2, 0.2, 3.0)  # sourced: Ramsay et al. 2007; the R package magi


def vector_field(_time, state, parameters):
    """Return d(V, R)/dt; `fitzhugh_nagumo_ramsay` has the equation."""
    v, r = state
    a, b, c = parameters
    return c * (v - v**3 / 3 + r), -(v - a + b * r) / c


def fitzhugh_nagumo_ramsay() -> System:
    """Return the benchmark of methods that fit differential equations to noisy states.

    dV/dt =  c (V − V³/3 + R)
    dR/dt = −(V − a + b R) / c

    V(0) = −1, R(0) = 1; no units. Voltage V and recovery R are seen at t = 0, 0.5, …, 20 with
    independent normal noise of sd 0.2. True values of the benchmark: (0.2, 0.2, 3).

    The benchmark has no prior. Assumed here: a, b ~ U(0, 1), c ~ U(1, 5); most of it oscillates
    two to three times.

    Source: Ramsay, Hooker, Campbell, Cao, "Parameter estimation for differential equations",
    J. R. Stat. Soc. B 69:741-796, 2007; noise and true values as in the R package magi, whose
    data have 28 times, and the 41 x 2 values of the R package CollocInfer.

    >>> fitzhugh_nagumo_ramsay().parameter_names
    ('a', 'b', 'c')
    """
    return System(
        name="fitzhugh_nagumo_ramsay",
        vector_field=vector_field,
        initial_state=(-1.0, 1.0),
        prior={"a": Uniform(0.0, 1.0), "b": Uniform(0.0, 1.0), "c": Uniform(1.0, 5.0)},
        observation=Observation.regular(states=(0, 1), interval=0.5, length=41),
        noise=Gaussian(sd=0.2),  # sourced: magi, data set FNdat
        time_unit="1",
        observed=("voltage", "recovery"),
        method=RungeKutta4(longest_step=0.025),
        reference="Ramsay, Hooker, Campbell, Cao, J. R. Stat. Soc. B 69:741, 2007",
    )
