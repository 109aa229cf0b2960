"""Hugging Face configurations: counts equal to the models' own, refusals in one line."""

import json
from pathlib import Path

import pytest

import wse
from wse.models.doors import joined, mixtures, pyramids
from wse.models.doors.huggingface import READERS, from_config
from wse.models.from_graph import workload
from wse.models.rebuilt.build import rebuilt

LLAMA = {"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008,
    "num_attention_heads": 32, "num_hidden_layers": 32, "vocab_size": 32000,
    "max_position_embeddings": 4096, "tie_word_embeddings": False}  # fmt: skip
MISTRAL = {**LLAMA, "model_type": "mistral", "intermediate_size": 14336,
    "num_key_value_heads": 8}  # fmt: skip
QWEN2 = {**LLAMA, "model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": False}
ROBERTA = {"model_type": "roberta", "hidden_size": 768, "intermediate_size": 3072,
    "num_attention_heads": 12, "num_hidden_layers": 12, "vocab_size": 50265, "type_vocab_size": 1,
    "max_position_embeddings": 514, "pad_token_id": 1,
    "architectures": ["RobertaForMaskedLM"]}  # fmt: skip
ESM = {"model_type": "esm", "hidden_size": 320, "vocab_size": 33, "intermediate_size": 1280,
    "num_attention_heads": 20, "num_hidden_layers": 6, "max_position_embeddings": 1026,
    "position_embedding_type": "rotary", "emb_layer_norm_before": False, "token_dropout": True,
    "is_folding_model": False}  # fmt: skip
OPT = {"model_type": "opt", "hidden_size": 768, "ffn_dim": 3072, "num_attention_heads": 12,
    "num_hidden_layers": 12, "vocab_size": 50272, "max_position_embeddings": 2048,
    "word_embed_proj_dim": 768, "do_layer_norm_before": True, "activation_function": "relu",
    "_remove_final_layer_norm": False, "prefix": "</s>", "init_std": 0.02}  # fmt: skip
BLOOM = {"model_type": "bloom", "n_embed": 1024, "n_layer": 24, "num_attention_heads": 16,
    "vocab_size": 250880, "seq_length": 2048, "n_inner": None, "offset_alibi": 100,
    "attention_softmax_in_fp32": True, "bias_dropout_fusion": True, "hidden_dropout": 0.0,
    "masked_softmax_fusion": True, "pretraining_tp": 1, "skip_bias_add": True,
    "skip_bias_add_qkv": False, "slow_but_exact": False, "unk_token_id": 0,
    "apply_residual_connection_post_layernorm": False,
    "architectures": ["BloomForCausalLM"]}  # fmt: skip
MPT = {"model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32, "vocab_size": 50432,
    "max_seq_len": 2048, "expansion_ratio": 4, "no_bias": True, "learned_pos_emb": True,
    "norm_type": "low_precision_layernorm", "embedding_fraction": 1.0, "logit_scale": None,
    "emb_pdrop": 0, "resid_pdrop": 0, "init_config": {"name": "kaiming_normal_"},
    "init_device": "cpu", "verbose": 0, "tokenizer_name": "EleutherAI/gpt-neox-20b",
    "attn_config": {"alibi": True, "alibi_bias_max": 8, "attn_impl": "torch", "attn_pdrop": 0,
        "attn_type": "multihead_attention", "attn_uses_sequence_id": False, "clip_qkv": None,
        "prefix_lm": False, "qk_ln": False, "softmax_scale": None},
    "architectures": ["MPTForCausalLM"]}  # fmt: skip
DISTILBERT = {"model_type": "distilbert", "dim": 768, "hidden_dim": 3072, "n_heads": 12,
    "n_layers": 6, "vocab_size": 30522, "max_position_embeddings": 512, "activation": "gelu",
    "qa_dropout": 0.1, "seq_classif_dropout": 0.2, "sinusoidal_pos_embds": False,
    "tie_weights_": True, "architectures": ["DistilBertForMaskedLM"]}  # fmt: skip
