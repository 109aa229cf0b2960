"""A net for the hours between finds what linear interpolation cannot: wind carried along."""

from sciml import wind
from sciml.estimator import Patches, fit_between
from sciml.models import Between
from sciml.train import Recipe
from tests.sciml.downscale.test_between import NAMES, drifting


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
