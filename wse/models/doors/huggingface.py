"""A Hugging Face `config.json`, put into the words of the Model Zoo, which are then counted.

Sources: the classes that `model_type` names in huggingface/transformers, and their defaults.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from wse import _document
from wse._document import nearest, short
from wse.models.doors import words
from wse.models.doors.decoders import one_of
from wse.models.doors.families import read_words
from wse.models.doors.given import ReadModel

Said = dict[str, Any]
HEADS = {  # what is counted behind the blocks, by what stands behind "For" in a class's name
    **dict.fromkeys(("decoder", "parallel"), ("CausalLM",)),
    "masked": ("MaskedLM", "PreTraining"),
    "pair": ("ConditionalGeneration",),
    "picture": ("ImageClassification",),
}
SIZES: Mapping[str, tuple[str, ...]] = {  # what must be said, where another model's stands in
    "gpt2": (),  # its classes have those of GPT-2
    "gptj": (),
    "t5": ("vocab_size",),
    "vit": (),
    "falcon": ("vocab_size",),
}
GATES = {
    "silu": "swiglu",
    "swish": "swiglu",
    "gelu": "geglu",
    "gelu_new": "geglu",
    "gelu_pytorch_tanh": "geglu",
    "relu": "reglu",
}
DTYPES = {"float32": "float32", "float16": "float16", "bfloat16": "bfloat16"}
COMMON = {  # their word, ours, and what is meant where it is not said
    "vocab_size": ("vocab_size", None),
    "hidden_size": ("hidden_size", None),
    "num_hidden_layers": ("num_hidden_layers", None),
    "num_attention_heads": ("num_heads", None),
    "intermediate_size": ("filter_size", None),
    "max_position_embeddings": ("max_position_embeddings", None),
}
OLD = {
    "vocab_size": ("vocab_size", None),
    "n_embd": ("hidden_size", None),
    "n_layer": ("num_hidden_layers", None),
    "n_head": ("num_heads", None),
    "n_positions": ("max_position_embeddings", None),
}


def read_json(path: Path) -> Mapping[str, Any]:
    """The object that a JSON file holds.

    Raises:
        ValueError: no such file, one too large, text that is no JSON, or JSON that is no object.
    """
    path = path / "config.json" if path.is_dir() else path
    if not path.is_file():
        raise ValueError(f"{path} is no file; it must be a config.json: check the path")
    if path.stat().st_size > _document.MOST_BYTES:
        raise ValueError(
            f"{path} is larger than {_document.MOST_BYTES} bytes; it is no config.json"
        )
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON text in UTF-8 ({error}): save it again") from error
    if not isinstance(found, dict):
        raise ValueError(
            f"{path} holds {type(found).__name__}; a config.json holds names and values, as "
            '{"model_type": "llama", ...}'
        )
    return cast("dict[str, Any]", found)


def from_config(found: Mapping[str, Any], name: str, sequence: int | None = None) -> ReadModel:
    """A model of a configuration that has been read.

    Args:
        found: what is in the file.
        name: what tables call the model.
        sequence: tokens per sample; None: as many as there are positions.

    Raises:
        ValueError: an unknown `model_type`, a key that is not known, or values that contradict
            each other.
    """
    said, kind = {key: value for key, value in found.items() if value is not None}, "model_type"
    if kind not in said:
        raise ValueError(f"{name} has no model_type; it must say which model: add one")
    reader = READERS.get(str(said[kind]))
    if reader is None:
        near = nearest(str(said[kind]), READERS)
        raise ValueError(f"model_type of {name} is {short(said[kind])}, which is not known: {near}")
    rest, harmless = words.sifted(said, words.CONFIG)
    told = _Told(rest)
    family, model = reader(told)
    _check_head(told, family, name)
    unknown = [key for key in rest if key not in told.asked]
    if unknown:
        near = nearest(unknown[0], told.asked)
        raise ValueError(
            f"{name} has the key {short(unknown[0])}, which is not known of {said[kind]}: {near}"
        )
    entered = {} if sequence is None else {"max_sequence_length": sequence}
    made, net, doubts = read_words(family, model, entered, name)
    told.need(SIZES.get(str(said[kind]), ("vocab_size", "max_position_embeddings")), name)
    dtype = str(said.get("torch_dtype") or said.get("dtype") or "").removeprefix("torch.")
    return ReadModel(
        made, family, net, precision=DTYPES.get(dtype), harmless=harmless, cautions=doubts
    )


class _Told:
    """What a configuration says, and which of its keys were asked for."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        self.said, self.asked = said, [*("model_type", "architectures")]

    def __call__(self, key: str, usual: Any = None) -> Any:
        """The value of a key, or what is usual."""
        self.asked.append(key)
        return self.said.get(key, usual)

    def renamed(self, table: Mapping[str, tuple[str, Any]]) -> Said:
        """Keys of a table under our words; those that are not said are left out."""
        pairs = {ours: self(theirs, usual) for theirs, (ours, usual) in table.items()}
        return {key: value for key, value in pairs.items() if value is not None}

    def need(self, keys: tuple[str, ...], name: str) -> None:
        """Refuse a file without sizes that would else be those of another model."""
        for key in keys:
            if key not in self.said:
                raise ValueError(
                    f"{name} lacks {key}; the classes of {self.said['model_type']} differ in it, "
                    f"so it must be given: add {key}"
                )

    @property
    def architecture(self) -> str:
        """The first class that the file names; empty where there is none."""
        several = self.said.get("architectures") or [""]
        return str(cast("list[Any]", several)[0] if isinstance(several, list) else several)

    def head(self, usual: str) -> str:
        """What the name of the class ends in, after "For"."""
        first = self.architecture
        return first.partition("For")[2] or ("Model" if first.endswith("Model") else usual)


