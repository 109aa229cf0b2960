"""The neuron of Hodgkin and Huxley with the currents of cortical cells, two parameters."""

from numpyro.distributions import Uniform

from sciml.ode.methods.runge_kutta import RungeKutta4
from sciml.ode.observe.noise import Gaussian
from sciml.ode.observe.observation import Observation
from sciml.ode.problems.membrane import (
    CAPACITANCE,
    E_K,
    E_NA,
    START,
    conductances,
    rates,
    resting_gates,
    slow_gate,
    stimulus,
)
from sciml.ode.system import System

# Sourced: Gonçalves et al. 2020; mS/cm², ms, mV.
PASSIVE = {"g_leak": 0.1, "g_m": 0.07, "tau_max": 600.0, "v_t": -60.0, "e_leak": -70.0}
TRUTH = (50.0, 5.0)  # sourced: Gonçalves et al. 2020


def vector_field(time, state, parameters):
    """Return d(V, m, h, n, p)/dt; `hodgkin_huxley` has the equation."""
    v, *gates = state
    g_na, g_k = parameters
    na, k, leak, slow = conductances(gates, g_na, g_k, PASSIVE["g_leak"], PASSIVE["g_m"])
    inward = na * (E_NA - v) + (k + slow) * (E_K - v) + leak * (PASSIVE["e_leak"] - v)
    opening, closing = rates(v, PASSIVE["v_t"])
    fast = [a * (1 - x) - b * x for a, b, x in zip(opening, closing, gates[:3], strict=True)]
    level, tau = slow_gate(v, PASSIVE["tau_max"])
    return (inward + stimulus(time)) / CAPACITANCE, *fast, (level - gates[3]) / tau


def hodgkin_huxley() -> System:
    """Return the neuron under a step of current, its two largest conductances unknown.

    C dV/dt = g_Na m³h (E_Na − V) + (g_K n⁴ + g_M p)(E_K − V) + g_leak (E_leak − V) + I(t)
    dx/dt   = α_x(V) (1 − x) − β_x(V) x                           for the gates x = m, h, n
    dp/dt   = (p_∞(V) − p) / τ_p(V)

    V in mV, t in ms, g in mS/cm², I in µA/cm²; V(0) = −70 and the gates in balance with it. A
    current of 3.25 µA/cm² flows from 10 to 110 ms. The rates are those of cortical cells with
    threshold V_T = −60 mV. g_Na ~ U(0.5, 80), g_K ~ U(0.0001, 15); true values (50, 5).

    The published task adds noise to the current and keeps seven statistics of the trace, so it
    has no likelihood: `hodgkin_huxley_stochastic` is that task, with its eight parameters. Here
    the voltage itself is seen, at t = 0, 0.5, …, 119.5 ms, with independent normal noise of sd
    5 mV (assumed). The default steps of 0.025 ms err by 0.1 mV in the median over the prior.

    Source: Pospischil et al., Biol. Cybern. 99:427-441, 2008; Gonçalves et al., "Training deep
    neural density estimators to identify mechanistic models of neural dynamics", eLife 9:e56261,
    2020, and the tutorial of the sbi package for the two parameters.

    >>> hodgkin_huxley().parameter_names
    ('g_na', 'g_k')
    """
    return System(
        name="hodgkin_huxley",
        vector_field=vector_field,
        initial_state=resting_state,
        prior={"g_na": Uniform(0.5, 80.0), "g_k": Uniform(1e-4, 15.0)},
        observation=Observation.regular(states=(0,), interval=0.5, length=240),
        noise=Gaussian(sd=5.0),  # assumed; mV
        time_unit="ms",
        observed="membrane potential in mV",
        method=RungeKutta4(longest_step=0.025, tolerance=0.1),
        reference="Gonçalves et al., eLife 9:e56261; Pospischil et al., Biol. Cybern. 99:427, 2008",
    )


def resting_state(_parameters):
    """Return (V, m, h, n, p) at t = 0, the same for all parameters."""
    return START, *resting_gates(START, PASSIVE["v_t"])