COMMAND = {**LLAMA, "model_type": "cohere", "hidden_size": 8192, "intermediate_size": 22528,
    "num_hidden_layers": 40, "num_attention_heads": 64, "num_key_value_heads": 64,
    "vocab_size": 256000, "tie_word_embeddings": True, "logit_scale": 0.0625}  # fmt: skip
QWEN3_MOE = {**LLAMA, "model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144,
    "num_hidden_layers": 48, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936,
    "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8,
    "mlp_only_layers": [], "decoder_sparse_step": 1}  # fmt: skip
# Counts of the classes; the head of contacts, which training leaves out, is 121 of ESM-2's.
MODELS = {
    "Llama-2-7B": (6738415616, LLAMA),
    "Mistral-7B": (7241732096, {**MISTRAL, "sliding_window": 4096}),
    "Mixtral-8x7B": (46702792704, {**MISTRAL, "model_type": "mixtral", "num_local_experts": 8}),
    "Qwen2-0.5B": (494032768, {**LLAMA, "model_type": "qwen2", "hidden_size": 896,
        "intermediate_size": 4864, "num_attention_heads": 14, "num_hidden_layers": 24,
        "num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": True}),
    "Gemma-7B": (8537680896, {"model_type": "gemma", "hidden_size": 3072,
        "intermediate_size": 24576, "num_attention_heads": 16, "num_hidden_layers": 28,
        "num_key_value_heads": 16, "head_dim": 256, "vocab_size": 256000,
        "hidden_act": "gelu", "max_position_embeddings": 8192}),
    "GPT-2": (124439808, {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12,
        "n_positions": 1024, "n_ctx": 1024, "vocab_size": 50257}),
    "GPT-J": (6050882784, {"model_type": "gptj", "n_embd": 4096, "n_layer": 28, "n_head": 16,
        "n_positions": 2048, "vocab_size": 50400, "rotary_dim": 64}),
    "Pythia-70M": (70426624, {"model_type": "gpt_neox", "hidden_size": 512,
        "intermediate_size": 2048, "num_attention_heads": 8, "num_hidden_layers": 6,
        "vocab_size": 50304, "max_position_embeddings": 2048}),
    "Falcon-7B": (6921720704, {"model_type": "falcon", "hidden_size": 4544, "vocab_size": 65024,
        "num_attention_heads": 71, "num_hidden_layers": 32, "multi_query": True, "bias": False,
        "parallel_attn": True, "new_decoder_architecture": False,
        "max_position_embeddings": 2048}),
    "ESM-2-8M": (7512474 - 121, ESM),
    "ESM-2-35M": (33501394 - 241, {**ESM, "hidden_size": 480, "intermediate_size": 1920,
        "num_hidden_layers": 12}),
    "T5-small": (60506624, {"model_type": "t5", "d_model": 512, "d_kv": 64, "d_ff": 2048,
        "num_heads": 8, "num_layers": 6, "vocab_size": 32128, "n_positions": 512}),
    "Qwen3-0.6B": (596049920, {**LLAMA, "model_type": "qwen3", "hidden_size": 1024,
        "intermediate_size": 3072, "num_attention_heads": 16, "num_hidden_layers": 28,
        "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
        "tie_word_embeddings": True}),
    "Phi-3-mini": (3821079552, {**LLAMA, "model_type": "phi3", "hidden_size": 3072,
        "intermediate_size": 8192, "num_key_value_heads": 32, "vocab_size": 32064,
        "original_max_position_embeddings": 4096}),
    "Gemma-2-2B": (2614341888, {"model_type": "gemma2", "hidden_size": 2304,
        "intermediate_size": 9216, "num_attention_heads": 8, "num_hidden_layers": 26,
        "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 256000,
        "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh",
        "max_position_embeddings": 8192, "sliding_window": 4096, "attn_logit_softcapping": 50.0,
        "query_pre_attn_scalar": 256, "cache_implementation": "hybrid"}),
    "Gemma-3-1B": (999885952, {"model_type": "gemma3_text", "hidden_size": 1152,
        "intermediate_size": 6912, "num_attention_heads": 4, "num_hidden_layers": 26,
        "num_key_value_heads": 1, "head_dim": 256, "vocab_size": 262144,
        "hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 32768,
        "sliding_window": 512, "sliding_window_pattern": 6, "rope_local_base_freq": 10000,
        "query_pre_attn_scalar": 256}),
    "Granite-3.0-2B": (2533531648, {**LLAMA, "model_type": "granite", "hidden_size": 2048,
        "intermediate_size": 8192, "num_attention_heads": 32, "num_hidden_layers": 40,
        "num_key_value_heads": 8, "vocab_size": 49155, "tie_word_embeddings": True,
        "attention_multiplier": 0.015625, "embedding_multiplier": 12.0,
        "residual_multiplier": 0.22, "logits_scaling": 8.0}),
    "Phi-2": (2779683840, {"model_type": "phi", "hidden_size": 2560, "intermediate_size": 10240,
        "num_attention_heads": 32, "num_hidden_layers": 32, "vocab_size": 51200,
        "max_position_embeddings": 2048, "partial_rotary_factor": 0.4, "qk_layernorm": False,
        "hidden_act": "gelu_new", "num_key_value_heads": 32}),
    "StableLM-3B": (2795443200, {"model_type": "stablelm", "hidden_size": 2560,
        "intermediate_size": 6912, "num_attention_heads": 32, "num_hidden_layers": 32,
        "num_key_value_heads": 32, "vocab_size": 50304, "max_position_embeddings": 4096,
        "use_qkv_bias": False, "hidden_act": "silu", "partial_rotary_factor": 0.25}),
    "OLMo-7B": (6888095744, {**LLAMA, "model_type": "olmo", "vocab_size": 50304, "clip_qkv": None}),
    "OLMo-2-7B": (7298617344, {**LLAMA, "model_type": "olmo2", "vocab_size": 100352}),
    "Olmo-3-7B": (7298011136, {**LLAMA, "model_type": "olmo3", "vocab_size": 100278,
        "sliding_window": 4096, "layer_types": ["sliding_attention", "full_attention"] * 16}),
    "OLMoE-1B-7B": (6919161856, {**LLAMA, "model_type": "olmoe", "hidden_size": 2048,
        "intermediate_size": 1024, "num_hidden_layers": 16, "num_attention_heads": 16,
        "vocab_size": 50304, "num_experts": 64, "num_experts_per_tok": 8,
        "norm_topk_prob": False}),
    "Command-R": (34980831232, COMMAND),
    "Command-R+": (103810674688, {**COMMAND, "hidden_size": 12288, "intermediate_size": 33792,
        "num_hidden_layers": 64, "num_attention_heads": 96, "num_key_value_heads": 8,
        "use_qk_norm": True}),
    "Command-R7B": (8028033024, {**COMMAND, "model_type": "cohere2", "hidden_size": 4096,
        "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "layer_switch": 4, "sliding_window": 4096,
        "order_of_interleaved_layers": "local_attn_first", "rotary_pct": 1.0,
        "position_embedding_type": "rope_gptj", "use_embedding_sharing": True,
        "use_gated_activation": True, "use_parallel_block": True,
        "use_parallel_embedding": True}),
    "StarCoder2-3B": (3030371328, {"model_type": "starcoder2", "activation_function": "gelu",
        "hidden_act": "gelu_pytorch_tanh", "hidden_size": 3072, "intermediate_size": 12288,
        "num_hidden_layers": 30, "num_attention_heads": 24, "num_key_value_heads": 2,
        "max_position_embeddings": 16384, "vocab_size": 49152, "use_bias": True,
        "mlp_type": "default", "norm_type": "layer_norm", "sliding_window": 4096}),
    "Qwen3-8B": (8190735360, {**LLAMA, "model_type": "qwen3", "intermediate_size": 12288,
        "num_hidden_layers": 36, "num_key_value_heads": 8, "vocab_size": 151936,
        "head_dim": 128}),
    "Qwen3-30B-A3B": (30532122624, QWEN3_MOE),
    "SmolLM3-3B": (3075098624, {**LLAMA, "model_type": "smollm3", "hidden_size": 2048,
        "num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads": 4,
        "vocab_size": 128256, "tie_word_embeddings": True, "no_rope_layer_interval": 4}),
    "GLM-4-9B": (9399951360, {**LLAMA, "model_type": "glm", "intermediate_size": 13696,
        "num_hidden_layers": 40, "num_key_value_heads": 2, "vocab_size": 151552}),
    "Granite-3.0-1B-A400M": (1334628352, {**LLAMA, "model_type": "granitemoe",
        "hidden_size": 1024, "intermediate_size": 512, "num_hidden_layers": 24,
        "num_attention_heads": 16, "num_key_value_heads": 8, "vocab_size": 49155,
        "num_local_experts": 32, "num_experts_per_tok": 8, "tie_word_embeddings": True}),
    "ModernBERT-base": (149655232, {"model_type": "modernbert", "hidden_size": 768,
        "intermediate_size": 1152, "num_hidden_layers": 22, "num_attention_heads": 12,
        "vocab_size": 50368, "max_position_embeddings": 8192, "local_attention": 128,
        "global_attn_every_n_layers": 3, "global_rope_theta": 160000.0, "norm_bias": False,
        "position_embedding_type": "absolute", "architectures": ["ModernBertForMaskedLM"]}),
    "DeiT-base": (85801730, {"model_type": "deit", "hidden_size": 768, "intermediate_size": 3072,
        "num_attention_heads": 12, "num_hidden_layers": 12}),
    "BLOOM-560M": (559214592, BLOOM),
    "BLOOM": (176247271424, {**BLOOM, "n_embed": 14336, "n_layer": 70, "num_attention_heads": 112}),
    "MPT-7B": (6649286656, MPT),
    "MPT-30B": (29957200896, {**MPT, "d_model": 7168, "n_heads": 64, "n_layers": 48,
        "max_seq_len": 8192}),
    "DistilBERT": (66985530, DISTILBERT),
    "DistilBERT, 2 classes": (66955010, {**DISTILBERT,
        "architectures": ["DistilBertForSequenceClassification"]}),
    "OPT-125M": (125239296, OPT),
    "OPT-1.3B": (1315758080, {**OPT, "hidden_size": 2048, "ffn_dim": 8192,
        "num_attention_heads": 32, "num_hidden_layers": 24, "word_embed_proj_dim": 2048}),
    "RoBERTa-base": (124697433, ROBERTA),
    "RoBERTa-base, 2 classes": (124647170, {**ROBERTA,
        "architectures": ["RobertaForSequenceClassification"]}),
    "XLM-RoBERTa-base": (278295186, {**ROBERTA, "model_type": "xlm-roberta", "vocab_size": 250002,
        "architectures": ["XLMRobertaForMaskedLM"]}),
    "BERT-base": (110106428, {"model_type": "bert", "hidden_size": 768, "vocab_size": 30522,
        "intermediate_size": 3072, "num_attention_heads": 12, "num_hidden_layers": 12,
        "max_position_embeddings": 512, "architectures": ["BertForPreTraining"]}),
    "ViT-B/16": (86567656, {"model_type": "vit", "hidden_size": 768, "intermediate_size": 3072,
        "num_attention_heads": 12, "num_hidden_layers": 12, "image_size": 224, "patch_size": 16,
        "id2label": {str(i): str(i) for i in range(1000)}}),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_counts_are_those_of_the_classes(name: str) -> None:
    count, said = MODELS[name]
    assert from_config(said, name).workload.parameters == count


def test_every_type_has_a_count() -> None:
    others = (
        mixtures.READERS.keys() - {"qwen3_moe"} | joined.READERS.keys() | pyramids.READERS.keys()
    )
    assert {said["model_type"] for _, said in MODELS.values()} == set(READERS) - others


def test_a_folder_or_a_file_is_read_and_checked(tmp_path: Path) -> None:
    small = {**LLAMA, "hidden_size": 16, "num_hidden_layers": 1, "intermediate_size": 8}
    small |= {"num_attention_heads": 2, "vocab_size": 11, "torch_dtype": "bfloat16"}
    (tmp_path / "config.json").write_text(json.dumps(small))
    found = wse.read_model(tmp_path, sequence=5)
    assert found == wse.read_model(tmp_path / "config.json", sequence=5)
    assert (found.precision, found.workload.tokens) == ("bfloat16", 5)
    made = rebuilt(found)
    assert wse.check(made.loss, made.params, made.batch).verdict == "native"


BERT, VIT, T5 = (MODELS[name][1] for name in ("BERT-base", "ViT-B/16", "T5-small"))
CASES = [
    ({"model_type": "lama"}, "did you mean 'llama'"),
    ({"model_type": "GPT-NeoX"}, "did you mean 'gpt_neox'"),
    ({"model_type": "deberta"}, "not known: known are llama, mistral"),
    ({"model_type": "gemma3", "text_config": {}}, "not counted .*text_config in a file of its own"),
    ({"model_type": ["llama"]}, "not known: known are"),
    ({}, "no model_type"),
    (
        {**LLAMA, "num_attention_heads": 30},
        "num_attention_heads is 30; it must divide hidden_size 4096",
    ),
    ({**LLAMA, "num_key_value_heads": 5}, "be a multiple of num_key_value_heads 5"),
    ({**LLAMA, "num_kv_heads": 8}, "num_kv_heads.*did you mean 'num_key_value_heads'"),
    ({**LLAMA, "hidden_size": "big"}, "hidden_size.*must be of type int"),
    ({**LLAMA, "hidden_act": "swigu"}, "hidden_act is 'swigu'"),
    ({"model_type": "llama"}, "lacks hidden_size, num_hidden_layers, .*, max_position_embeddings;"),
    ({"model_type": "vit", "id2label": 5}, "id2label is 5; it must hold names and values"),
]

WRONG = {  # each is of another type than its key's
    "head_dim": "64", "num_key_value_heads": 8.0, "tie_word_embeddings": "false",
    "attention_bias": 1, "hidden_act": True, "torch_dtype": 16, "num_hidden_layers": True,
    "sliding_window": "4096", "architectures": [7], "layer_types": "full_attention",
}  # fmt: skip
CASES += [({**LLAMA, key: value}, f"^{key} of mine is .* must") for key, value in WRONG.items()]
CASES += [
    ({**BERT, "architectures": ["BertModel"]}, "no head and so no loss"),
    ({**BERT, "architectures": ["BertLMHeadModel"]}, "head is not counted"),
    ({**BERT, "add_cross_attention": True}, "write false"),
    ({**BERT, "is_decoder": True}, "write false"),
    ({**BERT, "position_embedding_type": "relative_key"}, "'relative_key', which is not known"),
    ({**BERT, "num_attention_heads": None}, "lacks num_attention_heads"),
    ({**BERT, "pruned_heads": {"0": [1]}}, "pruned_heads"),
    ({**ROBERTA, "max_position_embeddings": 2}, "positions begin at 2"),
    ({**ROBERTA, "architectures": ["RobertaForPreTraining"]}, "head is not counted"),
    ({**VIT, "intermediate_size": None}, "lacks intermediate_size"),
    ({**T5, "num_layers": None}, "lacks num_layers"),
    ({**T5, "num_decoder_layers": -1}, "^num_decoder_layers is -1"),
    ({**MODELS["GPT-2"][1], "n_head": 7}, "n_head is 7; it must divide n_embd 768"),
    ({**MODELS["GPT-2"][1], "n_head": None}, "lacks n_head"),
    ({**OPT, "do_layer_norm_before": False, "word_embed_proj_dim": 512}, "norms after the halves"),
    ({**BLOOM, "hidden_size": 2048}, "hidden_size of mine is 2048, n_embed 1024"),
    ({**BLOOM, "n_inner": 5}, "'n_inner', which is not known of bloom"),
    ({**BLOOM, "n_layer": None}, "lacks n_layer"),
    ({**MPT, "no_bias": False}, "write true"),
    ({**MPT, "attn_config": {"alibi": False}}, "learned positions are not counted"),
    ({**MPT, "attn_config": {"alibi": True, "kv_n_heads": 4}}, "'kv_n_heads', which is not known"),
    ({**MPT, "attn_config": 3}, "attn_config"),
    ({**MPT, "expansion_ratio": 2}, "write 4"),
    ({**MPT, "norm_type": "rmsnorm"}, "'rmsnorm', which is not known"),
    ({**DISTILBERT, "sinusoidal_pos_embds": True}, "sines"),
    ({**DISTILBERT, "tie_weights_": False, "tie_word_embeddings": True}, "leave one of them out"),
    ({**OPT, "ffn_dim": 0}, "^ffn_dim.* is 0"),
    ({**OPT, "word_embed_proj_dim": 512}, "make them equal"),
    ({**OPT, "do_layer_norm_before": False}, "write true"),
    ({**MODELS["Phi-2"][1], "qk_layernorm": True}, "write false"),
    ({**LLAMA, "num_local_experts": 8}, "num_local_experts', which is not known of llama"),
    ({**LLAMA, "head_dim": 0}, "head_dim of mine is 0; .* write null"),
    ({**MISTRAL, "num_key_value_heads": 0}, "num_key_value_heads of mine is 0; .* write null"),
    ({**MISTRAL, "sliding_window": 0}, "sliding_window of mine is 0; .* write null"),
    ({**QWEN2, "use_mrope": True}, "use_mrope of mine is True; positions of pictures"),
    ({**LLAMA, "layer_types": ["linear_attention"]}, "other layers are not counted"),
    ({**QWEN3_MOE, "mlp_only_layers": [0]}, r"mlp_only_layers of mine is \[0\]; .*write \[\]"),
    ({**QWEN3_MOE, "num_local_experts": 8}, "num_experts of mine is 128, num_local_experts 8"),
    ({**COMMAND, "use_parallel_block": False}, "write true"),
    ({**T5, "is_gated_act": True}, "is_gated_act of mine is True, feed_forward_proj 'relu'"),
    ({"model_type": "rwkv"}, "states, no attention.*wse.from_torch"),
]


@pytest.mark.parametrize(("said", "rule"), CASES, ids=lambda case: str(case)[-30:])
def test_contradictions_are_one_error(said, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        from_config(said, "mine")


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("[1]", "holds list"),
        ("{", "no JSON text"),
        ("[" * 99_999, "no JSON"),
        ('{"hidden_size": 64, "hidden_size": 128}', "the key 'hidden_size' stands twice"),
        ('{"a": {"b": 1, "b": 1}}', "the key 'b' stands twice"),
    ],
    ids=("list", "broken", "deep", "twice", "twice within"),
)  # fmt: skip
def test_files_that_are_no_configuration_are_one_error(
    tmp_path: Path, text: str, rule: str
) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ValueError, match=rule):
        wse.read_model(tmp_path)


