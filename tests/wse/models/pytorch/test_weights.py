"""Weights in safetensors: read as they were written, or refused in one line."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from wse.cli.main import app
from wse.graph.outline import paths
from wse.job import Job, read
from wse.models.pytorch.weights import KINDS, into, read_weights

CODES = {np.dtype(kind): name for name, kind in KINDS.items()}


def written(path: Path, arrays, order=None, **changes) -> Path:
    """Write a file as the format's page says; `changes` are made to the header."""
    header, blocks, at = {"__metadata__": {"format": "pt"}}, [], 0
    for name in order or arrays:
        array = np.ascontiguousarray(arrays[name])
        block = array.tobytes()
        entry = {"dtype": CODES[array.dtype], "shape": list(array.shape)}
        header[name] = entry | {"data_offsets": [at, at + len(block)]}
        blocks.append(block)
        at += len(block)
    for name, entry in changes.items():
        header[name] = header.get(name, {}) | entry
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(blocks))
    return path


ARRAYS = {
    "a.weight": np.arange(6, dtype="f4").reshape(2, 3),
    "half": np.array([1, 2.5], jnp.bfloat16),
    "none": np.empty((0, 3), "f8"),
    "one": np.array(7, "i8"),
}


@settings(deadline=None)
@given(st.permutations(list(ARRAYS)), st.sampled_from(list(KINDS)))
def test_what_was_written_is_read(tmp_path_factory, order, kind: str) -> None:
    path = tmp_path_factory.mktemp("weights") / "w.safetensors"
    arrays = ARRAYS | {"kind": np.array([0, 1, 1], KINDS[kind])}
    found = read_weights(written(path, arrays, [*order, "kind"]))
    assert set(found) == set(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"half": {"data_offsets": [0, 4]}}, "lies at 0 to 24"),
        ({"half": {"data_offsets": [24, 29]}}, "lies at 24 to 29"),
        ({"half": {"data_offsets": "all"}}, "has data_offsets 'all'"),
        ({"half": {"shape": [-2]}}, r"has the shape \[-2\]"),
        ({"half": {"shape": [2**40]}}, "lies at 24 to 28"),
        ({"half": {"dtype": "F8_E4M3"}}, "is of 'F8_E4M3'; known are"),
        ({"more": {"dtype": "F32", "shape": [9], "data_offsets": [36, 72]}}, "it is cut"),
    ],
)
def test_a_header_that_contradicts_itself_is_one_line(tmp_path: Path, change, rule: str) -> None:
    path = written(tmp_path / "w.safetensors", ARRAYS, **change)
    with pytest.raises(ValueError, match=rule) as found:
        read_weights(path)
    assert "\n" not in str(found.value)


def test_bytes_that_are_cut_or_foreign_are_refused(tmp_path: Path) -> None:
    whole = written(tmp_path / "w.safetensors", ARRAYS).read_bytes()
    for i, text in enumerate(
        [b"", whole[:5], whole[:40], whole[:-1], whole + b"x", b"\xff" * 64, b"PK\x03\x04" + whole]
    ):
        path = tmp_path / f"{i}.safetensors"
        path.write_bytes(text)
        with pytest.raises(ValueError, match="no safetensors file, or is damaged"):
            read_weights(path)
    for name in ("none.safetensors", "."):
        with pytest.raises(FileNotFoundError, match="is no file; it must be of safetensors"):
            read_weights(tmp_path / name)


@pytest.mark.parametrize("name", ["w.pt", "w.pth", "pytorch_model.bin", "W.CKPT", "w.pkl"])
def test_a_pickle_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(ValueError, match=r"is a pickle, which may run anything, .*save_file"):
        read_weights(name)


TREE = {
    "blocks": [{"w": np.zeros((2, 3), "f4")}, {"w": np.zeros((2, 3), "f4")}],
    "b": np.ones(3, "f4"),
}
NAMED = dict(zip(paths(TREE), jax.tree.leaves(TREE), strict=True))
FULL = {name: np.full(x.shape, i, "f4") for i, (name, x) in enumerate(NAMED.items())}


