"""Numbers that the precision of nets does not hold are refused: large offsets, ranges, dates."""

import functools
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from numpyro.distributions import Cauchy, Delta, Normal, TransformedDistribution, Uniform
from numpyro.distributions.transforms import ExpTransform

import sciml
from sciml.ode import Diffrax, Observation, RungeKutta4, System

BOUNDS = {"a": (0.0, 1.0), "b": (1.0, 2.0)}


def simulations(samples: int = 100) -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(0)
    theta = pd.DataFrame({"a": random.uniform(size=samples), "b": random.uniform(1, 2, samples)})
    return theta, theta.a.values[:, None] * np.exp(-theta.b.values[:, None] * np.linspace(0, 1, 5))


def clock(start: float, gap: float, *, season: bool) -> System:
    """A decay, with a forcing of the time since the start, both in units of the gap."""

    def rate(t, u, p):
        forcing = jnp.cos((t - start) / gap) if season else 0.0
        return ((forcing - p[0] * u[0]) / gap,)

    times = start + gap * np.arange(6)
    seen = Observation((0,), times, start=start)
    return System("clock", rate, (1.0,), {"k": Uniform(0.5, 1.5)}, seen)


def solved(start: float, gap: float = 1.0, *, season: bool = True, method=None) -> np.ndarray:
    with jax.enable_x64(getattr(method, "dtype", "float32") == "float64"):
        solve = jax.jit(sciml.ode.solver(clock(start, gap, season=season), method))
        return np.asarray(solve(jnp.array([[1.0]])))[0]


@settings(max_examples=30, deadline=None)
@given(st.sampled_from([*range(19), *range(20, 41)]), st.sampled_from([-1, 1]))
def test_an_offset_is_kept_or_refused(power, sign) -> None:
    theta, x = simulations()
    offset = sign * 2.0**power
    if power > 19:  # float32 has 24 digits, and 20 steps are asked for
        with pytest.raises(ValueError, match=r"x.* differs by .* about .* subtract"):
            sciml.dataset(theta, x + offset, bounds=BOUNDS)
        return
    data = sciml.dataset(theta, x + offset, bounds=BOUNDS, time=np.arange(5.0))
    assert np.abs(data.observation.values.astype(float) - offset - x).max() < 0.02


@pytest.mark.parametrize("unit", [1e-300, 1e-42, 1e42, 1e300])
@pytest.mark.parametrize("of", ["x", "theta", "a condition", "what is asked"])
def test_numbers_out_of_range_are_refused(unit, of) -> None:
    theta, x = simulations()
    with pytest.raises(ValueError, match=r"reaches .* another unit"):
        if of == "x":
            sciml.dataset(theta, x * unit, bounds=BOUNDS)
        elif of == "theta":
            sciml.dataset(theta * [unit, 1.0], x)
        elif of == "a condition":
            sciml.dataset(theta, x, {"dose": theta.a.values * unit}, bounds=BOUNDS)
        else:
            data = sciml.dataset(theta, x, bounds=BOUNDS)
            fit = sciml.fit(sciml.models.Gaussian(width=4, depth=1), data, epochs=1)
            fit.predict(data.observation[:2].astype(float) * unit)


def test_what_hardly_varies_beside_others_is_kept() -> None:
    theta, x = simulations()
    x[:, 0] = 1e9 + theta.a
    series = sciml.dataset(theta, x, bounds=BOUNDS, time=np.arange(5.0))
    assert series.sizes["time"] == 5
    with pytest.raises(ValueError, match=r"x\[..., 0\] differs by 0.9.* about 1e\+09"):
        sciml.dataset(theta, x, bounds=BOUNDS)  # of features, each has its own unit


def test_a_parameter_far_from_nought_is_refused() -> None:
    theta, x = simulations()
    with pytest.raises(ValueError, match=r"theta\[..., 1\] differs .* subtract"):
        sciml.dataset(theta.assign(b=theta.b + 1.7e9), x)
    seen = Observation.regular(interval=1.0, length=3)
    born = System(
        "born", lambda t, u, p: (u[0] * 0,), (1.0,), {"t": Uniform(1.7e9, 1.7e9 + 99)}, seen
    )
    with pytest.raises(ValueError, match=r"all 20 draws|lie within"):
        sciml.simulate(born, 20)


