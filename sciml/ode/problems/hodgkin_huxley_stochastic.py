"""The neuron of Hodgkin and Huxley with a noisy current and eight unknowns, seven statistics."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key
from numpyro.distributions import Uniform

from sciml.ode.observe.level import Levelled
from sciml.ode.problems import membrane
from sciml.ode.problems.voltage_statistics import NAMES, voltage_statistics
from sciml.ode.static import Static

TOGETHER = 1000  # assumed: a trace is 48 KB, and its sums take as much again
TRUTH = (50.0, 5.0, 0.1, 0.07, 600.0, -60.0, 0.1, -70.0)  # sourced: Gonçalves et al. 2020


@dataclass(frozen=True)
class NoisyCurrent(Levelled):
    """Draw a trace of the stochastic neuron for each θ, and return its statistics.

    One step takes each equation, linear in its own variable, to its solution at the other
    variables held fixed (exponential Euler); the current is disturbed by noise · ε / √step,
    ε ~ N(0, 1), afresh in each step.

    Raises:
        ValueError: a step or a duration that is not positive.

    >>> import sciml
    >>> sciml.ode.hodgkin_huxley_stochastic().noise.duration_ms
    120.0
    >>> sciml.ode.NoisyCurrent(step_ms=0.02).step_ms  # twice as coarse
    0.02
    """

    step_ms: float = 0.01  # sourced: Gonçalves et al. 2020
    duration_ms: float = 120.0  # sourced: as step_ms
    estimate: ClassVar[bool] = False

    def __post_init__(self):
        if not (self.step_ms > 0 and self.duration_ms > membrane.OFF):
            raise ValueError(
                f"step_ms is {self.step_ms} and duration_ms {self.duration_ms}; the step must be "
                f"positive and the duration longer than the current, {membrane.OFF} ms"
            )

    def trace(
        self, key: Key[Array, ""], clean: Float[Array, "sample 8"]
    ) -> Float[Array, "sample time"]:
        """Return membrane potentials in mV at each step from t = 0 on."""
        steps = round(self.duration_ms / self.step_ms)

        def advance(state, index):
            draws = jax.random.normal(jax.random.fold_in(key, index), v.shape, v.dtype)
            disturbance = clean[:, 6] * draws / self.step_ms**0.5
            current = membrane.stimulus(index * self.step_ms) + disturbance
            state = exponential_euler(state, clean.T, current, self.step_ms)
            return state, state[0]

        v = jnp.full(clean.shape[:1], membrane.START, clean.dtype)
        first = jnp.stack([v, *membrane.resting_gates(v, clean[:, 5])])
        _, later = jax.lax.scan(advance, first, jnp.arange(steps))
        return jnp.concatenate([v[None], later]).T

    def apply(
        self, key: Key[Array, ""], clean: Float[Array, "sample 8"], levels: dict
    ) -> Float[Array, "sample 7"]:
        """Return the seven statistics of one noisy trace per θ, up to TOGETHER at a time."""
        del levels
        samples = len(clean)
        calls = -(-samples // TOGETHER)
        size = -(-samples // calls)
        padded = jnp.pad(clean, ((0, calls * size - samples), (0, 0)), mode="edge")

        def seen(part: tuple[Key[Array, ""], Array]) -> Array:
            return voltage_statistics(self.trace(*part), self.step_ms, membrane.ON, membrane.OFF)

        parts = (jax.random.split(key, calls), padded.reshape(calls, size, -1))
        return jax.lax.map(seen, parts).reshape(calls * size, -1)[:samples]


def exponential_euler(state, parameters, current, step: float):
    """Return (V, m, h, n, p) one step later; parameters in the order of the prior."""
    v, *gates = state
    g_na, g_k, g_leak, g_m, tau_max, v_t, _, e_leak = parameters
    na, k, leak, slow = membrane.conductances(gates, g_na, g_k, g_leak, g_m)
    total = na + k + leak + slow
    drive = na * membrane.E_NA + (k + slow) * membrane.E_K + leak * e_leak + current
    v = drive / total + (v - drive / total) * jnp.exp(-step * total / membrane.CAPACITANCE)
    opening, closing = membrane.rates(v, v_t)
    level, tau = membrane.slow_gate(v, tau_max)
    levels = jnp.stack([*(opening / (opening + closing)), level])
    speeds = jnp.stack([*(opening + closing), 1 / tau])
    gates = levels + (jnp.stack(gates) - levels) * jnp.exp(-step * speeds)
    return jnp.stack([v, *gates])


def hodgkin_huxley_stochastic() -> Static:
    """Return the eight-parameter task of Gonçalves et al.

    The equations of `hodgkin_huxley`, with white noise added to the current (a stochastic
    differential equation), and all of these unknown, uniformly distributed: conductances
    g_Na (0.5 to 80), g_K (0.0001 to 15), g_leak and g_M (0.0001 to 0.6) in mS/cm², τ_max
    (50 to 3000 ms), threshold V_T (−90 to −40 mV), noise (0.0001 to 0.15) and E_leak
    (−100 to −35 mV). Seen are `voltage_statistics`: the number of spikes, rest, and moments.

    The likelihood is not known, so there is no reference posterior. The publication counts
    −V_T and −E_leak; here both keep their sign.

    Source: Gonçalves et al., "Training deep neural density estimators to identify mechanistic
    models of neural dynamics", eLife 9:e56261, 2020, figure 5.

    >>> hodgkin_huxley_stochastic().parameter_names
    ('g_na', 'g_k', 'g_leak', 'g_m', 'tau_max', 'v_t', 'noise', 'e_leak')
    """
    return Static(
        name="hodgkin_huxley_stochastic",
        prior={
            "g_na": Uniform(0.5, 80.0),
            "g_k": Uniform(1e-4, 15.0),
            "g_leak": Uniform(1e-4, 0.6),
            "g_m": Uniform(1e-4, 0.6),
            "tau_max": Uniform(50.0, 3000.0),
            "v_t": Uniform(-90.0, -40.0),
            "noise": Uniform(1e-4, 0.15),
            "e_leak": Uniform(-100.0, -35.0),
        },
        features=len(NAMES),
        noise=NoisyCurrent(),
        reference="Gonçalves et al., eLife 9:e56261, 2020",
    )
