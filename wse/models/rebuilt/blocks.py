"""Blocks of a transformer as functions of their parameters: any that `Transformer` describes."""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from wse.models.rebuilt.compressed import compressed, compressed_shapes
from wse.models.rebuilt.parts import Tree, leaf, linear, linear_shapes, norm, rotated
from wse.models.shapes.transformer import NORMS, Transformer, of_block


def gelu(x: Any) -> Any:
    """By the error function itself, which the machine has; JAX takes its complement."""
    return 0.5 * x * (1 + jax.lax.erf(x * 0.5**0.5))


FUNCTIONS: dict[str, Callable[[Any], Any]] = {  # by their names, or the beginning of these
    **dict.fromkeys(("relu", "reglu"), jax.nn.relu),
    **dict.fromkeys(("silu", "swi", "swish", "gated-silu"), jax.nn.silu),
    **dict.fromkeys(("gelu", "geglu", "gelu_python"), gelu),
    **dict.fromkeys(("gelu_", "gated-gelu"), jax.nn.gelu),
    **dict.fromkeys(("sigmoid", "glu"), jax.nn.sigmoid),
    **dict.fromkeys(("linear", "bilinear", "liglu"), lambda x: x),
    "tanh": jnp.tanh,
    "relu2": lambda x: jax.nn.relu(x) ** 2,
    "relu6": jax.nn.relu6,
    "leaky_relu": jax.nn.leaky_relu,
    "elu": jax.nn.elu,
    "selu": jax.nn.selu,
    "mish": jax.nn.mish,
    "hardtanh": jax.nn.hard_tanh,
    "hardswish": jax.nn.hard_swish,
    "quick_gelu": lambda x: x * jax.nn.sigmoid(1.702 * x),
    "squared_gelu": lambda x: gelu(x) ** 2,
}


def between(word: str) -> Callable[[Any], Any]:
    """The function of a word, by the longest name that it begins with."""
    near = [name for name in FUNCTIONS if word.startswith(name)]
    return FUNCTIONS[max(near, key=len, default="gelu")]


def norm_shapes(shape: Transformer) -> Tree:
    """Shapes of a norm over the features."""
    return {name: leaf(shape.hidden_size) for name in NORMS[shape.norm]}


def attention_shapes(shape: Transformer) -> Tree:
    """Shapes of queries, keys, values, and of the product after them."""
    h, bias = shape.hidden_size, shape.use_projection_bias_in_attention
    wide = (shape.queries, shape.keys) if shape.head_norms_wide else (shape.width,) * 2
    names, few = ("norm_q", "norm_k") if shape.head_norms else (), shape.compressed
    made = shape.num_heads * few.value if few else shape.queries
    own = {
        "attended": linear_shapes(made, h, shape.use_ffn_bias_in_attention),
        **({"sinks": leaf(shape.num_heads)} if shape.sinks else {}),
    }
    if few:
        return {**own, **compressed_shapes(shape, few)}
    return {
        **own,
        "q": linear_shapes(h, shape.queries, bias),
        "k": linear_shapes(h, shape.keys, bias and shape.key_bias),
        "v": linear_shapes(h, shape.keys, bias),
        **{name: {"scale": leaf(n)} for name, n in zip(names, wide, strict=False)},
    }


