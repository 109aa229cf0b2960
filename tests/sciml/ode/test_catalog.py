"""Every problem of the catalogue: what is true of all of them."""

import numpy as np
import pytest

from sciml.ode import CATALOG, TRUTHS, Static, simulate

# Short traces, long integrations: fewer samples.
SAMPLES = {"lorenz96": 100, "hodgkin_huxley_stochastic": 100, "hodgkin_huxley": 100}


@pytest.mark.parametrize("name", CATALOG)
def test_the_prior_predictive_is_finite(name: str):
    problem = CATALOG[name]()
    samples = SAMPLES.get(name, 200)
    data = simulate(problem, samples=samples, seed=3, noise=problem.noise)
    assert data.valid.mean() > 0.99
    seen = data.observation.values[data.valid.values]
    assert np.isfinite(seen).all()
    assert seen.std(axis=0).max() > 0
    assert data.attrs["system"] == name


@pytest.mark.parametrize("name", CATALOG)
def test_names_and_true_values_fit(name: str):
    problem = CATALOG[name]()
    assert problem.name == name
    assert problem.reference
    assert len(TRUTHS[name]) == len(problem.prior)
    for value, prior in zip(TRUTHS[name], problem.prior.values(), strict=True):
        assert prior.support(value), value


@pytest.mark.parametrize("name", sorted(set(CATALOG) - {"fitzhugh_nagumo"}))
def test_the_published_noise_comes_with_the_problem(name: str):
    assert CATALOG[name]().noise.describe()["kind"]


@pytest.mark.parametrize("name", ["gaussian_linear", "slcp", "two_moons"])
def test_the_same_seed_gives_the_same_numbers(name: str):
    problem = CATALOG[name]()
    assert isinstance(problem, Static)
    one, two = (simulate(problem, samples=4, seed=7, noise=problem.noise) for _ in range(2))
    np.testing.assert_array_equal(one.observation, two.observation)
    assert one.observation.shape == (4, problem.features)


def test_both_tables_name_the_same_problems():
    assert list(CATALOG) == list(TRUTHS) == sorted(CATALOG)
