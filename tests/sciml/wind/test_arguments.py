"""Single arguments of the wind half: used as meant, or refused in one line that names them."""

import numpy as np
import pytest
import xarray as xr

from sciml import wind
from sciml.estimator import Patches, fit_between, fit_downscaling, load_downscaling
from sciml.models import Between, SuperResolution
from sciml.train import Recipe

pytestmark = pytest.mark.usefixtures("untyped")
NAMES = ("x_wind", "y_wind")
FIELDS = wind.conform(wind.gaussian(seed=0, snapshots=3, n=16), "a test")
COARSE = wind.coarser(FIELDS, 4)
BARE = np.ones((1, 2, 4, 4), np.float32)
CHANNELS = wind.channels(FIELDS, NAMES)
SMALL = SuperResolution(2, 4, 1, wind=2)


def fit(model=SMALL, fields=CHANNELS, **more):
    how = {"recipe": Recipe(2), "epochs": 1, "patches": Patches(8, 2)} | more
    return fit_downscaling(model, fields, CHANNELS, **how)


@pytest.fixture(scope="module")
def net():
    return load_downscaling("wind4")


@pytest.mark.parametrize("draws", [-1, 2.5, True, "3"])
def test_draws_are_a_count(net, draws):
    with pytest.raises(ValueError, match=rf"draws is {draws!r}; it must be a whole number"):
        net.predict(COARSE, draws=draws)
    with pytest.raises(ValueError, match=rf"draws is {draws!r}; it must be a whole number"):
        net.draw(BARE, draws)


def test_a_draw_is_one_at_least_and_has_a_seed(net):
    with pytest.raises(ValueError, match="draws is 0; it must be a whole number, at least 1"):
        net.draw(BARE, 0)
    with pytest.raises(ValueError, match=r"seed is 1\.5; it must be a whole number"):
        net.draw(BARE, 1, seed=1.5)


@pytest.mark.parametrize("shape", [(0, 2, 4, 4), (1, 2, 0, 4)])
def test_nothing_is_not_refined(net, shape):
    with pytest.raises(ValueError, match="there is nothing in them"):
        net.refine(np.ones(shape, np.float32))
    axis = "time" if shape[0] == 0 else "y"
    with pytest.raises(ValueError, match=rf"'{axis}': 0.*there is nothing to refine"):
        net.predict(COARSE.isel({axis: slice(0)}))


@pytest.mark.parametrize("factor", [2.5, "4", 4.0])
@pytest.mark.parametrize(
    "of",
    [
        lambda f: wind.coarser(FIELDS, f),
        lambda f: wind.finer(COARSE, f),
        lambda f: wind.onto_blocks(COARSE, FIELDS, f),
    ],
    ids=["coarser", "finer", "onto_blocks"],
)
def test_factors_are_whole(of, factor):
    """`finer` of 2.5 gave twenty points of eight."""
    with pytest.raises(ValueError, match=rf"factor is {factor!r}; it must be a whole number"):
        of(factor)


def test_finer_asks_for_points():
    with pytest.raises(ValueError, match="factor is 0; it must be a whole number, at least 1"):
        wind.finer(COARSE, 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wind.stripes(2000.5), r"columns is 2000\.5; it must be a whole number"),
        (lambda: wind.Tiles(size="20"), "size is '20'; it must be a whole number"),
        (lambda: Patches(16.5), r"Patches\.size is 16\.5; it must be a whole number"),
        (lambda: wind.power_law(FIELDS, "100"), "height_m is '100'; it must be a number"),
        (lambda: wind.power_law(FIELDS, 100.0), "the winds state no height; one positive height"),
        (lambda: wind.power_law(FIELDS, -1.0), r"height_m is -1\.0; it must be positive"),
        (lambda: wind.Level(height_m="10"), "height_m is '10'; it must be a number"),
        (lambda: wind.Level(variable=[]), "variable is empty; name the wind's variables"),
        (lambda: wind.Level(beside="air_temperature"), r"must be a list: pass \['air_temperature"),
        (lambda: wind.channels(FIELDS, ()), "name at least one variable, and each once"),
        (lambda: wind.channels(FIELDS, ("x_wind",) * 2), "name at least one variable, and each"),
        (lambda: fit("SuperResolution"), "model is a str; pass the configuration of a net, as"),
        (lambda: fit(seed="a"), "seed is 'a'; it must be a whole number"),
        (lambda: fit(fields=FIELDS), r"fields are a Dataset; pass sciml\.wind\.channels\(winds"),
        (lambda: fit(fields=np.ones((8, 8))), r"fields have shape \(8, 8\); bare ones are \(samp"),
        (lambda: fit(fields=None), r"fields have shape \(\); bare ones are \(sample, y, x\)"),
        (lambda: fit(fields=CHANNELS[:0]), "there is no value of x_wind, y_wind"),
        (lambda: fit(fields=CHANNELS * np.nan), "there is no value of x_wind, y_wind"),
        (lambda: load_downscaling("wind4").averaged("wind8"), "others has a str; pass nets, as"),
        (
            lambda: fit_between(
                *(Between(2), CHANNELS, CHANNELS),
                **{"recipe": Recipe(2), "epochs": 1, "patches": Patches(8, 2), "seed": None},
            ),
            "seed is None; it must be a whole number",
        ),
    ],
)
def test_what_cannot_be_meant_is_named(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_hours_within_which_times_are_one_are_a_number():
    dated = FIELDS.assign_coords(time=np.array(["2020-01-01", "2020-01-02", "2020-01-03"], "M8"))
    with pytest.raises(ValueError, match="tolerance_h is '1'; it must be a number"):
        wind.matched(wind.coarser(dated, 4), dated, 4, tolerance_h="1")


def test_a_channel_that_never_changes_is_named():
    hills = wind.with_hills(FIELDS, seed=1)
    hills["orography"][:] = 100.0
    with pytest.raises(ValueError, match="that of orography among it; each must be positive"):
        wind.fit_normaliser(wind.channels(hills, NAMES, ["orography"]))


def test_one_variable_needs_no_list():
    assert wind.channels(FIELDS, "x_wind").sizes["channel"] == 1


@pytest.mark.parametrize("columns", [np.arange(360.0), np.arange(-180.0, 180.0), np.arange(361.0)])
@pytest.mark.parametrize("first", [-2.5, 176.5, 357.5, 359.2, -180.9])
def test_relief_of_the_whole_earth_has_no_seam(columns, first):
    """It refused points between its last column and its first."""
    rows = np.arange(30.0, 61.0)
    rise = 1000 + 500 * np.sin(np.radians(columns)) + 3 * rows[:, None]
    axes = {"latitude": rows, "longitude": columns}
    earth = xr.Dataset({"orography": (("latitude", "longitude"), rise, {"units": "m"})}, axes)
    places = {"latitude": ("y", np.linspace(40, 41, 16)), "longitude": ("x", first + np.arange(16))}
    found = wind.with_statics(FIELDS.assign_coords(places), earth).orography
    east = np.radians(found.longitude.values)
    expected = 1000 + 500 * np.sin(east) + 3 * found.latitude.values[:, None]
    np.testing.assert_allclose(found, expected, atol=0.05)