def attention(
    shape: Transformer,
    p: Tree,
    x: Float[Array, "b s h"],
    read: Array,
    bias: Any = None,
    keys: Any = None,
    place: int = 0,
) -> Array:
    """What every token of x takes from those of `read`; with keys, by chance not from all."""
    said = shape.manner

    def heads(name: str, y: Array) -> Array:
        y = linear(p[name], y)
        width = y.shape[-1] if shape.head_norms_wide else shape.width
        if shape.head_norms and name != "v":
            several = y.reshape(*y.shape[:2], -1, width)
            y = norm(p[f"norm_{name}"], several, said.norm_epsilon)
        return y.reshape(*y.shape[:2], -1, shape.width)

    if shape.compressed:
        q, k, v = compressed(shape, shape.compressed, p, x)
    else:
        q, k, v = (heads(name, y) for name, y in (("q", x), ("k", read), ("v", read)))
        if shape.position_embedding_type == "rotary":
            q, k = (rotated(y, said.rope_base, said.rope_width) for y in (q, k))
    scale = 1.0 if said.scores_plain else 1 / shape.width if said.scores_by_width else None
    causal = shape.is_causal and read is x
    drops = keys is not None and said.attention_dropout
    if not drops and not shape.sinks and q.shape[-1] == v.shape[-1]:
        y = jax.nn.dot_product_attention(q, k, v, bias=bias, scale=scale, is_causal=causal)
    else:
        groups = q.shape[2] // k.shape[2]
        k, v = (jnp.repeat(y, groups, axis=2) for y in (k, v))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * (scale or q.shape[-1] ** -0.5)
        scores = scores if bias is None else scores + bias
        seen = jnp.tri(q.shape[1], dtype=bool)
        scores = jnp.where(seen, scores, -1e30) if causal else scores
        if shape.sinks:
            sinks = jnp.broadcast_to(p["sinks"][:, None, None], (*scores.shape[:-1], 1))
            scores = jnp.concatenate([scores, sinks], axis=-1)
        chances = jax.nn.softmax(scores)[..., : k.shape[1]]
        chances = dropped(chances, said.attention_dropout, keys, place)
        y = jnp.einsum("bhqk,bkhd->bqhd", chances, v)
    return linear(p["attended"], y.reshape(*x.shape[:2], -1))


def dropped(x: Array, rate: float, keys: Any, place: int) -> Array:
    """Numbers left out by chance, the others raised so that the mean stays.

    What is left out of a sample depends on its own key alone, so that any number of systems leaves
    out the same.

    Args:
        x: numbers of a batch; samples lead.
        rate: the chance.
        keys: two words for each sample; None: nothing is left out.
        place: a number that no other place with these keys has.
    """
    if keys is None or not rate:
        return x

    def one(key: Any) -> Any:
        own = jax.random.fold_in(jax.random.wrap_key_data(key), place)
        return jax.random.bits(own, x.shape[1:], jnp.uint32)

    kept = jax.vmap(one)(keys) >= np.uint32(rate * 2**32)
    return jnp.where(kept, x / (1 - rate), 0.0)


def following(keys: Any) -> Any:
    """The keys of the next block, so that all blocks are one program; None stays."""
    if keys is None:
        return None

    def one(key: Any) -> Any:
        return jax.random.key_data(jax.random.fold_in(jax.random.wrap_key_data(key), 0))

    return jax.vmap(one)(keys)


def positions_bias(shape: Transformer, p: Tree, tokens: int) -> Any:
    """What positions add to the scores: slopes, or a table of distances; None: nothing."""
    kind = shape.position_embedding_type
    if kind not in ("alibi", "relative"):
        return None
    at = jnp.arange(tokens)
    away = at[None, :] - at[:, None]
    if kind == "alibi":
        return (-p.get("slopes", slopes(shape.num_heads))[:, None, None] * jnp.abs(away))[None]
    table = p["buckets"]
    rows = buckets(tokens, table.shape[0], shape.manner.bucket_reach, not shape.is_causal)
    return jnp.moveaxis(table[jnp.asarray(rows)[away + tokens - 1]], -1, 0)[None]


def slopes(heads: int) -> NDArray[np.float32]:
    """By how much a key's score falls with its distance, head by head: 2^(-8 i / n).

    Of n heads that are no power of two the first m, the largest power below, are as of m heads, and
    the rest every second one of 2 m. Source: Press et al., arXiv 2108.12409, and their code.

    >>> (1 / slopes(6)).tolist()
    [4.0, 16.0, 64.0, 256.0, 2.0, 8.0]
    """
    whole = 2 ** (heads.bit_length() - 1)
    near, between = (2.0 ** (-8.0 * np.arange(1, n + 1) / n) for n in (whole, 2 * whole))
    return np.concatenate([near, between[::2][: heads - whole]]).astype(np.float32)


