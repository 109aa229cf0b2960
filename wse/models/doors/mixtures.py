"""Mixtures of experts and state spaces by the words of Hugging Face: DeepSeek, Qwen, GLM, Mamba.

Sources: the configurations and classes of these models in huggingface/transformers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from wse._document import short
from wse.models.doors.causal import Read, rotary
from wse.models.doors.decoders import PLAIN, Count, Whole, length
from wse.models.doors.told import Said, Told
from wse.models.shapes.recurrent import Recurrent, recurrent
from wse.models.shapes.workload import Workload

STEPS = (  # first values of the steps, how they are kept, and names of kernels
    "time_step_scale", "time_step_min", "time_step_max", "time_step_floor", "time_step_limit",
    "time_step_init_scheme", "rescale_prenorm_residual", "residual_in_fp32", "use_mambapy",
    "use_falcon_mambapy", "use_associative_scan", "mixer_rms_eps", "fused_add_norm", "rms_norm",
    "ssm_cfg", "pad_vocab_size_multiple", "norm_before_gate",
)  # fmt: skip
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


@dataclass(frozen=True)
class Spaced:
    """Words of a state space."""

    hidden_size: Count
    num_hidden_layers: Count
    inner: Count
    states: Count
    taps: Count
    vocab_size: Count
    rank: Whole = 0
    heads: Whole = 0
    groups: Count = 1
    chunk: Count = 256
    shared: bool = False
    bias: bool = False
    taps_bias: bool = True
    evened: bool = False
    nonlinearity: str = "silu"


def spaced(
    name: str, said: Spaced, _: str, entered: Mapping[str, Any]
) -> tuple[Workload, Recurrent, tuple[str, ...]]:
    """A state space, of as many tokens as are asked for."""
    tokens = length(entered)
    if tokens is None:
        raise ValueError(
            f"sequence of {name} is not said; a state space has no longest one: pass "
            "sequence=2048, or --sequence 2048"
        )
    net = Recurrent(**vars(said), max_sequence_length=tokens)
    made, more = recurrent(name, net), net.one_by_one
    loop = (
        f"{more:.3g} operations of a sample, {more / made.forward_flops:.0%} of those counted, are "
        "no products but states that change number by number, token after token: not in the "
        "time, which is of a machine that would run such a loop",
    )
    return made, net, loop if more else ()


def mamba(told: Told, tied: bool = True, evened: bool = False) -> Read:
    """Mamba 1 and Falcon Mamba; of the latter what makes the steps has norms without parameters."""
    said = _state_space(told, 50280, 16, tied)
    return "recurrent", {**said, "rank": _rank(told, said["hidden_size"]), "evened": evened}


def mamba2(told: Told) -> Read:
    """Mamba 2: heads, whose states are products of chunks of tokens."""
    said = _state_space(told, 32768, 128, False)
    _rank(told, said["hidden_size"])  # which the class does not use
    heads, width = told.sure("num_heads", 128), told.sure("head_dim", 64)
    if heads * width != said["inner"]:
        raise ValueError(
            f"num_heads of {told.name} is {heads}, head_dim {width}; their product must be "
            f"hidden_size times expand, {said['inner']}: correct one of them"
        )
    told.names |= {"groups": "n_groups"}
    more = {"groups": told.sure("n_groups", 8), "chunk": told.sure("chunk_size", 256)}
    return "recurrent", {**said, "heads": heads, **more}


def _state_space(told: Told, rows: int, states: int, tied: bool) -> Said:
    """What both kinds say."""
    names = {"hidden_size": "d_model", "num_hidden_layers": "n_layer", "vocab_size": "vocab_size"}
    sizes = {told.either(ours, older): ours for ours, older in names.items()}
    said = told.sizes(sizes, vocab_size=rows)
    told.asked += ("expand", *STEPS)
    found: Any = told.said.get("expand", 2)
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found < 1e6:
        raise ValueError(
            f"expand of {told.name} is {short(found)}; it must be a positive number: correct it"
        )
    inner = int(found * said["hidden_size"])
    told.names["inner"] = "hidden_size times expand"
    inside = told.whole(told.either("intermediate_size", "d_inner"), inner)
    if inside != inner:
        raise ValueError(
            f"intermediate_size of {told.name} is {inside}, hidden_size times expand {inner}; both "
            "say one size: leave one of them out"
        )
    return {
        **said,
        "inner": inner,
        "states": told.sure("state_size", states),
        "taps": told.sure("conv_kernel", 4),
        "shared": told.flag("tie_word_embeddings", tied),
        "bias": told.flag("use_bias", False),
        "taps_bias": told.flag("use_conv_bias", True),
        "nonlinearity": told.word("hidden_act", "silu", PLAIN),
    }


def _rank(told: Told, width: int) -> int:
    """Numbers that make the steps of time: a sixteenth of the features where "auto" is said."""
    if told.said.get("time_step_rank", "auto") == "auto":
        told.asked.append("time_step_rank")
        return -(-width // 16)
    return told.count("time_step_rank")


READERS: Mapping[str, Callable[[Told], Read]] = {
    "deepseek_v2": partial(deepseek, many=64, first=0),
    "deepseek_v3": deepseek,
    "kimi_k2": deepseek,
    "glm4_moe": glm4_moe,
    "gpt_oss": gpt_oss,
    "qwen2_moe": qwen2_moe,
    "qwen3_moe": qwen3_moe,
    "mamba": mamba,
    "mamba2": mamba2,
    "falcon_mamba": partial(mamba, evened=True),
}
