"""Files of the vendor's Model Zoo as they stand: counts, words kept or refused, commands."""

import json
import math
import os
from pathlib import Path

import jax
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import wse
from wse.cli.main import app
from wse.models.doors.modelzoo import from_document
from wse.models.rebuilt.build import rebuilt

SAMPLES = Path(os.environ.get("SCIML_SHARED", "/nowhere")) / "data" / "modelzoo"
PUBLISHED = {  # of the samples' models; sourced: the models' cards and papers
    "gpt3_xl": 1.3157e9,
    "gptj_6B": 6.05e9,
    "gpt_neox_20B": 20.55e9,
    "111m": 111e6,
    "111M.": 111e6,
    "llama2_7b": 6.738e9,
    "llama3p1_8b": 8.03e9,
    "mistral_7B": 7.24e9,
    "mixtral_8x7b": 46.7e9,
    "bert_large": 336e6,
    "esm2_t33_650M": 651e6,
    "t5_3B": 2.85e9,
    "falcon_7b": 6.92e9,
    "vit_base": 86.6e6,
    "vit_huge": 632e6,
    "dit_xlarge": 675e6,
}
FILES = sorted(SAMPLES.glob("*/*.yaml"))
# Published counts of models beside the samples, in the words of the Model Zoo.
PARTS = {"attention_module": "multiquery_attention"}
FREE = {"use_projection_bias_in_attention": False, "use_ffn_bias_in_attention": False}
FREE |= {"use_ffn_bias": False}
MODELS = {
    "BLOOM-7B": (7.069e9, {
        "name": "bloom", "vocab_size": 250880, "hidden_size": 4096, "filter_size": 16384,
        "num_hidden_layers": 30, "num_heads": 32, "position_embedding_type": "alibi",
        "embedding_layer_norm": True, "max_position_embeddings": 2048}),
    "Gemma-2-27B": (27.227e9, {
        "name": "gemma2", "vocab_size": 256000, "hidden_size": 4608, "filter_size": 36864,
        "num_hidden_layers": 46, "num_heads": 32, "position_embedding_type": "rotary",
        "attention_inner_dim": 4096, "nonlinearity": "geglu", "norm_type": "rmsnorm",
        "norm_first_sandwich": True, "extra_attention_params": {"num_kv_groups": 16},
        "max_position_embeddings": 8192, **PARTS, **FREE}),
    "StarCoder-15B": (15.517e9, {
        "name": "starcoder", "vocab_size": 49152, "hidden_size": 6144, "filter_size": 24576,
        "num_hidden_layers": 40, "num_heads": 48, "max_position_embeddings": 8192,
        "extra_attention_params": {"num_kv_groups": 1}, **PARTS}),
    "SantaCoder": (1.125e9, {
        "vocab_size": 49280, "hidden_size": 2048, "filter_size": 8192, "num_hidden_layers": 24,
        "num_heads": 16, "max_position_embeddings": 2048, "scale_by_layer_index": False,
        "extra_attention_params": {"num_kv_groups": 1}, **PARTS}),
    "Falcon-40B": (41.3e9, {
        "vocab_size": 65024, "hidden_size": 8192, "filter_size": 32768, "num_hidden_layers": 60,
        "num_heads": 128, "position_embedding_type": "rotary", "use_untied_layer_norm": True,
        "extra_attention_params": {"num_kv_groups": 8}, "max_position_embeddings": 2048,
        **PARTS, **FREE}),
    "BTLM-3B": (2.646e9, {
        "name": "btlm", "vocab_size": 50257, "hidden_size": 2560, "filter_size": 6826,
        "num_hidden_layers": 32, "num_heads": 32, "position_embedding_type": "alibi",
        "nonlinearity": "swiglu", "max_position_embeddings": 8192, "mup_base_filter_size": 682.6}),
    "BERT-base": (109.5e6, {
        "vocab_size": 30522, "hidden_size": 768, "filter_size": 3072, "num_hidden_layers": 12,
        "num_heads": 12, "encoder_nonlinearity": "gelu", "max_position_embeddings": 512,
        "num_labels": 3}),
}  # fmt: skip
SMALL = {"name": "gpt2", "hidden_size": 8, "num_hidden_layers": 2, "num_heads": 2}
SMALL |= {"filter_size": 16, "vocab_size": 11, "max_position_embeddings": 6}


def read(model: dict, **sections):
    return from_document({"model": model, **sections}, "mine")


