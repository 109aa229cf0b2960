"""What a `model` section says of training, beyond what is counted: constants, chances, factors.

A key that an estimate may pass over is taken here, is off, changes no number, or is refused by
name: what is trained is what the file says.
"""

# What a document holds has no type.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import Field

from wse._document import short, typed
from wse.models.doors import words
from wse.models.doors.decoders import PLAIN, Count, one_of
from wse.models.shapes.manner import Manner
from wse.models.shapes.transformer import Transformer

CHANCE = Field(ge=0, lt=1, description="at least 0 and below 1: write a share such as 0.1")
OVER_0 = Field(gt=0, le=1e30, description="a positive number up to 1e30: correct that line")
INERT = (  # they change no number that is trained here
    "attention_kernel", "attention_softmax_fp32", "precision_opt_level", "boundary_casting",
    "tf_summary", "enable_vts", "use_experimental_flex_api", "use_cache", "compute_eval_metrics",
    "eval_metrics", "vocab_file", "problem_type", "fold_rope_consts", "mixed_precision",
    "fp16_type", "use_bfloat16", "to_float16", "dtype", "mask_token_id", "name",
)  # fmt: skip
USUAL: Mapping[str, Any] = {  # what alone is done here
    "attention_type": "scaled_dot_product",
    "bias_initializer": "zeros",
    "pos_scaling_factor": 1.0,
    "pos_scaling_type": "linear",
    "include_padding_in_loss": True,
    "disable_softmax": False,
    "loss_scaling": "num_tokens",
    "loss_weight": 1.0,
}
OF_SHAPE = (  # counted, and not computed
    "attention_sliding_window_length", "sliding_window_every_other_decoder_layer",
    "attention_sink_tokens", "attention_vertical_column_spacing", "attention_chunk_size",
    "attention_vertical_column_width", "fixed_sparse_attention", "mask_padding_in_positional_embed",
)  # fmt: skip
ALIKE = ("router_fp32", "moe_implementation")  # of `moe`: they change no number
ROUTED: Mapping[str, Any] = {
    "router_selection_nonlinearity": "softmax",
    "expert_weighting_nonlinearity": "softmax",
    "expert_weighting_normalization": True,
}
OFF = (None, False, 0, 0.0, "none", "None", (), [], {})


@dataclass(frozen=True)
class First:
    """A distribution of first weights: normal, without what is beyond two of its spreads."""

    std: Annotated[float, OVER_0]
    name: Literal["truncated_normal"] = "truncated_normal"
    mean: float = 0.0
    a: float | None = None
    b: float | None = None

    def __post_init__(self) -> None:
        ends = (
            -2 * self.std if self.a is None else self.a,
            2 * self.std if self.b is None else self.b,
        )
        far = max(abs(ends[0] + 2 * self.std), abs(ends[1] - 2 * self.std))
        if self.mean or far > 1e-6 * self.std:
            raise ValueError(
                f"an initializer has mean {self.mean}, a {self.a}, b {self.b}; first weights are "
                f"drawn with mean 0 within two spreads: write a: {-2 * self.std}, b: {2 * self.std}"
            )


@dataclass(frozen=True)
class Stacked:
    """Words of transformers that an estimate passes over and training does not."""

    layer_norm_epsilon: Annotated[float, OVER_0] = 1e-5
    norm_first: bool | None = None
    pooler_nonlinearity: str = "tanh"
    mlm_nonlinearity: str = "gelu"
    rope_theta: Annotated[float, OVER_0] = 10_000.0
    rotary_dim: Count | None = None
    scale_qk_dot_by_d: bool = False
    embeddings_scale: Annotated[float, OVER_0] = 1.0
    output_logits_scale: Annotated[float, OVER_0] = 1.0
    output_logits_alpha: Annotated[float, OVER_0] = 1.0
    embedding_dropout_rate: Annotated[float | None, CHANCE] = None
    attention_dropout_rate: Annotated[float | None, CHANCE] = None
    residual_dropout_rate: Annotated[float | None, CHANCE] = None
    dropout_rate: Annotated[float, CHANCE] = 0.0
    initializer_range: Annotated[float, OVER_0] = 0.02
    initializer: First | None = None
    embedding_initializer: First | None = None
    output_layer_initializer: First | None = None
    layerscale_value: Annotated[float, OVER_0] = 1.0
    mup_base_hidden_size: Count | None = None
    mup_base_filter_size: Count | None = None
    mlm_loss_weight: Annotated[float | None, OVER_0] = None
    mlm_loss_scaling: Literal["batch_size"] = "batch_size"
    nsp_loss_weight: Annotated[float, OVER_0] = 1.0
    loss_scaling: Literal["num_tokens", "batch_size"] = "num_tokens"
    loss_weight: Annotated[float, OVER_0] = 1.0


