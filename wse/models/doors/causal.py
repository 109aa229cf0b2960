"""Decoders by the words of Hugging Face: Llama, OLMo, GPT-2 and their kin, Falcon, OPT and others.

Sources: the configurations and classes of these models in huggingface/transformers.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from wse._document import check_keys, mapping, short
from wse.models.doors import words
from wse.models.doors.decoders import PLAIN
from wse.models.doors.told import COMMON, Said, Told

HEADS = ("CausalLM", "LMHeadModel")
GATES = {
    "silu": "swiglu",
    "swish": "swiglu",
    "gelu": "geglu",
    "gelu_new": "geglu",
    "gelu_pytorch_tanh": "geglu",
    "relu": "reglu",
}
OLD = {
    "n_embd": "hidden_size",
    "n_layer": "num_hidden_layers",
    "n_head": "num_heads",
    "vocab_size": "vocab_size",
    "n_positions": "max_position_embeddings",
}
BIASES = ("use_projection_bias_in_attention", "use_ffn_bias_in_attention")
OF_MPT = (  # words of `attn_config` that change no count
    "attn_impl", "attn_pdrop", "attn_uses_sequence_id", "alibi_bias_max", "clip_qkv",
    "softmax_scale", "model_type",
)  # fmt: skip
WINDOWS: Mapping[str, tuple[int | None, int, int]] = {
    # by class: keys where nothing says, which block meets all (every so many-th), and the first
    # that does not
    **dict.fromkeys(("mixtral", "phi3", "starcoder2", "qwen3_moe"), (None, 0, 0)),
    "mistral": (4096, 0, 0),
    "gpt_oss": (128, 2, 0),
    "gemma2": (4096, 2, 0),
    "gemma3_text": (4096, 6, 0),
    **dict.fromkeys(("cohere2", "olmo3"), (4096, 4, 0)),
    **dict.fromkeys(("qwen2", "qwen3"), (4096, 0, 28)),
}
WIDE: Said = {"attention_qk_norm_layer": "rmsnorm", "attention_qk_norm_wide": True}
Read = tuple[str, Said]


def rotary(
    told: Told,
    qkv_bias: bool = False,
    tied: bool = False,
    groups: int | None = None,
    function: str = "silu",
    width: int | None = None,
    experts: tuple[str, ...] = (),
    many: int = 8,
    picked: int = 2,
    windowed: bool = True,
    biased: bool = False,
    **more: Any,
) -> Read:
    """Llama and its kin: gated, with norms that scale, and rotary positions.

    Args:
        told: what the file says.
        qkv_bias: of queries, keys and values, whatever is said.
        tied: whether the head's weights are the embedding's where nothing says.
        groups: heads of keys and values where nothing says; so of the following.
        function: between the products after attention.
        width: numbers per head.
        experts: names of their number; none: there are none.
        many: experts.
        picked: of them for a token.
        windowed: whether a window that is said is used.
        biased: whether there are biases in attention.
        **more: words beside these.
    """
    said = told.sizes(COMMON)
    first = told.word("hidden_act", function, tuple(GATES))
    word = told.word("hidden_activation", first, tuple(GATES))
    bias = told.flag("attention_bias", biased)
    said |= {
        "nonlinearity": GATES[word],
        "norm_type": "rmsnorm",
        "position_embedding_type": "rotary",
        "share_embedding_weights": told.flag("tie_word_embeddings", tied),
        "use_projection_bias_in_attention": bias or qkv_bias,
        "use_ffn_bias_in_attention": bias,
        "use_ffn_bias": told.flag("mlp_bias", False),
    }
    if experts:
        count = told.whole(told.either(*experts), many)
        said["moe"] = {"num_experts": count, "top_k": told.whole("num_experts_per_tok", picked)}
    # Published files say a window and that it is not used.
    told.whole("sliding_window")
    if told.flag("use_sliding_window", windowed):
        said |= windows(told, said["num_hidden_layers"])
    kv, wide = told.count("num_key_value_heads", groups), told.count("head_dim", width)
    return "decoder", {**said, **told.heads(said, kv, wide), **more}


def windows(told: Told, layers: int) -> Said:
    """Words for the keys that a token of each block meets, by the list of blocks or by their class.

    Where only a window is said, of a class that has none, all keys are counted and a caution says
    so.
    """
    usual, every, first = WINDOWS.get(told.said["model_type"], (None, -1, 0))
    window = told.count("sliding_window", usual)
    if window is None:
        return {}
    every = told.count("sliding_window_pattern") or told.count("_sliding_window_pattern") or every
    first = told.whole("max_window_layers", first) if first else 0
    near = told.near(layers)
    if near is None and every < 0:
        told.cautions.append(
            f"sliding_window is {window}: scores of attention are counted in full, so the time is "
            "an upper bound"
        )
        return {}
    near = near or [i >= first and (not every or (i + 1) % every > 0) for i in range(layers)]
    return {"keys_met": [window * one for one in near]}


def gemma2(told: Told) -> Read:
    """Gemma 2: norms before and after both halves."""
    function = "gelu_pytorch_tanh"
    said = rotary(told, tied=True, groups=4, function=function, width=256)[1]
    return "decoder", {**said, "norm_first_sandwich": True}


def gemma3(told: Told) -> Read:
    """Gemma 3 for text: Gemma 2, and norms of queries and of keys."""
    told.only("use_bidirectional_attention", False, "an encoder of its kind is not counted")
    return "decoder", {**gemma2(told)[1], "attention_qk_norm_layer": "rmsnorm"}


def qwen2(told: Told) -> Read:
    """Qwen 2: biases of queries, keys and values; positions in space only with pictures."""
    told.only("use_mrope", False, "positions of pictures are not counted")
    return rotary(told, qkv_bias=True, groups=32, windowed=False)


def qwen3(told: Told) -> Read:
    """Qwen 3: norms of queries and of keys, over one head."""
    said = rotary(told, groups=32, width=128, windowed=False)[1]
    return "decoder", {**said, "attention_qk_norm_layer": "rmsnorm"}


def cohere(told: Told) -> Read:
    """Command-R: gated halves side by side behind one norm that scales."""
    for key in ("use_embedding_sharing", "use_gated_activation", "use_parallel_block"):
        told.only(key, True, "a Command-R of another kind is not counted")
    told.word("position_embedding_type", "rope_gptj", ("rope_gptj",))
    said = rotary(told, tied=True, norm_type="biasless-layernorm")[1]
    return "parallel", {**said, **(WIDE if told.flag("use_qk_norm", False) else {})}


def starcoder2(told: Told) -> Read:
    """StarCoder 2: norms that scale and shift, biases everywhere, rotary positions."""
    told.word("norm_type", "layer_norm", ("layer_norm",))
    told.word("mlp_type", "default", ("default",))
    told.word("activation_function", None)  # the class takes hidden_act
    function = told.word("hidden_act", "gelu_pytorch_tanh", PLAIN)
    bias = dict.fromkeys((*BIASES, "use_ffn_bias"), told.flag("use_bias", True))
    told.said = {key: value for key, value in told.said.items() if key != "hidden_act"}
    said = rotary(told, tied=True, groups=2)[1]
    return "decoder", {**said, "norm_type": "layernorm", "nonlinearity": function, **bias}


def gpt2(told: Told) -> Read:
    """GPT-2, whose classes have its words and positions where a file says none."""
    said = _old(told, 50257, 1024)
    said["share_embedding_weights"] = told.flag("tie_word_embeddings", True)
    return "decoder", said


def gptj(told: Told) -> Read:
    """GPT-J: halves side by side, rotary positions, biases behind attention alone."""
    said = _old(told, 50400, 2048)
    told.only("rotary", True, "GPT-J is counted with rotary positions alone")
    said |= {"position_embedding_type": "rotary", "use_bias_in_output": True}
    said |= dict.fromkeys(BIASES, False)
    said["share_embedding_weights"] = told.flag("tie_word_embeddings", False)
    return "parallel", said


def _old(told: Told, vocab_size: int, n_positions: int) -> Said:
    said = told.sizes(OLD, vocab_size=vocab_size, n_positions=n_positions)
    said["filter_size"] = told.whole("n_inner", 4 * said["hidden_size"])
    said["nonlinearity"] = told.word("activation_function", "gelu_new", PLAIN)
    return said


def neox(told: Told) -> Read:
    """GPT-NeoX: two norms for halves that stand side by side."""
    said, bias = told.sizes(COMMON), told.flag("attention_bias", True)
    said |= {"nonlinearity": told.word("hidden_act", "gelu", PLAIN), **dict.fromkeys(BIASES, bias)}
    said["position_embedding_type"] = "rotary"
    said["share_embedding_weights"] = told.flag("tie_word_embeddings", False)
    if told.flag("use_parallel_residual", True):
        return "parallel", {**said, "use_untied_layer_norm": True}
    return "decoder", said


def falcon(told: Told) -> Read:
    """Falcon, in the older and in the newer arrangement."""
    table = {key: ours for key, ours in COMMON.items() if key != "intermediate_size"}
    said = told.sizes(table, max_position_embeddings=2048)
    newer, many = told.flag("new_decoder_architecture", False), told.flag("multi_query", True)
    parallel, bias = told.flag("parallel_attn", True), told.flag("bias", False)
    kv = told.whole("num_kv_heads", said["num_heads"])
    kv = kv if newer else (1 if many else None)
    norms = told.whole("num_ln_in_parallel_attn", 2 if newer else 1)
    said |= {
        "filter_size": told.whole("ffn_hidden_size", 4 * said["hidden_size"]),
        "nonlinearity": told.word("activation", "gelu", PLAIN),
        "position_embedding_type": "alibi" if told.flag("alibi", False) else "rotary",
        "share_embedding_weights": told.flag("tie_word_embeddings", True),
        **dict.fromkeys((*BIASES, "use_ffn_bias"), bias),
    }
    said |= told.heads(said, kv)
    if not parallel and not newer:
        return "decoder", said
    return "parallel", {**said, "use_untied_layer_norm": norms == 2}


def bloom(told: Told) -> Read:
    """BLOOM: linear biases in place of positions, and a norm behind the embedding."""
    said = told.sizes(
        {
            told.either("hidden_size", "n_embed"): "hidden_size",
            told.either("n_layer", "num_hidden_layers"): "num_hidden_layers",
            told.either("n_head", "num_attention_heads"): "num_heads",
            "vocab_size": "vocab_size",
            "seq_length": "max_position_embeddings",
        },
        seq_length=2048,
    )
    said |= {"filter_size": 4 * said["hidden_size"], "position_embedding_type": "alibi"}
    said["share_embedding_weights"] = told.flag("tie_word_embeddings", True)
    return "decoder", {**said, "embedding_layer_norm": True}


def mpt(told: Told) -> Read:
    """MPT: linear biases in place of positions, norms that scale, and no other bias."""
    said = told.sizes(
        {
            "d_model": "hidden_size",
            "n_layers": "num_hidden_layers",
            "n_heads": "num_heads",
            "vocab_size": "vocab_size",
            "max_seq_len": "max_position_embeddings",
        }
    )
    told.only("no_bias", True, "biases are not counted")
    # Beside linear biases this one makes no table.
    told.flag("learned_pos_emb", True)
    told.word("norm_type", "layernorm", ("layernorm", "low_precision_layernorm"))
    heads = mapping(told.said.get("attn_config", {}), "attn_config")
    inner = Told(heads, told.name)
    told.asked.append("attn_config")
    inner.only("alibi", True, "learned positions are not counted")
    inner.only("qk_ln", False, "norms of queries and keys are not counted")
    inner.only("prefix_lm", False, "tokens that see those after them are not counted")
    inner.word("attn_type", "multihead_attention", ("multihead_attention",))
    rest = words.sifted(inner.said, words.CONFIG)[0]
    check_keys(rest, (*inner.asked, *OF_MPT), "attn_config")
    if (times := told.whole("expansion_ratio", 4)) != 4:
        raise ValueError(
            f"expansion_ratio of {told.name} is {times}; the class of Hugging Face makes it 4 "
            "whatever is said: write 4"
        )
    said |= {"filter_size": 4 * said["hidden_size"], "position_embedding_type": "alibi"}
    said |= dict.fromkeys((*BIASES, "use_ffn_bias"), False)
    said["share_embedding_weights"] = told.flag("tie_word_embeddings", True)
    return "decoder", {**said, "norm_type": "biasless-layernorm"}


def opt(told: Told) -> Read:
    """OPT: learned positions behind two rows that no token has."""
    names = {key: ours for key, ours in COMMON.items() if key != "intermediate_size"}
    said = told.sizes({**names, "ffn_dim": "filter_size"})
    told.only("do_layer_norm_before", True, "norms after the halves are not counted")
    told.only("_remove_final_layer_norm", False, "a stack without a norm at its end is not counted")
    told.only("layer_norm_elementwise_affine", True, "norms without parameters are not counted")
    inner, bias = told.whole("word_embed_proj_dim", said["hidden_size"]), "enable_bias"
    if inner != said["hidden_size"]:
        raise ValueError(
            f"word_embed_proj_dim of {told.name} is {short(inner)}, hidden_size "
            f"{said['hidden_size']}; products between embedding and blocks are not counted: make "
            "them equal"
        )
    said |= dict.fromkeys((*BIASES, "use_ffn_bias"), told.flag(bias, True))
    said["nonlinearity"] = told.word("activation_function", "relu", PLAIN)
    said["share_embedding_weights"] = told.flag("tie_word_embeddings", True)
    return "decoder", {**said, "position_embedding_offset": 2}


def phi(told: Told) -> Read:
    """Phi: halves side by side behind one norm, biases everywhere, of the head too."""
    said = told.sizes(COMMON)
    _plain_heads(told)
    said |= {"position_embedding_type": "rotary", "use_bias_in_output": True}
    said["nonlinearity"] = told.word("hidden_act", "gelu_new", PLAIN)
    said["share_embedding_weights"] = told.flag("tie_word_embeddings", False)
    return "parallel", {**said, **told.heads(said, told.whole("num_key_value_heads"))}


def stablelm(told: Told) -> Read:
    """StableLM: gated, with norms that scale and shift."""
    said = told.sizes(COMMON)
    _plain_heads(told)
    said |= {"position_embedding_type": "rotary", **dict.fromkeys((*BIASES, "use_ffn_bias"), False)}
    said["use_projection_bias_in_attention"] = told.flag("use_qkv_bias", False)
    said["nonlinearity"] = GATES[told.word("hidden_act", "silu", tuple(GATES))]
    said["share_embedding_weights"] = told.flag("tie_word_embeddings", False)
    family = "parallel" if told.flag("use_parallel_residual", False) else "decoder"
    return family, {**said, **told.heads(said, told.whole("num_key_value_heads"))}


def _plain_heads(told: Told) -> None:
    told.only("qk_layernorm", False, "norms of queries that scale and shift are not counted")


READERS: Mapping[str, Callable[[Told], tuple[str, dict[str, Any]]]] = {
    "llama": rotary,
    "mistral": partial(rotary, groups=8),
    "mixtral": partial(rotary, groups=8, experts=("num_local_experts",)),
    "qwen2": qwen2,
    "qwen3": qwen3,
    "olmo": partial(rotary, norm_type=words.BARE),
    "olmo2": partial(rotary, norm_behind=True, **WIDE),
    "olmo3": partial(rotary, norm_behind=True, **WIDE),
    "olmoe": partial(rotary, experts=("num_experts",), many=64, picked=8, **WIDE),
    "cohere": cohere,
    "cohere2": cohere,
    "starcoder2": starcoder2,
    "smollm3": partial(rotary, tied=True, groups=4, windowed=False),
    "glm": partial(rotary, biased=True, groups=2, width=128, use_ffn_bias_in_attention=False),
    "phi3": rotary,
    "gemma": partial(rotary, tied=True, groups=16, function="gelu_pytorch_tanh", width=256),
    "gemma2": gemma2,
    "gemma3_text": gemma3,
    "granite": rotary,
    "granitemoe": partial(rotary, experts=("num_local_experts",)),
    "gpt2": gpt2,
    "gptj": gptj,
    "gpt_neox": neox,
    "falcon": falcon,
    "bloom": bloom,
    "mpt": mpt,
    "opt": opt,
    "phi": phi,
    "stablelm": stablelm,
}
