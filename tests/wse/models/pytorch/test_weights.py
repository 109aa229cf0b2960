"""Weights in safetensors: read as they were written, or refused in one line."""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wse.models.pytorch.weights import KINDS, read_weights

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
    with pytest.raises(FileNotFoundError):
        read_weights(tmp_path / "absent.safetensors")


@pytest.mark.parametrize("name", ["w.pt", "w.pth", "pytorch_model.bin", "W.CKPT", "w.pkl"])
def test_a_pickle_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(ValueError, match=r"is a pickle, which may run anything, .*save_file"):
        read_weights(name)
