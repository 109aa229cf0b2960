"""Encoders by the words of Hugging Face: BERT and its kin, ESM-2, ViT, and T5 of two stacks.

Sources: the configurations and classes of these models in huggingface/transformers.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast

from wse.models.doors.causal import GATES as GATED
from wse.models.doors.decoders import PLAIN
from wse.models.doors.told import COMMON, Said, Told

HEADS = {
    "MaskedLM": "masked",
    "SequenceClassification": "classes",
    "TokenClassification": "tags",
    "QuestionAnswering": "spans",
}
GATES = {"gated-gelu": "geglu", "gated-silu": "swiglu"}  # of T5
Read = tuple[str, Said]


def bert(told: Told) -> Read:
    """BERT with the head that its class names; with that of pre-training where it names none."""
    head = told.headed((*HEADS, "PreTraining"))
    if not head:
        told.cautions.append(
            "architectures is not said: the heads of BertForPreTraining are counted, those of "
            "masked words and of the next sentence"
        )
    family = HEADS.get(head, "masked")
    said = _encoder(told, family, ("absolute",), 2)
    return family, {**said, "disable_nsp": head == "MaskedLM"}


def roberta(told: Told) -> Read:
    """RoBERTa and XLM-RoBERTa: BERT whose positions begin behind the padding's."""
    family = HEADS.get(told.headed((*HEADS,)), "masked")
    said = _encoder(told, family, ("absolute",), 2)
    return family, {**said, **_behind(told, said), "disable_nsp": True}


def distilbert(told: Told) -> Read:
    """DistilBERT: BERT without segments and without the next sentence."""
    family = HEADS.get(told.headed((*HEADS,)), "masked")
    labels = told.labels()
    names = {
        "dim": "hidden_size",
        "n_layers": "num_hidden_layers",
        "n_heads": "num_heads",
        "hidden_dim": "filter_size",
        "vocab_size": "vocab_size",
        "max_position_embeddings": "max_position_embeddings",
    }
    said = told.sizes(names)
    told.only("sinusoidal_pos_embds", False, "positions that begin as sines are not counted")
    # The older word says the same of the same matrix.
    key = told.either("tie_word_embeddings", "tie_weights_")
    return family, {
        **said,
        "encoder_nonlinearity": told.word("activation", "gelu", PLAIN),
        "num_segments": 0,
        "disable_nsp": True,
        "share_embedding_weights": told.flag(key, True),
        "num_labels": labels,
        "num_classes": labels if family == "tags" else 2,
    }


def esm(told: Told) -> Read:
    """ESM-2, and ESM-1b whose positions are a table."""
    told.only("is_folding_model", False, "the folding trunk is not counted")
    family = HEADS.get(told.headed(("MaskedLM", "SequenceClassification")), "masked")
    # The class computes GELU, whatever the file says.
    said = _encoder(told, family, ("absolute", "rotary"), 0)
    said["encoder_nonlinearity"] = "gelu"
    said |= {"use_final_layer_norm": True, "disable_nsp": True}
    said["embedding_layer_norm"] = told.flag("emb_layer_norm_before", False)
    if said["position_embedding_type"] == "learned":
        return family, {**said, **_behind(told, said)}
    rows, h = said["max_position_embeddings"], said["hidden_size"]
    told.cautions.append(
        f"weights that were published hold {rows} x {h} = {rows * h:,} positions more, which a "
        "rotary model never reads and no training changes; they are not counted"
    )
    return family, said


def _encoder(told: Told, family: str, kinds: tuple[str, ...], segments: int) -> Said:
    labels, said = told.labels(), told.sizes(COMMON)
    for key in ("is_decoder", "add_cross_attention"):
        told.only(key, False, "an encoder is counted without what makes it a decoder")
    kind = told.word("position_embedding_type", "absolute", kinds)
    return {
        **said,
        "encoder_nonlinearity": told.word("hidden_act", "gelu", PLAIN),
        "num_segments": told.whole("type_vocab_size", segments) if segments else 0,
        "position_embedding_type": "learned" if kind == "absolute" else kind,
        "share_embedding_weights": told.flag("tie_word_embeddings", True),
        "num_labels": labels,
        "num_classes": labels if family == "tags" else 2,
    }


def _behind(told: Told, said: Said) -> Said:
    """Positions that begin one behind the padding's number: the rows before them have no token."""
    before, rows = told.whole("pad_token_id", 1) + 1, said["max_position_embeddings"]
    if rows <= before:
        raise ValueError(
            f"max_position_embeddings of {told.name} is {rows}; positions begin at {before}, "
            "behind the padding's: raise it"
        )
    return {
        "max_position_embeddings": rows - before,
        "pad_token_id": before,
        "mask_padding_in_positional_embed": True,
    }


