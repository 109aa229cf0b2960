"""Problems: what is seen of them, as what shape, with which labels; and what is refused."""

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from numpyro.distributions import Delta, Normal, Uniform

from sciml.ode import AR1, Gaussian, Missing, Observation, RungeKutta4, Static, System, simulate
from sciml.ode.methods.solver import solver
from sciml.ode.observe.noise import Levels

pytestmark = pytest.mark.usefixtures("quick_compilation")
EXACT = RungeKutta4(substeps=8, dtype="float64")
OMEGA = np.array([[1.0], [1.7]])


def oscillator(observation: Observation, **changes) -> System:
    """u'' = −ω² u, u(0) = (1, 0): u = (cos ωt, −ω sin ωt)."""
    system = System(
        name="oscillator",
        vector_field=lambda t, u, p: (u[1], -(p[0] ** 2) * u[0]),
        initial_state=(1.0, 0.0),
        prior={"omega": Uniform(1.0, 2.0)},
        observation=observation,
    )
    return replace(system, **changes)


def test_two_states_are_two_channels():
    system = oscillator(Observation.regular(states=(1, 0), interval=0.1, length=20))
    data = simulate(replace(system, observed=("speed", "place")), parameters=OMEGA, method=EXACT)
    assert data.observation.dims == ("sample", "time", "channel")
    t = data.time.values
    place = data.observation.sel(channel="place")
    np.testing.assert_allclose(place, np.cos(OMEGA * t), atol=1e-7)
    np.testing.assert_allclose(
        data.observation.sel(channel="speed"), -OMEGA * np.sin(OMEGA * t), atol=1e-7
    )


def test_a_problem_says_what_it_is_in_one_line():
    system = oscillator(Observation.regular(states=(1, 0), interval=0.1, length=20))
    said = "System('oscillator': omega; states 1, 0 at 20 times, 0 to 1.9 s)"
    assert repr(system) == said
    assert repr(system.observation) == "Observation(states=(1, 0), 20 times, 0 to 1.9)"


def test_irregular_times_that_begin_late():
    times = (0.3, 0.35, 2.0, 7.5)
    method = RungeKutta4(dtype="float64", longest_step=0.05)
    data = simulate(oscillator(Observation((0,), times)), parameters=OMEGA, method=method)
    np.testing.assert_array_equal(data.time, times)
    np.testing.assert_allclose(data.observation, np.cos(OMEGA * times), atol=1e-5)
    settings = json.loads(data.attrs["settings"])
    assert settings["method"]["longest_step"] == 0.05


def test_longest_step_divides_the_longest_gap():
    system = oscillator(Observation.regular(interval=2.0, length=6))
    one, two = (
        simulate(system, parameters=OMEGA, method=method)
        for method in (RungeKutta4(longest_step=0.1), RungeKutta4(substeps=20))
    )
    np.testing.assert_array_equal(one.observation, two.observation)


def test_time_starts_where_the_observation_says():
    system = System(
        name="square",
        vector_field=lambda t, u, p: (2 * p[0] * t,),
        initial_state=lambda p: (p[0],),
        prior={"theta": Uniform(0.0, 1.0)},
        observation=Observation((0,), (1.0, 2.0, 4.0), start=1.0),
    )
    data = simulate(system, parameters=np.array([[3.0]]), method=EXACT)
    np.testing.assert_allclose(data.observation[0], 3 * data.time**2, rtol=1e-12)


def test_features_have_no_time():
    seen = Observation.regular(
        interval=0.01, length=1000, transform=lambda u: (u.mean(), (u**2).mean())
    )
    system = oscillator(seen, observed=("mean", "power"))
    data = simulate(system, parameters=OMEGA, noise=Gaussian(sd=1e-6))
    assert data.observation.dims == ("sample", "feature")
    assert data.feature.values.tolist() == ["mean", "power"]
    power = 0.5 + np.sin(20 * OMEGA[:, 0]) / (40 * OMEGA[:, 0])  # of cos² over 10
    np.testing.assert_allclose(data.observation.sel(feature="power"), power, atol=2e-3)


