"""Populations, and several trials of one parameter value, against closed forms."""

import importlib
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from numpyro import distributions as dist
from scipy import stats

import sciml
from sciml.ode import Gaussian, Static, Truncated
from sciml.reference import Hyper, population, trials

pytestmark = pytest.mark.usefixtures("quick_compilation")
NAMES, PRIOR, SD = ("first", "second"), np.array([1.0, 2.0]), 0.5
ALONE = Hyper(correlation=None)
FEW = {"draws": 400, "proposals": 300, "hyper": ALONE}


@dataclass(frozen=True)
class Exact:
    """A net that answers with the exact posterior of `line`, but `off` by so much of its width."""

    unit: float = 1.0
    names: tuple[str, ...] = NAMES
    off: float = 0.0

    def parts(self, data):
        prior = self.unit * np.array([PRIOR[NAMES.index(name)] for name in self.names])
        noise = self.unit * SD
        sd = 1 / np.hypot(1 / prior, 1 / noise)
        return data.values * prior**2 / (prior**2 + noise**2) + self.off * sd, sd

    def sample(self, data, draws, seed):
        mean, sd = self.parts(data)
        noise = np.random.default_rng(seed).normal(size=(draws, *mean.shape))
        dims = ("draw", "sample", "parameter")
        return xr.Dataset({"posterior": (dims, mean + sd * noise)}, {"parameter": [*self.names]})

    def log_prob(self, data, parameters):
        return xr.DataArray(stats.norm.logpdf(parameters, *self.parts(data)).sum(1), dims="sample")


def line(unit=1.0, names=NAMES):
    prior = {name: dist.Normal(0.0, unit * PRIOR[NAMES.index(name)]) for name in names}
    return Static("line", prior, len(names), Gaussian(sd=unit * SD))


def measured(values):
    return xr.Dataset({"observation": (("sample", "feature"), np.float32(values))})


def individuals(count, seed=0):
    rng = np.random.default_rng(seed)
    theta = np.array([0.5, -1.0]) + np.array([0.4, 0.8]) * rng.normal(size=(count, 2))
    return theta + SD * rng.normal(size=(count, 2))


def quadrature(x, prior):
    """Mean and sd of μ and of σ, and the mean of each θᵢ, of one parameter by itself."""
    mu, tau = np.meshgrid(prior * np.linspace(-3, 3, 241), prior * np.linspace(1e-3, 3, 240))
    logs = stats.norm.logpdf(mu, 0, prior) + stats.norm.logpdf(tau, 0, prior)
    logs = logs + stats.norm.logpdf(x[:, None, None], mu, np.hypot(tau, SD)).sum(axis=0)
    share = np.exp(logs - logs.max())
    share /= share.sum()
    means = [(share * each).sum() for each in (mu, tau)]
    sds = [np.sqrt((share * (v - m) ** 2).sum()) for v, m in zip((mu, tau), means, strict=True)]
    kept = tau**2 / (tau**2 + SD**2)
    own = [(share * (mu + kept * (each - mu))).sum() for each in x]
    return means, sds, own


@pytest.mark.slow
def test_population_is_that_of_quadrature():
    """Parameters and individuals in another order, one missing, all of it 10⁶ times as large."""
    x = individuals(8)
    x[3] = np.nan
    seen, usable = measured(x).assign_coords(cell=("sample", list("abcdefgh"))), np.arange(8) != 3
    turned = seen.isel(sample=[*range(7, -1, -1)], feature=[1, 0]) * 1e6
    found = population(Exact(1e6, NAMES[::-1]), line(1e6, NAMES[::-1]), turned, seed=1, **FEW)
    found = found.isel(sample=[*range(7, -1, -1)])
    assert found.cell.values.tolist() == list("abcdefgh")
    assert found.attrs["individuals"] == 7
    assert found.attrs["variance"] < 1
    assert found.flagged.values.tolist() == [*~usable]
    assert np.isnan(found.posterior[:, 3]).all()
    for name, prior in zip(NAMES, PRIOR, strict=True):
        means, sds, own = quadrature(x[usable, NAMES.index(name)], prior)
        mine = found.sel(parameter=name)[["mean", "spread", "median", "posterior"]] / 1e6
        for drawn, mean, sd in zip((mine["mean"], mine["spread"]), means, sds, strict=True):
            assert float(drawn.mean()) == pytest.approx(mean, abs=0.35 * sd)
            assert float(drawn.std()) == pytest.approx(sd, rel=0.3)
        np.testing.assert_allclose(mine.posterior.mean("draw")[usable], own, atol=0.15)
        np.testing.assert_allclose(mine["median"], mine["mean"], rtol=1e-5)


