"""Real files of nine models and formats against readings by other libraries."""

import eccodes
import h5py
import numpy as np
import pytest
from scipy.io import netcdf_file

from sciml import wind
from sciml.wind.cf.projection import places


@pytest.fixture(scope="module")
def folder(shared):
    return shared / "data" / "wind"


def h5(path, name):
    """A variable of an HDF5 file, unpacked by hand."""
    with h5py.File(path, "r") as file:
        stored = file[name]
        scale, offset = (
            stored.attrs.get(k, d) for k, d in (("scale_factor", 1), ("add_offset", 0))
        )
        return stored[...] * np.float64(scale) + offset


def classic(path, name):
    """A variable of a classic netCDF file, unpacked by hand."""
    with netcdf_file(path, "r", mmap=False) as file:
        stored = file.variables[name]
        return stored[...] * float(stored.scale_factor) + float(stored.add_offset)


def messages(path, short):
    """All fields of a parameter as (latitudes, longitudes, values), as scanned."""
    result = []
    with path.open("rb") as stream:
        while (handle := eccodes.codes_grib_new_from_file(stream)) is not None:
            if eccodes.codes_get(handle, "shortName") == short:
                nx, ny = (eccodes.codes_get(handle, k) for k in ("Nx", "Ny"))
                result.append(
                    [
                        eccodes.codes_get_array(handle, k).reshape(ny, nx)
                        for k in ("latitudes", "longitudes", "values")
                    ]
                )
            eccodes.codes_release(handle)
    return np.array(result)


@pytest.mark.parametrize(
    ("name", "shape", "fastest"),
    [
        ("arome_subset_16Nov2015.nc", (67, 151, 81), 27.9),
        ("AROME_MetCoOp_00_DEF_20160202_subset.nc", (49, 201, 171), 20.3),
        ("AROME_MetCoOp_00_DEF_20160114_subset.nc", (3, 151, 141), None),
    ],
)
def test_metcoop(folder, name, shape, fastest):
    path = folder / "arome_metcoop_2p5km" / name
    fields = wind.open(path)
    assert fields.wind_speed.shape == shape
    if fastest:
        assert float(fields.wind_speed.max()) == pytest.approx(fastest, abs=0.05)
    np.testing.assert_allclose(fields.x_wind, h5(path, "x_wind_10m"), atol=1e-5)
    np.testing.assert_allclose(fields.latitude, h5(path, "latitude"))
    with h5py.File(path, "r") as file:
        mapped = places(
            {k: np.ravel(v)[0] for k, v in file["projection_lambert"].attrs.items()}
            | {"grid_mapping_name": "lambert_conformal_conic"},
            file["x"][...].astype(float),
            file["y"][...].astype(float),
        )
    np.testing.assert_allclose(mapped[0], fields.latitude, atol=1e-4)
    np.testing.assert_allclose(mapped[1], fields.longitude, atol=1e-4)
    assert fields.attrs["spacing_m"] == 2500
    assert fields.x_wind.attrs["height_m"] == 10
    # The angle of the map, n (λ0 − λ) with n = sin 63°, is that between x and east.
    turn = np.sin(np.radians(63)) * np.radians(15 - fields.longitude.values)
    east = fields.x_wind * np.cos(turn) - fields.y_wind * np.sin(turn)
    np.testing.assert_allclose(fields.eastward_wind, east, atol=2e-4)


@pytest.mark.slow
def test_hrrr_as_grib_and_as_netcdf(folder):
    grib = folder / "hrrr_conus_3km" / "hrrr.t06z.wrfsfcf01-UGRD.grib2"
    copy = folder / "hrrr_conus_3km" / "hrrr_u10_conus_3km_20230722T07.nc"
    one, other = wind.open(grib), wind.open(copy)
    latitude, longitude, values = messages(grib, "10u")[0]
    np.testing.assert_allclose(one.x_wind[0], values, atol=1e-5)
    np.testing.assert_allclose(one.latitude, latitude)
    np.testing.assert_allclose(other.x_wind, one.x_wind, atol=0.0011)  # packed in steps of 0.002
    np.testing.assert_allclose(other.latitude, one.latitude, atol=2e-4)
    np.testing.assert_allclose(other.longitude % 360, longitude % 360, atol=2e-4)
    assert one.attrs["spacing_m"] == other.attrs["spacing_m"] == 3000
    assert list(one.data_vars) == ["x_wind"]
    assert one.time.values[0] == other.time.values[0] == np.datetime64("2023-07-22T07")


@pytest.mark.slow
def test_arome_france(folder):
    path = folder / "arome_france_1p3km" / "arome_france_1p3km_20200131T00.nc"
    fields = wind.open(path)
    np.testing.assert_allclose(fields.x_wind, h5(path, "u10"), atol=1e-5)
    speed = np.hypot(h5(path, "u10"), h5(path, "v10"))
    np.testing.assert_allclose(fields.wind_speed, speed, atol=1e-5)
    assert float(fields.wind_speed.max()) == pytest.approx(19.5, abs=0.05)
    assert fields.attrs["spacing_m"] == pytest.approx(1300)


def packing(path, short):
    """The largest error that the packing of a parameter makes."""
    errors = []
    with path.open("rb") as stream:
        while (handle := eccodes.codes_grib_new_from_file(stream)) is not None:
            if eccodes.codes_get(handle, "shortName") == short:
                errors.append(eccodes.codes_get(handle, "packingError"))
            eccodes.codes_release(handle)
    return max(errors)


