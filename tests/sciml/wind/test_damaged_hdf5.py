"""HDF5 files from which the library does not come back are refused, in another process."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import xarray as xr

from sciml import wind
from sciml.wind.read import probe


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """A process of each test's own, that is soon given up."""
    monkeypatch.setattr(probe, "LIMIT_S", 0.2)
    monkeypatch.setattr(probe, "_running", {})


def written(path):
    """A file of wind."""
    degrees = {"latitude": 50 + np.arange(5) / 10, "longitude": 4 + np.arange(6) / 10}
    coords = {
        n: (n, x, {"units": f"degrees_{w}"})
        for (n, x), w in zip(degrees.items(), ("north", "east"), strict=True)
    }
    coords["time"] = np.datetime64("2020-01-01", "ns") + np.arange(2) * np.timedelta64(1, "h")
    draw = np.random.default_rng(0)
    fields = {
        n: (("time", "latitude", "longitude"), draw.normal(size=(2, 5, 6)), {"units": "m s-1"})
        for n in ("u10", "v10")
    }
    xr.Dataset(fields, coords).to_netcdf(path, engine="h5netcdf")
    return path


def circular(path):
    """The same with a free place of no size in its heap, which HDF5 1.14 follows for ever."""
    made = bytearray(written(path).read_bytes())
    first = made.index(b"GCOL") + 16
    made[first : first + 16] = bytes(16)
    path.write_bytes(made)
    return path


def test_an_endless_file_is_refused_and_the_next_one_read(tmp_path):
    whole, endless = written(tmp_path / "whole.nc"), circular(tmp_path / "endless.nc")
    with pytest.raises(ValueError, match=r"endless\.nc cannot be read as HDF5.*fetch it again"):
        wind.open(endless)
    assert wind.open(whole).sizes["time"] == 2


def test_threads_get_the_answer_to_their_own_file(tmp_path):
    paths = [written(tmp_path / f"{i}.nc") for i in range(3)] + [circular(tmp_path / "bad.nc")]

    def refused(path):
        try:
            probe.refuse_endless(path)
        except ValueError as error:
            return str(path) in str(error)
        return False

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(refused, paths))
    assert found == [False, False, False, True]


def test_where_no_process_starts_files_are_read_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", os.fspath(tmp_path / "none"))
    assert wind.open(written(tmp_path / "a.nc")).sizes["time"] == 2
