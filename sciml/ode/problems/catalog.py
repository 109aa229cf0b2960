"""The reference problems, by name, and parameters at which each is usually shown."""

from collections.abc import Callable

from sciml.ode.problems import (
    fitzhugh_nagumo,
    fitzhugh_nagumo_ramsay,
    gaussian_linear,
    goodwin,
    hodgkin_huxley,
    hodgkin_huxley_stochastic,
    lorenz63,
    lorenz96,
    lotka_volterra,
    sir,
    slcp,
    two_moons,
    van_der_pol,
)
from sciml.ode.static import Static
from sciml.ode.system import System

PROBLEMS: dict[Callable[[], System | Static], tuple[float, ...]] = {
    fitzhugh_nagumo.fitzhugh_nagumo: fitzhugh_nagumo.TRUTH,
    fitzhugh_nagumo_ramsay.fitzhugh_nagumo_ramsay: fitzhugh_nagumo_ramsay.TRUTH,
    gaussian_linear.gaussian_linear: gaussian_linear.TRUTH,
    goodwin.goodwin: goodwin.TRUTH,
    hodgkin_huxley.hodgkin_huxley: hodgkin_huxley.TRUTH,
    hodgkin_huxley_stochastic.hodgkin_huxley_stochastic: hodgkin_huxley_stochastic.TRUTH,
    lorenz63.lorenz63: lorenz63.TRUTH,
    lorenz96.lorenz96: lorenz96.TRUTH,
    lotka_volterra.lotka_volterra: lotka_volterra.TRUTH,
    sir.sir: sir.TRUTH,
    slcp.slcp: slcp.TRUTH,
    two_moons.two_moons: two_moons.TRUTH,
    van_der_pol.van_der_pol: van_der_pol.TRUTH,
}
CATALOG = {problem.__name__: problem for problem in PROBLEMS}
TRUTHS = {problem.__name__: truth for problem, truth in PROBLEMS.items()}
