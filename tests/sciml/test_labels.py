"""Labels are law: what is permuted, transposed or renamed is aligned by its labels, or refused."""

import functools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from numpyro.distributions import Uniform

import sciml
from sciml import diagnose
from sciml.ode import Gaussian, Observation, PerChannel, RungeKutta4, System, simulate

pytestmark = pytest.mark.usefixtures("quick_compilation")

NAMES = ("a", "b", "c")
AXES = ("draw", "sample", "parameter")


def draws_and_truth(seed: int = 0, samples: int = 40) -> tuple[xr.DataArray, xr.DataArray]:
    """Return calibrated draws of three parameters whose scales differ, and the truths."""
    rng = np.random.default_rng(seed)
    scale = np.array([1.0, 10.0, 100.0])
    centre = rng.normal(size=(samples, 3)) * scale
    draws = centre + rng.normal(size=(60, samples, 3)) * scale
    truth = centre + rng.normal(size=(samples, 3)) * scale
    coords = {"parameter": list(NAMES), "sample": np.arange(100, 100 + samples)}
    return xr.DataArray(draws, coords, AXES), xr.DataArray(truth, coords, AXES[1:])


def linear(order: tuple[str, ...] = ("slope", "start")) -> System:
    """u = start + slope t."""
    place = {name: i for i, name in enumerate(order)}
    priors = {"slope": Uniform(1.0, 2.0), "start": Uniform(10.0, 20.0)}
    return System(
        name="linear",
        vector_field=lambda _t, u, p: (p[place["slope"]] + 0 * u[0],),
        initial_state=lambda p: (p[place["start"]],),
        prior={name: priors[name] for name in order},
        observation=Observation.regular(interval=1.0, length=5),
    )


JUDGES = {
    "sbc": lambda q, t: diagnose.sbc(q, t)["rank"],
    "coverage": lambda q, t: diagnose.coverage(q, t).coverage,
    "tarp": lambda q, t: diagnose.tarp(q, t).fraction,
    "contraction": lambda q, t: diagnose.contraction(q, t).z_score,
    "calibration": lambda q, t: diagnose.calibration(q, t).checks.adjusted,
    "recalibration": lambda q, t: diagnose.recalibration(q, t).position,
}


@pytest.mark.parametrize("name", JUDGES)
@settings(max_examples=6, deadline=None)
@given(order=st.permutations(NAMES), rows=st.permutations(range(40)), turned=st.booleans())
def test_truths_are_put_into_the_order_of_the_draws(name, order, rows, turned):
    draws, truth = draws_and_truth()
    moved = truth.sel(parameter=list(order)).isel(sample=list(rows))
    moved = moved.T if turned else moved
    wanted, found = JUDGES[name](draws, truth), JUDGES[name](draws, moved)
    xr.testing.assert_allclose(wanted.drop_attrs(), found.drop_attrs())


@settings(max_examples=6, deadline=None)
@given(order=st.permutations(NAMES))
def test_another_order_of_draws_and_truths_changes_the_random_numbers_alone(order):
    """Ranks follow the names; what fills the gap between two ranks, and points of TARP, do not."""
    draws, truth = draws_and_truth()
    one = diagnose.calibration(draws, truth, references=truth + 1)
    other = diagnose.calibration(
        draws.sel(parameter=list(order)), truth.sel(parameter=list(order)), references=truth + 1
    )
    moved = other.sbc.sel(parameter=list(NAMES))
    np.testing.assert_array_equal(one.sbc["rank"], moved["rank"])
    np.testing.assert_allclose(one.tarp.fraction, other.tarp.fraction, atol=1 / 61)
    for name in NAMES:
        pit = [tree["prior_sbc"][name].values for tree in (one, other)]
        np.testing.assert_allclose(*pit, rtol=0, atol=1 / 61)
    same = other.contraction.sel(parameter=list(NAMES))
    np.testing.assert_allclose(one.contraction.z_score, same.z_score)


@pytest.mark.parametrize("name", JUDGES)
def test_other_names_are_refused(name):
    draws, truth = draws_and_truth()
    renamed = truth.assign_coords(parameter=["a", "b", "d"])
    with pytest.raises(ValueError, match="c is not there"):
        JUDGES[name](draws, renamed)
    with pytest.raises(ValueError, match="each name must occur once"):
        JUDGES[name](draws, truth.assign_coords(parameter=["a", "b", "b"]))
    with pytest.raises(ValueError, match="labelled otherwise"):
        JUDGES[name](draws, truth.assign_coords(sample=np.arange(40)))