def _check_head(told: _Told, family: str, name: str) -> None:
    """Refuse a class whose head is another than the one that is counted."""
    known = HEADS.get(family, ())
    first, head = told.architecture, told.head("")
    if head and known and head not in known and not first.endswith(("LMHeadModel", *known)):
        raise ValueError(
            f"{name} is {short(first)}, of which the head is not counted: write architectures: "
            f'["...For{known[0]}"] to have the model with that head'
        )


def _llama(
    qkv_bias: bool = False, tied: bool = False, groups: int | None = None
) -> "Callable[[_Told], tuple[str, Said]]":
    def read(told: _Told) -> tuple[str, Said]:
        said = told.renamed(COMMON)
        function = told("hidden_activation") or told("hidden_act", "silu")
        bias = bool(told("attention_bias", False))
        kv, width = told("num_key_value_heads", groups), told("head_dim")
        # Published files say a window and that it is not used.
        used, window = told("use_sliding_window", not qkv_bias), told("sliding_window")
        one_of("hidden_act", str(function), tuple(GATES))
        said |= {
            "nonlinearity": GATES[str(function)],
            "norm_type": "rmsnorm",
            "position_embedding_type": "rotary",
            "share_embedding_weights": told("tie_word_embeddings", tied),
            "use_projection_bias_in_attention": bias or qkv_bias,
            "use_ffn_bias_in_attention": bias,
            "use_ffn_bias": told("mlp_bias", False),
        }
        experts, picked = told("num_local_experts"), told("num_experts_per_tok", 2)
        if experts:
            said["moe"] = {"num_experts": experts, "top_k": picked}
        if used and window is not None:
            said["attention_sliding_window_length"] = window
        return "decoder", {**said, **_heads(said, kv, width)}

    return read


def _heads(said: Said, kv: Any, width: Any = None) -> Said:
    made: Said = {}
    if kv is not None:
        made["attention_module"] = "multiquery_attention"
        made["extra_attention_params"] = {"num_kv_groups": kv}
    heads = said.get("num_heads")
    if isinstance(width, int) and isinstance(heads, int):
        made["attention_inner_dim"] = width * heads
    return made


def _gemma(told: _Told) -> tuple[str, Said]:
    if "head_dim" not in told.said:
        told.said = {**told.said, "head_dim": 256}
    return _llama(tied=True, groups=16)(told)


def _gpt2(told: _Told) -> tuple[str, Said]:
    said, inner = told.renamed(OLD), told("n_inner")
    said["filter_size"] = inner or _four(said)
    said["nonlinearity"] = told("activation_function", "gelu_new")
    said["share_embedding_weights"] = told("tie_word_embeddings", True)
    return "decoder", said


def _gptj(told: _Told) -> tuple[str, Said]:
    said = _gpt2(told)[1]
    if told("rotary", True) is not True:
        raise ValueError(
            f"rotary is {short(told('rotary'))}; GPT-J is counted with rotary positions alone: "
            "write true"
        )
    said |= {"position_embedding_type": "rotary", "use_bias_in_output": True}
    said |= {"use_projection_bias_in_attention": False, "use_ffn_bias_in_attention": False}
    said["share_embedding_weights"] = told("tie_word_embeddings", False)
    return "parallel", said


def _neox(told: _Told) -> tuple[str, Said]:
    said, bias = told.renamed(COMMON), told("attention_bias", True)
    said |= {"nonlinearity": told("hidden_act", "gelu"), "position_embedding_type": "rotary"}
    said |= {"use_projection_bias_in_attention": bias, "use_ffn_bias_in_attention": bias}
    said["share_embedding_weights"] = told("tie_word_embeddings", False)
    if told("use_parallel_residual", True):
        return "parallel", {**said, "use_untied_layer_norm": True}
    return "decoder", said


