"""What enters a module: the example that it is read with, and arrays like it later."""

# JAX and PyTorch annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wse._numbers import short


def entered(example: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The inputs that have a place, and those that have a name.

    Raises:
        ValueError: something is no tensor.
    """
    import torch  # pyright: ignore[reportMissingImports]

    named = dict(example) if isinstance(example, Mapping) else {}
    placed = () if named else example if isinstance(example, tuple) else (example,)
    for x in (*placed, *named.values()):
        if not isinstance(x, torch.Tensor):
            raise ValueError(
                f"example holds a {type(x).__name__}; it must be a tensor, a tuple of tensors or a "
                "mapping from names to tensors: set what else the module takes when it is built"
            )
    return placed, named


def call(apply: Callable[..., Any], params: Mapping[str, Any], given: Any) -> Any:
    """With inputs by their name, by their place, or with one alone."""
    if isinstance(given, Mapping):
        return apply(params, **given)
    return apply(params, *given) if isinstance(given, tuple | list) else apply(params, given)


def ordered(
    shapes: Any, order: Sequence[str], inputs: tuple[Any, ...], by_name: Mapping[str, Any]
) -> tuple[Any, ...]:
    """The inputs as the program takes them.

    Args:
        shapes: the example's, by place or by name.
        order: names, as the program has them.
        inputs: those that have a place.
        by_name: those that have a name.

    Raises:
        ValueError: others than the example's by number, name or shape, which might be spread over
            it; integers beyond 32 bits, where JAX has no others.
    """
    known: dict[Any, Any] = dict(shapes) if isinstance(shapes, Mapping) else {**enumerated(shapes)}
    given: dict[Any, Any] = {**enumerated(inputs), **by_name}
    found, wanted = ({k: tuple(np.shape(x)) for k, x in some.items()} for some in (given, known))
    if found != wanted:
        raise ValueError(
            f"inputs are {_told(found)}; the module was read with {_told(wanted)}, and holds for "
            "these shapes alone: pass such, or read it again with an example of the others"
        )
    for key, x in given.items():
        check_width(f"input {key!r}", x)
    return tuple(given[key] for key in (*range(len(inputs)), *order))


def check_width(name: str, array: Any) -> None:
    """Refuse integers that JAX would cut to 32 bits.

    Raises:
        ValueError: one that does not fit, where JAX is not told of 64.
    """
    wide = isinstance(array, np.ndarray) and array.dtype.kind in "iu" and array.size
    if not wide or jax.dtypes.canonicalize_dtype(array.dtype) == array.dtype:
        return
    held, most = jnp.iinfo(jax.dtypes.canonicalize_dtype(array.dtype)), array.max()
    if most > held.max or array.min() < held.min:
        found = most if most > held.max else array.min()
        raise ValueError(
            f"{name} holds {found}; JAX has integers of 32 bits unless it is told: "
            "jax.config.update('jax_enable_x64', True)"
        )


def enumerated(some: Sequence[Any]) -> dict[int, Any]:
    """By place."""
    return dict(enumerate(some))


def _told(shapes: Mapping[Any, tuple[int, ...]]) -> str:
    sizes = {name: "x".join(map(str, shape)) or "one number" for name, shape in shapes.items()}
    words = [f"{k} of {v}" if isinstance(k, str) else v for k, v in sizes.items()]
    return ", ".join(words) or "none"


def check_complete(params: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Refuse parameters without one that the module has.

    Raises:
        ValueError: the first that is missing.
    """
    for name in known:
        if name not in params:
            raise ValueError(
                f"params lack {short(name)}; they must have every name of the module: pass those "
                "that wse.from_torch gave, changed"
            )


def squared(found: Any, wanted: Any) -> Any:
    """The mean squared error.

    Raises:
        ValueError: arrays of different shapes, of which one would be spread over the other.
    """
    if np.shape(found) != np.shape(wanted):
        raise ValueError(
            f"the module gives {np.shape(found)}, and is compared with {np.shape(wanted)}; both "
            "must have one shape: reshape the target, or pass loss="
        )
    return jnp.mean((found - wanted) ** 2)
