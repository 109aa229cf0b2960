"""Transformers in closed form: GPT, BERT, Llama, with experts or without.

Of a block with hidden size h, filter size f, sequence s and as many key heads as heads,

    parameters  4 h^2 + 2 h f           (3 h f where gated), and biases and norms
    multiplies  s (4 h^2 + 2 h f) + 2 s^2 h

The scores of attention count in full, causal or not, as in 6 N + 12 L h s FLOPs per token. What
waits for the backward pass is what products read: elementwise functions are computed again.
"""

from dataclasses import MISSING, dataclass, field, fields, replace
from functools import partial
from typing import Any

from wse._numbers import is_whole, one_of, positive
from wse.models.shapes.compressed import Compressed
from wse.models.shapes.manner import Manner
from wse.models.shapes.workload import Layer, Workload, check_depth

CORRECT = "correct the shape"
NORMS = {"layer": 2, "rms": 1, "bare": 0}  # parameters to a feature
ATTENTION: dict[str, Any] = {"kind": "attention", "sparsifiable": False}


@dataclass(frozen=True)
class Transformer:
    """A stack of equal blocks between an embedding and a head. Keys are the Model Zoo's.

    Attributes:
        hidden_size: h.
        num_hidden_layers: L.
        num_heads: of the queries; h must be a multiple of it.
        vocab_size: V.
        max_sequence_length: s, tokens per sample.
        filter_size: f; 0: 4 h.
        num_kv_heads: heads of keys and values; 0: as many as queries.
        position_embedding_type: "learned", or one without a table: "rotary", "alibi", "relative",
            "fixed" (sines), "none".
        max_position_embeddings: learned positions; 0: s.
        position_parameters: of positions that are no table: buckets x heads, or trained slopes.
        share_embedding_weights: the head's weights are the embedding's.
        use_projection_bias_in_attention: biases of queries, keys, values.
        key_bias: whether the keys have one of these biases (Whisper's have none).
        use_ffn_bias_in_attention: bias of what leaves attention.
        use_ffn_bias: biases of the two products after attention.
        use_bias_in_output: bias of the head.
        gated: a third product beside the first after attention (SwiGLU).
        norm: "layer" (scale and shift), "rms" (scale) or "bare" (neither).
        parallel: attention and what follows it read the block's input, side by side (GPT-J).
        embedding_norm: a norm after the embedding (BERT), and none at the end.
        token_types: rows of a second embedding.
        pooled: a dense layer on one token with two outputs (BERT).
        head_transform: a dense layer and a norm before the head (BERT).
        head_transform_bias: of that dense layer.
        head_width: numbers per head; 0: h / heads. Where it is given, h need be no multiple.
        block_norms: norms of a block; 0: two, or one where parallel. Two where parallel are untied
            (GPT-NeoX), four stand before and after both halves (Gemma 2).
        norms_behind: the two norms of a block stand behind what its halves give (OLMo 2).
        first_unnormed: the first block begins without its norm (ModernBERT).
        head_norms: norms of queries and of keys, over one head, that all heads share.
        head_norms_wide: these norms have a scale for every feature of all heads (OLMo 2).
        final_norm: a norm before the head; None: unless there is an embedding norm.
        experts: copies of what follows attention, of which a router picks some; 0: no router.
        experts_per_token: that the router picks for each token.
        shared_experts: copies beside these that every token meets.
        shared_gate: a number that each token has of them is a product of its own (Qwen 2).
        router_bias: bias of the router.
        dense_first: first blocks without experts (DeepSeek).
        dense_filter_size: width of what follows attention in these; 0: f.
        sinks: a trained number for each head among the scores of every token (gpt-oss).
        compressed: queries, keys and values that are made of few numbers (DeepSeek); None: of all.
        nonlinearity: what stands between the products after attention.
        causal: tokens see those before them alone; None: unless there is a pooled token.
        language_head: logits of all V words.
        pooled_outputs: of the layer on the pooled token.
        token_outputs: of a dense layer on every token (tagging); 0: there is none.
        layer_scale: a trained factor for each feature of what either half gives.
        manner: constants, chances and first weights, which nothing counts.

    Raises:
        ValueError: a size that is not positive, heads that do not divide h, an unknown word, a
            sequence longer than the learned positions, or more experts per token than there are.
    """

    hidden_size: int
    num_hidden_layers: int
    num_heads: int
    vocab_size: int
    max_sequence_length: int
    filter_size: int = 0
    num_kv_heads: int = 0
    position_embedding_type: str = "learned"
    max_position_embeddings: int = 0
    share_embedding_weights: bool = False
    use_projection_bias_in_attention: bool = True
    use_ffn_bias_in_attention: bool = True
    use_ffn_bias: bool = True
    use_bias_in_output: bool = False
    gated: bool = False
    norm: str = "layer"
    parallel: bool = False
    embedding_norm: bool = False
    token_types: int = 0
    pooled: bool = False
    head_transform: bool = False
    head_transform_bias: bool = True
    position_parameters: int = 0
    head_width: int = 0
    block_norms: int = 0
    norms_behind: bool = False
    first_unnormed: bool = False
    head_norms: bool = False
    head_norms_wide: bool = False
    final_norm: bool | None = None
    experts: int = 0
    experts_per_token: int = 1
    shared_experts: int = 0
    shared_gate: bool = False
    router_bias: bool = False
    dense_first: int = 0
    dense_filter_size: int = 0
    sinks: bool = False
    compressed: Compressed | None = None
    key_bias: bool = True
    nonlinearity: str = "gelu"
    causal: bool | None = None
    language_head: bool = True
    pooled_outputs: int = 2
    token_outputs: int = 0
    layer_scale: bool = False
    manner: Manner = field(default_factory=Manner)

    def __post_init__(self) -> None:
        for one in fields(self):
            size, needed = getattr(self, one.name), one.default is MISSING or one.default
            if one.type is int and needed:
                positive(one.name, size, CORRECT)
            elif one.type is int and not is_whole(size, 0):
                raise ValueError(f"{one.name} is {size!r}; it must be an integer >= 0")
        check_depth("num_hidden_layers", self.num_hidden_layers)
        odd = self.hidden_size % self.num_heads and not self.head_width
        if odd or self.num_heads % (self.num_kv_heads or 1):
            raise ValueError(
                f"num_heads is {self.num_heads}; it must divide hidden_size {self.hidden_size} and "
                f"be a multiple of num_kv_heads {self.num_kv_heads}: change one of them"
            )
        if self.block_norms not in (0, 1, 2, 4):
            raise ValueError(f"block_norms is {self.block_norms}; it must be 0, 1, 2 or 4")
        if self.norms_behind and (self.parallel or self.norms != 2):
            raise ValueError(
                "norms_behind is True; only halves one after the other with two norms have these "
                "behind them: leave it out"
            )
        one_of("norm", self.norm, (*NORMS,))
        kinds = ("learned", "rotary", "alibi", "relative", "fixed", "none")
        one_of("position_embedding_type", self.position_embedding_type, kinds)
        if self.experts and not 1 <= self.experts_per_token <= self.experts:
            raise ValueError(
                f"experts_per_token is {self.experts_per_token}; it must lie between 1 and experts "
                f"{self.experts}: correct one of them"
            )
        if self.positions and self.max_sequence_length > self.positions:
            raise ValueError(
                f"max_sequence_length is {self.max_sequence_length}; learned positions end at "
                f"{self.positions}: raise max_position_embeddings too"
            )

    @property
    def filters(self) -> int:
        """Width of what follows attention, f."""
        return self.filter_size or 4 * self.hidden_size

    @property
    def width(self) -> int:
        """Numbers per head."""
        return self.head_width or self.hidden_size // self.num_heads

    @property
    def queries(self) -> int:
        """Numbers per token of the queries of all heads."""
        return self.width * self.num_heads

    @property
    def keys(self) -> int:
        """Numbers per token of the keys, and of the values."""
        return self.width * (self.num_kv_heads or self.num_heads)

    @property
    def norms(self) -> int:
        """Norms of one block, those of heads left out."""
        return self.block_norms or (1 if self.parallel else 2)

    @property
    def ends_halves(self) -> bool:
        """Whether a norm stands behind what each half of a block gives."""
        return self.norms_behind or self.norms == 4

    @property
    def is_causal(self) -> bool:
        """Whether tokens see those before them alone."""
        return not self.pooled if self.causal is None else self.causal

    @property
    def ends_normed(self) -> bool:
        """Whether a norm stands before the head."""
        return not self.embedding_norm if self.final_norm is None else self.final_norm

    @property
    def positions(self) -> int:
        """Rows of the learned positions; 0 where there are none."""
        learned = self.position_embedding_type == "learned"
        return (self.max_position_embeddings or self.max_sequence_length) if learned else 0

    @property
    def norm_parameters(self) -> int:
        """Parameters of one norm."""
        return self.hidden_size * NORMS[self.norm]

    @property
    def head_norm_parameters(self) -> int:
        """Parameters of the norms of queries and of keys."""
        scales = self.queries + self.keys if self.head_norms_wide else 2 * self.width
        return scales * self.head_norms


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
        first, *rest = attention(shape, block, "", shape.max_sequence_length)
    missing = shape.norm_parameters * (shape.first_unnormed and i == 0)
    first = replace(first, parameters=first.parameters - missing)
    return [first, *rest, *_feedforward(shape, block)]


def of_block(shape: Transformer, i: int) -> Transformer:
    """The shape of one block: the first ones may have no experts."""
    if not shape.experts or i >= shape.dense_first:
        return shape
    return replace(shape, experts=0, filter_size=shape.dense_filter_size or shape.filters)


def attention(shape: Transformer, block: str, name: str, read: int) -> list[Layer]:
    """Queries, keys and values, their scores, and the product after them.

    Args:
        shape: of the model.
        block: the layers' block.
        name: what stands before the layers' own names; of one that reads another sequence, "cross".
        read: tokens whose keys and values are read.
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
        layer(f"{name}scores", (made, s * inner), 0, 2 * s * read * inner, made, **ATTENTION),
        layer(f"{name}attended", (s * inner, s * h), out, s * inner * h, s * inner),
    ]


def _compressed(shape: Transformer, few: Compressed, block: str) -> list[Layer]:
    """Few numbers of each token, the queries, keys and values of these, scores, and the product."""
    s, h, heads = shape.max_sequence_length, shape.hidden_size, shape.num_heads
    layer, norm = partial(_in_block, shape, block), NORMS[shape.norm]
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
