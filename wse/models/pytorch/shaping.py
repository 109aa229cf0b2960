"""ATen's operations that move numbers about: views, joins, cuts, indices, padding."""

# The arguments are ATen's, whether JAX needs them or not.
# ruff: noqa: ARG001, ARG005
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false

from typing import Any

import jax
import jax.numpy as jnp

from wse.models.pytorch.table import Table, named

END = 2**62  # from there on a slice goes to its end


def expand(x: Any, size: Any, **_: Any) -> Any:
    """X repeated along axes of one; -1 leaves an axis."""
    lead = len(size) - x.ndim
    sides = [x.shape[i - lead] if side == -1 else side for i, side in enumerate(size)]
    return jnp.broadcast_to(x, tuple(sides))


def squeeze(x: Any, dim: Any = None) -> Any:
    """X without axes of one."""
    axes = range(x.ndim) if dim is None else dim if isinstance(dim, list | tuple) else [dim]
    gone = tuple(axis for axis in axes if x.ndim and x.shape[axis] == 1)
    return jnp.squeeze(x, gone)


def window(x: Any, dim: int, start: Any, end: Any, step: int) -> tuple[Any, ...]:
    """A slice along one axis, as NumPy writes it."""
    last = None if end is None or end >= END else end
    cut: list[Any] = [slice(None)] * x.ndim
    cut[dim] = slice(start, last, step)
    return tuple(cut)


def slice_scatter(
    x: Any, source: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Any:
    """X with another in place of a slice."""
    return x.at[window(x, dim, start, end, step)].set(source)


def split_with_sizes(x: Any, sizes: Any, dim: int = 0) -> Any:
    """Pieces of given sizes along an axis."""
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes) - 1)]
    return tuple(jnp.split(x, ends, axis=dim))


def split(x: Any, size: Any, dim: int = 0) -> Any:
    """Pieces of one size along an axis; the last may be shorter."""
    if not isinstance(size, int):
        return split_with_sizes(x, size, dim)
    return tuple(jnp.split(x, range(size, x.shape[dim], size), axis=dim))


def index(x: Any, indices: Any) -> Any:
    """X at arrays of places; None keeps an axis."""
    return x[tuple(slice(None) if at is None else at for at in indices)]