@pytest.mark.parametrize("channels", [1, 2])
def test_a_transform_may_return_channels(channels):
    seen = Observation.regular(
        interval=0.1,
        length=7,
        states=(0, 1),
        transform=lambda u: jnp.stack([(u**2).sum(axis=1)] * channels, axis=1),
    )
    data = simulate(oscillator(seen), parameters=np.array([[1.0]]))
    assert data.observation.dims == ("sample", "time", "channel")[: channels + 1]
    np.testing.assert_allclose(data.observation, 1.0, atol=1e-5)  # cos² + sin²


def test_static_task_is_its_noise():
    class Sum:
        estimate, prior = False, {}

        def apply(self, key, clean, levels: Levels):
            return clean.sum(axis=1, keepdims=True) + jnp.arange(3.0)

        def describe(self):
            return {"kind": "Sum"}

    task = Static("sum", {"a": Normal(0.0, 1.0), "b": Normal(0.0, 1.0)}, features=3, noise=Sum())
    seen = simulate(task, samples=4, noise=task.noise)
    assert seen.observation.dims == ("sample", "feature")
    expected = seen.parameters.values.sum(axis=1)[:, None] + np.arange(3)
    np.testing.assert_allclose(seen.observation, expected)
    clean = simulate(task, samples=4)
    np.testing.assert_array_equal(clean.observation, clean.parameters)


def test_attributes_hold_prior_and_support():
    noise = AR1(sd=Uniform(0.1, 0.2), estimate=True)
    data = simulate(oscillator(Observation((0,), (1.0,))), samples=3, noise=Missing(noise, 0.0))
    assert json.loads(data.attrs["support"]) == {"omega": [1.0, 2.0], "sd": [0.1, 0.2]}
    assert json.loads(data.attrs["prior"])["omega"] == {"kind": "Uniform", "low": 1.0, "high": 2.0}
    assert data.levels.dims == ("sample", "level")
    assert data.level.values.tolist() == ["sd"]
    system = oscillator(Observation((0,), (1.0,)), prior={"omega": Normal(1.5, 0.1)})
    assert json.loads(simulate(system, samples=1).attrs["support"]) == {"omega": [None, None]}


def test_missing_values_leave_samples_valid():
    system = oscillator(Observation.regular(interval=0.1, length=30))
    data = simulate(system, samples=50, noise=Missing(None, 0.5))
    assert data.valid.all()
    assert np.isnan(data.observation).mean() == pytest.approx(0.5, abs=0.05)


def test_solver_can_be_differentiated_compiled_and_scanned():
    system = System(
        name="decay",
        vector_field=lambda t, u, p: -p[0] * u,
        initial_state=(1.0,),
        prior={"theta": Uniform(0.0, 1.0)},
        observation=Observation.regular(interval=0.5, length=5),
    )
    solve, t = solver(system), np.arange(5) * 0.5
    slope = jax.jit(jax.jacobian(lambda p: solve(p[None, None])[0]))(jnp.asarray(0.7))
    np.testing.assert_allclose(slope, -t * np.exp(-0.7 * t), atol=1e-5)
    _, batches = jax.lax.scan(lambda c, p: (c, solve(p)), 0, jnp.full((3, 2, 1), 0.7))
    np.testing.assert_allclose(batches, np.broadcast_to(np.exp(-0.7 * t), (3, 2, 5)), atol=1e-5)


def test_float64_needs_to_be_switched_on():
    solve = solver(oscillator(Observation((0,), (1.0,))), EXACT)
    with pytest.raises(ValueError, match="enable_x64"):
        solve(jnp.ones((1, 1)))
    with jax.enable_x64():
        assert solve(jnp.ones((1, 1))).dtype == jnp.float64


@pytest.mark.usefixtures("untyped")
def test_labelled_times_are_in_the_system_s_unit():
    """Hours of a data set were taken for seconds, and rates for 3600 times as slow."""
    times = xr.DataArray([0.0, 1.0, 2.0], dims="time", attrs={"units": "hours"})
    seen = Observation((0,), times)
    with pytest.raises(ValueError, match=r"are in 'hours' and time_unit of .* is 's': pass"):
        oscillator(seen)
    with pytest.raises(ValueError, match="are in 'hours'"):
        oscillator(replace(seen, states=(1,)))
    bare = Observation((0,), (0.0, 1.0, 2.0))
    assert replace(oscillator(bare), observation=seen, time_unit="h").observation == bare


