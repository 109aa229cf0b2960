"""Models by name: counts equal to what was published, closed forms, files, refusals."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wse
from wse.models import shapes
from wse.models.shapes import KERNELS, Transformer, transformer

ENTRIES = shapes.entries()
COUNTED = [entry for entry in ENTRIES.values() if entry.parameters]
model = cache(shapes.get)  # the largest take a second each to build
ROUND = 0.025  # names such as "1.3B" are rounded, and say so by their few digits


@pytest.mark.parametrize("entry", COUNTED, ids=lambda entry: entry.name)
def test_parameters_equal_the_published_count(entry) -> None:
    digits = len(f"{entry.parameters:.0f}".rstrip("0"))
    found = model(entry.name).parameters
    if digits > 4:
        assert found == entry.parameters
    else:
        assert found == pytest.approx(entry.parameters, rel=ROUND)
    assert entry.source


def test_enough_counts_are_exact() -> None:
    exact = [entry for entry in COUNTED if model(entry.name).parameters == entry.parameters]
    assert len(exact) >= 9


@pytest.mark.parametrize("name", ENTRIES)
def test_layers_of_a_model_meet(name: str) -> None:
    work = model(name)
    assert work.inputs == work.layers[0].inputs
    assert work.forward_flops > 0
    assert work.parameters > 0
    assert 0 <= work.sparsifiable_share <= 1


def test_the_catalogue_holds_what_was_promised() -> None:
    promised = "FC-MNIST GPT-2-small GPT-3-175B GPT-J-6B GPT-NeoX-20B GenSLM-250M GenSLM-25B GPT-1T"
    promised += " GPT-120T BERT-large ESM-2-650M Llama-7B DiT-XL-2 ResNet-50 RetinaNet U-Net-3D"
    assert set(promised.split()) <= set(ENTRIES)
    assert len([name for name in ENTRIES if name.startswith("Cerebras-GPT")]) == 7
    assert shapes.get("GenSLM-2.5B").tokens == 10_240


@given(
    h=st.integers(1, 40),
    heads=st.integers(1, 4),
    blocks=st.integers(1, 3),
    s=st.integers(1, 50),
    v=st.integers(1, 200),
)
def test_closed_forms_of_a_transformer(h: int, heads: int, blocks: int, s: int, v: int) -> None:
    h *= heads
    work = transformer("any", Transformer(h, blocks, heads, v, s))
    assert work.parameters == blocks * (12 * h * h + 13 * h) + 2 * h + 2 * v * h + s * h
    assert work.forward_flops == 2 * s * (blocks * 12 * h * h + v * h) + blocks * 4 * s * s * h


def test_six_n_and_twelve_l_h_s() -> None:
    """FLOPs per token of a step: 6 N + 12 L h s, N without embeddings."""
    work = shapes.get("GPT-J-6B")
    n = sum(x.parameters for x in work.layers if x.kind == "dense")
    per_token = (work.forward_flops + work.backward_flops) / 2048
    assert per_token == pytest.approx(6 * n + 12 * 28 * 4096 * 2048, rel=1e-3)


def test_known_operation_counts_of_images() -> None:
    assert shapes.get("ResNet-50").forward_flops / 2 == pytest.approx(4.09e9, rel=0.005)
    dit = shapes.get("DiT-XL-2").forward_flops / 2
    assert dit == pytest.approx(118.64e9, rel=0.005)  # arXiv 2212.09748, table 4: "Gflops"


def test_a_volume_has_one_more_side() -> None:
    flat, deep = (shapes.unet(size=(8,) * d, filters=(2, 4), norm=False) for d in (2, 3))
    first_flat, first_deep = flat.layers[0], deep.layers[0]
    assert first_deep.multiplies == first_flat.multiplies * 8 * 3
    assert first_deep.parameters == 27 * 2 + 2


def test_share_of_products_that_may_be_thin() -> None:
    """Counted by hand from h = 2048, L = 24, s = 2048, V = 50257."""
    h, blocks, s, v = 2048, 24, 2048, 50_257
    thin = 24 * h * h * blocks
    share = thin / (thin + 4 * blocks * h * s + 2 * h * v)
    assert shapes.get("GPT-3-1.3B").sparsifiable_share == pytest.approx(share, rel=1e-12)


@pytest.mark.parametrize("name", ["gpt-j-6b", "GPT_J_6B", "gptj6b"])
def test_names_are_found_in_any_spelling(name: str) -> None:
    assert shapes.get(name).name == "GPT-J-6B"


def test_every_name_finds_its_own_model() -> None:
    spelled = {name: shapes.entry(name.lower().replace("-", "_")).name for name in ENTRIES}
    assert spelled == {name: model(name).name for name in ENTRIES} == {n: n for n in ENTRIES}


def test_a_shape_may_change() -> None:
    longer = shapes.get("GenSLM-250M", max_sequence_length=1024)
    assert longer.tokens == 1024
    assert longer.parameters == shapes.get("GenSLM-250M").parameters


@pytest.mark.parametrize(
    ("name", "changes", "rule"),
    [
        ("GPT-J-7B", {}, "is not in the catalogue: did you mean 'GPT-J-6B'"),
        ("of mine", {}, "is not in the catalogue: known are FC-MNIST, GPT-2-small"),
        ("config.json", {}, r"no YAML file: pass what wse.read_model\(path\).workload gives"),
        ("GPT-J-6B", {"hiden_size": 1}, "'hiden_size', which is not known: did you mean 'hidden_s"),
        (
            "GPT-J-6B",
            {"num_hidden_layers": 10**8},
            "num_hidden_layers is 100,000,000; at most 10,000",
        ),
        ("GPT-J-6B", {"hidden_size": 0}, "hidden_size is 0; it must be a positive integer"),
        ("GPT-J-6B", {"hidden_size": "big"}, "hidden_size in GPT-J-6B is 'big'; .* of type int"),
        ("GPT-J-6B", {"num_heads": 3}, "num_heads is 3; it must divide hidden_size 4096"),
        ("GPT-J-6B", {"norm": "batch"}, "norm is 'batch'; it must be one of 'layer', 'rms'"),
        ("GPT-J-6B", {"filter_size": -1}, "filter_size is -1; it must be an integer >= 0"),
        (
            "GPT-2-small",
            {"max_sequence_length": 4096, "max_position_embeddings": 1024},
            "max_sequence_length is 4096; learned positions end at 1024",
        ),
        ("U-Net", {"size": [100, 100]}, "every side must be divisible by 16"),
        ("U-Net", {"channels": 0}, "U-Net is 0; it must be a positive integer"),
        ("ResNet-50", {"size": 100}, "size is 100; it must be divisible by 32"),
        ("RetinaNet", {"size": 224}, "size is 224; it must be divisible by 128"),
        ("DiT-XL-2", {"patch_size": 3}, "patch_size is 3; it must divide latent_size 32"),
        ("FC-MNIST", {"sizes": [784]}, "it needs inputs and outputs"),
        ("FC-MNIST", {"sizes": [784, 0]}, "must be a positive integer"),
    ],
)
def test_bad_shapes_are_one_error(name: str, changes, rule: str, untyped) -> None:
    with pytest.raises(ValueError, match=rule):
        shapes.get(name, **changes)


def test_a_file_in_the_words_of_the_model_zoo(tmp_path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "model: {hidden_size: 768, num_hidden_layers: 12, num_heads: 12, vocab_size: 50257,\n"
        "  max_sequence_length: 1024, share_embedding_weights: true}\n"
    )
    assert shapes.read(path).parameters == 124_439_808
    assert shapes.read(path).name == "mine"
    assert shapes.read(path, max_sequence_length=512).tokens == 512


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("family: transformr\n", "family of mine is 'transformr': did you mean 'transformer'?"),
        (
            "model: {hidden_size: 8}\n",
            "shape of mine lacks num_hidden_layers, num_heads, .*; all must be given: add a line",
        ),
        ("modell: {}\n", "did you mean 'model'"),
        ("model: 3\n", "must hold names and values"),
        ("source: 3\n", "source in mine is 3; it must be of type str: put it in quotes"),
        ("parameters: many\n", "parameters in mine is 'many'; it must be a plain number"),
        ("family: unet\nshape: {norm: 1}\n", "shape.norm in mine is 1; it must be of type bool"),
        ("family: unet\nshape: {size: [4, x]}\n", r"shape.size\[1\] in mine is 'x'; .* type int"),
        ("family: dense\nshape: {width: 0}\n", "width is 0; it must be a positive integer"),
    ],
)
def test_a_wrong_file_is_one_clear_error(tmp_path, text: str, rule: str, untyped) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=rule):
        shapes.read(path)


def test_kernels_stay_below_their_bounds() -> None:
    mvm, solver, stencil = KERNELS
    assert mvm.bound == pytest.approx(121.7e15, rel=0.01)
    assert mvm.share == pytest.approx(0.761, abs=0.001)
    assert solver.share == pytest.approx(1 / 3, abs=0.03)  # "about a third"
    assert stencil.share < 1


def test_a_dense_net_of_the_catalogue_is_the_builder_s() -> None:
    sizes = (1000, *[32] * 8, 2)
    assert shapes.perceptron(sizes).parameters == wse.workload.dense(width=32).parameters


def test_leaving_zeros_out_pays_from_some_size_on() -> None:
    """A core with few FLOP does better multiplying zeros: COO has a fixed cost."""
    dense, sparse = shapes.PRODUCTS["GEMM"], shapes.PRODUCTS["COO"]
    even = sparse.fixed.value / (dense.per_flop.value / 0.25 - sparse.per_flop.value)
    for flops, pays in ((0.9 * even, False), (1.1 * even, True)):
        assert (sparse.cycles(flops) < dense.cycles(flops / 0.25)) is pays
