"""The three maps against PROJ, in a process of its own: two copies of it do not go together."""

import importlib.util
import json
import subprocess
import sys

import numpy as np
import pytest

from sciml._grid import angle, distance_m, spacings_m
from sciml.wind.cf.projection import places

SPHERE = {"earth_radius": 6371229.0}
X_M, Y_M = np.linspace(-8e5, 9e5, 5), np.linspace(-7e5, 6e5, 4)
LAMBERT = {
    "grid_mapping_name": "lambert_conformal_conic",
    "standard_parallel": 63.0,
    "latitude_of_projection_origin": 63.0,
    "longitude_of_central_meridian": 15.0,
}
MAPPINGS = {
    "one parallel": LAMBERT,
    "two parallels": {
        "grid_mapping_name": "lambert_conformal_conic",
        "standard_parallel": [30.0, 60.0],
        "latitude_of_projection_origin": 40.0,
        "longitude_of_central_meridian": -97.0,
        "false_easting": 5e4,
    },
    "south": LAMBERT | {"standard_parallel": -35.0, "latitude_of_projection_origin": -35.0},
    "north pole": {
        "grid_mapping_name": "polar_stereographic",
        "standard_parallel": 60.0,
        "latitude_of_projection_origin": 90.0,
        "straight_vertical_longitude_from_pole": -45.0,
    },
    "south pole": {
        "grid_mapping_name": "polar_stereographic",
        "standard_parallel": -71.0,
        "latitude_of_projection_origin": -90.0,
        "straight_vertical_longitude_from_pole": 10.0,
    },
    "mercator": {
        "grid_mapping_name": "mercator",
        "standard_parallel": 20.0,
        "longitude_of_projection_origin": -89.0,
    },
}
PROGRAM = """
import json, sys, numpy, pyproj
mappings, x, y = json.load(sys.stdin)
grid = numpy.meshgrid(x, y)
answer = {}
for name, mapping in mappings.items():
    lon, lat = pyproj.Proj(pyproj.CRS.from_cf(mapping))(*grid, inverse=True)
    answer[name] = [lat.tolist(), lon.tolist()]
json.dump(answer, sys.stdout)
"""


@pytest.fixture(scope="module")
def proj():
    if importlib.util.find_spec("pyproj") is None:
        pytest.skip("compares with pyproj, which is not installed")
    question = json.dumps([{n: m | SPHERE for n, m in MAPPINGS.items()}, [*X_M], [*Y_M]])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=question, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", MAPPINGS)
def test_every_map_agrees_with_proj(proj, name):
    latitude, longitude = places(MAPPINGS[name] | SPHERE, X_M, Y_M)
    np.testing.assert_allclose(latitude, proj[name][0], atol=1e-9)
    np.testing.assert_allclose(longitude, proj[name][1], atol=1e-9)


@pytest.mark.parametrize(
    "mapping",
    [{"grid_mapping_name": "sinusoidal"}, LAMBERT | {"inverse_flattening": 298.0}],
)
def test_other_maps_and_ellipsoids_give_no_places(mapping):
    assert places(mapping, X_M, Y_M) is None


def test_the_angle_is_second_order_in_the_spacing():
    errors = []
    for points in (17, 33):
        line = np.linspace(-4e5, 4e5, points)
        latitude, longitude = places(LAMBERT | SPHERE, line, line)
        exact = -np.sin(np.radians(63)) * np.radians(longitude - 15)
        errors.append(np.abs(angle(latitude, longitude) - exact).max())
    assert errors[1] < 1e-3
    assert errors[0] / errors[1] > 3.5


def test_a_column_of_points_takes_its_angle_from_y():
    latitude, longitude = np.array([[50.0], [50.1]]), np.array([[5.0], [5.0]])
    np.testing.assert_allclose(angle(latitude, longitude), 0, atol=1e-12)


def test_distances_on_the_sphere():
    assert distance_m([0, 90], [10, 70]) == pytest.approx(6371229 * np.pi / 2)
    x, y = spacings_m(*np.meshgrid([50.0, 50.1], [5.0], indexing="ij"))
    assert np.isnan(x)
    assert y == pytest.approx(6371229 * np.radians(0.1))
