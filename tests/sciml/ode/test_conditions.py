"""Known inputs of each sample: drawn, given by label, solved with, kept in stores; or refused."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from numpyro.distributions import LogNormal, MultivariateNormal, Normal, Uniform

import sciml
from sciml.ode import Diffrax, Gaussian, Observation, RungeKutta4, Static, System, accumulate

COARSE = RungeKutta4(substeps=8)


def drug(**changes) -> System:
    """One compartment: u' = −k u, u(0) = dose / volume, both given."""
    parts = {
        "vector_field": lambda _t, u, p, _c: (-p[0] * u[0],),
        "initial_state": lambda _p, c: (c["dose"] / c["volume"],),
        "prior": {"k": LogNormal(-1.5, 0.3)},
        "conditions": {"dose": Uniform(50.0, 200.0), "volume": [5.0, 10.0, 20.0]},
        "observation": Observation.regular(interval=1.0, length=6),
        "method": COARSE,
    }
    return System(name="drug", **(parts | changes))


def exact(data: xr.Dataset) -> np.ndarray:
    first = (data.dose / data.volume).values[:, None]
    return first * np.exp(-data.parameters.values[:, :1] * data.time.values)


def test_drawn_conditions_are_solved_with_and_travel_with_observations():
    data = sciml.simulate(drug(), 40, seed=3)
    np.testing.assert_allclose(data.observation, exact(data), rtol=1e-5)
    assert set(np.unique(data.volume)) == {5.0, 10.0, 20.0}
    assert data.dose.min() > 50
    assert data.dose.max() < 200
    one = data.observation[7]
    assert float(one.dose) == float(data.dose[7])
    again = sciml.simulate(drug(), parameters=data.parameters)  # which carries them
    np.testing.assert_array_equal(again.observation, data.observation)


@pytest.mark.slow
@given(order=st.permutations(range(5)), swapped=st.booleans(), kind=st.sampled_from("dtax"))
@settings(max_examples=4, deadline=None)
def test_conditions_are_aligned_by_their_labels(order, swapped, kind):
    table = pd.DataFrame({"dose": [60.0, 90, 120, 150, 180], "volume": [5.0, 6, 7, 8, 9]})
    theta = xr.DataArray(
        np.linspace(0.1, 0.5, 5)[:, None],
        {"parameter": ["k"], "sample": range(5)},
        ("sample", "parameter"),
    )
    plain = sciml.simulate(drug(), conditions=table, parameters=theta)
    names = ["volume", "dose"] if swapped else ["dose", "volume"]
    if kind == "d":
        source = {name: table[name].to_numpy() for name in names}
    elif kind == "t":
        source = table[names]
    elif kind == "a":
        values = table[names].to_numpy()[order]
        source = xr.DataArray(
            values.T, {"sample": order, "condition": names}, ("condition", "sample")
        )
    else:
        source = plain.isel(sample=list(order)).assign_coords(sample=list(order))
    found = sciml.simulate(drug(), conditions=source, parameters=theta)
    np.testing.assert_array_equal(found.observation, plain.observation)


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ({"dose": 1.0}, "volume"),
        ({"dose": 1.0, "volume": 1.0, "weight": 70.0}, "weight"),
        ({"Dose": 1.0, "volume": 1.0}, "Dose"),
        ({"dose": [1.0, 2.0], "volume": 1.0}, "shape"),
        ({"dose": [1.0, np.nan, 2.0], "volume": 1.0}, "finite"),
        ({"dose": ["a", "b", "c"], "volume": 1.0}, "finite"),
        ({"dose": np.ma.masked_greater([1.0, 2.0, 9.0], 3), "volume": 1.0}, "sample 2"),
        (pd.DataFrame(np.ones((3, 3)), columns=["dose", "dose", "volume"]), "dose twice"),
    ],
)
def test_conditions_that_do_not_fit_are_refused(source, word):
    with pytest.raises(ValueError, match=word):
        sciml.simulate(drug(), 3, source)


def test_conditions_without_names_or_of_other_samples_are_refused():
    with pytest.raises(TypeError, match="names"):
        sciml.simulate(drug(), 3, np.ones((3, 2)))
    with pytest.raises(ValueError, match="not given"):
        sciml.simulate(drug(), parameters={"k": [0.1, 0.2]})
    theta = xr.DataArray(
        [[0.1], [0.2]], {"parameter": ["k"], "sample": [1, 2]}, ("sample", "parameter")
    )
    other = xr.Dataset(
        coords={n: ("sample", [1.0, 2.0]) for n in ("dose", "volume")} | {"sample": [3, 4]}
    )
    with pytest.raises(ValueError, match="labelled otherwise"):
        sciml.simulate(drug(), conditions=other, parameters=theta)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"conditions": {"k": [1.0]}}, "'k'"),
        ({"conditions": {"time": [1.0]}}, "'time'"),
        ({"conditions": {"dose": 3.0}}, "list of finite"),
        ({"conditions": {"dose": [1.0, np.inf]}}, "list of finite"),
        ({"conditions": {"dose": np.ones((3, 4))}}, "shape"),
        ({"conditions": {("dose", "volume"): np.ones((3, 3))}}, "shape"),
        ({"conditions": {"dose": Normal(jnp.zeros(2), 1.0)}}, "shape"),
        ({"conditions": ["dose"]}, "dict|Mapping"),
        ({"conditions": {"": [1.0]}}, "name ''"),
        ({"conditions": {"dose": np.ma.masked_greater([1.0, 5.0], 3)}}, "list of finite"),
        (
            {"vector_field": lambda _t, u, p: (-p[0] * u[0],), "initial_state": (1.0,)},
            "nothing takes",
        ),
    ],
)
def test_conditions_that_cannot_be_drawn_are_refused(changes, word):
    with pytest.raises((ValueError, TypeError), match=word):
        drug(**changes)


