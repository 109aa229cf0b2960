"""Systems of ordinary differential equations, their noise, and their simulation."""

from sciml.ode.fitzhugh_nagumo import fitzhugh_nagumo
from sciml.ode.noise import AR1
from sciml.ode.runge_kutta import RungeKutta4
from sciml.ode.simulate import simulate
from sciml.ode.spikes import is_spiking, spikes
from sciml.ode.system import Observation, System

__all__ = [
    "AR1",
    "Observation",
    "RungeKutta4",
    "System",
    "fitzhugh_nagumo",
    "is_spiking",
    "simulate",
    "spikes",
]