def test_priors_references_and_places_follow_the_names():
    draws, truth = draws_and_truth()
    turned = ["c", "a", "b"]
    prior = draws[:, 0].drop_vars("sample")
    one = diagnose.contraction(draws, truth, prior=prior)
    other = diagnose.contraction(draws, truth, prior=prior.sel(parameter=turned))
    xr.testing.assert_allclose(one, other)
    points = diagnose.informed_references(xr.DataArray(truth.values, dims=("sample", "x")), truth)
    one = diagnose.tarp(draws, truth, references=points)
    other = diagnose.tarp(draws, truth, references=points.sel(parameter=turned))
    xr.testing.assert_allclose(one, other)
    tree = diagnose.arviz_tree(draws, truth=truth.sel(parameter=turned))
    np.testing.assert_array_equal(tree.constant_data["c"], truth.sel(parameter="c"))


def test_observations_to_judge_follow_the_channels():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(300, 6, 2)) * [1.0, 50.0]
    seen = xr.DataArray(values, {"channel": ["u", "v"]}, ("sample", "time", "channel"))
    known = diagnose.alarm(seen)
    turned = seen.sel(channel=["v", "u"]).transpose("channel", "sample", "time")
    np.testing.assert_array_equal(
        diagnose.judge(known, seen).p_value, diagnose.judge(known, turned).p_value
    )
    with pytest.raises(ValueError, match="channels of observations are u, w"):
        diagnose.judge(known, seen.assign_coords(channel=["u", "w"]))
    assert float(diagnose.mmd(turned[:, :40], seen, permutations=20).p_value) > 0.05


@pytest.mark.slow
def test_scores_and_classifiers_follow_the_names():
    draws, truth = draws_and_truth()
    estimate = draws.mean("draw")
    turned = estimate.sel(parameter=["c", "b", "a"]).isel(sample=slice(None, None, -1))
    plain = diagnose.recovery(truth, estimate, names=NAMES)
    xr.testing.assert_allclose(plain, diagnose.recovery(truth, turned, names=NAMES))
    one, other = draws[:, 0], draws[:, 1]
    found = [
        diagnose.c2st(one, o, folds=2).score for o in (other, other.sel(parameter=["c", "a", "b"]))
    ]
    assert found[0] == found[1]


@pytest.mark.slow
def test_classifiers_see_as_many_points_of_both_sets():
    rng = np.random.default_rng(0)
    many, few = rng.normal(size=(2000, 2)), rng.normal(size=(300, 2))
    for first, second in ((many, few), (few, many)):
        found = diagnose.c2st(first, second)
        assert abs(float(found.score) - 0.5) < 0.1  # 0.87 where the sizes were told apart
        assert found.attrs["points"] == 600


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(turned=st.booleans(), kind=st.sampled_from(["array", "table", "dict"]), data=st.data())
def test_parameters_to_simulate_follow_their_names(turned, kind, data):
    system = linear()
    rows = data.draw(st.integers(1, 4))
    slope, start = np.linspace(1.1, 1.9, rows), np.linspace(11.0, 19.0, rows)
    table = pd.DataFrame({"start": start, "slope": slope})
    array = xr.DataArray(table, dims=("sample", "parameter"))
    given_ = {"array": array.T if turned else array, "table": table, "dict": dict(table)}[kind]
    made = simulate(system, parameters=given_)
    assert made.parameter.values.tolist() == ["slope", "start"]
    np.testing.assert_allclose(made.observation[:, -1], start + 4 * slope, rtol=1e-5)


@pytest.mark.usefixtures("untyped")
@settings(max_examples=12, deadline=None)
@given(
    rows=st.permutations(range(5)),
    kinds=st.tuples(*[st.sampled_from(["table", "columns", "array"])] * 3),
    taken=st.integers(2, 5),
    named=st.booleans(),
)
def test_the_index_of_a_table_says_which_sample_a_row_is(rows, kinds, taken, named):
    """As pandas aligns: a table that was shuffled or filtered stands beside one that was not."""
    whole = pd.DataFrame(np.arange(15.0).reshape(5, 3), columns=["a", "x0", "weight"])
    if named:
        whole.index = [f"mouse {i}" for i in range(5)]
    theta, moved = whole[["a"]].iloc[:taken], whole.loc[whole.index[list(rows)]]

    def given_as(kind: str, table: pd.DataFrame) -> object:
        if kind == "table":
            return table
        if kind == "columns":
            return {name: table[name] for name in table}
        return xr.DataArray(table, dims=("sample", "condition"))

    first = given_as("columns" if kinds[0] == "columns" else "table", theta)
    found = sciml.dataset(first, moved[["x0"]], given_as(kinds[2], moved[["weight"]]))
    np.testing.assert_array_equal(found.parameters[:, 0] + 1, found.observation[:, 0])
    np.testing.assert_array_equal(found.parameters[:, 0] + 2, found.weight)


