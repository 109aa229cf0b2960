"""The reference problems, by name, and parameters at which each is usually shown."""

from collections.abc import Callable

from sciml.ode.problems.fitzhugh_nagumo import fitzhugh_nagumo
from sciml.ode.problems.fitzhugh_nagumo_ramsay import TRUTH as RAMSAY
from sciml.ode.problems.fitzhugh_nagumo_ramsay import fitzhugh_nagumo_ramsay
from sciml.ode.problems.gaussian_linear import TRUTH as GAUSSIAN_LINEAR
from sciml.ode.problems.gaussian_linear import gaussian_linear
from sciml.ode.problems.goodwin import TRUTH as GOODWIN
from sciml.ode.problems.goodwin import goodwin
from sciml.ode.problems.hodgkin_huxley import TRUTH as HODGKIN_HUXLEY
from sciml.ode.problems.hodgkin_huxley import hodgkin_huxley
from sciml.ode.problems.hodgkin_huxley_stochastic import TRUTH as STOCHASTIC
from sciml.ode.problems.hodgkin_huxley_stochastic import hodgkin_huxley_stochastic
from sciml.ode.problems.lorenz63 import TRUTH as LORENZ63
from sciml.ode.problems.lorenz63 import lorenz63
from sciml.ode.problems.lorenz96 import TRUTH as LORENZ96
from sciml.ode.problems.lorenz96 import lorenz96
from sciml.ode.problems.lotka_volterra import TRUTH as LOTKA_VOLTERRA
from sciml.ode.problems.lotka_volterra import lotka_volterra
from sciml.ode.problems.sir import TRUTH as SIR
from sciml.ode.problems.sir import sir
from sciml.ode.problems.slcp import TRUTH as SLCP
from sciml.ode.problems.slcp import slcp
from sciml.ode.problems.two_moons import TRUTH as TWO_MOONS
from sciml.ode.problems.two_moons import two_moons
from sciml.ode.problems.van_der_pol import TRUTH as VAN_DER_POL
from sciml.ode.problems.van_der_pol import van_der_pol
from sciml.ode.static import Static
from sciml.ode.system import System

CATALOG: dict[str, Callable[[], System | Static]] = {
    "fitzhugh_nagumo": fitzhugh_nagumo,
    "fitzhugh_nagumo_ramsay": fitzhugh_nagumo_ramsay,
    "gaussian_linear": gaussian_linear,
    "goodwin": goodwin,
    "hodgkin_huxley": hodgkin_huxley,
    "hodgkin_huxley_stochastic": hodgkin_huxley_stochastic,
    "lorenz63": lorenz63,
    "lorenz96": lorenz96,
    "lotka_volterra": lotka_volterra,
    "sir": sir,
    "slcp": slcp,
    "two_moons": two_moons,
    "van_der_pol": van_der_pol,
}

TRUTHS: dict[str, tuple[float, ...]] = {
    "fitzhugh_nagumo": (0.7478, 0.6010),  # derived: a published pair, with 18 spikes
    "fitzhugh_nagumo_ramsay": RAMSAY,
    "gaussian_linear": GAUSSIAN_LINEAR,
    "goodwin": GOODWIN,
    "hodgkin_huxley": HODGKIN_HUXLEY,
    "hodgkin_huxley_stochastic": STOCHASTIC,
    "lorenz63": LORENZ63,
    "lorenz96": LORENZ96,
    "lotka_volterra": LOTKA_VOLTERRA,
    "sir": SIR,
    "slcp": SLCP,
    "two_moons": TWO_MOONS,
    "van_der_pol": VAN_DER_POL,
}
