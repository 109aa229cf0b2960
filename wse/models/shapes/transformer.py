"""Transformers in closed form: GPT, BERT, Llama and diffusion ones.

Of a block with hidden size h, filter size f, sequence s and as many key heads as heads,

    parameters  4 h^2 + 2 h f           (3 h f where gated), and biases and norms
    multiplies  s (4 h^2 + 2 h f) + 2 s^2 h

The scores of attention count in full, causal or not, as in 6 N + 12 L h s FLOPs per token. What
waits for the backward pass is what products read: elementwise functions are computed again.
"""

from dataclasses import dataclass, replace
from typing import Any

from wse.models.shapes.workload import Layer, Workload, check_depth


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
        position_embedding_type: "learned", or one without parameters: "rotary", "alibi", "none".
        max_position_embeddings: learned positions; 0: s.
        share_embedding_weights: the head's weights are the embedding's.
        use_projection_bias_in_attention: biases of queries, keys, values.
        use_ffn_bias_in_attention: bias of what leaves attention.
        use_ffn_bias: biases of the two products after attention.
        use_bias_in_output: bias of the head.
        gated: a third product beside the first after attention (SwiGLU).
        norm: "layer" (scale and shift) or "rms" (scale).
        parallel: attention and what follows it read one norm, side by side (GPT-J).
        embedding_norm: a norm after the embedding (BERT), and none at the end.
        token_types: rows of a second embedding.
        pooled: a dense layer on one token with two outputs (BERT).
        head_transform: a dense layer and a norm before the head (BERT).

    Raises:
        ValueError: a size that is not positive, heads that do not divide h, an unknown word, or a
            sequence longer than the learned positions.
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

    def __post_init__(self) -> None:
        sizes = ("hidden_size", "num_hidden_layers", "num_heads", "vocab_size")
        for name in (*sizes, "max_sequence_length"):
            _positive(name, getattr(self, name))
        check_depth("num_hidden_layers", self.num_hidden_layers)
        for name in ("filter_size", "num_kv_heads", "max_position_embeddings", "token_types"):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be an integer >= 0")
        if self.hidden_size % self.num_heads or self.num_heads % (self.num_kv_heads or 1):
            raise ValueError(
                f"num_heads is {self.num_heads}; it must divide hidden_size {self.hidden_size} and "
                f"be a multiple of num_kv_heads {self.num_kv_heads}: change one of them"
            )
        _one_of("norm", self.norm, ("layer", "rms"))
        kinds = ("learned", "rotary", "alibi", "none")
        _one_of("position_embedding_type", self.position_embedding_type, kinds)
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
    def keys(self) -> int:
        """Numbers per token of the keys, and of the values."""
        return self.hidden_size // self.num_heads * (self.num_kv_heads or self.num_heads)

    @property
    def positions(self) -> int:
        """Rows of the learned positions; 0 where there are none."""
        learned = self.position_embedding_type == "learned"
        return (self.max_position_embeddings or self.max_sequence_length) if learned else 0

    @property
    def norm_parameters(self) -> int:
        """Parameters of one norm."""
        return self.hidden_size * (2 if self.norm == "layer" else 1)


def transformer(name: str, shape: Transformer) -> Workload:
    """The layers of a transformer, four products and the scores of attention to a block.

    >>> gpt2 = Transformer(768, 12, 12, 50257, 1024, share_embedding_weights=True)
    >>> transformer("GPT-2 small", gpt2).parameters
    124439808
    """
    s, h, v = shape.max_sequence_length, shape.hidden_size, shape.vocab_size
    rows = v + shape.positions + shape.token_types
    norm = shape.norm_parameters
    table = Layer(
        "embedding",
        inputs=s,
        outputs=s * h,
        parameters=rows * h + norm * shape.embedding_norm,
        kind="lookup",
        multiplies=0,
        kept=0,
        features=h,
        sparsifiable=False,
    )
    blocks = [layer for i in range(shape.num_hidden_layers) for layer in _block(shape, i)]
    layers = (table, *blocks, *_tail(shape))
    return Workload(name, layers, inputs=s, outputs=s, tokens=s)


