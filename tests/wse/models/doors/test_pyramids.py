"""ConvNeXt, Swin 1 and 2 by their configurations: published counts, closed forms, what is built."""

from itertools import pairwise
from typing import Any

import pytest

import wse
from wse.models.doors.huggingface import from_config
from wse.models.from_graph import workload
from wse.models.rebuilt.build import rebuilt

LABELS = {str(i): f"LABEL_{i}" for i in range(1000)}
NEXT: dict[str, Any] = {"model_type": "convnext", "num_stages": 4, "image_size": 224,
    "architectures": ["ConvNextForImageClassification"], "hidden_sizes": [96, 192, 384, 768],
    "depths": [3, 3, 9, 3], "id2label": LABELS, "drop_path_rate": 0.0, "patch_size": 4,
    "layer_scale_init_value": 1e-6, "hidden_act": "gelu", "num_channels": 3}  # fmt: skip
NEXT2 = {**NEXT, "model_type": "convnextv2", "layer_scale_init_value": None,
    "architectures": ["ConvNextV2ForImageClassification"]}  # fmt: skip
SWIN: dict[str, Any] = {"model_type": "swin", "embed_dim": 96, "depths": [2, 2, 6, 2],
    "architectures": ["SwinForImageClassification"], "num_heads": [3, 6, 12, 24],
    "window_size": 7, "mlp_ratio": 4.0, "image_size": 224, "patch_size": 4, "path_norm": True,
    "id2label": LABELS, "qkv_bias": True, "encoder_stride": 32, "num_layers": 4}  # fmt: skip
SWIN2 = {**SWIN, "model_type": "swinv2", "architectures": ["Swinv2ForImageClassification"],
    "window_size": 8, "image_size": 256, "pretrained_window_sizes": [0, 0, 0, 0]}  # fmt: skip
