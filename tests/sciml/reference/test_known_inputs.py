"""Conditions of each observation in everything that weighs or repeats: right, or refused."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from numpyro import distributions as dist
from scipy import stats

import sciml
from sciml.ode import Gaussian, Observation, RungeKutta4, Static, System
from sciml.reference import Chains, Population, importance, nuts, population, smc, trials

pytestmark = pytest.mark.usefixtures("quick_compilation")
SD = 0.3


def line(unit: float = 1.0) -> Static:
    """x = θ · condition / unit + error: the dose in any unit, and the weight as it is."""
    return Static(
        "line",
        {"first": dist.Normal(0.0, 1.0), "second": dist.Normal(0.0, 1.0)},
        2,
        Gaussian(sd=SD),
        solution=lambda p, c: jnp.stack([p[0] * c["dose"] / unit, p[1] * c["weight"]]),
        conditions={"dose": dist.Uniform(0.5 * unit, 2.0 * unit), "weight": [1.0, 2.0]},
    )


def exact(data: xr.DataArray, unit: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each posterior by itself."""
    slope = np.stack([data.dose.values / unit, data.weight.values], axis=1)
    variance = 1 / (1 + slope**2 / SD**2)
    return variance * slope * data.values / SD**2, np.sqrt(variance)


@dataclass(frozen=True)
class Exact:
    """A net that answers with the exact posterior, by the conditions that observations carry."""

    unit: float = 1.0

    def sample(self, data, draws, seed):
        mean, sd = exact(data, self.unit)
        noise = np.random.default_rng(seed).normal(size=(draws, *mean.shape))
        dims = ("draw", "sample", "parameter")
        return xr.Dataset(
            {"posterior": (dims, mean + sd * noise)}, {"parameter": ["first", "second"]}
        )

    def log_prob(self, data, parameters):
        value = stats.norm.logpdf(parameters, *exact(data, self.unit)).sum(1)
        return xr.DataArray(value, dims="sample")


def observed(unit: float = 1.0, count: int = 9) -> xr.Dataset:
    """Observations of one θ under conditions of their own, labelled."""
    task, rng = line(unit), np.random.default_rng(5)
    given = {"dose": unit * rng.uniform(0.5, 2.0, count), "weight": rng.choice([1.0, 2.0], count)}
    theta = np.tile([0.7, -0.4], (count, 1))
    data = sciml.simulate(task, parameters=theta, conditions=given, noise=task.noise)
    return data.assign_coords(cell=("sample", list("abcdefghi")[:count]))


@pytest.mark.slow
@settings(max_examples=3, deadline=None)
@given(st.permutations(range(9)), st.sampled_from([1e-6, 1.0, 1e6]), st.booleans())
def test_whatever_order_and_unit_the_answer_is_the_closed_form(order, unit, apart):
    """Shuffled samples, a condition 10⁶ times as large, conditions that became variables."""
    data = observed(unit).isel(sample=order)
    mean, sd = exact(data.observation, unit)
    data = data.reset_coords(["weight", "dose"]) if apart else data
    task, net = line(unit), Exact(unit)
    found = importance(net, task, data, draws=2000)
    np.testing.assert_allclose((found.posterior.mean("draw") - mean) / sd, 0, atol=0.12)
    np.testing.assert_allclose(found.posterior.std("draw") / sd, 1, atol=0.1)
    precision = (1 / sd**2 - 1).sum(axis=0) + 1
    whole = ((mean / sd**2).sum(axis=0)) / precision
    for likelihood in (False, True):
        one = trials(net, task, data, draws=2000, likelihood=likelihood)
        off = (one.posterior[:, 0].mean("draw") - whole) * np.sqrt(precision)
        np.testing.assert_allclose(off, 0, atol=0.12)


@pytest.fixture(scope="module")
def fit():
    """A fit that knows both conditions."""
    task = line()
    data = sciml.simulate(task, 600, noise=task.noise)
    return sciml.fit(sciml.models.Gaussian(width=16, depth=1), data, epochs=10)


def several(fit, data):
    """Everything that asks a fit and its problem about observations."""
    few = {"draws": 100, "proposals": 100}
    task = line()
    return {
        "sample": lambda: fit.sample(data, 5, check=task),
        "refine": lambda: sciml.refine(fit, task, data.isel(sample=[1]), rounds=1),
        "importance": lambda: importance(fit, task, data, draws=10),
        "population": lambda: population(fit, task, data, **few),
        "trials": lambda: trials(fit, task, data, draws=10),
        "replicate": lambda: sciml.diagnose.replicate(
            lambda p: sciml.simulate(task, parameters=p, noise=task.noise), fit.sample(data, 5)
        ),
    }


@pytest.mark.slow
def test_conditions_that_do_not_fit_are_refused_everywhere(fit):
    """Renamed, not there, not a number, one too many, or without names: one line each."""
    data = observed()
    role = data.dose.attrs
    strange = data.assign_coords(age=("sample", np.ones(9), role))
    lost = data.assign_coords(dose=("sample", np.where(np.arange(9) == 1, np.nan, 1.0), role))
    for wrong, said in (
        (data.rename(dose="Dose"), "the conditions name Dose"),
        (data.drop_vars("dose"), "the conditions dose of .* are not given"),
        (lost, r"the condition dose of sample \d is"),
        (strange, "the conditions name age"),
    ):
        for call in several(fit, wrong).values():
            with pytest.raises(ValueError, match=said):
                call()