def _block(shape: Transformer, i: int) -> list[Layer]:
    s, h, f, kv = shape.max_sequence_length, shape.hidden_size, shape.filters, shape.keys
    common: dict[str, Any] = {"features": h, "block": f"block_{i}"}
    qkv, up = h + 2 * kv, f * (2 if shape.gated else 1)
    bias, norm = shape.use_projection_bias_in_attention, shape.norm_parameters
    # The second half reads the same norm's output where both halves are parallel: kept once.
    read_again = 0 if shape.parallel else s * h

    def product(name: str, sizes: tuple[int, int], beside: int, kept: int) -> Layer:
        """A matrix of these sizes with the parameters beside it, met by every token."""
        n, m = sizes
        return Layer(
            f"block_{i}.{name}",
            s * n,
            s * m,
            n * m + beside,
            multiplies=s * n * m,
            kept=kept,
            **common,
        )

    scores = Layer(
        f"block_{i}.scores",
        s * qkv,
        s * h,
        0,
        "attention",
        multiplies=2 * s * s * h,
        kept=s * qkv,
        sparsifiable=False,
        **common,
    )
    of_up = up * shape.use_ffn_bias + (0 if shape.parallel else norm)
    return [
        product("qkv", (h, qkv), qkv * bias + norm, s * h),
        scores,
        product("attended", (h, h), h * shape.use_ffn_bias_in_attention, s * h),
        product("up", (h, up), of_up, read_again),
        product("down", (f, h), h * shape.use_ffn_bias, s * up),
    ]


def _tail(shape: Transformer) -> list[Layer]:
    s, h, v = shape.max_sequence_length, shape.hidden_size, shape.vocab_size
    layers: list[Layer] = []
    common: dict[str, Any] = {"features": h, "sparsifiable": False}
    if shape.pooled:
        count = h * h + h + 2 * h + 2
        layers.append(Layer("pooler", h, 2, count, multiplies=h * h + 2 * h, kept=h, **common))
    if shape.head_transform:
        count = h * h + h + shape.norm_parameters
        made = Layer(
            "head_transform", s * h, s * h, count, multiplies=s * h * h, kept=s * h, **common
        )
        layers.append(made)
    # Beside a shared matrix a norm and a bias are the head's own: they are trained.
    own = (0 if shape.embedding_norm else shape.norm_parameters) + v * shape.use_bias_in_output
    if own:
        layers.append(Layer("norm", s * h, s * h, own, "norm", multiplies=0, kept=0, **common))
    tied = shape.share_embedding_weights
    head = Layer(
        "head", s * h, s * v, v * h, shared=tied, multiplies=s * h * v, kept=s * h, **common
    )
    return [*layers, head]


def dit(
    name: str = "DiT-XL/2",
    *,
    hidden_size: int = 1152,
    num_hidden_layers: int = 28,
    latent_size: int = 32,
    patch_size: int = 2,
    classes: int = 1000,
) -> Workload:
    """A diffusion transformer: patches of a latent image, each block modulated by time and class.

    Args:
        name: what tables call it.
        hidden_size: h.
        num_hidden_layers: blocks.
        latent_size: side of the latent image of four channels; an eighth of the picture's.
        patch_size: side of a patch.
        classes: that the pictures may be of.

    Raises:
        ValueError: a size that is not positive, or patches that do not tile the image.

    >>> round(dit().parameters / 1e6)
    675
    """
    _positive("patch_size", patch_size)
    if latent_size < patch_size or latent_size % patch_size:
        raise ValueError(
            f"patch_size is {patch_size}; it must divide latent_size {latent_size}: change one"
        )
    h, s, patch = hidden_size, (latent_size // patch_size) ** 2, 4 * patch_size**2
    norm_free = Transformer(h, num_hidden_layers, 1, 1, s, position_embedding_type="none")
    common: dict[str, Any] = {"sparsifiable": False, "features": h}
    condition = 256 * h + h + h * h + h + (classes + 1) * h  # sourced: facebookresearch/DiT
    products = 256 * h + h * h
    layers = [
        Layer("patches", s * patch, s * h, patch * h + h, multiplies=s * patch * h, **common),
        Layer("condition", 257, h, condition, multiplies=products, **common),
    ]
    for i in range(num_hidden_layers):
        block = f"block_{i}"
        count = 6 * h * h + 6 * h
        modulation = Layer(f"{block}.modulation", h, 6 * h, count, block=block, kept=h, features=h)
        layers += [modulation, *(_without_norm(x, h) for x in _block(norm_free, i))]
    out = 2 * patch  # noise and its variance
    layers += [
        Layer("last_modulation", h, 2 * h, 2 * h * h + 2 * h, **common),
        Layer("unpatch", s * h, s * out, h * out + out, multiplies=s * h * out, **common),
    ]
    return Workload(name, tuple(layers), inputs=s * patch, outputs=s * out, tokens=s)


def _without_norm(layer: Layer, h: int) -> Layer:
    own = layer.name.endswith((".qkv", ".up"))
    return replace(layer, parameters=layer.parameters - 2 * h * own)


def _positive(name: str, size: Any) -> None:
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise ValueError(f"{name} is {size!r}; it must be a positive integer: correct the shape")


def _one_of(name: str, word: str, known: tuple[str, ...]) -> None:
    if word not in known:
        raise ValueError(f"{name} is {word!r}; it must be one of {', '.join(known)}: pass that")
