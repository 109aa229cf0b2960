"""Files as tools really write them: read right, or refused in a line that says what to do."""

import numpy as np
import pytest
import xarray as xr

from sciml import wind
from sciml.wind.cf.projection import places

TIMES, ROWS, COLUMNS = 3, 8, 10
EARTH = ("eastward_wind", "northward_wind")
DRAWN = np.random.default_rng(0).normal(5, 2, (2, TIMES, ROWS, COLUMNS)).astype(np.float32)
STAMPS = np.datetime64("2020-01-01", "ns") + np.arange(TIMES) * np.timedelta64(1, "h")
LATITUDE = ("lat", np.linspace(50, 50.7, ROWS), {"units": "degrees_north"})
LONGITUDE = ("lon", np.linspace(-0.4, 0.5, COLUMNS), {"units": "degrees_east"})


def content(winds=DRAWN, dims=("time", "lat", "lon"), names=EARTH, **coords):
    """Return a dataset of both components."""
    fields = {
        f"{c}10": (dims, field, {"units": "m s-1", "standard_name": name})
        for c, field, name in zip("uv", winds, names, strict=True)
    }
    own = {"lat": LATITUDE, "lon": LONGITUDE} if not coords else {}
    return xr.Dataset(fields, {"time": STAMPS} | own | coords)


def opened(stored, folder, **choice):
    """Return what `open` makes of a dataset that was written to a file."""
    stored.to_netcdf(folder / "odd.nc", engine="h5netcdf")
    return wind.open(folder / "odd.nc", **choice)


def test_columns_sorted_across_greenwich_are_put_in_order(tmp_path):
    order = np.argsort(LONGITUDE[1] % 360)
    sorted_ = ("lon", (LONGITUDE[1] % 360)[order], LONGITUDE[2])
    found = opened(content(DRAWN[..., order], lat=LATITUDE, lon=sorted_), tmp_path)
    assert np.array_equal(found.eastward_wind, DRAWN[0])
    assert np.allclose(np.diff(found.longitude), 0.1)
    assert "across 0 degrees" in found.attrs["changes"]


@pytest.mark.parametrize(("unit", "factor"), [("radian", np.pi / 180), ("degree", 1.0)])
def test_directions_are_read_in_their_unit(tmp_path, unit, factor):
    u, v = DRAWN
    source = (np.degrees(np.arctan2(-u, -v)) % 360) * factor
    on = ("time", "lat", "lon")
    stored = content().drop_vars(["u10", "v10"]).assign(
        ws=(on, np.hypot(u, v), {"units": "m/s", "standard_name": "wind_speed"}),
        wd=(on, source, {"units": unit, "standard_name": "wind_from_direction"}),
    )  # fmt: skip
    found = opened(stored, tmp_path)
    assert np.allclose(found.eastward_wind, u, atol=1e-5)
    assert np.allclose(found.northward_wind, v, atol=1e-5)


def test_directions_that_must_be_radians_are_refused_without_a_unit(tmp_path):
    on = ("time", "lat", "lon")
    stored = content().drop_vars(["u10", "v10"]).assign(
        ws=(on, DRAWN[0], {"units": "m/s"}), wdir=(on, DRAWN[1] % 6)
    )  # fmt: skip
    with pytest.raises(
        ValueError, match=r"unit of wdir of .* is None; it must be degree or radian"
    ):
        opened(stored, tmp_path)


def test_latitudes_in_radians_become_degrees(tmp_path):
    lines = [
        (dim, np.radians(values), {"units": "radian", "standard_name": name})
        for (dim, values, _), name in zip(
            (LATITUDE, LONGITUDE), ("latitude", "longitude"), strict=True
        )
    ]
    found = opened(content(lat=lines[0], lon=lines[1]), tmp_path)
    assert np.allclose(found.latitude, LATITUDE[1])
    assert np.allclose(found.longitude, LONGITUDE[1])


