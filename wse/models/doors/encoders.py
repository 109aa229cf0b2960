"""BERT, ESM-2, T5 and vision transformers by the words of the Model Zoo.

Sources: Cerebras/modelzoo, releases 2.0 to 2.4, classes of bert, esm2, t5, vision_transformer, dit.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from wse.models.doors.decoders import (
    Count,
    Groups,
    Stack,
    Whole,
    activation,
    beyond_windows,
    check_length,
    length,
    one_of,
)
from wse.models.shapes.transformer import Transformer, transformer
from wse.models.shapes.translation import translation
from wse.models.shapes.vision import Latent, diffusion, patches, vit
from wse.models.shapes.workload import Workload

Read = tuple[Workload, Any, tuple[str, ...]]


@dataclass(frozen=True)
class Encoder(Stack):
    """Words of BERT, RoBERTa and ESM-2, and of what is put on them."""

    vocab_size: Count = 50257
    max_position_embeddings: Count | None = None
    share_embedding_weights: bool = True
    encoder_nonlinearity: str = "gelu"
    mlm_nonlinearity: str = "gelu"
    pooler_nonlinearity: str = "gelu"
    num_segments: Whole | None = None
    disable_nsp: bool = False
    pad_token_id: Whole = 0
    mask_padding_in_positional_embed: bool = False
    use_ffn_bias_in_mlm: bool = True
    use_output_bias_in_mlm: bool = True
    embedding_layer_norm: bool = True
    use_final_layer_norm: bool = False
    first_layer_norm: bool = True
    use_ffn_bias_in_transform: bool = True
    num_classes: Count = 2
    num_labels: Count = 2
    use_cls_bias: bool = True
    freeze_pretrained_model: bool = False


def encoder(name: str, said: Encoder, head: str, entered: Mapping[str, Any]) -> Read:
    """An encoder of words with one of its heads.

    Args:
        name: what tables call it.
        said: the words.
        head: "masked" words, with or without next sentences; "classes" of a sequence; "tags" of
            tokens; "spans" of an answer; "sentences" of a summary.
        entered: the input's section, whose sequence is as long as there are positions if it does
            not say.
    """
    sequence = length(entered)
    positions = said.max_position_embeddings or sequence
    if not positions:
        raise ValueError(
            "model lacks max_position_embeddings, and the input max_sequence_length; one must be "
            "given: add it"
        )
    masked, first = head == "masked", said.encoder_nonlinearity
    offset = said.pad_token_id * said.mask_padding_in_positional_embed
    if masked and not said.use_ffn_bias_in_mlm:
        raise ValueError("model.use_ffn_bias_in_mlm is False; heads without it are not counted")
    if said.freeze_pretrained_model:
        raise ValueError(
            "model.freeze_pretrained_model is True, so that only the head is trained; that is not "
            "counted here: leave it out to have the whole model"
        )
    # Segments are embedded where the next sentence is asked for, and for every other head.
    segments = (0 if masked and said.disable_nsp else 2) if said.num_segments is None else (
        said.num_segments
    )  # fmt: skip
    pooled = (masked and not said.disable_nsp) or head == "classes"
    tags = {"tags": said.num_classes, "spans": 2, "sentences": 1}
    shape: dict[str, Any] = {**said.shape(), **activation("model.encoder_nonlinearity", first)}
    check_length(sequence, positions, shape)
    made = Transformer(
        **shape,
        vocab_size=said.vocab_size,
        max_sequence_length=sequence or positions,
        max_position_embeddings=positions + offset,
        share_embedding_weights=said.share_embedding_weights,
        use_bias_in_output=said.use_output_bias_in_mlm,
        embedding_norm=said.embedding_layer_norm,
        final_norm=said.use_final_layer_norm,
        token_types=segments,
        pooled=pooled,
        pooled_outputs=said.num_labels if head == "classes" else said.num_classes,
        head_transform=masked,
        head_transform_bias=said.use_ffn_bias_in_transform,
        first_unnormed=not said.first_layer_norm,
        language_head=masked,
        token_outputs=tags.get(head, 0),
        causal=False,
    )
    return transformer(name, made), made, beyond_windows(name, made)


@dataclass(frozen=True)
class Pair:
    """Words of T5 and of the first transformer."""

    src_vocab_size: Count
    d_model: Count
    d_kv: Count
    d_ff: Count
    num_heads: Count
    encoder_num_hidden_layers: Count
    decoder_num_hidden_layers: Count | None = None
    tgt_vocab_size: Count | None = None
    extra_ids: Whole = 0
    relative_attention_num_buckets: Count = 32
    norm_type: str = ""
    use_t5_layer_norm: bool = True
    encoder_nonlinearity: str = "relu"
    decoder_nonlinearity: str = "relu"
    use_projection_bias_in_attention: bool = False
    use_ffn_bias: bool = False
    position_embedding_type: str = "relative"
    src_max_position_embeddings: Count = 512
    tgt_max_position_embeddings: Count = 512
    share_encoder_decoder_embedding: bool = True
    share_embedding_weights: bool = True
    tie_encoder_decoder: bool = False
    use_pre_encoder_decoder_layer_norm: bool = True
    attention_module: str = "aiayn_attention"
    extra_attention_params: Groups = field(default_factory=Groups)
    name: str = ""


def pair(name: str, said: Pair, _: str, entered: Mapping[str, Any]) -> Read:
    """An encoder and a decoder, of the tokens that enter either."""
    sequences = [length(entered, f"{side}_max_sequence_length") for side in ("src", "tgt")]
    if said.tie_encoder_decoder or said.attention_module != "aiayn_attention":
        raise ValueError(
            f"model.tie_encoder_decoder is {said.tie_encoder_decoder}, attention_module "
            f"{said.attention_module!r}; a T5 is counted with False and 'aiayn_attention' alone"
        )
    kind = said.position_embedding_type.lower()
    stack = Stack(
        said.d_model,
        said.encoder_num_hidden_layers,
        said.num_heads,
        said.d_ff,
        position_embedding_type=kind,
        num_relative_attention_buckets=said.relative_attention_num_buckets,
        use_projection_bias_in_attention=said.use_projection_bias_in_attention,
        use_ffn_bias_in_attention=False,
        norm_type=said.norm_type or ("rmsnorm" if said.use_t5_layer_norm else "layernorm"),
    )
    # GELU without a gate has no biases there, whatever the file says.
    plain = "gelu" in (said.encoder_nonlinearity, said.decoder_nonlinearity)
    common: dict[str, Any] = {
        **stack.shape(),
        "head_width": said.d_kv,
        "share_embedding_weights": said.share_embedding_weights,
        "use_ffn_bias": said.use_ffn_bias and not plain,
        # Norms after the halves number as many; the norms at the end stay.
        "final_norm": True,
    }

    def half(rows: int, positions: int, tokens: int | None, word: str) -> Transformer:
        more = activation("model.encoder_nonlinearity", word)
        return Transformer(
            **{**common, **more},
            vocab_size=rows + said.extra_ids,
            max_sequence_length=tokens or positions,
            max_position_embeddings=positions,
        )

    longest = (said.src_max_position_embeddings, said.tgt_max_position_embeddings)
    source = half(said.src_vocab_size, longest[0], sequences[0], said.encoder_nonlinearity)
    rows = said.tgt_vocab_size or said.src_vocab_size
    target = half(rows, longest[1], sequences[1], said.decoder_nonlinearity)
    depth = said.decoder_num_hidden_layers or said.encoder_num_hidden_layers
    target = replace(target, num_hidden_layers=depth, causal=True)
    source = replace(source, causal=False)
    shared = said.share_encoder_decoder_embedding
    made = translation(name, source, target, one_embedding=shared)
    return made, (source, target, shared), ()


@dataclass(frozen=True)
class Picture(Stack):
    """Words of vision transformers."""

    num_classes: Count = 2
    image_size: tuple[Count, Count] = (224, 224)
    patch_size: tuple[Count, Count] = (16, 16)
    num_channels: Count = 3
    prepend_cls_token: bool = True
    prepend_teacher_token: bool = False
    use_conv_patchified_embedding: bool = False
    use_embed_proj_bias: bool = True
    use_post_embed_layer_norm: bool = False
    use_encoder_pooler_layer: bool = False
    use_final_layer_norm: bool = True
    use_bias_in_output: bool = True
    layerscale_value: float | None = None
    use_dinov2_classifier: bool = False
    pooler_nonlinearity: str = "tanh"


def picture(name: str, said: Picture, *_: Any) -> Read:
    """A classifier of images."""
    for key, usual in (
        ("use_embed_proj_bias", True),
        ("use_bias_in_output", True),
        ("use_dinov2_classifier", False),
    ):
        if getattr(said, key) != usual:
            raise ValueError(
                f"model.{key} is {getattr(said, key)}; vision transformers are counted with "
                f"{usual} alone: leave it out to have the rest"
            )
    own = said.prepend_cls_token + said.prepend_teacher_token
    tokens = patches(said.image_size, said.patch_size) + own
    shape: dict[str, Any] = said.shape()
    made = Transformer(
        **shape,
        vocab_size=1,
        max_sequence_length=tokens,
        embedding_norm=said.use_post_embed_layer_norm,
        final_norm=said.use_final_layer_norm,
        pooled=said.use_encoder_pooler_layer,
        layer_scale=said.layerscale_value is not None,
        causal=False,
    )
    options: dict[str, Any] = {
        "image_size": said.image_size,
        "patch_size": said.patch_size,
        "channels": said.num_channels,
        "classes": said.num_classes,
    }
    return vit(name, made, **options), (made, options), ()


@dataclass(frozen=True)
class Compressed:
    """What `vae` says of the latent image; the rest is another model, which is not trained."""

    latent_size: tuple[Count, Count] = (32, 32)
    latent_channels: Count = 4


@dataclass(frozen=True)
class Diffused(Stack):
    """Words of diffusion transformers."""

    encoder_nonlinearity: str = "gelu"
    latent_size: tuple[Count, Count] | None = None
    latent_channels: Count | None = None
    patch_size: tuple[Count, Count] = (16, 16)
    num_classes: Count = 1000
    frequency_embedding_size: Count = 256
    block_type: str = "adaln_zero"
    use_conv_patchified_embedding: bool = False
    use_conv_transpose_unpatchify: bool = True
    vae: Mapping[str, Any] | None = None


def diffused(name: str, said: Diffused, *_: Any) -> Read:
    """A diffusion transformer on latent images."""
    from wse._document import typed

    one_of("model.block_type", said.block_type, ("adaln_zero",))
    told = {k: v for k, v in (said.vae or {}).items() if k in ("latent_size", "latent_channels")}
    beside: Compressed = typed.made(Compressed, told, "model.vae")
    latent = Latent(
        said.latent_size or beside.latent_size,
        said.patch_size,
        said.latent_channels or beside.latent_channels,
        said.num_classes,
        said.frequency_embedding_size,
        leaving=1,
    )
    shape: dict[str, Any] = {
        **said.shape(),
        **activation("model.encoder_nonlinearity", said.encoder_nonlinearity),
    }
    tokens = patches(latent.size, latent.patch)
    made = Transformer(**shape, vocab_size=1, max_sequence_length=tokens, causal=False)
    doubts = ("model.vae makes the latent images before training: it is not counted",)
    return diffusion(name, made, latent), (made, latent), doubts if said.vae else ()