def modernbert(told: Told) -> Read:
    """ModernBERT: gated, with rotary positions; the first block begins without its norm."""
    told.headed(("MaskedLM",))
    told.only("sparse_prediction", False, "a head on the masked words alone is not counted")
    told.word("position_embedding_type", None)  # the class turns them, whatever is said
    said, window = told.sizes(COMMON), told.count("local_attention", 128) or 128
    every, layers = told.count("global_attn_every_n_layers", 3) or 3, said["num_hidden_layers"]
    near = told.near(layers) or [i % every > 0 for i in range(layers)]
    kind = told.word("hidden_activation", "gelu", tuple(GATED))
    shifts = told.flag("norm_bias", False)
    bias = told.flag("attention_bias", False)
    return "masked", {
        **said,
        "encoder_nonlinearity": GATED[kind],
        "norm_type": "layernorm" if shifts else "biasless-layernorm",
        "position_embedding_type": "rotary",
        "use_projection_bias_in_attention": bias,
        "use_ffn_bias_in_attention": bias,
        "use_ffn_bias": told.flag("mlp_bias", False),
        "use_ffn_bias_in_transform": told.flag("classifier_bias", False),
        "use_output_bias_in_mlm": told.flag("decoder_bias", True),
        "share_embedding_weights": told.flag("tie_word_embeddings", True),
        "use_final_layer_norm": True,
        "first_layer_norm": False,
        # A token meets itself, and half a window to either side.
        "keys_met": [one * (window // 2 * 2 + 1) for one in near],
        "num_segments": 0,
        "disable_nsp": True,
    }


def t5(told: Told) -> Read:
    """T5: an encoder and a decoder."""
    told.headed(("ConditionalGeneration", "LMHeadModel"))
    same = ("d_model", "d_kv", "d_ff", "num_heads")
    names = {**dict.fromkeys(same), "vocab_size": "src_vocab_size"}
    names = {theirs: ours or theirs for theirs, ours in names.items()}
    said = told.sizes({**names, "num_layers": "encoder_num_hidden_layers"})
    known = ("relu", "gelu", "gelu_new", "silu", *GATES)
    word = told.word("feed_forward_proj", "relu", known)
    gate = GATES.get(word, word)
    if (gated := told.flag("is_gated_act", word != gate)) != (word != gate):
        raise ValueError(
            f"is_gated_act of {told.name} is {gated}, feed_forward_proj {word!r}; only words such "
            "as 'gated-gelu' have a gate: correct one of them"
        )
    layers, rows = said["encoder_num_hidden_layers"], told.whole("n_positions", 512)
    told.names["decoder_num_hidden_layers"] = "num_decoder_layers"
    return "pair", {
        **said,
        "decoder_num_hidden_layers": told.whole("num_decoder_layers", layers),
        "relative_attention_num_buckets": told.whole("relative_attention_num_buckets", 32),
        **dict.fromkeys(("encoder_nonlinearity", "decoder_nonlinearity"), gate),
        "share_embedding_weights": told.flag("tie_word_embeddings", True),
        **dict.fromkeys(("src_max_position_embeddings", "tgt_max_position_embeddings"), rows),
    }


def vit(told: Told) -> Read:
    """ViT, a classifier of images."""
    told.headed(("ImageClassification",))
    left_out, labels = ("vocab_size", "max_position_embeddings"), told.labels()
    said = told.sizes({key: ours for key, ours in COMMON.items() if key not in left_out})
    return "picture", {
        **said,
        "nonlinearity": told.word("hidden_act", "gelu", PLAIN),
        "image_size": sides(told, "image_size", 224),
        "patch_size": sides(told, "patch_size", 16),
        "num_channels": told.whole("num_channels", 3),
        "use_projection_bias_in_attention": told.flag("qkv_bias", True),
        "num_classes": labels,
    }


def deit(told: Told) -> Read:
    """DeiT: ViT with a token of a teacher beside the class's."""
    family, said = vit(told)
    return family, {**said, "prepend_teacher_token": True}


def sides(told: Told, key: str, usual: int) -> Any:
    """One side of a square, or two sides."""
    if isinstance(found := told.said.get(key), list):
        told.asked.append(key)
        return cast("list[Any]", found)
    side = told.whole(key, usual)
    return [side, side]


READERS: Mapping[str, Callable[[Told], Read]] = {
    "bert": bert,
    "roberta": roberta,
    "xlm-roberta": roberta,
    "distilbert": distilbert,
    "esm": esm,
    "t5": t5,
    "vit": vit,
    "deit": deit,
    "modernbert": modernbert,
}