@settings(max_examples=20, deadline=None)
@given(gaps=st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=9), start=st.floats(-10.0, 10.0))
def test_times_are_kept_and_equal_gaps_are_found(gaps, start):
    times = start + np.cumsum(gaps)
    seen = Observation((0,), times, start=start)
    assert seen.times == tuple(times)
    assert seen.nodes[0] == start
    regular = Observation((0,), start + np.arange(1, 20) * gaps[0], start=start)
    assert regular.interval == pytest.approx(gaps[0], rel=1e-6)
    assert Observation((0,), [*times, times[-1] + 3 * sum(gaps)], start=start).interval is None


@pytest.mark.parametrize(
    ("times", "error"),
    [
        ((), "is empty"),
        ((0.0, 0.0), r"times\[1\] is 0.0"),
        ((0.0, 2.0, 1.0), r"times\[2\] is 1.0"),
        ((-1.0, 2.0), r"times\[0\] is -1.0"),
        ((0.0, np.nan), r"times\[1\] is nan"),
        ((0.0, np.inf), r"times\[1\] is inf"),
    ],
)
def test_bad_times_are_refused(times, error):
    with pytest.raises(ValueError, match=error):
        Observation((0,), times)


SEEN = Observation((0,), (1.0,))


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: oscillator(Observation((2,), (1.0,))), "2 states"),
        (lambda: oscillator(Observation((), (1.0,))), "must hold indices"),
        (lambda: oscillator(SEEN, prior={}), "is empty"),
        (lambda: oscillator(SEEN, prior={"a": Uniform(np.zeros(2), 1.0)}), "must be scalar"),
        (lambda: Static("s", {}, 1, None), "is empty"),
        (lambda: Static("s", {"a": Normal(0.0, 1.0)}, 0, None), "at least 1"),
        (lambda: RungeKutta4(longest_step=0.0), "positive"),
    ],
)
def test_bad_problems_are_refused(make, error):
    with pytest.raises(ValueError, match=error):
        make()


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"vector_field": lambda t, u, p: (u[0],)}, "one number per state"),
        ({"vector_field": lambda t, u, p: (u, u)}, "one number per state"),
        ({"initial_state": lambda p: (p[0],)}, "one number per state"),
        ({"observation": replace(SEEN, transform=lambda u: u[:0])}, "must return"),
        ({"observation": replace(SEEN, transform=lambda u: u[None])}, "must return"),
        ({"observed": ("one", "two")}, "name each"),
        ({"prior": {"omega": Uniform(2.0, 1.0)}}, r"draws of omega of oscillator are impossible"),
        ({"prior": {"omega": Uniform(0.0, np.inf)}}, "are impossible, such as"),
        (
            {"prior": {"omega": Uniform(1.0, 1.0)}},
            "draws of omega of oscillator are 1.0; .* never varies",
        ),
        ({"prior": {"omega": Delta(2.0)}}, "a constant of the equation"),
        ({"vector_field": lambda t, u, p: (u[1], p[1])}, r"not there \(index 1 is out of bounds"),
        ({"vector_field": lambda t, u, p: (u[2], p[0])}, "2 states and the parameters omega"),
        ({"initial_state": lambda p: (p[0], p[3])}, "give each parameter a prior"),
    ],
)
def test_bad_parts_are_named_before_work_starts(changes, error):
    with pytest.raises(ValueError, match=error):
        simulate(oscillator(**{"observation": SEEN} | changes), samples=3)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"vector_field": 3}, "must be a function f"),
        ({"initial_state": 1.0}, r"a tuple of numbers, as \(1\.0,\)"),
        ({"prior": [Uniform(1.0, 2.0)]}, "must be a dict of names"),
        ({"prior": {"omega": 1.5}}, "'omega' of 'oscillator' is 1.5; .* as numpyro"),
        ({"noise": 0.1}, "the noise is 0.1; it must be a noise or None"),
        ({"noise": Gaussian}, "the noise is Gaussian; it must be"),
        ({"method": "Tsit5"}, r"the method is 'Tsit5'; it must be RungeKutta4"),
    ],
)
@pytest.mark.usefixtures("untyped")
def test_parts_of_another_kind_are_refused(changes, error):
    with pytest.raises((TypeError, ValueError), match=error):
        simulate(oscillator(SEEN, **changes), samples=3)