@pytest.mark.slow
def test_chains_that_are_too_short_run_longer():
    """Of 50 draws each, R̂ is 1.11; the result has as many draws as were asked for."""
    seen = measured(individuals(8))
    found = population(Exact(), line(), seen, draws=200, proposals=100)
    assert found.attrs["r_hat"] < 1.05
    assert found["mean"].shape == (200, 2)


@pytest.mark.slow
@pytest.mark.usefixtures("thorough_compilation")
def test_a_population_is_found_in_64_bits_too():
    """As Diffrax asks of JAX; chains are others, and their means those of quadrature."""
    x = individuals(8)
    with jax.enable_x64(True):
        found = population(Exact(), line(), measured(x), seed=1, **FEW)
    (mean, _), (sd, _), _ = quadrature(x[:, 0], PRIOR[0])
    assert found["mean"].dtype == np.float64
    assert float(found["mean"][:, 0].mean()) == pytest.approx(mean, abs=0.35 * sd)


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(st.integers(1, 40), st.permutations([0, 1]), st.sampled_from([1e-6, 1.0, 1e6]))
def test_trials_multiply(count, order, unit):
    """Precisions add up, whatever the number, order and unit; the shared evidence is known."""
    names = tuple(NAMES[i] for i in order)
    x = (np.array([0.5, -1.0]) + SD * np.random.default_rng(count).normal(size=(count, 2)))[
        :, order
    ]
    net = Exact(unit, names)
    found = trials(net, line(unit, names), measured(unit * x), draws=2000)
    prior = PRIOR[list(order)]
    variance = 1 / (1 / prior**2 + count / SD**2)
    mean = variance * x.sum(axis=0) / SD**2
    drawn = found.posterior[:, 0] / unit
    np.testing.assert_allclose((drawn.mean("draw") - mean) / np.sqrt(variance), 0, atol=0.12)
    np.testing.assert_allclose(drawn.std("draw"), np.sqrt(variance), rtol=0.1)
    cov = SD**2 * np.eye(count)
    shared = sum(
        stats.multivariate_normal.logpdf(x[:, j], cov=cov + prior[j] ** 2)
        - stats.norm.logpdf(x[:, j], 0, np.hypot(prior[j], SD)).sum()
        for j in (0, 1)
    )
    assert float(found.log_shared[0]) == pytest.approx(shared, abs=0.3)
    assert not found.flagged.any()


def test_groups_of_any_size_by_likelihood():
    """A net that is off costs nothing but efficiency; failed trials are left out."""
    x = individuals(9)
    data = measured(x).assign_coords(cell=("sample", list("aababcbaa")))
    data["valid"] = "sample", np.arange(9) != 8
    found = trials(Exact(off=0.7), line(), data, by="cell", likelihood=True, draws=2000)
    assert found.cell.values.tolist() == ["a", "b", "c"]
    assert found.trials.values.tolist() == [4, 3, 1]
    assert "log_shared" not in found
    for i, label in enumerate("abc"):
        own = x[:8][data.cell.values[:8] == label]
        variance = 1 / (1 / PRIOR**2 + len(own) / SD**2)
        mean = variance * own.sum(axis=0) / SD**2
        off = (found.posterior[:, i].mean("draw") - mean) / np.sqrt(variance)
        np.testing.assert_allclose(off, 0, atol=0.12)


def test_trials_of_two_values_are_told():
    """One θ is less likely than one for each."""
    x = np.array([[-1.5, 0.0], [1.5, 0.0]])
    assert float(trials(Exact(), line(), measured(x)).log_shared[0]) < -2


