"""A simulator that is no JAX as a problem: simulated, fitted, checked and refined, or refused."""

import json
from typing import Any

import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest
import xarray as xr

import sciml
from sciml import reference
from sciml.models import Gaussian
from sciml.ode import BlackBox, accumulate, adequate_step, black_box, distribute, step_error
from sciml.train import Recipe

MATRIX = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0], [1.0, -1.0]])
ERROR, WIDTH = 0.3, 2.0
SEEN = np.array([1.0, 2.2, 2.1, -0.2])
PRIOR = {"a": dist.Normal(0.0, WIDTH), "b": dist.Normal(0.0, WIDTH)}
OTHER = sciml.ode.Gaussian(sd=ERROR)


def linear(p, rng):
    """Return A θ + ε; one call of twenty fails, whatever θ is."""
    if rng.random() < 0.05:
        raise RuntimeError("it did not converge")
    return MATRIX @ [p["a"], p["b"]] + ERROR * rng.normal(size=4)


@pytest.fixture(scope="module")
def box():
    """Return the simulator as a problem."""
    return BlackBox(linear, PRIOR, scheduler="synchronous")


@pytest.fixture(scope="module")
def fit(box):
    """Return a rough fit."""
    data = sciml.simulate(box, 600)
    assert 10 < (~data.valid).sum() < 60
    return sciml.fit(Gaussian(width=32, depth=1), data, epochs=15, recipe=RECIPE)


wrong: Any = "linear"
RECIPE = Recipe(batch=50, learning_rate=3e-3)
OBSERVED = xr.DataArray(SEEN[None], dims=("sample", "feature"))


def posterior():
    """Return mean and standard deviation of the posterior in closed form."""
    covariance = np.linalg.inv(MATRIX.T @ MATRIX / ERROR**2 + np.eye(2) / WIDTH**2)
    return covariance @ MATRIX.T @ SEEN / ERROR**2, np.sqrt(np.diag(covariance))


def off(fit):
    """Return how many standard deviations the mean is off, and the ratio of these."""
    (mean, sd), draws = posterior(), fit.sample(OBSERVED, 2000).posterior[:, 0].values
    return np.abs(draws.mean(axis=0) - mean) / sd, draws.std(axis=0) / sd


@pytest.mark.slow
def test_it_is_refined_to_the_posterior_by_simulations_alone(box, fit):
    assert (off(fit)[1] > 2).all()  # rough: much too wide
    sharp = sciml.refine(fit, box, OBSERVED, rounds=2, simulations=800, epochs=80)
    told = json.loads(sharp.attrs["refinement"])
    far, ratio = off(sharp)
    assert (far < 0.5).all()
    assert ((ratio > 0.8) & (ratio < 1.3)).all()
    assert told["simulations"] == 800 * (len(told["rounds"]) - 1)
    narrower = np.exp(np.log(ratio / off(fit)[1]).mean())
    np.testing.assert_allclose(told["width"], narrower, rtol=0.1)
    np.testing.assert_allclose(told["width"], np.prod([r["width"] for r in told["rounds"][1:]]))
    assert told["rounds"][-1]["too_wide"] < 1.4
    found = sharp.sample(OBSERVED, 50, check=box)
    assert float(found.too_wide.max()) < 1.4
    assert not found.flagged.any()
    assert "p_value" not in found  # simulations from the prior say nothing of it


@pytest.mark.slow
def test_what_is_still_too_wide_is_said(box, caplog):
    """A net that hardly learns; its width over the posterior's is told from the simulations."""
    lazy = sciml.fit(Gaussian(width=4, depth=1), sciml.simulate(box, 300), epochs=3, recipe=RECIPE)
    sharp = sciml.refine(lazy, box, OBSERVED, rounds=2, simulations=800, epochs=5)
    last = json.loads(sharp.attrs["refinement"])["rounds"][-1]
    ratio = off(sharp)[1]
    assert ratio.max() > 2
    np.testing.assert_allclose(last["too_wide"], ratio.max(), rtol=0.3)
    assert f"times too wide in {last['widest']}" in caplog.text
    found = sharp.sample(OBSERVED, 50, check=box)
    np.testing.assert_allclose(found.too_wide.max(), ratio.max(), rtol=0.3)
    assert found.flagged.all()


@pytest.mark.slow
def test_draws_are_checked_by_simulations(box, fit):
    found = fit.sample(OBSERVED, 50, check=box)
    assert 0 <= float(found.p_value[0]) <= 1
    with pytest.raises(ValueError, match="the fit was trained"):
        fit.sample(OBSERVED, 50, check=BlackBox(linear, PRIOR | {"a": dist.Normal(0.0, 1.0)}))


def test_it_simulates_as_black_box_does_and_given_parameters(box):
    made = black_box(linear, PRIOR, 40, seed=3)
    xr.testing.assert_equal(sciml.simulate(box, 40, seed=3), made)
    again = sciml.simulate(box, parameters=made.parameters, seed=3)
    xr.testing.assert_equal(again.observation, made.observation)


