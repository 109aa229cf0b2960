"""What files declare of their values and their sense: heeded, said, or refused in one line."""

import numpy as np
import pytest
import xarray as xr

from sciml import wind

AXES = {
    "lat": ("lat", np.linspace(50.0, 51.0, 3), {"units": "degrees_north"}),
    "lon": ("lon", np.linspace(5.0, 7.0, 4), {"units": "degrees_east"}),
}
STEP = 0.1
PACKED = {"scale_factor": STEP, "add_offset": -3.0}


def stored(values: np.ndarray, attrs: dict, name: str = "u10", **more: tuple) -> xr.Dataset:
    """A file's content, decoded as by its reader: of a component, or of other variables."""
    fields = {name: (("lat", "lon"), values, {"units": "m s-1"} | attrs)}
    fields |= {n: (("lat", "lon"), v, a) for n, (v, a) in more.items()}
    return xr.decode_cf(xr.Dataset(fields, AXES))


def opened(content: xr.Dataset, **choice: float) -> xr.Dataset:
    return wind.conform(content, "a.nc", wind.Level(**choice))


def numbers(first: float, dtype: str) -> np.ndarray:
    values = np.arange(12).reshape(3, 4).astype(dtype) % 7
    values[0, 0] = np.array(first).astype(dtype)
    return values


@pytest.mark.filterwarnings("ignore:variable 'u10' has multiple fill values")
@pytest.mark.parametrize(
    ("first", "dtype", "attrs"),
    [
        (90, "f4", {"valid_range": np.array([-50, 50], "f4")}),
        (-90, "f4", {"valid_min": np.float32(-50)}),
        (90, "f4", {"valid_max": np.int32(50)}),
        (90, "f4", {"valid_range": "-50, 50"}),
        (99.1, "f4", {"missing_value": np.float64(99.1)}),
        (99.1, "f4", {"missing_value": "99.1"}),
        (60, "i2", PACKED | {"valid_range": np.array([0, 50], "i2")}),
        (60, "i2", PACKED | {"valid_range": np.array([-3.0, 2.0])}),
        (65, "i2", PACKED | {"missing_value": np.float32(3.5)}),
        (60, "i2", PACKED | {"missing_value": np.int16(60)}),
        (65, "i2", PACKED | {"_FillValue": np.float32(3.5)}),
        (200, "i2", PACKED | {"missing_value": "200"} | {"scale_factor": 1e-4}),
        (99.1, "f4", {"_FillValue": np.float64(99.1)}),
        (90, "f4", {"_FillValue": np.float32(90), "missing_value": np.float64(-99.1)}),
        (99.1, "f4", {"_FillValue": np.float32(-9), "missing_value": np.float64(99.1)}),
        (60, "i2", {"scale_factor": -STEP, "valid_max": np.int16(50)}),
        (250, "u1", PACKED | {"valid_range": np.array([0, 200], "u1")}),
        (-6, "i1", PACKED | {"_Unsigned": "true", "valid_range": np.array([0, -56], "i1")}),
    ],
)
def test_what_is_declared_missing_is_missing(first, dtype, attrs):
    found = opened(stored(numbers(first, dtype), attrs)).x_wind.values[0]
    missing = np.isnan(found)
    assert missing[0, 0]
    assert missing.sum() == 1


@pytest.mark.parametrize("where", ["a.nc", "a.zarr"])
def test_two_marks_are_no_warning(tmp_path, where):
    """xarray warns of them, and masks both."""
    values = numbers(99.0, "f4")[None]
    values[0, 1, 1] = -9.0
    axes = AXES | {"time": ("time", np.array(["2020-01-01"], "M8[ns]"))}
    marks = {"_FillValue": np.float32(99), "missing_value": np.float32(-9), "units": "m s-1"}
    content = xr.Dataset({"u10": (("time", "lat", "lon"), values, marks)}, axes)
    if where == "a.nc":
        content.to_netcdf(tmp_path / where, engine="h5netcdf")
    else:
        content.to_zarr(tmp_path / where, zarr_format=3, consolidated=False)
    found = wind.open(tmp_path / where, allow_missing=True)
    assert np.isnan(found.x_wind.values[0]).sum() == 2


def test_the_ends_of_a_range_belong_to_it():
    ends = PACKED | {"valid_range": np.array([0, 6], "i2")}
    found = opened(stored(numbers(6, "i2"), ends))
    assert not found.x_wind.isnull().any()
    assert "outside 0 to 6 as packed made missing" in found.attrs["changes"]


def test_a_refusal_of_what_is_missing_names_the_range():
    report = wind.check(opened(stored(numbers(90, "f4"), {"valid_max": np.float32(50)})))
    assert not report.good
    assert "u10 outside -inf to 50 made missing" in str(report)


@pytest.mark.parametrize(
    ("dtype", "attrs", "said"),
    [
        ("f4", {"valid_range": np.array([0, 1, 2], "f4")}, "two numbers"),
        ("f4", {"valid_range": np.array([5, -5], "f4")}, "5 to -5; the first must be the lower"),
        ("f4", {"valid_range": [0.0, 5.0], "valid_min": 1.0}, "valid_range and valid_min"),
        ("f4", {"valid_min": "none"}, "valid_min of u10 of a.nc is 'none'; it must be a number"),
        ("f4", {"missing_value": "n/a"}, "'n/a'; it must be a number"),
        ("i2", PACKED | {"valid_max": np.float32(50)}, "packed as int16, and it may be meant"),
        ("i2", PACKED | {"missing_value": np.float64(5)}, "is 5, .* int16, and it may be meant"),
        ("i2", PACKED | {"_FillValue": "5"}, "_FillValue of u10 of a.nc is 5"),
        ("i2", {"flag_values": np.array([0, 1], "i2")}, "categories"),
    ],
)
def test_what_makes_no_sense_is_refused(dtype, attrs, said):
    with pytest.raises(ValueError, match=said):
        opened(stored(numbers(3, dtype), attrs))


