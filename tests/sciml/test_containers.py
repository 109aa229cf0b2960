"""The same numbers in another container give the same answer, or one line says why not."""

import dataclasses
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpyro.distributions import Normal

import sciml
from sciml.ode import Gaussian, Static

pytestmark = pytest.mark.usefixtures("quick_compilation", "untyped")

NAMES = ("first", "second")
TIMES = np.array([0.0, 1.0, 3.0])
ON = ("sample", "time")


def line() -> Static:
    prior = {name: Normal(0.0, 1.0) for name in NAMES}
    return Static("line", prior, 3, Gaussian(sd=0.1), solution=lambda p: p[0] + p[1] * TIMES)


@pytest.fixture(scope="module")
def runs() -> xr.Dataset:
    """Simulations, whose features have no names, and six to be answered."""
    return sciml.simulate(line(), 300, noise=line().noise)


@pytest.fixture(scope="module")
def fit(runs):
    return sciml.fit(sciml.models.Gaussian(width=8, depth=1), runs, epochs=2)


@pytest.fixture(scope="module")
def timed(runs):
    """A fit to the same numbers as a series."""
    data = sciml.dataset(runs.parameters, runs.observation.values, time=TIMES)
    return sciml.fit(sciml.models.Gaussian(width=8, depth=1), data, epochs=2)


BARE = {
    "array": np.asarray,
    "list": lambda x: x.tolist(),
    "jax": jnp.asarray,
    "fortran": np.asfortranarray,
    "masked": lambda x: np.ma.masked_greater(x, 1e6),
    "object": lambda x: x.astype(object),
    "table": pd.DataFrame,
    "runs": lambda x: pd.DataFrame(x, index=[f"run {i}" for i in range(len(x))]),
    "levels": lambda x: pd.DataFrame(x, pd.MultiIndex.from_product([["a", "b"], [1, 2, 3]])),
    "nullable": lambda x: pd.DataFrame(x).astype("Float64"),
}
DOORS = {
    "predict": lambda fit, x, _: fit.predict(x).estimate,
    "sample": lambda fit, x, _: fit.sample(x, 5).posterior,
    "log_prob": lambda fit, x, runs: fit.log_prob(x, runs.parameters[:6].values),
    "importance": lambda fit, x, _: sciml.reference.importance(fit, line(), x, draws=8).posterior,
    "trust": lambda fit, x, _: sciml.reference.trust(fit, line(), x).c2st,
    "nearest": lambda _, x, runs: sciml.baselines.nearest_neighbours(runs, x).estimate,
}
COSTLY = "importance", "trust"


@pytest.mark.parametrize("door", DOORS)
def test_bare_arrays_and_tables_are_answered_as_labelled_ones(fit, runs, door):
    seen = runs.observation[:6]
    wanted = DOORS[door](fit, seen, runs).values
    for kind in BARE if door not in COSTLY else ("list", "runs"):
        found = DOORS[door](fit, BARE[kind](seen.values), runs)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6, err_msg=kind)


def test_one_observation_needs_no_axis_of_samples(fit, runs):
    seen = runs.observation[:1]
    wanted = fit.predict(seen).estimate.values
    one = seen.values[0]
    for x in (one, one.tolist(), pd.Series(one), seen[0], seen[0].to_dataset(name="observation")):
        np.testing.assert_allclose(fit.predict(x).estimate, wanted, rtol=1e-6)


def test_columns_of_a_table_are_its_times(timed, runs):
    seen = runs.observation.values[:6]
    wanted = timed.predict(seen).estimate.values
    table = pd.DataFrame(seen, columns=TIMES)
    np.testing.assert_allclose(timed.predict(table).estimate, wanted, rtol=1e-6)
    for wrong in (table[TIMES[::-1]], table.set_axis(TIMES + 1, axis=1), table.assign(more=1.0)):
        with pytest.raises(ValueError, match=r"times must be the same|there are 3 in what"):
            timed.predict(wrong)


