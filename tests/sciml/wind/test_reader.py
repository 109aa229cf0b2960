"""Every format and every oddity of a file, on files of a few points made here."""

import h5netcdf
import numpy as np
import pytest
import xarray as xr

from sciml import wind

AXES = ("time", "y", "x")
RNG = np.random.default_rng(0)


def sample(names=("x_wind", "y_wind"), units="m/s", **coords):
    rng = np.random.default_rng(0)
    parts = {
        f"{name}_10m": xr.DataArray(
            rng.normal(5, 3, (2, 3, 4)).astype("float32"),
            dims=AXES,
            attrs={"standard_name": name, "units": units},
        )
        for name in names
    }
    time = np.array(["2020-01-01T00", "2020-01-01T01"], "datetime64[ns]")
    axes = {"time": time, "y": [0.0, 2500.0, 5000.0], "x": 2500.0 * np.arange(4)}
    return xr.Dataset(parts, coords=axes | coords)


def checked(stored):
    winds = wind.conform(stored, "the dataset")
    wind.check(winds).refuse()
    return winds


def regular(names=("u10", "v10"), latitudes=(52.0, 51.0, 50.0), **changes):
    """What a reanalysis looks like: north first, names of its own, no standard names."""
    values = {name: RNG.normal(5, 3, (2, 3, 4)).astype("float32") for name in names}
    return xr.Dataset(
        {n: (("time", "latitude", "longitude"), v, {"units": "m s**-1"}) for n, v in values.items()}
        | changes,
        coords={
            "time": np.array(["2020-01-01T00", "2020-01-01T01"], "datetime64[ns]"),
            "latitude": ("latitude", np.array(latitudes), {"units": "degrees_north"}),
            "longitude": ("longitude", 10.0 + np.arange(4), {"units": "degrees_east"}),
        },
    )


def test_a_file_gives_speed_and_components(tmp_path):
    sample().to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    fields = wind.open(tmp_path / "a.nc")
    assert {name: v.attrs["units"] for name, v in fields.items()} == dict.fromkeys(
        ["wind_speed", "x_wind", "y_wind"], "m s-1"
    )
    assert fields.wind_speed.dims == AXES
    assert fields.attrs["spacing_m"] == 2500
    assert fields.x_wind.attrs["height_m"] == 10
    np.testing.assert_allclose(fields.wind_speed**2, fields.x_wind**2 + fields.y_wind**2, rtol=1e-5)


@pytest.mark.parametrize("form", ["h5netcdf", "scipy", "zarr 2", "zarr 3"])
def test_every_container_gives_the_same_wind(tmp_path, form):
    path = tmp_path / "wind"
    if form.startswith("zarr"):
        sample().to_zarr(path, zarr_format=int(form[-1]), consolidated=False)
    else:
        sample().to_netcdf(path, engine=form)
    assert_same(wind.open(path), checked(sample()))


def assert_same(one, other):
    """The same values, coordinates and units; provenance may differ."""
    assert list(one.data_vars) == list(other.data_vars)
    for name in one.data_vars:
        np.testing.assert_array_equal(one[name].values, other[name].values)
        assert one[name].attrs == other[name].attrs
    for name in other.coords:
        np.testing.assert_array_equal(one[name].values, other[name].values)


def test_lazily_nothing_is_read_and_the_values_are_the_same(tmp_path):
    sample().chunk(time=1).to_zarr(tmp_path / "a", consolidated=False)
    lazy = wind.open(tmp_path / "a", lazy=True)
    assert lazy.wind_speed.chunks[0] == (1, 1)
    assert_same(lazy, wind.open(tmp_path / "a"))


def test_axes_in_another_order_are_put_right():
    fields = checked(sample().transpose("x", "time", "y"))
    assert fields.x_wind.dims == AXES


def test_packed_integers_are_unpacked(tmp_path):
    packing = {"dtype": "int16", "scale_factor": 0.002, "_FillValue": -32768}
    encoding = {name: packing for name in sample().data_vars}
    sample().to_netcdf(tmp_path / "a.nc", engine="h5netcdf", encoding=encoding)
    fields = wind.open(tmp_path / "a.nc")
    np.testing.assert_allclose(fields.x_wind, sample().x_wind_10m, atol=0.0011)
    with h5netcdf.File(tmp_path / "a.nc") as raw:
        assert raw.variables["x_wind_10m"].dtype == np.int16


