"""Hours between: linear interpolation at first, better once what moves was learned."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from flax import nnx

from sciml import wind
from sciml.estimator import Patches, fit_between, load_between
from sciml.models import Between
from sciml.train import Recipe

pytestmark = pytest.mark.usefixtures("quick_compilation")
NAMES = ("x_wind", "y_wind")
SMALL = Between(steps=4, channels=4, blocks=1)


def drifting(seed, times=13, speed=2):
    """Wind that is carried along x by two points an hour, unchanged."""
    first = wind.gaussian(seed, 1, n=32)
    hours = np.datetime64("2020-01-01", "ns") + np.arange(times) * np.timedelta64(1, "h")
    moved = {
        name: (("time", "y", "x"), np.stack([np.roll(first[name].values[0], speed * t, axis=-1)
                                             for t in range(times)]))
        for name in NAMES
    }  # fmt: skip
    stored = xr.Dataset(moved, {"time": hours, "y": first.y, "x": first.x})
    for name in NAMES:
        stored[name].attrs = {"units": "m s-1", "standard_name": name}
    return wind.conform(stored, "a drift")


@pytest.fixture(scope="module")
def trained():
    """A net that has learned one drift in a few seconds."""
    train, held = (
        [wind.channels(drifting(s), NAMES) for s in seeds] for seeds in ((0, 1, 2), (3,))
    )
    return fit_between(SMALL, train, held, recipe=Recipe(8), epochs=2,
                       patches=Patches(16, 16))  # fmt: skip


@pytest.mark.slow
def test_a_fresh_net_is_linear_interpolation_and_turns_with_the_field():
    net = Between(steps=3, statics=1, wind=2, channels=4, blocks=1).build(nnx.Rngs(0))
    ends = jax.random.normal(jax.random.key(0), (2, 2, 2, 9, 8))
    found = net(ends, jnp.zeros((2, 1, 9, 8)))
    expected = [(1 - k / 3) * ends[:, 0] + k / 3 * ends[:, 1] for k in (1, 2)]
    assert np.allclose(found, np.stack(expected, axis=1), atol=1e-6)
    with pytest.raises(ValueError, match="0 static channels were passed to a net for 1"):
        net(ends)


@pytest.mark.parametrize("wrong", [{"steps": 1}, {"window": 4}, {"channels": 0}])
def test_sizes_that_make_no_net_are_refused(wrong):
    with pytest.raises(ValueError, match=rf"Between.{next(iter(wrong))} is"):
        Between(**wrong)


@pytest.mark.slow
def test_known_hours_stay_and_the_others_lie_between(trained):
    truth = drifting(4)
    known = truth.isel(time=slice(None, None, 4))
    made = trained.predict(known)
    assert np.array_equal(made.time, truth.time)
    assert np.array_equal(made.x_wind[::4], known.x_wind)
    assert "wind_speed" in made
    assert "3 times between each two" in made.attrs["changes"]


@pytest.mark.slow
def test_times_of_a_long_record_are_exact(trained):
    moments = np.datetime64("2020-01-01", "ns") + np.arange(961) * np.timedelta64(4, "h")
    calm = np.zeros((961, 8, 8), np.float32)
    fields = {
        name: (("time", "y", "x"), calm, {"units": "m s-1", "standard_name": name})
        for name in NAMES
    }
    lines = {axis: (axis, 1000.0 * np.arange(8), {"units": "m"}) for axis in ("y", "x")}
    made = trained.predict(wind.conform(xr.Dataset(fields, {"time": moments} | lines), "calm"))
    assert np.array_equal(np.diff(made.time), np.full(3840, np.timedelta64(1, "h")))


def test_a_net_is_kept_and_read_again(trained, tmp_path):
    again = load_between(trained.save(tmp_path / "hours.net"))
    known = drifting(4).isel(time=slice(0, 9, 4))
    assert np.array_equal(again.predict(known).y_wind, trained.predict(known).y_wind)
    assert (again.step_h, again.winds) == (1.0, NAMES)


def test_the_order_of_channels_in_a_dataset_does_not_matter(trained):
    known = drifting(4).isel(time=slice(0, 9, 4))
    assert trained.predict(known[["y_wind", "x_wind"]]).x_wind.equals(trained.predict(known).x_wind)


def test_times_of_another_step_and_gaps_are_refused(trained):
    fields = drifting(4)
    with pytest.raises(ValueError, match="times 0 and 1 are 2 h apart; they must be 4 h apart"):
        trained.predict(fields.isel(time=slice(None, None, 2)))
    gap = wind.channels(fields.isel(time=[0, 1, 2, 3, 5, 6, 7]), NAMES)
    whole = wind.channels(fields, NAMES)
    few = {"recipe": Recipe(4), "epochs": 1, "patches": Patches(16, 8)}
    with pytest.raises(ValueError, match="times 3 and 4 are 2 h apart; they must be 1 h apart"):
        fit_between(SMALL, gap, whole, **few)
    with pytest.raises(ValueError, match=r"sequences have steps of \[1.0, 2.0\] h"):
        fit_between(SMALL, whole[::2], whole, **few)
    with pytest.raises(ValueError, match="a sequence has 4 times of x_wind, y_wind; the net asks"):
        fit_between(SMALL, whole[:4], whole, **few)
    with pytest.raises(ValueError, match="13 values of a sequence are missing"):
        fit_between(SMALL, whole.where(whole != whole[0, 0, 0, 0]), whole, **few)
    with pytest.raises(ValueError, match=r"pass \(sample, 2, 2, y, x\) of x_wind, y_wind"):
        trained.between(np.zeros((1, 3, 2, 8, 8)))


@pytest.mark.usefixtures("untyped")
def test_ends_are_taken_by_their_labels_and_without_what_they_mask(trained):
    ends = np.random.default_rng(0).normal(size=(1, 2, 2, 16, 16)).astype("f4")
    known = trained.between(ends)
    dims = ("sample", "end", "channel", "y", "x")
    labelled = xr.DataArray(ends, {"channel": list(NAMES)}, dims)
    turned = labelled.isel(channel=[1, 0]).transpose("x", "sample", ..., "y")
    np.testing.assert_array_equal(trained.between(turned), known)
    with pytest.raises(ValueError, match="1 values missing"):
        trained.between(np.ma.masked_equal(np.where(ends == ends.max(), -999, ends), -999))
    with pytest.raises(ValueError, match="statics have shape"):
        trained.between(ends, np.zeros((1, 16, 16)))


@pytest.mark.slow
def test_a_training_with_other_patches_does_not_go_on(tmp_path, caplog):
    fields = [wind.channels(drifting(seed, times=6), NAMES) for seed in (0, 1)]
    for size in (16, 8):
        how = {"recipe": Recipe(2), "epochs": 1, "patches": Patches(size, 2)}
        fit_between(SMALL, *fields, **how, checkpoint=tmp_path / "hours.checkpoint")
    assert "it belongs to another run" in caplog.text