def test_a_file_of_one_gigabyte_is_refused_unread(tmp_path: Path) -> None:
    for name in ("config.json", "params.yaml"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(10**9)
        with pytest.raises(ValueError, match="is larger than"):
            wse.read_model(tmp_path / name)


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        ({"vocab_size": None}, "lacks vocab_size"),
        ({"max_position_embeddings": None}, "lacks max_position_embeddings"),
        ({"architectures": ["LlamaForSequenceClassification"]}, "head is not counted"),
        ({"architectures": "LlamaForTokenClassification"}, "head is not counted"),
    ],
)
def test_another_model_s_size_or_head_does_not_stand_in(said: dict, rule: str) -> None:
    whole = {**LLAMA, "vocab_size": 11, "max_position_embeddings": 8}
    whole["architectures"] = ["LlamaForCausalLM"]
    from_config(whole, "mine")
    with pytest.raises(ValueError, match=rule):
        from_config({**whole, **said}, "mine")


def test_a_window_that_is_not_used_is_no_unknown_key() -> None:
    assert not from_config({**QWEN2, "use_mrope": False}, "mine").cautions


def test_positions_that_no_token_has_lengthen_no_sequence() -> None:
    for said, longest in ((ROBERTA, 512), (OPT, 2048)):
        assert from_config(said, "mine").workload.tokens == longest
        with pytest.raises(ValueError, match=f"sequence is .* end at {longest}"):
            from_config(said, "mine", longest + 1)