@pytest.mark.parametrize(
    ("unit", "factor"),
    [("knots", 0.5144444444), ("km/h", 1 / 3.6), ("cm s-1", 0.01), ("m s**-1", 1.0)],
)
def test_units_are_converted_and_it_is_said(unit, factor):
    fields = checked(sample(units=unit))
    np.testing.assert_allclose(fields.x_wind, sample().x_wind_10m * factor, rtol=1e-6)
    assert ("converted from" in fields.attrs.get("changes", "")) == (factor != 1)


def test_a_latitude_longitude_grid_upside_down_is_turned_and_it_is_said():
    stored = regular()
    fields = checked(stored)
    assert "so that latitude ascends" in fields.attrs["changes"]
    assert all(v.attrs["standard_name"] == name for name, v in fields.data_vars.items())
    assert_same(checked(fields), fields)  # what was read once is read again as it is
    np.testing.assert_array_equal(fields.latitude, [50, 51, 52])
    assert fields.latitude.dims == ("y",)
    np.testing.assert_array_equal(fields.eastward_wind, stored.u10.values[:, ::-1])
    np.testing.assert_array_equal(fields.y_wind, stored.v10.values[:, ::-1])
    assert fields.attrs["spacing_y_m"] == pytest.approx(111_200, rel=1e-3)
    assert fields.attrs["spacing_x_m"] == pytest.approx(
        111_200 * np.cos(np.radians(50.5)), rel=0.02
    )


def test_longitudes_are_continued_across_greenwich():
    stored = regular()
    stored["longitude"] = ("longitude", [358.0, 359.0, 0.0, 1.0], {"units": "degrees_east"})
    np.testing.assert_array_equal(checked(stored).longitude, [358, 359, 360, 361])


def curvilinear(names):
    """A grid whose x axis points to the north-east, 45° from east, at the equator."""
    along, across = np.meshgrid(np.arange(4) * 0.01, np.arange(3) * 0.01)
    dims, turn = ("y", "x"), np.sqrt(0.5)
    where = {
        "latitude": (dims, turn * (along + across), {"units": "degrees_north"}),
        "longitude": (dims, turn * (along - across), {"units": "degrees_east"}),
    }
    return sample(names).assign_coords(where)


def test_grid_components_are_turned_to_east_and_north_and_back():
    stored = curvilinear(("x_wind", "y_wind"))
    fields = checked(stored)
    x, y = stored.x_wind_10m.values, stored.y_wind_10m.values
    np.testing.assert_allclose(fields.eastward_wind, np.sqrt(0.5) * (x - y), atol=1e-4)
    np.testing.assert_allclose(fields.northward_wind, np.sqrt(0.5) * (x + y), atol=1e-4)
    np.testing.assert_allclose(fields.grid_angle, np.pi / 4, atol=1e-5)
    earth = curvilinear(("eastward_wind", "northward_wind"))
    back = checked(earth)
    u, v = earth.eastward_wind_10m.values, earth.northward_wind_10m.values
    np.testing.assert_allclose(back.x_wind, np.sqrt(0.5) * (u + v), atol=1e-4)
    np.testing.assert_allclose(back.wind_speed, np.hypot(u, v), rtol=1e-5)


def test_the_angle_of_a_lambert_grid_is_its_convergence():
    """On a conical map of constant n the x axis is n (λ − λ0) from east."""
    mapping = {
        "grid_mapping_name": "lambert_conformal_conic",
        "standard_parallel": 63.0,
        "latitude_of_projection_origin": 63.0,
        "longitude_of_central_meridian": 15.0,
        "earth_radius": 6371000.0,
    }
    stored = sample().assign(crs=xr.DataArray(0, attrs=mapping))
    fields = checked(stored)
    convergence = np.sin(np.radians(63)) * np.radians(fields.longitude - 15)
    np.testing.assert_allclose(fields.grid_angle, -convergence, atol=1e-6)
    assert float(fields.latitude[0, 0]) == pytest.approx(63)


def test_a_name_that_may_be_either_is_refused_where_it_matters():
    stored = sample().rename(x_wind_10m="u10", y_wind_10m="v10")
    for name in stored.data_vars:
        del stored[name].attrs["standard_name"]
    with pytest.raises(ValueError, match="does not say whether its components are along the grid"):
        checked(stored)


