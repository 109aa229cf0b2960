"""Hugging Face configurations of every known type: as many parameters as transformers' class has.

Each size and each flag of a small model is changed by itself, and the whole file is read, as the
class writes it: counts are equal, or the file is refused. And PyTorch counts its operations.
"""

import json
from importlib.util import find_spec
from typing import Any

import pytest

from wse.models.doors import bidirectional, causal, pyramids
from wse.models.doors.huggingface import READERS, from_config

torch = pytest.importorskip("torch", reason="the extra torch is not installed: make torch runs it")
if find_spec("timm") is None:  # not imported: torchvision may need help first
    pytest.skip("the extra torch is not installed: make torch", allow_module_level=True)

from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from validation.wse.torch_models import hf as transformers  # noqa: E402

pytestmark = [pytest.mark.validation, pytest.mark.filterwarnings("ignore")]
HALF = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4,
    "intermediate_size": 96}  # fmt: skip
SMALL = {
    "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 96,
    "num_key_value_heads": 2, "vocab_size": 300, "max_position_embeddings": 128, "head_dim": 16,
    "n_embd": 64, "n_layer": 3, "n_head": 4, "n_positions": 128, "rotary_dim": 8, "d_model": 64,
    "n_heads": 4, "n_layers": 3, "max_seq_len": 128, "dim": 64, "hidden_dim": 96, "ffn_dim": 96,
    "word_embed_proj_dim": 64, "num_layers": 3, "num_decoder_layers": 3, "d_ff": 96, "d_kv": 16,
    "num_heads": 4, "moe_intermediate_size": 40, "num_experts": 6, "num_local_experts": 6,
    "num_experts_per_tok": 2, "image_size": 64, "layer_types": None, "no_rope_layers": None,
    "q_lora_rank": 20, "kv_lora_rank": 24, "qk_rope_head_dim": 8, "qk_nope_head_dim": 12,
    "v_head_dim": 16, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1,
    "n_routed_experts": 6, "shared_expert_intermediate_size": 80,
    **{f"{side}coder_{what}": size for side in ("en", "de") for what, size in (
        ("layers", 3), ("attention_heads", 4), ("ffn_dim", 96))},
    "num_mel_bins": 8, "max_source_positions": 40, "max_target_positions": 32,
    "text_config": HALF, "vision_config": {**HALF, "image_size": 64, "patch_size": 16},
    "pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 3,
}  # fmt: skip

PICTURED = ("qwen2_vl", "qwen2_5_vl")
AMONG_WORDS = {  # of which the class takes 16 patches of 64 for one place of the words
    "image_token_id": 5, "video_token_id": 6, "vision_start_token_id": 7,
    "text_config": {**HALF, "num_key_value_heads": 2, "vocab_size": 300,
        "max_position_embeddings": 128, "rope_parameters": {"rope_type": "default",
        "rope_theta": 1e4, "mrope_section": [2, 3, 3]}},
    "vision_config": {"depth": 3, "num_heads": 4, "patch_size": 16, "image_size": 128},
}  # fmt: skip
IN_FULL = {"embed_dim": 32, "hidden_size": 64}
WITH_WINDOWS = {"hidden_size": 32, "out_hidden_size": 64, "intermediate_size": 40,
    "window_size": 64, "fullatt_block_indexes": [1]}  # fmt: skip


def mapping(kind: str) -> str:
    """Which of transformers' tables has the class that is counted."""
    heads = {
        "t5": "FOR_SEQ_TO_SEQ_CAUSAL_LM_",
        **dict.fromkeys(("vit", "deit", *pyramids.READERS), "FOR_IMAGE_CLASSIFICATION_"),
        "whisper": "FOR_SPEECH_SEQ_2_SEQ_",
        **dict.fromkeys(("clip", "siglip", "siglip2"), ""),
        **dict.fromkeys(PICTURED, "FOR_IMAGE_TEXT_TO_TEXT_"),
    }
    usual = "FOR_MASKED_LM_" if kind in bidirectional.READERS else "FOR_CAUSAL_LM_"
    return f"MODEL_{heads.get(kind, usual)}MAPPING"


def unused(kind: str, config: Any) -> int:
    """Parameters that no training changes: ESM's contacts, a bias beside that of an untied head."""
    if kind == "whisper":
        return config.max_source_positions * config.d_model
    if kind == "esm":
        return config.num_hidden_layers * config.num_attention_heads + 1
    twice = kind in ("bert", "roberta", "xlm-roberta") and not config.tie_word_embeddings
    return config.vocab_size if twice else 0


def changes(base: dict[str, Any]) -> list[dict[str, Any]]:
    """None, then every flag turned and every size doubled, those of halves too."""
    flags = [{key: not old} for key, old in base.items() if isinstance(old, bool)]
    sizes = [{key: 2 * old} for key, old in base.items() if type(old) is int and "token" not in key]
    sizes += [
        {key: [*old[:-1], 2 * old[-1]]}
        for key, old in base.items()
        if isinstance(old, list | tuple) and old and all(type(x) is int for x in old)
    ]
    halves = [
        {key: {**old, **change}}
        for key, old in base.items()
        for change in (changes(old)[1:] if key.endswith("_config") and old else ())
    ]
    return [{}, *flags, *sizes, *halves]


KINDS = [kind for kind in READERS if kind != "kimi_k2"]  # DeepSeek's class under another name


