"""Nets of one's own: what they say of themselves is tried before they are trained."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float

from sciml.downscale.objective import skeleton
from sciml.models import REFINEMENTS
from sciml.models.archive import named
from sciml.models.wind.locally_scaled import LocallyScaled
from sciml.models.wind.refinement import Refinement, RefinementNet
from sciml.wind.prepare.coarsen import block_mean

NEAR = 1e-3  # of the largest value: what rounding may change
MOVED = 0.1  # of the weights, whose last layers often start at zero and would hide the others

Probe = tuple[Float[Array, "two seen y_lo x_lo"], Float[Array, "two statics y x"] | None]


def built(model: Refinement, seed: int, size: int) -> RefinementNet:
    """Return the net with fresh weights; one of one's own is tried on `size` fine points.

    Raises:
        TypeError: it is no net, or its configuration is not frozen.
        ValueError: it is not what its configuration says, or more than its weights.
    """
    inner = model.net if isinstance(model, LocallyScaled) else model
    if type(inner) in REFINEMENTS.values():
        return model.build(nnx.Rngs(seed))
    name = type(inner).__name__
    try:
        hash(model)
    except TypeError as error:
        raise TypeError(
            f"{name} is no frozen dataclass of plain values ({error}): make it one"
        ) from error
    net = model.build(nnx.Rngs(seed))
    if not isinstance(net, RefinementNet):
        raise TypeError(
            f"{name}.build returns a {type(net).__name__}; it must be a RefinementNet of "
            "sciml.models.wind.refinement"
        )
    structure, params, rest = nnx.split(net, nnx.Param, ...)
    if beside := [path for path, _ in named(rest)]:
        raise ValueError(
            f"{name} keeps {', '.join(beside)} beside its weights, and nothing else than weights "
            "is trained, kept or saved: take GroupNorm for BatchNorm, leave Dropout out, and make "
            "fixed numbers in __call__"
        )
    keys = iter(jax.random.split(jax.random.key(1), len(jax.tree.leaves(params)) + 4))
    moved = jax.tree.map(
        lambda leaf: leaf + MOVED * jax.random.normal(next(keys), leaf.shape, leaf.dtype), params
    )
    try_out(model, name, (structure, moved), size // model.factor, keys)
    return net


def try_out(model: Refinement, name: str, net: tuple[Any, Any], cells: int, keys: Any) -> None:
    """Refuse a net whose output is of another shape, place, sample or build than it should be."""
    side, count = model.factor * cells, model.wind + model.beside
    a, b, c = jax.random.normal(next(keys), (3, count, cells, cells))
    ground = (
        jax.random.normal(next(keys), (2, model.statics, side, side)) if model.statics else None
    )
    structure, params = net
    run = jax.jit(lambda seen: nnx.merge(structure, params)(seen, ground))
    two = jnp.stack([a, b])
    expected = (2, model.wind, side, side)
    if (shape := jax.eval_shape(run, two).shape) != expected:
        raise ValueError(
            f"{name} makes {shape} of {two.shape}; with its factor it must be {expected}"
        )
    found = run(two)
    least = NEAR * float(jnp.abs(found).max())

    def differs(one: Any, other: Any) -> bool:
        return bool(jnp.abs(one - other).max(initial=0.0) > least)

    if differs(found[0], run(jnp.stack([a, c]))[0]):
        raise ValueError(
            f"{name} mixes the samples of a batch; each must be refined by itself, since others "
            "stand beside it when it is applied: take means over its own axes alone"
        )
    corner = run(two.at[:, :, 0, 0].add(3.0)) - found
    far = [
        int(each.max(initial=-1)) // model.factor for each in np.nonzero(np.abs(corner) > least)[2:]
    ]
    if max(far) > model.reach:
        raise ValueError(
            f"{name}.reach is {model.reach}, and its points see coarse ones {max(far)} away, so "
            f"tiles would have seams: state at least {max(far)}, or as many as a domain has"
        )
    if model.conservative and differs(block_mean(found, model.factor), two[:, : model.wind]):
        raise ValueError(
            f"{name}.conservative is True, and its block means are not the coarse values: shift "
            "them by sciml.wind.restore_means, or state False"
        )
    same_again(model, name, net, lambda other: not differs(found, other), (two, ground))


def same_again(model: Refinement, name: str, net: tuple[Any, Any], same: Any, seen: Probe) -> None:
    """Refuse a net that is another one when it is built again, as for each prediction."""
    again, shapes = skeleton(model)
    run = jax.jit(lambda params, *seen: nnx.merge(again, params)(*seen))
    known = [[(path, leaf.shape) for path, leaf in named(each)] for each in (net[1], shapes)]
    if known[0] != known[1] or not same(run(net[1], *seen)):
        raise ValueError(
            f"{name}.build makes another net each time, and predictions would be those of another "
            "than was trained: let it depend on its configuration, and on rngs in weights alone"
        )
