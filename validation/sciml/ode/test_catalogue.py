"""The catalogue's integrators against steps four times shorter, and our samplers against sbibm."""

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

from sciml.ode import CATALOG, RungeKutta4, Static, simulate
from sciml.reference import nuts, sbibm_posterior, smc

# Median over the prior of the largest error over the times, in the unit of what is seen; of
# `sir` in people of a million, of `hodgkin_huxley` in mV. Chaos grows the rest of lorenz63's.
ERRORS = {
    "fitzhugh_nagumo": 2e-3,
    "fitzhugh_nagumo_ramsay": 2e-5,
    "goodwin": 2e-5,
    "hodgkin_huxley": 0.2,
    "lorenz63": 5e-3,
    "lotka_volterra": 5e-4,
    "sir": 1.0,
    "van_der_pol": 5e-4,
}


@pytest.mark.validation
@pytest.mark.parametrize("name", sorted(ERRORS))
def test_the_default_step_is_short_enough(name: str):
    problem = CATALOG[name]()
    assert not isinstance(problem, Static)
    usual = problem.method or RungeKutta4()
    finer = (
        {"substeps": 4 * usual.substeps}
        if usual.longest_step is None
        else {"longest_step": usual.longest_step / 4}
    )
    coarse = simulate(problem, samples=100, seed=5)
    assert coarse.valid.mean() > 0.99
    theta = coarse.parameters.values
    fine = simulate(problem, parameters=theta, method=replace(usual, dtype="float64", **finer))
    error = np.abs(coarse.observation.values - fine.observation.values)
    assert np.median(error.reshape(100, -1).max(axis=1)) < ERRORS[name]


@pytest.mark.validation
def test_the_prior_predictive_of_the_chaotic_ring_is_finite():
    problem = CATALOG["lorenz96"]()
    data = simulate(problem, samples=100, seed=3, noise=problem.noise)
    assert data.valid.mean() > 0.99
    assert np.isfinite(data.observation.values[data.valid.values]).all()


@pytest.mark.validation
@pytest.mark.skipif(find_spec("sbibm") is None, reason="needs the files of sbibm")
@pytest.mark.parametrize("sampler", [nuts, smc])
@pytest.mark.parametrize("task", ["gaussian_linear", "lotka_volterra", "sir"])
def test_our_samplers_find_the_posteriors_of_the_benchmark(task: str, sampler):
    """Means within 0.15 posterior sd (the standard error of 300 draws is 0.06), sd within 10 %."""
    known = sbibm_posterior(task, 1).posterior
    problem = CATALOG[task]()
    found = sampler(problem, sbibm_posterior(task, 1).observation.values).posterior
    z = (found.mean("draw") - known.mean("draw")) / known.std("draw")
    assert np.abs(z).max() < 0.15
    np.testing.assert_allclose(found.std("draw") / known.std("draw"), 1, atol=0.1)


@pytest.mark.validation
@pytest.mark.skipif(find_spec("sbibm") is None, reason="needs the files of sbibm")
@pytest.mark.parametrize("task", ["two_moons", "slcp"])
def test_tempering_weighs_the_modes_of_the_benchmark(task: str):
    known = sbibm_posterior(task, 1).posterior
    found = smc(CATALOG[task](), sbibm_posterior(task, 1).observation.values, seed=2).posterior
    for i in range(found.sizes["parameter"]):
        shares = [float((x[:, i] > known[:, i].median()).mean()) for x in (found, known)]
        assert shares[0] == pytest.approx(shares[1], abs=0.08)
