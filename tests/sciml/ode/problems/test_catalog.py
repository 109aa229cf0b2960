"""Every problem of the catalogue: what is true of all of them."""

from pathlib import Path

import numpy as np
import pytest

from sciml.ode import CATALOG, TRUTHS, Static, simulate

pytestmark = pytest.mark.usefixtures("quick_compilation")
# Long integrations get fewer samples.
SAMPLES = {"lorenz96": 20, "hodgkin_huxley_stochastic": 100, "hodgkin_huxley": 100}


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
    assert "channel" not in data.dims or "channel" in data.coords  # exchanged ones are refused


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


def seen(problem) -> str:
    """Return what is seen of a problem, as the table of the documentation says it."""
    if isinstance(problem, Static):
        return f"{problem.features} numbers"
    observation = problem.observation
    if observation.transform:
        return f"4 statistics of {len(observation.states)} states"
    return f"{len(observation.times)} times × {len(observation.states)}"


@pytest.mark.parametrize("name", CATALOG)
def test_the_documentation_has_a_row_for_each(name: str):
    problem = CATALOG[name]()
    noise = problem.noise.describe()["kind"] if problem.noise else "none published"
    row = f"| `{name}` | {', '.join(problem.parameter_names)} | {seen(problem)} | {noise} |"
    assert row in (Path(__file__).parents[4] / "docs/catalogue.md").read_text().splitlines()
