"""What a session has set of JAX and NumPy, which changes no answer; threads that have it too."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np

from wse._processor import usable_cores

Item = TypeVar("Item")
Result = TypeVar("Result")
P = ParamSpec("P")

# What `jax` has without being told: with another value a seed gives other numbers, nets count in
# another precision, or an operation is refused that is meant.
USUAL = {
    "enable_x64": False,
    "default_prng_impl": "threefry2x32",
    "threefry_partitionable": True,
    "numpy_rank_promotion": "allow",
    "numpy_dtype_promotion": "standard",
    "disable_jit": False,
}
ASKED: ContextVar[dict[str, Any] | None] = ContextVar("asked", default=None)
OF_THREADS = (*USUAL, "default_matmul_precision", "default_device")  # each thread has its own
GENTLE = {"under": "ignore", "over": "warn", "divide": "warn", "invalid": "warn"}


def as_usual(function: Callable[P, Result]) -> Callable[P, Result]:
    """Run a function as in a session that has set nothing of JAX or NumPy.

    So what a seed gives, what is trained and what a saved fit answers depend on no switch. What
    is inside may ask for double precision where it needs it. A simulator that a user wrote runs
    under what the user has set: `asked` tells it.
    """

    @wraps(function)
    def usual(*args: P.args, **options: P.kwargs) -> Result:
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


def for_threads(function: Callable[P, Result]) -> Callable[P, Result]:
    """Run a function in any thread under what this one has set."""
    here = {name: read(name) for name in OF_THREADS}

    @wraps(function)
    def there(*args: P.args, **options: P.kwargs) -> Result:
        with set_to(here):
            return function(*args, **options)

    return there


def each(
    function: Callable[[Item], Result], items: Sequence[Item], *, compiled: bool = False
) -> Iterator[Result]:
    """Yield `function(item)` of each item, in their order, from a thread for each core.

    Unless all that it calls is `compiled`, the first call runs alone, so that no program is
    compiled twice. An accelerator has one thread.
    """
    threads = usable_cores() if jax.default_backend() == "cpu" else 1
    alone = len(items) if threads == 1 else 0 if compiled else 1
    yield from map(function, items[:alone])
    if len(items) > alone:
        with ThreadPoolExecutor(threads) as pool:
            yield from pool.map(for_threads(function), items[alone:])
