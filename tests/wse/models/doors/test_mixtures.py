"""Mixtures of experts and state spaces: counts of their classes, and what is built."""

import pytest

import wse
from wse.models.doors.huggingface import from_config
from wse.models.doors.mixtures import READERS
from wse.models.from_graph import workload
from wse.models.rebuilt.build import rebuilt

# As published, each with all of its file's keys that say how large it is.
V3 = {"model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"],
    "attention_bias": False, "first_k_dense_replace": 3, "hidden_act": "silu",
    "hidden_size": 7168, "intermediate_size": 18432, "kv_lora_rank": 512, "ep_size": 1,
    "max_position_embeddings": 163840, "moe_intermediate_size": 2048, "moe_layer_freq": 1,
    "n_group": 8, "n_routed_experts": 256, "n_shared_experts": 1, "num_attention_heads": 128,
    "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128,
    "num_nextn_predict_layers": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid",
    "topk_group": 4, "topk_method": "noaux_tc", "v_head_dim": 128,
    "vocab_size": 129280}  # fmt: skip
V2 = {**V3, "model_type": "deepseek_v2", "architectures": ["DeepseekV2ForCausalLM"],
    "aux_loss_alpha": 0.001, "seq_aux": True, "num_nextn_predict_layers": None,
    "first_k_dense_replace": 1, "hidden_size": 2048, "intermediate_size": 10944,
    "moe_intermediate_size": 1408, "n_routed_experts": 64, "n_shared_experts": 2,
    "num_attention_heads": 16, "num_key_value_heads": 16, "num_experts_per_tok": 6,
    "num_hidden_layers": 27, "q_lora_rank": None, "vocab_size": 102400}  # fmt: skip
OSS = {"model_type": "gpt_oss", "architectures": ["GptOssForCausalLM"], "attention_bias": True,
    "experts_per_token": 4, "head_dim": 64, "hidden_act": "silu", "hidden_size": 2880,
    "initial_context_length": 4096, "intermediate_size": 2880, "num_attention_heads": 64,
    "layer_types": ["sliding_attention", "full_attention"] * 12, "max_position_embeddings": 131072,
    "num_experts_per_tok": 4, "num_hidden_layers": 24, "num_key_value_heads": 8,
    "num_local_experts": 32, "sliding_window": 128, "swiglu_limit": 7.0,
    "vocab_size": 201088}  # fmt: skip
GLM = {"model_type": "glm4_moe", "attention_bias": True, "first_k_dense_replace": 1,
    "head_dim": 128, "hidden_size": 4096, "intermediate_size": 10944, "n_group": 1,
    "max_position_embeddings": 131072, "moe_intermediate_size": 1408, "n_routed_experts": 128,
    "n_shared_experts": 1, "num_attention_heads": 96, "num_experts_per_tok": 8,
    "num_hidden_layers": 46, "num_key_value_heads": 8, "num_nextn_predict_layers": 1,
    "use_qk_norm": False, "vocab_size": 151552}  # fmt: skip
QWEN = {"model_type": "qwen2_moe", "hidden_size": 2048, "intermediate_size": 5632,
    "max_position_embeddings": 8192, "moe_intermediate_size": 1408, "num_attention_heads": 16,
    "num_experts": 60, "num_experts_per_tok": 4, "num_hidden_layers": 24, "sliding_window": 0,
    "num_key_value_heads": 16, "shared_expert_intermediate_size": 5632, "vocab_size": 151936,
    "use_sliding_window": False, "decoder_sparse_step": 1, "mlp_only_layers": []}  # fmt: skip
MODELS = {  # parameters of the class, which has a number for the choice of experts as a buffer
    "DeepSeek-V3": (671_026_404_352, V3),
    "DeepSeek-V2-Lite": (15_706_484_224, V2),
    "Kimi-K2": (1_026_408_209_408, {**V3, "model_type": "kimi_k2", "first_k_dense_replace": 1,
        "n_routed_experts": 384, "num_attention_heads": 64, "num_key_value_heads": 64,
        "vocab_size": 163840, "n_group": 1, "topk_group": 1}),
    "gpt-oss-20b": (20_914_757_184, OSS),
    "gpt-oss-120b": (116_829_156_672, {**OSS, "num_hidden_layers": 36, "num_local_experts": 128,
        "layer_types": ["sliding_attention", "full_attention"] * 18}),
    "GLM-4.5-Air": (106_852_245_504, GLM),
    "Qwen1.5-MoE-A2.7B": (14_315_784_192, QWEN),
}  # fmt: skip
MAMBA = {"model_type": "mamba", "architectures": ["MambaForCausalLM"], "conv_kernel": 4,
    "d_inner": 1536, "d_model": 768, "expand": 2, "fused_add_norm": True, "hidden_act": "silu",
    "hidden_size": 768, "intermediate_size": 1536, "n_layer": 24, "num_hidden_layers": 24,
    "pad_vocab_size_multiple": 8, "residual_in_fp32": True, "rms_norm": True, "ssm_cfg": {},
    "state_size": 16, "time_step_rank": 48, "time_step_scale": 1.0, "use_bias": False,
    "use_conv_bias": True, "vocab_size": 50280}  # fmt: skip
