"""Hugging Face configurations of every known type: parameters as many as of transformers' class.

Each size and each flag of a small model is changed by itself, and the whole file is read, as the
class writes it: counts are equal, or the file is refused.
"""

import json
from typing import Any

import pytest

from wse.models.doors import causal
from wse.models.doors.huggingface import READERS, from_config

torch = pytest.importorskip("torch", reason="the extra torch is not installed: make torch runs it")
transformers = pytest.importorskip("transformers", reason="make torch runs it")

pytestmark = [pytest.mark.validation, pytest.mark.filterwarnings("ignore")]
SMALL = {
    "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 96,
    "num_key_value_heads": 2, "vocab_size": 300, "max_position_embeddings": 128, "head_dim": 16,
    "n_embd": 64, "n_layer": 3, "n_head": 4, "n_positions": 128, "rotary_dim": 8, "d_model": 64,
    "n_heads": 4, "n_layers": 3, "max_seq_len": 128, "dim": 64, "hidden_dim": 96, "ffn_dim": 96,
    "word_embed_proj_dim": 64, "num_layers": 3, "num_decoder_layers": 3, "d_ff": 96, "d_kv": 16,
    "num_heads": 4, "moe_intermediate_size": 40, "num_experts": 6, "num_local_experts": 6,
    "num_experts_per_tok": 2, "image_size": 64, "layer_types": None, "no_rope_layers": None,
    "pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 3,
}  # fmt: skip


def mapping(kind: str) -> str:
    """Which of transformers' tables has the class that is counted."""
    heads = {"t5": "SEQ_TO_SEQ_CAUSAL_LM", **dict.fromkeys(("vit", "deit"), "IMAGE_CLASSIFICATION")}
    return heads.get(kind, "CAUSAL_LM" if kind in causal.READERS else "MASKED_LM")


def unused(kind: str, config: Any) -> int:
    """Parameters that no training changes: ESM's contacts, a bias beside that of an untied head."""
    if kind == "esm":
        return config.num_hidden_layers * config.num_attention_heads + 1
    twice = kind in ("bert", "roberta", "xlm-roberta") and not config.tie_word_embeddings
    return config.vocab_size if twice else 0


def changes(base: dict[str, Any]) -> list[dict[str, Any]]:
    """None, then every flag turned and every size doubled."""
    flags = [{key: not old} for key, old in base.items() if isinstance(old, bool)]
    sizes = [{key: 2 * old} for key, old in base.items() if type(old) is int and "token" not in key]
    return [{}, *flags, *sizes]


@pytest.mark.parametrize("kind", READERS)
def test_counts_are_those_of_the_class_whatever_is_changed(kind: str) -> None:
    auto: Any = transformers.models.auto
    make = auto.configuration_auto.CONFIG_MAPPING[kind]
    classes = getattr(auto.modeling_auto, f"MODEL_FOR_{mapping(kind)}_MAPPING")
    known = make().to_dict().keys() | make.attribute_map.keys()
    base = {**make(**{key: SMALL[key] for key in SMALL if key in known}).to_dict()}
    read = 0
    for change in changes(base):
        try:
            config = make(**{**base, **change})
            cls = classes[type(config)]
            cls = cls[0] if isinstance(cls, tuple) else cls
            with torch.device("meta"):
                count = sum(x.numel() for x in cls(config).parameters())
        except Exception:  # sizes that do not fit together
            continue
        said = {**json.loads(config.to_json_string(use_diff=False)), "model_type": kind}
        try:
            found = from_config({**said, "architectures": [cls.__name__]}, kind)
        except ValueError:
            continue
        read += 1
        assert found.workload.parameters == count - unused(kind, config), change
    assert read > 3
