"""Transformers in closed form: GPT, BERT, Llama, with experts or without.

Of a block with hidden size h, filter size f, sequence s and as many key heads as heads,

    parameters  4 h^2 + 2 h f           (3 h f where gated), and biases and norms
    multiplies  s (4 h^2 + 2 h f) + 2 s^2 h

The scores of attention count in full, causal or not, as in 6 N + 12 L h s FLOPs per token; where
tokens meet a window of w keys alone, 2 s min(w, s) h. What waits for the backward pass is what
products read: elementwise functions are computed again.
"""

from dataclasses import replace
from functools import partial
from typing import Any

from wse.models.shapes.stack import NORMS, Compressed, Transformer
from wse.models.shapes.workload import Layer, Workload

ATTENTION: dict[str, Any] = {"kind": "attention", "sparsifiable": False}


def transformer(name: str, shape: Transformer) -> Workload:
    """The layers of a transformer, four products and the scores of attention to a block.

    >>> gpt2 = Transformer(768, 12, 12, 50257, 1024, share_embedding_weights=True)
    >>> transformer("GPT-2 small", gpt2).parameters
    124439808
    """
    s, h, norm = shape.max_sequence_length, shape.hidden_size, shape.norm_parameters
    rows = shape.vocab_size + shape.positions + shape.token_types
    count = rows * h + norm * shape.embedding_norm + shape.position_parameters
    stack = [layer for i in range(shape.num_hidden_layers) for layer in blocks(shape, i)]
    layers = (lookup("embedding", shape, count), *stack, *_tail(shape))
    return Workload(name, layers, inputs=s, outputs=s, tokens=s, origin=("transformer", shape))


def lookup(name: str, shape: Transformer, count: int) -> Layer:
    """An embedding of so many parameters: the rows of tables by number, no arithmetic."""
    s, h = shape.max_sequence_length, shape.hidden_size
    return _still(name, s, s * h, count, "lookup", h)


def norms(name: str, shape: Transformer, count: int) -> list[Layer]:
    """A norm of so many parameters on every token; none without parameters."""
    s, h = shape.max_sequence_length, shape.hidden_size
    return [_still(name, s * h, s * h, count, "norm", h)] if count else []


def _still(name: str, enters: int, leaves: int, count: int, kind: str, features: int) -> Layer:
    """A layer without products, of which nothing waits."""
    still: dict[str, Any] = {"multiplies": 0, "kept": 0, "sparsifiable": False}
    return Layer(name, enters, leaves, count, kind, features=features, **still)


def blocks(shape: Transformer, i: int, prefix: str = "block") -> list[Layer]:
    """The layers of one block: attention, then what follows it, once or by experts."""
    block = f"{prefix}_{i}"
    shape = of_block(shape, i)
    if shape.compressed:
        first, *rest = _compressed(shape, shape.compressed, block)
    else:
        s = shape.max_sequence_length
        first, *rest = attention(shape, block, "", s, shape.met(i))
    missing = shape.norm_parameters * (shape.first_unnormed and i == 0)
    first = replace(first, parameters=first.parameters - missing)
    return [first, *rest, *_feedforward(shape, block)]


def of_block(shape: Transformer, i: int) -> Transformer:
    """The shape of one block: the first ones may have no experts."""
    if not shape.experts or i >= shape.dense_first:
        return shape
    return replace(shape, experts=0, filter_size=shape.dense_filter_size or shape.filters)


def attention(shape: Transformer, block: str, name: str, read: int, met: int) -> list[Layer]:
    """Queries, keys and values, their scores, and the product after them.

    Args:
        shape: of the model.
        block: the layers' block.
        name: what stands before the layers' own names; of one that reads another sequence, "cross".
        read: tokens whose keys and values are read.
        met: of these, how many a token meets at most.
    """
    s, h, kv, inner = shape.max_sequence_length, shape.hidden_size, shape.keys, shape.queries
    layer = partial(_in_block, shape, block)
    qkv, made = inner + 2 * kv, s * inner + read * 2 * kv
    norms = shape.norm_parameters * (not shape.norms_behind) + shape.head_norm_parameters
    norms += shape.num_heads * shape.sinks
    biases = (qkv - kv * (not shape.key_bias)) * shape.use_projection_bias_in_attention
    # Only a norm before a half is read by its products.
    after = shape.norm_parameters * shape.ends_halves + h * shape.layer_scale
    out = inner * h + h * shape.use_ffn_bias_in_attention + after
    enters = s * h if read == s and not name else (s + read) * h
    return [
        layer(f"{name}qkv", (enters, made), h * qkv + biases + norms, h * made, s * h),
        layer(f"{name}scores", (made, s * inner), 0, 2 * s * met * inner, made, **ATTENTION),
        layer(f"{name}attended", (s * inner, s * h), out, s * inner * h, s * inner),
    ]