@pytest.mark.usefixtures("untyped")
def test_bare_arrays_have_no_conditions():
    """An observation carries them as well as a data set."""
    data = observed()
    assert importance(Exact(), line(), data.observation, draws=10).posterior.shape == (10, 9, 2)
    for call in (importance, population, trials):
        with pytest.raises(TypeError, match="the data are a ndarray"):
            call(Exact(), line(), data.observation.values)


@pytest.mark.slow
def test_calibration_puts_samples_with_conditions_in_order(fit):
    """Draws of shuffled samples are compared with the truths of the same samples."""
    task = line()
    data = sciml.simulate(task, 40, seed=3, noise=task.noise).assign_coords(sample=np.arange(40))
    turned = data.isel(sample=np.random.default_rng(0).permutation(40))
    plain, other = (fit.sample(each, 100) for each in (data, turned))
    for call in (sciml.diagnose.sbc, sciml.diagnose.coverage):
        told = [call(each, data) for each in (plain, other)]
        name = "rank" if "rank" in told[0] else "coverage"
        first, second = (np.sort(each[name].values, axis=0) for each in told)
        assert np.abs(first - second).mean() < (10 if name == "rank" else 0.1)


def canal(rows: np.ndarray) -> System:
    """u' = θ · rain · area, seen at four times: the rain is a known series of each sample."""
    return System(
        name="canal",
        vector_field=lambda _t, _u, p, c: (p[0] * c["rain"] * c["area"],),
        initial_state=(0.0,),
        prior={"gain": dist.Normal(0.0, 1.0)},
        conditions={"rain": rows, "area": [0.5, 1.0]},
        observation=Observation.regular(interval=1.0, length=4),
        noise=Gaussian(sd=SD),
        method=RungeKutta4(substeps=1),
    )


@pytest.fixture(scope="module")
def watered():
    """A system with a series and a number of each sample, a rough net of it, and observations."""
    task = canal(np.random.default_rng(0).uniform(0.2, 2.0, (20, 4)))
    data = sciml.simulate(task, 600, noise=task.noise)
    net = sciml.fit(sciml.models.Gaussian(width=16, depth=1), data, epochs=20)
    return task, net, sciml.simulate(task, 3, seed=1, noise=task.noise)


def closed(data: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the gain: the level is its integral of what rains."""
    rain = data.rain.transpose("sample", "time").values
    level = np.cumsum((rain[:, 1:] + rain[:, :-1]) / 2, axis=1) * data.area.values[:, None]
    precision = 1 + (level**2).sum(axis=1) / SD**2
    seen = data.observation.transpose("sample", "time").values[:, 1:]
    return (level * seen).sum(axis=1) / SD**2 / precision, precision**-0.5


def asked(task, net, data):
    """Everything that asks a fit, or a sampler, about observations with a series."""
    few = Population(particles=300)
    chains = Chains(chains=2, warmup=100, draws=300, starts=few)
    return {
        "importance": lambda: importance(net, task, data, draws=1000),
        "smc": lambda: smc(task, data.isel(sample=0), settings=few),
        "nuts": lambda: nuts(task, data.isel(sample=0), settings=chains),
        "refine": lambda: sciml.refine(net, task, data.isel(sample=[0]), rounds=1, epochs=1),
        "trials": lambda: trials(net, task, data, draws=10),
        "check": lambda: net.sample(data, 5, check=task),
        "log_prob": lambda: net.log_prob(data, data.parameters),
        "replicate": lambda: sciml.diagnose.replicate(
            lambda p: sciml.simulate(task, parameters=p, conditions=data.isel(sample=[0])),
            net.sample(data.isel(sample=[0]), 5),
        ),
    }


@pytest.mark.slow
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_posteriors_under_a_series_are_the_closed_form(watered, order):
    """Shuffled samples and a transposed series too; draws are scattered by their own noise."""
    task, net, data = watered
    data = data.isel(sample=list(order))
    data = data.assign_coords(rain=data.rain.variable.transpose("time", "sample"))
    (mean, sd), calls = closed(data), asked(task, net, data)
    found = calls["importance"]().posterior[..., 0]
    np.testing.assert_allclose((found.mean("draw") - mean) / sd, 0, atol=0.2)
    np.testing.assert_allclose(found.std("draw") / sd, 1, atol=0.15)
    for name in ("smc", "nuts"):
        draws = calls[name]().posterior[:, 0]
        assert abs(float(draws.mean()) - mean[0]) < 0.35 * sd[0], name
        assert abs(float(draws.std()) / sd[0] - 1) < 0.25, name
    assert calls["replicate"]().shape == (5, 1, 4)


@pytest.mark.slow
def test_a_series_that_does_not_fit_is_refused_everywhere(watered):
    """Renamed, lacking, with a gap, a number in its place, other times, and backwards."""
    task, net, data = watered
    role = data.rain.attrs
    gap = np.where(np.arange(4) == 2, np.nan, data.rain.values)
    bare = data.drop_vars("rain")
    for wrong, said in (
        (data.rename(rain="Rain"), "the conditions name Rain"),
        (bare, "the conditions rain of .* are not given.*of a series with"),
        (bare.assign_coords(rain=(("sample", "time"), gap, role)), "condition rain of sample 0 is"),
        (bare.assign_coords(rain=("sample", np.ones(3), role)), "condition rain has the shape"),
        (data.assign_coords(time=data.time + 1), "times must be the same|at the times 1 to 4 "),
        (data.isel(time=slice(None, None, -1)), "times must be the same|at the times 3 to 0 "),
        (data.isel(time=slice(3)), "must have one grid|at the times 0 to 2 "),
    ):
        for name, call in asked(task, net, wrong).items():
            with pytest.raises(ValueError, match=said):
                call()
                pytest.fail(f"{name} accepted what has {said}")