@pytest.mark.parametrize("method", [None, RungeKutta4(), Diffrax("Tsit5")], ids=str)
@pytest.mark.parametrize(("start", "gap"), [(2459000.5, 0.5), (1.7e9, 60.0), (2000.0, 1 / 365)])
def test_dates_as_times_are_refused_where_the_rate_reads_them(start, gap, method) -> None:
    with pytest.raises(ValueError, match=r"clock.*steps of .* subtract the first time"):
        solved(start, gap, method=method)


def test_dates_do_not_matter_to_fixed_steps_of_a_rate_without_time() -> None:
    expected = solved(0.0, season=False)
    np.testing.assert_allclose(solved(2459000.5, season=False), expected, rtol=1e-6)
    with pytest.raises(ValueError, match="subtract the first time"):
        solved(2459000.5, season=False, method=Diffrax("Tsit5"))


@pytest.mark.parametrize(
    "method", [RungeKutta4(dtype="float64"), Diffrax("Tsit5", dtype="float64")]
)
def test_dates_are_solved_in_double(method) -> None:
    np.testing.assert_allclose(solved(2459000.5, method=method), solved(0.0), atol=1e-4)


@pytest.mark.slow
def test_times_over_many_decades_are_solved() -> None:
    times = np.logspace(-3, 5, 9)
    seen = Observation((0,), times)
    slow = System(
        "slow",
        lambda t, u, p: (-p[0] * u[0] / (1 + t) ** 2,),
        (1.0,),
        {"k": Uniform(0.5, 1.5)},
        seen,
    )
    method = Diffrax("Tsit5")
    with jax.enable_x64(False):
        found = sciml.ode.solver(slow, method)(jnp.array([[1.0]]))[0]
    np.testing.assert_allclose(found, np.exp(-times / (1 + times)), rtol=1e-4)


def test_tables_of_other_kinds_are_refused() -> None:
    theta, x = simulations()
    with pytest.raises(TypeError, match=r"has the fields index, a, b; .*DataFrame"):
        sciml.dataset(theta.to_records(), x)
    with pytest.raises(TypeError, match=r"csr_matrix, which NumPy takes for one object"):
        sciml.dataset(theta, scipy.sparse.csr_matrix(x))
    with pytest.raises(ValueError, match="theta has no rows"):
        sciml.dataset(theta[:0], x[:0])


def decay(unit: float, of_parameter: float) -> System:
    def started(p):
        return (p[1] * unit,)

    return System(
        "decay",
        lambda t, u, p: (-(p[0] / of_parameter) * u[0],),
        started,
        {"k": Uniform(0.5 * of_parameter, 2.0 * of_parameter), "start": Uniform(0.5, 2.0)},
        Observation.regular(interval=0.4, length=5),
        noise=sciml.ode.Gaussian(sd=0.02 * unit),
    )


@functools.cache
def answers(unit: float, of_parameter: float) -> list[np.ndarray]:
    """Return, in the units of 1, what a net and its diagnoses say of three observations."""
    problem = decay(unit, of_parameter)
    data = sciml.simulate(problem, 500, seed=1)
    fit = sciml.fit(sciml.models.Gaussian(width=16, depth=1), data, epochs=20)
    some, scale = data.isel(sample=slice(3)), np.array([of_parameter, 1.0])
    drawn = fit.sample(some, draws=200).posterior / scale
    weighed = sciml.reference.importance(fit, problem, some, draws=50, proposals=500)
    return [
        fit.log_prob(some, some.parameters).values + np.log(of_parameter),
        drawn.std("draw").values,
        fit.predict(some).estimate.values / scale,
        fit.predict(some).spread.values / scale,
        fit.predict(data).flagged.values.astype(float),
        weighed.efficiency.values,
        weighed.posterior.mean("draw").values / scale,
        sciml.diagnose.contraction(
            fit.sample(some, draws=50).posterior, some.parameters
        ).median_contraction.values,
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "of_parameter"), [(1e-20, 1.0), (1e15, 1.0), (1.0, 1e-25), (1.0, 1e25), (1e-30, 1e30)]
)
def test_no_unit_is_too_far(unit, of_parameter) -> None:
    for found, expected in zip(answers(unit, of_parameter), answers(1.0, 1.0), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0.02, atol=0.01)


