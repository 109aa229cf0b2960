"""Tables of other libraries keep the names of their columns; quantities are refused."""

import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import sciml

theta = pd.DataFrame({"a": np.linspace(0.1, 1.0, 40), "b": np.linspace(6.0, 5.0, 40)})
x = np.stack([theta.a + theta.b, theta.a * theta.b, theta.a], axis=1)


class Columns:
    """A table as Polars has one: named columns, and an array without their names."""

    def __init__(self, table: pd.DataFrame) -> None:
        self.table, self.columns = table, list(table.columns)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.table[name].to_numpy()

    def __array__(self, *args: object, **options: object) -> np.ndarray:
        return self.table.to_numpy()


class Arrow(Columns):
    """A table as Arrow has one, which calls them otherwise, and has them as columns beside."""

    def __init__(self, table: pd.DataFrame) -> None:
        super().__init__(table)
        self.column_names, self.columns = self.columns, [table[name] for name in table.columns]


class Quantity:
    """Numbers with a unit, as pint has them, which NumPy takes without it."""

    dtype = np.dtype(float)

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.units = values, "meter"

    def __array__(self, *args: object, **options: object) -> np.ndarray:
        return self.values


class Measured(np.ndarray):
    """An array with a unit, as Astropy has it."""

    unit = "m"


class Dask(Columns):
    """A table as Dask has it, which is one of pandas once it is computed."""

    def compute(self) -> pd.DataFrame:
        return self.table


TABLES = (Columns, Arrow, Dask)


class Tensor:
    """Numbers as PyTorch has them: NumPy takes none with a gradient, and no bfloat16."""

    requires_grad = True

    def __init__(self, values: np.ndarray, size: int = 2, dense: bool = True) -> None:
        self.values, self.size, self.dense = values, size, dense

    def detach(self) -> "Tensor":
        return self

    def cpu(self) -> "Tensor":
        return self

    def is_floating_point(self) -> bool:
        return True

    def element_size(self) -> int:
        return self.size

    def float(self) -> "Tensor":
        return Tensor(self.values, 4, self.dense)

    def __array__(self, *args: object, **options: object) -> np.ndarray:
        if self.size < 4 or not self.dense:
            raise TypeError("can't convert Sparse layout tensor to numpy. Use to_dense().")
        return self.values


def test_tensors_of_pytorch_are_arrays() -> None:
    rng = np.random.default_rng(0)
    truth, draws = rng.normal(size=(60, 2)), rng.normal(size=(50, 60, 2))
    moves = sciml.diagnose.recalibration(Tensor(draws), Tensor(truth))
    xr.testing.assert_identical(moves, sciml.diagnose.recalibration(draws, truth))
    moved = sciml.diagnose.recalibrate(Tensor(draws), moves)
    np.testing.assert_array_equal(moved, sciml.diagnose.recalibrate(draws, moves))
    score = sciml.diagnose.coverage(Tensor(draws), Tensor(truth)).worst_points
    np.testing.assert_array_equal(score, sciml.diagnose.coverage(draws, truth).worst_points)
    with pytest.raises(TypeError, match="posterior is a Tensor that NumPy does not take"):
        sciml.diagnose.coverage(Tensor(draws, dense=False), truth)


@pytest.mark.parametrize("kind", TABLES)
def test_columns_keep_their_names(kind) -> None:
    bounds = {"b": (5.0, 6.0), "a": (0.0, 1.0)}
    made = sciml.dataset(kind(theta), x, bounds=bounds)
    assert made.parameters.sel(parameter="b").values == pytest.approx(theta.b.to_numpy())
    seen = sciml.dataset(theta, kind(theta[["b", "a"]]))
    assert list(seen.feature.values) == ["b", "a"]
    known = sciml.dataset(x, x, conditions=kind(theta[["b", "a"]]))
    assert known.a.values == pytest.approx(theta.a.to_numpy())


@pytest.mark.parametrize("kind", TABLES)
def test_a_permuted_table_simulates_the_same(kind) -> None:
    problem = sciml.ode.lotka_volterra()
    rows = pd.DataFrame({"alpha": [0.9], "beta": [0.09], "gamma": [0.5], "delta": [0.01]})
    first = sciml.simulate(problem, parameters=rows)
    second = sciml.simulate(problem, parameters=kind(rows[["delta", "gamma", "beta", "alpha"]]))
    assert second.observation.equals(first.observation)


def test_rows_of_dask_are_put_in_the_order_of_their_labels() -> None:
    dose = pd.DataFrame({"dose": theta.a}).sample(frac=1.0, random_state=0)
    known = sciml.dataset(theta, x, conditions=Dask(dose))
    assert known.dose.values == pytest.approx(theta.a.to_numpy())


