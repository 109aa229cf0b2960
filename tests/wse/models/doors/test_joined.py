"""CLIP, SigLIP, Qwen-VL, Whisper by their configurations: counts of the classes, what is built."""

import json
from pathlib import Path
from typing import Any

import pytest

import wse
from wse.models.doors.huggingface import from_config
from wse.models.from_graph import workload
from wse.models.rebuilt.build import rebuilt

AT_REST = {"temperature": 1.0, "top_k": 50, "num_beams": 1, "bad_words_ids": None,
    "no_repeat_ngram_size": 0, "length_penalty": 1.0, "tie_encoder_decoder": False}  # fmt: skip
CLIP: dict[str, Any] = {"model_type": "clip", "architectures": ["CLIPModel"],
    "projection_dim": 512, "logit_scale_init_value": 2.6592,
    "text_config": {**AT_REST, "model_type": "clip_text_model", "hidden_size": 512,
        "intermediate_size": 2048, "num_attention_heads": 8, "num_hidden_layers": 12,
        "max_position_embeddings": 77, "vocab_size": 49408, "hidden_act": "quick_gelu"},
    "vision_config": {**AT_REST, "model_type": "clip_vision_model", "hidden_size": 768,
        "intermediate_size": 3072, "num_attention_heads": 12, "num_hidden_layers": 12,
        "image_size": 224, "patch_size": 32}}  # fmt: skip
LARGE = {**CLIP, "projection_dim": 768,
    "text_config_dict": {"hidden_size": 768, "intermediate_size": 3072,
        "num_attention_heads": 12},
    "vision_config": {"hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16,
        "num_hidden_layers": 24, "patch_size": 14, "projection_dim": 768}}  # fmt: skip
SIGLIP: dict[str, Any] = {"model_type": "siglip", "architectures": ["SiglipModel"],
    "initializer_factor": 1.0, "text_config": {"model_type": "siglip_text_model"},
    "vision_config": {"model_type": "siglip_vision_model"}}  # fmt: skip
SO400M = {"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27,
    "num_attention_heads": 16}  # fmt: skip
SIGLIP2 = {**SIGLIP, "model_type": "siglip2", "architectures": ["Siglip2Model"],
    "text_config": {"vocab_size": 256000}, "vision_config": {"num_patches": 256}}  # fmt: skip
EYES = {"depth": 32, "embed_dim": 1280, "mlp_ratio": 4, "num_heads": 16, "in_chans": 3,
    "hidden_size": 1536, "patch_size": 14, "spatial_merge_size": 2, "spatial_patch_size": 14,
    "temporal_patch_size": 2}  # fmt: skip
QWEN: dict[str, Any] = {"model_type": "qwen2_vl", "hidden_size": 1536, "intermediate_size": 8960,
    "architectures": ["Qwen2VLForConditionalGeneration"], "num_hidden_layers": 28,
    "num_attention_heads": 12, "num_key_value_heads": 2, "vocab_size": 151936,
    "max_position_embeddings": 32768, "tie_word_embeddings": True, "image_token_id": 151655,
    "use_sliding_window": False, "sliding_window": 32768, "max_window_layers": 28,
    "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}, "rope_theta": 1e6,
    "vision_config": EYES}  # fmt: skip
NEWER = {"depth": 32, "hidden_act": "silu", "hidden_size": 1280, "intermediate_size": 3420,
    "num_heads": 16, "out_hidden_size": 3584, "patch_size": 14, "window_size": 112,
    "fullatt_block_indexes": [7, 15, 23, 31], "tokens_per_second": 2}  # fmt: skip
QWEN25 = {**QWEN, "model_type": "qwen2_5_vl", "hidden_size": 3584, "intermediate_size": 18944,
    "architectures": ["Qwen2_5_VLForConditionalGeneration"], "num_attention_heads": 28,
    "num_key_value_heads": 4, "vocab_size": 152064, "tie_word_embeddings": False,
    "vision_config": NEWER}  # fmt: skip
WORDS = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
    "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 30,
    "max_position_embeddings": 20}  # fmt: skip
WHISPER: dict[str, Any] = {"model_type": "whisper", "d_model": 384, "encoder_layers": 4,
    "architectures": ["WhisperForConditionalGeneration"], "num_hidden_layers": 4,
    "encoder_attention_heads": 6, "encoder_ffn_dim": 1536, "decoder_layers": 4,
    "decoder_attention_heads": 6, "decoder_ffn_dim": 1536, "vocab_size": 51865,
    "num_mel_bins": 80, "max_source_positions": 1500, "max_target_positions": 448,
    "suppress_tokens": [1, 2], "forced_decoder_ids": [[1, 50259]], "scale_embedding": False,
    "median_filter_width": 7, "mask_time_prob": 0.05, "encoder_layerdrop": 0.0}  # fmt: skip