def manner(model: Mapping[str, Any], shape: Transformer, kind: str) -> Manner:
    """How a transformer is trained, by the words of its `model` section.

    Args:
        model: the section.
        shape: what was read of it.
        kind: the family, as of `wse.models.doors.families`.

    Raises:
        ValueError: a word that is computed in another way here, with what is computed.
    """
    known = Stacked.__dataclass_fields__
    said = typed.made(
        Stacked, {k: v for k, v in model.items() if k in known and v is not None}, "model"
    )
    refuse(model, tuple(known))
    _refuse_experts(model.get("moe"))
    alike = kind in ("masked", "classes", "picture")  # all first weights of one spread
    std = said.initializer.std if said.initializer else said.initializer_range
    drop = said.dropout_rate if said.residual_dropout_rate is None else said.residual_dropout_rate
    made = Manner(
        norm_epsilon=said.layer_norm_epsilon,
        # Where nothing says: BERT, which ends without a norm, has them behind the halves.
        norm_first=shape.ends_normed if said.norm_first is None else said.norm_first,
        pooler=one_of("model.pooler_nonlinearity", said.pooler_nonlinearity, PLAIN),
        transform=one_of("model.mlm_nonlinearity", said.mlm_nonlinearity, PLAIN),
        rope_base=said.rope_theta,
        rope_width=said.rotary_dim or 0,
        scores_by_width=said.scale_qk_dot_by_d,
        embedding_scale=said.embeddings_scale,
        logit_scale=said.output_logits_scale,
        embedding_dropout=_or(said.embedding_dropout_rate, drop),
        attention_dropout=_or(said.attention_dropout_rate, drop),
        dropout=drop,
        first_std=std,
        embedding_std=said.embedding_initializer.std if said.embedding_initializer else std,
        output_std=said.output_layer_initializer.std
        if said.output_layer_initializer
        else std * alike,
        layer_scale=said.layerscale_value,
        token_weight=_weight(said, kind),
        sentence_weight=said.nsp_loss_weight,
    )
    if made.rope_width > shape.width or made.rope_width % 2:
        raise ValueError(
            f"model.rotary_dim is {made.rope_width}; it must be even and at most the {shape.width} "
            "features of a head: correct it"
        )
    return _by_width(said, shape, made)


@dataclass(frozen=True)
class Answering:
    """Words of a T5 that an estimate passes over and training does not."""

    layer_norm_epsilon: Annotated[float, OVER_0] = 1e-6
    dropout_rate: Annotated[float, CHANCE] = 0.0
    relu_dropout_rate: Annotated[float | None, CHANCE] = None
    use_dropout_outside_residual_path: bool = True
    use_pre_encoder_decoder_layer_norm: bool = True
    initializer_factor: Annotated[float, OVER_0] = 1.0
    lm_loss_weight: Annotated[float | None, OVER_0] = None
    mlm_loss_scaling: Literal["batch_size", "num_masked"] = "batch_size"


def answering(model: Mapping[str, Any], shape: Transformer) -> Manner:
    """How a T5 is trained, by the words of its `model` section.

    First weights are by what enters: 1 of words, d^-1/2 of products, of queries (d k)^-1/2, since
    scores are not divided. Sources: Raffel et al., arXiv 1910.10683, and their code.

    Args:
        model: the section.
        shape: of the encoder.

    Raises:
        ValueError: a word that is computed in another way here, with what is computed.
    """
    known = Answering.__dataclass_fields__
    told = {k: v for k, v in model.items() if k in known and v is not None}
    said = typed.made(Answering, told, "model")
    refuse(model, (*known, "d_model"))
    h, drop, factor = shape.hidden_size, said.dropout_rate, said.initializer_factor
    weight = said.lm_loss_weight if said.mlm_loss_scaling == "batch_size" else None
    return Manner(
        norm_epsilon=said.layer_norm_epsilon,
        norm_first=said.use_pre_encoder_decoder_layer_norm,
        scores_plain=True,
        logit_scale=h**-0.5 if shape.share_embedding_weights else 1.0,
        embedding_dropout=drop,
        attention_dropout=drop,
        dropout=drop,
        inner_dropout=_or(said.relu_dropout_rate, drop),
        last_dropout=drop * said.use_dropout_outside_residual_path,
        first_std=factor * h**-0.5,
        embedding_std=factor,
        output_std=factor * h**-0.5,
        down_std=factor * shape.filters**-0.5,
        query_std=factor * (h * shape.width) ** -0.5,
        token_weight=weight or 0.0,
    )


