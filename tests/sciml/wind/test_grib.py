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


@pytest.mark.parametrize("edition", [1, 2])
def test_means_over_time_say_so(tmp_path, edition):
    """They passed for the wind of one moment, and those of edition 2 for no wind."""
    over = {"productDefinitionTemplateNumber": 8} if edition == 2 else {}
    over |= {"stepType": "avg", "stepRange": "0-3"}
    means = [(short, over, VALUES) for short in ("10u", "10v")]
    path = write(tmp_path / "a.grib", *means, grid=REGULAR, edition=edition)
    assert wind.open(path).x_wind.attrs["cell_methods"] == "time: mean"
    moments = [(short, {}, VALUES + 1) for short in ("10u", "10v")]
    path = write(tmp_path / "b.grib", *means, *moments, grid=REGULAR, edition=edition)
    found = wind.open(path)
    assert "cell_methods" not in found.x_wind.attrs
    np.testing.assert_allclose(found.x_wind[0], VALUES[::-1] + 1, atol=1e-5)
    assert "2 means over time left out" in found.attrs["changes"]


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


def sections(content):
    """Return where the sections after the first of a message of edition 2 begin."""
    places, at = {}, 16
    while content[at : at + 4] != b"7777":
        places[content[at + 4]] = at
        at += int.from_bytes(content[at : at + 4])
    return places


@pytest.mark.parametrize("number", [1, 3, 4, 5, 6, 7])
@pytest.mark.parametrize(
    ("at", "new", "said"),
    [
        (0, bytes(4), "says to be 0 bytes long"),
        (0, b"\xff\xff\xff\xff", "says to be 4294967295 bytes long"),
        (4, b"\x09", "section 9 at byte"),
        (4, b"\x08", "section 8 at byte"),
    ],
)
def test_sections_that_contradict_each_other_are_refused(tmp_path, number, at, new, said):
    """ECCodes ends the process on some of these, by memory that is freed twice."""
    path = write(tmp_path / "a.grib2", ("10u", {}, VALUES), ("10v", {}, VALUES))
    content = bytearray(path.read_bytes())
    place = sections(content)[number] + at
    content[place : place + len(new)] = new
    path.write_bytes(content)
    with pytest.raises(
        ValueError, match=rf"a\.grib2 is damaged in the message at byte 0: .*{said}"
    ):
        wind.open(path)


GAUSSIAN = REGULAR | {"gridType": "regular_gg", "N": 16, "Nj": 32, "Ni": 6}
GAUSSIAN.pop("jDirectionIncrementInDegrees")
ENDS = {"First": 85.761, "Last": -85.761}
GAUSSIAN |= {f"latitudeOf{end}GridPointInDegrees": y for end, y in ENDS.items()}


@pytest.mark.parametrize(
    "keys", [{"N": 12}, {"N": 0}, {"N": 30000}, {"latitudeOfFirstGridPointInDegrees": 4200.0}]
)
def test_gaussian_grids_that_cannot_be_are_refused(tmp_path, keys):
    """ECCodes ends the process on some, and looks for 30,000 latitudes for minutes."""
    values = np.resize(VALUES, (32, 6))
    path = write(tmp_path / "a.grib2", ("10u", {}, values), ("10v", {}, values), grid=GAUSSIAN)
    assert wind.open(path).eastward_wind.shape == (1, 32, 6)
    content = bytearray(path.read_bytes())
    at, second = 0, content.index(b"7777") + 4
    for start in (0, second):
        third = start + sections(content[start:])[3]
        for key, value in keys.items():
            at, new = (67, value) if key == "N" else (46, int(value * 10**6))
            content[third + at : third + at + 4] = new.to_bytes(4)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"is on a Gaussian grid that cannot be: .* lines"):
        wind.open(path)


@pytest.mark.parametrize("unit", [9, 17, 60, 254])
def test_steps_in_a_unit_of_no_table_have_no_date(tmp_path, unit):
    """ECCodes divides by zero on some, and counts days for hours on others."""
    path = write(tmp_path / "a.grib2", ("10u", {}, VALUES), ("10v", {}, VALUES))
    content = bytearray(path.read_bytes())
    for start in (0, content.index(b"7777") + 4):
        fourth = start + sections(content[start:])[4]
        content[fourth + 17] = unit
        content[fourth + 18 : fourth + 22] = (7).to_bytes(4)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.grib2.*(time|date)"):
        wind.open(path)


def test_fields_of_one_message_are_those_of_many(tmp_path):
    """Products, packings and bitmaps repeat in it; a bitmap may stand for the next field too."""
    keys = {"bitmapPresent": 1, "missingValue": 9999.0}
    holed = [np.where(VALUES < 4, 9999.0, VALUES + i) for i in range(2)]
    many = write(tmp_path / "b.grib2", ("10u", keys, holed[0]), ("10v", keys, holed[1]))
    content = many.read_bytes()
    second = content[int.from_bytes(content[8:16]) :]
    places = sections(second)
    same = bytes([0, 0, 0, 6, 6, 254])  # the bitmap of the field before
    again = second[places[4] : places[6]] + same + second[places[7] : -4]
    first = content[16 : len(content) - len(second) - 4]
    body = first + again + b"7777"
    path = tmp_path / "a.grib2"
    path.write_bytes(b"line of a bulletin\n" + content[:8] + (16 + len(body)).to_bytes(8) + body)
    one, other = (wind.open(p, allow_missing=True) for p in (path, many))
    assert np.isnan(one.y_wind.values).any()
    for name in ("x_wind", "y_wind"):
        np.testing.assert_array_equal(one[name], other[name])


def test_fields_with_and_without_a_member_are_not_mixed(tmp_path):
    """One source numbers its members from 0 on, here in edition 1, and another has none."""
    near_ground = {"typeOfLevel": "surface", "level": 0, "dataTime": 1200}
    old = write(
        tmp_path / "a", ("10u", near_ground, VALUES), ("10v", near_ground, VALUES), edition=1,
        grid=REGULAR,
    )  # fmt: skip
    new = write(tmp_path / "b", ("10u", {}, VALUES + 1), ("10v", {}, VALUES + 1), grid=REGULAR)
    path = tmp_path / "both.grib"
    path.write_bytes(old.read_bytes() + new.read_bytes())
    with pytest.raises(
        ValueError, match="1 messages of eastward_wind without a member and 1 of member 0"
    ):
        wind.open(path)
    found = wind.open(path, member=0)
    np.testing.assert_allclose(found.eastward_wind[0], VALUES[::-1], atol=1e-5)


@pytest.mark.slow
def test_a_large_message_of_edition_1_is_read(tmp_path):
    """One of more than 8 MiB counts its length in steps of 120 bytes."""
    grid = REGULAR | {"Ni": 2000, "Nj": 1500, "longitudeOfLastGridPointInDegrees": 21.99}
    grid |= {"iDirectionIncrementInDegrees": 0.01, "latitudeOfLastGridPointInDegrees": 33.01}
    grid |= {"jDirectionIncrementInDegrees": 0.01}
    values = np.random.default_rng(0).normal(5, 3, (1500, 2000)).astype("f4")
    near_ground = {"typeOfLevel": "surface", "level": 0}
    messages = [("10u", near_ground, values), ("10v", near_ground, values + 1)]
    path = write(tmp_path / "a.grib", *messages, grid=grid, edition=1)
    assert path.stat().st_size > 2**24
    found = wind.open(path)
    np.testing.assert_allclose(found.y_wind[0], values[::-1] + 1, atol=1e-4)


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