def test_a_table_numbered_anew_is_taken_in_its_order_and_others_are_refused():
    theta = pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=[3, 5, 7])
    x = pd.DataFrame({"x0": [10.0, 20.0, 30.0]})
    found = sciml.dataset(theta, x)
    np.testing.assert_array_equal(found.observation[:, 0], [10, 20, 30])
    assert "sample" not in found.coords
    with pytest.raises(ValueError, match=r"labelled otherwise.*reset_index"):
        sciml.dataset(theta, x.set_axis([3, 5, 8]))


def test_parameters_of_other_names_are_not_simulated():
    with pytest.raises(ValueError, match="parameters name slop; linear has slope, start"):
        simulate(linear(), parameters={"slop": [1.0], "start": [10.0]})
    with pytest.raises(ValueError, match=r"noise_sd.*pass the noise whose levels they are"):
        simulate(linear(), parameters={"slope": 1.0, "start": 10.0, "noise_sd": 0.1})
    with pytest.raises(ValueError, match=r"start is not there|shape"):
        simulate(linear(), parameters={"slope": [1.0]})
    with pytest.raises(ValueError, match="the noise samples none"):
        simulate(linear(), samples=2, noise=Gaussian(0.1), levels={"sd": 0.1})
    noise = Gaussian(Uniform(0.1, 0.2), estimate=True)
    with pytest.raises(ValueError, match=r"the level sd reaches from 0.5 to 0.5.*\[0.1, 0.2\]"):
        simulate(linear(), samples=2, noise=noise, levels={"sd": 0.5})


@pytest.mark.slow
def test_levels_go_to_the_samples_that_they_name():
    noise, names = Gaussian(Uniform(0.0, 1.0), estimate=True), list("cafbed")
    theta = simulate(linear(), samples=6).parameters.assign_coords(sample=names)
    level = xr.DataArray(np.linspace(0.1, 0.9, 6), {"sample": names}, "sample")
    wanted = simulate(linear(), parameters=theta, noise=noise, levels={"sd": level})
    np.testing.assert_allclose(wanted.levels[:, 0], level, rtol=1e-6)
    other = level.sortby("sample")
    table = other.to_pandas().to_frame("sd")
    for levels in ({"sd": other}, {"sd": table["sd"]}, table, other.expand_dims(level=["sd"])):
        found = simulate(linear(), parameters=theta, noise=noise, levels=levels)
        xr.testing.assert_identical(found.observation, wanted.observation)
    with pytest.raises(ValueError, match="the order of its rows is not known"):
        simulate(linear(), parameters=theta, noise=noise, levels={"sd": level.values})
    with pytest.raises(
        ValueError, match=r"has shape \(5,\); it must be one number, or one of each"
    ):
        simulate(linear(), samples=6, noise=noise, levels={"sd": level.values[:5]})


@pytest.mark.usefixtures("untyped")
def test_levels_without_names_are_refused():
    noise = Gaussian(Uniform(0.0, 1.0), estimate=True)
    for levels in (0.1, [[0.1]] * 3, np.full((3, 1), 0.1), xr.DataArray(np.full((3, 1), 0.1))):
        with pytest.raises(TypeError, match="which names none: pass a dict"):
            simulate(linear(), samples=3, noise=noise, levels=levels)


def test_levels_are_applied_as_given():
    noise = Gaussian(Uniform(0.0, 100.0), estimate=True)
    silent = simulate(linear(), 3, noise=noise, levels={"sd": 0.0})
    np.testing.assert_array_equal(silent.observation, simulate(linear(), 3).observation)
    drawn = simulate(linear(), 3, noise=noise)
    again = simulate(linear(), 3, noise=noise, levels=drawn.levels)
    xr.testing.assert_identical(drawn.observation, again.observation)
    both = diagnose.replicate(
        lambda p: simulate(linear(), parameters=p, noise=noise),
        xr.DataArray(
            np.tile([[[0.0, 12.0, 1.5]]], (4, 1, 1)),
            {"parameter": ["noise_sd", "start", "slope"]},
            AXES,
        ),
    )
    np.testing.assert_allclose(both[0, 0], 12 + 1.5 * np.arange(5), rtol=1e-5)


