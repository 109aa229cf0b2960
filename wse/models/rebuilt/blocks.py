"""Blocks of a transformer as functions of their parameters: any that `Transformer` describes."""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from wse.models.shapes.transformer import Transformer

Tree = dict[str, Any]
FUNCTIONS: dict[str, Callable[[Any], Any]] = {  # by the beginning of their names; others: GELU
    "relu": jax.nn.relu,
    "reglu": jax.nn.relu,
    "silu": jax.nn.silu,
    "swi": jax.nn.silu,
    "gated-silu": jax.nn.silu,
    "tanh": jnp.tanh,
    "sigmoid": jax.nn.sigmoid,
    "glu": jax.nn.sigmoid,
}
UNCHANGED = ("linear", "bilinear", "liglu")


def leaf(*shape: int) -> jax.ShapeDtypeStruct:
    """The shape of a parameter; no number is made."""
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def linear_shapes(n: int, m: int, bias: bool = True) -> Tree:
    """Shapes of a dense layer."""
    return {"kernel": leaf(n, m), **({"bias": leaf(m)} if bias else {})}


def norm_shapes(shape: Transformer) -> Tree:
    """Shapes of a norm over the features."""
    h = shape.hidden_size
    return {"scale": leaf(h), **({"shift": leaf(h)} if shape.norm == "layer" else {})}


def linear(p: Tree, x: Float[Array, "*batch n"]) -> Array:
    """Kernel and bias."""
    y = x @ p["kernel"]
    return y + p["bias"] if "bias" in p else y


def norm(p: Tree, x: Float[Array, "*batch n"]) -> Array:
    """Mean out, if there is a shift; spread to one; scale."""
    if "shift" in p or not p:
        x = x - jnp.mean(x, axis=-1, keepdims=True)
    y = x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-5)
    y = y * p["scale"] if "scale" in p else y
    return y + p["shift"] if "shift" in p else y


def attention_shapes(shape: Transformer) -> Tree:
    """Shapes of queries, keys, values, and of the product after them."""
    h, bias = shape.hidden_size, shape.use_projection_bias_in_attention
    width = {"scale": leaf(shape.width)}
    return {
        "q": linear_shapes(h, shape.queries, bias),
        "k": linear_shapes(h, shape.keys, bias),
        "v": linear_shapes(h, shape.keys, bias),
        "attended": linear_shapes(shape.queries, h, shape.use_ffn_bias_in_attention),
        **({"norm_q": width, "norm_k": width} if shape.head_norms else {}),
    }


def attention(
    shape: Transformer, p: Tree, x: Float[Array, "b s h"], read: Array, bias: Any = None
) -> Array:
    """What every token of x takes from those of `read`."""
    parts = [linear(p[name], y) for name, y in (("q", x), ("k", read), ("v", read))]
    q, k, v = (y.reshape(*y.shape[:2], -1, shape.width) for y in parts)
    if shape.head_norms:
        q, k = norm(p["norm_q"], q), norm(p["norm_k"], k)
    if shape.position_embedding_type == "rotary":
        q, k = rotated(q), rotated(k)
    causal = shape.is_causal and read is x
    y = jax.nn.dot_product_attention(q, k, v, bias=bias, is_causal=causal)
    return linear(p["attended"], y.reshape(*x.shape[:2], shape.queries))


def rotated(x: Float[Array, "b s heads width"]) -> Array:
    """Pairs of features turned by an angle that grows with the position."""
    half = x.shape[-1] // 2
    turns = 10000.0 ** (-jnp.arange(half) / half)
    angles = (jnp.arange(x.shape[1])[:, None] * turns)[:, None, :]
    first, second, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    pair = [first * cos - second * sin, second * cos + first * sin, rest]
    return jnp.concatenate(pair, axis=-1)


