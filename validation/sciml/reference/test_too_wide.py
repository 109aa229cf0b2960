"""Nets of black boxes that are too wide are flagged."""

import logging

import pytest

import sciml
from sciml.models import Gaussian
from sciml.ode import BlackBox
from sciml.train import Recipe
from tests.sciml.reference.test_sharpness import PRIOR, line, seen


@pytest.mark.filterwarnings("ignore::sciml.inverse.CollapseWarning")
def test_a_rough_net_of_a_black_box_is_flagged(caplog):
    """It says which parameter; failed rows are left out."""
    box, one = BlackBox(line, PRIOR), seen(1)
    data = sciml.simulate(box, 300)
    assert not data.valid.all()
    fit = sciml.fit(Gaussian(width=16, depth=1), data, epochs=8, recipe=Recipe(batch=50))
    with caplog.at_level(logging.WARNING):
        rough = fit.sample(one, 500, check=box)
    assert rough.flagged.all()
    assert float(rough.too_wide.max()) > 1.7
    assert "too wide by simulations" in caplog.text
