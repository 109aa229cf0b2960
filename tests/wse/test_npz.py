"""Files of arrays from anywhere: read whole, or refused in one line before memory is taken."""

import io
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wse import _npz
from wse._npz import DamagedFile, read_npz

ARRAYS = {"a": np.arange(12.0).reshape(3, 4), "b": np.array("text"), "c": np.zeros((0, 2), "i4")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("npz")


def written(**arrays) -> bytes:
    with io.BytesIO() as file:
        np.savez(file, **arrays)
        return file.getvalue()


def same(found, wanted=ARRAYS) -> bool:
    return found.keys() == wanted.keys() and all(
        np.array_equal(found[name], wanted[name]) and found[name].dtype == wanted[name].dtype
        for name in wanted
    )


def test_arrays_come_back_as_they_were_written(folder):
    path = folder / "whole.npz"
    path.write_bytes(written(**ARRAYS))
    assert same(read_npz(path))
    assert same(read_npz(path, ["b"]), {"b": ARRAYS["b"]})
    np.savez_compressed(path, **ARRAYS)
    assert same(read_npz(path))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_changed_bytes_are_refused_or_change_nothing(folder, data):
    whole = bytearray(written(**ARRAYS))
    place = data.draw(st.integers(0, len(whole) - 1))
    match data.draw(st.sampled_from(["flip", "cut", "zeros", "twice"])):
        case "flip":
            whole[place] ^= data.draw(st.integers(1, 255))
        case "cut":
            del whole[place:]
        case "zeros":
            length = len(whole[place : place + 40])
            whole[place : place + 40] = bytes(length)
        case _:
            whole[place:place] = whole[place : place + 40]
    path = folder / "changed.npz"
    path.write_bytes(whole)
    said, found = "", {}
    try:
        found = read_npz(path)
    except DamagedFile as error:
        said = str(error)
    if said:
        assert said.startswith(f"{path} cannot be read as an .npz file")
        assert "\n" not in said
        assert len(said) < 500
    # Names of arrays have no checksum.
    assert all(any(np.array_equal(x, y) for y in ARRAYS.values()) for x in found.values())


def test_objects_are_not_loaded(folder):
    path = folder / "objects.npz"
    np.savez(path, a=np.array([{}], object))
    with pytest.raises(DamagedFile, match="objects of Python, which would be executed"):
        read_npz(path)


def test_an_array_that_claims_more_than_there_is_takes_no_memory(folder):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**12, 4)}
    )
    path = folder / "claims.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", header.getvalue())
    with pytest.raises(DamagedFile, match=r"says it is float64\[1000000000000, 4\], which it is"):
        read_npz(path)


def test_a_small_file_that_grows_beyond_memory_is_refused(folder, monkeypatch):
    path = folder / "bomb.npz"
    np.savez_compressed(path, a=np.zeros(10**6))
    assert path.stat().st_size < 10**4
    monkeypatch.setattr(_npz, "free_bytes", lambda: 7_000_000)
    with pytest.raises(DamagedFile, match=r"holds 0\.0 GB, and 0\.0 GB of memory are free"):
        read_npz(path)
