"""Fixed steps are checked against half the step, chosen by it, and end where an equation jumps."""

from typing import Any

import jax
import numpy as np
import pytest
from jax import numpy as jnp
from numpyro.distributions import Uniform

from sciml.ode import (
    CATALOG,
    Diffrax,
    Gaussian,
    Observation,
    RungeKutta4,
    StepWarning,
    System,
    adequate_step,
    fitzhugh_nagumo,
    simulate,
    step_error,
)
from sciml.ode.methods.solver import chosen_method

pytestmark = pytest.mark.usefixtures("quick_compilation")


def selkov() -> System:
    """Glycolysis (Sel'kov, 1968): relaxation oscillations for some parameters."""

    def field(_t, u, p):
        flow = (p[0] + u[0] ** 2) * u[1]
        return (flow - u[0], p[1] - flow)

    return System(
        name="selkov",
        vector_field=field,
        initial_state=(1.0, 1.0),
        prior={"a": Uniform(0.02, 0.15), "b": Uniform(0.2, 1.0)},
        observation=Observation.regular(states=(0, 1), interval=1.0, length=60),
        observed=("u", "v"),
    )


def infusions(width: float, every: float, jumps: bool) -> System:
    """u' = r(t) − k u: a dose of 1 every 12 h, over `width` hours."""
    edges = tuple(t for begin in (0.0, 12.0, 24.0) for t in (begin, begin + width))
    return System(
        name="infusions",
        vector_field=lambda t, u, p: (jnp.where(t % 12 < width, 1 / width, 0.0) - p[0] * u[0],),
        initial_state=(0.0,),
        prior={"k": Uniform(0.1, 0.5)},
        observation=Observation.regular(interval=every, length=int(36 / every)),
        jumps=edges if jumps else (),
    )


def concentration(k: float, times: np.ndarray, width: float) -> np.ndarray:
    """Return the closed form of `infusions`."""
    total = np.zeros(len(times))
    for begin in (0.0, 12.0, 24.0):
        since = times - begin
        during = (1 - np.exp(-k * since)) / (k * width)
        after = (np.exp(k * width) - 1) / (k * width) * np.exp(-k * np.maximum(since, 0))
        total += np.where(since < 0, 0.0, np.where(since < width, during, after))
    return total


@pytest.mark.slow
def test_the_default_step_meets_the_tolerance_and_a_longer_one_is_warned_of():
    chosen = adequate_step(selkov())
    assert chosen.substeps > RungeKutta4().substeps
    data = simulate(selkov(), 200)
    assert '"substeps": ' + str(chosen.substeps) in data.attrs["settings"]
    exact = simulate(selkov(), 200, method=Diffrax("Tsit5", 1e-9, 1e-9, dtype="float64"))
    off = np.abs(data.observation - exact.observation) / exact.observation.std(("sample", "time"))
    assert float((off.max(("time", "channel")) > 0.01).mean()) <= 0.03
    with pytest.warns(StepWarning, match="of 64 solutions of 'selkov' with RungeKutta4"):
        coarse = simulate(selkov(), 200, method=RungeKutta4())
    off = np.abs(coarse.observation - exact.observation).max(("time", "channel"))
    assert float((off > 0.1).mean()) > 0.05  # which was valid, without a word


def test_train_and_test_sets_take_the_same_step():
    one, other = simulate(selkov(), 3, seed=0), simulate(selkov(), parameters=[[0.05, 0.6]])
    found = [data.attrs["settings"].partition('"method"')[2] for data in (one, other)]
    assert found[0] == found[1]


@pytest.mark.slow
def test_errors_are_those_of_the_fourth_order():
    system = selkov()
    theta = np.array([[0.1, 0.8], [0.12, 0.9]])
    exact = simulate(
        system, parameters=theta, method=Diffrax("Tsit5", 1e-11, 1e-11, dtype="float64")
    )
    sd = exact.observation.std(("sample", "time"))
    for substeps in (32, 64):
        method = RungeKutta4(substeps=substeps, dtype="float64")
        found = step_error(system, theta, method=method)
        data = simulate(system, parameters=theta, method=method)
        true = (np.abs(data.observation - exact.observation) / sd).max(("time", "channel"))
        np.testing.assert_allclose(found.error, 15 / 16 * true, rtol=0.1)
        assert found.attrs["seconds"] > 0


@pytest.mark.parametrize("name", ["fitzhugh_nagumo", "van_der_pol"])
def test_the_catalogue_keeps_its_steps(name):
    assert chosen_method(CATALOG[name]()).substeps == RungeKutta4().substeps


@pytest.mark.slow
@pytest.mark.parametrize(("width", "every"), [(0.1, 4.0), (2.5, 0.75)])
def test_every_method_steps_on_the_jumps(width, every):
    system = infusions(width, every, jumps=True)
    rates = np.array([[0.1], [0.45]])
    methods = (
        RungeKutta4(substeps=8, dtype="float64"),
        Diffrax("Tsit5", 1e-8, 1e-8, dtype="float64"),
        Diffrax("Kvaerno5", 1e-8, 1e-8, dtype="float64"),
    )
    # The implicit one takes as long to compile as all others: the shorter pulse is easier to miss.
    for method in methods[: 3 if width < 1 else 2]:
        data = simulate(system, parameters=rates, method=method)
        wanted = np.stack([concentration(k, data.time.values, width) for (k,) in rates])
        np.testing.assert_allclose(data.observation, wanted, atol=2e-4)


