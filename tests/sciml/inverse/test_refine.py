"""A fit made sharp at one observation, and how far draws there can be trusted."""

import dataclasses
import json

import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import sciml
from sciml.models import Dense, Gaussian
from sciml.ode import Gaussian as Error
from sciml.ode import Missing, Observation, Static, System
from sciml.reference.trust import of_weights
from sciml.train import Recipe

RECIPE = Recipe(batch=50, learning_rate=3e-3)


def decay(noise):
    """Return du/dt = −rate u of an unknown start, seen six times."""
    return System(
        name="decay",
        vector_field=lambda t, u, p: (-p[0] * u[0],),
        initial_state=lambda p: (p[1],),
        prior={"rate": dist.Uniform(0.1, 3.0), "start": dist.Uniform(0.5, 5.0)},
        observation=Observation.regular(states=(0,), interval=0.4, length=6),
        noise=noise,
    )


def rough(problem, **net):
    """Return a fit that has seen little."""
    data = sciml.simulate(problem, 400, noise=problem.noise)
    return sciml.fit(Gaussian(width=16, depth=1, **net), data, epochs=5, recipe=RECIPE)


@pytest.fixture(scope="module")
def problem():
    """Return the decay under a known error."""
    return decay(Error(sd=0.1))


@pytest.fixture(scope="module")
def fit(problem):
    """Return a rough fit of it."""
    return rough(problem)


@pytest.fixture(scope="module")
def seen(problem):
    """Return four observations."""
    return sciml.simulate(problem, 4, seed=1, noise=problem.noise)


def test_weights_tell_the_best_classifier():
    """Of N(0, 1) drawn for N(1, 1) it is right with probability Φ(½); alike they score ½."""
    x = np.random.default_rng(0).normal(size=(200_000, 1))
    far = stats.norm.logpdf(x, 1) - stats.norm.logpdf(x)
    logs = np.concatenate([far, np.zeros_like(far), np.full_like(far, -np.inf)], axis=1)
    c2st, effective = of_weights(logs)
    np.testing.assert_allclose(c2st, [float(stats.norm.cdf(0.5)), 0.5, 1.0], atol=0.005)
    np.testing.assert_allclose(effective, [float(np.exp(-1)), 1.0, 0.0], atol=0.01)


@pytest.mark.slow
def test_a_rough_fit_is_doubted_and_made_sharp(problem, fit, seen):
    """Rounds bring the draws to what the likelihood says; the cost is told; others are flagged."""
    before = fit.sample(seen, 10, check=problem)
    assert before.flagged.values.any()
    worst = int(before.c2st.values.argmax())
    sharp = sciml.refine(
        fit, problem, seen.isel(sample=[worst]), rounds=3, simulations=800, epochs=60
    )
    told = json.loads(sharp.attrs["refinement"])
    assert told["simulations"] == 800 * (len(told["rounds"]) - 1) > 0 < told["seconds"]
    after = sharp.sample(seen, 10, check=problem)
    assert float(after.c2st[worst]) < 0.65 < float(before.c2st[worst])
    assert not bool(after.flagged[worst])
    assert after.flagged.values.sum() == 3  # the others are not what it learned
    assert "likelihood" in after.attrs["check"]


@pytest.mark.slow
def test_rounds_that_do_not_help_are_told(problem, fit, seen, caplog):
    """One epoch teaches nothing: the best fit is still no posterior, and a line says so."""
    one = seen.isel(sample=[0])
    left = sciml.refine(fit, problem, one, rounds=1, simulations=200, epochs=1)
    assert min(each["weights"] for each in json.loads(left.attrs["refinement"])["rounds"]) > 0.75
    assert "refined draws are not those of the posterior" in caplog.text


@pytest.mark.slow
def test_draws_that_stay_too_wide_are_told(problem, fit, seen, caplog):
    """Their C2ST is below the level of doubt; the width told is that of the best round."""
    one = seen.isel(sample=[1])
    left = sciml.refine(fit, problem, one, rounds=2, simulations=600, epochs=110)
    best = min(json.loads(left.attrs["refinement"])["rounds"], key=lambda row: row["weights"])
    assert best["weights"] < 0.75
    said = f"{best['too_wide']:.2f} times too wide in {best['widest']}, by their likelihood"
    assert said in caplog.text
    drawn = left.sample(one, 4000).posterior[:, 0]
    weighed = sciml.reference.importance(left, problem, one).posterior[:, 0]
    ratio = drawn.std("draw") / weighed.std("draw")
    assert best["too_wide"] == pytest.approx(float(ratio.max()), rel=0.2)


