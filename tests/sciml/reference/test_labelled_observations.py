"""Observations with labels in any order, whose draws are weighed by a trained net."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from numpyro import distributions as dist

import sciml
from sciml.ode import Gaussian, Static, simulate
from sciml.reference import Hyper, Population, importance, smc, target

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


@pytest.mark.slow
def test_samplers_read_the_labels_of_a_table():
    """Of pandas, as of xarray: another order is refused, and what pandas counts are no labels."""
    problem = sciml.ode.lotka_volterra()
    seen = simulate(problem, 1, seed=1, noise=problem.noise).observation[0]

    def likelihood(observed):
        made = target(problem, observed, problem.noise, sciml.ode.RungeKutta4())
        return float(made.log_likelihood(jnp.zeros(4)))

    table = seen.to_pandas()
    for same in (table.reset_index(drop=True), pd.DataFrame(table.to_numpy()), table):
        assert likelihood(same) == likelihood(seen)
    for turned, said in (
        (table[["predators", "prey"]], r"channel\[0\] of the observations is predators, but prey"),
        (table[::-1], r"time\[0\] of the observations is 18.9.*, but 0.0"),
        (table.set_axis(table.index * 7), r"time\[1\] of the observations is 14.7.*, but 2.1"),
    ):
        with pytest.raises(ValueError, match=said):
            target(problem, turned, problem.noise, sciml.ode.RungeKutta4())


@pytest.mark.slow
def test_a_number_that_stands_for_a_missing_value_is_told(caplog):
    """Taken for measured, it would decide the posterior alone."""
    line = Static("line", {"mean": dist.Normal(0.0, 1.0)}, 4, Gaussian(0.5), solution=four)
    few = Population(particles=10, moves=1, temperatures=2000)
    smc(line, np.array([0.3, -999.0, 0.4, 0.1]), settings=few)
    assert "1 of the observation are -999, far from the others" in caplog.text
    caplog.clear()
    smc(line, np.array([0.3, np.nan, 0.4, 0.1]), settings=few)
    assert not caplog.text


def four(theta):
    """A mean, seen four times."""
    return jnp.repeat(theta[0], 4)