WIDE = {f"{side}coder_{what}": size for side in ("en", "de") for what, size in (
    ("layers", 32), ("attention_heads", 20), ("ffn_dim", 5120))}  # fmt: skip
MODELS = {  # Whisper's without the waves of its encoder, which no training changes
    "CLIP-ViT-B/32": (151_277_313, CLIP),
    "CLIP-ViT-L/14": (427_616_513, LARGE),
    "SigLIP-base": (203_155_970, SIGLIP),
    "SigLIP-so400m/14-384": (877_960_498, {**SIGLIP, "text_config": SO400M,
        "vision_config": {**SO400M, "image_size": 384, "patch_size": 14}}),
    # sourced: parameters of transformers' classes of these sizes, on the meta device
    "SigLIP2-base": (375_234_050, SIGLIP2),
    "Qwen2-VL-2B": (2_208_985_600, QWEN),
    "Qwen2.5-VL-7B": (8_292_166_656, QWEN25),
    "Whisper-tiny": (37_760_640 - 1500 * 384, WHISPER),
    "Whisper-large-v3": (1_543_490_560 - 1500 * 1280, {**WHISPER, **WIDE, "d_model": 1280,
        "num_hidden_layers": 32, "num_mel_bins": 128, "vocab_size": 51866}),
}  # fmt: skip
SMALL = {
    "clip": {**CLIP, "projection_dim": 12,
        "text_config": {"hidden_size": 16, "intermediate_size": 24, "num_attention_heads": 2,
            "num_hidden_layers": 2, "max_position_embeddings": 7, "vocab_size": 30},
        "vision_config": {"hidden_size": 20, "intermediate_size": 28, "num_attention_heads": 2,
            "num_hidden_layers": 1, "image_size": 8, "patch_size": 4}},
    "siglip": {**SIGLIP,
        "text_config": {"hidden_size": 16, "intermediate_size": 24, "num_attention_heads": 2,
            "num_hidden_layers": 2, "max_position_embeddings": 7, "vocab_size": 30,
            "projection_size": 20},
        "vision_config": {"hidden_size": 20, "intermediate_size": 28, "num_attention_heads": 2,
            "num_hidden_layers": 1, "image_size": 10, "patch_size": 4}},
    "siglip2": {**SIGLIP2, "text_config": {**WORDS, "projection_size": 20,
            "num_key_value_heads": None},
        "vision_config": {"hidden_size": 20, "intermediate_size": 28, "num_attention_heads": 2,
            "num_hidden_layers": 1, "num_patches": 9, "patch_size": 4}},
    "qwen2_vl": {**QWEN, **WORDS, "vision_config": {**EYES, "depth": 2, "embed_dim": 24,
        "hidden_size": 16, "num_heads": 2, "patch_size": 4, "image_size": [16, 24]}},
    "qwen2_5_vl": {**QWEN25, "text_config": WORDS, **dict.fromkeys(WORDS),
        "vision_config": {**NEWER, "depth": 3, "hidden_size": 24, "out_hidden_size": 16,
            "intermediate_size": 20, "num_heads": 2, "patch_size": 4, "window_size": 16,
            "fullatt_block_indexes": [1], "image_size": [16, 32]}},
    "whisper": {**WHISPER, **dict.fromkeys(WIDE, 2), "d_model": 16, "vocab_size": 30,
        "num_hidden_layers": 2, "num_mel_bins": 3, "max_source_positions": 10,
        "max_target_positions": 6},
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_counts_are_those_of_the_classes(name: str) -> None:
    count, said = MODELS[name]
    assert from_config(said, name).workload.parameters == count


@pytest.mark.parametrize("kind", SMALL)
def test_what_is_built_is_what_was_counted(kind: str) -> None:
    read = from_config(SMALL[kind], "mine")
    traced = workload(wse.trace(*vars(rebuilt(read)).values()))
    assert traced.parameters == read.workload.parameters
    assert traced.forward_flops == read.workload.forward_flops
    assert traced.backward_flops == pytest.approx(read.workload.backward_flops, rel=0.05)


CASES = [
    ({**CLIP, "architectures": ["CLIPVisionModel"]}, "a half of CLIP"),
    ({**CLIP, "text_config": 3}, "text_config"),
    ({**CLIP, "text_config": {"hidden_size": "8"}}, "hidden_size of text_config of mine is '8'"),
    ({**CLIP, "vision_config": {"hiden_size": 8}}, "hiden_size"),
    ({**CLIP, "vision_config": {"patch_size": 30}}, "patch_size"),
    ({**SIGLIP, "architectures": ["SiglipForImageClassification"]}, "a half of SigLIP"),
    ({**SIGLIP, "text_config": {"projection_size": 8}}, "projection_size .* is 8, hidden_size"),
    ({**SIGLIP, "vision_config": {"vision_use_head": False}}, "vision_use_head .* is False"),
    ({**SIGLIP, "vision_config": {"image_size": 8}}, "must divide image_size"),
    ({**SIGLIP, "vision_config": {"patch_size": 0}}, "patch_size"),
    ({**SIGLIP2, "architectures": ["SiglipModel"]}, "a half of SigLIP"),
    ({**SIGLIP2, "vision_config": {"num_patches": 250}}, "250; .*a square number such as 225"),
    ({**SIGLIP2, "vision_config": {"patch_size": [16, 14]}}, "square patches alone"),
    ({**QWEN, "vision_config": {**EYES, "hidden_size": 1280}}, "is 1280, hidden_size of its words"),
    ({**QWEN, "vision_config": {**EYES, "image_size": 450}}, "multiples of 28"),
    ({**QWEN25, "vision_config": {**NEWER, "image_size": 420}}, "multiples of 112"),
    (
        {**QWEN25, "vision_config": {**NEWER, "window_size": 20}},
        "window_size .* is 20; it must hold",
    ),
    (
        {**QWEN25, "vision_config": {**NEWER, "fullatt_block_indexes": 7}},
        "list of numbers of block",
    ),
    ({**QWEN, "vision_config": {**EYES, "patch_size": None}}, "patch_size .* is null"),
    ({**QWEN, "vision_config": {**EYES, "depht": 2}}, "'depht', which is not known"),
    ({**QWEN, "text_config": {**WORDS}}, "both say one thing"),
    ({**QWEN, "max_position_embeddings": 200}, "200; the picture stands for 256 of them"),
    ({**QWEN, "hidden_size": None}, "lacks hidden_size"),
    ({**QWEN, "architectures": ["Qwen2VLModel"]}, "which has no head"),
    ({**WHISPER, "num_hidden_layers": 5}, "encoder_layers of mine is 4, num_hidden_layers 5"),
    ({**WHISPER, "decoder_layers": None}, "lacks decoder_layers"),
    ({**WHISPER, "encoder_attention_heads": 7}, "7; it must divide"),
    ({**WHISPER, "architectures": ["WhisperForAudioClassification"]}, "head is not counted"),
]


@pytest.mark.parametrize(("said", "rule"), CASES, ids=lambda case: str(case)[-30:])
def test_contradictions_are_one_error(said: dict, rule: str) -> None:
    with pytest.raises(ValueError, match=rule) as found:
        from_config(said, "mine")
    assert "\n" not in str(found.value)


def test_an_answer_of_sound_has_as_many_words_as_are_asked_for() -> None:
    with pytest.raises(ValueError, match="sequence is 449; learned positions end at 448"):
        from_config(WHISPER, "mine", 449)
    short, long = (from_config(WHISPER, "mine", n).workload for n in (1, 448))
    assert short.tokens == long.tokens == 1500
    assert short.forward_flops < long.forward_flops


def test_a_picture_stands_among_as_many_words_as_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(QWEN))
    short, long = (wse.read_model(tmp_path, n) for n in (512, 2048))
    assert (short.workload.tokens, long.workload.tokens) == (512, 2048)
    assert "256 of its 512 places" in short.cautions[0]
    # 1536 more words meet all 2048, and those that were there as many more.
    h, f, kv, layers = 1536, 8960, 256, 28
    products = layers * (2 * h * h + 2 * h * kv + 3 * h * f) + h * 151936
    scores = layers * 2 * h * (2048**2 - 512**2)
    assert long.workload.forward_flops - short.workload.forward_flops == 2 * (
        1536 * products + scores
    )
    with pytest.raises(ValueError, match="sequence is 256; the picture stands for 256 of them"):
        wse.read_model(tmp_path, 256)


def test_windows_of_a_picture_are_of_the_patches_that_lie_in_them() -> None:
    read = from_config(QWEN25, "mine", 2048).workload
    scores = {x.name: x.forward_flops for x in read.layers if x.name.endswith("scores")}
    assert scores["picture_0.scores"] == 4 * 1024 * 64 * 1280
    assert scores["picture_7.scores"] == 4 * 1024 * 1024 * 1280
