"""Adaptive and implicit methods, by diffrax: for stiff systems and for error control."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from sciml.ode.system import System, initial_state

FINEST_FLOAT32 = 1e-6  # derived: eight times the rounding of float32, 1.2e-7


@dataclass(frozen=True)
class Diffrax:
    """Adapt the step so that each step's error stays below atol + rtol |u|.

    `solver` names the scheme: "Tsit5" (order 5, the usual choice), "Dopri8" (order 8, for fine
    tolerances in float64), "Kvaerno5" (implicit, order 5, for stiff systems). A sample that
    takes more than `max_steps` steps, or whose step breaks down, fails: it is kept as NaN.
    `chunk` samples are solved at once, as slowly as the slowest of them.

    Raises:
        ValueError: another solver or dtype, a tolerance that is not positive or that the
            dtype cannot hold, or a count below 1.
    """

    solver: Literal["Tsit5", "Dopri8", "Kvaerno5"] = "Tsit5"
    rtol: float = 1e-6
    atol: float = 1e-6
    max_steps: int = 16_384
    dtype: Literal["float32", "float64"] = "float32"
    chunk: int = 2048

    def __post_init__(self):
        """Check every value."""
        if self.solver not in ("Tsit5", "Dopri8", "Kvaerno5"):
            raise ValueError(
                f"solver is {self.solver!r}; it must be 'Tsit5', 'Dopri8' or 'Kvaerno5'"
            )
        if self.dtype not in ("float32", "float64"):
            raise ValueError(f"dtype is {self.dtype!r}; it must be 'float32' or 'float64'")
        if not (self.rtol > 0 and self.atol > 0):
            raise ValueError(f"rtol is {self.rtol} and atol {self.atol}; both must be positive")
        if self.dtype == "float32" and self.rtol < FINEST_FLOAT32:
            raise ValueError(
                f"rtol is {self.rtol} in float32, whose rounding would be taken for error; it "
                f"must be at least {FINEST_FLOAT32}: pass dtype='float64'"
            )
        if self.max_steps < 1 or self.chunk < 1:
            raise ValueError(
                f"max_steps is {self.max_steps} and chunk {self.chunk}; both must be at least 1"
            )

    def describe(self) -> dict[str, Any]:
        """Return what a file must say of this method."""
        numbers = asdict(self)
        del numbers["chunk"]
        return {"name": "Diffrax", **numbers}


def trajectory(
    system: System, method: Diffrax
) -> Callable[[Float[Array, " param"]], Float[Array, "time state"]]:
    """Return the map from the parameters of one sample to its observed states; NaN if it fails."""
    import diffrax

    seen = system.observation
    term = diffrax.ODETerm(lambda t, u, p: jnp.stack(system.vector_field(t, u, p)))
    scheme = getattr(diffrax, method.solver)()
    adaptive = diffrax.PIDController(rtol=method.rtol, atol=method.atol)
    states = jnp.asarray(seen.states)

    def one(parameters):
        times = jnp.asarray(seen.times, parameters.dtype)
        # Kvaerno5 interpolates to third order only: let it step on the times themselves.
        stops: dict[str, Any] = {"step_ts": times} if method.solver == "Kvaerno5" else {}
        if system.jumps:
            stops["jump_ts"] = jnp.asarray(system.jumps, parameters.dtype)
        solution = diffrax.diffeqsolve(
            term,
            scheme,
            t0=seen.start,
            t1=seen.times[-1],
            dt0=None,
            y0=initial_state(system, parameters),
            args=parameters,
            saveat=diffrax.SaveAt(ts=times, fn=lambda _t, u, _p: u[states]),
            stepsize_controller=(
                diffrax.ClipStepSizeController(adaptive, **stops) if stops else adaptive
            ),
            max_steps=method.max_steps,
            throw=False,
        )
        solved = solution.result == diffrax.RESULTS.successful
        return jnp.where(solved, jnp.asarray(solution.ys), jnp.nan)

    return one
