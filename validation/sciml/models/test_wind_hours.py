"""A net for the hours between finds what linear interpolation cannot: wind carried along."""

import numpy as np
import xarray as xr

from sciml import wind
from sciml.estimator import Patches, fit_between
from sciml.models import Between
from sciml.train import Recipe

NAMES = ("x_wind", "y_wind")


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


def test_a_net_learns_what_moves():
    train, held = (
        [wind.channels(drifting(s), NAMES) for s in seeds] for seeds in ((0, 1, 2), (3,))
    )
    net = fit_between(
        Between(steps=4, channels=16, blocks=1), train, held,
        recipe=Recipe(8, 5e-3), epochs=40, patches=Patches(24, 64),
    )  # fmt: skip
    truth = drifting(4)
    known = truth.isel(time=slice(None, None, 4))
    made, linear = net.predict(known), known[["x_wind"]].interp(time=truth.time)
    error = [float(((one.x_wind - truth.x_wind) ** 2).mean()) ** 0.5 for one in (made, linear)]
    assert error[0] < 0.9 * error[1]