def _falcon(told: _Told) -> tuple[str, Said]:
    table = {key: pair for key, pair in COMMON.items() if key != "intermediate_size"}
    said, newer = told.renamed(table), told("new_decoder_architecture", False)
    said.setdefault("max_position_embeddings", 2048)
    bias, alibi = told("bias", False), told("alibi", False)
    many, parallel = told("multi_query", True), told("parallel_attn", True)
    kv = told("num_kv_heads") if newer else (1 if many else None)
    norms = told("num_ln_in_parallel_attn", 2 if newer else 1)
    said |= {
        "filter_size": told("ffn_hidden_size") or _four(said),
        "nonlinearity": told("activation", "gelu"),
        "position_embedding_type": "alibi" if alibi else "rotary",
        "share_embedding_weights": told("tie_word_embeddings", True),
        **dict.fromkeys(("use_projection_bias_in_attention", "use_ffn_bias_in_attention"), bias),
        "use_ffn_bias": bias,
    }
    said |= _heads(said, kv)
    if not parallel and not newer:
        return "decoder", said
    return "parallel", {**said, "use_untied_layer_norm": norms == 2}


def _bert(told: _Told) -> tuple[str, Said]:
    heads = {"SequenceClassification": "classes", "TokenClassification": "tags"}
    heads |= {"QuestionAnswering": "spans", "MaskedLM": "masked", "PreTraining": "masked"}
    said, head = told.renamed(COMMON), told.head("PreTraining")
    family = heads.get(head, "masked")
    said |= {
        "encoder_nonlinearity": told("hidden_act", "gelu"),
        "num_segments": told("type_vocab_size", 2),
        "position_embedding_type": _learned(told("position_embedding_type", "absolute")),
        "disable_nsp": head == "MaskedLM",
        "share_embedding_weights": told("tie_word_embeddings", True),
    }
    labels = _labels(told)
    return family, {**said, "num_labels": labels, "num_classes": labels if family == "tags" else 2}


def _esm(told: _Told) -> tuple[str, Said]:
    if told("is_folding_model", False):
        raise ValueError("is_folding_model is True; the folding trunk is not counted here")
    said = told.renamed(COMMON)
    told("hidden_act")  # the class computes GELU, whatever the file says
    said |= {
        "encoder_nonlinearity": "gelu",
        "position_embedding_type": _learned(told("position_embedding_type", "absolute")),
        "embedding_layer_norm": told("emb_layer_norm_before", False),
        "use_final_layer_norm": True,
        "disable_nsp": True,
        "share_embedding_weights": told("tie_word_embeddings", True),
    }
    return "masked", said


def _t5(told: _Told) -> tuple[str, Said]:
    names = ("d_model", "d_kv", "d_ff", "num_heads", "relative_attention_num_buckets")
    said = told.renamed({name: (name, None) for name in names})
    function, tied = str(told("feed_forward_proj", "relu")), told("tie_word_embeddings", True)
    layers = told("num_layers")
    gated = "geglu" if function == "gated-gelu" else function
    return "pair", {
        **said,
        "src_vocab_size": told("vocab_size"),
        "encoder_num_hidden_layers": layers,
        "decoder_num_hidden_layers": told("num_decoder_layers", layers),
        "encoder_nonlinearity": gated,
        "decoder_nonlinearity": gated,
        "share_embedding_weights": tied,
        "src_max_position_embeddings": told("n_positions", 512),
        "tgt_max_position_embeddings": told("n_positions", 512),
    }


def _vit(told: _Told) -> tuple[str, Said]:
    names = {key: pair for key, pair in COMMON.items() if "hidden" in key or "inter" in key}
    names["num_attention_heads"] = ("num_heads", None)
    said, size, patch = told.renamed(names), told("image_size", 224), told("patch_size", 16)
    return "picture", {
        **said,
        "nonlinearity": told("hidden_act", "gelu"),
        "image_size": [size, size] if isinstance(size, int) else size,
        "patch_size": [patch, patch] if isinstance(patch, int) else patch,
        "num_channels": told("num_channels", 3),
        "use_projection_bias_in_attention": told("qkv_bias", True),
        "num_classes": _labels(told),
    }


def _learned(kind: Any) -> Any:
    return "learned" if kind == "absolute" else kind


def _labels(told: _Told) -> int:
    names = told("id2label")
    return len(_document.mapping(names, "id2label")) if names else told("num_labels", 2)


def _four(said: Said) -> Any:
    size = said.get("hidden_size")
    return 4 * size if isinstance(size, int) else None


READERS: Mapping[str, Callable[[_Told], tuple[str, Said]]] = {
    "llama": _llama(),
    "mistral": _llama(groups=8),
    "mixtral": _llama(groups=8),
    "qwen2": _llama(qkv_bias=True, groups=32),
    "gemma": _gemma,
    "gpt2": _gpt2,
    "gptj": _gptj,
    "gpt_neox": _neox,
    "falcon": _falcon,
    "bert": _bert,
    "esm": _esm,
    "t5": _t5,
    "vit": _vit,
}