WIDE = {"hidden_sizes": [128, 256, 512, 1024], "depths": [3, 3, 27, 3]}
MODELS = {  # sourced: the papers' repositories
    "ConvNeXt-T": (28_589_128, NEXT),
    "ConvNeXt-B": (88_591_464, {**NEXT, **WIDE}),
    "ConvNeXt-V2-T": (28_635_496, NEXT2),
    "ConvNeXt-V2-B": (88_717_800, {**NEXT2, **WIDE}),
    "Swin-T": (28_288_354, SWIN),
    # sourced: parameters of transformers' class of these sizes, on the meta device
    "Swin-V2-T": (28_347_154, {**SWIN2, "window_size": 16}),
    "Swin-V2-L": (196_739_932, {**SWIN2, "embed_dim": 192, "depths": [2, 2, 18, 2],
        "num_heads": [6, 12, 24, 48], "window_size": 24, "image_size": 384}),
    "Swin-B": (87_768_224, {**SWIN, "embed_dim": 128, "depths": [2, 2, 18, 2],
        "num_heads": [4, 8, 16, 32]}),
}  # fmt: skip
SMALL = {  # sides that no patch, window or halving divides
    "convnext": {**NEXT, "num_stages": 2, "depths": [1, 2], "hidden_sizes": [6, 10],
        "image_size": [70, 91], "id2label": {"0": "a", "1": "b"}},
    "convnextv2": {**NEXT2, "num_stages": 2, "depths": [1, 2], "hidden_sizes": [6, 10],
        "image_size": 37, "patch_size": 3},
    "swin": {**SWIN, "num_layers": 2, "depths": [2, 2], "embed_dim": 8, "num_heads": [2, 4],
        "image_size": [36, 44], "window_size": 4, "mlp_ratio": 2.5, "qkv_bias": False,
        "use_absolute_embeddings": True, "id2label": None, "num_labels": 5},
    "swinv2": {**SWIN2, "num_layers": 2, "depths": [2, 2], "embed_dim": 96, "num_heads": [2, 4],
        "image_size": [36, 44], "window_size": 4, "mlp_ratio": 2.5, "qkv_bias": False},
    "swinv2 smaller than a window": {**SWIN2, "num_layers": 2, "depths": [1, 2], "embed_dim": 96,
        "num_heads": [2, 4], "image_size": 32, "window_size": 7},
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_counts_are_those_published(name: str) -> None:
    count, said = MODELS[name]
    assert from_config(said, name).workload.parameters == count


def test_products_are_those_of_the_closed_forms() -> None:
    places, widths, depths = [(56 >> i) ** 2 for i in range(4)], NEXT["hidden_sizes"], [3, 3, 9, 3]
    blocks = sum(
        n * k * (49 * d + 8 * d * d) for n, d, k in zip(places, widths, depths, strict=True)
    )
    halved = sum(n * 4 * c * d for n, (c, d) in zip(places[1:], pairwise(widths), strict=True))
    whole = blocks + halved + 56 * 56 * 48 * 96 + 768 * 1000
    assert from_config(NEXT, "mine").workload.forward_flops == 2 * whole
    blocks = sum(
        n * k * (12 * d * d + 2 * 49 * d)
        for n, d, k in zip(places, widths, SWIN["depths"], strict=True)
    )
    merged = sum(n * 2 * d * d for n, d in zip(places[1:], widths[1:], strict=True))
    whole = blocks + merged + 56 * 56 * 48 * 96 + 768 * 1000
    assert from_config(SWIN, "mine").workload.forward_flops == 2 * whole


@pytest.mark.parametrize("kind", SMALL)
def test_what_is_built_is_what_was_counted(kind: str) -> None:
    read = from_config(SMALL[kind], "mine")
    several = 1 if kind.startswith("swinv2") else 2  # its table is made once for a batch
    traced = workload(wse.trace(*vars(rebuilt(read, several)).values()))
    assert traced.parameters == read.workload.parameters
    assert traced.forward_flops == read.workload.forward_flops
    assert traced.backward_flops == pytest.approx(read.workload.backward_flops, rel=0.05)
    assert wse.estimate(read.workload).total_s > 0


@pytest.mark.slow
@pytest.mark.parametrize("said", [NEXT, NEXT2, SWIN])
def test_nothing_that_fills_no_place_is_an_operation(said: dict[str, Any]) -> None:
    found = rebuilt(from_config(said, "mine"), 1)
    report = wse.check(found.loss, found.params, found.batch)
    used = {one.use.operation for one in report.findings if not one.use.backward}
    assert "pad" not in used, report


CASES = [
    ({**NEXT, "num_stages": 3}, "num_stages of mine is 3, of hidden_sizes there are 4"),
    ({**NEXT, "depths": 3}, r"depths of mine is 3; it must be a list .*\[3, 3, 9, 3\]"),
    ({**NEXT, "depths": [3, 3, 9, "3"]}, "depths"),
    ({**NEXT, "depths": [3, 3, 9, 0]}, "depths"),
    ({**NEXT, "layer_scale_init_value": "1e-6"}, "layer_scale_init_value of mine is '1e-6'"),
    ({**NEXT, "image_size": 16}, "nothing is left: take a larger image"),
    ({**NEXT, "architectures": ["ConvNextModel"]}, "has no head"),
    ({**NEXT2, "layer_scale_init_value": 1e-6}, "layer_scale_init_value', which is not known"),
    ({**SWIN, "num_heads": 3}, "num_heads of mine is 3; it must be a list"),
    ({**SWIN, "num_heads": [3, 6, 12]}, "there must be one of each for every stage"),
    ({**SWIN, "num_heads": [5, 6, 12, 24]}, "num_heads of stage 1 is 5; it must divide its 96"),
    ({**SWIN, "window_size": 8}, r"window_size is 8; stage 4 has .7, 7. places, fewer than a"),
    ({**SWIN, "image_size": 225}, "must divide image_size"),
    ({**SWIN, "mlp_ratio": "4"}, "mlp_ratio of mine is '4'; it must be a positive number"),
    ({**SWIN, "embed_dim": None}, "embed_dim of mine is null"),
    ({**SWIN, "num_layers": 3}, "num_layers of mine is 3, .* of depths there are 4"),
    ({**SWIN2, "use_absolute_embeddings": True}, "the class adds one place more"),
    (
        {**SWIN2, "pretrained_window_sizes": [0, 0, "0", 0]},
        "must have a whole number for each of 4",
    ),
    ({**SWIN2, "image_size": 16}, "halved 3 times, nothing is left: take a larger image"),
    ({**SWIN2, "window_size": 0}, "window_size is 0; it must be a positive"),
]


@pytest.mark.parametrize(("said", "rule"), CASES, ids=lambda case: str(case)[-30:])
def test_contradictions_are_one_error(said: dict, rule: str) -> None:
    with pytest.raises(ValueError, match=rule) as found:
        from_config(said, "mine")
    assert "\n" not in str(found.value)
