"""Systems of ordinary differential equations, their noise, and their simulation."""

from sciml.ode.diffrax_method import Diffrax
from sciml.ode.fitzhugh_nagumo import fitzhugh_nagumo
from sciml.ode.missing import Missing
from sciml.ode.noise import AR1, Binomial, Gaussian, LogNormal, Noise, draw_levels, measure
from sciml.ode.observation import Observation
from sciml.ode.runge_kutta import RungeKutta4
from sciml.ode.simulate import simulate
from sciml.ode.solver import solver
from sciml.ode.spikes import is_spiking, spikes
from sciml.ode.static import Static
from sciml.ode.system import System

__all__ = [
    "AR1",
    "Binomial",
    "Diffrax",
    "Gaussian",
    "LogNormal",
    "Missing",
    "Noise",
    "Observation",
    "RungeKutta4",
    "Static",
    "System",
    "draw_levels",
    "fitzhugh_nagumo",
    "is_spiking",
    "measure",
    "simulate",
    "solver",
    "spikes",
]
