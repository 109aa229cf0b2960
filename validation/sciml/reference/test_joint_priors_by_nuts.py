"""Chains under joint priors, against the closed form and the grid of `test_joint_priors`."""

import pytest

from sciml.reference import Chains, Population, nuts
from tests.sciml.reference.test_joint_priors import (
    BELOW,
    NORMAL,
    SEEN,
    by_grid,
    close,
    exact,
    inside,
)

pytestmark = pytest.mark.usefixtures("quick_compilation")
FEW = Chains(warmup=200, draws=500, starts=Population(particles=200, moves=10))


def test_nuts_gives_the_exact_posterior_of_a_correlated_prior():
    mean, covariance, _ = exact()
    found = nuts(NORMAL, SEEN, settings=FEW)
    assert [*found.parameter.values] == ["a", "b"]
    close(found.posterior.values, mean, covariance, 0.1)


def test_to_nuts_a_rule_is_a_wall_that_it_counts():
    found = nuts(BELOW, SEEN, settings=FEW)
    inside(found.posterior.values, by_grid(BELOW)[0])
    assert found.attrs["divergences"] > 0
