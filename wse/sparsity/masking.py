"""Masks beside an optimizer, as one optax transformation."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false
# pyright: reportUnknownLambdaType=false

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Int

from wse.sparsity.blocks import block_mask, chosen_rows
from wse.sparsity.fixed import Magnitude, Static
from wse.sparsity.method import Method, Renewal, largest


class SparseState(NamedTuple):
    """The state of a masked optimizer.

    Attributes:
        step: how many updates were made.
        masks: the tree of parameters; where a weight may be other than zero. Of a parameter that
            is not sparse, one True.
        inner: the optimizer's own state.

    >>> import jax.numpy as jnp
    >>> import optax
    >>> from wse.sparsity import Rule, Static, masked
    >>> method = Static(0.75, Rule(keep_last=False))
    >>> state = masked(optax.sgd(0.1), method).init({"w": jnp.ones((4, 4))})
    >>> int(state.masks["w"].sum())
    4
    """

    step: Int[Array, ""]
    masks: Any
    inner: Any


def masked(inner: Any, method: Method) -> optax.GradientTransformation:
    """Keep weights outside the masks at exactly zero, whatever the optimizer does.

    The optimizer sees g ⊙ m for the gradient g and the mask m. Weights w become
    (w + u) ⊙ m' for its update u and the next mask m', and so do its moments: what leaves the mask
    leaves no trace. Start from `sparsified(params, method)`.

    Args:
        inner: any optax optimizer.
        method: how masks are chosen.

    Returns:
        An optax transformation with the state `SparseState`.

    >>> import jax.numpy as jnp
    >>> import optax
    >>> from wse.sparsity import Rule, Static, density, masked, sparsified
    >>> method = Static(0.75, Rule(keep_last=False))
    >>> weights = sparsified({"w": jnp.ones((8, 8))}, method)
    >>> state = masked(optax.sgd(0.1), method).init(weights)
    >>> density(weights, state).density.values.tolist()
    [0.25]
    """

    def init(params: Any) -> SparseState:
        masks = first_masks(params, method)
        return SparseState(jnp.zeros((), jnp.int32), masks, inner.init(params))

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, SparseState]:
        if params is None:
            raise ValueError(
                f"params is {params}; masks need the weights: call update(gradient, state, params)"
            )
        step, old = state.step + 1, state.masks
        change, held = inner.update(jax.tree.map(_within, old, updates), state.inner, params)
        after = jax.tree.map(lambda m, w, u: _within(m, w + u), old, params, change)
        new = _renewed(method, step, old, after, updates)
        # w − w is exactly zero, and weights that come were zero.
        change = jax.tree.map(
            lambda a, b, u, w: jnp.where(a & b, u, -w).astype(u.dtype), old, new, change, params
        )
        held = optax.tree_utils.tree_map_params(inner, _moment, held, new)
        return change, SparseState(step, new, held)

    return optax.GradientTransformation(init, update)


def sparsified(params: Any, method: Method) -> Any:
    """The parameters with zeros outside the first masks of a method; see its `rescales`.

    >>> import numpy as np
    >>> from wse.sparsity import Static
    >>> weights = sparsified({'a': np.ones((8, 8)), 'b': np.ones((8, 2))}, Static(0.75))
    >>> int((weights['a'] != 0).sum())
    16
    """
    return _sparsified(params, method)


@partial(jax.jit, static_argnums=1)
def _sparsified(params: Any, method: Method) -> Any:
    def kept(mask: Any, weight: Any) -> Any:
        found = _within(mask, weight)
        if not method.rescales or mask.ndim == 0:
            return found
        return found * jnp.sqrt(mask.size / jnp.count_nonzero(mask)).astype(found.dtype)

    return jax.tree.map(kept, first_masks(params, method), params)


def first_masks(params: Any, method: Method) -> Any:
    """The masks before training: for each parameter its own, or one True."""
    leaves, structure = jax.tree.flatten(params)
    if isinstance(method, Static | Magnitude) and method.block > 1:
        masks = [
            jnp.ones((), bool) if rows is None else block_mask(rows, np.shape(leaf), method.block)
            for leaf, rows in zip(leaves, first_rows(params, method), strict=True)
        ]
        return jax.tree.unflatten(structure, masks)
    counts = method.rule.counts(params, method.initial)
    masks = [
        jnp.ones((), bool)
        if count is None
        else largest(method.score(jnp.asarray(leaf), _key(method, 0, place)), count)
        for place, (leaf, count) in enumerate(zip(leaves, counts, strict=True))
    ]
    return jax.tree.unflatten(structure, masks)


def first_rows(params: Any, method: Static | Magnitude) -> list[Any]:
    """The blocks that a mask in blocks keeps: for each leaf its `chosen_rows`, or None."""
    leaves = jax.tree.leaves(params)
    counts = method.rule.counts(params, method.initial)
    return [
        None
        if count is None
        else chosen_rows(
            method.score(jnp.asarray(leaf), _key(method, 0, place)),
            method.block,
            count / np.size(leaf),
        )
        for place, (leaf, count) in enumerate(zip(leaves, counts, strict=True))
    ]


def _renewed(method: Method, step: Any, masks: Any, weights: Any, gradient: Any) -> Any:
    """The masks after an update; each by itself, so that none waits for another's gradient."""
    due = method.due(step)
    if due is False:
        return masks
    leaves, structure = jax.tree.flatten(weights)
    first = method.rule.counts(weights, method.initial)
    last = method.rule.counts(weights, method.sparsity)

    def renewed(place: int, mask: Any, weight: Any, slope: Any) -> Any:
        start, end = first[place], last[place]
        if start is None or end is None:
            return mask

        def renew(mask: Any, weight: Any, slope: Any) -> Any:
            key = _key(method, step, place)
            return method.renew(Renewal(mask, weight, slope, key, start, end, step))

        return jax.lax.cond(due, renew, lambda mask, *_: mask, mask, weight, slope)

    slopes = jax.tree.leaves(gradient)
    found = map(renewed, range(len(leaves)), jax.tree.leaves(masks), leaves, slopes)
    return jax.tree.unflatten(structure, found)


def _key(method: Method, step: Any, place: int) -> Any:
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(method.seed), step), place)


def _within(mask: Any, values: Any) -> Any:
    return jnp.where(mask, values, jnp.zeros((), jnp.result_type(values)))


def _moment(value: Any, mask: Any) -> Any:
    """A moment within the mask; what an optimizer keeps in another shape stays."""
    return _within(mask, value) if jnp.shape(value) == jnp.shape(mask) else value
