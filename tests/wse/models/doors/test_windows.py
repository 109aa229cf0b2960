"""Sliding windows: a token meets the keys of its window alone, in the blocks that have one."""

import pytest

from wse.models.doors.huggingface import from_config
from wse.models.doors.modelzoo import from_document
from wse.models.shapes.stack import Transformer

NEAR, FAR = "sliding_attention", "full_attention"
SMALL = {"hidden_size": 32, "num_hidden_layers": 6, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 48, "vocab_size": 90,
    "max_position_embeddings": 64, "sliding_window": 8}  # fmt: skip
USED = {"use_sliding_window": True, "max_window_layers": 4}
BLOCKS = [  # whether each has a window
    ("mistral", {}, "111111"),
    ("mixtral", {"num_local_experts": 2}, "111111"),
    ("phi3", {}, "111111"),
    ("starcoder2", {}, "111111"),
    ("gpt_oss", {}, "101010"),
    ("gpt_oss", {"layer_types": [NEAR] * 5 + [FAR]}, "111110"),
    ("gemma2", {}, "101010"),
    ("gemma3_text", {}, "111110"),
    ("gemma3_text", {"sliding_window_pattern": 3}, "110110"),
    ("cohere2", {}, "111011"),
    ("olmo3", {}, "111011"),
    ("qwen2", USED, "000011"),
    ("qwen3", USED, "000011"),
    ("qwen3", {**USED, "layer_types": [NEAR, FAR] * 3}, "101010"),
    ("qwen2", {"use_sliding_window": False}, "000000"),
    ("mistral", {"sliding_window": None}, "000000"),
    ("mistral", {"sliding_window": 64}, "000000"),
    ("modernbert", {"local_attention": 7, "head_dim": None, "num_key_value_heads": None,
        "sliding_window": None}, "011011"),
    ("llama", {}, "000000"),
]  # fmt: skip


def scores(said, sequence=None):
    """Operations of the scores of each block."""
    layers = from_config(said, "mine", sequence).workload.layers
    return [x.forward_flops for x in layers if x.name.endswith(".scores")]


@pytest.mark.parametrize(("kind", "more", "near"), BLOCKS)
def test_scores_are_of_the_keys_of_the_window(kind: str, more, near: str) -> None:
    said = {**SMALL, "model_type": kind, **more}
    numbers = (4 * (said["head_dim"] or 8)) * 64
    for sequence, keys in ((64, 7 if kind == "modernbert" else 8), (4, 4)):
        per_key = 2 * 2 * numbers * sequence // 64
        wanted = [per_key * (keys if one == "1" else sequence) for one in near]
        assert scores(said, sequence) == wanted


def test_the_caution_says_what_masks_would_add() -> None:
    said = {**SMALL, "model_type": "mistral"}
    found, full = (from_config(x, "mine") for x in (said, {**said, "sliding_window": None}))
    times = full.workload.forward_flops / found.workload.forward_flops
    assert f"masks the others computes {times:.3g} times as much" in found.cautions[0]
    assert found.workload.parameters == full.workload.parameters
    assert not from_config(said, "mine", 8).cautions
    (one,) = from_config({**said, "model_type": "llama"}, "mine").cautions
    assert "sliding_window is 8: scores of attention are counted in full" in one


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"layer_types": [NEAR, FAR]}, "layer_types of mine lists 2 layers, num_hidden_layers is"),
        (
            {"layer_types": [NEAR] * 5 + ["linear"]},
            "layer_types of mine has 'linear'; it must be a",
        ),
        ({"layer_types": NEAR}, "layer_types of mine is .*; it must be a list"),
        ({"sliding_window": 0}, "sliding_window of mine is 0"),
        ({"sliding_window": 8.5}, "sliding_window of mine is 8.5"),
        ({"sliding_window_pattern": 0}, "sliding_window_pattern of mine is 0"),
    ],
)
def test_windows_that_contradict_are_refused(change, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        from_config({**SMALL, "model_type": "gemma3_text", **change}, "mine")


def test_a_params_file_has_windows_in_all_blocks_or_in_every_other() -> None:
    model = {"name": "gemma2", "hidden_size": 32, "num_hidden_layers": 4, "num_heads": 4,
        "filter_size": 48, "vocab_size": 90, "max_position_embeddings": 64,
        "position_embedding_type": "rotary", "attention_sliding_window_length": 8}  # fmt: skip

    def met(**more):
        layers = from_document({"model": {**model, **more}}, "mine").workload.layers
        return [x.forward_flops // (4 * 64 * 32) for x in layers if x.name.endswith(".scores")]

    assert met() == [8] * 4
    assert met(sliding_window_every_other_decoder_layer=True) == [8, 64, 8, 64]
    assert met(attention_sink_tokens=4) == [64] * 4  # more than the window: in full, and said


def test_windows_are_one_to_a_block() -> None:
    sizes = (32, 2, 4, 90, 64)
    with pytest.raises(ValueError, match="windows are of 1 blocks; num_hidden_layers is 2"):
        Transformer(*sizes, windows=(8,))
    with pytest.raises(ValueError, match=r"windows are .*each must be an integer >= 0"):
        Transformer(*sizes, windows=(8, -1))
