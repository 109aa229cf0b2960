"""Which keys of a stranger's file change no count, no shape and no operation that is counted.

A key that is in no table is refused by name, so that none that carries meaning is ever dropped.
"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from re import sub
from typing import Any

ONE_LETTER = 0.885  # of difflib: one letter of five is missing; "xlm-roberta-xl" is farther

# Ours, by which configurations of others are read; no word of the Model Zoo.
BARE = "bare-layernorm"
OURS = (
    "attention_qk_norm_wide",
    "norm_behind",
    "first_layer_norm",
    "use_ffn_bias_in_transform",
    "prepend_teacher_token",
    "moe_router_bias",
    "moe_shared_gate",
    "moe_dense_first",
    "moe_dense_filter_size",
    "attention_sinks",
    "attention_compressed",
    "keys_met",
)

# ruff: noqa: E501
# fmt: off
MODEL = (  # of the Model Zoo's `model`
    # chances and first values
    "*dropout", "*dropout_rate", "use_dropout*", "stochastic_depth*", "*initializer*", "initializer_range", "initializer_factor",
    "init_conv_like_linear", "use_transformer_initialization",
    # constants inside operations that are there anyway
    "*epsilon", "*_eps", "rope_theta", "rotary_dim", "pad_rope", "fold_rope_consts", "pos_scaling_*",
    "rel_distance_*", "attention_type", "attention_kernel", "attention_softmax_fp32",
    "attention_logits_alpha", "scale_qk_dot_by_d", "scale_qk_dot_by_layer_idx",
    "scale_by_layer_index", "scale_encoder_qk_dot_by_d", "scale_decoder_qk_dot_by_d",
    "scale_output_logits_by_d", "embeddings_scale", "output_logits_scale", "output_logits_alpha",
    "mup_base_*", "lr_adjustment_groups", "attention_logit_softcapping", "final_logit_softcapping",
    "norm_kwargs", "layerscale_initial_value", "interpolate_position_embedding",
    # the loss and what is measured
    "loss_weight", "loss_scaling", "*_loss_weight", "*_loss_scaling", "label_smoothing",
    "compute_eval_metrics", "eval_metrics", "eval_ignore_classes", "z_loss_eps", "problem_type",
    "include_padding_in_loss", "disable_softmax", "ignore_background_class",
    # numbers and the compiler
    "mixed_precision", "fp16_type", "use_bfloat16", "to_float16", "dtype", "precision_opt_level",
    "boundary_casting", "tf_summary", "enable_vts", "use_experimental_flex_api", "use_cache",
    "freeze_ffn_bias_in_glu",
    # which token means what
    "mask_token_id", "token_dropout", "decoder_start_token_id", "vocab_file", "use_masked_patches",
    # of diffusion: the noise; sampling comes after training
    "schedule_name", "beta_start", "beta_end", "num_diffusion_steps", "reverse_process", "var_loss",
    "embedding_nonlinearity",
    # additions without parameters
    "residual_blocks",
)
OPTIMIZER = (
    "optimizer_type", "learning_rate", "momentum", "nesterov", "dampening", "betas", "beta1",
    "beta2", "eps", "epsilon", "alpha", "rho", "lr", "lr_decay", "lambd", "t0", "centered",
    "weight_decay", "weight_decay_rate", "max_gradient_norm", "max_gradient_value", "correct_bias",
    "bias_correction", "log_summaries", "loss_scaling_factor", "initial_loss_scale",
    "max_loss_scale", "min_loss_scale", "steps_per_increase", "adjust_learning_rate", "amsgrad",
    "disable_lr_steps_reset", "ws_summary", "scale_parameter", "relative_step", "warmup_init",
    "clip_threshold", "decay_rate", "adam_beta1", "exclude_from_weight_decay", "maximize",
    "initial_accumulator_value", "momentum_decay", "etas", "step_sizes", "params", "log_grads",
)
RUNCONFIG = (
    "max_steps", "num_steps", "num_epochs", "steps_per_epoch", "eval_steps", "eval_frequency",
    "log_steps", "log_step_count_steps", "checkpoint_steps", "checkpoint_path", "save_*",
    "keep_checkpoint_max", "model_dir", "seed", "mode", "num_csx", "num_replicas", "num_workers_*",
    "num_act_servers", "num_wgt_servers", "max_act_per_csx", "max_wgt_servers", "*_memory_gi",
    "enable_*", "use_*", "is_pretrained_checkpoint", "load_checkpoint_states", "show_*", "dist_*",
    "init_method", "sync_batchnorm", "main_process_id", "compile_*", "validate_only", "cs_ip",
    "multireplica", "execution_strategy", "autoload_last_checkpoint", "disable_*", "lazy_*",
    "precision_opt_level", "python_paths", "mount_dirs", "credentials_path", "mgmt_*", "job_*",
    "logging", "debug_*", "service_dir", "target_device", "transfer_processes", "experimental_api",
    "variant", "skip_train_recv_activations", "check_loss_values", "autogen_policy", "op_profiler_*",
    "fp16_type", "drop_data", "num_ckpt*", "fabric_type_blacklist", "dump_*", "micro_batch_size",
    "retrace_every_iteration", "ini", "host_*", "grad_accum_steps", "throughput_smoothing",
)
INIT = (  # of `trainer.init`
    "backend", "device", "model_dir", "seed", "model", "optimizer", "schedulers", "precision",
    "sparsity", "loop", "checkpoint", "logging", "callbacks", "loggers",
)
LOOP = (
    "num_steps", "max_steps", "num_epochs", "steps_per_epoch", "eval_frequency", "eval_steps",
    "grad_accum_steps",
)
CLUSTER = (
    "num_csx", "num_workers_per_csx", "max_wgt_servers", "max_act_per_csx", "num_act_servers",
    "num_wgt_servers", "job_*", "mount_dirs", "python_paths", "mgmt_*", "disable_version_check",
    "workflow_id", "cbcore_image", "notifications", "*_memory_gi", "*_cpu", "credentials_path",
)
PRECISION = (
    "enabled", "fp16_type", "loss_scaling_factor", "initial_loss_scale", "max_gradient_norm",
    "max_gradient_value", "steps_per_increase", "min_loss_scale", "max_loss_scale",
    "log_loss_scale", "precision_opt_level", "type",
)
SPARSITY = (
    "sparsity", "algorithm", "type", "init_method", "param_name_patterns", "param_filter",
    "schedule", "drop_fraction", "update", "name", "erk_power_scale", "*balance*", "add_summaries",
    "sparsify_criteria", "groups", "regrow_*", "blacklist*",
)
CONFIG = (  # of a Hugging Face configuration
    "_*", "transformers_version", "torch_dtype", "dtype", "use_cache", "*_token_id", "*pdrop",
    "*drop*", "initializer_range", "initializer_factor", "*_eps", "*epsilon", "rope_*", "rotary_*",
    "pretraining_tp", "max_window_layers", "n_ctx", "task_specific_params", "summary_*",
    "output_*", "scale_decoder_outputs", "id2label", "num_labels", "scale_attn*", "reorder_and_upcast_attn", "gradient_checkpointing", "label2id",
    "classifier_*", "tokenizer_class", "auto_map", "max_length", "partial_rotary_factor",
    "router_*", "is_encoder_decoder", "is_decoder", "add_cross_attention", "problem_type",
    "relative_attention_max_distance", "dense_act_fn", "encoder_stride",
    "esmfold_config", "vocab_list", "apply_residual_connection_post_layernorm", "layer_types",
    "mask_padding", "hidden_bias", "directionality", "pooler_*", "pad_token", "use_return_dict",
    "return_dict", "torchscript", "tf_legacy_loss", "pruned_heads", "feed_forward_proj_act",
    "finetuning_task", "chunk_size_feed_forward", "n_special", "predict_special_tokens",
    "attn_implementation", "quantization_config", "model_max_length", "sep_token", "eos_token",
    "init_std", "prefix", "*softcapping", "query_pre_attn_scalar", "cache_implementation",
    "original_max_position_embeddings", "sliding_window_pattern",
    # scales of Granite
    "embedding_multiplier", "attention_multiplier", "residual_multiplier", "logits_scaling",
    # where Command-R, SmolLM 3 and ModernBERT look far or near, and kernels
    "layer_switch", "order_of_interleaved_layers", "use_parallel_embedding", "no_rope_layer*",
    "global_attn_every_n_layers", "*_rope_theta", "repad_logits_with_grad", "sparse_pred_*",
    "initializer_cutoff_factor", "deterministic_flash_attn", "reference_compile",
    # of experts and of OLMo
    "norm_topk_prob", "clip_qkv", "scale_attention_softmax_in_fp32",
    # of DeepSeek's and gpt-oss' routers, kernels, and of features that follow from others
    "aux_loss_*", "ep_size", "n_group", "topk_group", "topk_method", "scoring_func", "seq_aux",
    "routed_scaling_factor", "qk_head_dim", "swiglu_*", "initial_context_length",
    # of CLIP and Whisper, and how older files were to be read aloud
    "logit_scale_init_value", "apply_spec_augment", "mask_time_*", "mask_feature_*", "*layerdrop",
    "median_filter_width", "use_weighted_layer_sum", "scale_embedding", "*suppress_tokens",
    "forced_*", "bad_words_ids", "*diversity_penalty", "do_sample", "early_stopping", "*length_penalty",
    "*no_repeat_ngram_size", "min_length", "num_beam*", "num_return_sequences", "top_k", "top_p",
    "remove_invalid_values", "repetition_penalty", "temperature", "typical_p", "use_bfloat16",
    "cross_attention_hidden_size", "model_type",
    # BLOOM's kernels, and where its biases begin
    "masked_softmax_fusion", "skip_bias_add*", "slow_but_exact", "attention_softmax_in_fp32",
    "offset_alibi",
    # of images in stages, as the backbone of another model
    "out_features", "out_indices", "stage_names", "path_norm",
    # of MPT: first values, scales and names
    "init_config", "init_device", "verbose", "tokenizer_name", "logit_scale", "embedding_fraction",
)
MOE = (  # of `moe` beside its numbers of experts
    "load_balancing_loss_coef", "null_expert_bias", "moe_implementation", "router_fp32",
    "router_selection_nonlinearity", "expert_weighting_nonlinearity", "probability_before_ffn",
    "expert_weighting_normalization", "sinkhorn_n_iters", "gate_initializer", "expert_capacity*",
)
# fmt: on


def sifted(
    found: Mapping[str, Any], harmless: tuple[str, ...]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A mapping without harmless keys and those that say nothing, and the names of the first.

    >>> sifted({"hidden_size": 8, "dropout_rate": 0.1}, MODEL)
    ({'hidden_size': 8}, ('dropout_rate',))
    """
    out = tuple(key for key in found if is_among(key, harmless))
    rest = {key: value for key, value in found.items() if key not in out and value is not None}
    return rest, out


def meant(word: str, known: Iterable[str]) -> str:
    """The known name that a word is but for case, what joins its parts, or a slip of one letter.

    Empty where there is none: models whose names are near each other are different models, and so
    are those whose names differ by a number.

    >>> [meant(word, ["bert", "gpt_neox", "llama"]) for word in ("GPT-NeoX", "lama", "roberta")]
    ['gpt_neox', 'llama', '']
    """
    names = [*known]
    same = [name for name in names if _bare(name) == _bare(word)]
    near = [name for name in names if sub(r"\D", "", name) == sub(r"\D", "", word)]
    close = get_close_matches(word[:100], near, n=1, cutoff=ONE_LETTER)
    return word if word in names else (same or close or [""])[0]


def _bare(name: str) -> str:
    return sub(r"[-_. ]", "", name.lower())


def is_among(key: str, patterns: tuple[str, ...]) -> bool:
    """Whether a key is one of these, where * stands for any letters."""
    return any(fnmatchcase(key, pattern) for pattern in patterns)