@pytest.fixture(scope="module")
def posterior():
    noise = Gaussian(Uniform(0.01, 0.1), estimate=True)
    data = simulate(linear(), 300, noise=noise, method=RungeKutta4(substeps=1))
    return sciml.fit(sciml.models.Gaussian(), data, epochs=30), data


@pytest.mark.slow
def test_density_and_checks_know_the_level_by_one_name(posterior):
    fit, data = posterior
    some = data.isel(sample=slice(40))
    density = fit.log_prob(some, some)
    named = fit.sample(some, draws=50)
    assert named.parameter.values.tolist() == ["slope", "start", "noise_sd"]
    truth = named.posterior[0].sel(parameter=["noise_sd", "start", "slope"])
    swapped = fit.log_prob(some, truth)
    np.testing.assert_allclose(swapped, fit.log_prob(some, named.posterior[0].values), rtol=1e-5)
    with pytest.raises(ValueError, match=r"noise_sd is not there.*whole data set"):
        fit.log_prob(some, some.parameters)
    assert np.isfinite(density).all()
    for judge in JUDGES.values():
        judge(named, some)
    with pytest.raises(ValueError, match="noise_sd is not there"):
        diagnose.sbc(named, some.parameters)


@pytest.mark.slow
def test_importance_takes_a_fit_that_estimates_the_noise(posterior):
    fit, data = posterior
    noise = Gaussian(Uniform(0.01, 0.1), estimate=True)
    found = sciml.reference.importance(
        fit, linear(), data.isel(sample=slice(2)), draws=100, noise=noise
    )
    assert found.parameter.values.tolist() == ["slope", "start", "noise_sd"]
    assert (found.efficiency > 0).all()


@functools.cache
def learned_in(unit: float) -> xr.DataArray:
    """Return how well a net learns data in a unit; what every unit is compared with, once."""
    data = simulate(linear(), 400, method=RungeKutta4(substeps=1))
    scaled = data.assign(observation=data.observation * unit, parameters=data.parameters * unit)
    scaled.attrs = {}
    fit = sciml.fit(sciml.models.Dense(width=16, depth=2), scaled, epochs=60)
    estimate = fit.predict(scaled)
    assert float(estimate.flagged.mean()) < 0.2
    names = ("slope", "start")
    return diagnose.recovery(scaled.parameters, estimate.estimate, names=names).r2.sel(regime="all")


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_units_do_not_matter(unit):
    assert (learned_in(1.0) > 0.9).all()
    np.testing.assert_allclose(learned_in(1.0), learned_in(unit), atol=0.02)


@pytest.mark.slow
def test_units_do_not_matter_to_a_posterior():
    rng = np.random.default_rng(0)
    rate = rng.lognormal(size=(400, 1))
    seen = np.log(rate) + 0.1 * rng.normal(size=(400, 3))
    means = []
    for factor in (1.0, 1e-9):
        data = xr.Dataset(
            {
                "observation": (("sample", "feature"), np.exp(seen) * factor),
                "parameters": (("sample", "parameter"), rate * factor),
            },
            coords={"parameter": ["rate"]},
            attrs={"support": '{"rate": [0, null]}'},
        )
        fit = sciml.fit(sciml.models.Gaussian(), data, epochs=60)
        means.append(fit.predict(data).estimate.values / factor)
    spread = np.abs(np.log(means[1] / means[0]))
    assert np.median(spread) < 0.05


@pytest.mark.parametrize(
    ("support", "message"),
    [
        ('{"slop": [1, 2], "start": [10, 20]}', "names slop and not slope"),
        ('{"slope": [2, 1], "start": [10, 20]}', "2.0 is not below 1.0"),
        ('{"slope": 0, "start": [10, 20]}', "it must be JSON"),
        ({"slope": [1, 2]}, "json.dumps makes it"),
    ],
)
def test_a_support_that_says_nothing_of_the_parameters_is_refused(posterior, support, message):
    data = posterior[1].assign_attrs(support=support)
    with pytest.raises(ValueError, match=message):
        sciml.fit(sciml.models.Gaussian(), data, epochs=1)