def refuse(model: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """Refuse the words of a `model` section that an estimate passes over and nothing here computes.

    Args:
        model: the section.
        known: words that are taken.

    Raises:
        ValueError: the first of these.
    """
    for key, value in model.items():
        passed = words.is_among(key, words.MODEL) or key in OF_SHAPE or key in USUAL
        if not passed or key in (*known, *INERT) or any(value is x or value == x for x in OFF):
            continue
        if key in USUAL and value == USUAL[key]:
            continue
        usual = f"{USUAL[key]!r} alone is" if key in USUAL else "that is not"
        raise ValueError(
            f"model.{key} is {short(value)}; {usual} trained here, though it is estimated: leave "
            "the key out to train without it"
        )


OF_UNET: Mapping[str, tuple[Any, ...]] = {  # what alone a U-Net is trained with
    "nonlinearity": ("relu",),
    "norm_layer": (None, "none", "", "batchnorm2d", "batchnorm3d", "batch"),
    "downscale_method": ("max_pool",),
    "downscale_encoder_blocks": (True,),
    "downscale_bottleneck": (False,),
    "downscale_first_conv": (False,),
    "loss": ("bce", "ssce", "ce", ""),
}


def refuse_unet(model: Mapping[str, Any]) -> None:
    """Refuse what of a U-Net is counted and not computed here.

    Raises:
        ValueError: the first such word.
    """
    for key, value in model.items():
        said = value.lower() if isinstance(value, str) else value
        if key in OF_UNET and said not in OF_UNET[key]:
            known = ", ".join(map(repr, OF_UNET[key]))
            raise ValueError(
                f"model.{key} is {short(value)}; a U-Net is trained here with {known} alone: "
                "change it, or leave it out"
            )
    refuse(model, (*OF_UNET,))


def _refuse_experts(found: Any) -> None:
    """Refuse words of `moe` beside its numbers that change what experts do."""
    for key, value in (found or {}).items() if isinstance(found, Mapping) else ():
        same = value == ROUTED[key] if key in ROUTED else value in OFF
        if words.is_among(key, words.MOE) and key not in ALIKE and not same:
            raise ValueError(
                f"model.moe.{key} is {short(value)}; experts are trained here without it, the "
                "chances of those that are picked by softmax: leave the key out"
            )
        if key == "routing_algorithm" and value != "learned":
            raise ValueError(f"model.moe.routing_algorithm is {short(value)}; learned is trained")


def _or(said: float | None, other: float) -> float:
    return other if said is None else said


def _weight(said: Stacked, kind: str) -> float:
    if kind == "masked":
        return said.mlm_loss_weight or 0.0
    if said.loss_scaling == "batch_size":
        return said.loss_weight
    if said.loss_weight != 1:
        raise ValueError(
            f"model.loss_weight is {said.loss_weight} with loss_scaling num_tokens, which takes "
            "none: leave it out, or write loss_scaling: batch_size"
        )
    return 0.0


def _by_width(said: Stacked, shape: Transformer, made: Manner) -> Manner:
    """Spreads, rates and logits as the widths over those of a base ask for (muP).

    Sources: Yang et al., arXiv 2203.03466, table 8; Dey et al., arXiv 2304.03208, table 14.
    """
    bases = (said.mup_base_hidden_size, said.mup_base_filter_size)
    if bases == (None, None):
        if said.output_logits_alpha != 1:
            raise ValueError(
                f"model.output_logits_alpha is {said.output_logits_alpha} without "
                "mup_base_hidden_size, which it belongs to: add that, or write output_logits_scale"
            )
        return made
    wide = shape.hidden_size / (bases[0] or shape.hidden_size)
    filled = shape.filters / (bases[1] or shape.filters)
    deep = (2 * shape.num_hidden_layers) ** -0.5
    out = made.output_std or made.first_std
    return replace(
        made,
        first_std=made.first_std * wide**-0.5,
        output_std=out * deep * wide**-0.5,
        down_std=out * deep * filled**-0.5,
        logit_scale=made.logit_scale * said.output_logits_alpha / wide,
        rates=(1 / wide, 1 / filled),
    )
