"""GRIB messages made here by ecCodes, and read by cfgrib where that can read them at all."""

import sys

import eccodes
import numpy as np
import pytest

from sciml import wind

LAMBERT = {
    "gridType": "lambert",
    "Nx": 6,
    "Ny": 5,
    "latitudeOfFirstGridPointInDegrees": 45.0,
    "longitudeOfFirstGridPointInDegrees": 2.0,
    "LaDInDegrees": 46.0,
    "LoVInDegrees": 8.0,
    "Latin1InDegrees": 46.0,
    "Latin2InDegrees": 46.0,
    "DxInMetres": 1000.0,
    "DyInMetres": 1000.0,
    "jScansPositively": 1,
    "uvRelativeToGrid": 1,
    "shapeOfTheEarth": 6,
}
REGULAR = {
    "gridType": "regular_ll",
    "Ni": 6,
    "Nj": 5,
    "latitudeOfFirstGridPointInDegrees": 48.0,
    "latitudeOfLastGridPointInDegrees": 44.0,
    "longitudeOfFirstGridPointInDegrees": 2.0,
    "longitudeOfLastGridPointInDegrees": 7.0,
    "iDirectionIncrementInDegrees": 1.0,
    "jDirectionIncrementInDegrees": 1.0,
}
VALUES = np.random.default_rng(0).normal(5, 3, (5, 6))


def write(path, *messages, grid=LAMBERT, edition=2):
    """Write messages of (short name, keys, values on rows and columns as scanned)."""
    with path.open("wb") as file:
        for short, keys, values in messages:
            handle = eccodes.codes_grib_new_from_samples(f"GRIB{edition}")
            for key, value in (grid | {"dataDate": 20200131, "dataTime": 600}).items():
                eccodes.codes_set(handle, key, value)
            eccodes.codes_set(handle, "shortName", short)
            for key, value in keys.items():
                eccodes.codes_set(handle, key, value)
            eccodes.codes_set(handle, "bitsPerValue", 24)
            eccodes.codes_set_values(handle, np.asarray(values, float).ravel())
            eccodes.codes_write(handle, file)
            eccodes.codes_release(handle)
    return path


def test_components_along_the_grid_are_turned_to_east_and_north(tmp_path):
    path = write(tmp_path / "a.grib2", ("10u", {}, VALUES), ("10v", {}, VALUES + 1))
    fields = wind.open(path)
    np.testing.assert_allclose(fields.x_wind[0], VALUES, atol=1e-5)
    # On a conical map the x axis is n (λ − λ0) from east, by the definition of the projection.
    turn = -np.sin(np.radians(46)) * np.radians(fields.longitude.values - 8.0)
    east = VALUES * np.cos(turn) - (VALUES + 1) * np.sin(turn)
    np.testing.assert_allclose(fields.eastward_wind[0], east, atol=2e-5)
    assert fields.attrs["spacing_m"] == 1000
    assert (np.diff(fields.latitude.values, axis=0) > 0).all()
    assert str(fields.time.values[0])[:13] == "2020-01-31T06"


def test_the_zone_of_zeros_is_cut_off(tmp_path):
    padded = np.zeros((5, 6))
    padded[:3, :4] = VALUES[:3, :4]
    fields = wind.open(write(tmp_path / "a.grib2", ("10u", {}, padded), ("10v", {}, padded)))
    np.testing.assert_allclose(fields.x_wind[0], VALUES[:3, :4], atol=1e-5)
    assert "zone of zeros cut off along y: 0 first, 2 last" in fields.attrs["changes"]


def test_rows_that_come_north_first_are_turned(tmp_path):
    path = write(tmp_path / "a.grib2", ("10u", {}, VALUES), ("10v", {}, VALUES), grid=REGULAR)
    fields = wind.open(path)
    np.testing.assert_allclose(fields.eastward_wind[0], VALUES[::-1], atol=1e-5)
    np.testing.assert_allclose(fields.latitude, [44, 45, 46, 47, 48])
    assert "so that latitude ascends" in fields.attrs["changes"]