@pytest.mark.parametrize("kind", [Quantity, lambda values: np.asarray(values).view(Measured)])
def test_numbers_with_a_unit_are_refused(kind) -> None:
    problem = sciml.ode.lotka_volterra()
    data = sciml.simulate(problem, 100, noise=problem.noise)
    fit = sciml.fit(sciml.models.Gaussian(width=4, depth=1), data, epochs=1)
    numbers = data.observation.values[0]
    for call in (
        lambda: sciml.dataset(kind(theta.to_numpy()), x),
        lambda: sciml.dataset(theta, kind(x)),
        lambda: sciml.dataset(theta, x, time=kind(np.arange(3.0))),
        lambda: sciml.dataset(theta, x, conditions={"dose": kind(np.ones(40))}),
        lambda: sciml.reference.nuts(problem, kind(numbers)),
        lambda: sciml.simulate(problem, parameters=dict.fromkeys("abcd", kind(np.ones(2)))),
        lambda: fit.predict(data.observation.copy(data=data.observation.values.view(Measured))),
    ):
        with pytest.raises(TypeError, match="units are not converted"):
            call()


def test_columns_keep_their_masks_and_units() -> None:
    class Astropy(Columns):
        def __getitem__(self, name: str) -> np.ndarray:
            return self.kept.get(name, super().__getitem__(name))

    table = Astropy(theta)
    table.kept = {"b": np.ma.masked_greater(theta.b.to_numpy(), 5.9)}
    seen = sciml.dataset(theta, table)
    assert int(np.isnan(seen.observation.sel(feature="b")).sum()) == int((theta.b > 5.9).sum()) > 0
    with pytest.raises(ValueError, match="the condition b of sample 0"):
        sciml.dataset(x, x, conditions=table)
    table.kept = {"a": theta.a.to_numpy().view(Measured)}
    for call in (lambda: sciml.dataset(table, x), lambda: sciml.dataset(theta, table)):
        with pytest.raises(TypeError, match="'a' is a Measured in m; units are not converted"):
            call()


def test_a_table_whose_columns_cannot_be_read_is_refused(untyped) -> None:
    class Lazy(Columns):
        def __getitem__(self, name: str) -> np.ndarray:
            raise TypeError("not subscriptable")

    with pytest.raises(TypeError, match=r"Lazy, whose columns cannot be read .*pandas.DataFrame"):
        sciml.dataset(Lazy(theta), x)
    with pytest.raises(TypeError, match="whose names would be lost here"):
        sciml.ode.Observation((0,), times=Columns(theta))
    with pytest.raises(ValueError, match=r"channel\[0\] of the observations is a, but prey"):
        sciml.reference.nuts(sciml.ode.lotka_volterra(), Columns(theta[:10]))


def test_a_name_is_no_unit() -> None:
    named = pd.DataFrame({"units": theta.a, "unit": theta.b})
    assert list(sciml.dataset(named, x).parameter.values) == ["units", "unit"]
    seen = xr.DataArray(x, dims=("sample", "feature"), attrs={"units": "m"})
    assert sciml.dataset(theta, seen).observation.shape == x.shape


MELT = np.random.default_rng(3).normal(size=(40, 6))
RATE = pd.DataFrame({"rate": MELT[:, 0]})
LEVELS = pd.MultiIndex.from_product([["north", "south"], range(20)], names=["glacier", "run"])
SHUFFLED = np.random.default_rng(4).permutation(40)


@pytest.mark.parametrize(
    ("theta", "x"),
    [
        (pd.RangeIndex(40), pd.RangeIndex(40)),
        (pd.RangeIndex(40, name="run"), pd.RangeIndex(40, name="run")),
        (pd.Index(range(100, 140), name="run"), pd.Index(range(100, 140), name="run")),
        (pd.RangeIndex(40), pd.RangeIndex(40).map(str)),
        (pd.Index(range(100, 140)).map(str), pd.Index(range(100, 140))),
        (LEVELS, LEVELS),
    ],
    ids=["counted", "counted, named", "named", "counted, as text", "as text", "levels"],
)
def test_rows_are_those_of_one_run_by_every_kind_of_index(theta, x):
    one = RATE.set_index(theta)
    other = pd.DataFrame(MELT).set_index(x).iloc[SHUFFLED]
    data = sciml.dataset(one, other)
    np.testing.assert_allclose(data.observation, MELT, rtol=1e-6)
    np.testing.assert_allclose(data.parameters, RATE)