@pytest.mark.parametrize("region", ["NW", "SE"])
def test_meteonet(folder, region):
    path = folder / "meteonet_arpege_0p1deg" / f"arpege_10m_{region}.grib"
    fields = wind.open(path)
    for name, short in (
        ("eastward_wind", "10u"),
        ("y_wind", "10v"),
        ("wind_speed", "ws"),
        ("wind_from_direction", "wdir"),
    ):
        np.testing.assert_allclose(fields[name], messages(path, short)[:, 2, ::-1], atol=2e-5)
    ours = wind.speed_and_direction(fields)
    turn = np.radians(ours.wind_from_direction - fields.wind_from_direction)
    apart = 2 * np.abs(np.sin(turn / 2)) * fields.wind_speed  # as a vector; each value is packed
    step = np.radians(packing(path, "wdir")) * fields.wind_speed
    assert float((apart - step).max()) < 2 * packing(path, "10u") + 1e-4
    np.testing.assert_allclose(ours.wind_speed, fields.wind_speed, atol=0.01)
    assert fields.sizes["time"] == 25
    assert fields.x_wind.attrs["height_m"] == 10


def test_storm_joachim(folder):
    path = folder / "global_coarse" / "ecmwf_joachim_surf_20111215_0p25.grib"
    fields = wind.open(path)
    read = messages(path, "10v")
    np.testing.assert_allclose(fields.northward_wind, read[:, 2, ::-1], atol=1e-5)
    np.testing.assert_allclose(fields.latitude, read[0, 0, ::-1, 0])
    np.testing.assert_allclose(fields.longitude, -60 + 0.25 * np.arange(481))
    hours = (fields.time.values - fields.time.values[0]) / np.timedelta64(1, "h")
    assert str(fields.time.values[0])[:13] == "2011-12-16T00"
    assert hours.size == 5


def test_components_of_arpege_in_two_files(folder):
    paths = [folder / "global_coarse" / f"arpege_glob025_20191106_20m_SURFWIND.{c}.PHYS.grb"
             for c in "UV"]  # fmt: skip
    fields = wind.open(paths)
    u, v = (messages(path, short)[0, 2, ::-1] for path, short in zip(paths, "uv", strict=True))
    np.testing.assert_allclose(fields.wind_speed[0], np.hypot(u, v), atol=1e-4)
    assert fields.wind_speed.attrs["height_m"] == 20
    assert fields.sizes == {"time": 1, "y": 721, "x": 1440}


def test_era_interim_has_months_and_levels(folder):
    path = folder / "global_coarse" / "eraint_uvz.nc"
    fields = wind.open(path)
    expected = classic(path, "u")[:, :, ::-1]
    np.testing.assert_allclose(fields.eastward_wind, expected, atol=1e-4)
    np.testing.assert_array_equal(fields.month, [1, 7])
    np.testing.assert_array_equal(fields.pressure, [200, 500, 850])


def test_a_year_of_era5(folder):
    path = folder / "loaders" / "ERA5_example_data.nc"
    fields = wind.open(path)
    np.testing.assert_allclose(fields.x_wind, classic(path, "u10")[:, ::-1], atol=1e-5)
    np.testing.assert_allclose(
        wind.open(path, height_m=100.0).y_wind, classic(path, "v100")[:, ::-1], atol=1e-5
    )
    assert fields.sizes["time"] == 8760
    assert wind.check(fields).findings == ()


def test_cmip_without_leap_days_unit_or_some_values(folder):
    path = folder / "loaders" / "cmip6_uas_noleap.nc"
    with pytest.raises(ValueError, match="x_wind has 18 missing values, at changing points"):
        wind.open(path)
    fields = wind.open(path, allow_missing=True)
    np.testing.assert_allclose(fields.eastward_wind, h5(path, "uas"), atol=1e-6)
    assert fields.time.dt.calendar == "noleap"
    assert "as the CMIP data request has it" in fields.attrs["changes"]


def test_a_nest_of_wrf_that_follows_a_hurricane(folder):
    path = folder / "loaders" / "wrf_mercator_sample.nc"
    fields, aloft = wind.open(path), wind.open(path, model_level=3)
    np.testing.assert_allclose(fields.x_wind, h5(path, "U10"), atol=1e-6)
    faces = h5(path, "V")[:, 3]
    np.testing.assert_allclose(aloft.y_wind, (faces[:, 1:] + faces[:, :-1]) / 2, atol=1e-5)
    np.testing.assert_allclose(fields.grid_angle, 0, atol=1e-4)  # Mercator: x is east
    np.testing.assert_allclose(fields.eastward_wind, fields.x_wind, atol=0.01)
    assert fields.latitude.dims == ("time", "y", "x")
    assert str(fields.time.values[-1])[:13] == "2005-08-28T21"


@pytest.mark.slow
def test_wrf_on_a_lambert_grid(folder):
    path = folder / "loaders" / "wrf_2km_10x10.nc"
    faces = h5(path, "U")[:, 0]
    fields, near = wind.open(path, model_level=0), wind.open(path)
    np.testing.assert_allclose(fields.x_wind, (faces[..., 1:] + faces[..., :-1]) / 2, atol=1e-5)
    np.testing.assert_allclose(near.y_wind, h5(path, "V10"), atol=1e-6)
    np.testing.assert_allclose(near.orography, h5(path, "HGT")[0], atol=1e-3)
    # Standard parallels 30° and 60°: the cone's constant by its definition.
    a, b = np.radians([30.0, 60.0])
    half = np.log(np.tan(np.pi / 4 + b / 2) / np.tan(np.pi / 4 + a / 2))
    turn = np.log(np.cos(a) / np.cos(b)) / half * np.radians(-96.0 - near.longitude.values)
    np.testing.assert_allclose(near.grid_angle, turn, atol=1e-4)