def small(kind: str) -> tuple[Any, Any, dict[str, Any]]:
    """What makes a configuration, its class, and a small one."""
    auto: Any = transformers.models.auto
    make = auto.configuration_auto.CONFIG_MAPPING[kind]
    classes = getattr(auto.modeling_auto, mapping(kind))
    known = make().to_dict().keys() | make.attribute_map.keys()
    known -= {"head_dim"} if "kv_lora_rank" in known else set()  # which follows from others
    if "depths" in known:  # which says how many there are
        known -= {"num_hidden_layers", "num_layers", "num_heads", "num_attention_heads",
            "hidden_size", "image_size"}  # fmt: skip
    cls = classes[make]
    sizes = SMALL
    if kind in PICTURED:
        more = WITH_WINDOWS if kind == "qwen2_5_vl" else IN_FULL
        sizes = {**AMONG_WORDS, "vision_config": {**AMONG_WORDS["vision_config"], **more}}
    if kind == "mamba2":
        sizes = {**SMALL, "head_dim": 32, "n_groups": 2, "chunk_size": 10}
    if kind in ("mamba", "falcon_mamba"):  # whose inner features follow from others
        known -= {"intermediate_size"}
    base = {**make(**{key: sizes[key] for key in sizes if key in known}).to_dict()}
    base = {key: base[key] for key in base if "mamba" not in kind or key != "intermediate_size"}
    return make, cls[0] if isinstance(cls, tuple) else cls, base


def read(kind: str, config: Any, cls: Any, sequence: int | None = None) -> Any:
    """The workload of a configuration, as its class writes it."""
    said = {**json.loads(config.to_json_string(use_diff=False)), "model_type": kind}
    sequence = sequence or (24 if "mamba" in kind else None)
    return from_config({**said, "architectures": [cls.__name__]}, kind, sequence).workload


@pytest.mark.parametrize("kind", KINDS)
def test_counts_are_those_of_the_class_whatever_is_changed(kind: str) -> None:
    make, cls, base = small(kind)
    compared = 0
    for change in changes(base):
        try:
            config = make(**{**base, **change})
            with torch.device("meta"):
                count = sum(x.numel() for x in cls(config).parameters())
        except Exception:  # sizes that do not fit together
            continue
        try:
            found = read(kind, config, cls)
        except ValueError:
            continue
        compared += 1
        assert found.parameters == count - unused(kind, config), change
    assert compared > 3


@pytest.mark.parametrize("kind", KINDS)
def test_operations_are_those_that_pytorch_counts(kind: str) -> None:
    make, cls, base = small(kind)
    config = make(**base)
    if "kv_lora_rank" in base:  # of which the class runs none but this
        config.num_key_value_heads = config.num_attention_heads
    # Attention in full, and of the experts those that are picked.
    config._attn_implementation, config._experts_implementation = "eager", "batched_mm"
    tokens = torch.full((1, 24), 4)
    given = {"input_ids": tokens}
    side = getattr(config, "image_size", SMALL["image_size"])
    images = {"pixel_values": torch.zeros(1, 3, side, side)}
    if kind in ("clip", "siglip", "siglip2"):
        longest = config.text_config.max_position_embeddings
        given = {"input_ids": tokens.new_full((1, longest), config.text_config.vocab_size - 1)}
        given |= images
        if kind == "siglip2":
            n, patch = (getattr(config.vision_config, x) for x in ("num_patches", "patch_size"))
            given["pixel_values"] = torch.zeros(1, n, 3 * patch**2)
            given["spatial_shapes"] = torch.tensor([[n // 16, 16]])
    elif kind in PICTURED:
        tokens[0, 2:18] = 5
        given["mm_token_type_ids"] = (tokens == 5).int()
        given |= {"pixel_values": torch.zeros(64, 3 * 2 * 16**2)}
        given["image_grid_thw"] = torch.tensor([[1, 8, 8]])
    elif cls.main_input_name == "pixel_values":
        given = images
    elif kind == "whisper":
        words = tokens.new_full((1, 32), 4)
        given = {"input_features": torch.zeros(1, 8, 80), "decoder_input_ids": words}
    elif config.is_encoder_decoder:
        given["decoder_input_ids"] = tokens
    with FlopCounterMode(display=False) as counted, torch.no_grad():
        cls(config).eval()(**given)
    words = given.keys() <= {"input_ids", "decoder_input_ids"} or kind in PICTURED
    found = read(kind, config, cls, tokens.shape[1] if words else None)
    # Of filters along the tokens PyTorch counts those behind the last one, which are cut off.
    net = found.origin[1]
    cut = 2 * 3 * net.taps * (net.taps - 1) * net.filtered if "mamba" in kind else 0
    assert found.forward_flops == counted.get_total_flops() - cut


WINDOWED = {"sliding_window": 5, "local_attention": 6, "max_window_layers": 2,
    "use_sliding_window": True, "num_hidden_layers": 6, "layer_types": None}  # fmt: skip


@pytest.mark.parametrize("kind", [*causal.WINDOWS, "qwen2_moe", "modernbert"])
def test_windows_are_of_the_keys_that_the_class_weighs(kind: str) -> None:
    make, cls, base = small(kind)
    config = make(**{**base, **{key: WINDOWED[key] for key in WINDOWED if key in base}})
    config._attn_implementation = "eager"
    with torch.no_grad():
        found = cls(config).eval()(input_ids=torch.full((1, 24), 4), output_attentions=True)
    weighed = [int((x[0] > 0).sum(-1).max()) for x in found.attentions]
    ours = read(kind, config, cls, 24).origin[1]
    assert [ours.met(i) for i in range(6)] == weighed
