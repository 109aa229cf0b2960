"""Random numbers of any shape, compiled fast, and the same whatever a session has set."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np
from jaxtyping import Array, Key

P = ParamSpec("P")
R = TypeVar("R")

# What `jax` has without being told: with another value a seed gives other numbers, nets count in
# another precision, or an operation is refused that is meant.
USUAL = {
    "enable_x64": False,
    "default_prng_impl": "threefry2x32",
    "threefry_partitionable": True,
    "numpy_rank_promotion": "allow",
    "numpy_dtype_promotion": "standard",
}
ASKED: ContextVar[dict[str, Any] | None] = ContextVar("asked", default=None)
OF_THREADS = (*USUAL, "default_matmul_precision", "default_device")  # each thread has its own
GENTLE = {"under": "ignore", "over": "warn", "divide": "warn", "invalid": "warn"}


def flat(
    draw: Callable[..., Array], key: Key[Array, ""], shape: tuple[int, ...], *more: Any
) -> Array:
    """Return `draw(key, shape, *more)`, the same numbers, drawn along one axis.

    For a processor XLA compiles a draw of three axes for two seconds, and of one for a third of a
    second; it runs faster too.
    """
    return draw(key, (math.prod(shape),), *more).reshape(shape)


def as_usual(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function as in a session that has set nothing of JAX or NumPy.

    So what a seed gives, what is trained and what a saved fit answers depend on no switch. What
    is inside may ask for double precision where it needs it. A simulator that a user wrote runs
    under what the user has set: `asked` tells it.
    """

    @wraps(function)
    def usual(*args: P.args, **options: P.kwargs) -> R:
        raised = {kind: GENTLE[kind] for kind, what in np.geterr().items() if what == "raise"}
        outermost = ASKED.set(asked())
        try:
            with set_to(USUAL), np.errstate(**raised):  # type: ignore[arg-type]
                return function(*args, **options)
        finally:
            ASKED.reset(outermost)

    return usual


def asked() -> dict[str, Any]:
    """Return what the user's session has set, within `as_usual` too; `set_to` takes it."""
    return ASKED.get() or {name: read(name) for name in USUAL}


@contextmanager
def set_to(wanted: Mapping[str, Any]) -> Iterator[None]:
    """Set what differs of JAX's switches, for this thread."""
    with ExitStack() as stack:
        for name, value in wanted.items():
            if read(name) != value:
                stack.enter_context(getattr(jax, name)(value))
        yield


def read(name: str) -> Any:
    """Return what one of JAX's switches is in this thread."""
    value = getattr(jax.config, f"jax_{name}")
    return getattr(value, "value", value)  # of an enumeration


def for_threads(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function in any thread under what this one has set."""
    here = {name: read(name) for name in OF_THREADS}

    @wraps(function)
    def there(*args: P.args, **options: P.kwargs) -> R:
        with set_to(here):
            return function(*args, **options)

    return there
