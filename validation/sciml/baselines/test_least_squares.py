"""Least squares from many starts finds the parameters of neurons."""

from dataclasses import replace

import numpy as np
import pytest

from sciml.baselines import Search, least_squares
from sciml.ode import Observation, RungeKutta4, fitzhugh_nagumo, simulate

pytestmark = [pytest.mark.validation, pytest.mark.usefixtures("quick_compilation")]


def test_least_squares_recovers_neurons():
    """Seen for 50 ms, three to six spikes."""
    seen = Observation.regular(interval=0.2, length=250)
    problem = replace(fitzhugh_nagumo(), observation=seen, method=RungeKutta4(substeps=9))
    test = simulate(problem, samples=12, seed=12)
    found = least_squares(problem, test, settings=Search(pool=500, starts=2, steps=15))
    error = np.abs(found.estimate - test.parameters).max("parameter")
    assert (error < 1e-3).mean() > 0.7
    assert (found.misfit[error < 1e-3] < 1e-2).all()