MAMBA2 = {"model_type": "mamba2", "architectures": ["Mamba2ForCausalLM"], "chunk_size": 256,
    "conv_kernel": 4, "expand": 2, "head_dim": 64, "hidden_act": "silu", "hidden_size": 4096,
    "n_groups": 8, "norm_before_gate": True, "num_heads": 128, "num_hidden_layers": 64,
    "state_size": 128, "tie_word_embeddings": False, "time_step_limit": [0.0, float("inf")],
    "time_step_rank": 256, "vocab_size": 32768}  # fmt: skip
SPACES = {  # sourced: parameters of transformers' classes of these sizes, on the meta device
    "Mamba-130M": (129_135_360, MAMBA),
    "Mamba-2.8B": (2_768_345_600, {**MAMBA, "hidden_size": 2560, "num_hidden_layers": 64,
        "time_step_rank": "auto", **dict.fromkeys(("d_inner", "d_model", "n_layer",
        "intermediate_size"))}),
    "Falcon-Mamba-7B": (7_272_665_088, {**MAMBA, "model_type": "falcon_mamba",
        "architectures": ["FalconMambaForCausalLM"], "hidden_size": 4096, "vocab_size": 65024,
        "num_hidden_layers": 64, "tie_word_embeddings": False, "time_step_rank": 256,
        "mixer_rms_eps": 1e-6, **dict.fromkeys(("d_inner", "d_model", "n_layer",
        "intermediate_size"))}),
    "Codestral-Mamba-7B": (7_285_403_648, MAMBA2),
    "Mamba2-2.7B": (2_702_599_680, {**MAMBA2, "hidden_size": 2560, "num_heads": 80,
        "n_groups": 1, "vocab_size": 50288, "tie_word_embeddings": True}),
}  # fmt: skip
SMALL = {"hidden_size": 32, "intermediate_size": 48, "moe_intermediate_size": 16, "head_dim": 8,
    "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2, "vocab_size": 50,
    "max_position_embeddings": 8, "num_experts": 4, "n_routed_experts": 4, "num_local_experts": 4,
    "num_experts_per_tok": 4, "experts_per_token": 4, "kv_lora_rank": 12, "q_lora_rank": 10,
    "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 6, "first_k_dense_replace": 1,
    "shared_expert_intermediate_size": 32}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_counts_are_those_of_the_classes(name: str) -> None:
    count, said = MODELS[name]
    assert from_config(said, name).workload.parameters == count


def test_every_type_has_a_count() -> None:
    others = {"qwen3_moe"}  # see `test_huggingface.py`
    every = {**MODELS, **SPACES}.values()
    assert {said["model_type"] for _, said in every} | others == set(READERS)


@pytest.mark.parametrize("name", MODELS)
def test_what_is_built_is_what_was_counted(name: str) -> None:
    said = MODELS[name][1]
    few = {key: SMALL[key] for key in SMALL if said.get(key) is not None}
    few |= {"layer_types": said["layer_types"][:2]} if "layer_types" in said else {}
    read = from_config({**said, **few}, "mine")
    traced = workload(wse.trace(*vars(rebuilt(read)).values()))
    assert traced.parameters == read.workload.parameters
    # Each token meets all experts here, as it does in what is built; a gate meets them as products.
    weighed = sum("router" in x.name for x in read.workload.layers) * 2 * 8 * 4 * 32
    assert traced.forward_flops == read.workload.forward_flops + weighed


def test_operations_are_of_the_experts_that_a_token_meets() -> None:
    one, all_ = (from_config({**V3, "num_experts_per_tok": n}, "mine", 64) for n in (1, 256))
    more = all_.workload.forward_flops - one.workload.forward_flops
    assert more == 58 * 255 * 64 * 6 * 7168 * 2048
    assert one.workload.parameters == all_.workload.parameters


FEW = {"hidden_size": 16, "num_hidden_layers": 2, "vocab_size": 30, "state_size": 4,
    "time_step_rank": 3, "d_inner": None, "d_model": None, "n_layer": None,
    "intermediate_size": None}  # fmt: skip
HEADS = {"num_heads": 4, "head_dim": 8, "n_groups": 2, "chunk_size": 5}


@pytest.mark.parametrize("name", SPACES)
def test_counts_of_state_spaces_are_those_of_the_classes(name: str) -> None:
    count, said = SPACES[name]
    assert from_config(said, name, 64).workload.parameters == count