def test_conditions_are_drawn_given_and_carried():
    dosed = BlackBox(
        lambda p: np.arange(3) * p["a"] + p["dose"],
        {"a": dist.Uniform(0.0, 1.0)},
        {"dose": [1.0, 5.0]},
        time=np.arange(3),
    )
    drawn = sciml.simulate(dosed, 20)
    assert set(drawn.dose.values) == {1.0, 5.0}
    np.testing.assert_allclose(drawn.observation[:, 0], drawn.dose)
    again = sciml.simulate(dosed, conditions={"dose": [2.0]}, parameters=[[0.5]])
    np.testing.assert_allclose(again.observation, [[2.0, 2.5, 3.0]])


REFUSED = {
    "nuts": lambda box, fit, to: reference.nuts(box, SEEN, noise=OTHER),
    "smc": lambda box, fit, to: reference.smc(box, SEEN, noise=OTHER),
    "importance": lambda box, fit, to: reference.importance(fit, box, OBSERVED, noise=OTHER),
    "target": lambda box, fit, to: reference.target(box, SEEN, OTHER, sciml.ode.RungeKutta4()),
    "trials": lambda box, fit, to: sciml.trials(fit, box, OBSERVED, likelihood=True),
    "online": lambda box, fit, to: sciml.fit(Gaussian(), box, online=True),
    "accumulate": lambda box, fit, to: accumulate(box, to / "a.zarr", samples=5),
    "distribute": lambda box, fit, to: distribute(box, to / "b.zarr", samples=5),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_more_than_simulations_refuses_it(name, box, fit, tmp_path):
    with pytest.raises(TypeError, match="'linear' is a BlackBox, which only"):
        REFUSED[name](box, fit, tmp_path)


@pytest.mark.parametrize("call", [step_error, adequate_step])
def test_what_asks_the_step_refuses_it(call, box):
    with pytest.raises(TypeError, match="BlackBox"):
        call(box)


def test_least_squares_refuses_it(box):
    with pytest.raises(TypeError, match=r"linear is no System|BlackBox"):
        sciml.baselines.least_squares(box, sciml.simulate(box, 5))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda box: sciml.simulate(box, 5, noise=OTHER), ValueError, "noise is .* black box"),
        (
            lambda box: sciml.simulate(box, 5, method=sciml.ode.RungeKutta4()),
            ValueError,
            "method is .* black box",
        ),
        (lambda box: sciml.simulate(box), ValueError, "give exactly one"),
        (lambda box: sciml.simulate(box, parameters=[[1.0]]), ValueError, "takes .sample, 2."),
        (lambda box: BlackBox(wrong, PRIOR), TypeError, "simulator"),
        (lambda box: BlackBox(linear, {"a": 1.0}), (TypeError, ValueError), "'a'.*1.0"),
    ],
)
def test_what_it_cannot_be_given_is_refused(call, error, message, box):
    with pytest.raises(error, match=message):
        call(box)


def test_an_array_that_is_filled_anew_at_each_call_is_copied():
    """As programs in C return it: all samples had the numbers of the last."""
    kept = np.zeros(3)

    def reuse(p):
        kept[:] = p["a"]
        return kept[:2]

    data = black_box(reuse, {"a": dist.Normal(0.0, 1.0)}, 8, scheduler="synchronous")
    np.testing.assert_allclose(data.observation, data.parameters.values.repeat(2, 1), rtol=1e-6)

    def simulate(p):
        whole[:] = np.asarray(p)
        return whole

    whole, draws = np.zeros((4, 1)), np.arange(12.0).reshape(3, 4, 1)
    found = sciml.diagnose.replicate(simulate, draws, draws=3, rows_at_once=4)
    np.testing.assert_array_equal(found[..., 0], draws[..., 0])


@pytest.mark.parametrize(
    ("named", "axes"),
    [
        (lambda x: pd.Series(x[0], ["p", "q", "r"]), {"feature": ["p", "q", "r"]}),
        (lambda x: dict(zip("pqr", x[0], strict=True)), {"feature": ["p", "q", "r"]}),
        (lambda x: xr.DataArray(x[0], {"time": [0, 2, 5]}, "time"), {"time": [0, 2, 5]}),
        (
            lambda x: xr.DataArray(x, {"channel": ["u", "v"], "time": [0, 2, 5]}),
            {"time": [0, 2, 5], "channel": ["u", "v"]},
        ),
        (lambda x: pd.DataFrame(x.T, [0, 2, 5], ["u", "v"]), {"channel": ["u", "v"]}),
        (lambda x: {"u": x[0], "v": x[1]}, {"channel": ["u", "v"]}),
    ],
    ids=["row", "dict", "series", "array", "table", "channels"],
)
def test_names_of_what_it_returns_put_it_in_order(named, axes):
    """They were dropped, and an axis of channels before times taken for the times."""

    def simulator(p):
        found = named(p["a"] * np.arange(1.0, 7.0).reshape(2, 3))
        if p["a"] > 0:
            return found
        if isinstance(found, dict):
            return dict(reversed(found.items()))
        if isinstance(found, xr.DataArray):
            return found.transpose().isel(dict.fromkeys(found.dims, slice(None, None, -1)))
        return found.iloc[::-1]

    data = black_box(simulator, {"a": dist.Normal(0.0, 1.0)}, 8)
    width = 2 if "channel" in axes else 1
    wanted = np.arange(1.0, 7.0).reshape(2, 3)[:width].T.reshape(3, width)
    found = data.observation.values.reshape(8, 3, width)
    np.testing.assert_allclose(found, data.parameters.values[:, :, None] * wanted, rtol=1e-6)
    for name, labels in axes.items():
        assert data.observation[name].values.tolist() == labels