TIMED = xr.DataArray(np.random.default_rng(0).normal(size=(200, 3)), dims=("sample", "time"))
RATES = np.random.default_rng(1).uniform(size=(200, 1))
BOUNDS = {"names": ["rate"], "bounds": [(0, 1)]}
TIMES = {
    "dataset": lambda t: sciml.dataset(RATES, TIMED.values, time=t, **BOUNDS).time,
    "table": lambda t: (
        sciml.dataset(RATES, pd.DataFrame(TIMED.values, columns=t), time=t, **BOUNDS).time
    ),
    "labelled": lambda t: sciml.dataset(RATES, TIMED.assign_coords(time=t), **BOUNDS).time,
    "given": lambda t: sciml.dataset(RATES, TIMED, time=t, **BOUNDS).time,
    "observation": lambda t: np.array(Observation((0,), t, start=-1.0).times),
    "fit": lambda t: quick(sciml.dataset(RATES, TIMED, **BOUNDS).assign_coords(time=t)).grid.times,
}


def quick(data):
    return sciml.fit(sciml.models.Gaussian(4, 1), data, epochs=1)


@pytest.mark.parametrize("door", TIMES)
@settings(max_examples=12, deadline=None)
@given(times=st.lists(st.integers(0, 4), min_size=3, max_size=3))
def test_times_that_do_not_increase_are_refused(door, times):
    if times[0] < times[1] < times[2]:
        assert np.asarray(TIMES[door](np.array(times, float))).tolist() == times
        return
    with pytest.raises(ValueError, match=r"later than the one before|sort them and drop repeats"):
        TIMES[door](np.array(times, float))


def channels(names):
    """Return observations of two channels of these names."""
    return xr.concat([TIMED, TIMED**2], "channel").assign_coords(channel=list(names))


NAMED = {
    "labels": lambda n: sciml.dataset(RATES, TIMED.values[:, :2], labels=n, **BOUNDS),
    "columns": lambda n: sciml.dataset(RATES, pd.DataFrame(TIMED.values[:, :2], columns=n)),
    "features": lambda n: sciml.dataset(
        RATES, xr.DataArray(TIMED.values[:, :2], {"feature": n}, ("sample", "feature")), **BOUNDS
    ),
    "channels": lambda n: sciml.dataset(RATES, channels(n), **BOUNDS),
    "fit": lambda n: quick(
        sciml.dataset(RATES, channels("uv"), **BOUNDS).assign_coords(channel=list(n))
    ),
    "fit, parameters": lambda n: quick(
        sciml.dataset(np.c_[RATES, RATES], TIMED).assign_coords(parameter=list(n))
    ),
    "observed": lambda n: replace(linear(), observed=tuple(n)),
    "noises": lambda n: PerChannel(tuple((name, Gaussian(0.1)) for name in n)),
}


@pytest.mark.parametrize("door", NAMED)
@given(names=st.lists(st.sampled_from("uv"), min_size=2, max_size=2))
@settings(max_examples=4, deadline=None)
def test_a_name_that_occurs_twice_is_refused(door, names):
    if len({*names}) == 2:
        assert NAMED[door](names) is not None
        return
    with pytest.raises(ValueError, match="twice, at 0 and at 1; each name must occur once"):
        NAMED[door](names)


@pytest.mark.slow
def test_times_and_names_that_are_given_do_not_hide_others():
    named = xr.DataArray(TIMED.values[:, :2], {"feature": ["u", "v"]}, ("sample", "feature"))
    with pytest.raises(ValueError, match=r"feature\[0\] of x is u, and v is given for it"):
        sciml.dataset(RATES, named, labels=("v", "u"), **BOUNDS)
    with pytest.raises(ValueError, match=r"time\[2\] of x is 2.0, and 3.0 is given for it"):
        sciml.dataset(RATES, TIMED.assign_coords(time=[0.0, 1.0, 2.0]), time=[0, 1, 3], **BOUNDS)
    with pytest.raises(ValueError, match="times are given; the second axis must be time"):
        sciml.dataset(RATES, named, time=[0.0, 1.0], **BOUNDS)
    with pytest.raises(TypeError, match="of dates: pass numbers"):
        sciml.dataset(RATES, TIMED.values, time=pd.date_range("2020", periods=3), **BOUNDS)