@pytest.mark.parametrize(
    ("u", "v", "direction"), [(0, -1, 0), (-1, 0, 90), (0, 1, 180), (1, 0, 270), (1, 1, 225)]
)
def test_direction_is_where_the_wind_comes_from(u, v, direction):
    stored = regular()
    stored["u10"][:], stored["v10"][:] = u, v
    polar = wind.speed_and_direction(checked(stored))
    np.testing.assert_allclose(polar.wind_from_direction, direction, atol=1e-4)
    np.testing.assert_allclose(polar.wind_speed, np.hypot(u, v), rtol=1e-6)


def test_speed_and_direction_give_the_components_back():
    whole = checked(regular())
    polar = wind.speed_and_direction(whole)
    again = checked(polar)
    for name in ("eastward_wind", "northward_wind"):
        np.testing.assert_allclose(again[name], whole[name], atol=1e-4)


def test_calm_has_no_direction():
    stored = regular()
    stored["u10"][0, 0, 0] = stored["v10"][0, 0, 0] = 0.0
    direction = wind.speed_and_direction(checked(stored)).wind_from_direction
    assert int(np.isnan(direction).sum()) == 1


def test_heights_are_chosen_by_name(tmp_path):
    regular(("u10", "v10", "u100", "v100")).to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    near, aloft = wind.open(tmp_path / "a.nc"), wind.open(tmp_path / "a.nc", height_m=100.0)
    assert "10 m taken of the heights 10, 100 m" in near.attrs["changes"]
    assert (near.x_wind.attrs["height_m"], aloft.x_wind.attrs["height_m"]) == (10, 100)
    assert not np.array_equal(near.x_wind, aloft.x_wind)
    with pytest.raises(ValueError, match="has height 10, 100 m, not 80; name one of them"):
        wind.open(tmp_path / "a.nc", height_m=80.0)
    with pytest.raises(ValueError, match="give one of them"):
        wind.open(tmp_path / "a.nc", height_m=80.0, pressure_hpa=500.0)


def test_a_single_height_is_not_taken_for_another():
    with pytest.raises(ValueError, match=r"is at 10\.0 m, not at 80\.0 m"):
        wind.conform(sample(), "it", wind.Level(height_m=80.0))


def test_pressure_levels_stay_as_an_axis_or_one_is_chosen(tmp_path):
    levels = xr.Variable("level", np.array([850, 500], "int32"), {"units": "millibars"})
    stored = regular(("u", "v")).expand_dims(level=levels).transpose("time", "level", ...)
    stored.rename(time="month").assign_coords(month=[1, 7]).to_netcdf(tmp_path / "a.nc")
    whole = wind.open(tmp_path / "a.nc")
    assert whole.x_wind.dims == ("time", "pressure", "y", "x")
    np.testing.assert_array_equal(whole.pressure, [500, 850])
    assert "time" not in whole.coords
    assert "months of the year, not dates" in whole.attrs["changes"]
    one = wind.open(tmp_path / "a.nc", pressure_hpa=850.0)
    np.testing.assert_array_equal(one.x_wind, whole.x_wind.sel(pressure=850))


def test_a_calendar_without_leap_days_is_kept(tmp_path):
    stored = regular()
    days = xr.Variable("time", [58, 59], {"units": "days since 2020-01-01", "calendar": "noleap"})
    stored.assign_coords(time=days).to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    times = wind.open(tmp_path / "a.nc").time.values
    assert [str(t) for t in times] == ["2020-02-28 00:00:00", "2020-03-01 00:00:00"]


