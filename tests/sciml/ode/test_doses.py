"""Doses at given times, against sums of exponentials, by every method."""

from fractions import Fraction
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpyro.distributions import Uniform

import sciml
from sciml.ode import Bolus, Diffrax, Gaussian, Infusion, Observation, RungeKutta4, System
from sciml.reference import target

FINE = {"rtol": 1e-9, "atol": 1e-9, "dtype": "float64"}
METHODS = {
    "RungeKutta4": (RungeKutta4(substeps=64, dtype="float64"), 2e-6),
    "Tsit5": (Diffrax("Tsit5", **FINE), 1e-6),
    "Kvaerno5": (Diffrax("Kvaerno5", **FINE), 1e-6),
    "float32": (RungeKutta4(substeps=32), 2e-5),
}
RATE = 0.2
TIMES = (0.0, 4.0, 8.0, 12.0, 12.1, 14.0, 20.0, 24.0)
DOSES = (
    Bolus(state=0, time=(0.0, 12.0), amount="dose"),
    Bolus(state=0, time=24.0, amount="extra"),  # seen at the last time
    Bolus(state=0, time=100.0, amount=1e6),  # never seen
    Infusion(state=0, time=(4.0, 13.0), amount=100.0, duration=0.1),
)


def drug(doses=DOSES, times=TIMES, **changes) -> System:
    parts = {
        "vector_field": lambda _t, u, p: (-p[0] * u[0], p[0] * u[0]),
        "initial_state": (3.0, 0.0),
        "prior": {"rate": Uniform(0.1, 0.3), "extra": Uniform(1.0, 9.0)},
        "conditions": {"dose": Uniform(50.0, 200.0)},
        "observation": Observation((0, 1), times),
        "observed": ("blood", "urine"),
    }
    return System(name="drug", doses=doses, **(parts | changes))


def exact(times, k, gifts, first=3.0) -> np.ndarray:
    """The amount in the blood: of each gift (time, amount, duration) what is left."""
    t = np.asarray(times)
    left = first * np.exp(-k * t)
    for begin, amount, duration in gifts:
        since = np.maximum(t - begin, 0)
        if duration:
            end = np.maximum(t - begin - duration, 0)
            left += amount / duration / k * (np.exp(-k * end) - np.exp(-k * since))
        else:
            left += np.where(t >= begin, amount * np.exp(-k * since), 0)
    return left


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_doses_are_sums_of_exponentials(name):
    method, tolerance = METHODS[name]
    data = sciml.simulate(
        drug(),
        conditions={"dose": 80.0},
        parameters={"rate": [RATE], "extra": [5.0]},
        method=method,
    )
    gifts = [(0.0, 80, 0), (12.0, 80, 0), (24.0, 5, 0), (4.0, 100, 0.1), (13.0, 100, 0.1)]
    blood, urine = data.observation.values[0].T
    np.testing.assert_allclose(blood, exact(TIMES, RATE, gifts), rtol=tolerance)
    given_so_far = 3 + sum(
        a * (np.array(TIMES) > t) if d else a * (np.array(TIMES) >= t) for t, a, d in gifts
    )
    np.testing.assert_allclose(blood + urine, given_so_far, rtol=tolerance)  # nothing is lost


def test_short_infusions_between_rare_observations_need_no_setting():
    """Four-hourly data, six minutes of infusion: a fixed step across it was 232 % off."""
    times = tuple(np.arange(0.0, 25.0, 4.0))
    doses = (Infusion(state=0, time=(0.0, 12.0), amount=100.0, duration=0.1),)
    data = sciml.simulate(drug(doses, times, conditions={}), 20)
    wanted = [
        exact(times, k, [(0.0, 100, 0.1), (12.0, 100, 0.1)]) for k in data.parameters.values[:, 0]
    ]
    np.testing.assert_allclose(data.observation[..., 0], wanted, rtol=1e-3)