def test_model_levels_are_no_pressures(tmp_path):
    several = np.stack([DRAWN] * 3, axis=2)
    levels = ("level", [135, 136, 137], {"long_name": "model level number"})
    stored = content(several, ("time", "level", "lat", "lon"),
                     lat=LATITUDE, lon=LONGITUDE, level=levels)  # fmt: skip
    with pytest.raises(ValueError, match=r"level of .*odd.nc holds model levels \(135, 136, 137"):
        opened(stored, tmp_path)
    assert opened(stored.isel(level=0, drop=True), tmp_path).sizes["time"] == TIMES


@pytest.mark.parametrize("mark", [-99.0, 99.9])
def test_marks_of_missing_values_that_no_attribute_declares_are_refused(tmp_path, mark):
    marked = DRAWN.copy()
    marked[0, :, :2, :2] = mark
    with pytest.raises(ValueError, match="x_wind has 12 equal values far from all others"):
        opened(content(marked), tmp_path)


def test_a_jet_is_no_mark():
    jet = content(DRAWN + np.linspace(0, 65, COLUMNS, dtype=np.float32).round(0))
    assert wind.check(wind.conform(jet, "a jet")).good


@pytest.mark.parametrize("method", ["maximum", "sum"])
def test_the_largest_or_sum_of_a_component_is_no_wind(tmp_path, method):
    stored = content()
    for name in ("u10", "v10"):
        stored[name].attrs["cell_methods"] = f"time: {method}"
    with pytest.raises(ValueError, match="has no wind among u10, v10"):
        opened(stored, tmp_path)


def turned(names, **places):
    """Return a dataset about a turned pole, over Norway."""
    mapping = {
        "grid_mapping_name": "rotated_latitude_longitude",
        "grid_north_pole_latitude": 22.0,
        "grid_north_pole_longitude": 140.0,
    }
    lines = {
        name: (name, np.linspace(-0.4, 0.3, n), {"units": "degrees"})
        for name, n in (("rlat", ROWS), ("rlon", COLUMNS))
    }
    return content(
        dims=("time", "rlat", "rlon"), names=names, **lines, **places,
        rotated_pole=((), 0, mapping),
    )  # fmt: skip


@pytest.mark.parametrize(
    "names", [("x_wind", "y_wind"), ("grid_eastward_wind", "grid_northward_wind")]
)
def test_a_turned_pole_gives_places_and_angles(tmp_path, names):
    found = opened(turned(names), tmp_path)
    middle = found.sel(y=ROWS // 2, x=COLUMNS // 2) if "y" in found.coords else found.isel(y=4, x=5)
    assert abs(float(middle.latitude) - 68) < 0.5
    assert abs(float(middle.longitude) + 40) < 1.0
    angle = found.grid_angle
    u = found.x_wind * np.cos(angle) - found.y_wind * np.sin(angle)
    assert np.allclose(u.transpose(*found.eastward_wind.dims), found.eastward_wind, atol=1e-5)
    assert np.array_equal(found.x_wind, DRAWN[0])


def test_the_formula_of_a_turned_pole_is_a_turn_of_the_sphere():
    mapping = {"grid_mapping_name": "rotated_latitude_longitude"}
    pole = {"grid_north_pole_latitude": 35.0, "grid_north_pole_longitude": 15.0}
    lines = np.array([-30.0, 0.0, 25.0]), np.array([-20.0, 0.0, 40.0])
    latitude, longitude = places(mapping | pole, *lines)
    # the point (0, 0) lies a quarter of the sphere from the pole, on its far meridian
    assert np.allclose([latitude[1, 1], longitude[1, 1] % 360], [90 - 35, 15 + 180])
    points = [
        np.stack([np.cos(p) * np.cos(m), np.cos(p) * np.sin(m), np.sin(p)], -1).reshape(9, 3)
        for p, m in (np.radians([latitude, longitude]), np.radians(np.meshgrid(*lines))[::-1])
    ]
    assert np.allclose(points[0] @ points[0].T, points[1] @ points[1].T)  # distances stay
    for known, at in (((90.0, 0.0), (10.0, 20.0)), ((90.0, 180.0), (10.0, 20.0))):
        kept = dict(zip(pole, known, strict=True))
        found = places(mapping | kept, np.array([at[1]]), np.array([at[0]]))
        assert np.isclose(found[0][0, 0], at[0])


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.9 / wind.units.KNOT_M_S, 3.6, 0.7 * wind.units.KNOT_M_S])
def test_pairs_in_another_unit_are_refused_though_one_is_too_calm(factor):
    two = wind.generate_two(0, 4, 64)
    wind.matched(two["coarse"], two["fine"], 4)
    wrong = two["coarse"].map(lambda field: field * factor, keep_attrs=True)
    with pytest.raises(ValueError, match="half-way to knots: mend the unit of one"):
        wind.matched(wrong, two["fine"], 4)