def wrf(moving=False, **changes):
    """Two times of WRF output on 3 × 4 cells and two levels."""
    faces_x, faces_y = np.arange(5.0, dtype="f4"), 10 * np.arange(4.0, dtype="f4")
    latitude = np.full((2, 3, 4), 40.0, "f4") + np.arange(3, dtype="f4")[:, None] * 0.1
    latitude[1] += 0.5 * moving
    longitude = np.full((2, 3, 4), 5.0, "f4") + np.arange(4, dtype="f4") * 0.13
    cell, unit = ("Time", "south_north", "west_east"), {"units": "m s-1"}
    x_faces = ("Time", "bottom_top", "south_north", "west_east_stag")
    y_faces = ("Time", "bottom_top", "south_north_stag", "west_east")
    turn = np.full((2, 3, 4), np.pi / 6)
    return xr.Dataset(
        {
            "Times": ("Time", np.array([b"2005-08-28_12:00:00", b"2005-08-28_15:00:00"])),
            "U10": (cell, np.full((2, 3, 4), 3, "f4"), unit),
            "V10": (cell, np.full((2, 3, 4), 4, "f4"), unit),
            "U": (x_faces, np.broadcast_to(faces_x, (2, 2, 3, 5)).copy(), unit),
            "V": (y_faces, np.broadcast_to(faces_y[:, None], (2, 2, 4, 4)).copy(), unit),
            "HGT": (cell, np.full((2, 3, 4), 120, "f4"), {"units": "m"}),
            "SINALPHA": (cell, np.sin(turn)),
            "COSALPHA": (cell, np.cos(turn)),
        }
        | changes,
        coords={"XLAT": (cell, latitude), "XLONG": (cell, longitude)},
        attrs={"DX": 10000.0, "DY": 10000.0},
    )


def test_wrf_output_is_turned_by_its_own_angle(tmp_path):
    wrf().to_netcdf(tmp_path / "wrfout", engine="h5netcdf")
    fields = wind.open(tmp_path / "wrfout")
    cos, sin = np.cos(np.pi / 6), np.sin(np.pi / 6)
    np.testing.assert_allclose(fields.eastward_wind, 3 * cos - 4 * sin, rtol=1e-5)
    np.testing.assert_allclose(fields.northward_wind, 3 * sin + 4 * cos, rtol=1e-5)
    np.testing.assert_allclose(fields.wind_speed, 5, rtol=1e-6)
    np.testing.assert_array_equal(fields.orography, np.full((3, 4), 120))
    assert str(fields.time.values[1])[:19] == "2005-08-28T15:00:00"
    assert fields.attrs["spacing_m"] == 10000


@pytest.mark.parametrize(
    ("attrs", "more"),
    [
        ({"description": "minutes since simulation start", "units": ""}, "2005-08-28_12:00:00"),
        ({"description": "minutes since 2005-08-28 12:00:00"}, "1999-01-01_00:00:00"),
    ],
)
def test_minutes_since_the_start_are_dates(tmp_path, attrs, more):
    """Some tools drop the texts of the times."""
    content = wrf().drop_vars("Times").assign_coords(XTIME=("Time", np.float32([0, 180]), attrs))
    content.to_netcdf(tmp_path / "none", engine="h5netcdf")
    content.assign_attrs(SIMULATION_START_DATE=more).to_netcdf(tmp_path / "b", engine="h5netcdf")
    known = ["b"] if attrs["description"].endswith("start") else ["none", "b"]
    for name in known:
        times = wind.open(tmp_path / name).time.values
        assert [str(time)[:19] for time in times] == ["2005-08-28T12:00:00", "2005-08-28T15:00:00"]
    if "none" not in known:
        assert "no dates: XTIME" in wind.open(tmp_path / "none").attrs["changes"]


def test_staggered_components_are_brought_to_the_middle_of_the_cells(tmp_path):
    wrf().to_netcdf(tmp_path / "wrfout", engine="h5netcdf")
    fields = wind.open(tmp_path / "wrfout", model_level=1)
    np.testing.assert_allclose(fields.x_wind[0, 0], [0.5, 1.5, 2.5, 3.5])
    np.testing.assert_allclose(fields.y_wind[0, :, 0], [5, 15, 25])
    assert fields.wind_speed.attrs["model_level"] == 1
    with pytest.raises(ValueError, match=r"model_level is 2 but .* has 2 levels"):
        wind.open(tmp_path / "wrfout", model_level=2)


def test_a_moving_nest_keeps_where_it_was(tmp_path):
    wrf(moving=True).to_netcdf(tmp_path / "wrfout", engine="h5netcdf")
    fields = wind.open(tmp_path / "wrfout")
    assert fields.latitude.dims == AXES
    assert "the grid moves" in fields.attrs["changes"]
    assert "orography" not in fields


