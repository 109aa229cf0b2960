"""What a transformer is: the sizes and words that tell one stack of blocks from another."""

from dataclasses import MISSING, dataclass, field, fields

from wse._numbers import check_depth, is_whole, one_of, positive, short
from wse.models.shapes.manner import Manner

CORRECT = "correct the shape"
NORMS: dict[str, tuple[str, ...]] = {  # and their parameters
    "layer": ("scale", "shift"),
    "rms": ("scale",),
    "biasless": ("gain",),
    "bare": (),
}


@dataclass(frozen=True)
class Compressed:
    """Attention whose queries, keys and values come from few numbers per token (DeepSeek's MLA).

    Of a token the model makes r numbers, and of these the keys and values of all heads; t more are
    turned by its position, and are part of every head's key. Source: DeepSeek-AI, arXiv 2405.04434.

    Attributes:
        keys: r, numbers per token of which keys and values are made.
        queries: as many of the queries; 0: these are made of the features themselves.
        plain: features of a key that no position turns.
        turned: those that are turned, which all heads share.
        value: features of a value.

    Raises:
        ValueError: a number that is not positive, a rank of queries below 0, or an odd number of
            features to turn.

    >>> Compressed(512, 1536).width
    192
    """

    keys: int
    queries: int = 0
    plain: int = 128
    turned: int = 64
    value: int = 128

    def __post_init__(self) -> None:
        for name, number in vars(self).items():
            if name != "queries":
                positive(f"{name} of compressed attention", number, "correct the shape")
        if self.turned % 2:
            raise ValueError(
                f"turned of compressed attention is {self.turned}; positions turn features in "
                "pairs: take an even number"
            )
        if not is_whole(self.queries, 0):
            raise ValueError(
                f"queries of compressed attention is {self.queries!r}; it must be an integer >= 0"
            )

    @property
    def width(self) -> int:
        """Features of a query, and of a key."""
        return self.plain + self.turned

    @property
    def made(self) -> int:
        """Numbers per token that are kept of keys and values: those and the turned ones."""
        return self.keys + self.turned


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
        norm: "layer" (scale and shift), "biasless" (scale), "bare" (neither), or "rms" (scale),
            which alone leaves the mean in.
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
        windows: most keys that a token of each block meets; 0: all. Empty: all in every block.
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
            sequence longer than the learned positions, more experts per token than there are,
            or windows of another number of blocks.
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
    windows: tuple[int, ...] = ()
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
            few = f" and be a multiple of num_kv_heads {self.num_kv_heads}" * bool(
                self.num_kv_heads
            )
            raise ValueError(
                f"num_heads is {self.num_heads}; it must divide hidden_size {self.hidden_size}"
                f"{few}: change one of them"
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
        if self.windows and len(self.windows) != self.num_hidden_layers:
            raise ValueError(
                f"windows are of {len(self.windows)} blocks; num_hidden_layers is "
                f"{self.num_hidden_layers}: give one of each"
            )
        if any(not is_whole(each, 0) for each in self.windows):
            raise ValueError(f"windows are {short(self.windows)}; each must be an integer >= 0")
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

    def met(self, i: int) -> int:
        """Keys that a token of a block meets at most."""
        s = self.max_sequence_length
        return min(self.windows[i] or s, s) if self.windows else s

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
        return self.hidden_size * len(NORMS[self.norm])

    @property
    def head_norm_parameters(self) -> int:
        """Parameters of the norms of queries and of keys."""
        scales = self.queries + self.keys if self.head_norms_wide else 2 * self.width
        return scales * self.head_norms
