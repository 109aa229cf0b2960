"""The classical fourth-order method at a fixed step: the fast path for smooth small systems."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sciml.ode.doses import Bolus, cuts_of, within
from sciml.ode.system import System, bolus_steps, initial_state, rate, stops

UNROLLED = 8  # substeps up to which a gap is written out, which compiles to the fastest program


@dataclass(frozen=True)
class RungeKutta4:
    """Take `substeps` steps of the classical method between two observation times.

    At most `chunk` samples are solved at once, 32 times as many on a card, in `dtype` arithmetic.
    Good values: for FitzHugh-Nagumo 4 substeps (h = 0.05 ms), whose error within 200 ms is 3e-5 in
    the median, and 9e-4 where the potential jumps; 8 substeps divide it by 20.
    Where observations lie far apart, name the `longest_step` in the system's unit of time: all
    gaps then take as many substeps as the longest one needs. Gaps end at jumps and doses too.
    Not for stiff systems. `simulate` warns where more than 2 % of some samples differ from those of
    half the step by more than `tolerance`, in parts of the spread of what is observed; `step_error`
    measures all, `adequate_step` chooses the substeps.

    Raises:
        ValueError: a count below 1, a step that is not positive, or another dtype.

    >>> RungeKutta4(substeps=8).substeps
    8
    """

    substeps: int = 4
    dtype: Literal["float32", "float64"] = "float32"
    chunk: int = 2048
    longest_step: float | None = None
    tolerance: float = 0.01  # assumed: below any noise of interest

    def __post_init__(self):
        if self.substeps < 1 or self.chunk < 1:
            raise ValueError(
                f"substeps is {self.substeps} and chunk {self.chunk}; both must be at least 1"
            )
        if self.dtype not in ("float32", "float64"):
            raise ValueError(f"dtype is {self.dtype!r}; it must be 'float32' or 'float64'")
        if self.longest_step is not None and not self.longest_step > 0:
            raise ValueError(f"longest_step is {self.longest_step}; it must be positive, or None")
        if not self.tolerance > 0:
            raise ValueError(f"tolerance is {self.tolerance}; it must be positive, as 0.01")

    def describe(self) -> dict[str, Any]:
        """Return what a file must say of this method: what decides its numbers."""
        named = {"name": "RungeKutta4", "substeps": self.substeps, "dtype": self.dtype}
        return named if self.longest_step is None else named | {"longest_step": self.longest_step}


def classical_step(slope: Callable[[Any, Any], Any], time, state: Any, h) -> Any:
    """Return the state after a step h of d state/dt = slope(t, state); a tree of arrays.

    By the classical weights (1, 2, 2, 1)/6.
    """

    def moved(by, change):
        return jax.tree.map(lambda u, k: u + by * k, state, change)

    k1 = slope(time, state)
    k2 = slope(time + h / 2, moved(h / 2, k1))
    k3 = slope(time + h / 2, moved(h / 2, k2))
    k4 = slope(time + h, moved(h, k3))
    return moved(h / 6, jax.tree.map(lambda a, b, c, d: a + 2 * b + 2 * c + d, k1, k2, k3, k4))


def trajectory(
    system: System, method: RungeKutta4
) -> Callable[[Float[Array, " param"]], Float[Array, "time state"]]:
    """Return the map from the parameters of one sample to its observed states."""
    substeps, refined = substeps_per_gap(system, method), trajectory_in_steps(system)
    return lambda parameters: refined(parameters, substeps)


def trajectory_in_steps(
    system: System,
) -> Callable[[Float[Array, " param"], Any], Float[Array, "time state"]]:
    """Return the map from parameters and a number of substeps, which may be traced, to states."""
    seen, nodes = system.observation, nodes_of(system)
    # What is known before is NumPy's: each array of JAX's own would be a program to compile.
    states = np.asarray(seen.states, np.int32)  # also where 64 bits are on
    # Observed ends of gaps, where jumps make others too.
    ends = np.searchsorted(nodes[1:], [t for t in seen.times if t > seen.start]).astype(np.int32)
    given, broken = any(isinstance(dose, Bolus) for dose in system.doses), bool(stops(system))

    def one(parameters, substeps):
        first, field = initial_state(system, parameters), rate(system, parameters)
        # Compiled by itself, it is traced once, and not at every stage of every substep.
        stacked = jax.jit(lambda time, state: jnp.stack(field(time, state)))
        gaps, start_and_step = schedule(system, substeps, parameters.dtype)
        if given:
            kicks = bolus_steps(system, parameters, nodes, first)
            first, gaps = first + kicks[0], (gaps, kicks[1:])

        def advance(state, gap):
            gap, kick = gap if given else (gap, 0)
            start, h, end = start_and_step(gap)

            def slope(time, state):
                return stacked(within(time, start, end) if broken else time, state)

            def substep(k, state):
                return classical_step(slope, start + k * h, state, h)

            if isinstance(substeps, int) and substeps <= UNROLLED:
                for k in range(substeps):
                    state = substep(k, state)
            else:
                state = jax.lax.fori_loop(0, substeps, substep, state)
            state = state + kick if given else state
            return state, state[states]

        _, later = jax.lax.scan(advance, first, gaps)
        later = later[ends] if len(nodes) - 1 > len(ends) else later
        if seen.times[0] > seen.start:
            return later
        return jnp.concatenate([first[states][None], later])

    return one


def nodes_of(system: System) -> np.ndarray:
    """Return the ends of the gaps that are crossed: times seen, and jumps and doses between."""
    nodes = system.observation.nodes
    between = [t for t in (*stops(system), *cuts_of(system)) if nodes[0] < t < nodes[-1]]
    return np.union1d(nodes, between) if between else nodes


def schedule(system: System, substeps: Any, dtype) -> tuple[Any, Callable]:
    """Return what to scan over, and how to read each gap's start, step and end from it."""
    seen = system.observation
    nodes = nodes_of(system)
    if len(nodes) == len(seen.nodes) and not stops(system) and (interval := seen.interval):
        indices = np.arange(len(nodes) - 1, dtype=dtype)
        offset = seen.start
        return indices, lambda i: (
            i * interval + offset if offset else i * interval,
            interval / substeps,
            None,
        )
    steps = (nodes[1:] - nodes[:-1]) / substeps
    gaps = tuple(jnp.asarray(each, dtype) for each in (nodes[:-1], steps, nodes[1:]))
    return gaps, lambda gap: gap


def substeps_per_gap(system: System, method: RungeKutta4) -> int:
    """Return how many steps to take between two times, the same for all gaps."""
    nodes = nodes_of(system)
    if method.longest_step is None or len(nodes) < 2:
        return method.substeps
    longest = float((nodes[1:] - nodes[:-1]).max())
    return max(method.substeps, math.ceil(longest / method.longest_step * (1 - 1e-9)))