@pytest.mark.parametrize("start", [0.0, 2459000.5])
@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_other_times_are_refused_in_every_unit(unit, start) -> None:
    theta, x = simulations()
    times = (start + np.arange(5.0)) * unit
    data = sciml.dataset(theta, x, bounds=BOUNDS, time=times)
    fit = sciml.fit(sciml.models.Gaussian(width=4, depth=1), data, epochs=1)
    same = data.assign_coords(time=times * (1 + 1e-12))
    assert fit.predict(same).estimate.equals(fit.predict(data).estimate)
    for other in (times + 0.1 * unit, times[::-1]):
        with pytest.raises(ValueError, match="times must be the same"):
            fit.predict(data.assign_coords(time=other).observation)


@pytest.mark.parametrize("unit", [1e-15, 1.0, 1e15])
def test_bounds_are_bounds_in_every_unit(unit) -> None:
    theta, x = simulations()
    with pytest.raises(ValueError, match=r"a of sample 3 is .* lie in"):
        sciml.dataset(
            theta.assign(a=theta.a.where(theta.index != 3, 1.001)) * [unit, 1],
            x,
            bounds={"a": (0.0, unit), "b": (1.0, 2.0)},
        )


@pytest.mark.parametrize("unit", [1e-20, 1e-9, 1e9])
def test_densities_of_noise_are_those_of_other_units(unit) -> None:
    clean, seen = jnp.array([1.0, 2.0, 0.5]), jnp.array([1.1, 1.5, 0.6])
    noise = sciml.ode.LogNormal(sd=0.1)
    plain = sciml.reference.log_likelihood(noise, seen, clean, {})
    found = sciml.reference.log_likelihood(noise, seen * unit, clean * unit, {})
    assert found + 3 * np.log(unit) == pytest.approx(float(plain), abs=1e-3)
    counts = jnp.array([3.0, 0.0, 7.0])
    plain = sciml.reference.log_likelihood(sciml.ode.Poisson(exposure=4.0), counts, clean, {})
    poisson = sciml.ode.Poisson(exposure=4.0 / unit)
    found = sciml.reference.log_likelihood(poisson, counts, clean * unit, {})
    assert found == pytest.approx(float(plain), abs=1e-4)


@pytest.mark.parametrize("unit", [1e-20, 1e20])
def test_what_is_unlike_the_training_is_flagged_in_every_unit(unit) -> None:
    random = np.random.default_rng(0)
    seen = np.cumsum(random.normal(size=(400, 20)), axis=1)
    rough = seen[:20] + 3 * random.normal(size=(20, 20))

    def flagged(factor: float) -> np.ndarray:
        known, other = (xr.DataArray(x * factor, dims=("sample", "time")) for x in (seen, rough))
        return sciml.diagnose.judge(sciml.diagnose.alarm(known), other).p_value.values

    np.testing.assert_allclose(flagged(unit), flagged(1.0), atol=1e-6)
    assert np.median(flagged(1.0)) < 0.05


def test_a_feature_of_a_small_unit_is_watched_beside_one_of_a_large_unit() -> None:
    seen = np.random.default_rng(0).normal(size=(300, 2)) * [1e15, 1e-3] + [1e15, 1.0]
    known = xr.DataArray(seen, dims=("sample", "feature"))
    odd = xr.DataArray([[1e15, 1.5]], dims=("sample", "feature"))
    assert sciml.diagnose.judge(sciml.diagnose.alarm(known), odd).flagged.all()


def test_times_over_many_decades_may_have_passed_through_single_precision() -> None:
    theta, x = simulations()
    times = np.logspace(-3, 5, 5) * np.pi
    fit = sciml.fit(
        sciml.models.Gaussian(width=4, depth=1),
        sciml.dataset(theta, x, bounds=BOUNDS, time=times),
        epochs=1,
    )
    rounded = xr.DataArray(x, {"time": times.astype("f4").astype(float)}, ("sample", "time"))
    assert np.isfinite(fit.predict(rounded).estimate).all()
    with pytest.raises(ValueError, match="times must be the same"):
        fit.predict(rounded.assign_coords(time=times * 1.001))


def opened(start: float, source: Any) -> System:
    def rate(t, u, p, c):
        return (p[0] * (jnp.sin(6 * (c["epoch"] - start) + t) - u[0]),)

    seen = Observation.regular(interval=0.5, length=4)
    prior = {"k": Uniform(0.5, 2.0)}
    return System("opened", rate, (0.0,), prior, seen, conditions={"epoch": source})