def test_other_names_at_each_call_are_refused():
    def simulator(p):
        return {"p": 1.0, "q" if p["a"] > 0 else "r": p["a"]}

    with pytest.raises(ValueError, match=r"returns the features \['p', '[qr]'\] in one call and"):
        black_box(simulator, {"a": dist.Normal(0.0, 1.0)}, 8)
    with pytest.raises(ValueError, match="returns names in one call and not in another"):
        black_box(
            lambda p: {"p": 1.0} if p["a"] > 0 else np.ones(1), {"a": dist.Normal(0.0, 1.0)}, 8
        )


def test_a_name_that_is_returned_twice_is_told():
    twice = BlackBox(lambda p: pd.Series([1.0, 2.0], index=["u", "u"]), PRIOR)
    with pytest.raises(ValueError, match="returns the feature 'u' twice; name each once"):
        sciml.simulate(twice, 4)


@pytest.mark.slow
def test_observations_of_another_shape_are_refused_before_they_are_compared(fit):
    """Three numbers, or one, which would be taken for each of the four that are seen."""
    for count in (3, 1):
        other = BlackBox(lambda p, rng, n=count: p["a"] + rng.normal(size=n), PRIOR)
        said = rf"gives observations of shape \({count},\), and what is seen has \(4,\)"
        with pytest.raises(ValueError, match=said):
            fit.sample(OBSERVED, 5, check=other)
        with pytest.raises(ValueError, match=said):
            sciml.refine(fit, other, OBSERVED, rounds=1, simulations=200, epochs=1)


@pytest.mark.slow
def test_names_of_what_is_returned_are_put_in_order_where_it_is_refined():
    """A dict in another order, or with more in it, is the same simulator; other names are not."""

    def pair(p, rng):
        return {"x": p["a"] + 0.1 * rng.normal(), "y": 5 * p["b"] + rng.normal()}

    box = BlackBox(pair, PRIOR)
    data, one = sciml.simulate(box, 300), sciml.simulate(box, 1, seed=1)
    fit = sciml.fit(Gaussian(width=8, depth=1), data, epochs=2, recipe=RECIPE)
    turned = BlackBox(lambda p, rng: {**dict([*pair(p, rng).items()][::-1]), "z": 0.0}, PRIOR)
    options = {"rounds": 1, "simulations": 200, "epochs": 2}
    sharp, same = (sciml.refine(fit, each, one, **options) for each in (box, turned))
    drawn = [each.sample(one, 20).posterior for each in (sharp, same)]
    np.testing.assert_allclose(*drawn, rtol=1e-5)
    strange = BlackBox(lambda p: {"x": p["a"], "w": p["b"]}, PRIOR)
    with pytest.raises(ValueError, match="has the features x, w; it must have x, y"):
        sciml.refine(fit, strange, one, **options)


@pytest.mark.slow
def test_a_parameter_that_is_told_exactly_ends_the_rounds(caplog):
    """The second value seen is b itself, without noise: soon draws are a step of float32 apart."""

    def exact(p, rng):
        return np.array([p["a"] + ERROR * rng.normal(), p["b"] - 1000.0])

    box = BlackBox(exact, {"a": dist.Normal(0.0, 1.0), "b": dist.Normal(1000.0, 1.0)})
    recipe = Recipe(batch=50, learning_rate=1e-2)
    data, one = sciml.simulate(box, 500), sciml.simulate(box, 1, seed=3)
    fit = sciml.fit(Gaussian(width=32, depth=1), data, epochs=60, recipe=recipe)
    sharp = sciml.refine(fit, box, one, rounds=5, simulations=500, epochs=60)
    told = json.loads(sharp.attrs["refinement"])
    assert told["rounds"][-1]["exact"] == "b"
    assert len(told["rounds"]) < 5
    assert np.isfinite(told["width"])
    assert "draws of b differ by a few steps of float32 alone, and refining stops" in caplog.text
    spread = np.float64(sharp.sample(one, 500).posterior[:, 0]).std(axis=0)
    assert spread[1] < 1e-3 < spread[0]
