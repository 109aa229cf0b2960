"""The outline of a tree: its named states and its arrays, in words that tell two trees apart."""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

import jax

from wse import _render
from wse._numbers import short


def typed(leaf: Any) -> Any:
    """Shape, type and weakness of it: what JAX knows of an array, or what is a shape already.

    Raises:
        TypeError: no array.
    """
    return leaf if isinstance(leaf, jax.ShapeDtypeStruct) else jax.typeof(leaf)


def shape(leaf: Any) -> jax.ShapeDtypeStruct:
    """Shape and type of an array, or of what is a shape already.

    Raises:
        TypeError: no array.
    """
    found = typed(leaf)
    return jax.ShapeDtypeStruct(found.shape, found.dtype)


def check_array(kind: str, name: str, leaf: Any, remedy: str = "") -> None:
    """Refuse an entry of a tree that is no array, with what to do about it."""
    try:
        shape(leaf)
    except (TypeError, OverflowError) as error:
        tensor = type(leaf).__module__.partition(".")[0] == "torch"
        usual = (
            "pass x.numpy(force=True)" if tensor else "take it out of the tree, and close over it"
        )
        raise ValueError(
            f"{kind} {name!r} is {short(leaf)} of type {type(leaf).__name__}; it must be an array: "
            f"{remedy or usual}"
        ) from error


def paths(tree: Any) -> tuple[str, ...]:
    """The path of every array in a tree, its entries joined by dots.

    >>> paths({"hidden": {"w": 1.0, "b": 0.0}})
    ('hidden.b', 'hidden.w')
    """
    found = jax.tree_util.tree_flatten_with_path(tree)[0]
    return tuple(_path(entries) for entries, _ in found)


def outline(tree: Any) -> list[str]:
    """Name what a tree holds, in its order: optimizers' states by their class, arrays by shape.

    >>> import numpy as np, optax
    >>> outline(optax.sgd(0.1, momentum=0.9).init({"w": np.zeros(3, "f4")}))
    ['0: TraceState', '0.trace.w: float32[3]', '1: EmptyState']
    """
    return [f"{path}: {what}" if path else what for path, what in _entries(tree, ())]


def difference(found: Sequence[str], wanted: Sequence[str]) -> str:
    """The first entry by which one outline is not the other; nothing if they are alike.

    >>> difference(["w: float32[3]"], ["w: float32[2]"])
    "'w: float32[3]' instead of 'w: float32[2]'"
    """
    for here, there in zip_longest(found, wanted):
        if here != there:
            return f"{_quoted(here)} instead of {_quoted(there)}"
    return ""


def table(caption: str, tree: Any) -> str:
    """The arrays of a tree for a notebook: the first and the last of many."""
    known = map(shape, jax.tree.leaves(tree))
    rows = [
        (path or "it", str(x.dtype), " × ".join(map(str, x.shape)) or "a number", f"{x.size:,}")
        for path, x in zip(paths(tree), known, strict=True)
    ]
    return _render.html(caption, ("weights", "type", "shape", "numbers"), _render.few(rows))


def unlike(found: Any, wanted: Any) -> str:
    """The first thing by which one tree of arrays is not like another; nothing if it is.

    >>> unlike([1.0], (1.0,))
    'the tree PyTreeDef([*]) instead of PyTreeDef((*,))'
    """
    if said := difference(outline(found), outline(wanted)):
        return said
    here, there = map(jax.tree.structure, (found, wanted))
    return f"the tree {here} instead of {there}" if here != there else ""


def _path(entries: Sequence[Any]) -> str:
    names = [jax.tree_util.keystr((entry,), simple=True) for entry in entries]
    while len(names) > 1 and names[-1] in ("value", "raw_value", "get_value"):
        names.pop()
    return ".".join(names)


def _entries(tree: Any, above: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if _named(tree):
        yield ".".join(above), type(tree).__name__
    parts, structure = jax.tree.flatten(tree, is_leaf=lambda x: x is not tree and _named(x))
    names = paths(jax.tree.unflatten(structure, range(len(parts))))
    for name, part in zip(names, parts, strict=True):
        path = (*above, name) if name else above
        if _named(part):
            yield from _entries(part, path)
        else:
            yield ".".join(path), _said(part)


def _said(leaf: Any) -> str:
    try:
        found = shape(leaf)
    except TypeError:
        return type(leaf).__name__
    return f"{found.dtype}{list(found.shape)}"


def _named(node: Any) -> bool:
    """Whether this is a named tuple, as the states of optimizers are."""
    return isinstance(node, tuple) and getattr(node, "_fields", None) is not None


def _quoted(entry: str | None) -> str:
    return "nothing" if entry is None else repr(entry)