def positions_bias(shape: Transformer, p: Tree, tokens: int) -> Any:
    """What positions add to the scores: slopes, or a table of distances; None: nothing."""
    kind = shape.position_embedding_type
    if kind not in ("alibi", "relative"):
        return None
    at = jnp.arange(tokens)
    away = jnp.abs(at[None, :] - at[:, None])
    if kind == "alibi":
        slopes = p.get(
            "slopes", 2.0 ** (-8.0 * jnp.arange(1, shape.num_heads + 1) / shape.num_heads)
        )
        return (-slopes[:, None, None] * away)[None]
    table = p["buckets"]
    return jnp.moveaxis(table[jnp.minimum(away, table.shape[0] - 1)], -1, 0)[None]


def feedforward_shapes(shape: Transformer) -> Tree:
    """Shapes of what follows attention, once or of every expert."""
    h, f, bias = shape.hidden_size, shape.filters, shape.use_ffn_bias
    names = {"up": (h, f), "down": (f, h), **({"gate": (h, f)} if shape.gated else {})}
    one = {name: linear_shapes(n, m, bias) for name, (n, m) in names.items()}
    if not shape.experts:
        return one

    def copies(count: int) -> Tree:
        def several(x: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
            return leaf(count, *x.shape)

        return jax.tree.map(several, one)

    more = {"shared": copies(shape.shared_experts)} if shape.shared_experts else {}
    return {
        "router": linear_shapes(h, shape.experts, False),
        "experts": copies(shape.experts),
        **more,
    }


def feedforward(shape: Transformer, p: Tree, x: Float[Array, "b s h"]) -> Array:
    """Two products or three; of the experts, those that the router picks."""
    if not shape.experts:
        return _products(shape, p, x)

    def one(weights: Tree) -> Array:
        return _products(shape, weights, x)

    every = jax.vmap(one)(p["experts"])
    chances, picked = jax.lax.top_k(linear(p["router"], x), shape.experts_per_token)
    weights = jax.nn.softmax(chances)[..., None] * jax.nn.one_hot(picked, shape.experts)
    y = jnp.einsum("bske,ebsh->bsh", weights, every)
    if shape.shared_experts:
        y = y + jnp.sum(jax.vmap(one)(p["shared"]), axis=0)
    return y


def _products(shape: Transformer, p: Tree, x: Float[Array, "b s h"]) -> Array:
    near = [name for name in FUNCTIONS if shape.nonlinearity.startswith(name)]
    function = FUNCTIONS[max(near, key=len)] if near else jax.nn.gelu
    y = linear(p["up"], x)
    y = y if shape.nonlinearity in UNCHANGED else function(y)
    return linear(p["down"], y * linear(p["gate"], x) if shape.gated else y)


def block_shapes(shape: Transformer, cross: bool = False) -> Tree:
    """Shapes of a block; with a second attention, on another sequence, where `cross`."""
    names = [f"norm_{i}" for i in range(shape.norms + cross)]
    scale = {"scale_0": leaf(shape.hidden_size), "scale_1": leaf(shape.hidden_size)}
    return {
        **{name: norm_shapes(shape) for name in names},
        "attention": attention_shapes(shape),
        "feedforward": feedforward_shapes(shape),
        **({"cross": attention_shapes(shape)} if cross else {}),
        **(scale if shape.layer_scale else {}),
    }


def block(
    shape: Transformer, p: Tree, x: Float[Array, "b s h"], bias: Any = None, read: Any = None
) -> Array:
    """Attention and what follows, each added to what entered; side by side where parallel."""
    normed = norm(p["norm_0"], x)
    first = attention(shape, p["attention"], normed, normed, bias)
    if shape.parallel:
        second = normed if shape.norms == 1 else norm(p["norm_1"], x)
        return x + first + feedforward(shape, p["feedforward"], second)
    if shape.norms == 4:
        first = norm(p["norm_2"], first)
    x = x + (first * p["scale_0"] if shape.layer_scale else first)
    if read is not None:
        x = x + attention(shape, p["cross"], norm(p["norm_2"], x), read)
    second = feedforward(shape, p["feedforward"], norm(p["norm_1"], x))
    if shape.norms == 4:
        second = norm(p["norm_3"], second)
    return x + (second * p["scale_1"] if shape.layer_scale else second)