@pytest.mark.parametrize("name", [str, lambda t: f"{t:.2f}", lambda t: f"{t:.0e}"])
def test_columns_of_a_file_are_its_times_though_text(timed, runs, name):
    """As `read_csv` has them; in another order they were taken by their place."""
    seen = runs.observation.values[:6]
    table = pd.DataFrame(seen, columns=[name(t) for t in TIMES])
    wanted = timed.predict(seen).estimate.values
    np.testing.assert_allclose(timed.predict(table).estimate, wanted, rtol=1e-6)
    with pytest.raises(ValueError, match="times must be the same"):
        timed.predict(table.iloc[:, ::-1])
    counted = table.set_axis([str(i) for i in range(3)], axis=1)
    np.testing.assert_allclose(timed.predict(counted).estimate, wanted, rtol=1e-6)


@pytest.mark.parametrize(
    "kind", [pd.date_range("2020", periods=3), pd.timedelta_range("0h", "2h", 3)]
)
def test_dates_of_a_table_are_refused_or_replaced_in_order(timed, runs, kind):
    """They were dropped, in whatever order."""
    seen = runs.observation.values
    for table in (pd.DataFrame(seen, columns=kind), pd.Series(seen[0], index=kind)):
        with pytest.raises(TypeError, match="time of the observations must be real numbers"):
            timed.predict(table)
    table = pd.DataFrame(seen, columns=kind)
    made = sciml.dataset(runs.parameters, table, time=TIMES)
    np.testing.assert_array_equal(made.time, TIMES)
    with pytest.raises(ValueError, match="each must be later"):
        sciml.dataset(runs.parameters, table.iloc[:, ::-1], time=TIMES)


def test_labels_of_a_table_stay_with_its_rows(fit, runs):
    table = pd.DataFrame(runs.observation.values[:6], index=[f"run {i}" for i in range(6)])
    assert fit.predict(table.iloc[::-1]).sample.values.tolist() == [
        f"run {5 - i}" for i in range(6)
    ]


@pytest.mark.parametrize("door", DOORS)
def test_what_is_no_table_of_numbers_is_told_in_one_line(fit, runs, door):
    rows = runs.observation.values[:6].tolist()
    for x, said in (
        ([*rows[:5], rows[5][:2]], "has rows of different lengths"),
        (np.array(rows).astype(str), "must be real numbers"),
        (np.zeros((6, 3, 2)), r"must be \(sample, feature\) or \(feature\)"),
        (np.zeros((0, 3)), "at least one sample"),
        (runs.observation[:0], "at least one sample"),
        (xr.Dataset({"x": ("sample", np.zeros(6))}), "it must have 'observation'"),
    ):
        with pytest.raises((TypeError, ValueError), match=said):
            DOORS[door](fit, x, runs)


@pytest.mark.parametrize("kind", [pd.DataFrame, "array"], ids=["table", "array"])
def test_simulations_keep_the_labels_of_their_parameters(fit, kind):
    """Rows that were shuffled are compared with those of their own labels, not of their place."""
    table = pd.DataFrame({"first": np.linspace(-1, 1, 6), "second": np.linspace(1, -1, 6)})
    moved = table.iloc[[3, 0, 5, 1, 4, 2]]
    given = moved if kind is pd.DataFrame else xr.DataArray(moved, dims=("sample", "parameter"))
    data = sciml.simulate(line(), parameters=given)
    found = [fit.log_prob(data, each).values for each in (data.parameters, table, moved)]
    np.testing.assert_allclose(found[1:], found[:1] * 2)
    near = sciml.baselines.nearest_neighbours(data, data, k=1)
    score = sciml.diagnose.recovery(table, near.estimate, names=NAMES)
    np.testing.assert_allclose(score.r2.sel(regime="all"), 1.0)


def test_half_precision_overflows_nowhere(runs):
    half = runs.observation.astype(np.float16)
    data = sciml.dataset(runs.parameters, half)
    np.testing.assert_array_equal(data.observation, half.astype(np.float32))


@pytest.mark.slow
def test_a_reference_posterior_keeps_what_was_masked():
    seen = np.ma.masked_greater([0.0, 1.0, 99.0], 90.0)
    settings = sciml.reference.Population(particles=50)
    found = sciml.reference.smc(line(), seen, settings=settings)
    np.testing.assert_array_equal(found.observation, [0.0, 1.0, np.nan])