@pytest.mark.usefixtures("untyped")
def test_what_does_not_fit_is_refused():
    """One line each, before anything is computed."""
    data, net = measured(individuals(4)), Exact()
    rule = Truncated({n: dist.Uniform(0, 1) for n in NAMES}, inside="first < second")
    ruled = Static("ruled", {NAMES: rule}, 2, Gaussian(sd=0.1))
    prior = {"first": dist.Normal(0.0, 1.0), "other": dist.Normal(0.0, 1.0)}
    calls: Any = (population, trials)
    for call in calls:
        for problem, wrong, said, more in (
            (ruled, data, "has the rule", {}),
            (prior, data, "the fit estimates first", {}),
            (line().prior, data, "has no likelihood", {"likelihood": True}),
            (line(), data.isel(sample=[]), "at least one sample", {}),
            (line(), data * np.nan, "all 4 samples failed", {}),
            (line(), data, "draws is 0", {"draws": 0}),
            (line(), data, "proposals is 20", {"proposals": 20}),
        ):
            with pytest.raises(ValueError, match=said):
                call(net, problem, wrong, **more)
        with pytest.raises(TypeError, match=r"the data are a .*xarray\.DataArray"):
            call(net, line(), data.observation.values)
    with pytest.raises(ValueError, match="coordinate along `sample`"):
        trials(net, line(), data, by="cell")
    with pytest.raises(ValueError, match="spread is 0"):
        Hyper(spread=0.0)


@pytest.mark.slow
def test_groups_that_nothing_names_and_observations_that_are_infinite_are_refused(caplog):
    """A group without a name was a division by zero, and one of which all is missing vanished."""
    seen, few = measured(individuals(6)), {"draws": 100, "proposals": 160}
    cells = seen.assign_coords(cell=("sample", [1.0, 1.0, 2.0, 2.0, np.nan, 3.0]))
    with pytest.raises(ValueError, match="cell of sample 4 is missing, so nothing tells whose"):
        trials(Exact(), line(), cells, by="cell", **few)
    named = seen.assign_coords(cell=("sample", list("ppqqrr")))
    found = trials(Exact(), line(), named.where(named.cell != "q"), by="cell", **few)
    assert found.cell.values.tolist() == ["p", "r"]
    assert "no trial of q can be used, so that there is no posterior of it: 1 of 3" in caplog.text
    with pytest.raises(ValueError, match="the observation of sample 2 is infinite"):
        population(Exact(), line(), seen.where(np.arange(6)[:, None] != 2, np.inf), **FEW)
    with pytest.raises(ValueError, match="both must have one order: write the prior as in"):
        population(Exact(), line(names=NAMES[::-1]), seen, **FEW)
    with pytest.raises(ValueError, match=r"`valid` has .*nan"):
        trials(Exact(), line(), seen.assign(valid=("sample", [1.0, np.nan] * 3)), **few)


@pytest.mark.slow
def test_a_trained_fit_checks_its_problem():
    """Prior and noise must be those of the training."""
    task = line()
    data = sciml.simulate(task, 400, noise=task.noise)
    fit = sciml.fit(sciml.models.Gaussian(width=16, depth=1), data, epochs=2)
    other = Static("line", dict(task.prior) | {"first": dist.Normal(0.0, 3.0)}, 2, task.noise)
    with pytest.raises(ValueError, match="the prior of 'first'"):
        trials(fit, other, data[["observation"]].isel(sample=[0]))
    found = trials(fit, task, data.isel(sample=[0, 1]), draws=50, proposals=200)
    assert found.posterior.dims == ("draw", "sample", "parameter")


@pytest.mark.parametrize(("likelihood", "most"), [(False, 0), (True, 2)])
def test_another_number_of_individuals_compiles_no_more_than_the_problem(
    caplog, monkeypatch, likelihood, most
):
    """Of the problem one for draws and one for t; NUTS, padded likewise, is left out."""
    drawn = np.zeros((100, 2)), np.tile(np.eye(2), (100, 1, 1)), 1.0, 0
    module = importlib.import_module("sciml.reference.several.population")
    monkeypatch.setattr(module, "run", lambda *_: drawn)
    few: Any = {"draws": 100, "proposals": 80, "likelihood": likelihood}
    population(Exact(), line(), measured(individuals(8)), **few)
    caplog.clear()
    with jax.log_compiles():
        population(Exact(), line(), measured(individuals(5)), **few)
    made = [text for text in caplog.messages if text.startswith("Finished XLA compilation")]
    assert len(made) <= most, made
