"""A learned likelihood against closed forms, and what it is not learned of."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpyro.distributions import Gamma, Normal, Uniform
from scipy import stats

import sciml
from sciml.models import Dense, Ensemble, Gaussian
from sciml.ode import Poisson, Static
from sciml.reference import importance, smc, trust
from sciml.reference.smc import Population
from sciml.train import Recipe

pytestmark = pytest.mark.usefixtures("quick_compilation")

SD = 0.5
PRIOR = {"mean": Normal(0.0, 1.0), "log_sd": Normal(-0.7, 0.3)}
RECIPE = Recipe(batch=200, learning_rate=3e-3)
FEW = Population(particles=400, moves=8)


def points(samples=1500, parts=3, unit=1.0, seed=0):
    """Return repeated measurements of a normal law whose mean and spread are sought."""
    rng = np.random.default_rng(seed)
    theta = np.stack([rng.normal(0, 1, samples), rng.normal(-0.7, 0.3, samples)], axis=1)
    seen = theta[:, :1] + np.exp(theta[:, 1:]) * rng.normal(size=(samples, parts))
    return sciml.dataset(theta, unit * seen, names=list(PRIOR), prior=PRIOR)


def learn(data, **options):
    options = {"parts": 3, "epochs": 30, "recipe": RECIPE} | options
    return sciml.fit_likelihood(Gaussian(width=32, depth=2), data, **options)


@pytest.fixture(scope="module")
def found():
    return learn(points(3000))


def test_its_density_is_that_of_the_law(found):
    seen = np.array([0.3, -0.4, 1.2])
    for theta in ([0.0, -0.7], [1.0, -0.5], [0.3, -0.9]):
        exact = stats.norm.logpdf(seen, theta[0], np.exp(theta[1])).sum()
        got = found.log_density(jnp.asarray(seen), jnp.asarray(theta))
        assert got == pytest.approx(exact, abs=0.4)


def by_quadrature(seen):
    """Return mean and spread of the posterior of the mean."""
    mean, log_sd = np.meshgrid(np.linspace(-3, 3, 301), np.linspace(-1.9, 0.5, 121), indexing="ij")
    density = stats.norm.logpdf(mean) + stats.norm.logpdf(log_sd, -0.7, 0.3)
    density += stats.norm.logpdf(seen, mean[..., None], np.exp(log_sd)[..., None]).sum(axis=-1)
    weight = np.exp(density - density.max())
    centre = (weight * mean).sum() / weight.sum()
    spread = ((weight * (mean - centre) ** 2).sum() / weight.sum()) ** 0.5
    return centre, spread


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 3, 8])
def test_posteriors_of_any_number_of_parts_are_those_of_quadrature(found, count):
    seen = np.random.default_rng(count).normal(0.8, SD, count)
    centre, spread = by_quadrature(seen)
    got = smc(found.problem(PRIOR, parts=count), seen, settings=FEW).posterior.sel(parameter="mean")
    assert abs(float(got.mean()) - centre) < 0.25 * spread
    assert float(got.std()) == pytest.approx(spread, rel=0.2)


@pytest.mark.slow
def test_the_order_of_the_prior_says_nothing_and_another_prior_needs_no_training(found):
    seen, turned = [0.3, -0.4, 1.2], dict(reversed(PRIOR.items()))
    for prior in (turned, PRIOR | {"mean": Uniform(0.0, 0.2)}):
        draws = smc(found.problem(prior), seen, settings=FEW).posterior
        assert draws.parameter.values.tolist() == list(prior)
        middle = draws.mean("draw")
        assert -1.5 < middle.sel(parameter="log_sd") < 0.2 < 1 + middle.sel(parameter="mean")
    assert 0 < draws.sel(parameter="mean").min() < draws.sel(parameter="mean").max() < 0.2


def test_a_unit_moves_the_density_by_its_logarithm_alone(found):
    large = learn(points(3000, unit=1e6))
    seen, theta = jnp.array([0.3, -0.4, 1.2]), jnp.array([0.2, -0.6])
    moved = large.log_density(1e6 * seen, theta) + 3 * np.log(1e6)
    assert float(moved) == pytest.approx(float(found.log_density(seen, theta)), abs=0.05)


def test_draws_are_those_of_the_law(found):
    problem = found.problem(PRIOR)
    seen = sciml.simulate(
        problem, parameters=np.tile([1.0, -1.0], (4000, 1)), noise=problem.noise
    ).observation.values
    assert seen.shape == (4000, 3)
    assert seen.mean() == pytest.approx(1.0, abs=0.1)
    assert seen.std() == pytest.approx(np.exp(-1.0), rel=0.15)
    assert abs(np.corrcoef(seen.T)[0, 1]) < 0.1


def test_draws_of_an_ensemble_are_of_all_its_members():
    """Of members that disagree the law has two humps."""
    law = sciml.fit_likelihood(
        Ensemble(Gaussian(8, 1), 2), points(300), epochs=1, parts=3, recipe=RECIPE
    )
    apart = lambda x: x + jnp.array([-0.2, 0.2]).reshape(2, *[1] * (x.ndim - 1))  # noqa: E731
    law = sciml.Likelihood(law.fit.replace(params=jax.tree.map(apart, law.fit.params)))
    theta, grid = jnp.array([0.0, -0.7]), jnp.linspace(-15, 15, 3001)
    density = jnp.exp(jax.vmap(lambda x: law.log_density(x[None], theta))(grid))
    mean = float((grid * density).sum() / density.sum())
    spread = float((((grid - mean) ** 2 * density).sum() / density.sum()) ** 0.5)
    seen = law.apply(jax.random.key(0), jnp.tile(theta, (4000, 1)), {})
    assert float(density.sum() * 0.01) == pytest.approx(1.0, abs=0.01)
    assert float(seen.mean()) == pytest.approx(mean, abs=0.05 * spread)
    assert float(seen.std()) == pytest.approx(spread, rel=0.05)


@pytest.mark.slow
def test_a_missing_part_says_nothing_and_half_a_part_is_refused(found):
    theta = jnp.array([0.2, -0.6])
    one = found.log_density(jnp.array([0.3]), theta)
    assert found.log_density(jnp.array([jnp.nan, 0.3, jnp.nan]), theta) == pytest.approx(one)
    pair = points(parts=4)
    with pytest.raises(ValueError, match="mark the whole part as NaN"):
        smc(learn(pair, parts=2, epochs=1).problem(PRIOR), [0.1, np.nan, 0.3, 0.4], settings=FEW)


def test_it_is_kept_in_a_file(found, tmp_path):
    again = sciml.Likelihood(sciml.load(found.save(tmp_path / "law.fit")))
    theta, seen = jnp.array([0.2, -0.6]), jnp.array([0.3, -0.4, 1.2])
    assert again.log_density(seen, theta) == found.log_density(seen, theta)
    assert again.describe() == found.describe()


@pytest.mark.slow
def test_a_fit_is_trusted_and_weighed_by_it(found):
    data = points(seed=1)
    fit = sciml.fit(Gaussian(width=32), data, 0.1, epochs=30, recipe=RECIPE)
    seen = points(samples=4, seed=2)
    problem = found.problem(PRIOR)
    weighed = importance(fit, problem, seen, draws=200).posterior.sel(parameter="mean")
    for k, one in enumerate(seen.observation.values):
        centre, spread = by_quadrature(one)
        assert abs(float(weighed[:, k].mean()) - centre) < 0.35 * spread
    said = trust(fit, problem, seen)
    assert float(said.c2st.median()) < 0.7
    turned = fit.replace(params=jax.tree.map(jnp.zeros_like, fit.params))
    assert trust(turned, problem, seen).doubted.all()


@pytest.mark.slow
def test_counts_have_their_probabilities(caplog):
    """Gamma and Poisson are conjugate: n counts of sum k give Gamma(a + k, b + n)."""
    rng = np.random.default_rng(0)
    rate = rng.gamma(20.0, 2.0, 3000)
    data = sciml.dataset(rate[:, None], rng.poisson(rate[:, None], (3000, 2)), names=["rate"])
    prior = {"rate": Gamma(20.0, 0.5)}
    data.attrs["support"] = '{"rate": [0, null]}'
    law = learn(data, parts=2)
    for count in (30, 45):
        exact = stats.poisson.logpmf(count, 40.0)
        got = law.log_density(jnp.array([float(count)]), jnp.array([40.0]))
        assert got == pytest.approx(exact, abs=0.25)
    cut = {"rate": Uniform(20.0, 70.0)}
    draws = smc(law.problem(cut), [30.0, 34.0], settings=FEW).posterior
    assert float(draws.mean()) == pytest.approx(65 / 2, rel=0.08)
    seen = sciml.simulate(law.problem(cut), 20, noise=law).observation.values
    assert (seen == np.round(seen)).all()
    with pytest.raises(ValueError, match=r"part is 30\.5, and whole in all"):
        smc(law.problem(cut), [30.5, 34.0], settings=FEW)
    with pytest.raises(ValueError, match=r"lie outside \[.*simulate there too"):
        law.problem(prior | {"rate": Gamma(1.0, 0.01)})
    assert "correlation" not in caplog.text


def test_parts_that_depend_on_each_other_are_told(caplog):
    data = points()
    shared = np.random.default_rng(1).normal(size=(1500, 1))
    learn(data.assign(observation=data.observation + shared))
    assert "correlation" in caplog.text
    assert "parts=1" in caplog.text


@pytest.mark.slow
def test_an_observation_unlike_those_of_the_training_is_told_once(found, caplog):
    beyond = found.points.high[0] + 0.5
    smc(found.problem(PRIOR), [0.0, 0.1, beyond], settings=FEW)
    assert caplog.text.count("feature 0 of an observed part is") == 1


def test_an_observation_in_another_unit_is_refused(found):
    with pytest.raises(ValueError, match=r"part is 1000, .*, or check the unit"):
        smc(found.problem(PRIOR), [300.0, -400.0, 1000.0], settings=FEW)


def test_a_table_of_parts_is_refused_with_its_remedy(found):
    with pytest.raises(ValueError, match=r"table of \(3, 1\), parts by features.*reshape\(-1\)"):
        smc(found.problem(PRIOR), np.zeros((3, 1)), settings=FEW)


def test_failed_simulations_are_told(caplog):
    data = points(samples=200)
    data["observation"][3] = np.nan
    data["valid"][3] = False
    learn(data, epochs=1)
    assert "1 of 200 simulations failed" in caplog.text


def wrong(data, **changes):
    return data.assign(
        {name: (data[name].dims, np.asarray(value)) for name, value in changes.items()}
    )


def shifted(data):
    return wrong(data, observation=data.observation + np.array([0.0, 0.0, 3.0]))


GIVEN = points(samples=60)
TIMES = sciml.dataset(GIVEN.parameters, GIVEN.observation.values, time=[0.0, 1.0, 2.0])


@pytest.mark.parametrize(
    ("data", "options", "said"),
    [
        (GIVEN, {"parts": 2}, "3 features, which are not 2 equal parts"),
        (GIVEN, {"parts": 0}, "parts is 0"),
        (TIMES, {"parts": 1}, "a series of 3 times; .*: pass parts=3"),
        (TIMES.drop_vars("time"), {}, "says no times"),
        (
            TIMES.assign_coords(u=(("sample", "time"), np.ones((60, 3)), {"role": "condition"})),
            {},
            "condition u is a series",
        ),
        (TIMES.assign_coords(time=2460000.0 + 0.01 * np.arange(3)), {}, "float32"),
        (TIMES, {"conditions": {"time": [0.0, 1.0, 2.0]}}, "times come once"),
        (wrong(GIVEN, observation=np.arange(180.0).reshape(60, 3) % 2), {}, "2 whole numbers"),
        (wrong(GIVEN, observation=np.maximum(GIVEN.observation, 0)), {}, "feature 0 is 0 in"),
        (
            wrong(GIVEN, observation=np.where(GIVEN.observation > 1, np.nan, GIVEN.observation)),
            {},
            "none may be missing",
        ),
        (shifted(points(samples=300)), {}, "pass what tells"),
    ],
)
def test_what_no_density_is_learned_of_is_refused(data, options, said):
    with pytest.raises(ValueError, match=said):
        learn(data, **options)


def test_simulations_without_noise_and_nets_without_density_are_refused(untyped):
    task = Static("line", {"mean": Normal(0.0, 1.0)}, 1, Poisson())
    with pytest.raises(ValueError, match="simulated without noise"):
        learn(sciml.simulate(task, samples=20), parts=1)
    with pytest.raises(TypeError, match="no density"):
        sciml.fit_likelihood(Dense(8, 1), GIVEN)
    with pytest.raises(TypeError, match="must be a Dataset"):
        learn(GIVEN.observation.values)


@pytest.mark.parametrize("held", [None, GIVEN])
def test_nothing_to_hold_out_is_refused(held, untyped):
    with pytest.raises(TypeError, match=r"validation is .*pass 0\.1"):
        learn(GIVEN, validation=held)


def test_what_is_never_negative_has_no_density_below_zero():
    """Log-normal: ln x ~ N(mean, 1)."""
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(1500, 1))
    data = sciml.dataset(mean, np.exp(mean + rng.normal(size=(1500, 2))), names=["mean"])
    law = learn(data, parts=2)
    for value in (0.2, 1.0, 5.0):
        exact = stats.lognorm.logpdf(value, 1.0, scale=np.exp(0.3))
        got = law.log_density(jnp.array([value]), jnp.array([0.3]))
        assert got == pytest.approx(exact, abs=0.25)
    assert law.log_density(jnp.array([1.0, -0.1]), jnp.array([0.3])) == -jnp.inf
    with pytest.raises(ValueError, match=r"part is 0, and positive in all .*mark the part as NaN"):
        smc(law.problem({"mean": Normal(0.0, 0.5)}), [1.0, 0.0], settings=FEW)


def test_priors_of_other_parameters_and_fits_of_posteriors_are_refused(found):
    with pytest.raises(ValueError, match="write a prior of these"):
        found.problem({"mean": Normal(0.0, 1.0)})
    with pytest.raises(ValueError, match="fit_likelihood"):
        sciml.Likelihood(sciml.fit(Gaussian(8, 1), points(samples=100), epochs=1))


TIMES_OF = {"time": np.array([0.0, 0.5, 1.0])}


def lines(samples=2500, seed=0, at=TIMES_OF["time"], sd=0.3):
    """Return straight lines through 1 at times `at`, measured; the slope is sought."""
    rng = np.random.default_rng(seed)
    slope = rng.normal(size=(samples, 1))
    seen = 1.0 + slope * at + sd * rng.normal(size=(samples, np.shape(at)[-1]))
    return sciml.dataset(slope, seen, names=["slope"], prior={"slope": Normal(0.0, 1.0)})


def of_line(at, seen, sd=0.3):
    """Return mean and spread of the posterior of the slope."""
    precision = 1 + (np.square(at) / sd**2).sum()
    return (at * (seen - 1) / sd**2).sum() / precision, precision**-0.5


@pytest.fixture(scope="module")
def through_time():
    at = np.random.default_rng(1).uniform(0.0, 2.0, (2500, 3))
    return learn(lines(at=at), conditions={"time": at})


@pytest.mark.slow
@pytest.mark.parametrize("at", [[0.2, 1.9], [1.0, 1.0, 1.0, 0.1, 1.7]])
def test_parts_are_known_by_their_conditions(through_time, at):
    at = np.array(at)
    seen = 1.0 + 0.7 * at + 0.3 * np.random.default_rng(2).normal(size=len(at))
    problem = through_time.problem(
        {"slope": Normal(0.0, 1.0)}, parts=len(at), conditions={"time": at}
    )
    got = smc(problem, seen, settings=FEW).posterior
    mean, spread = of_line(at, seen)
    assert abs(float(got.mean()) - mean) < 0.35 * spread
    assert float(got.std()) == pytest.approx(spread, rel=0.25)
    drawn = sciml.simulate(problem, parameters=np.full((2000, 1), 0.7), noise=problem.noise)
    np.testing.assert_allclose(drawn.observation.mean("sample"), 1 + 0.7 * at, atol=0.12)


def test_conditions_of_the_training_serve_where_all_samples_have_them(tmp_path):
    law = learn(lines(samples=300), conditions=TIMES_OF, epochs=2)
    prior, theta = {"slope": Normal(0.0, 1.0)}, jnp.array([0.3])
    seen = jnp.array([1.0, 1.2, 1.4])
    problem = law.problem(prior)
    again = sciml.Likelihood(sciml.load(law.save(tmp_path / "law.fit")))
    first = problem.noise.log_density(seen, theta)
    assert again.problem(prior).noise.log_density(seen, theta) == first
    turned = law.problem(prior, conditions={"time": TIMES_OF["time"][::-1]})
    assert turned.noise.log_density(seen[::-1], theta) == pytest.approx(float(first), abs=1e-4)
    assert turned.noise.log_density(seen, theta) != pytest.approx(float(first), abs=1e-4)
    column = law.problem(prior, conditions={"time": pd.Series(TIMES_OF["time"][::-1], [2, 1, 0])})
    assert column.noise.describe() == turned.noise.describe()
    one = law.problem(prior, parts=1, conditions={"time": 0.5})
    assert one.features == 1
    assert problem.noise.describe() != turned.noise.describe()


def test_a_condition_may_have_any_name():
    at = np.random.default_rng(1).uniform(0.0, 2.0, (100, 3))
    data = lines(samples=100, at=at).assign_coords(
        known=("sample", at[:, 0], {"role": "condition"})
    )
    law = learn(data, conditions={"of": at}, epochs=1)
    problem = law.problem({"slope": Normal(0.0, 0.5)}, conditions={"of": at[0]})
    assert list(problem.conditions) == ["known"]


def test_conditions_are_aligned_by_the_labels_of_samples():
    at = np.random.default_rng(1).uniform(0.0, 2.0, (300, 3))
    data = lines(samples=300, at=at).assign_coords(sample=np.arange(300))
    order = np.random.default_rng(2).permutation(300)
    table = pd.DataFrame(at).iloc[order]
    array = xr.DataArray(at.T, {"sample": np.arange(300)}, ("trial", "sample"))
    found = [
        learn(data, conditions={"time": each}, epochs=1)
        for each in (at, table, array, array.isel(sample=order))
    ]
    for other in found[1:]:
        assert other.describe()["net"] == found[0].describe()["net"]


def test_a_condition_of_the_data_set_is_known_of_all_parts():
    rng = np.random.default_rng(0)
    dose = rng.uniform(1.0, 2.0, 1500)
    rate = rng.normal(size=(1500, 1))
    seen = rate * dose[:, None] + 0.3 * rng.normal(size=(1500, 2))
    data = sciml.dataset(rate, seen, names=["rate"], conditions={"dose": dose})
    law = learn(data, parts=2)
    problem = law.problem({"rate": Uniform(-1.0, 1.0)}, conditions={"dose": 1.5})
    for value in (0.5, 0.9):
        exact = stats.norm.logpdf(value, 0.6 * 1.5, 0.3) + stats.norm.logpdf(0.8, 0.9, 0.3)
        got = problem.noise.log_density(jnp.array([value, 0.8]), jnp.array([0.6]))
        assert got == pytest.approx(exact, abs=0.5)
    open_ = law.problem({"rate": Uniform(-1.0, 1.0)})
    first = open_.noise.log_density(jnp.array([0.5, 0.8]), jnp.array([0.6, 1.5]))
    assert first == problem.noise.log_density(jnp.array([0.5, 0.8]), jnp.array([0.6]))


LINES = lines(samples=60)


@pytest.mark.parametrize(
    ("conditions", "said"),
    [
        ({"time": [0.0, 1.0]}, r"has the shape \(2,\); it must be \(60, 3\), or of one"),
        ({"time": np.zeros((59, 3))}, r"has the shape \(59, 3\); it must be \(60, 3\)"),
        (
            {
                "time": xr.DataArray([0.0, 0.5, 1.0], {"trial": [0, 1, 2]}, ("trial",)),
                "dose": xr.DataArray([1.0, 2.0, 3.0], {"trial": [2, 1, 0]}, ("trial",)),
            },
            "time and dose have trial .* in order",
        ),
        (
            {
                "time": [0.0, 0.5, 1.0],
                "dose": pd.DataFrame(np.ones((60, 3)), columns=[1.0, 0.5, 0.0]),
            },
            "time and dose have time .* in order",
        ),
        ({"time": [0.0, np.nan, 1.0]}, "conditions are known"),
        ({"slope": [0.0, 0.5, 1.0]}, "slope is a parameter and a condition"),
        (
            {"time": xr.DataArray(np.zeros((60, 3, 1)), dims=("sample", "a", "b"))},
            "sample, and one",
        ),
        ([0.0, 0.5, 1.0], "has no names"),
    ],
)
def test_conditions_of_another_shape_are_refused(conditions, said, untyped):
    with pytest.raises((ValueError, TypeError), match=said):
        learn(LINES, conditions=conditions, epochs=1)


def test_a_condition_that_the_training_did_not_have_is_refused():
    law = learn(lines(samples=200), conditions=TIMES_OF, epochs=1)
    prior = {"slope": Normal(0.0, 1.0)}
    with pytest.raises(ValueError, match=r"time is 0.25 in part 1, and one of \[0.0, 0.5, 1.0\]"):
        law.problem(prior, conditions={"time": [0.0, 0.25, 1.0]})
    with pytest.raises(ValueError, match=r"the conditions name dose, and .* learned with time"):
        law.problem(prior, conditions={"dose": [0.0, 0.5, 1.0]})
    with pytest.raises(ValueError, match=r"time is not given, .*pass conditions= with 2 values"):
        law.problem(prior, parts=2)
    at = np.random.default_rng(1).uniform(0.0, 2.0, (200, 3))
    law = learn(lines(samples=200, at=at), conditions={"time": at}, epochs=1)
    with pytest.raises(ValueError, match=r"time is 2.5 in part 2, and from .* in the training"):
        law.problem(prior, conditions={"time": [0.0, 1.0, 2.5]})
    with pytest.raises(ValueError, match="are known of 0 parts, and there are 3"):
        law.log_density(jnp.ones(3), jnp.array([0.3]))


def test_parts_known_by_conditions_that_depend_on_each_other_are_told(caplog):
    data = lines(samples=600)
    shared = np.random.default_rng(1).normal(size=(600, 1))
    learn(data.assign(observation=data.observation + shared), conditions=TIMES_OF)
    assert "correlation" in caplog.text
    caplog.clear()
    learn(data, conditions=TIMES_OF)
    assert "correlation" not in caplog.text


@pytest.mark.slow
def test_few_counts_have_their_probabilities():
    """Counts that are mostly 0 or 1 under some conditions and hundreds under others."""
    rng = np.random.default_rng(0)
    rate, dose = rng.uniform(0.5, 2.0, (4000, 1)), rng.choice([0.5, 5.0, 50.0], (4000, 3))
    data = sciml.dataset(rate, rng.poisson(rate * dose), names=["rate"])
    law = learn(data, conditions={"dose": dose})
    problem = law.problem({"rate": Uniform(0.5, 2.0)}, parts=1, conditions={"dose": 0.5})
    for count in (0.0, 1.0, 2.0):
        exact = stats.poisson.logpmf(count, 0.5)
        got = problem.noise.log_density(jnp.array([count]), jnp.array([1.0]))
        assert got == pytest.approx(exact, abs=0.35)
    drawn = sciml.simulate(problem, parameters=np.full((4000, 1), 1.0), noise=problem.noise)
    assert float(drawn.observation.mean()) == pytest.approx(0.5, abs=0.1)
    assert problem.noise.log_density(jnp.array([-1.0]), jnp.array([1.0])) == -jnp.inf


def decays(samples=2000, seed=0, channels=("a", "b")):
    """Return what decays at a rate, and its double, at four times, with errors of 10 %."""
    rng = np.random.default_rng(seed)
    rate = rng.uniform(0.5, 1.5, (samples, 1))
    times = np.array([0.0, 0.5, 1.0, 2.0])
    clean = np.exp(-rate * times)[..., None] * np.array([1.0, 2.0])
    seen = clean * np.exp(0.1 * rng.normal(size=clean.shape))
    return sciml.dataset(rate, seen, names=["rate"], time=times, labels=list(channels))


@pytest.mark.slow
def test_a_series_is_learned_by_its_times(tmp_path):
    """The logarithms are straight lines in the rate, so the posterior is a cut normal law."""
    law = learn(decays(), parts=4)
    law = sciml.Likelihood(sciml.load(law.save(tmp_path / "law.fit")))
    prior = {"rate": Uniform(0.5, 1.5)}
    seen = decays(samples=1, seed=3).observation[0]
    times = seen["time"].values
    precision = 2 * np.square(times).sum() / 0.1**2
    lines = np.log(seen.values / np.array([1.0, 2.0]))
    mean = -(times[:, None] * lines).sum() / 0.1**2 / precision
    found = [
        smc(law.problem(prior, **kept), one, settings=FEW).posterior
        for kept, one in (
            ({}, seen),
            ({}, seen.sel(channel=["b", "a"]).sel(channel=["a", "b"]).values),
            ({"parts": 2, "conditions": {"time": times[2:]}}, seen[2:]),
        )
    ]
    spreads = [precision**-0.5] * 2 + [(2 * np.square(times[2:]).sum() / 0.1**2) ** -0.5]
    for got, spread in zip(found, spreads, strict=True):
        assert float(got.std()) == pytest.approx(spread, rel=0.3)
        assert abs(float(got.mean()) - mean) < 2 * spread
    assert abs(float(found[0].mean()) - mean) < 0.5 * spreads[0]
    problem = law.problem(prior)
    drawn = sciml.simulate(problem, samples=3, noise=problem.noise).observation
    assert drawn.dims == ("sample", "time", "channel")
    assert drawn.channel.values.tolist() == ["a", "b"]
    for wrong, said in (
        (seen[::-1], "time"),
        (seen.sel(channel=["b", "a"]), "channel"),
        (seen.assign_coords(time=60 * times), "time"),
        (seen[:3], "3 times"),
    ):
        with pytest.raises(ValueError, match=said):
            smc(problem, wrong, settings=FEW)


@pytest.mark.slow
def test_a_series_of_one_channel_is_doubted_by_what_was_learned():
    data = decays().isel(channel=0, drop=True)
    law = learn(data, parts=4)
    fit = sciml.fit(Gaussian(width=32), data, 0.1, epochs=30, recipe=RECIPE)
    seen = decays(samples=3, seed=4).isel(channel=0, drop=True)
    problem = law.problem({"rate": Uniform(0.5, 1.5)})
    assert float(trust(fit, problem, seen).c2st.median()) < 0.75
    turned = fit.replace(params=jax.tree.map(jnp.zeros_like, fit.params))
    assert trust(turned, problem, seen).doubted.all()


def test_a_series_is_the_features_whose_times_are_known():
    data = decays(samples=200)
    flat = sciml.dataset(data.parameters, data.observation.values.reshape(200, -1))
    known = {"time": data.time.values}
    first, other = (
        learn(each, parts=4, conditions=given, epochs=1)
        for each, given in ((data, None), (flat, known))
    )
    assert first.describe() == other.describe()


@pytest.mark.slow
def test_conditions_of_samples_come_with_observations(caplog):
    """The posterior of a rate of which rate x dose is seen twice, by fit, weights and sampler."""
    rng = np.random.default_rng(0)
    dose = rng.uniform(1.0, 3.0, 2500)
    rate = rng.normal(size=(2500, 1))
    prior = {"rate": Normal(0.0, 1.0)}
    seen = rate * dose[:, None] + 0.5 * rng.normal(size=(2500, 2))
    known = {"conditions": {"dose": dose}}
    data = sciml.dataset(rate, seen, names=["rate"], prior=prior, **known)
    law = learn(data, parts=2)
    problem = law.problem(prior)
    fit = sciml.fit(Gaussian(width=32), data, 0.1, epochs=10, recipe=RECIPE)
    some = data.isel(sample=[3, 4])
    weighed = importance(fit, problem, some, draws=300).posterior
    for i in range(2):
        one = some.observation[i]
        precision = 1 + 2 * float(one.dose) ** 2 / 0.25
        mean = float(one.dose * one.sum() / 0.25 / precision)
        for got in (smc(problem, one, settings=FEW).posterior, weighed[:, i]):
            assert abs(float(got.mean()) - mean) < 0.4 * precision**-0.5
            assert float(got.std()) == pytest.approx(precision**-0.5, rel=0.25)
    with pytest.raises(ValueError, match=r"dose is 300 of sample 0, and from .* in the training"):
        smc(problem, one.assign_coords(dose=one.dose * 0 + 300.0), settings=FEW)
    drawn = sciml.simulate(problem, 50, noise=problem.noise)
    assert 1 <= float(drawn.dose.min()) < float(drawn.dose.max()) <= 3
    far = sciml.simulate(problem, 2, conditions={"dose": [2.0, 300.0]}, noise=problem.noise)
    assert far.valid.values.tolist() == [True, False]


def test_times_of_a_series_keep_their_unit():
    data = decays(samples=100)
    data["time"].attrs["units"] = "min"
    problem = learn(data, parts=4, epochs=1).problem({"rate": Uniform(0.6, 1.4)})
    seen = decays(samples=1, seed=3).observation[0]
    assert sciml.simulate(problem, 2, noise=problem.noise).time.attrs["units"] == "min"
    seen["time"].attrs["units"] = "h"
    with pytest.raises(ValueError, match=r"unit of time is 'h', but 'min'"):
        smc(problem, seen, settings=FEW)