@pytest.mark.parametrize("edition", [1, 2])
def test_several_heights_and_other_fields_stand_in_one_file(tmp_path, edition):
    near_ground = {"typeOfLevel": "surface", "level": 0} if edition == 1 else {}
    up = {"typeOfLevel": "heightAboveGround", "level": 80}
    messages = [
        ("10u", near_ground, VALUES),
        ("10v", near_ground, VALUES + 1),
        ("u", up, VALUES + 2),
        ("v", up, VALUES + 3),
        ("2t", {}, VALUES + 280),
    ]
    path = write(tmp_path / "a.grib", *messages, grid=REGULAR, edition=edition)
    near, aloft = wind.open(path), wind.open(path, height_m=80.0)
    np.testing.assert_allclose(near.y_wind[0], VALUES[::-1] + 1, atol=1e-5)
    np.testing.assert_allclose(aloft.y_wind[0], VALUES[::-1] + 3, atol=1e-5)
    assert "10 m taken of the heights 10, 80 m" in near.attrs["changes"]


def test_points_without_a_value_are_missing(tmp_path):
    holed = VALUES.copy()
    holed[1, 2] = 9999.0
    keys = {"bitmapPresent": 1, "missingValue": 9999.0}
    path = write(tmp_path / "a.grib2", ("10u", keys, holed), ("10v", keys, holed))
    with pytest.raises(ValueError, match="x_wind has 1 missing values, always at the same points"):
        wind.open(path)
    fields = wind.open(path, allow_missing=True)
    assert np.argwhere(np.isnan(fields.x_wind[0].values)).tolist() == [[1, 2]]


def test_a_file_that_ends_inside_a_message_is_refused(tmp_path):
    path = write(tmp_path / "a.grib2", ("10u", {}, VALUES), ("10v", {}, VALUES))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match=r"a\.grib2 ends inside"):
        wind.open(path)


def test_two_grids_and_no_wind_are_refused(tmp_path):
    one = write(tmp_path / "a.grib2", ("10u", {}, VALUES))
    two = write(tmp_path / "b.grib2", ("10v", {}, VALUES), grid=LAMBERT | {"LoVInDegrees": 9.0})
    other = tmp_path / "c.grib2"
    moved = write(tmp_path / "d.grib2", ("10v", {}, VALUES), grid=REGULAR)
    other.write_bytes(one.read_bytes() + moved.read_bytes())
    with pytest.raises(ValueError, match="holds 2 grids"):
        wind.open(other)
    with pytest.raises(ValueError, match="must have the same"):
        wind.open([one, two])
    with pytest.raises(ValueError, match="holds no wind"):
        wind.open(write(tmp_path / "e.grib2", ("2t", {}, VALUES)))


def test_without_eccodes_the_remedy_is_named(tmp_path, monkeypatch):
    path = write(tmp_path / "a.grib2", ("10u", {}, VALUES))
    monkeypatch.setattr(sys.modules["sciml.wind.read.formats"], "find_spec", lambda _: None)
    with pytest.raises(ImportError, match="pip install eccodes"):
        wind.open(path)


def test_no_index_is_left_beside_the_file(tmp_path):
    wind.open(write(tmp_path / "a.grib2", ("10u", {}, VALUES), ("10v", {}, VALUES)))
    assert [path.name for path in tmp_path.iterdir()] == ["a.grib2"]


def test_cfgrib_finds_the_same(tmp_path):
    cfgrib = pytest.importorskip("cfgrib")
    path = write(tmp_path / "a.grib2", ("10u", {}, VALUES), ("10v", {}, VALUES))
    other = cfgrib.open_dataset(str(path), indexpath="")
    ours = wind.open(path)
    np.testing.assert_allclose(ours.x_wind[0], other.u10, atol=1e-6)
    np.testing.assert_allclose(ours.latitude, other.latitude, atol=1e-9)
