"""What a labelled wind declares of its values is heeded wherever one comes in, or it is refused."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from sciml import diagnose, wind
from sciml.downscale.at_stations import station_scores
from sciml.downscale.comparison import scores
from sciml.wind.prepare.tiled import Tiles

pytestmark = pytest.mark.usefixtures("untyped")
VECTOR = ("x_wind", "y_wind")
HOURS = np.datetime64("2020-01-01", "ns") + np.arange(4) * np.timedelta64(1, "h")


@pytest.fixture(scope="module")
def fine():
    drawn = wind.gaussian(seed=0, snapshots=4, n=16).assign_coords(time=HOURS)
    for name in drawn.data_vars:
        drawn[name].attrs |= {"height_m": 10.0}
    return drawn


@pytest.fixture(scope="module")
def placed(fine):
    places = {"latitude": ("y", np.linspace(50, 51, 16)), "longitude": ("x", np.linspace(5, 6, 16))}
    return fine.assign_coords(places)


def holed(fine, value):
    return fine.map(
        lambda v: v.copy(data=np.where(np.arange(16) < 2, value, v.values)), keep_attrs=True
    )


def with_attrs(fine, **attrs):
    return fine.assign({n: fine[n].assign_attrs(attrs) for n in fine.data_vars})


def packed(fine):
    return with_attrs(
        fine.assign({n: (100 * fine[n]).round().astype("i2") for n in fine.data_vars}),
        units="m s-1", scale_factor=0.01,
    )  # fmt: skip


USES = {
    "channels": lambda w: wind.channels(w, VECTOR),
    "coarser": lambda w: wind.coarser(w, 4).x_wind,
    "onto_blocks": lambda w: wind.onto_blocks(w, w, 4).x_wind,
    "matched": lambda w: wind.matched(wind.coarser(w, 4), w, 4, strict=False).fine,
    "power_law": lambda w: wind.power_law(w, 80.0).x_wind,
    "log_law": lambda w: wind.log_law(w, 80.0, 0.1).x_wind,
    "stream": lambda w: next(
        wind.stream(w.x_wind.expand_dims("channel", 1), wind.gridded(4, 16, 16, 16), 4)
    ),
    "crop": lambda w: wind.crop(w.x_wind, 4),
    "block_mean_present": lambda w: wind.block_mean_present(w.x_wind, 2),
    "bilinear": lambda w: wind.bilinear(w.x_wind, 2)[..., 8:],
    "symmetry": lambda w: wind.symmetry(w.wind_speed.expand_dims("channel", 1), ("wind_speed",), 1),
    "refine_tiled": lambda w: wind.refine_tiled(
        lambda part: part.repeat(2, -1).repeat(2, -2), w.x_wind, 2, Tiles(8, 2, 1)
    ),
    "subgrid": lambda w: diagnose.subgrid_variance(w.x_wind, 2)[..., 2:],
}  # fmt: skip


@pytest.mark.parametrize("use", USES)
def test_values_that_are_declared_missing_are_no_wind(fine, use):
    known = np.asarray(USES[use](holed(fine, np.nan)))
    for attrs in (
        {"_FillValue": -999.0},
        {"missing_value": -999.0},
        {"valid_range": [-99.0, 99.0]},
    ):
        found = np.asarray(USES[use](with_attrs(holed(fine, -999.0), **attrs)))
        np.testing.assert_allclose(found, known, rtol=1e-6)


@pytest.mark.parametrize("use", USES)
def test_packed_values_are_refused(fine, use):
    with pytest.raises(ValueError, match=r"has scale_factor 0\.01, so that its values are packed"):
        USES[use](packed(fine))


@pytest.mark.parametrize("part", ["prediction", "truth", "coarse"])
def test_scores_heed_it_too(fine, part):
    guess = fine.map(lambda v: v + 0.1 * np.sin(np.arange(16)), keep_attrs=True)
    known = {"prediction": guess, "truth": fine, "coarse": wind.coarser(fine, 4)}

    def table(change):
        given = known | {part: change(known[part])}
        return scores(given["prediction"], given["truth"], 4, given["coarse"])

    def hidden(winds):
        return winds.map(lambda v: v.where(np.arange(v.sizes["x"]) > 1), keep_attrs=True)

    def marked(winds):
        return with_attrs(hidden(winds).fillna(-999.0), valid_min=-99.0)

    pd.testing.assert_frame_equal(table(marked), table(hidden))
    with pytest.raises(ValueError, match="so that its values are packed"):
        table(packed)


def test_observations_heed_it_too(placed):
    fine = placed[["wind_speed"]]
    seen = ("observation", np.array([3.0, -999.0, 5.0]), {"units": "m s-1", "_FillValue": -999.0})
    spots = {"latitude": [50.2, 50.4, 50.6], "longitude": [5.2, 5.4, 5.6], "time": HOURS[:3]}
    stations = xr.Dataset({"wind_speed": seen}, {n: ("observation", v) for n, v in spots.items()})
    table = station_scores(fine, stations, 4, wind.coarser(fine, 4))
    assert (table.observations == 2).all()
    assert (table.rmse_m_s < 50).all()


def test_what_an_array_masks_is_missing():
    rough = np.random.default_rng(0).normal(size=(2, 16, 16)).astype("f4")
    raw = np.where(np.arange(16) < 2, -999.0, rough)
    hole, mask = np.where(raw == -999, np.nan, raw), np.ma.masked_equal(raw, -999.0)
    for use in (
        lambda f: wind.block_mean_present(f, 4),
        lambda f: wind.crop(f, 4),
        lambda f: wind.symmetry(f[:, None], ("wind_speed",), 3),
        lambda f: wind.restore_means(f, np.zeros((2, 4, 4))),
        lambda f: wind.refine_tiled(
            lambda part: np.repeat(np.repeat(part, 2, -1), 2, -2), f, 2, Tiles(8, 2, 1)
        ),
    ):
        np.testing.assert_allclose(np.asarray(use(mask)), np.asarray(use(hole)), rtol=1e-6)


def test_a_skill_over_a_perfect_baseline_is_none_everywhere():
    truth = np.random.default_rng(0).normal(size=(12, 8, 8))
    found = diagnose.skill_interval(truth + 1, truth, truth, block=2)
    assert np.isnan(found).all()
    assert np.isnan(diagnose.skill(truth + 1, truth, truth))
    rarely = truth + (np.arange(12) == 5)[:, None, None]
    found = diagnose.skill_interval(truth + 1, truth, rarely, block=2)
    assert found.skill == pytest.approx(-11)
    assert np.isnan(found[1:]).all()


@pytest.mark.parametrize("corners", [np.array([[0.5, 0, 0]]), [[0, 1.0, 2]]])
def test_a_plan_is_of_whole_numbers(corners):
    with pytest.raises(ValueError, match=r"corners have shape .*float64"):
        wind.Plan(corners, 8)
    with pytest.raises(ValueError, match="times is 0"):
        wind.gridded(1, 8, 8, 8).shuffled(0, times=0)


def test_a_stream_is_of_channels(fine):
    with pytest.raises(ValueError, match=r"must be on \(time, channel, y, x\): pass"):
        next(wind.stream(fine.x_wind, wind.gridded(4, 16, 16, 8), 4))


@pytest.mark.parametrize("part", [{"y": slice(0, 9)}, {"time": [0, 1, 1, 3]}])
def test_a_field_of_exponents_is_of_the_same_places(fine, part):
    """xarray would leave out, or fill with NaN, what one of both lacks."""
    exponents = xr.full_like(fine.x_wind, 0.2) * (1 + np.arange(16) / 100)
    known = wind.power_law(fine, 80.0, exponents)
    turned = exponents.isel(y=slice(None, None, -1), time=[2, 0, 1, 3]).transpose("x", ..., "y")
    np.testing.assert_allclose(wind.power_law(fine, 80.0, turned).x_wind, known.x_wind, rtol=1e-6)
    with pytest.raises(ValueError, match=f"has other values of {next(iter(part))} than the winds"):
        wind.power_law(fine, 80.0, exponents.isel(part))
    moved = exponents.assign_coords(x=exponents.x + 0.5)
    with pytest.raises(ValueError, match="has other values of x than the winds"):
        wind.log_law(fine, 80.0, moved)
    with pytest.raises(ValueError, match="multiplied by nan"):
        wind.power_law(fine, 80.0, float("nan"))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"spectrum": lambda k: -1.0 / k}, "spectrum gives -1 to"),
        ({"spectrum": lambda k: 0.0 * k}, "spectrum gives 0 to 0"),
        ({"spectrum": lambda k: np.where(k > 3, np.nan, 1.0)}, "spectrum gives nan"),
        ({"rms_m_s": float("nan")}, "rms_m_s is nan"),
        ({"spacing_m": 0.0}, r"spacing_m is 0\.0"),
    ],
)
def test_wind_is_made_of_energies(wrong, said):
    with pytest.raises(ValueError, match=said):
        wind.gaussian(0, 1, 16, **wrong)


def test_elements_are_counted_by_numbers_of_any_kind():
    field = np.random.default_rng(0).normal(size=(1, 4, 6))
    for element in range(8):
        known = wind.symmetry(field, ("wind_speed",), element)
        found = wind.symmetry(field, ("wind_speed",), np.int64(element))
        np.testing.assert_array_equal(found, known)
    for element in (np.int64(8), np.int32(-1)):
        with pytest.raises(ValueError, match="it must be 0 to 7"):
            wind.symmetry(field, ("wind_speed",), element)


def test_axes_in_another_order_are_the_same_wind(fine):
    """On a square nobody would see it."""
    turned = fine.transpose("x", "y", "time")
    for use in (
        lambda w: wind.random_phases(w, 0),
        lambda w: wind.with_hills(w, 0),
        lambda w: wind.coarser(w, 4),
    ):
        np.testing.assert_allclose(use(turned).x_wind.transpose("time", "y", "x"), use(fine).x_wind)
    lines = np.linspace(50, 51, 16), np.linspace(5, 6, 16)
    planes = dict(zip(("latitude", "longitude"), np.meshgrid(*lines, indexing="ij"), strict=True))
    known = fine.assign_coords({n: (("y", "x"), plane) for n, plane in planes.items()})
    other = fine.assign_coords({n: (("x", "y"), plane.T) for n, plane in planes.items()})
    names = ("latitude", "longitude")
    np.testing.assert_array_equal(wind.covariates(other, names), wind.covariates(known, names))


def test_random_phases_need_all_values_and_keep_no_old_components(fine):
    earth = fine.assign(eastward_wind=fine.x_wind, wind_from_direction=fine.x_wind)
    found = wind.random_phases(earth, 0)
    assert {*found.data_vars} == {"wind_speed", "x_wind", "y_wind"}
    with pytest.raises(ValueError, match="values are missing, and a wave needs all"):
        wind.random_phases(holed(fine, np.nan), 0)