def wtk(path, order, drop=0):
    """A file in the WIND Toolkit's layout: sites of a 3 × 4 grid in some order."""
    import h5py

    latitude, longitude = (p.ravel()[order] for p in np.mgrid[40:43, 5:9].astype("f4"))
    sites = np.zeros(12 - drop, [("latitude", "f4"), ("longitude", "f4"), ("elevation", "f4")])
    sites["latitude"], sites["longitude"] = latitude[: 12 - drop], longitude[: 12 - drop]
    sites["elevation"] = 100 * sites["latitude"]
    with h5py.File(path, "w") as file:
        file["meta"] = sites
        file["time_index"] = np.array([b"2012-01-01 00:00:00+00:00", b"2012-01-01 01:00:00+00:00"])
        speed = (sites["latitude"] + 0.25 * sites["longitude"])[None] * np.ones((2, 1))
        file["windspeed_100m"] = np.round(100 * speed).astype("uint16")
        file["windspeed_100m"].attrs["scale_factor"] = 100.0
        file["winddirection_100m"] = np.full((2, 12 - drop), 900, "uint16")
        file["winddirection_100m"].attrs["scale_factor"] = 10.0


@pytest.mark.parametrize(
    "order",
    [
        np.arange(12),
        np.arange(12).reshape(3, 4).T.ravel(),
        np.arange(12).reshape(3, 4)[::-1].ravel(),
    ],
    ids=["rows", "columns", "north first"],
)
def test_sites_of_the_wind_toolkit_are_laid_out_on_their_grid(tmp_path, order):
    wtk(tmp_path / "wtk.h5", order)
    fields = wind.open(tmp_path / "wtk.h5")
    expected = np.arange(40, 43)[:, None] + 0.25 * np.arange(5, 9)
    np.testing.assert_allclose(fields.wind_speed[1], expected, atol=0.006)
    np.testing.assert_allclose(fields.eastward_wind[0], -expected, atol=0.006)  # from the east
    np.testing.assert_allclose(fields.northward_wind, 0, atol=1e-4)
    np.testing.assert_array_equal(fields.latitude, [40, 41, 42])
    np.testing.assert_array_equal(fields.orography[:, 0], [4000, 4100, 4200])
    assert fields.wind_speed.attrs["height_m"] == 100


def test_sites_that_fill_no_grid_are_refused(tmp_path):
    wtk(tmp_path / "wtk.h5", np.arange(12), drop=1)
    with pytest.raises(ValueError, match=r"the 11 sites of .* do not fill a grid"):
        wind.open(tmp_path / "wtk.h5")


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
        (sample().assign(other=sample().x_wind_10m), "has 2 variables with standard_name 'x_wind'"),
        (
            with_attribute("units", "furlongs"),
            "the unit of x_wind_10m of .* is 'furlongs'; it must",
        ),
        (with_attribute("units", None), "the unit of x_wind_10m of .* is None"),
        (
            with_value(np.nan),
            r"y_wind has 1 missing .* changing points, the first at .*'time': 1, 'y': 2, 'x': 3",
        ),
        (with_value(np.inf), "y_wind has 1 infinite values"),
        (with_value(200.0), r"y_wind has 1 values beyond 120 m/s, the first at .* \(200\)"),
        (sample().expand_dims(station=2), "has axes .*; they must be"),
        (xr.Dataset(), "has no wind among none"),
    ],
)
def test_bad_content_is_refused(dataset, message):
    dataset = dataset.assign({n: v.rename(n) for n, v in dataset.data_vars.items()})
    with pytest.raises(ValueError, match=message):
        checked(dataset)


def test_one_component_alone_gives_no_speed():
    fields = checked(sample(("x_wind",)))
    assert list(fields.data_vars) == ["x_wind"]
    assert "y_wind is not there" in str(wind.check(fields))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("text.nc", b"not netCDF", "begins with b'not netC', which is neither"),
        ("bad.grib", b"GRIB" + bytes(20), "cannot be read|ends inside"),
        ("bad.nc", b"\x89HDF\r\n\x1a\n" + bytes(20), "cannot be read as HDF5"),
        ("old.nc", b"CDF\x01" + bytes(3), "cannot be read as netCDF"),
    ],
)
def test_bad_files_are_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        wind.open(tmp_path / name)


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize("opened", [xr.Dataset({"u": 1.0}), xr.DataArray([1.0]), {"u": 1.0}])
def test_what_is_open_already_is_no_path(opened):
    with pytest.raises(TypeError, match=r"path is .*; it must be a path"):
        wind.open(opened)