@pytest.mark.parametrize("method", [None, RungeKutta4()], ids=str)
def test_conditions_that_are_dates_are_refused_whether_drawn_or_given(method) -> None:
    start, given = 2459000.0, {"epoch": [2459000.3, 2459000.6]}
    for source in (Uniform(start, start + 1), np.array([start, start + 0.1])):
        problem = opened(start, source)
        with pytest.raises(ValueError, match=r"epoch .*steps of 0\.25"):
            sciml.simulate(problem, 20, method=method)
    with pytest.raises(ValueError, match=r"epoch .*steps of 0\.25"):
        sciml.simulate(problem, 2, given, method=method)
    fixed = replace(problem, conditions={"epoch": Delta(start)})
    assert sciml.simulate(fixed, 20, method=method).valid.all()


SOURCES = (  # what a condition is drawn from: numbers, and series at four times
    TransformedDistribution(Normal(0.0, 1.0), ExpTransform()),  # numpyro knows no variance of it
    Cauchy(1.0, 1.0),  # which has none
    Delta(2.0),
    np.array([1.0, 2.0]),
    Uniform(np.zeros(4), 1.0).to_event(1),
    Delta(np.array([0.0, 1.0, 0.0, 1.0])).to_event(1),
    np.array([[1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0]]),
)


@pytest.mark.parametrize("source", SOURCES, ids=lambda each: type(each).__name__)
def test_every_source_of_a_condition_is_drawn(source) -> None:
    assert sciml.simulate(opened(0.0, source), 20).valid.all()


@pytest.mark.filterwarnings("ignore:.*of half the step")  # it falls by 10^6 in one interval
def test_a_series_is_told_apart_where_it_varies_most() -> None:
    near, far = np.full(4, 2459000.0), np.array([2459000.0, 0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match=r"epoch .*steps of 0\.25"):
        sciml.simulate(opened(0.0, Uniform(near, near + 1).to_event(1)), 20)
    assert sciml.simulate(opened(0.0, Uniform(far, far + 1).to_event(1)), 20).valid.all()


def test_parameters_that_are_given_are_told_apart_or_refused() -> None:
    seen = Observation.regular(interval=0.5, length=4)
    prior = {"frequency": Uniform(1.4e9, 1.5e9)}
    tone = System("tone", lambda t, u, p: (jnp.sin(p[0] - 1.4e9) - u[0],), (0.0,), prior, seen)
    with pytest.raises(ValueError, match=r"frequency differs by 1 about 1\.4e\+09"):
        sciml.simulate(tone, parameters=[[1.4e9 + 1.3], [1.4e9 + 2.3]], method=RungeKutta4())
    fine = RungeKutta4(dtype="float64")
    found = sciml.simulate(tone, parameters=[[1.4e9 + 1.3], [1.4e9 + 2.3]], method=fine)
    assert np.abs(np.diff(found.observation, axis=0)).max() > 0.1


@pytest.mark.parametrize(("offset", "told"), [(1e3, False), (1e7, True)])
def test_noise_that_is_rounded_away_is_told(offset, told, caplog) -> None:
    """About 1e7 float32 counts in ones, and the noise is 0.1."""
    noise = sciml.ode.Gaussian(sd=0.1)
    problem = sciml.ode.Static("far", {"a": Normal(offset, 1.0)}, features=1, noise=noise)
    theta = offset + np.linspace(-1, 1, 50)[:, None]
    sciml.simulate(problem, parameters=np.float32(theta), noise=noise)
    assert ("far differs by" in caplog.text and "in steps of 1:" in caplog.text) == told


@pytest.mark.parametrize(
    "times",
    [
        np.array(["2020-01-01", "2020-01-02"], "M8[ns]"),
        np.array([1, 2], "m8[h]").astype("m8[ns]"),
        np.array([1 + 1j, 2]),
        np.arange(4.0).reshape(2, 2),
    ],
)
def test_what_is_no_time_is_not_observed_at(times) -> None:
    """Two hours became 7.2e12 seconds, as many as there are nanoseconds."""
    with pytest.raises((TypeError, ValueError), match=r"^Observation\.times (must be|is)"):
        Observation((0,), times)


def test_a_start_is_a_number() -> None:
    with pytest.raises(ValueError, match="and start nan; they must be numbers"):
        Observation((0,), (1.0, 2.0), start=np.nan)
