"""Nets of black boxes that are too wide are flagged, and refined."""

import logging

import numpy as np
import pytest

import sciml
from sciml.models import Gaussian
from sciml.ode import BlackBox
from sciml.train import Recipe
from tests.sciml.reference.test_sharpness import PRIOR, Widened, line, seen


@pytest.mark.filterwarnings("ignore::sciml.inverse.CollapseWarning")
def test_a_rough_net_of_a_black_box_is_flagged_and_refined(caplog):
    """It says which parameter, and rounds of simulations with failed rows bring it to the truth."""
    box, one = BlackBox(line, PRIOR), seen(1)
    data = sciml.simulate(box, 300)
    assert not data.valid.all()
    fit = sciml.fit(Gaussian(width=16, depth=1), data, epochs=8, recipe=Recipe(batch=50))
    with caplog.at_level(logging.WARNING):
        rough = fit.sample(one, 500, check=box)
    assert rough.flagged.all()
    assert float(rough.too_wide.max()) > 1.7
    assert "times too wide in" in caplog.text
    sharp = sciml.refine(fit, box, one, rounds=3, simulations=800, epochs=80)
    after, true = (each.sample(one, 1000, 0).posterior[:, 0] for each in (sharp, Widened(1.0)))
    off = np.abs(after.mean("draw").values - true.mean("draw").values)
    assert (off < 2 * true.std("draw").values).all()
    assert (after.std("draw") < 1.7 * true.std("draw").values).all()