def _compressed(shape: Transformer, few: Compressed, block: str) -> list[Layer]:
    """Few numbers of each token, the queries, keys and values of these, scores, and the product."""
    s, h, heads = shape.max_sequence_length, shape.hidden_size, shape.num_heads
    layer, norm = partial(_in_block, shape, block), len(NORMS[shape.norm])
    queries, values = heads * few.width, heads * few.value
    made, direct = few.made + (few.queries or queries), 0 if few.queries else queries
    wide = few.queries * queries + few.keys * heads * (few.plain + few.value)
    biases = (made - direct) * shape.use_projection_bias_in_attention
    first = h * made + biases + shape.norm_parameters + heads * shape.sinks
    out = values * h + h * shape.use_ffn_bias_in_attention
    meet = 2 * queries + values
    return [
        layer("qkv", (s * h, s * made), first, s * h * made, s * h),
        layer(
            "expanded",
            (s * (made - direct), s * (meet - direct)),
            wide + norm * (few.keys + few.queries),
            s * wide,
            s * (made - direct),
        ),
        layer(
            "scores", (s * meet, s * values), 0, s * s * (queries + values), s * meet, **ATTENTION
        ),
        layer("attended", (s * values, s * h), out, s * values * h, s * values),
    ]


def _feedforward(shape: Transformer, block: str) -> list[Layer]:
    s, h, f = shape.max_sequence_length, shape.hidden_size, shape.filters
    layer = partial(_in_block, shape, block)
    up, bias, norm = f * (2 if shape.gated else 1), shape.use_ffn_bias, shape.norm_parameters
    copies = shape.experts + shape.shared_experts if shape.experts else 1
    met = shape.experts_per_token + shape.shared_experts if shape.experts else 1
    # The second half reads the same norm's output where both halves share one: kept once.
    shared = shape.norms == 1
    read_again = 0 if shared else s * h
    # And read and multiplied once, with queries, keys and values.
    once: dict[str, Any] = {"moved": s * up * met, "products": 0} if shared else {}
    before = shape.norms > 1 and not shape.norms_behind
    wide = copies * (h * up + up * bias) + norm * before
    gate = h * bool(shape.experts and shape.shared_gate)
    back = copies * (f * h + h * bias) + norm * shape.ends_halves + h * shape.layer_scale
    found = [
        layer("up", (s * h, s * up * met), wide, met * s * h * up, read_again, **once),
        layer("down", (s * f * met, s * h), back, met * s * f * h, s * up * met),
    ]
    if n := shape.experts:
        own = h * n + n * shape.router_bias + gate
        found.insert(
            0, layer("router", (s * h, s * n), own, s * (h * n + gate), 0, sparsifiable=False)
        )
    return found


def _in_block(
    shape: Transformer,
    block: str,
    name: str,
    sizes: tuple[int, int],
    count: int,
    multiplies: int,
    kept: int,
    **more: Any,
) -> Layer:
    """A layer by the numbers of a sample that enter and leave, parameters, products, what waits."""
    common: dict[str, Any] = {"features": shape.hidden_size, "block": block, **more}
    return Layer(f"{block}.{name}", *sizes, count, multiplies=multiplies, kept=kept, **common)


def _tail(shape: Transformer) -> list[Layer]:
    """What stands behind the blocks; what enters each of these waits for the backward pass."""
    s, h, v, n = shape.max_sequence_length, shape.hidden_size, shape.vocab_size, shape.token_outputs
    layers: list[Layer] = []

    def add(name: str, sizes: tuple[int, int], count: int, products: int, **more: Any) -> None:
        common: dict[str, Any] = {"features": h, "sparsifiable": False, "kept": sizes[0], **more}
        layers.append(Layer(name, *sizes, count, multiplies=products, **common))

    if shape.pooled:
        out = shape.pooled_outputs
        add("pooler", (h, out), h * h + h + h * out + out, h * h + out * h)
    if shape.head_transform:
        own = h * shape.head_transform_bias + shape.norm_parameters
        add("head_transform", (s * h, s * h), h * h + own, s * h * h)
    # Beside a shared matrix a norm and a bias are the head's own: they are trained.
    bias = v * shape.use_bias_in_output * shape.language_head
    layers += norms("norm", shape, shape.norm_parameters * shape.ends_normed + bias)
    if n:
        add("tags", (s * h, s * n), h * n + n, s * h * n)
    if shape.language_head:
        add("head", (s * h, s * v), v * h, s * h * v, shared=shape.share_embedding_weights)
    return layers