def test_a_sequence_is_of_both_halves_and_of_no_picture(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(T5))
    found = wse.read_model(tmp_path, sequence=64).workload
    assert (found.tokens, found.inputs) == (64, 128)
    assert (
        found.forward_flops == from_config({**T5, "n_positions": 64}, "mine").workload.forward_flops
    )
    (tmp_path / "config.json").write_text(json.dumps(VIT))
    with pytest.raises(ValueError, match=r"sequence is 64; .* its own sizes say"):
        wse.read_model(tmp_path, sequence=64)


def test_what_a_file_leaves_open_is_a_caution() -> None:
    (one,) = from_config({**BERT, "architectures": None}, "mine").cautions
    (rows,) = from_config(ESM, "mine").cautions
    (kind,) = from_config({**LLAMA, "torch_dtype": "float64"}, "mine").cautions
    assert "BertForPreTraining" in one
    assert "328,320 positions" in rows
    assert "'float64'" in kind


@pytest.mark.parametrize("name", ["Qwen2-0.5B", "OLMo-2-7B"])
def test_null_heads_of_keys_are_those_of_queries(name: str) -> None:
    _, said = MODELS[name]
    heads = {"num_attention_heads": 64, "hidden_size": 1024}
    null, same = ({**said, **heads, "num_key_value_heads": n} for n in (None, 64))
    counts = [from_config(one, "mine").workload.parameters for one in (null, same)]
    assert counts[0] == counts[1]


