"""Draws of a net whose problem has no likelihood, doubted by simulations alone."""

import dataclasses

import jax.numpy as jnp
import numpyro.distributions as dist
import pytest

import sciml
from sciml.diagnose import c2st
from sciml.ode import Gaussian as Error
from sciml.ode import Missing
from sciml.reference.trust import has_likelihood
from tests.sciml.inverse.test_refine import decay, rough


@dataclasses.dataclass(frozen=True)
class Laplace:
    """A noise without a density that is known here."""

    estimate = False
    prior: dict = dataclasses.field(default_factory=dict)

    def apply(self, key, clean, levels):
        """Add it."""
        return clean + 0.1 * dist.Laplace().sample(key, jnp.shape(clean))

    def describe(self):
        """Return its name."""
        return {"kind": "Laplace"}


def test_without_likelihood_simulations_judge():
    """The local C2ST stands in, with a p-value."""
    problem = decay(Laplace())
    assert not has_likelihood(problem.noise)
    assert not has_likelihood(Missing(problem.noise, 0.1))
    fit = rough(problem)
    seen = sciml.simulate(problem, 3, seed=1, noise=problem.noise)
    found = fit.sample(seen, 10, check=problem)
    assert "local C2ST" in found.attrs["check"]
    assert found.p_value.values.min() <= 0.05
    assert found.flagged.values[found.p_value.values < 0.05].all()
    refined = fit.replace(attrs=fit.attrs | {"refinement": "{}"})
    found = refined.sample(seen, 10, check=problem)  # of which the prior's simulations say nothing
    assert found.attrs["check"] == "simulations at the draws"
    assert "p_value" not in found
    assert found.flagged.values[(found.too_wide > 1.4).any("parameter").values].all()


def test_a_refined_fit_is_what_a_sampler_says_and_so_are_the_weights():
    """Neither the net nor the choice of its round has seen these draws of NUTS."""
    problem = decay(Error(sd=0.1))
    fit = rough(problem)
    seen = sciml.simulate(problem, 1, seed=1, noise=problem.noise)
    sampled = sciml.reference.nuts(problem, seen.observation[0], noise=problem.noise, seed=0)
    true = sampled.posterior.values.reshape(-1, 2)[:2000]

    def off(each):
        return float(c2st(each.sample(seen, 2000).posterior[:, 0].values, true).score)

    sharp = sciml.refine(fit, problem, seen, rounds=4, simulations=1500, epochs=100)
    told = float(sharp.sample(seen, 10, check=problem).c2st[0])
    assert off(fit) > 0.9
    assert off(sharp) < 0.6
    assert told == pytest.approx(off(sharp), abs=0.06)
