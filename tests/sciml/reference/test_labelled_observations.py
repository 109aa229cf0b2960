"""Observations with labels in any order, whose draws are weighed by a trained net."""

import numpy as np
import pytest
from numpyro import distributions as dist

import sciml
from sciml.ode import Gaussian, Static, simulate
from sciml.reference import Hyper, importance

pytestmark = [
    pytest.mark.usefixtures("quick_compilation"),
    pytest.mark.filterwarnings("ignore::sciml.estimator.CollapseWarning"),
]
LABELS = ["zebra", "ant", "bee", "cow"]


@pytest.fixture(scope="module")
def line():
    prior = {"first": dist.Normal(0.0, 1.0), "second": dist.Normal(0.0, 2.0)}
    problem = Static(name="line", prior=prior, features=2, noise=Gaussian(sd=0.5))
    data = simulate(problem, samples=200, noise=problem.noise)
    fit = sciml.fit(sciml.models.Gaussian(width=8, depth=1), data, epochs=3)
    return problem, fit, data[["observation"]].isel(sample=slice(4))


@pytest.mark.slow
def test_weights_are_those_of_the_same_observations_without_labels(line):
    problem, fit, seen = line
    bare = importance(fit, problem, seen, draws=200, proposals=1000)
    named = importance(fit, problem, seen.assign_coords(sample=LABELS), draws=200, proposals=1000)
    np.testing.assert_array_equal(named.posterior, bare.posterior)


@pytest.mark.slow
@pytest.mark.usefixtures("thorough_compilation")
def test_a_population_of_named_individuals_is_that_of_unnamed_ones(line):
    problem, fit, seen = line
    asked = {"draws": 100, "proposals": 200, "hyper": Hyper(correlation=None), "seed": 0}
    bare = sciml.population(fit, problem, seen, **asked)
    named = sciml.population(fit, problem, seen.assign_coords(sample=LABELS), **asked)
    np.testing.assert_array_equal(named.posterior, bare.posterior)