def buckets(tokens: int, count: int, reach: int, both: bool) -> NDArray[np.int32]:
    """The bucket of each distance, from the last token's first to the first's last.

    Of n buckets half are one distance each; in the others distances grow as

        n/2 + log(2 d / n) / log(2 reach / n) n/2, at most n - 1

    Looking both ways, half of the buckets are for what stands behind. Source: Raffel et al., T5,
    arXiv 1910.10683, section 2.1; in single precision, as their code.

    Args:
        tokens: of the sequence.
        count: buckets.
        reach: the distance from where on all are the last one.
        both: whether tokens see those behind them.

    >>> buckets(5, 8, 16, both=True).tolist()
    [2, 2, 2, 1, 0, 5, 6, 6, 6]
    """
    away = np.arange(1 - tokens, tokens)
    both = both and count > 1
    one = count // 2 if both else count
    behind = one * (away > 0) if both else np.zeros_like(away)
    far, exact = np.abs(away) if both else np.maximum(0, -away), max(1, one // 2)
    ratio = np.log(np.maximum(far, 1).astype(np.float32) / exact)
    steps = ratio / np.float32(np.log(max(reach, exact + 1) / exact)) * (one - exact)
    wide = np.minimum(exact + steps.astype(np.int32), one - 1)
    return (behind + np.where(far < exact, far, wide)).astype(np.int32)


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
    more |= {"gate": linear_shapes(h, 1, False)} if shape.shared_gate else {}
    return {
        "router": linear_shapes(h, shape.experts, shape.router_bias),
        "experts": copies(shape.experts),
        **more,
    }


def feedforward(shape: Transformer, p: Tree, x: Float[Array, "b s h"], keys: Any = None) -> Array:
    """Two products or three; of the experts, those that the router picks."""
    if "router" not in p:
        return _products(shape, p, x, keys)

    def one(weights: Tree) -> Array:
        return _products(shape, weights, x)

    every = jax.vmap(one)(p["experts"])
    chances, picked = jax.lax.top_k(linear(p["router"], x), shape.experts_per_token)
    weights = jax.nn.softmax(chances)[..., None] * jax.nn.one_hot(picked, shape.experts)
    y = jnp.einsum("bske,ebsh->bsh", weights, every)
    if shape.shared_experts:
        shared = jnp.sum(jax.vmap(one)(p["shared"]), axis=0)
        y = y + (shared * jax.nn.sigmoid(linear(p["gate"], x)) if shape.shared_gate else shared)
    return y


def _products(shape: Transformer, p: Tree, x: Float[Array, "b s h"], keys: Any = None) -> Array:
    y = between(shape.nonlinearity)(linear(p["up"], x))
    y = y * linear(p["gate"], x) if shape.gated else y
    return linear(p["down"], dropped(y, shape.manner.inner_dropout, keys, 4))


def stack_shapes(shape: Transformer) -> list[Tree]:
    """Shapes of all blocks; the first one may begin without its norm."""
    first, *rest = (block_shapes(of_block(shape, i)) for i in range(shape.num_hidden_layers))
    if shape.first_unnormed:
        del first["norm_0"]
    return [first, *rest]


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
    shape: Transformer,
    p: Tree,
    x: Float[Array, "b s h"],
    bias: Any = None,
    read: Any = None,
    keys: Any = None,
) -> Array:
    """Attention and what follows, each added to what entered; side by side where parallel."""
    said = shape.manner

    def normed(i: int, y: Array) -> Array:
        return norm(p[f"norm_{i}"], y, said.norm_epsilon)

    def less(y: Array, place: int) -> Array:
        return dropped(y, said.dropout, keys, place)

    def crossed(y: Array) -> Array:
        other = attention(shape, p["cross"], y, read, keys=keys, place=5)
        return less(other, 6)

    def followed(y: Array) -> Array:
        return less(feedforward(shape, p["feedforward"], y, keys), 2)

    behind, missing = shape.norms_behind, "norm_0" not in p
    ends = (0, 1) if behind else (2, 3)
    entered = normed(0, x) if said.norm_first and not behind and not missing else x
    first = less(attention(shape, p["attention"], entered, entered, bias, keys), 1)
    if shape.parallel:
        return x + first + followed(entered if shape.norms == 1 else normed(1, x))
    if shape.ends_halves:
        first = normed(ends[0], first)
    x = x + (first * p["scale_0"] if shape.layer_scale else first)
    if not said.norm_first:
        x = normed(0, x)
        x = x if read is None else normed(2, x + crossed(x))
        return normed(1, x + followed(x))
    x = x if read is None else x + crossed(normed(2, x))
    second = followed(x if behind else normed(1, x))
    if shape.ends_halves:
        second = normed(ends[1], second)
    return x + (second * p["scale_1"] if shape.layer_scale else second)
