"""First weights of a model, by the names of its parameters."""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from math import prod
from typing import Any

import jax
import jax.numpy as jnp

from wse.models.rebuilt.blocks import slopes
from wse.models.shapes.manner import Manner
from wse.models.trainable.which import Named

ZERO = ("bias", "shift", "head_bias")
TABLES = ("words", "places", "types", "class")
HEADS = ("classes", "boxes")  # of a detector
RARE = 0.01  # sourced: Lin et al., arXiv 1708.02002: first chance that an anchor has an object
BLOCKS = ("blocks", "encoder", "decoder")
ENDS = ("attended", "down")  # products that end the halves of a block


def first(shapes: Any, key: Any, said: Manner | None, blocks: int = 1) -> Any:
    """Weights to begin with: norms change nothing, biases are 0, all else is normal.

    No weight is beyond two spreads. Without a manner, as of convolutions, the spread is that of He
    et al., arXiv 1502.01852: the root of two over the numbers that enter.

    Args:
        shapes: a tree of shapes.
        key: of chance; each weight has one of its own.
        said: spreads; None: by what enters.
        blocks: of a transformer.
    """
    paths, structure = jax.tree.flatten_with_path(shapes)
    made = [
        _one(
            [str(getattr(x, "key", "")) for x in path],
            shape,
            jax.random.fold_in(key, i),
            said,
            blocks,
        )
        for i, (path, shape) in enumerate(paths)
    ]
    return jax.tree.unflatten(structure, made)


def rates(found: Named, params: Any) -> Any:
    """Factors of the learning rate, a tree as of the parameters; 0: of no product of a block.

    Args:
        found: the model.
        params: its parameters, as `wse.models.trainable.module.Module` has them.
    """
    shape = found.shape
    within, out = shape.manner.rates if shape else (0.0, 0.0)

    def one(path: Any, _: Any) -> float:
        names = [str(getattr(x, "key", "")) for x in path]
        if not {*BLOCKS} & {*names} or "kernel" not in names:
            return 0.0
        return out if "down" in names else within

    return jax.tree.map_with_path(one, params)


def _one(names: list[str], leaf: Any, key: Any, said: Manner | None, blocks: int) -> Any:
    name = names[-1]
    if names[-2:] == ["last", "bias"] and names[0] == "classes":
        return jnp.full(leaf.shape, jnp.log(RARE / (1 - RARE)))
    if name in ZERO:
        return jnp.zeros(leaf.shape)
    if name in ("scale", "gain"):
        return jnp.ones(leaf.shape)
    if said and name in ("scale_0", "scale_1"):
        return jnp.full(leaf.shape, said.layer_scale)
    if name == "slopes":
        return jnp.asarray(slopes(leaf.size))
    return _spread(names, leaf, said, blocks) * jax.random.truncated_normal(
        key, -2.0, 2.0, leaf.shape
    )


def _spread(names: list[str], leaf: Any, said: Manner | None, blocks: int) -> float:
    if said is None and names[0] in HEADS and names[-2] == "last":
        return 0.01  # sourced: the same
    if said is None:
        return (2 / prod(leaf.shape[:-1])) ** 0.5
    if names[-1] in TABLES:
        return said.embedding_std
    if "q" in names and said.query_std:
        return said.query_std
    if names[0] in BLOCKS and names[-2] in ENDS:
        out = said.output_std or said.first_std * (2 * blocks) ** -0.5
        return (said.down_std or out) if names[-2] == "down" else out
    return said.first_std