@pytest.mark.skipif(not FILES, reason="the samples of the Model Zoo are not beside the clone")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem[-40:])
def test_every_sample_is_answered_or_refused_with_the_reason(path: Path) -> None:
    if "dino" in path.stem:
        with pytest.raises(ValueError, match="it trains a teacher"):
            wse.read_model(path)
        return
    found = wse.read_model(path)
    assert found.batch
    assert found.precision in ("float16", "bfloat16", "cbfloat16")
    for word, count in PUBLISHED.items():
        if word in path.stem + ".":
            assert found.workload.parameters == pytest.approx(count, rel=0.005)


@pytest.mark.parametrize("name", MODELS)
def test_counts_are_those_published(name: str) -> None:
    count, words = MODELS[name]
    assert read(words).workload.parameters == pytest.approx(count, rel=0.005)


def test_both_forms_say_the_same() -> None:
    model = {**SMALL, "mixed_precision": True, "fp16_type": "cbfloat16"}
    data = {"batch_size": 12, "max_sequence_length": 5}
    old = {
        "model": model,
        "train_input": {**data, "micro_batch_size": 4},
        "optimizer": {"optimizer_type": "adamw", "learning_rate": 0.1, "weight_decay": 0.1},
        "runconfig": {"max_steps": 7, "num_csx": 2},
        "sparsity": {"type": "rigl", "sparsity": 0.75},
    }
    flags = {"ScopedTrainFlags": {"csx.performance.micro_batch_size": 4}}
    init = {
        "backend": {"backend_type": "CSX", "cluster_config": {"num_csx": 2}},
        "model": SMALL,
        "precision": {"enabled": True, "fp16_type": "cbfloat16"},
        "optimizer": {"AdamW": {"weight_decay": 0.1}},
        "schedulers": [{"ConstantLR": {"learning_rate": 0.1}}],
        "loop": {"max_steps": 7},
        "callbacks": [flags],
        "sparsity": {"algorithm": "rigl", "sparsity": 0.75},
    }
    new = {"trainer": {"init": init, "fit": {"train_dataloader": data}}}
    one, other = from_document(old, "mine"), from_document(new, "mine")
    for key in ("workload", "batch", "micro_batch", "systems", "steps", "precision", "sparsity"):
        assert getattr(one, key) == getattr(other, key), key
    assert one.optimizer["optimizer_type"] == other.optimizer["optimizer_type"] == "AdamW"


@pytest.mark.slow
@given(st.permutations(sorted(SMALL)), st.booleans(), st.booleans(), st.integers(1, 2))
def test_words_that_carry_meaning_change_the_count(order, gated, tied, kv) -> None:
    words = {key: SMALL[key] for key in order} | {"share_embedding_weights": tied}
    plain = read(words).workload.parameters
    assert plain == read(dict(SMALL, share_embedding_weights=tied)).workload.parameters
    more = {"nonlinearity": "swiglu"} if gated else {}
    heads = {"extra_attention_params": {"num_kv_groups": kv}, **PARTS}
    found = read({**words, **more, **heads}).workload.parameters
    blocks, h, f = 2, 8, 16
    extra = gated * blocks * (h * f + f) - blocks * 2 * (2 - kv) * 4 * (h + 1)
    assert found - plain == extra


CASES = [
    ({**SMALL, "nonlinearty": "gelu"}, "nonlinearty.*did you mean 'nonlinearity'"),
    ({**SMALL, "nonlinearity": "swigu"}, "'swigu'.*did you mean 'swiglu'"),
    ({**SMALL, "norm_type": "rmsnom"}, "did you mean 'rmsnorm'"),
    ({**SMALL, "name": "lama"}, "did you mean 'llama'"),
    ({**SMALL, "num_heads": 3}, "num_heads is 3; it must divide hidden_size 8"),
    ({**SMALL, **PARTS}, "num_kv_groups"),
    ({**SMALL, "extra_attention_params": {"num_kv_group": 1}}, "did you mean 'num_kv_groups'"),
    ({**SMALL, "attention_inner_dim": 0}, "attention_inner_dim is 0; it must be a positive"),
    ({**SMALL, "moe": {"num_experts": 2, "top_k": 3}}, "top_k is 3"),
    ({**SMALL, "hidden_size": True}, "must be of type int"),
    ({**SMALL, "position_embedding_type": "rotery"}, "did you mean 'rotary'"),
    ({**SMALL, "extra_attention_params": {"num_kv_groups": 1}}, "write attention_module"),
    ({**SMALL, "name": "deberta"}, "not known: known are gpt2"),
    ({**SMALL, "residual_dropout_rat": 0.1}, "residual_dropout_rat', which is not known"),
    ({**SMALL, "mixed_precision": "no"}, "mixed_precision is 'no'; it must be of type bool"),
    ({**SMALL, "use_bfloat16": "false"}, "use_bfloat16 is 'false'; it must be of type bool"),
    ({**SMALL, "cross_attention_layers": [1]}, "not counted"),
    ({**SMALL, "norm_behind": True}, "norm_behind is True, which is no word of the Model Zoo"),
    ({**SMALL, "norm_type": "bare-layernorm"}, "norm_type is 'bare-layernorm', which is no word"),
    ({"name": "dpo"}, "two copies"),
    ({}, "of no known family"),
]


