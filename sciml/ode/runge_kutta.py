"""The classical fourth-order method at a fixed step: the fast path for smooth small systems."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sciml.ode.system import System, VectorField


@dataclass(frozen=True)
class RungeKutta4:
    """Take `substeps` steps of the classical method between two observation times.

    `chunk` samples are solved at once, in `dtype` arithmetic. Good values: for
    FitzHugh-Nagumo 4 substeps (h = 0.05 ms), whose error after 200 ms is below 1e-4.

    Raises:
        ValueError: a count below 1 or another dtype.
    """

    substeps: int = 4
    dtype: Literal["float32", "float64"] = "float32"
    chunk: int = 2048

    def __post_init__(self):
        """Check every value."""
        if self.substeps < 1 or self.chunk < 1:
            raise ValueError(
                f"substeps is {self.substeps} and chunk {self.chunk}; both must be at least 1"
            )
        if self.dtype not in ("float32", "float64"):
            raise ValueError(f"dtype is {self.dtype!r}; it must be 'float32' or 'float64'")


def step(field: VectorField, time, state, parameters, h: float):
    """Return u(t + h) of du/dt = f by the classical weights (1, 2, 2, 1)/6."""
    f = lambda t, u: jnp.stack(field(t, u, parameters))  # noqa: E731
    k1 = f(time, state)
    k2 = f(time + h / 2, state + h / 2 * k1)
    k3 = f(time + h / 2, state + h / 2 * k2)
    k4 = f(time + h, state + h * k3)
    return state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def solver(
    system: System, method: RungeKutta4
) -> Callable[[Float[Array, "sample param"]], Float[Array, "sample time"]]:
    """Return the compiled map from parameters to observations of a batch of samples."""
    seen = system.observation
    h = seen.interval / method.substeps

    def one(parameters):
        def advance(state, index):
            start = index * seen.interval
            for k in range(method.substeps):
                state = step(system.vector_field, start + k * h, state, parameters, h)
            return state, state[seen.state]

        first = jnp.asarray(system.initial_state, parameters.dtype)
        indices = jnp.arange(seen.length - 1, dtype=parameters.dtype)
        _, later = jax.lax.scan(advance, first, indices)
        return jnp.concatenate([first[seen.state, None], later])

    return jax.jit(jax.vmap(one))
