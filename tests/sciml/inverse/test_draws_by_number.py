"""What a posterior net says of an observation does not depend on what stands beside it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpyro.distributions import Normal, Uniform

import sciml
from sciml.inverse import program
from sciml.inverse import result as many
from sciml.models import Dense, Ensemble, FlowMatching, Gaussian, SplineFlow
from sciml.ode import Truncated
from sciml.train import Recipe

pytestmark = pytest.mark.usefixtures("quick_compilation")

SMALL = Dense(width=8, depth=1)
NETS = {
    "gaussian": Gaussian(width=8, depth=1),
    "embedded": Gaussian(width=8, depth=1, embedding=SMALL),
    "spline": SplineFlow(width=8, depth=1, layers=1, bins=4),
    "flow": FlowMatching(width=8, depth=1, steps=2),
    "ensemble": Ensemble(Gaussian(width=8, depth=1), 2),
}
ROWS = 12


def seen(theta, rng):
    return theta[:, :1] + theta[:, 1:] * np.linspace(0, 1, 6) + rng.normal(0, 0.3, (len(theta), 6))


def made(net, prior):
    rng = np.random.default_rng(0)
    theta = rng.uniform(0, 0.5, (300, 2))
    data = sciml.dataset(theta, seen(theta, rng), names=("a", "b"), prior=prior)
    return sciml.fit(net, data, epochs=2, recipe=Recipe(batch=50, learning_rate=1e-3))


@pytest.fixture(scope="module")
def fits():
    free = {"a": Normal(0.25, 0.2), "b": Normal(0.25, 0.2)}
    found = {name: made(net, free) for name, net in NETS.items()}
    below = {("a", "b"): Truncated({"a": Uniform(0, 1), "b": Uniform(0, 1)}, inside="a + b < 1")}
    return found | {"rule": made(NETS["gaussian"], below)}


@pytest.fixture(scope="module")
def observed(fits):
    rng = np.random.default_rng(1)
    theta = rng.uniform(0, 0.5, (ROWS, 2))
    return sciml.dataset(theta, seen(theta, rng), names=("a", "b"))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    name=st.sampled_from([*NETS, "rule"]),
    count=st.integers(1, ROWS),
    at_once=st.sampled_from([1, 5, 1024]),
    seed=st.integers(0, 3),
)
def test_draws_of_an_observation_are_those_of_its_number(
    fits, observed, name, count, at_once, seed
):
    fit = fits[name]
    whole = fit.sample(observed, draws=7, seed=seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program, "PREDICT_BATCH", at_once)
        part = fit.sample(observed.isel(sample=slice(count)), draws=7, seed=seed)
    others = observed.copy(deep=True)
    others["observation"][count:] += 0.3
    beside = fit.sample(others, draws=7, seed=seed)
    for found in (part, beside.isel(sample=slice(count))):
        assert np.allclose(found.posterior, whole.posterior[:, :count], atol=1e-5)
        if name == "rule":
            assert np.allclose(found.inside, whole.inside[:count])


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    name=st.sampled_from([*NETS, "rule"]),
    count=st.integers(1, ROWS),
    at_once=st.sampled_from([1, 5, 1024]),
)
def test_estimates_are_those_of_their_number(fits, observed, name, count, at_once):
    fit, whole = fits[name], fits[name].predict(observed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program, "PREDICT_BATCH", at_once)
        part = fit.predict(observed.isel(sample=slice(count)))
    for values in ("estimate", "spread"):
        assert np.allclose(part[values], whole[values][:count], atol=1e-5)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    name=st.sampled_from([*NETS, "rule"]),
    rows=st.permutations(range(ROWS)),
    count=st.integers(1, 9),
)
def test_densities_do_not_depend_on_the_place(fits, observed, name, rows, count):
    fit, rows = fits[name], list(rows)[:count]
    whole, part = (fit.log_prob(d, d.parameters) for d in (observed, observed.isel(sample=rows)))
    assert np.allclose(part, whole.isel(sample=rows), atol=1e-4)


@pytest.mark.slow
def test_observations_have_draws_of_their_own(fits, observed):
    alike = observed.isel(sample=[0] * 3)
    draws = fits["gaussian"].sample(alike, draws=400).posterior.values
    assert np.abs(np.diff(draws, axis=1)).min(axis=0).max() > 1e-6
    between = np.corrcoef(draws[:, :, 0].T)[np.triu_indices(3, 1)]
    assert np.abs(between).max() < 4 / np.sqrt(400)


@pytest.mark.parametrize("name", ["spline", "rule"])
def test_draws_beyond_memory_are_those_of_one_call(fits, observed, name, tmp_path, monkeypatch):
    fit = fits[name]
    monkeypatch.setattr(many, "CHUNK_BYTES", 5 * (4 * 9 * 2 + fit.reference[0].nbytes))
    stored = fit.sample(observed, draws=9, seed=2, out=tmp_path / "a.zarr")
    assert stored.chunksizes["sample"] == (5, 5, 2)
    assert np.allclose(stored.posterior, fit.sample(observed, draws=9, seed=2).posterior, atol=1e-5)


@settings(max_examples=15, deadline=None)
@given(total=st.integers(1, 700), least=st.integers(1, 9), times=st.integers(1, 40))
def test_batches_of_few_sizes_hold_all_rows_once(total, least, times):
    sizes, asked = (least, least * times), []

    def call(row):
        asked.append(len(row))
        return row[None]

    found = program.in_batches(call, (np.arange(total),), sizes, axis=1)
    assert found.tolist() == [[*range(total)]]
    assert {*asked} <= {*sizes}
    assert sum(asked) < 2 * total + least


def test_more_draws_go_on_from_fewer_and_compile_nothing(fits, observed):
    fit, one = fits["spline"], observed.isel(sample=[0])
    many = fit.sample(one, draws=900, seed=1).posterior
    fit.sample(observed, draws=1500)
    made = program.drawn(fit.model, fit.grid.inputs, 2, 128)
    before = made._cache_size()
    for draws in (130, 300, 777):
        fewer = fit.sample(one, draws=draws, seed=1).posterior
        assert np.allclose(fewer, many[:draws], atol=1e-5)
    fit.sample(observed.isel(sample=slice(5)), draws=222)
    assert made._cache_size() == before <= 2


@settings(max_examples=10, deadline=None)
@given(members=st.integers(1, 300), draws=st.integers(1, 2000))
def test_all_members_of_an_ensemble_give_as_many_draws(members, draws):
    """A turn of 128 had nothing of the 129th, and of seven members more of the first two."""
    turn = program.turn_of(Ensemble(Gaussian(), members), draws)
    assert turn % members == 0
    assert turn >= min(draws, program.TURNS[-1])
