"""Systems of ordinary differential equations, their noise, and their simulation."""

from sciml.ode.accumulate import accumulate, distribute
from sciml.ode.catalog import CATALOG, TRUTHS
from sciml.ode.diffrax_method import Diffrax
from sciml.ode.fitzhugh_nagumo import fitzhugh_nagumo
from sciml.ode.fitzhugh_nagumo_ramsay import fitzhugh_nagumo_ramsay
from sciml.ode.gaussian_linear import gaussian_linear
from sciml.ode.goodwin import goodwin
from sciml.ode.hodgkin_huxley import hodgkin_huxley
from sciml.ode.hodgkin_huxley_stochastic import NoisyCurrent, hodgkin_huxley_stochastic
from sciml.ode.lorenz63 import lorenz63
from sciml.ode.lorenz96 import lorenz96
from sciml.ode.lotka_volterra import lotka_volterra
from sciml.ode.missing import Missing
from sciml.ode.noise import AR1, Binomial, Gaussian, LogNormal, Noise, draw_levels, measure
from sciml.ode.observation import Observation
from sciml.ode.runge_kutta import RungeKutta4
from sciml.ode.simulate import simulate
from sciml.ode.sir import sir
from sciml.ode.slcp import NormalPairs, slcp
from sciml.ode.solver import solver
from sciml.ode.spikes import is_spiking, spikes
from sciml.ode.static import Static
from sciml.ode.store import open_simulations
from sciml.ode.system import System
from sciml.ode.two_moons import Crescent, two_moons
from sciml.ode.van_der_pol import van_der_pol
from sciml.ode.voltage_statistics import voltage_statistics

__all__ = [
    "AR1",
    "Binomial",
    "CATALOG",
    "Crescent",
    "Diffrax",
    "Gaussian",
    "LogNormal",
    "Missing",
    "Noise",
    "NoisyCurrent",
    "NormalPairs",
    "Observation",
    "RungeKutta4",
    "Static",
    "System",
    "TRUTHS",
    "accumulate",
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
    "simulate",
    "sir",
    "slcp",
    "solver",
    "spikes",
    "two_moons",
    "van_der_pol",
    "voltage_statistics",
]