def index_put(x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """X with values at arrays of places or where a mask is true, or added there."""
    lead, given = len(indices) - 1, indices[-1]
    if given is not None and given.dtype == bool and indices[:-1] == [None] * lead:
        mask = given.reshape(*given.shape, *(1,) * (x.ndim - lead - given.ndim))
        # One for all that are true.
        if not accumulate and jnp.ndim(values) < x.ndim - lead - given.ndim + 1:
            return jnp.where(mask, values, x)
    at = x.at[tuple(slice(None) if one is None else one for one in indices)]
    return at.add(values) if accumulate else at.set(values)


def along(x: Any, dim: int, at: Any) -> tuple[Any, ...]:
    """Places of all axes, of which one is given."""
    grid = [*jnp.indices(at.shape, sparse=True)]
    grid[dim] = at
    return tuple(grid)


def scatter(x: Any, dim: int, at: Any, source: Any, reduce: str | None = None) -> Any:
    """X with a source at places along one axis, or joined with it there."""
    if jnp.ndim(source):  # as much of it as there are places
        source = source[tuple(slice(side) for side in at.shape)]
    place = x.at[along(x, dim, at)]
    ways = {None: place.set, "add": place.add, "multiply": place.multiply}
    return ways[reduce](source)


def scatter_reduce(
    x: Any, dim: int, at: Any, source: Any, reduce: str, include_self: bool = True
) -> Any:
    """X joined with a source at places along one axis: sum, product, mean or extreme."""
    source = source[tuple(slice(side) for side in at.shape)]
    places = along(x, dim, at)
    if not include_self:  # what is joined starts from what changes nothing
        nothing = {"prod": 1, "amax": -jnp.inf, "amin": jnp.inf}.get(reduce, 0)
        x = jnp.where(jnp.zeros(x.shape, bool).at[places].set(True), nothing, x)
    if reduce == "prod":
        return x.at[places].multiply(source)
    if reduce in ("sum", "mean"):
        total = x.at[places].add(source)
        count = jnp.full(x.shape, int(include_self)).at[places].add(1)
        return total / jnp.maximum(count, 1) if reduce == "mean" else total
    # All that are extreme have the same share of the gradient.
    fixed, others = jax.lax.stop_gradient(x), jax.lax.stop_gradient(source)
    best = fixed.at[places].max(others) if reduce == "amax" else fixed.at[places].min(others)
    own, theirs = x == best, source == best[places]
    count = own.astype(int).at[places].add(theirs.astype(int))
    return jnp.where(own, x, 0).at[places].add(jnp.where(theirs, source, 0)) / count


def embedding(
    table: Any, at: Any, padding: int = -1, by_frequency: bool = False, sparse: bool = False
) -> Any:
    """Rows of a table; no gradient reaches the row of the padding.

    Raises:
        ValueError: gradients are divided by how often a row is taken.
    """
    if by_frequency:
        raise ValueError("an embedding has scale_grad_by_freq; it is not mapped: set it to False")
    rows = table[at]
    if padding < 0:
        return rows
    return jnp.where((at == padding)[..., None], jax.lax.stop_gradient(rows), rows)


def embedding_bag(
    table: Any,
    at: Any,
    starts: Any,
    by_frequency: bool = False,
    mode: int = 0,
    sparse: bool = False,
    weights: Any = None,
    ended: bool = False,
    padding: int = -1,
) -> Any:
    """Rows of a table from each start to the next: their sum (mode 0), mean (1) or largest (2).

    Raises:
        ValueError: gradients are divided by how often a row is taken.
    """
    count = starts.shape[0] - bool(ended)
    bag = jnp.searchsorted(starts[:count], jnp.arange(at.shape[0]), side="right") - 1
    own = (at != padding)[:, None]
    rows = embedding(table, at, padding, by_frequency)
    if mode == 2:
        most = jax.ops.segment_max(jnp.where(own, rows, -jnp.inf), bag, count)
        return jnp.where(most > -jnp.inf, most, 0), None, None, None
    rows = jnp.where(own, rows, 0)
    rows = rows if weights is None else rows * weights[:, None]
    total = jax.ops.segment_sum(rows, bag, count)
    met = jax.ops.segment_sum(own.astype(table.dtype), bag, count)
    return (total / jnp.maximum(met, 1) if mode else total), None, None, None


def pad(x: Any, widths: Any, value: Any = 0.0, mode: str = "constant") -> Any:
    """X with a border; widths begin with the last axis. Negative ones cut."""
    pairs = [(0, 0)] * x.ndim
    for i in range(len(widths) // 2):
        low, high = widths[2 * i : 2 * i + 2]
        axis = x.ndim - 1 - i
        x = x[window(x, axis, max(-low, 0), x.shape[axis] - max(-high, 0), 1)]
        pairs[axis] = (max(low, 0), max(high, 0))
    more = {"constant_values": value} if mode == "constant" else {}
    return jnp.pad(x, pairs, mode=mode, **more)


def unfold(x: Any, dim: int, size: int, step: int) -> Any:
    """Windows along an axis, as a last axis."""
    starts = jnp.arange(0, x.shape[dim] - size + 1, step)
    places = starts[:, None] + jnp.arange(size)
    axis = dim % x.ndim
    return jnp.moveaxis(jnp.take(x, places, axis=axis), axis + 1, -1)


def pixel_shuffle(x: Any, factor: int) -> Any:
    """Channels into places."""
    *lead, c, h, w = x.shape
    y = x.reshape(*lead, c // factor**2, factor, factor, h, w)
    n = len(lead)
    y = jnp.transpose(y, (*range(n + 1), n + 3, n + 1, n + 4, n + 2))
    return y.reshape(*lead, c // factor**2, h * factor, w * factor)


def as_strided(x: Any, size: Any, stride: Any, offset: Any = 0) -> Any:
    """Numbers of x by their place in memory, x lying row by row."""
    return x.reshape(-1)[_strided(size, stride, offset)]


def _strided(size: Any, stride: Any, offset: Any) -> Any:
    places = jnp.asarray(offset or 0)
    for side, step in zip(size, stride, strict=True):
        places = places[..., None] + jnp.arange(side) * step
    return places


def as_strided_scatter(x: Any, source: Any, size: Any, stride: Any, offset: Any = 0) -> Any:
    """X with others at such places."""
    places = _strided(size, stride, offset)
    return x.reshape(-1).at[places].set(source).reshape(x.shape)


def diagonal_scatter(x: Any, source: Any, offset: int = 0, a: int = 0, b: int = 1) -> Any:
    """X with another diagonal."""
    places = jnp.diagonal(jnp.arange(x.size).reshape(x.shape), offset, a, b)
    return x.reshape(-1).at[places].set(source).reshape(x.shape)


def masked_scatter(x: Any, mask: Any, source: Any) -> Any:
    """X with the next of a source wherever a mask is true."""
    place = jnp.cumsum(jnp.broadcast_to(mask, x.shape).reshape(-1)) - 1
    return jnp.where(mask, source.reshape(-1)[jnp.maximum(place, 0)].reshape(x.shape), x)


SHAPING: Table = {
    **named(expand, squeeze, slice_scatter, split_with_sizes, split, scatter),
    **named(scatter_reduce, embedding),
    **dict.fromkeys(("_embedding_bag", "_embedding_bag_forward_only"), embedding_bag),
    **named(unfold, pixel_shuffle, as_strided, as_strided_scatter),
    **named(diagonal_scatter, masked_scatter),
    **dict.fromkeys(
        ("view", "reshape", "_unsafe_view", "view_copy"),
        lambda x, size: jnp.reshape(x, tuple(size)),
    ),
    "permute": lambda x, axes: jnp.transpose(x, axes),
    "transpose": jnp.swapaxes,
    **dict.fromkeys(("t", "numpy_T"), jnp.transpose),
    "movedim": jnp.moveaxis,
    "flatten": lambda x, a=0, b=-1: x.reshape(*x.shape[:a], -1, *x.shape[b % x.ndim + 1 :]),
    "unsqueeze": jnp.expand_dims,
    "cat": lambda xs, dim=0: jnp.concatenate([x for x in xs if x.shape != (0,)], axis=dim),
    "stack": lambda xs, dim=0: jnp.stack(xs, axis=dim),
    "slice": lambda x, dim=0, start=None, end=None, step=1: x[window(x, dim, start, end, step)],
    **dict.fromkeys(("select", "index_select"), lambda x, dim, at: jnp.take(x, at, axis=dim)),
    "select_scatter": lambda x, source, dim, at: jnp.moveaxis(
        jnp.moveaxis(x, dim, 0).at[at].set(source), 0, dim
    ),
    "chunk": lambda x, n, dim=0: split(x, -(-x.shape[dim] // n), dim),
    "unbind": lambda x, dim=0: tuple(jnp.moveaxis(x, dim, 0)),
    "repeat": jnp.tile,
    "repeat_interleave": lambda counts, output_size=None: jnp.repeat(
        jnp.arange(counts.shape[0]), counts, total_repeat_length=output_size
    ),
    "flip": jnp.flip,
    "roll": lambda x, by, dim=None: jnp.roll(x, tuple(by), tuple(dim) if dim else None),
    **dict.fromkeys(("index", "_unsafe_index"), index),
    **dict.fromkeys(("index_put", "_unsafe_index_put"), index_put),
    "gather": lambda x, dim, at, sparse_grad=False: x[along(x, dim, at)],
    "scatter_add": lambda x, dim, at, source: x.at[along(x, dim, at)].add(source),
    "index_add": lambda x, dim, at, y: jnp.moveaxis(
        jnp.moveaxis(x, dim, 0).at[at].add(jnp.moveaxis(y, dim, 0)), 0, dim
    ),
    "constant_pad_nd": pad,
    "pad": lambda x, widths, mode="constant", value=0.0: pad(
        x, widths, value or 0.0, {"replicate": "edge", "circular": "wrap"}.get(mode, mode)
    ),
    **{f"reflection_pad{n}d": lambda x, w: pad(x, w, mode="reflect") for n in (1, 2, 3)},
    **{f"replication_pad{n}d": lambda x, w: pad(x, w, mode="edge") for n in (1, 2, 3)},
    "tril": lambda x, diagonal=0: jnp.tril(x, diagonal),
    "triu": lambda x, diagonal=0: jnp.triu(x, diagonal),
    "diagonal": lambda x, offset=0, a=0, b=1: jnp.diagonal(x, offset, a, b),
}