def test_absent_and_cut_files_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not a file"):
        wind.open(tmp_path / "absent.nc")
    with pytest.raises(ValueError, match="paths is empty"):
        wind.open([])
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match=r"a folder without zarr\.json"):
        wind.open(tmp_path / "folder")
    sample().to_netcdf(tmp_path / "cut.nc", engine="h5netcdf")
    whole = (tmp_path / "cut.nc").read_bytes()
    (tmp_path / "cut.nc").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="cannot be read as HDF5"):
        wind.open(tmp_path / "cut.nc")


@pytest.mark.parametrize("form", [2, 3])
def test_a_missing_chunk_is_named(tmp_path, form):
    sample().chunk(time=1).to_zarr(tmp_path / "a", zarr_format=form, consolidated=False)
    key = "1.0.0" if form == 2 else "c/1/0/0"
    (tmp_path / "a" / "y_wind_10m" / key).unlink()
    with pytest.raises(ValueError, match=f"y_wind_10m of .* lacks 1 chunks, the first {key}"):
        wind.open(tmp_path / "a")


def parts(tmp_path, *pieces):
    paths = [tmp_path / f"{i}.nc" for i in range(len(pieces))]
    for path, piece in zip(paths, pieces, strict=True):
        piece.to_netcdf(path, engine="h5netcdf")
    return paths


def later(hours):
    dataset = sample()
    return dataset.assign_coords(time=dataset.time + np.timedelta64(hours, "h"))


def test_files_of_one_grid_are_joined_in_order(tmp_path):
    fields = wind.open(parts(tmp_path, later(2), later(0), later(8)))
    assert fields.sizes["time"] == 6
    assert (np.diff(fields.time.values) > np.timedelta64(0, "ns")).all()
    assert fields.attrs["changes"] == "times sorted"
    assert "4 times are missing after 2020-01-01T03" in str(wind.check(fields))


def test_components_in_files_of_their_own_are_put_together(tmp_path):
    paths = parts(tmp_path, sample()[["x_wind_10m"]], sample()[["y_wind_10m"]])
    assert_same(wind.open(paths), checked(sample()))


def test_identical_duplicates_are_dropped_and_different_ones_refused(tmp_path):
    fields = wind.open(parts(tmp_path, later(0), sample().isel(time=[1])))
    assert fields.sizes["time"] == 2
    assert fields.attrs["changes"] == "1 identical duplicates in time dropped"
    (tmp_path / "x").mkdir()
    with pytest.raises(ValueError, match=r"two different fields for 2020-01-01T01:00.*index 2"):
        wind.open(parts(tmp_path / "x", later(0), later(1)))


def test_other_grids_are_refused_by_name(tmp_path):
    other = later(2).assign_coords(y=[0.0, 2500.0, 5100.0])
    with pytest.raises(ValueError, match=r"0\.nc and .*1\.nc differ in y"):
        wind.open(parts(tmp_path, sample(), other))
    (tmp_path / "x").mkdir()
    with pytest.raises(ValueError, match="they must have the same"):
        wind.open(parts(tmp_path / "x", sample(), later(2)[["x_wind_10m"]]))


def test_seas_of_missing_values_are_let_through_if_asked(tmp_path):
    stored = sample()
    for name in stored.data_vars:
        stored[name][:, 0, 1] = np.nan
    stored.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    with pytest.raises(
        ValueError, match=r"always at the same points, the first at .*allow_missing"
    ):
        wind.open(tmp_path / "a.nc")
    fields = wind.open(tmp_path / "a.nc", allow_missing=True)
    assert int(np.isnan(fields.wind_speed).sum()) == 2


def test_a_zone_of_zeros_is_cut_off_and_a_single_calm_row_is_not(tmp_path):
    stored = sample()
    padded = stored.pad(y=(0, 2), x=(0, 3), constant_values=0.0)
    padded = padded.assign_coords(y=2500.0 * np.arange(5), x=2500.0 * np.arange(7))
    padded.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    fields = wind.open(tmp_path / "a.nc")
    np.testing.assert_array_equal(fields.x_wind, stored.x_wind_10m)
    assert "a zone of zeros cut off along y: 0 first, 2 last" in fields.attrs["changes"]
    calm = stored.copy(deep=True)
    for name in calm.data_vars:
        calm[name][:, -1] = 0.0
    calm.to_netcdf(tmp_path / "b.nc", engine="h5netcdf")
    assert wind.open(tmp_path / "b.nc").sizes["y"] == 3
