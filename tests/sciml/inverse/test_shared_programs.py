"""Fits of equal shapes share one compiled program, and nothing else."""

import jax
import numpy as np
import pytest
from numpyro.distributions import Normal

import sciml
from sciml.ode import Gaussian, Static
from sciml.train import Recipe, loop


@pytest.fixture
def programs(monkeypatch):
    """Return the programs that are kept, none at first."""
    kept: dict = {}
    monkeypatch.setattr(loop, "SHARED", kept)
    return kept


def fitted(unit=1.0, seed=0, rate=3e-3, **changes):
    """Return a small fit to data of a unit and seed."""
    task = Static("line", {"a": Normal(0.0, unit)}, 1, Gaussian(sd=0.1 * unit))
    data = sciml.simulate(task, 60, noise=task.noise, seed=seed)
    net = sciml.models.Gaussian(width=8, depth=1)
    sizes = {"epochs": 3, "recipe": Recipe(batch=20, learning_rate=rate), **changes}
    return sciml.fit(net, data, seed=seed, **sizes)


def weights(fit):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(fit.params)])


@pytest.mark.slow
def test_a_second_fit_uses_the_program_of_the_first_and_has_its_own_numbers(programs):
    """Other data in another unit, by another seed: bit for bit as without the first."""
    first, second = fitted(), fitted(1e6, seed=1, validation=None)
    assert len(programs) == 1
    programs.clear()
    alone = fitted(1e6, seed=1)
    np.testing.assert_array_equal(weights(second), weights(alone))
    assert not np.array_equal(weights(first), weights(second))


@pytest.mark.slow
def test_what_is_compiled_in_makes_another_program(programs):
    """Step sizes, how many updates, and noise that is drawn while it trains, which has scalings."""
    one = fitted()
    assert not np.array_equal(weights(one), weights(fitted(rate=1e-2)))
    fitted(epochs=4)
    assert len(programs) == 3
    fitted(noise=Gaussian(sd=0.3))
    assert len(programs) == 3
    fitted()
    assert len(programs) == 3
