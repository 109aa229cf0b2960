import h5netcdf
import numpy as np
import pytest
import xarray as xr

from sciml import wind
from sciml.wind.reader import wind as checked

AXES = ("time", "y", "x")


def sample(**changes):
    rng = np.random.default_rng(0)
    parts = {
        f"{axis}_wind_10m": xr.DataArray(
            rng.normal(5, 3, (2, 3, 4)).astype("float32"),
            dims=AXES,
            attrs={"standard_name": f"{axis}_wind", "units": "m/s"},
        )
        for axis in "xy"
    }
    return xr.Dataset(parts | changes, coords={"y": [0.0, 2500.0, 5000.0]})


def test_a_file_gives_speed_and_components(tmp_path):
    sample().to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    fields = wind.open(tmp_path / "a.nc")
    assert {name: v.attrs["units"] for name, v in fields.items()} == dict.fromkeys(
        ["wind_speed", "x_wind", "y_wind"], "m/s"
    )
    assert fields.wind_speed.dims == AXES
    np.testing.assert_allclose(fields.wind_speed**2, fields.x_wind**2 + fields.y_wind**2, rtol=1e-5)


def test_axes_in_another_order_are_put_right():
    fields = checked(sample().transpose("x", "time", "y"))
    assert fields.x_wind.dims == AXES


def with_attribute(name, value):
    dataset = sample()
    dataset["x_wind_10m"].attrs[name] = value
    return dataset


def with_value(value):
    dataset = sample()
    dataset["y_wind_10m"][1, 2, 3] = value
    return dataset


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        (
            sample().drop_vars("y_wind_10m"),
            "has 0 variables with standard_name 'y_wind' among x_wind",
        ),
        (sample(other=sample().x_wind_10m), "has 2 variables with standard_name 'x_wind'"),
        (
            with_attribute("units", "knots"),
            "the unit of x_wind_10m of .* is 'knots'; it must be 'm/s'",
        ),
        (with_attribute("units", None), "the unit of x_wind_10m of .* is None"),
        (
            with_value(np.nan),
            r"1 values that are not finite, the first at .*'time': 1, 'y': 2, 'x': 3",
        ),
        (with_value(np.inf), "1 values that are not finite"),
        (sample().expand_dims("height"), "has axes .*; they must be"),
        (xr.Dataset(), "among none"),
    ],
)
def test_bad_content_is_refused(dataset, message):
    with pytest.raises(ValueError, match=message):
        checked(dataset)


def test_bad_files_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not a file"):
        wind.open(tmp_path / "absent.nc")
    (tmp_path / "text.nc").write_text("not netCDF")
    with pytest.raises(ValueError, match="cannot be read as netCDF-4"):
        wind.open(tmp_path / "text.nc")
    sample().to_netcdf(tmp_path / "cut.nc", engine="h5netcdf")
    whole = (tmp_path / "cut.nc").read_bytes()
    (tmp_path / "cut.nc").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="cannot be read as netCDF-4"):
        wind.open(tmp_path / "cut.nc")


@pytest.mark.parametrize(
    ("name", "shape", "fastest"),
    [
        ("arome_subset_16Nov2015.nc", (67, 151, 81), 27.9),
        ("AROME_MetCoOp_00_DEF_20160202_subset.nc", (49, 201, 171), 20.3),
        ("AROME_MetCoOp_00_DEF_20160114_subset.nc", (3, 151, 141), None),
    ],
)
def test_real_files_open_with_the_values_that_another_reader_finds(shared, name, shape, fastest):
    path = shared / "data" / "wind" / "arome_metcoop_2p5km" / name
    fields = wind.open(path)
    assert fields.wind_speed.shape == shape
    if fastest:
        assert float(fields.wind_speed.max()) == pytest.approx(fastest, abs=0.05)
    with h5netcdf.File(path, "r") as raw:
        packed = raw.variables["x_wind_10m"]
        scale = packed.attrs.get("scale_factor", 1.0)
        values = packed[:] * scale + packed.attrs.get("add_offset", 0.0)
        np.testing.assert_allclose(fields.x_wind, values, atol=1e-5)
    assert float(fields.x[1] - fields.x[0]) == 2500
