"""The membrane of a cortical neuron: its currents, and the gates of its channels."""

import math

import jax.numpy as jnp

# Sourced: Pospischil et al. 2008; values as in Gonçalves et al. 2020.
CAPACITANCE = 1.0  # µF/cm²
E_NA, E_K = 53.0, -107.0  # mV
START = -70.0  # mV, V(0)
CURRENT = 5e-4 / (math.pi * 70e-4**2)  # µA/cm²; 0.5 nA into the area given by a radius of 70 µm
ON, OFF = 10.0, 110.0  # ms
RAMP = 1e-3  # assumed: ms in which the current is switched, far above the rounding of time


def ratio(z):
    """Return z / (eᶻ − 1), 1 at z = 0, with a finite gradient there."""
    small = jnp.abs(z) < 1e-4
    safe = jnp.where(small, 1.0, z)
    return jnp.where(small, 1 - z / 2, safe / jnp.expm1(safe))


def rates(v, v_t):
    """Return opening and closing rates per ms of the gates m, h, n at voltage v, in mV."""
    x = v - v_t
    opening = jnp.stack(
        [1.28 * ratio((13 - x) / 4), 0.128 * jnp.exp((17 - x) / 18), 0.16 * ratio((15 - x) / 5)]
    )
    closing = jnp.stack(
        [1.4 * ratio((x - 40) / 5), 4 / (1 + jnp.exp((40 - x) / 5)), 0.5 * jnp.exp((10 - x) / 40)]
    )
    return opening, closing


def slow_gate(v, tau_max):
    """Return the level to which the gate p of the M-current tends, and its time in ms."""
    x = v + 35
    time = tau_max / (3.3 * jnp.exp(x / 20) + jnp.exp(-x / 20))
    return 1 / (1 + jnp.exp(-x / 10)), time


def resting_gates(v, v_t):
    """Return (m, h, n, p) in balance at voltage v."""
    opening, closing = rates(v, v_t)
    return *(opening / (opening + closing)), slow_gate(v, 1.0)[0]


def conductances(gates, g_na, g_k, g_leak, g_m):
    """Return the conductances of sodium, potassium, leak and M-current, in mS/cm²."""
    m, h, n, p = gates
    return g_na * m**3 * h, g_k * n**4, g_leak, g_m * p


def stimulus(time):
    """Return the injected current in µA/cm² at `time` in ms, half of it at both ends.

    A step that begins or ends there would else see the current for a sixth of its length too
    long or too short, which is half a millivolt in a spike.
    """
    switch = lambda t: jnp.clip(t / RAMP + 0.5, 0, 1)  # noqa: E731
    return CURRENT * (switch(time - ON) - switch(time - OFF))
