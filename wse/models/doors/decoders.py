"""GPT and its kin by the words of the Model Zoo: one stack of blocks that predicts the next token.

Sources: Cerebras/modelzoo, releases 2.0 to 2.4, classes of gpt2, gptj and the layers below them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from pydantic import Field

from wse._document import nearest, short
from wse._numbers import positive
from wse.models.doors import words
from wse.models.shapes.stack import Compressed
from wse.models.shapes.transformer import Transformer, transformer
from wse.models.shapes.workload import Workload

Count = Annotated[
    int, Field(ge=1, le=10**9, description="a positive integer up to 10^9: correct that line")
]
Whole = Annotated[int, Field(ge=0, le=10**9, description="an integer from 0 to 10^9: correct it")]
GATED = ("glu", "reglu", "geglu", "swiglu", "bilinear", "liglu", "gated-gelu", "gated-silu")
PLAIN = (
    "gelu", "gelu_new", "gelu_fast", "gelu_approx", "gelu_pytorch_tanh", "gelu_python",
    "quick_gelu", "squared_gelu", "relu", "relu2", "relu6", "leaky_relu", "silu", "swish", "tanh",
    "sigmoid", "elu", "selu", "mish", "linear", "hardtanh", "hardswish",
)  # fmt: skip
NORMS = {  # and ours
    "layernorm": "layer",
    "rmsnorm": "rms",
    "biasless-layernorm": "biasless",
    words.BARE: "bare",
}
PARTLY = ("fixed_sparse_attention", "attention_chunk_size", "attention_sink_tokens",
    "attention_vertical_column_spacing", "attention_vertical_column_width")  # fmt: skip
POSITIONS = ("learned", "learned_absolute", "rotary", "alibi", "relative", "fixed", "none")
PARALLEL = ("gptj", "gpt-neox", "gpt_neox", "gptneox", "falcon", "GPTJModel")


@dataclass(frozen=True)
class Experts:
    """What `moe` says; 0 experts: there is no router."""

    num_experts: Whole = 0
    top_k: Count = 1
    num_shared_experts: Whole = 0
    routing_algorithm: Literal["learned", "hash"] = "learned"


@dataclass(frozen=True)
class Groups:
    """What `extra_attention_params` says: heads of keys and values."""

    num_kv_groups: Count | None = None


@dataclass(frozen=True)
class Stack:
    """Words of a stack of blocks that every family knows; each is as in the Model Zoo."""

    hidden_size: Count
    num_hidden_layers: Count
    num_heads: Count
    filter_size: Count
    position_embedding_type: str = "learned"
    num_relative_attention_buckets: Count = 32
    alibi_trainable_slopes: bool = False
    use_projection_bias_in_attention: bool = True
    use_ffn_bias_in_attention: bool = True
    use_ffn_bias: bool = True
    attention_module: Literal["aiayn_attention", "multiquery_attention"] = "aiayn_attention"
    extra_attention_params: Groups = field(default_factory=Groups)
    nonlinearity: str = "gelu"
    norm_type: str = "layernorm"
    norm_first: bool = True
    keys_met: tuple[Whole, ...] = ()
    name: str = ""

    def shape(self) -> dict[str, Any]:
        """The same in the words of `Transformer`."""
        kind = self.position_embedding_type.lower()
        known = one_of("model.position_embedding_type", kind, POSITIONS)
        slopes = self.num_heads * (known == "alibi" and self.alibi_trainable_slopes)
        buckets = self.num_heads * self.num_relative_attention_buckets * (known == "relative")
        return {
            "hidden_size": self.hidden_size,
            "num_hidden_layers": self.num_hidden_layers,
            "num_heads": self.num_heads,
            "filter_size": self.filter_size,
            "num_kv_heads": self.groups(),
            "position_embedding_type": "learned" if known.startswith("learned") else known,
            "position_parameters": slopes + buckets,
            "use_projection_bias_in_attention": self.use_projection_bias_in_attention,
            "use_ffn_bias_in_attention": self.use_ffn_bias_in_attention,
            "use_ffn_bias": self.use_ffn_bias,
            "norm": NORMS[one_of("model.norm_type", self.norm_type.lower(), tuple(NORMS))],
            "windows": self.keys_met,
            **activation("model.nonlinearity", self.nonlinearity),
        }

    def groups(self) -> int:
        """Heads of keys and values; 0: as many as of queries."""
        said = self.extra_attention_params.num_kv_groups
        many = self.attention_module == "multiquery_attention"
        if many and said is None:
            raise ValueError(
                "model.attention_module is 'multiquery_attention' without the heads of its keys; "
                "extra_attention_params must say num_kv_groups: add it"
            )
        if said is not None and not many:
            raise ValueError(
                f"model.extra_attention_params says num_kv_groups {said}, attention_module "
                f"{self.attention_module!r} has none: write attention_module: multiquery_attention"
            )
        return said or 0


@dataclass(frozen=True)
class Decoder(Stack):
    """Words of GPT-2, -3, Llama, Mistral, Mixtral, BLOOM, BTLM, Jais, Gemma 2, StarCoder, GPT-J."""

    vocab_size: Count = 50257
    max_position_embeddings: Count = 1024
    use_position_embedding: bool = True
    position_embedding_offset: Whole = 0
    num_extra_input_vocab_tokens: Whole = 0
    share_embedding_weights: bool = True
    embedding_layer_norm: bool = False
    use_bias_in_output: bool = False
    use_untied_layer_norm: bool | None = None
    attention_inner_dim: Count | None = None
    attention_qk_norm_layer: str = ""
    attention_qk_norm_wide: bool = False
    norm_first_sandwich: bool = False
    norm_behind: bool = False
    moe: Experts = field(default_factory=Experts)
    moe_router_bias: bool = False
    moe_shared_gate: bool = False
    moe_dense_first: Whole = 0
    moe_dense_filter_size: Whole = 0
    attention_sinks: bool = False
    attention_compressed: Compressed | None = None
    attention_sliding_window_length: Whole = 0
    sliding_window_every_other_decoder_layer: bool = False
    attention_sink_tokens: Whole = 0
    attention_vertical_column_spacing: Whole = 0
    attention_vertical_column_width: Whole = 0
    attention_chunk_size: Whole = 0
    fixed_sparse_attention: Mapping[str, Any] | None = None
    cross_attention_layers: tuple[Whole, ...] = ()
    memory_tokens: Mapping[str, Any] | None = None

    @property
    def windowed(self) -> bool:
        """Whether tokens meet a window of keys, and none beside it."""
        more = any(getattr(self, key) for key in PARTLY)
        return bool(self.attention_sliding_window_length) and not more


def decoder(
    name: str, said: Decoder, kind: str, entered: Mapping[str, Any]
) -> tuple[Workload, Transformer, tuple[str, ...]]:
    """A workload of these words, its shape, and what is in doubt.

    Args:
        name: what tables call it.
        said: the words.
        kind: "parallel": attention and what follows it stand side by side (GPT-J, GPT-NeoX,
            Falcon).
        entered: the input's section, whose sequence is as long as there are positions if it does
            not say.

    Raises:
        ValueError: words that contradict each other, or of parts that are not known here.
    """
    sequence, parallel = length(entered), kind == "parallel"
    for key in ("cross_attention_layers", "memory_tokens"):
        if getattr(said, key):
            raise ValueError(
                f"model.{key} is {short(getattr(said, key))}; layers of that kind are not counted "
                "here: leave the key out to have the rest"
            )
    if not said.norm_first:
        raise ValueError("model.norm_first is False; decoders are read with norms first alone")
    if said.use_untied_layer_norm is not None and not parallel:
        raise ValueError(
            "model.use_untied_layer_norm is a word of gptj, gpt-neox and falcon: leave it out, or "
            "correct model.name"
        )
    if said.attention_qk_norm_layer not in ("", "rmsnorm"):
        raise ValueError(
            f"model.attention_qk_norm_layer is {short(said.attention_qk_norm_layer)}; norms of "
            "queries and of keys are counted as rmsnorm alone: write that, or leave the key out"
        )
    inner = said.attention_inner_dim
    if inner and inner % said.num_heads:
        raise ValueError(
            f"model.attention_inner_dim is {inner}; num_heads {said.num_heads} must divide it: "
            "change one of them"
        )
    shape = said.shape()
    if not said.use_position_embedding:
        shape["position_embedding_type"] = "none"
    if said.windowed:
        every = 1 + said.sliding_window_every_other_decoder_layer  # the first one has it
        shape["windows"] = tuple(
            said.attention_sliding_window_length * (i % every == 0)
            for i in range(said.num_hidden_layers)
        )
    check_length(sequence, said.max_position_embeddings, shape)
    norms = 4 if said.norm_first_sandwich else 2 if said.use_untied_layer_norm else 0
    made = Transformer(
        **shape,
        vocab_size=said.vocab_size + said.num_extra_input_vocab_tokens,
        max_sequence_length=sequence or said.max_position_embeddings,
        max_position_embeddings=said.max_position_embeddings + said.position_embedding_offset,
        share_embedding_weights=said.share_embedding_weights,
        use_bias_in_output=said.use_bias_in_output,
        embedding_norm=said.embedding_layer_norm,
        final_norm=True,
        head_width=(inner or 0) // said.num_heads,
        head_norms=bool(said.attention_qk_norm_layer),
        head_norms_wide=said.attention_qk_norm_wide,
        norms_behind=said.norm_behind,
        parallel=parallel,
        block_norms=norms,
        causal=True,
        sinks=said.attention_sinks,
        compressed=said.attention_compressed,
        **_experts(said),
    )
    return transformer(name, made), made, (*beyond_windows(name, made), *_doubts(said))


def beyond_windows(name: str, shape: Transformer) -> tuple[str, ...]:
    """What software does that masks the scores beyond a window and does not leave them out."""
    s = shape.max_sequence_length
    few = sum(shape.met(i) < s for i in range(shape.num_hidden_layers))
    if not few:
        return ()
    whole, own = (transformer(name, x).forward_flops for x in (replace(shape, windows=()), shape))
    return (
        f"in {few} of {shape.num_hidden_layers} blocks a token meets a window of keys, which alone "
        f"are counted; software that masks the others computes {whole / own:.3g} times as much",
    )


def _doubts(said: Decoder) -> tuple[str, ...]:
    found = [
        f"model.{key} is {short(getattr(said, key))}: scores of attention are counted in full, so "
        "the time is an upper bound"
        for key in PARTLY
        if getattr(said, key)
    ]
    if said.moe.num_experts:
        found.append(
            "experts: a token meets those that its router picks; the weights of all are streamed; "
            "no training of such was published, so the constants are of others"
        )
    if said.moe.routing_algorithm == "hash" and said.moe.num_experts:
        found.append("moe.routing_algorithm is 'hash': its router has no weights, ours has")
    return tuple(found)


def _experts(words: Decoder) -> dict[str, Any]:
    """The same in the words of `Transformer`."""
    said = words.moe
    if not said.num_experts:
        return {}
    if said.top_k > said.num_experts:
        raise ValueError(
            f"model.moe.top_k is {said.top_k}; there are {said.num_experts} experts: correct one"
        )
    return {
        "experts": said.num_experts,
        "experts_per_token": said.top_k,
        "shared_experts": said.num_shared_experts,
        "shared_gate": words.moe_shared_gate,
        "router_bias": words.moe_router_bias,
        "dense_first": words.moe_dense_first,
        "dense_filter_size": words.moe_dense_filter_size,
    }


LENGTHS = tuple(f"{side}max_sequence_length" for side in ("", "src_", "tgt_"))


def length(entered: Mapping[str, Any], key: str = "max_sequence_length") -> int | None:
    """Tokens of a sample, where the input's section says it."""
    said = entered.get(key)
    return None if said is None else positive(key, said, "correct it")


def check_length(sequence: int | None, positions: int, shape: Mapping[str, Any]) -> None:
    """Refuse a sequence that is longer than the learned positions that tokens can have.

    The table may have more rows than these: of positions that begin behind the padding's.

    Raises:
        ValueError: there are more tokens than positions.
    """
    if sequence and shape["position_embedding_type"] == "learned" and sequence > positions:
        raise ValueError(
            f"max_sequence_length is {sequence}; learned positions end at {positions}: raise "
            "max_position_embeddings too"
        )


def activation(key: str, word: str) -> dict[str, Any]:
    """A nonlinearity, and whether it is gated.

    Raises:
        ValueError: another word.
    """
    known = one_of(key, word.lower(), PLAIN + GATED)
    return {"nonlinearity": known, "gated": known in GATED}


def one_of(key: str, word: str, known: tuple[str, ...]) -> str:
    """A word that is among the known ones.

    Raises:
        ValueError: another one, with the nearest.
    """
    if word not in known:
        raise ValueError(f"{key} is {short(word)}, which is not known: {nearest(word, known)}")
    return word