@pytest.mark.slow
def test_levels_and_gaps(tmp_path):
    """Estimated levels are refined with the parameters, under the gaps of the observation."""
    noise = Missing(Error(sd=dist.Uniform(0.05, 0.5), estimate=True), fraction=0.2)
    problem = decay(noise)
    fit = rough(problem, embedding=Dense(width=16, depth=1, missing=True))
    one = sciml.simulate(problem, 1, seed=3, noise=noise)
    one.observation[0, 2] = np.nan
    sharp = sciml.refine(fit, problem, one, rounds=1, simulations=400, epochs=20, likelihood=False)
    assert sharp.grid.parameters == ("rate", "start", "noise_sd")
    assert "change" in json.loads(sharp.attrs["refinement"])["rounds"][-1]
    whole = one.fillna({"observation": 1.0})
    told = [sharp.sample(each, 2).flagged.item() for each in (one, whole)]
    assert told == [False, True]  # what it was refined at, and a value where none was seen
    again = sciml.load(sharp.save(tmp_path / "sharp.npz"))
    known = sharp.sample(one, 20).posterior
    np.testing.assert_allclose(again.sample(one, 20).posterior, known, rtol=1e-5)


@pytest.mark.slow
def test_rules_of_a_joint_prior():
    """Where a + b < 1, simulations and draws obey."""
    both = sciml.ode.Truncated(
        {"a": dist.Uniform(0, 1), "b": dist.Uniform(0, 1)}, inside="a + b < 1"
    )
    task = Static("pair", {("a", "b"): both}, 2, Error(sd=0.05))
    fit = rough(task)
    one = sciml.simulate(task, parameters=np.array([[0.5, 0.45]]), noise=task.noise)
    sharp = sciml.refine(fit, task, one, rounds=2, simulations=600, epochs=60)
    drawn = sharp.sample(one, 200).posterior.values
    assert (drawn.sum(axis=-1) < 1).all()
    told = [each["weights"] for each in json.loads(sharp.attrs["refinement"])["rounds"]]
    assert min(told[1:]) < min(0.75, told[0])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sciml.inverse.CollapseWarning")
def test_what_does_not_fit_is_refused(problem, fit, seen):
    """One line each, before anything is simulated."""
    wrong = dataclasses.replace(problem, noise=Error(sd=0.2))
    prior = {**problem.prior, "rate": dist.Uniform(0.1, 4.0)}
    for other, said in (
        (wrong, "the noise of"),
        (dataclasses.replace(problem, prior=prior), "the prior of 'rate'"),
        (sciml.ode.two_moons(), "the fit estimates rate, start"),
    ):
        with pytest.raises(ValueError, match=said):
            sciml.refine(fit, other, seen.isel(sample=[0]))
        with pytest.raises(ValueError, match=said):
            fit.sample(seen, 5, check=other)
    with pytest.raises(ValueError, match="4 observations"):
        sciml.refine(fit, problem, seen)
    with pytest.raises(ValueError, match="both must have one grid"):
        sciml.refine(fit, problem, seen.isel(sample=[0], time=slice(4)))
    for wrong in (0, True):
        with pytest.raises(ValueError, match=f"rounds is {wrong}"):
            sciml.refine(fit, problem, seen.isel(sample=[0]), rounds=wrong)
    far = seen.isel(sample=[0]).assign(observation=1000 * seen.observation[:1])
    with pytest.raises(ValueError, match="about which nothing can be simulated"):
        sciml.refine(fit, problem, far)
    point = sciml.fit(Dense(width=8, depth=1), seen, epochs=1, recipe=Recipe(batch=4))
    with pytest.raises(TypeError, match="gives a point"):
        sciml.refine(point, problem, seen.isel(sample=[0]))
    with pytest.raises(TypeError, match="must be a sciml"):
        fit.sample(seen, 5, check="decay")
