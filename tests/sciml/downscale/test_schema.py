"""Fields that are not in the schema, wherever they come in: put right, or refused in one line."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from sciml import wind
from sciml.downscale.comparison import scores
from sciml.estimator import Patches, fit_between, fit_downscaling, load_downscaling
from sciml.models import Between, SuperResolution
from sciml.train import Recipe

pytestmark = pytest.mark.usefixtures("quick_compilation", "untyped")
NAMES = ("x_wind", "y_wind")
HOW = {"recipe": Recipe(2), "epochs": 1, "patches": Patches(8, 2)}
HOURS = Between(steps=2, channels=4, blocks=1)


@pytest.fixture(scope="module")
def fine():
    dates = pd.date_range("2020-01-01", periods=4, freq="6h")
    drawn = wind.conform(wind.gaussian(seed=0, snapshots=4, n=32), "a test")
    return drawn.assign_coords(time=dates)


@pytest.fixture(scope="module")
def net():
    return load_downscaling("wind4")


def fit(fields):
    return fit_downscaling(SuperResolution(4, 4, 1, wind=2), fields, fields, **HOW)


def faster(winds):
    """One component in km/h, as it says."""
    changed = winds.copy()
    changed["x_wind"] = (winds["x_wind"] * 3.6).assign_attrs(units="km/h")
    return changed


def turned(winds):
    return winds.isel(y=slice(None, None, -1))


def several(winds):
    both = xr.concat([winds, 1.1 * winds], "member")
    return both.map(lambda field: field.assign_attrs(units="m s-1"))


WRONG = {
    faster: r"x_wind is in km/h; it must be in m s-1",
    turned: r"y descends from .*; y must ascend, else the field is a mirror image",
    several: r"is on members 0, 1; take one",
}
USES = {
    "predict": lambda net, fine, wrong: net.predict(wrong(wind.coarser(fine, 4))),
    "onto_blocks": lambda _, fine, wrong: wind.onto_blocks(wrong(wind.coarser(fine, 4)), fine, 4),
    "matched": lambda _, fine, wrong: wind.matched(wind.coarser(fine, 4), wrong(fine), 4),
    "truth": lambda net, fine, wrong: scores(net.predict(wind.coarser(fine, 4)), wrong(fine), 4),
    "scored": lambda net, fine, wrong: scores(wrong(net.predict(wind.coarser(fine, 4))), fine, 4),
    "coarse": lambda net, fine, wrong: scores(fine, fine, 4, wrong(wind.coarser(fine, 4))),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_units_rows_and_members_are_looked_at_wherever_winds_come_in(use, wrong, net, fine):
    """A score of a truth in km/h was 15 m/s, that of rows from the north 8 m/s, without a word."""
    with pytest.raises(ValueError, match=WRONG[wrong]):
        USES[use](net, fine, wrong)


def test_so_are_those_of_labelled_arrays(net, fine):
    channels = wind.channels(fine, NAMES)
    for use in (fit, net.refine):
        with pytest.raises(ValueError, match=WRONG[turned]):
            use(turned(channels))
        with pytest.raises(ValueError, match=WRONG[faster]):
            use(channels.assign_attrs(units="km/h"))


def test_a_speed_is_not_made_of_two_units(fine):
    earth = fine.rename(x_wind="eastward_wind", y_wind="northward_wind")
    earth["northward_wind"] = (earth["northward_wind"] * 3.6).assign_attrs(units="km/h")
    with pytest.raises(ValueError, match="northward_wind is in km/h"):
        wind.speed_and_direction(earth)


def test_a_truth_in_metres_elsewhere_is_another(net, fine):
    prediction = net.predict(wind.coarser(fine, 4))
    with pytest.raises(ValueError, match=r"differ in x by up to 1e\+06 m"):
        scores(prediction, fine.assign_coords(x=fine.x + 1e6), 4)
    near = fine.assign_coords(x=fine.x + 100.0)
    pd.testing.assert_frame_equal(scores(prediction, near, 4), scores(prediction, fine, 4))


def test_axes_may_come_in_any_order(net, fine):
    """Blocks were taken of the two last axes, whatever these were."""
    other = fine.transpose("x", "time", "y")
    coarse = wind.coarser(fine, 4)
    for name in NAMES:
        got = wind.coarser(other, 4)[name].transpose("time", "y", "x")
        np.testing.assert_array_equal(got, coarse[name])
    undated = other.drop_vars("time")
    assert dict(wind.coarser(undated, 4).sizes) == {"time": 4, "y": 8, "x": 8}
    table = scores(net.predict(coarse), fine, 4)
    pd.testing.assert_frame_equal(scores(net.predict(coarse), other, 4), table)
    more = fine.assign(start=("time", np.arange(4.0)))
    assert wind.coarser(more, 4).start.dims == ("time",)


@pytest.mark.slow
def test_channels_are_taken_by_their_names(fine):
    """Validation in another order was scored with its components exchanged."""
    first, other = (wind.channels(fine, names) for names in (NAMES, NAMES[::-1]))
    for kind, model in ((fit_downscaling, SuperResolution(4, 4, 1, wind=2)), (fit_between, HOURS)):
        wanted = kind(model, [first, first], first, **HOW).trained
        for fields, held in (([first, first], other), ([first, other], first)):
            found = kind(model, fields, held, **HOW).trained
            np.testing.assert_array_equal(found.validation, wanted.validation)
            np.testing.assert_array_equal(found.loss, wanted.loss)
        with pytest.raises(
            ValueError, match=r"channels of the fields are .*; they must be the sam"
        ):
            kind(
                model,
                first,
                first.assign_coords(channel=["eastward_wind", "northward_wind"]),
                **HOW,
            )


def test_one_time_has_no_hours_between(fine):
    with pytest.raises(ValueError, match="there are 1 times; two at least have some between"):
        fit_between(HOURS, *[wind.channels(fine[{"time": [0]}], NAMES)] * 2, **HOW)