@given(st.floats(0.5, 30.0), st.integers(1, 7))
@settings(max_examples=5, deadline=None)
def test_a_dose_at_a_time_of_observation_is_seen_there_but_for_rounding(interval, index):
    doses = (Bolus(state=0, time=round(index * interval, 12), amount=10.0),)
    seen = Observation.regular(interval=interval, length=9)
    still = drug(
        doses,
        observation=seen,
        conditions={},
        vector_field=lambda _t, u, _p: (0 * u[0],),
        initial_state=(0.0,),
        observed="blood",
        method=RungeKutta4(substeps=1),
    )
    data = sciml.simulate(still, parameters={"rate": [0.1], "extra": [1.0]})
    np.testing.assert_array_equal(data.observation.values[0], 10.0 * (np.arange(9) >= index))


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: Bolus(state=-1, time=0.0, amount=1.0), "state"),
        (lambda: Bolus(state=0, time=(1.0, 1.0), amount=1.0), "time"),
        (lambda: Bolus(state=0, time=(), amount=1.0), "time"),
        (lambda: Bolus(state=0, time=np.inf, amount=1.0), "time"),
        (lambda: Bolus(state=0, time=0.0, amount=np.nan), "amount"),
        (lambda: Infusion(state=0, time=0.0, amount=1.0, duration=0.0), "duration"),
        (lambda: drug((Bolus(state=2, time=0.0, amount=1.0),), conditions={}), "2 states"),
        (lambda: drug((Bolus(state=0, time=-1.0, amount=1.0),)), "before the start"),
        (lambda: drug((Bolus(state=0, time=0.0, amount="doze"),)), "'doze'"),
        (lambda: drug((("dose", 1.0),)), "Bolus"),
        (lambda: drug(()), "nothing takes"),
    ],
)
def test_doses_that_cannot_be_are_refused(make, word):
    with pytest.raises((ValueError, TypeError), match=word):
        make()


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize("number", [np.float32, np.int64, Fraction, jnp.float32, np.array])
def test_doses_are_kept_in_numbers_of_python(number):
    """So they can be compared, hashed and written, whatever they were given in."""
    made = Infusion(np.int64(1), np.array([1, 2]), number(5), number(2))
    plain = Infusion(1, (1.0, 2.0), 5.0, 2.0)
    assert made == plain
    assert hash(made) == hash(plain)
    assert repr(made) == repr(plain)


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize("wrong", [True, "1", None, 1j, [1.0, 2.0], np.nan, 10**400, np.ma.masked])
def test_numbers_of_a_dose_that_are_none_are_refused(wrong):
    with pytest.raises(ValueError, match=r"Infusion\.duration is .*positive time"):
        Infusion(0, 1.0, 5.0, wrong)
    if wrong != "1":  # the name of a parameter
        with pytest.raises(ValueError, match=r"Bolus\.amount is .*finite number"):
            Bolus(0, 1.0, wrong)
    if not isinstance(wrong, list):
        with pytest.raises(ValueError, match=r"Bolus\.time is .*finite time"):
            Bolus(0, wrong, 5.0)


@pytest.mark.usefixtures("untyped")
def test_one_dose_needs_no_tuple():
    one = Bolus(state=0, time=0.0, amount="dose")
    assert drug(one).doses == (one,)
    with pytest.raises(TypeError, match="hold None; each must be a Bolus"):
        drug(None)


@pytest.mark.slow
def test_likelihoods_and_stores_know_the_doses(tmp_path):
    method, noise = RungeKutta4(substeps=8, chunk=10), Gaussian(1.0)
    data = sciml.simulate(drug(), 3, method=method)
    found = target(drug(), data.observation[1], noise, method)
    other = target(drug(), data.observation[1].assign_coords(dose=60.0), noise, method)
    physical: Any = found.physical
    z = physical.inv(jnp.asarray(data.parameters.values[1], jnp.float32))
    assert float(found.log_likelihood(z)) == pytest.approx(-8 * np.log(2 * np.pi), abs=1e-3)
    assert float(other.log_likelihood(z)) < float(found.log_likelihood(z)) - 1
    path = tmp_path / "drug.zarr"
    sciml.ode.accumulate(drug(), path, samples=10, method=method)
    with pytest.raises(ValueError, match="doses"):
        sciml.ode.accumulate(drug(DOSES[:2]), path, samples=20, method=method)


def test_a_dose_after_the_last_observation_is_told(caplog):
    """As where time and amount are in each other's place; at the last time a bolus is seen."""
    late = (Infusion(state=0, time=24.0, amount=5.0, duration=1.0), Bolus(0, 100.0, 12.0))
    sciml.simulate(drug((*DOSES[:2], *late)), 2)
    said = [
        r.getMessage() for r in caplog.records if "after the last observation" in r.getMessage()
    ]
    assert [text.partition("(")[0] for text in said] == ["Infusion", "Bolus"]
    assert "of 'drug' comes after the last observation, at 24, and changes nothing" in said[1]
