"""Grids with latitudes on (y, x): evenly spaced on some map, or it is told, and told once."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from sciml import wind
from sciml._grid import spacings_m, uneven
from sciml.downscale.apply import predict
from sciml.downscale.comparison import scores
from sciml.downscale.pool import labelled
from sciml.estimator import Patches, fit_downscaling
from sciml.models import SuperResolution
from sciml.train import Recipe
from sciml.wind.cf.projection import places

LAMBERT = {
    "grid_mapping_name": "lambert_conformal_conic",
    "standard_parallel": 50.0,
    "latitude_of_projection_origin": 50.0,
    "longitude_of_central_meridian": 5.0,
    "earth_radius": 6371229.0,
}
POLE = {
    "grid_mapping_name": "rotated_latitude_longitude",
    "grid_north_pole_latitude": 39.25,
    "grid_north_pole_longitude": -162.0,
}
POLAR = {
    "grid_mapping_name": "polar_stereographic",
    "latitude_of_projection_origin": 90.0,
    "straight_vertical_longitude_from_pole": 10.0,
    "standard_parallel": 60.0,
}
MERCATOR = {
    "grid_mapping_name": "mercator",
    "longitude_of_projection_origin": 0.0,
    "standard_parallel": 20.0,
}
MAPS = {"lambert": (LAMBERT, 1e5), "polar": (POLAR, 1e5), "mercator": (MERCATOR, 1e5)}
MAPS |= {"turned": (POLE, 0.5), "plain": (None, 0.5)}
LACKING = np.delete(np.arange(17.0), 8)
STRETCHED = np.cumsum(1.1 ** np.arange(16))


def on_map(name, rows, columns):
    """Latitude and longitude of points in so many cells from the first."""
    mapping, cell = MAPS[name]
    y, x = (cell * (line - line.mean()) for line in (rows, columns))
    return np.meshgrid(50 + y, x, indexing="ij") if mapping is None else places(mapping, x, y)


def winds_at(latitude, longitude, attrs=None, **coords):
    values = np.random.default_rng(0).normal(5, 2, (2, 3, *latitude.shape)).astype("f4")
    said = {"units": "m s-1"} | (attrs or {})
    fields = {
        name: (("time", "y", "x"), one, {"standard_name": name} | said)
        for name, one in zip(("x_wind", "y_wind"), values, strict=True)
    }
    times = np.datetime64("2020-01-01", "ns") + np.arange(3) * np.timedelta64(6, "h")
    where = {
        "lat": (("y", "x"), latitude, {"units": "degrees_north"}),
        "lon": (("y", "x"), longitude, {"units": "degrees_east"}),
    }
    return xr.Dataset(fields, {"time": times} | where | coords)


def stored(content, folder):
    content.to_netcdf(folder / "a.nc", engine="h5netcdf")
    return folder / "a.nc"


def warned(caplog):
    said = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    caplog.clear()
    return [text for text in said if "evenly" in text]


@settings(max_examples=40, deadline=None)
@given(
    name=st.sampled_from(sorted(MAPS)),
    sides=st.tuples(st.integers(4, 30), st.integers(4, 30)),
    digits=st.sampled_from([2, 4, 8]),
)
def test_grids_that_are_even_on_a_map_are_even(name, sides, digits):
    latitude, longitude = on_map(name, *(np.arange(float(n)) for n in sides))
    assert uneven(np.round(latitude, digits), np.round(longitude, digits)) == {}


@pytest.mark.parametrize("axis", ["y", "x"])
@pytest.mark.parametrize("line", [LACKING, STRETCHED], ids=["lacking", "stretched"])
@pytest.mark.parametrize("name", sorted(MAPS))
def test_rows_and_columns_that_lack_or_are_stretched_are_found(name, line, axis):
    lines = {"y": np.arange(14.0), "x": np.arange(19.0)} | {axis: line}
    found = uneven(*on_map(name, lines["y"], lines["x"]))
    assert [*found] == [axis]
    at, step, usual = found[axis]
    if line is LACKING:
        assert at == 7
        assert step / usual == pytest.approx(2.0, rel=0.1)


def test_a_pole_in_a_global_grid_is_even():
    places_of = np.meshgrid(np.linspace(-90, 90, 61), np.arange(0, 360, 3.0), indexing="ij")
    assert uneven(*places_of) == {}


def test_a_row_that_lacks_does_not_change_the_spacing():
    latitude, longitude = on_map("turned", LACKING, np.arange(20.0))
    whole = spacings_m(*on_map("turned", np.arange(17.0), np.arange(20.0)))
    assert spacings_m(latitude, longitude) == pytest.approx(whole, rel=1e-3)
    metres = {
        axis: (axis, 3e3 * line, {"units": "m"})
        for axis, line in (("y", np.delete(np.arange(17.0), 1)), ("x", np.arange(20.0)))
    }
    found = wind.conform(winds_at(latitude, longitude).assign_coords(metres), "a.nc")
    assert found.attrs["spacing_y_m"] == 3e3


@pytest.mark.slow
@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("grid", ["curved", "straight"])
def test_what_a_file_was_warned_of_is_not_told_again(tmp_path, caplog, grid, lazy):
    content = winds_at(*on_map("turned", LACKING, np.arange(16.0)))
    if grid == "straight":
        lines = {"lat": ("y", 40 + LACKING, {"units": "degrees_north"})}
        lines |= {"lon": ("x", np.arange(16.0), {"units": "degrees_east"})}
        content = content.drop_vars(["lat", "lon"]).assign_coords(lines)
    fields = wind.open(stored(content, tmp_path), lazy=lazy).load()
    assert len(warned(caplog)) == 1
    fine = wind.channels(fields, ("x_wind", "y_wind"))
    net = fit_downscaling(
        SuperResolution(factor=2, wind=2, channels=4, blocks=1),
        fine, fine, recipe=Recipe(1), epochs=1, patches=Patches(8, 1),
    )  # fmt: skip
    coarse = wind.coarser(fields, 2)
    wind.conservative_bicubic(coarse.x_wind, 2)
    wind.matched(coarse, fields, 2, strict=False)
    scores(predict(net, coarse), fields, 2)
    assert warned(caplog) == []


def test_fields_that_came_from_no_file_are_told_of_where_they_go_in(caplog):
    fields = wind.conform(winds_at(*on_map("turned", LACKING, np.arange(16.0))), "mine")
    doors = {
        "coarser": lambda: wind.coarser(fields, 2),
        "bicubic": lambda: wind.bicubic(fields.x_wind, 2),
        "conservative": lambda: wind.conservative_bicubic(fields.x_wind, 2),
        "spectral": lambda: wind.spectral(fields.x_wind, 2),
        "score": lambda: scores(fields, fields, 2),
        "matched": lambda: wind.matched(fields, fields, 2, strict=False),
        "fit": lambda: labelled(wind.channels(fields, ("x_wind", "y_wind"))),
    }
    for name, door in doors.items():
        door()
        assert len(warned(caplog)) == 1, name
    assert "spacing" not in fields.latitude.attrs  # what is passed stays as it was
    wind.bicubic(fields.x_wind.values, 2)
    wind.conservative_bicubic(wind.coarser(fields, 2).x_wind, 2)
    assert len(warned(caplog)) == 1  # of coarser alone


def lambert_file(mapping, rows=None):
    columns, even = 3e3 * np.arange(24), 3e3 * np.arange(16)
    latitude, longitude = places(LAMBERT, columns, even if rows is None else rows)
    metres = {
        axis: (axis, line, {"units": "m", "standard_name": f"projection_{axis}_coordinate"})
        for axis, line in (("x", columns), ("y", even))
    }
    return winds_at(latitude, longitude, {"grid_mapping": "crs"}, crs=((), 0, mapping), **metres)


def test_places_that_are_not_those_of_the_map_are_refused():
    found = wind.conform(lambert_file(LAMBERT), "a.nc")
    assert "from where the map has them" not in found.attrs.get("changes", "")
    wrong = lambert_file(LAMBERT | {"longitude_of_central_meridian": 7.0})
    with pytest.raises(ValueError, match="up to 143 km from where its grid mapping has the points"):
        wind.conform(wrong, "a.nc")
    for name in ("crs", ["lat", "lon"]):
        assert "latitude" in wind.conform(wrong.drop_vars(name), "a.nc").coords


def test_places_that_are_nearly_those_of_the_map_are_taken_and_it_is_said(tmp_path, caplog):
    found = wind.conform(lambert_file(LAMBERT | {"earth_radius": 6350e3}), "a.nc")
    assert "from where the map has them" not in found.attrs.get("changes", "")
    path = stored(lambert_file(LAMBERT, 45e3 * np.linspace(0, 1, 16) ** 2), tmp_path)
    found = wind.open(path)
    assert "up to 11.2 km from where the map has them: they are taken" in found.attrs["changes"]
    (said,) = warned(caplog)
    assert "along y, by latitude and longitude: 0.2 km after index 0, 3 km mostly" in said


@pytest.mark.parametrize("name", ["lambert", "polar", "mercator", "turned"])
def test_a_map_of_which_a_number_lacks_gives_no_places(name):
    mapping, cell = MAPS[name]
    line = cell * np.arange(4.0)
    assert places(mapping, line, line) is not None
    for key in mapping:
        if key not in ("grid_mapping_name", "earth_radius"):
            assert places({k: v for k, v in mapping.items() if k != key}, line, line) is None


def test_maps_say_their_meridian_and_scale_in_either_way():
    line = 1e5 * np.arange(4.0)
    meridian = POLAR["straight_vertical_longitude_from_pole"]
    other = {k: v for k, v in POLAR.items() if not k.startswith("straight")}
    other |= {"longitude_of_projection_origin": meridian}
    assert np.allclose(places(other, line, line), places(POLAR, line, line))
    scaled = {k: v for k, v in MERCATOR.items() if k != "standard_parallel"}
    scaled |= {"scale_factor_at_projection_origin": np.cos(np.radians(20.0))}
    assert np.allclose(places(scaled, line, line), places(MERCATOR, line, line))
