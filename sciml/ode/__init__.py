"""Systems of ordinary differential equations, their noise, and their simulation."""

from sciml.ode.blackbox import BlackBox
from sciml.ode.data.accumulate import accumulate, distribute
from sciml.ode.data.calls import black_box
from sciml.ode.data.own import dataset
from sciml.ode.data.simulate import simulate
from sciml.ode.data.step_error import adequate_step, step_error
from sciml.ode.data.store import open_simulations
from sciml.ode.doses import Bolus, Infusion
from sciml.ode.methods.accuracy import StepWarning
from sciml.ode.methods.diffrax_method import Diffrax
from sciml.ode.methods.runge_kutta import RungeKutta4
from sciml.ode.methods.solver import solver
from sciml.ode.observe.channels import PerChannel
from sciml.ode.observe.counts import Binomial, NegativeBinomial, Poisson
from sciml.ode.observe.missing import Missing
from sciml.ode.observe.noise import (
    AR1,
    Combined,
    Gaussian,
    LogNormal,
    Noise,
    draw_levels,
    measure,
)
from sciml.ode.observe.observation import Observation
from sciml.ode.observe.spikes import is_spiking, spikes
from sciml.ode.prior import Truncated
from sciml.ode.problems.catalog import CATALOG, TRUTHS
from sciml.ode.problems.fitzhugh_nagumo import fitzhugh_nagumo
from sciml.ode.problems.fitzhugh_nagumo_ramsay import fitzhugh_nagumo_ramsay
from sciml.ode.problems.gaussian_linear import gaussian_linear
from sciml.ode.problems.goodwin import goodwin
from sciml.ode.problems.hodgkin_huxley import hodgkin_huxley
from sciml.ode.problems.hodgkin_huxley_stochastic import NoisyCurrent, hodgkin_huxley_stochastic
from sciml.ode.problems.lorenz63 import lorenz63
from sciml.ode.problems.lorenz96 import lorenz96
from sciml.ode.problems.lotka_volterra import lotka_volterra
from sciml.ode.problems.sir import sir
from sciml.ode.problems.slcp import NormalPairs, slcp
from sciml.ode.problems.two_moons import Crescent, two_moons
from sciml.ode.problems.van_der_pol import van_der_pol
from sciml.ode.problems.voltage_statistics import voltage_statistics
from sciml.ode.sbml.bare import read_sbml
from sciml.ode.sbml.petab import Petab, read_petab
from sciml.ode.static import Static
from sciml.ode.system import System

__all__ = [
    "AR1",
    "Binomial",
    "BlackBox",
    "Bolus",
    "CATALOG",
    "Combined",
    "Crescent",
    "Diffrax",
    "Gaussian",
    "Infusion",
    "LogNormal",
    "Missing",
    "NegativeBinomial",
    "Noise",
    "NoisyCurrent",
    "NormalPairs",
    "Observation",
    "PerChannel",
    "Petab",
    "Poisson",
    "RungeKutta4",
    "Static",
    "StepWarning",
    "System",
    "TRUTHS",
    "Truncated",
    "accumulate",
    "adequate_step",
    "black_box",
    "dataset",
    "distribute",
    "draw_levels",
    "fitzhugh_nagumo",
    "fitzhugh_nagumo_ramsay",
    "gaussian_linear",
    "goodwin",
    "hodgkin_huxley",
    "hodgkin_huxley_stochastic",
    "is_spiking",
    "lorenz63",
    "lorenz96",
    "lotka_volterra",
    "measure",
    "open_simulations",
    "read_petab",
    "read_sbml",
    "simulate",
    "sir",
    "slcp",
    "solver",
    "spikes",
    "step_error",
    "two_moons",
    "van_der_pol",
    "voltage_statistics",
]
__dir__ = __all__.copy  # what tab completion shows