class Metres(np.ndarray):
    """An array with a unit, as Astropy has it."""

    unit = "m"


class Pair(NamedTuple):
    """A row with names, in another order."""

    second: float
    first: float


BACK = ["second", "first"]


def test_lists_of_masked_rows_keep_their_gaps(runs):
    """NumPy makes one array of them without the masks: what lay beneath was taken."""
    seen = runs.observation.values.copy()
    seen[:, 1] = 99.0
    rows = [np.ma.masked_greater(row, 90.0) for row in seen]
    data = sciml.dataset(runs.parameters, rows)
    np.testing.assert_array_equal(data.observation[:, 1], np.nan)
    np.testing.assert_array_equal(data.observation[:, 0], seen[:, 0])
    with pytest.raises(ValueError, match="all must be finite"):
        sciml.simulate(line(), parameters=[np.ma.masked_less([0.0, 1.0], 0.5)])
    assert np.isnan(sciml.diagnose.rmse([[rows[0]]], [[seen[0]]]))


@pytest.mark.parametrize(
    "rows",
    [
        lambda x: [pd.Series(row[::-1], BACK) for row in x],
        lambda x: [
            pd.Series(row[::-1], BACK) if row[0] > 0 else pd.Series(row, NAMES) for row in x
        ],
        lambda x: [dict(zip(BACK, row[::-1], strict=True)) for row in x],
        lambda x: tuple(Pair(*row[::-1]) for row in x),
        lambda x: [xr.DataArray(row[::-1], {"parameter": BACK}, "parameter") for row in x],
    ],
    ids=["series", "mixed", "dicts", "tuples", "arrays"],
)
def test_lists_of_named_rows_are_put_in_order_by_their_names(fit, runs, rows):
    """They were simulated swapped, or dropped their names."""
    theta = runs.parameters[:6]
    given = rows(theta.values)
    wanted = sciml.simulate(line(), parameters=theta).observation.values
    found = sciml.simulate(line(), parameters=given).observation
    np.testing.assert_array_equal(found, wanted)
    seen = runs.observation[:6]
    np.testing.assert_array_equal(fit.log_prob(seen, given), fit.log_prob(seen, theta))


def test_observations_in_a_list_keep_their_times(timed, runs):
    seen = runs.observation.values[:3]
    wanted = timed.predict(seen).estimate.values
    table = pd.DataFrame(seen, columns=TIMES)
    for rows in ([row for _, row in table.iterrows()], [*xr.DataArray(table, dims=ON)]):
        np.testing.assert_allclose(timed.predict(rows).estimate, wanted, rtol=1e-6)
    later = xr.DataArray(seen, {"time": TIMES + 1}, ON)
    with pytest.raises(ValueError, match="times must be the same"):
        timed.predict([*later])
    with pytest.raises(ValueError, match=r"rows of .* have different names"):
        timed.predict([table.iloc[0], table.iloc[1, :2]])
    tables = [table, table]
    with pytest.raises(TypeError, match="holds a DataFrame, whose names would be lost"):
        sciml.dataset(runs.parameters[:2], tables)


def test_units_within_a_list_and_names_without_order_are_refused(runs):
    theta, seen = runs.parameters.values[:3], runs.observation.values[:3]
    with pytest.raises(TypeError, match="is a Metres in m; units are not converted"):
        sciml.dataset(theta, [row.view(Metres) for row in seen])
    for names in ({"a", "b"}, "ab"):
        with pytest.raises(TypeError, match=r"names is .*; it must be a row"):
            sciml.dataset(theta, seen, names=names)
    with pytest.raises(TypeError, match=r"observed is .*; it must be a row"):
        dataclasses.replace(sciml.ode.lotka_volterra(), observed={"prey", "predators"})


@pytest.mark.parametrize(
    "once", [iter, lambda rows: map(list, rows), lambda rows: (r for r in rows)]
)
def test_what_is_read_once_is_asked_for_as_a_list(fit, runs, once):
    with pytest.raises(TypeError, match=r"read once: pass a list of them"):
        fit.predict(once(runs.observation.values[:2].tolist()))