def test_columns_of_several_levels_and_dicts_of_columns_have_names():
    gauges = pd.MultiIndex.from_product([["upper", "lower"], [1, 2, 3]])
    data = sciml.dataset(RATE, pd.DataFrame(MELT, columns=gauges))
    assert data.feature.values[3] == "('lower', 1)"
    named = sciml.dataset(RATE, {f"day {i}": pd.Series(MELT[:, i]) for i in range(6)})
    assert named.feature.values[1] == "day 1"
    np.testing.assert_allclose(named.observation, data.observation)


def test_kinds_are_told_what_to_do():
    kinds = pd.Series(np.where(MELT[:, 0] > 0, "ice", "snow")).astype("category")
    with pytest.raises(
        ValueError, match=r"surface of .*of kinds pass a column of 0 and 1 for each"
    ):
        sciml.dataset(RATE, MELT, {"surface": kinds})
    with pytest.raises(TypeError, match=r"there is '.*of kinds pass a column of 0 and 1 for each"):
        sciml.dataset(RATE.assign(surface=kinds), MELT)


@pytest.mark.parametrize("names", [[0.0, 5.0, 10.0], ["0.0", "5.0", "10.0"], range(3)])
def test_columns_named_by_numbers_are_no_conditions(names):
    forcing = pd.DataFrame(MELT[:, :3], columns=names)
    problem = sciml.ode.lotka_volterra()
    for call in (
        lambda: sciml.dataset(RATE, MELT[:, 3:], forcing, time=[0, 5, 10]),
        lambda: sciml.simulate(problem, 4, conditions=forcing),
    ):
        with pytest.raises(ValueError, match=r"which are numbers.*\{'forcing': table\}"):
            call()
    if isinstance(names, list) and names[0] == 0.0:
        data = sciml.dataset(RATE, MELT[:, 3:], {"forcing": forcing}, time=[0, 5, 10])
        np.testing.assert_allclose(data.forcing, MELT[:, :3])


@pytest.mark.parametrize(
    "conditions",
    [
        xr.DataArray(MELT[:, :2], dims=("sample", "condition")),
        xr.DataArray(MELT[:, :2], {"condition": [1, 2]}, ("sample", "condition")),
        xr.DataArray(MELT[:, 0], dims="sample", name="dose"),
        xr.Dataset({"dose": ("sample", MELT[:, 0])}),
    ],
    ids=["no names", "numbers", "one", "dataset"],
)
def test_labelled_conditions_without_names_are_refused(conditions):
    with pytest.raises(ValueError, match=r"names none.*\{'dose': "):
        sciml.dataset(RATE, MELT, conditions)


BARE = {
    "theta": lambda table: sciml.dataset(RATE.to_numpy(), table),
    "x": lambda table: sciml.dataset(table[[0]], MELT),
    "table": lambda table: sciml.dataset(RATE, table),
    "conditions": lambda table: sciml.dataset(table[[0]], table, {"dose": MELT[:, 0]}),
    "column": lambda table: sciml.dataset(RATE.to_numpy(), {"a": table[0], "b": MELT[:, 1]}),
    "parameters": lambda table: sciml.dataset({"a": table[0], "b": MELT[:, 1]}, MELT),
}


@pytest.mark.parametrize("door", BARE)
@pytest.mark.parametrize(
    "index",
    [LEVELS[SHUFFLED], pd.Index(sorted(f"run {i}" for i in range(40))), pd.Index(SHUFFLED + 100)],
    ids=["levels", "sorted by letters", "shuffled"],
)
def test_what_has_no_labels_beside_labels_in_no_order_is_refused(door, index):
    table = pd.DataFrame(MELT).set_index(index)
    with pytest.raises(
        ValueError, match=r"the order of its rows.*index=.*reset_index\(drop=True\)"
    ):
        BARE[door](table)


@pytest.mark.parametrize("door", BARE)
@pytest.mark.parametrize(
    "index",
    [
        pd.RangeIndex(40),
        pd.RangeIndex(1, 41),
        pd.Index(np.arange(40) * 3 + 5),
        pd.RangeIndex(40).map(str),
        pd.date_range("2020", periods=40),
        pd.Index([f"run {i}" for i in range(40)]),
        LEVELS.sort_values(),
    ],
    ids=["counted", "from 1", "filtered", "as text", "dates", "names", "levels"],
)
def test_what_has_no_labels_is_taken_in_order_beside_labels_in_order(door, index):
    table = pd.DataFrame(MELT).set_index(index)
    data = BARE[door](table)
    np.testing.assert_allclose(data.parameters[:, 0], MELT[:, 0])
    np.testing.assert_allclose(data.observation[:, 0], MELT[:, 0], rtol=1e-6)