@pytest.mark.parametrize(("model", "rule"), CASES, ids=lambda case: str(case)[:30])
def test_a_word_that_is_not_understood_is_refused_by_name(model, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        read(model)


SECTIONS = [
    ({"optimizer": {"optimizer_type": "AdamX"}}, "did you mean 'Adam"),
    ({"optimizer": {"betaz": [0.9]}}, "did you mean 'betas'"),
    ({"runconfig": {"max_step": 7}}, "did you mean 'max_steps'"),
    ({"runconfig": {"max_steps": 0}}, "max_steps is 0; it must be a positive integer"),
    ({"train_input": {"batch_sise": 7}}, "did you mean 'batch_size'"),
    ({"train_input": {"batch_size": -7}}, "batch_size is -7"),
    ({"runconfig": {"micro_batch_size": 0}}, "micro_batch_size is 0; it must be a positive"),
    ({"sparsity": {"sparsity": 1.5}}, "sparsity is 1.5"),
    ({"train_input": {"max_seq_length": 5}}, "did you mean 'max_sequence_length'"),
    ({"csconfig": {"use_cbfloat": True}}, "did you mean 'use_cbfloat16'"),
    ({"csconfig": {"use_cbfloat16": "no"}}, "it must be of type bool"),
    ({"sparsity": {"sparsity": 0.5, "param_filter": [{"a": 1}]}}, "must be of type str"),
    ({"training": {}}, "'training', which is not known"),
    ({"runconfig": {"max_steps": 7, "num_steps": 9}}, "num_steps of runconfig is 9, of its max"),
    (
        {"runconfig": {"micro_batch_size": 2}, "train_input": {"micro_batch_size": 4}},
        "micro_batch_size of runconfig is 2, of the input 4; both say one size",
    ),
    ({"train_input": {"vocab_size": 9}}, "vocab_size of model is .*, of the input 9"),
]


@pytest.mark.parametrize(("sections", "rule"), SECTIONS, ids=lambda case: str(case)[:30])
def test_other_sections_are_checked_too(sections, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        read(SMALL, **sections)


TWICE = [
    ({"name": "vit", "image_size": [32, 32], **dict.fromkeys(("num_heads", "num_hidden_layers"), 2),
        "hidden_size": 8, "filter_size": 8}, {"image_size": [64, 64]}, {"image_size": 32}),
    ({"name": "unet", "encoder_filters": [4, 8], "decoder_filters": [4], "num_classes": 2,
        "image_shape": [16, 16, 1]}, {"image_shape": [32, 32, 1]}, {"num_classes": 2}),
]  # fmt: skip


@pytest.mark.parametrize(("model", "other", "same"), TWICE)
def test_sizes_that_model_and_input_say_must_agree(model, other, same) -> None:
    (key,) = other
    with pytest.raises(ValueError, match=f"{key} of model is .* both say one size"):
        from_document({"model": model, "train_input": other}, "mine")
    assert from_document({"model": model, "train_input": same}, "mine").workload.parameters


def test_what_is_listed_twice_is_refused() -> None:
    fit = {"train_dataloader": [{"batch_size": 2}, {"batch_size": 4}]}
    model = {"name": "fc_mnist", "hidden_sizes": [50]}
    with pytest.raises(ValueError, match="train_dataloader lists 2 entries"):
        from_document({"trainer": {"init": {"model": model}, "fit": fit}}, "mine")
    with pytest.raises(ValueError, match=r"hidden_sizes \[50\], and depth 3, hidden_size None"):
        from_document({"model": {**model, "depth": 3}}, "mine")


def test_patterns_of_sparsity_choose_the_layers() -> None:
    asked = {"sparsity": 0.5, "param_filter": ["*proj_[qkv]_dense_layer.weight"]}
    layers = read(SMALL, sparsity=asked).workload.layers
    assert {x.name.rpartition(".")[2] for x in layers if x.density < 1} == {"qkv"}


def test_patterns_that_name_no_weights_are_a_caution() -> None:
    (caution,) = read(SMALL, sparsity={"sparsity": 0.5, "param_filter": ["*nothing*"]}).cautions
    assert "'*nothing*'" in caution


def test_no_size_of_a_translator_means_as_the_other_half() -> None:
    whole = {**T5, "encoder_num_hidden_layers": 2}
    assert read(whole).workload.parameters
    for key in ("decoder_num_hidden_layers", "tgt_vocab_size"):
        with pytest.raises(ValueError, match=f"{key} is 0; it must be a positive integer"):
            read({**whole, key: 0})


def test_a_micro_batch_may_stand_in_the_runconfig() -> None:
    assert read(SMALL, runconfig={"micro_batch_size": 3}).micro_batch == 3


def test_harmless_words_are_listed_and_change_nothing() -> None:
    found = read({**SMALL, "dropout_rate": 0.5, "layer_norm_epsilon": 1e-3})
    assert {"model.dropout_rate", "model.layer_norm_epsilon"} <= set(found.harmless)
    assert found.workload == read(SMALL).workload


T5 = {"name": "t5", "src_vocab_size": 11, "d_model": 8, "d_kv": 3, "d_ff": 16, "num_heads": 2}
T5 |= {"encoder_num_hidden_layers": 1, "src_max_position_embeddings": 6}
VIT = {"name": "vision_transformer", "hidden_size": 8, "num_hidden_layers": 1, "num_heads": 2}
VIT |= {"filter_size": 16, "image_size": [8, 8], "patch_size": [4, 4], "num_classes": 3}
DIT = {**VIT, "name": "dit", "vae": {"latent_size": [8, 8]}}
del DIT["image_size"]
UNET = {"encoder_filters": [2, 4], "decoder_filters": [2], "image_shape": [8, 8, 1]}
UNET |= {"num_classes": 2, "norm_layer": "group"}
BERT = {key: value for key, value in SMALL.items() if key != "name"}
BERT |= {"encoder_nonlinearity": "gelu"}
BUILT = {
    "gpt": SMALL,
    "sandwich": {**SMALL, "norm_first_sandwich": True, "attention_inner_dim": 6},
    "alibi": {**SMALL, "position_embedding_type": "alibi", "alibi_trainable_slopes": True},
    "relative": {**SMALL, "position_embedding_type": "relative"},
    "neox": {**SMALL, "name": "gpt-neox", "use_untied_layer_norm": True},
    "experts": {**SMALL, "moe": {"num_experts": 3, "top_k": 2, "num_shared_experts": 1}},
    "bert": BERT,
    "t5": T5,
    "vit": VIT,
    "dit": DIT,
    "unet": UNET,
    "depthwise": {**UNET, "convs_per_block": ["3x3_dw_conv", "1x1_conv"], "enable_bias": True},
    "mnist": {"name": "fc_mnist", "depth": 2, "hidden_size": 5},
}


def test_what_is_missing_is_told_all_at_once() -> None:
    left = {key: value for key, value in T5.items() if key not in ("d_kv", "d_ff", "num_heads")}
    with pytest.raises(ValueError, match="lacks d_kv, d_ff, num_heads; all must be given"):
        read(left)
    with pytest.raises(ValueError, match="lacks d_kv; it must be given: add a line d_kv:"):
        read({key: value for key, value in T5.items() if key != "d_kv"})


@pytest.mark.parametrize("name", BUILT)
def test_what_is_checked_has_as_many_parameters_as_what_is_estimated(name: str) -> None:
    found = read(BUILT[name])
    made = rebuilt(found, batch=2)
    leaves = jax.tree.leaves(made.params)
    assert sum(math.prod(leaf.shape) for leaf in leaves) == found.workload.parameters
    assert jax.eval_shape(made.loss, made.params, made.batch).shape == ()


def test_the_commands_take_the_file_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    model = {**SMALL, "max_position_embeddings": 6}
    said = {"model": model, "train_input": {"batch_size": 8}, "runconfig": {"max_steps": 5}}
    path.write_text(yaml.safe_dump(said))

    def run(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, [*words, "--params", str(path)])
        return done.exit_code, done.output

    code, text = run("estimate", "--json")
    assert code == 0
    found = json.loads(text)
    assert found["model"]["parameters"] == wse.read_model(path).workload.parameters
    assert found["samples"] == 40
    assert run("check")[0] == 0
    assert run("run", "CSX", "--validate_only")[0] == 0
    code, text = run("run", "CSX", "--compile_only")
    assert code == 0
    assert "40 samples, batch 8" in text
    code, text = run("run", "CSX")
    assert code == 2
    assert "train_input of" in text
    assert "lacks data_dir" in text