@pytest.mark.usefixtures("untyped")
def test_samples_and_states_of_another_kind_are_refused():
    with pytest.raises(TypeError, match=r"it must hold indices: \(0,\)"):
        Observation(0, (1.0,))
    with pytest.raises(ValueError, match=r"samples is 100\.0; it must be a whole number"):
        simulate(oscillator(SEEN), samples=100.0)


@pytest.mark.usefixtures("untyped")
def test_an_initial_state_may_be_a_list():
    listed = simulate(oscillator(SEEN, initial_state=[1.0, 0.0]), parameters=OMEGA)
    given = simulate(oscillator(SEEN), parameters=OMEGA)
    np.testing.assert_array_equal(listed.observation, given.observation)


def test_a_vector_field_that_numpy_cannot_take_is_not_refused():
    """Its indices are then not checked: `.at` is of JAX's arrays only."""
    system = oscillator(SEEN, vector_field=lambda t, u, p: u.at[0].set(-p[0] * u[1]))
    assert simulate(system, parameters=OMEGA).valid.all()


def test_a_level_and_a_parameter_of_one_name_are_refused():
    system = oscillator(SEEN, prior={"sd": Uniform(1.0, 2.0)})
    with pytest.raises(ValueError, match="names must differ"):
        simulate(system, samples=3, noise=Gaussian(sd=Uniform(0.0, 1.0)))


@pytest.mark.slow
def test_all_failing_is_an_error_that_names_the_method():
    system = System(
        name="explosive",
        vector_field=lambda t, u, p: (p[0] * u[0] ** 2,),
        initial_state=(1.0,),
        prior={"theta": Uniform(2.0, 3.0)},
        observation=Observation.regular(interval=0.25, length=9),
    )
    with pytest.raises(ValueError, match=r"all 5 simulations of 'explosive' failed.*RungeKutta4"):
        simulate(system, samples=5)


@pytest.mark.parametrize(("start", "said"), [(0.0, True), (1990.0, False), (1985.0, False)])
def test_a_start_that_is_forgotten_beside_calendar_years_is_told(start, said, caplog):
    """Solved from year 0, growth would be over before it is observed."""
    times = np.arange(1990.0, 2000.0)
    growth = System(
        name="growth",
        vector_field=lambda _t, u, p: (p[0] * u[0] * (1 - u[0] / 100),),
        initial_state=(5.0,),
        prior={"rate": Uniform(0.1, 0.3)},
        observation=Observation((0,), times, start=start),
        method=RungeKutta4(substeps=1024),
    )
    simulate(growth, 2)
    warned = "start=0 to its first observation at 1990, for 221 times as long" in caplog.text
    assert warned == said


AS_ROW = {
    "list": list,
    "NumPy": np.array,
    "JAX": jnp.array,
    "xarray": xr.DataArray,
    "pandas": pd.Series,
    "numbers of JAX": lambda row: tuple(map(jnp.array, row)),
    "numbers of NumPy": lambda row: [*map(np.float32, row)],
}


@pytest.mark.parametrize("kind", AS_ROW.values(), ids=AS_ROW)
def test_an_initial_state_may_be_any_librarys_row(kind, untyped):
    observation = Observation.regular(interval=0.1, length=5)
    system = oscillator(observation, initial_state=kind([0.5, -0.25]))
    assert system.initial_state == (0.5, -0.25)
    plain = simulate(oscillator(observation, initial_state=(0.5, -0.25)), parameters=OMEGA)
    xr.testing.assert_equal(simulate(system, parameters=OMEGA).observation, plain.observation)


@pytest.mark.parametrize(
    "state",
    [
        *(1.0, np.ones((1, 2)), ("a", "b"), (1, None), (1j, 0.0), (np.nan, 1.0)),
        *({"a": 1.0, "b": 0.0}, pd.Series({"b": 0.0, "a": 1.0})),
    ],
)
def test_an_initial_state_that_is_no_row_of_numbers_is_refused_in_one_line(state, untyped):
    with pytest.raises((TypeError, ValueError), match="the initial state of 'oscill") as told:
        oscillator(Observation.regular(interval=0.1, length=5), initial_state=state)
    assert "\n" not in str(told.value)