@pytest.mark.parametrize("kind", ["table", "array"])
def test_series_at_other_times_are_refused(kind):
    """Of one's own simulations, as of a system; a table's columns are its times."""
    minutes, rain = 60.0 * np.arange(6), np.ones((2, 6))
    if kind == "table":
        series = pd.DataFrame(rain, columns=minutes)
    else:
        series = xr.DataArray(rain, {"time": minutes}, ("sample", "time"))
    wet = drug(
        conditions={"rain": rain},
        vector_field=lambda _t, u, p, c: (c["rain"] - p[0] * u[0],),
        initial_state=(0.0,),
    )
    theta = np.array([[0.1], [0.2]])
    with pytest.raises(ValueError, match="rain is at the times"):
        sciml.simulate(wet, conditions={"rain": series}, parameters=theta)
    with pytest.raises(ValueError, match="rain is at the times"):
        sciml.dataset(theta, rain, {"rain": series}, time=np.arange(6.0))


def test_a_condition_of_own_simulations_is_no_parameter():
    with pytest.raises(ValueError, match="named 'k'"):
        sciml.dataset({"k": [0.1, 0.2]}, np.ones((2, 3)), {"k": [1.0, 2.0]})
    with pytest.raises(ValueError, match="each must be a finite number"):
        sciml.dataset({"k": [0.1, 0.2]}, np.ones((2, 3)), time=[0.0, np.nan, 2.0])


def test_a_column_of_a_table_is_a_list_of_values():
    data = sciml.simulate(drug(conditions={"dose": pd.Series([60.0]), "volume": [5.0]}), 3)
    np.testing.assert_allclose(data.observation, exact(data), rtol=1e-5)


def test_a_wrong_name_in_the_field_is_explained():
    task = Static(
        name="t",
        prior={"m": Uniform(0.0, 1.0)},
        features=1,
        noise=None,
        solution=lambda p, c: p * c["v"],
        conditions={"w": [1.0]},
    )
    with pytest.raises(TypeError, match=r"the solution of 't'.*c\['w'\]"):
        sciml.simulate(task, 2)
    wrong = drug(vector_field=lambda _t, u, p, c: (-p[0] * u[0] * c["dosis"],))
    with pytest.raises(TypeError, match=r"read by name, c\['dose'\]"):
        sciml.simulate(wrong, 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", [COARSE, Diffrax("Tsit5", dtype="float64", rtol=1e-9, atol=1e-9)]
)
def test_a_series_is_interpolated_between_its_times(method):
    times = np.array([0.0, 1.0, 1.5, 4.0])
    rain = np.random.default_rng(0).uniform(size=(7, 4))
    tank = System(
        name="tank",
        vector_field=lambda _t, _u, p, c: (p[0] * c["rain"],),
        initial_state=(0.0,),
        prior={"area": Uniform(1.0, 2.0)},
        conditions={"rain": rain},
        observation=Observation((0,), times),
        method=method,
    )
    data = sciml.simulate(tank, 5)
    assert data.rain.dims == ("sample", "time")
    mean = (data.rain.values[:, 1:] + data.rain.values[:, :-1]) / 2
    level = np.cumsum(np.pad(mean * np.diff(times), ((0, 0), (1, 0))), axis=1)
    np.testing.assert_allclose(
        data.observation, data.parameters.values * level, rtol=2e-5, atol=1e-6
    )
    turned = data.drop_vars("observation").rain.transpose()
    again = sciml.simulate(tank, conditions={"rain": turned}, parameters=data.parameters)
    np.testing.assert_allclose(again.observation, data.observation, rtol=1e-6)
    with pytest.raises(
        ValueError, match=r"at the times 1 to 5 \(4\), the observations at 0 to 4 \(4\)"
    ):
        late = data.assign_coords(time=times + 1)
        sciml.simulate(tank, conditions=late, parameters=data.parameters.values)


def test_conditions_that_depend_on_each_other_are_drawn_together():
    both = MultivariateNormal(jnp.array([100.0, 10.0]), jnp.array([[100.0, 9.5], [9.5, 1.0]]))
    data = sciml.simulate(drug(conditions={("dose", "volume"): both}), 500)
    assert np.corrcoef(data.dose, data.volume)[0, 1] > 0.9