@settings(deadline=None)
@given(st.permutations(list(FULL)))
def test_a_tree_takes_weights_by_name_in_any_order(order) -> None:
    made = into(TREE, {name: FULL[name] for name in order}, "w.safetensors")
    assert jax.tree.structure(made) == jax.tree.structure(TREE)
    for name, leaf in zip(paths(made), jax.tree.leaves(made), strict=True):
        np.testing.assert_array_equal(leaf, FULL[name])


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"blocks.2.w": FULL["b"]}, "w has 'blocks.2.w', which the model has not; .*'blocks.*.w'"),
        ({"blocks.0.weight": FULL["b"]}, "a name of PyTorch's; .* 'b', and its matrices are"),
        ({"1.running_var": FULL["b"]}, "has '1.running_var', a name of PyTorch's; .*: rename"),
        ({"b": None}, "w lacks 'b' and 0 more of 3"),
        ({"blocks.0.w": FULL["blocks.0.w"].T}, r"'blocks.0.w' of \(3, 2\); .* its transpose"),
        ({"b": np.zeros(4, "f4")}, r"'b' of \(4,\); the model has \(3,\), .* build the model so"),
        ({"b": np.zeros(3, "i4")}, "'b' of int32, with numbers that are no weights"),
        ({"b": np.full(3, np.nan, "f4")}, "'b' of float32, with numbers that are no weights"),
    ],
)
def test_weights_that_are_not_of_a_tree_are_refused_by_name(change, rule: str) -> None:
    given = {name: x for name, x in {**FULL, **change}.items() if x is not None}
    with pytest.raises(ValueError, match=rule) as found:
        into(TREE, given, "w")
    assert "\n" not in str(found.value)


MODELS = {
    "own": "model: {hidden_sizes: [4], loss: mse}",
    "by name": "model: {name: GPT-2-small, vocab_size: 256, hidden_size: 8, num_hidden_layers: 2, "
    "num_heads: 2, max_sequence_length: 8}",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
def test_a_run_starts_from_weights_and_goes_on_from_its_own(tmp_path: Path, kind: str) -> None:
    draw = np.random.default_rng(0)
    data = tmp_path / "data.npz"
    np.savez(data, features=draw.normal(size=(16, 3)), labels=draw.normal(size=(16, 2)))
    place = "package:python-topics" if kind == "by name" else data
    (tmp_path / "p.yaml").write_text(
        f"{MODELS[kind]}\noptimizer: {{optimizer_type: SGD, learning_rate: 0.1}}\n"
        f"train_input: {{data_dir: '{place}', batch_size: 4}}\n"
        f"runconfig: {{max_steps: 1, model_dir: '{tmp_path / 'run'}'}}\n"
    )
    said = read(tmp_path / "p.yaml")
    first = Job(said).built.params
    moved = [np.asarray(x) + draw.normal(size=x.shape).astype("f4") for x in jax.tree.leaves(first)]
    path = written(tmp_path / "w.safetensors", dict(zip(paths(first), moved, strict=True)))
    made = Job(said, weights=path)
    for here, there in zip(jax.tree.leaves(made.built.params), moved, strict=True):
        np.testing.assert_array_equal(here, there)
    gradient = jax.grad(made.built.loss)(made.built.params, made.batch(0))
    command = ["run", "CSX", "--params", str(tmp_path / "p.yaml"), "--weights", str(path)]
    run = CliRunner()
    assert run.invoke(app, command).exit_code == 0
    trained = made.executor.init(made.built.params)
    assert trained.step == 1
    for here, there, change in zip(
        *map(jax.tree.leaves, (trained.params, made.built.params, gradient)), strict=True
    ):
        np.testing.assert_allclose(here, there - 0.1 * change, rtol=1e-4, atol=1e-5)
    again = run.invoke(app, [*command, "--num_steps", "2"])  # from its own step, not the file
    assert again.exit_code == 0
    assert Job(said).executor.init(first).step == 2
    refused = run.invoke(app, [*command, "--validate_only"])
    assert refused.exit_code == 2
    assert "nothing is trained here: leave it out" in refused.stderr
