"""Bare arrays say no unit: what lies far from the training is told, once; a storm is not."""

import numpy as np
import pytest
from flax import nnx

from sciml.downscale.between import Interpolation
from sciml.downscale.result import Downscaling
from sciml.models import Between, SuperResolution
from sciml.train import Trained
from sciml.wind.prepare.channels import Normaliser

pytestmark = pytest.mark.usefixtures("quick_compilation")
# In m/s, m and K.
NAMES = ("wind_speed", "surface_altitude", "air_temperature")
MODEL = SuperResolution(2, channels=2, blocks=1, statics=1, beside=1)
DRAW = np.random.default_rng(0)
SPEED = DRAW.normal(8, 4, (3, 8, 8)).clip(0)
WARMTH = DRAW.normal(283, 6, (3, 8, 8))
RELIEF = DRAW.gamma(1.0, 300.0, (1, 16, 16))


def fresh(model, names, means, spreads, kind=Downscaling):
    """A net as it starts."""
    nothing = np.zeros(0, np.float32)
    params = nnx.split(model.build(nnx.Rngs(0)), nnx.Param)[1]
    trained = Trained(params, nothing, nothing, nothing, 0.0, 0.0, 0.0)
    return kind(model, Normaliser(names, means, spreads), trained)


def beside(speed=SPEED, warmth=WARMTH):
    return np.stack([speed, warmth], axis=1)


@pytest.mark.parametrize(
    ("coarse", "relief", "said"),
    [
        (beside(), RELIEF, set()),
        (beside(SPEED + 20), RELIEF, set()),  # a storm
        (beside(np.where(SPEED > 12, np.nan, SPEED)), RELIEF, set()),
        (beside(SPEED * 3.6), RELIEF, {"wind_speed"}),  # km/h
        (beside(SPEED * 1e-3), RELIEF, set()),  # calm
        (beside(SPEED * 1e3), RELIEF, {"wind_speed"}),
        (beside(warmth=WARMTH - 273.15), RELIEF, {"air_temperature"}),  # °C
        (beside(), RELIEF * 100, {"surface_altitude"}),  # cm
    ],
)
def test_another_unit_is_told_once_of_each_channel(coarse, relief, said, caplog):
    net = fresh(MODEL, NAMES, (8.0, 300.0, 283.0), (4.5, 300.0, 8.0))
    for _ in range(2):
        net.refine(coarse, relief)
    told = [r.args[0] for r in caplog.records if "is it in the unit" in r.getMessage()]
    assert sorted(told) == sorted(said)


def test_hours_between_fields_in_another_unit_are_told_of(caplog):
    names, draw = ("x_wind", "y_wind"), np.random.default_rng(1)
    net = fresh(Between(2, channels=2, blocks=1), names, (0.0, 0.0), (6.0, 6.0), Interpolation)
    ends = draw.normal(0, 6, (1, 2, 2, 8, 8))
    net.between(ends)
    assert not caplog.records
    net.between(ends * 100)  # cm/s
    assert "x_wind lies " in caplog.text
    assert "y_wind lies " in caplog.text
