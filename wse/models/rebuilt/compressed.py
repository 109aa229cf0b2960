"""Queries, keys and values that are made of few numbers per token, as functions."""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from wse.models.rebuilt.parts import Tree, leaf, linear, linear_shapes, norm, rotated
from wse.models.shapes.stack import Compressed, Transformer


def compressed_shapes(shape: Transformer, few: Compressed) -> Tree:
    """Shapes of both products of the queries, of the keys with the values, and of their norms."""
    h, heads, bias = shape.hidden_size, shape.num_heads, shape.use_projection_bias_in_attention
    own: Tree = {"q": linear_shapes(few.queries or h, heads * few.width, False)}
    if few.queries:
        own |= {
            "q_few": linear_shapes(h, few.queries, bias),
            "norm_q": {"scale": leaf(few.queries)},
        }
    return {
        **own,
        "kv_few": linear_shapes(h, few.made, bias),
        "norm_kv": {"scale": leaf(few.keys)},
        "kv": linear_shapes(few.keys, heads * (few.plain + few.value), False),
    }


def compressed(
    shape: Transformer, few: Compressed, p: Tree, x: Float[Array, "b s h"]
) -> tuple[Any, Any, Any]:
    """Queries, keys and values of all heads; the turned features of a key are of all heads."""
    said = shape.manner

    def heads(y: Any) -> Any:
        return y.reshape(*y.shape[:2], shape.num_heads, -1)

    own = norm(p["norm_q"], linear(p["q_few"], x), said.norm_epsilon) if few.queries else x
    q = rotated(heads(linear(p["q"], own)), said.rope_base, few.turned)
    both = linear(p["kv_few"], x)
    kept = norm(p["norm_kv"], both[..., : few.keys], said.norm_epsilon)
    turned = rotated(both[..., None, few.keys :], said.rope_base)
    plain, v = jnp.split(heads(linear(p["kv"], kept)), [few.plain], axis=-1)
    turned = jnp.broadcast_to(turned, (*plain.shape[:-1], few.turned))
    return q, jnp.concatenate([turned, plain], axis=-1), v