# The same numbers as tables of several kinds; of these only the first four label their rows.
STRANGE = {
    "pandas": lambda t, _: t,
    "dict": lambda t, _: {name: t[name] for name in t},
    "xarray": lambda t, dim: xr.DataArray(t, {"sample": t.index, dim: [*t]}, ("sample", dim)),
    "turned": lambda t, dim: STRANGE["xarray"](t, dim).T,
    "polars": lambda t, _: Columns(t),
    "arrays": lambda t, _: {name: t[name].to_numpy() for name in t},
}
INDEX = {
    "counted": pd.RangeIndex(40),
    "text": pd.Index([f"run {i}" for i in range(40)]),
    "dates": pd.date_range("2020", periods=40),
    "odd": pd.Index(SHUFFLED * 3 + 7),
}


def drawn(draw, table: pd.DataFrame, dim: str):
    """Return a table of any kind, with any index, its rows and columns in any order."""
    kind = draw(st.sampled_from([*STRANGE]))
    table = table.set_index(INDEX[draw(st.sampled_from([*INDEX]))])
    if kind in [*STRANGE][:4] and draw(st.booleans()):
        table = table.sample(frac=1.0, random_state=draw(st.integers(0, 9)))
    return STRANGE[kind](table[draw(st.permutations(list(table)))], dim)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=200, deadline=None)
def test_tables_of_any_kind_and_order_are_aligned_or_refused(data):
    """As a stranger brings them: the rows are those of one run, or a line says why not."""
    doses = pd.DataFrame({"dose": theta.a * 2, "age": theta.b * 3})
    seen = pd.DataFrame({"first": theta.a + 1, "second": theta.b + 1})
    first = drawn(data.draw, theta, "parameter")
    other = drawn(data.draw, seen, "feature")
    known = drawn(data.draw, doses, "condition")
    try:
        made = sciml.dataset(first, other, known)
    except ValueError as error:
        if re.search("order of its rows|labelled otherwise", str(error)):
            return
        raise
    a, b = (made.parameters.sel(parameter=name).values for name in "ab")
    np.testing.assert_allclose(made.observation.sel(feature="first"), a + 1, rtol=1e-6)
    np.testing.assert_allclose(made.observation.sel(feature="second"), b + 1, rtol=1e-6)
    np.testing.assert_allclose(made.dose, 2 * a)
    np.testing.assert_allclose(made.age, 3 * b)


@pytest.mark.filterwarnings("ignore:R² of a, b on the training set")
def test_answers_follow_rows_and_refuse_other_columns():
    rows = np.random.default_rng(5).normal(size=(300, 6))
    table = pd.DataFrame(rows, columns=["a", "b", "p", "q", "r", "dose"])
    data = sciml.dataset(table[["a", "b"]], table[["p", "q", "r"]], table[["dose"]])
    mixed = table.sample(frac=1.0, random_state=0)
    again = sciml.dataset(table[["a", "b"]], mixed[["p", "q", "r"]], mixed[["dose"]])
    fits = [
        sciml.fit(sciml.models.Dense(width=4, depth=1), each, epochs=2) for each in (data, again)
    ]
    usual, same = (fit.predict(data) for fit in fits)
    xr.testing.assert_identical(usual.drop_attrs(), same.drop_attrs())
    fit, seen = fits[0], data.observation
    moved = fit.predict(seen[mixed.index.to_numpy()])
    np.testing.assert_array_equal(moved.estimate, usual.estimate[mixed.index.to_numpy()])
    np.testing.assert_array_equal(moved.flagged, usual.flagged[mixed.index.to_numpy()])
    for odd in (
        seen.sel(feature=["q", "p", "r"]),
        seen.assign_coords(feature=["p", "q", "s"]),
        seen.T,
        seen.drop_vars("dose"),
        seen.rename(feature="time"),
    ):
        with pytest.raises(ValueError, match=r"\.sel|rename|dimensions|not given"):
            fit.predict(odd)


def test_observations_without_parameters_are_said_to_be_left_out(caplog):
    runs = [f"run {i}" for i in range(9)]
    x = pd.DataFrame(np.random.default_rng(0).normal(size=(9, 4)), index=runs)
    theta = pd.DataFrame({"a": np.arange(6.0)}, index=runs[3:])
    data = sciml.dataset(theta, x)
    assert caplog.messages == ["3 of 9 observations have no parameters: left out"]
    np.testing.assert_allclose(data.observation, x.iloc[3:], rtol=1e-6)
    caplog.clear()
    sciml.dataset(theta, x.loc[theta.index[::-1]])
    assert not caplog.messages