@pytest.mark.parametrize("name", ["Mamba-130M", "Falcon-Mamba-7B", "Codestral-Mamba-7B"])
def test_state_spaces_are_built_as_they_are_counted(name: str) -> None:
    said = {**SPACES[name][1], **FEW, **(HEADS if "num_heads" in SPACES[name][1] else {})}
    read = from_config({**said, "use_bias": True}, "mine", 12)
    traced = workload(wse.trace(*vars(rebuilt(read)).values()))
    assert traced.parameters == read.workload.parameters
    assert traced.forward_flops == read.workload.forward_flops
    assert traced.backward_flops == pytest.approx(read.workload.backward_flops, rel=0.05)


def test_a_state_is_read_token_after_token_which_the_machine_does_not_do() -> None:
    read = from_config({**MAMBA, **FEW}, "mine", 12)
    made = rebuilt(read)
    report = wse.check(made.loss, made.params, made.batch)
    kinds = {one.use.operation: one.verdict for one in report.findings}
    assert kinds["scan"] == "unsupported"
    # 5 operations of each of 2 x 12 x 32 x 4 states are no products.
    assert read.cautions[0].startswith("1.54e+04 operations of a sample")
    tokens = [from_config(MAMBA2, "mine", n).workload.forward_flops for n in (256, 512)]
    h, d, n, wide, heads, long = 4096, 8192, 128, 8192 + 2 * 8 * 128, 128, 256
    block = h * (d + wide + heads) + wide * 4 + long * (heads * n + d) + 2 * d * n + d * h
    # One chunk more: its tokens, and three squared less two squared of states between chunks.
    more = 64 * (256 * block + 5 * d * n) + 256 * h * 32768
    assert tokens[1] - tokens[0] == 2 * more


CASES = [
    ({**MAMBA, "d_model": 700}, "hidden_size of mine is 768, d_model 700"),
    ({**MAMBA, "intermediate_size": 1500, "d_inner": 1500}, "1500, hidden_size times expand 1536"),
    ({**MAMBA2, "num_heads": None}, "num_heads of mine is null; it must be a number"),
    ({**MAMBA2, "state_size": None}, "state_size of mine is null; it must be a number"),
    ({**MAMBA, "d_inner": None, "intermediate_size": None, "expand": 1e-3}, "times expand is 0"),
    ({**MAMBA, "expand": "2"}, "expand of mine is '2'; it must be a positive number"),
    ({**MAMBA, "state_size": 0}, "state_size of mine is 0"),
    ({**MAMBA, "time_step_rank": "all"}, "time_step_rank of mine is 'all'"),
    ({**MAMBA, "ssm_state": 16}, "'ssm_state', which is not known of mamba"),
    ({**MAMBA2, "num_heads": 64}, "num_heads of mine is 64, head_dim 64; .* 8192"),
    ({**MAMBA2, "n_groups": 3}, "groups of the state space is 3; it must divide 128"),
    ({**MAMBA2, "architectures": ["Mamba2Model"]}, "which has no head"),
    ({**V3, "moe_layer_freq": 2}, "moe_layer_freq of mine is 2"),
    ({**V2, "mlp_bias": True}, "write false"),
    ({**V3, "kv_lora_rank": 0}, "kv_lora_rank of mine is 0"),
    ({**V3, "v_head_dim": "128"}, "v_head_dim of mine is '128'"),
    ({**V3, "qk_rope_head_dim": 63}, "^qk_rope_head_dim is 63; positions turn features in pairs"),
    ({**V3, "first_k_dense_replace": -1}, "^first_k_dense_replace is -1"),
    ({**V3, "num_experts_per_tok": 300}, "^num_experts_per_tok is 300"),
    ({**OSS, "experts_per_token": 2}, "experts_per_token 2"),
    ({**QWEN, "shared_expert_intermediate_size": 5000}, "multiple of moe_intermediate_size"),
    ({**QWEN, "mlp_only_layers": [0]}, r"mlp_only_layers of mine is \[0\]"),
]


@pytest.mark.parametrize(("said", "rule"), CASES, ids=lambda case: str(case)[-30:])
def test_contradictions_are_one_error(said: dict, rule: str) -> None:
    with pytest.raises(ValueError, match=rule) as found:
        from_config(said, "mine", 8)
    assert "\n" not in str(found.value)


def test_what_is_left_out_is_said() -> None:
    said = from_config(V3, "mine").cautions
    assert any("1 blocks that predict further words are left out" in one for one in said)


def test_a_state_space_has_no_longest_sequence() -> None:
    with pytest.raises(ValueError, match=r"sequence of mine is not said; .*--sequence 2048"):
        from_config(MAMBA, "mine")