def test_short_pulses_without_jumps_are_warned_of_and_with_them_right():
    with pytest.warns(StepWarning, match="Where the equation jumps.*in System.jumps"):
        simulate(infusions(0.1, 4.0, jumps=False), 20, method=RungeKutta4())
    data = simulate(infusions(0.1, 4.0, jumps=True), 20)
    wanted = [concentration(k, data.time.values, 0.1) for (k,) in data.parameters.values]
    np.testing.assert_allclose(data.observation, wanted, atol=2e-3)


@pytest.mark.slow
def test_an_adaptive_method_that_steps_over_pulses_is_warned_of():
    """Tsit5 misses most of them; with their times named it is right, and nothing is said."""
    tsit5 = Diffrax("Tsit5", 1e-8, 1e-8, dtype="float64")
    with pytest.warns(StepWarning, match="may step over short pulses"):
        missed = simulate(infusions(0.1, 4.0, jumps=False), 20, method=tsit5)
    wanted = [concentration(k, missed.time.values, 0.1) for (k,) in missed.parameters.values]
    assert np.abs(missed.observation - wanted).max() > 0.3
    simulate(infusions(0.1, 4.0, jumps=True), 20, method=tsit5)


def test_a_transform_and_noise_go_with_jumps():
    system = infusions(0.5, 1.0, jumps=True)
    data = simulate(system, 5, noise=Gaussian(0.01), method=RungeKutta4(longest_step=0.05))
    assert data.observation.shape == (5, 36)


@pytest.mark.usefixtures("untyped")
def test_errors_say_what_is_wrong():
    adaptive: Any = Diffrax()
    noon: Any = "noon"
    names: tuple[Any, ...] = ("fitzhugh_nagumo", fitzhugh_nagumo)
    with pytest.raises(ValueError, match="jumps of 'x' are 'noon'; they must be finite times"):
        System(
            "x",
            lambda _t, u, _p: u,
            (1.0,),
            {"k": Uniform(0, 1)},
            Observation((0,), (1.0,)),
            jumps=noon,
        )
    with pytest.raises(ValueError, match="tolerance is 0"):
        RungeKutta4(tolerance=0)
    with pytest.raises(TypeError, match="only a fixed step is judged"):
        step_error(selkov(), samples=2, method=adaptive)
    for problem in names:
        with pytest.raises(TypeError, match=r"call the function, as sciml.ode.fitzhugh_nagumo"):
            simulate(problem, 2)


def neuron(interval: float, jumps: tuple[float, ...] = ()) -> System:
    """Hodgkin and Huxley (1952) under a current from 5 to 45 ms, as one writes it first."""

    def field(t, u, p):
        v, m, h, n = u
        opening = 0.1 * (v + 40) / (1 - jnp.exp(-(v + 40) / 10))
        rising = 0.01 * (v + 55) / (1 - jnp.exp(-(v + 55) / 10))
        current = 10.0 * (t > 5) * (t < 45)
        ions = p[0] * m**3 * h * (v - 50) + p[1] * n**4 * (v + 77) + 0.3 * (v + 54.4)
        return (
            current - ions,
            opening * (1 - m) - 4 * jnp.exp(-(v + 65) / 18) * m,
            0.07 * jnp.exp(-(v + 65) / 20) * (1 - h) - h / (1 + jnp.exp(-(v + 35) / 10)),
            rising * (1 - n) - 0.125 * jnp.exp(-(v + 65) / 80) * n,
        )

    return System(
        name="neuron",
        vector_field=field,
        initial_state=(-65.0, 0.05, 0.6, 0.32),
        prior={"gNa": Uniform(80.0, 160.0), "gK": Uniform(20.0, 60.0)},
        observation=Observation.regular(interval=interval, length=int(50 / interval)),
        jumps=jumps,
        time_unit="ms",
    )


@pytest.mark.slow
def test_remedies_of_a_neuron_work_when_followed():
    """Steps that all fail are no good ones; naming the jumps, and the stiff method, are right."""
    with pytest.warns(StepWarning, match="System.jumps.*Kvaerno5', dtype='float64'"):
        rough = simulate(neuron(1.0), 16)
    assert rough.valid.all()  # four substeps fail, and eight: nothing differs between them
    assert adequate_step(neuron(2.0, (5.0, 45.0))).substeps > 8
    named = simulate(neuron(1.0, (5.0, 45.0)), 16)
    stiff = simulate(neuron(1.0, (5.0, 45.0)), 16, method=Diffrax("Kvaerno5", dtype="float64"))
    for data in (named, stiff):
        assert data.valid.all()
    assert float(np.abs(named.observation - stiff.observation).max()) < 0.1  # mV
    assert float(np.abs(rough.observation - stiff.observation).max()) > 0.2


@pytest.mark.parametrize("method", [None, Diffrax()], ids=["chosen", "adaptive"])
def test_where_64_bits_are_on_nothing_is_warned_of(method):
    """The step is chosen in the precision of the method, as are the indices of states."""
    with jax.enable_x64(True):
        data = simulate(selkov(), samples=3, method=method)
    assert data.valid.all()