def test_a_file_with_everything_that_the_class_writes_is_read() -> None:
    count, falcon = MODELS["Falcon-7B"]
    said = {**falcon, "num_kv_heads": 71, "id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
    assert from_config(said, "mine").workload.parameters == count


SMALL = {"num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 96, "vocab_size": 50,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 8,
    "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 8, "image_size": 32,
    "moe_intermediate_size": 40, "num_local_experts": 4, "num_experts": 4, "head_dim": 16,
    "num_experts_per_tok": 2}  # fmt: skip
NEW = ("OLMo-7B", "OLMo-2-7B", "OLMoE-1B-7B", "Command-R+", "StarCoder2-3B", "GLM-4-9B",
    "Qwen3-30B-A3B", "ModernBERT-base", "DeiT-base")  # fmt: skip


@pytest.mark.parametrize("name", NEW)
def test_what_is_built_is_what_was_counted(name: str) -> None:
    said = MODELS[name][1]
    read = from_config({**said, **{key: SMALL[key] for key in SMALL if key in said}}, "mine")
    traced = workload(wse.trace(*vars(rebuilt(read)).values()))
    named, dense = read.workload, "experts" not in str(read.cautions)
    assert traced.parameters == named.parameters
    # The module computes all experts, of which the machine computes those that are picked.
    assert not dense or traced.forward_flops == named.forward_flops