@pytest.mark.slow
def test_a_store_keeps_conditions_and_refuses_others(tmp_path):
    path, small = tmp_path / "drug.zarr", drug(method=RungeKutta4(substeps=8, chunk=20))
    accumulate(small, path, samples=20)
    data = accumulate(small, path, samples=50, noise=None)
    np.testing.assert_allclose(data.observation, exact(data), rtol=1e-5)
    assert "dose" in data.observation.coords
    wider = drug(method=small.method, conditions={"dose": Uniform(1.0, 200.0), "volume": [5.0]})
    with pytest.raises(ValueError, match="conditions"):
        accumulate(wider, path, samples=60)


def test_a_task_without_an_equation_takes_conditions():
    line = Static(
        name="line",
        prior={"slope": Normal(0.0, 1.0)},
        features=2,
        noise=Gaussian(0.1),
        solution=lambda p, c: jnp.stack([p[0] * c["x"], p[0]]),
        conditions={"x": Uniform(0.0, 1.0)},
    )
    data = sciml.simulate(line, 5)
    np.testing.assert_allclose(data.observation[:, 0], data.parameters[:, 0] * data.x, rtol=1e-6)
    with pytest.raises(ValueError, match="nothing takes"):
        Static("plain", {"a": Normal(0.0, 1.0)}, 1, Gaussian(0.1), conditions={"x": [1.0]})


def test_own_simulations_have_conditions():
    theta, x = np.random.default_rng(0).uniform(size=(2, 30, 2))
    data = sciml.dataset(theta, x, {"dose": np.arange(30.0)}, names=("a", "b"))
    assert data.observation.dose.attrs["role"] == "condition"
    assert sciml.dataset(theta, data.observation, names=("a", "b")).dose.size == 30
    for wrong in (
        {"dose": np.arange(29.0)},
        {"dose": np.full(30, np.nan)},
        {"sample": theta[:, 0]},
    ):
        with pytest.raises(ValueError, match="condition"):
            sciml.dataset(theta, x, wrong)
    made = sciml.ode.black_box(
        lambda p: np.array([p["a"], p["dose"]]),
        {"a": Uniform(0.0, 1.0)},
        20,
        {"dose": Uniform(1.0, 2.0)},
        scheduler="synchronous",
    )
    np.testing.assert_allclose(made.observation[:, 1], made.dose, rtol=1e-6)


@pytest.mark.slow
def test_a_series_of_one_time_is_constant_and_ends_go_on():
    rain = np.array([[2.0], [3.0]])
    tank = System(
        name="tank",
        vector_field=lambda _t, _u, p, c: (p[0] * c["rain"],),
        initial_state=(0.0,),
        prior={"area": Uniform(1.0, 2.0)},
        conditions={"rain": rain},
        observation=Observation((0,), np.array([3.0])),
        method=COARSE,
    )
    data = sciml.simulate(tank, 4)
    expected = data.parameters.values * data.rain.values * 3.0
    np.testing.assert_allclose(data.observation.values, expected, rtol=1e-5)
    late = replace(
        tank, conditions={"rain": np.repeat(rain, 2, axis=1) * [1, 2]},
        observation=Observation((0,), np.array([1.0, 2.0])),
    )  # fmt: skip
    data = sciml.simulate(late, 4)  # before its first time a series is what it begins with
    area, first = data.parameters.values[:, 0], data.rain.values[:, 0]
    np.testing.assert_allclose(data.observation[:, 0], area * first, rtol=1e-5)
    np.testing.assert_allclose(data.observation[:, 1], area * first * 2.5, rtol=1e-5)


@pytest.mark.parametrize(
    ("changes", "ignored"),
    [
        ({}, ""),
        ({"initial_state": lambda _p, c: (c["dose"],)}, "volume"),
        ({"initial_state": lambda _p, c: (c["dose"] + 0.0 * jnp.size(c["volume"]),)}, "volume"),
        ({"initial_state": (1.0,), "vector_field": lambda _t, u, p, _c: (-p[0] * u[0],)}, "both"),
        ({"initial_state": (0.0,), "doses": (sciml.ode.Bolus(0, 0.0, "dose"),)}, "volume"),
    ],
)
@pytest.mark.parametrize("stored", [False, True])
def test_conditions_that_nothing_depends_on_are_told(changes, ignored, stored, caplog, tmp_path):
    """A net was shown, without a word, what tells it nothing, as of a name that was forgotten."""
    if stored:
        accumulate(drug(**changes), tmp_path / "drug.zarr", samples=2)
    else:
        sciml.simulate(drug(**changes), 2)
    said = [r.getMessage() for r in caplog.records if "depends on" in r.getMessage()]
    names = "dose, volume" if ignored == "both" else ignored
    assert bool(said) == bool(ignored)
    assert all(f"nothing in 'drug' depends on {names}: simulations" in text for text in said)