def direction(name: str, standard: str | None, long: str = "wind") -> dict:
    attrs = {"units": "degree", "long_name": long}
    attrs |= {} if standard is None else {"standard_name": standard}
    return {name: (np.full((3, 4), 90.0, "f4"), attrs)}


SPEED = {"attrs": {"standard_name": "wind_speed"}, "name": "ws"}


@pytest.mark.parametrize(
    ("field", "eastward"),
    [
        (direction("wd", "wind_from_direction"), -5.0),
        (direction("wd", "wind_to_direction"), 5.0),
        (direction("wdir", "wind_to_direction"), 5.0),
        (direction("wdir", None, "direction towards which the wind blows"), 5.0),
        (direction("wdir", None, "direction from which the wind blows"), -5.0),
        (direction("a", "wind_from_direction") | direction("b", "wind_to_direction"), -5.0),
    ],
)
def test_directions_to_and_from_are_opposite(field, eastward):
    found = opened(stored(np.full((3, 4), 5.0, "f4"), **SPEED, **field))
    assert np.allclose(found.eastward_wind, eastward)
    turned = "turned by 180" in found.attrs.get("changes", "")
    assert turned == (eastward > 0)
    assert ("b passed over" in found.attrs.get("changes", "")) == ("b" in field)


def test_a_wind_that_is_passed_over_is_named():
    most = {"cell_methods": "time: maximum", "units": "m s-1"}
    content = stored(np.full((3, 4), 5.0, "f4"), **SPEED, u10=(np.ones((3, 4)), most))
    assert "u10 passed over: its cell_methods is" in opened(content).attrs["changes"]
    with pytest.raises(ValueError, match="u10 passed over"):
        opened(content[["u10"]])
    with pytest.raises(ValueError, match="a direction without its speed"):
        opened(stored(np.ones((3, 4)), {}, **direction("wd", "wind_to_direction"))[["wd"]])


def test_winds_of_different_heights_make_no_vector():
    metres = {"units": "m s-1"}
    content = stored(np.ones((3, 4)), {}, v100=(np.ones((3, 4)), metres))
    with pytest.raises(ValueError, match="height_m=10"):
        opened(content)
    assert "y_wind" not in opened(content, height_m=10.0)


@pytest.mark.parametrize("names", [("wdir", "ws10"), ("wdir10", "ws"), ("u", "v10"), ("v", "u10")])
def test_half_a_vector_at_an_unknown_height_is_refused(names):
    """What is stated is at that height; a name may end in it, whatever comes before."""
    first, other = names
    content = stored(np.full((3, 4), 5.0, "f4"), {}, other, **direction(first, None))
    content[first].attrs["units"] = "degree" if "d" in first else "m s-1"
    with pytest.raises(ValueError, match=r"at an unknown height, .* 10 m: set .attrs"):
        opened(content)
    silent = next(name for name in names if "10" not in name)
    content[silent].attrs["height_m"] = 10.0
    assert "wind_speed" in opened(content)
    if "wdir" in names:
        known = {"wdir10": "wd10m", "wdir": "wdir"}[first]
        field = content.rename({first: known})
        field[known].attrs["standard_name"] = "wind_from_direction"
        assert "eastward_wind" in opened(field)


@pytest.mark.parametrize("choice", [{"pressure_hpa": 500.0}, {"model_level": 3}])
def test_a_level_that_a_file_does_not_have_is_refused(choice):
    with pytest.raises(ValueError, match="has one level, so none of"):
        opened(stored(np.ones((3, 4)), {}), **choice)


def test_speeds_below_zero_and_directions_that_are_none_are_refused():
    content = stored(np.full((3, 4), -5.0, "f4"), **SPEED)
    report = wind.check(opened(content))
    assert not report.good
    assert "wind_speed has values that are not" in str(report)
    field = direction("wd", "wind_from_direction")
    field["wd"][0][1, 2] = 999.0
    assert "999" in str(wind.check(opened(stored(np.ones((3, 4)), **SPEED, **field))))


@pytest.mark.parametrize("name", ["Scale_factor", "SCALE_FACTOR", "scale", "slope", "offset"])
def test_integers_that_are_scaled_under_other_names_are_refused(name):
    """Tenths of a metre per second were taken for metres per second, which looks like wind."""
    with pytest.raises(ValueError, match=f"u10 of a.nc has {name} 0.1, so that its values are pac"):
        opened(stored(numbers(30, "i2"), {name: 0.1}))
    plain = opened(stored(numbers(3, "f4"), {"scale": "linear"}))
    assert float(plain.x_wind.max()) == 6.0


def test_complex_winds_are_refused():
    with pytest.raises(TypeError, match=r"u10 of a.nc is complex; it must be real"):
        opened(stored(numbers(3, "f4") * 1j, {}))
