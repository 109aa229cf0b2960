"""Mixtures of experts by the words of Hugging Face: DeepSeek, gpt-oss, Qwen, GLM.

Sources: the configurations and classes of these models in huggingface/transformers.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from wse._document import short
from wse.models.doors.causal import Read, rotary
from wse.models.doors.told import Said, Told

EXPERTS = ("n_routed_experts", "num_local_experts", "num_experts")
AHEAD = ("num_nextn_predict_layers", "num_mtp_layers")


def deepseek(
    told: Told, many: int = 256, first: int = 3, ranks: tuple[int, int] = (1536, 512)
) -> Read:
    """DeepSeek V2, V3, R1 and Kimi K2: compressed keys and values, shared and routed experts.

    Args:
        told: what the file says.
        many: experts where nothing says; so of the following.
        first: blocks without experts.
        ranks: of queries, and of keys and values.
    """
    said = rotary(told, experts=EXPERTS, many=many, width=1)[1]
    queries = told.whole("q_lora_rank", None if "q_lora_rank" in told.null else ranks[0])
    few = {
        "keys": told.count("kv_lora_rank", ranks[1]),
        "queries": queries or 0,
        "plain": told.count("qk_nope_head_dim", 128),
        "turned": told.count("qk_rope_head_dim", 64),
        "value": told.count("v_head_dim", 128),
    }
    told.names["turned of compressed attention"] = "qk_rope_head_dim"
    told.only("mlp_bias", False, "biases beside experts that have none are not counted")
    # Every head has a key of its own, whatever is said of groups.
    for word in ("attention_module", "extra_attention_params"):
        said.pop(word, None)
    said["attention_inner_dim"] = (few["plain"] + few["turned"]) * said["num_heads"]
    return "decoder", {**said, **_layered(told, first), "attention_compressed": few}


def _layered(told: Told, first: int, width: int = 2048) -> Said:
    """Words of experts that are shared and routed, behind first blocks without experts."""
    if (often := told.whole("moe_layer_freq", 1)) != 1:
        raise ValueError(
            f"moe_layer_freq of {told.name} is {often}; layers with experts beside layers without "
            "are counted at the beginning alone: write 1"
        )
    ahead = told.whole(told.either(*AHEAD), 0)
    if ahead:
        told.cautions.append(
            f"{ahead} blocks that predict further words are left out, as the class leaves them out"
        )
    picked = told.whole("num_experts_per_tok", 8)
    shared, many = told.whole("n_shared_experts", 1), told.whole(told.either(*EXPERTS), 256)
    told.names |= {
        "filter_size": "moe_intermediate_size",
        "moe_dense_filter_size": "intermediate_size",
        "moe_dense_first": "first_k_dense_replace",
    }
    return {
        "moe": {"num_experts": many, "top_k": picked, "num_shared_experts": shared},
        "moe_dense_first": told.whole("first_k_dense_replace", first),
        "moe_dense_filter_size": told.whole("intermediate_size"),
        "filter_size": told.count("moe_intermediate_size", width),
    }


def glm4_moe(told: Told) -> Read:
    """GLM 4.5 with experts, shared and routed."""
    said = rotary(told, groups=8, experts=EXPERTS, many=128, use_ffn_bias_in_attention=False)[1]
    normed = {"attention_qk_norm_layer": "rmsnorm"} if told.flag("use_qk_norm", False) else {}
    return "decoder", {**said, **_layered(told, 1, 1408), **normed}


def gpt_oss(told: Told) -> Read:
    """gpt-oss: experts and a router with biases, and a score of each head that takes none in."""
    told.either("num_experts_per_tok", "experts_per_token")
    said = rotary(told, biased=True, groups=8, width=64, experts=EXPERTS[1:], many=128, picked=4)[1]
    return "decoder", {
        **said,
        "use_ffn_bias": True,
        "moe_router_bias": True,
        "attention_sinks": True,
    }


def qwen2_moe(told: Told) -> Read:
    """Qwen 2 with experts in every layer, and one that each token meets by a share of its own."""
    family, said = _qwen_moe(told, 60, 4, 1408, qkv_bias=told.flag("qkv_bias", True))
    wide, one = told.count("shared_expert_intermediate_size", 5632), said["filter_size"]
    if wide % one:
        raise ValueError(
            f"shared_expert_intermediate_size of {told.name} is {wide}; it is counted where it is "
            f"a multiple of moe_intermediate_size {one}: change one of them"
        )
    said["moe"]["num_shared_experts"] = wide // one
    return family, {**said, "moe_shared_gate": True}


def qwen3_moe(told: Told) -> Read:
    """Qwen 3 with experts in every layer."""
    return _qwen_moe(told, 128, 8, 768, groups=4, attention_qk_norm_layer="rmsnorm")


def _qwen_moe(told: Told, many: int, picked: int, width: int, **more: Any) -> Read:
    every: Said = {"decoder_sparse_step": 1, "mlp_only_layers": []}
    told.asked += every
    for key, alone in every.items():
        if (found := told.said.get(key, alone)) != alone:
            raise ValueError(
                f"{key} of {told.name} is {short(found)}; layers with experts beside layers "
                f"without are not counted: write {alone} to have experts in all"
            )
    usual: Said = {"experts": ("num_experts", "num_local_experts"), "many": many, "picked": picked}
    said = rotary(told, windowed=False, **usual, **more)[1]
    told.names["filter_size"] = "moe_intermediate_size"
    return "decoder", {**said, "filter_size": told.whole("moe_intermediate_size", width)}


READERS: Mapping[str, Callable[[Told], Read]] = {
    "deepseek_v2": partial(deepseek, many=64, first=0),
    "deepseek_v3": deepseek,
    "kimi_k2": deepseek,
    "glm4_moe": glm4_moe,
    "gpt_oss": gpt_oss,
    "qwen2_moe": qwen2_moe,
    "qwen3_moe": qwen3_moe,
}