def written(path, titles=None, unit="hours since 2020-01-01", **attrs):
    """A file of u and v, or of speed and direction, with what is said of one or of its time."""
    titles = titles or {}
    names = {"ws10": "m s-1", "wdir10": "degrees"} if "wdir10" in titles else {"u10": "m s-1"}
    fields = {
        name: (
            ("time", "lat", "lon"),
            np.full((2, 2, 3), 3.0),
            {"units": of} | titles.get(name, {}),
        )
        for name, of in names.items()
    }
    coords = {
        "time": ("time", [0.0, 1.0], {"units": unit}),
        "lat": ("lat", [0.87, 0.88], attrs.get("lat", {"units": "degrees_north"})),
        "lon": ("lon", [0.1, 0.11, 0.12], attrs.get("lon", {"units": "degrees_east"})),
    }
    xr.Dataset(fields, coords).to_netcdf(path, engine="h5netcdf")
    return path


@pytest.mark.parametrize(
    ("unit", "hour"),
    [("", 0), (" 00:00:00 UTC", 0), ("T00:00:00Z", 0), (" 00:00:00 -6:00", 6), (" 0:0:0 GMT", 0)],
)
def test_shifts_of_a_reference_date_are_read(tmp_path, unit, hour):
    times = wind.open(written(tmp_path / "a.nc", unit=f"hours since 2020-01-01{unit}")).time
    assert times.values[0] == np.datetime64("2020-01-01") + np.timedelta64(hour, "h")


@pytest.mark.parametrize("zone", ["CET", "EST", "LT"])
def test_names_of_zones_are_refused_which_xarray_leaves_out(tmp_path, zone):
    path = written(tmp_path / "a.nc", unit=f"hours since 2020-01-01 00:00:00 {zone}")
    with pytest.raises(ValueError, match=rf"and {zone} is left out .*: write the zone as a shift"):
        wind.open(path)


def test_gusts_and_tens_of_degrees_are_told_by_their_titles(tmp_path):
    with pytest.raises(ValueError, match="u10 passed over: its long_name is '10 m wind gust'"):
        wind.open(written(tmp_path / "a.nc", {"u10": {"long_name": "10 m wind gust"}}))
    for title in ("direction in tens of degrees", "direction [10 deg]", "wind dir. (10s of deg.)"):
        with pytest.raises(ValueError, match=r"directions are in degrees: multiply them by 10"):
            wind.open(written(tmp_path / "b.nc", {"wdir10": {"long_name": title}}))


def test_small_latitudes_and_longitudes_of_no_unit_may_be_radians(tmp_path):
    with pytest.raises(ValueError, match=r"reach 0.88 and 0.12 of no unit, and may be radians"):
        wind.open(written(tmp_path / "a.nc", lat={}, lon={}))
    assert wind.open(written(tmp_path / "b.nc")).latitude.values.tolist() == [0.87, 0.88]
