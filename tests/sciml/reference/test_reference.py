"""Likelihoods against SciPy, samplers against closed forms, stored posteriors."""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import typer
import xarray as xr
from numpyro import distributions as dist
from scipy import stats
from typer.testing import CliRunner

from sciml import fit
from sciml.cli.reference import reference
from sciml.models import Dense
from sciml.ode import (
    AR1,
    CATALOG,
    Binomial,
    Crescent,
    Gaussian,
    LogNormal,
    Missing,
    NoisyCurrent,
    NormalPairs,
    RungeKutta4,
    Static,
    gaussian_linear,
    lotka_volterra,
    simulate,
    van_der_pol,
)
from sciml.reference import (
    Chains,
    Population,
    compute,
    log_likelihood,
    nuts,
    sbibm_posterior,
    smc,
    stored,
    target,
)
from sciml.reference.observed import check_observations, observed_of
from sciml.train import Recipe

pytestmark = pytest.mark.usefixtures("quick_compilation")
RNG = np.random.default_rng(0)
FEW = Population(particles=1000, moves=15, kept=0.7)
needs_sbibm = pytest.mark.skipif(find_spec("sbibm") is None, reason="needs the files of sbibm")


def value(noise, observed, clean, **levels) -> float:
    """Return the log likelihood in double precision."""
    with jax.enable_x64(True):
        levels = {name: jnp.asarray(level) for name, level in levels.items()}
        density = jax.jit(lambda x, u, levels: log_likelihood(noise, x, u, levels))
        return float(density(jnp.asarray(observed), jnp.asarray(clean), levels))


def line() -> Static:
    """A normal mean and slope: the smallest task with a closed form."""
    prior = {"first": dist.Normal(0.0, 1.0), "second": dist.Normal(0.0, 2.0)}
    return Static(name="line", prior=prior, features=2, noise=Gaussian(sd=0.5))


@pytest.mark.parametrize("shape", [(7,), (7, 2)])
def test_normal_and_log_normal_densities(shape: tuple[int, ...]):
    x, u = RNG.uniform(1, 2, (2, *shape))
    expected = stats.norm(u, 0.3).logpdf(x).sum()
    assert value(Gaussian(sd=0.3), x, u) == pytest.approx(expected)
    drawn = Gaussian(sd=dist.Uniform(0.1, 1.0))
    assert value(drawn, x, u, sd=0.3) == pytest.approx(expected)
    expected = stats.lognorm(0.2, scale=u).logpdf(x).sum()
    assert value(LogNormal(sd=0.2), x, u) == pytest.approx(expected)


def test_binomial_mass():
    k, u = np.array([0.0, 3, 17, 1000]), np.array([1e-30, 2000, 20_000, 999_000])
    expected = stats.binom(1000, u / 1e6).logpmf(k).sum()
    assert value(Binomial(1000, 1e6), k, u) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("shape", "gaps"),
    [((9,), []), ((9,), [3, 4, 8]), ((9, 2), [0]), ((9, 2), [0, 1, 2, 3, 5, 7])],
)
def test_autoregressive_density_is_exact_with_gaps(shape: tuple[int, ...], gaps: list[int]):
    x, u = RNG.normal(size=(2, *shape))
    x[gaps] = np.nan
    there = np.setdiff1d(np.arange(9), gaps)
    covariance = 0.4**2 * 0.7 ** np.abs(there[:, None] - there)
    errors = (x - u)[there].reshape(len(there), -1).T
    expected = sum(stats.multivariate_normal(cov=covariance).logpdf(e) for e in errors)
    assert value(AR1(0.4, 0.7), x, u) == pytest.approx(expected)
    assert value(Missing(AR1(0.4, 0.7), 0.5), x, u) == pytest.approx(expected)


@pytest.mark.parametrize(
    "noise", [Gaussian(sd=0.3), LogNormal(sd=0.2), Binomial(10, 5.0), AR1(0.4, 0.7)]
)
def test_missing_values_count_nothing_and_keep_gradients_finite(noise):
    x, u = jnp.array([1.0, jnp.nan, 2.0]), jnp.array([1.5, 1.0, 2.5])
    slope = jax.jit(jax.grad(lambda u: log_likelihood(noise, x, u, {})))(u)
    assert jnp.isfinite(slope).all()
    alone = value(noise, x[jnp.array([0])], u[:1]) + value(noise, x[2:], u[2:])
    if not isinstance(noise, AR1):
        assert value(noise, x, u) == pytest.approx(alone, rel=1e-5)


def test_the_density_of_the_crescent_integrates_to_one():
    noise, theta = Crescent(), jnp.array([0.2, -0.5])
    u, v = np.meshgrid(np.linspace(0, 0.2, 401), np.linspace(-0.2, 0.2, 801))
    points = noise.centre(theta) + jnp.asarray(np.stack([u.ravel(), v.ravel()], 1))
    density = jax.vmap(lambda x: log_likelihood(noise, x, theta, {}))(points)
    assert float(jnp.exp(density).sum()) * (0.2 / 400) ** 2 == pytest.approx(1, abs=2e-2)


def test_the_density_of_the_pairs():
    theta = np.array([0.5, -1.0, 1.2, -0.7, 0.6])
    s1, s2, rho = 1.44, 0.49, np.tanh(0.6)
    covariance = np.array([[s1**2, rho * s1 * s2], [rho * s1 * s2, s2**2]]) + 1e-6 * np.eye(2)
    x = RNG.normal(size=(4, 2))
    expected = stats.multivariate_normal(theta[:2], covariance).logpdf(x).sum()
    assert value(NormalPairs(), x.ravel(), theta) == pytest.approx(expected)


def test_a_noise_without_density_is_refused():
    with pytest.raises(TypeError, match="NoisyCurrent has no likelihood"):
        value(NoisyCurrent(), np.ones(7), np.ones(8))
    with pytest.raises(ValueError, match="needs a likelihood"):
        target(van_der_pol(), np.ones(300), None, RungeKutta4())
    with pytest.raises(ValueError, match="no reference posterior"):
        compute("hodgkin_huxley_stochastic")
    with pytest.raises(ValueError, match="the catalogue has"):
        compute("pendulum")


def test_the_prior_is_a_density_of_the_unconstrained_coordinate():
    posterior = target(van_der_pol(), np.zeros(300), Gaussian(sd=0.1), RungeKutta4())
    z = jnp.linspace(-20, 20, 4001)[:, None]
    density = jnp.exp(jax.vmap(posterior.log_prior)(z))
    assert float(density.sum()) * 0.01 == pytest.approx(1, abs=1e-3)
    mu = jax.vmap(posterior.physical)(z)
    assert (mu.min(), mu.max()) == (pytest.approx(0.1, abs=1e-3), pytest.approx(5, abs=1e-3))
    assert (jnp.diff(mu[:, 0]) >= 0).all()


def closed_form(seen: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return mean, sd and log evidence of `line` given an observation."""
    variance = np.array([1.0, 4.0])
    shrink = variance / (variance + 0.25)
    evidence = stats.norm(0, np.sqrt(variance + 0.25)).logpdf(seen).sum()
    return shrink * seen, np.sqrt(shrink * 0.25), float(evidence)


@pytest.mark.slow
def test_tempering_finds_posterior_and_evidence():
    seen = np.array([1.5, -3.0])
    mean, sd, evidence = closed_form(seen)
    found = smc(line(), seen, settings=FEW)
    assert found.posterior.dims == ("draw", "parameter")
    np.testing.assert_allclose((found.posterior.mean("draw") - mean) / sd, 0, atol=0.15)
    np.testing.assert_allclose(found.posterior.std("draw") / sd, 1, atol=0.1)
    assert found.attrs["log_evidence"] == pytest.approx(evidence, abs=0.3)


@pytest.mark.slow
def test_chains_find_the_posterior():
    seen = np.array([1.5, -3.0])
    mean, sd, _ = closed_form(seen)
    settings = Chains(chains=2, warmup=150, draws=400, starts=Population(particles=100, moves=3))
    found = nuts(line(), seen, settings=settings)
    error = sd / np.sqrt(found.ess.values)
    assert (np.abs(found.posterior.mean("draw") - mean) < 4 * error).all()
    np.testing.assert_allclose(found.posterior.std("draw") / sd, 1, atol=0.15)
    assert found.attrs["divergences"] == 0
    assert (found.r_hat < 1.03).all()
    assert list(np.unique(found.chain)) == [0, 1]


@pytest.mark.slow
def test_sampled_levels_are_inferred_beside_the_parameters():
    """θ is known to a thousandth, so that the observation is two errors of unknown sd."""
    task = Static(
        name="level",
        prior={name: dist.Normal(0.0, 1e-3) for name in ("first", "second")},
        features=2,
        noise=Gaussian(sd=dist.Uniform(0.1, 5.0)),
    )
    seen = np.array([1.0, -2.0])
    found = smc(task, seen, settings=FEW)
    assert list(found.parameter) == ["first", "second", "noise_sd"]
    grid = np.linspace(0.1, 5, 4000)
    density = np.exp(stats.norm(0, grid[:, None]).logpdf(seen).sum(axis=1))
    mean = (grid * density).sum() / density.sum()
    assert found.posterior[:, 2].mean() == pytest.approx(mean, rel=0.06)


@pytest.fixture(scope="module")
def hares() -> xr.DataArray:
    """One observation (time, channel), as its problem gives it."""
    return simulate(lotka_volterra(), samples=1, noise=LogNormal(sd=0.1)).observation[0]


@pytest.mark.parametrize("sampler", [smc, nuts])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x.assign_coords(time=x.time + 0.5), r"time\[0\] of the observations is"),
        (lambda x: x[:, ::-1], r"channel\[0\] of the observations is predators, but prey"),
        (lambda x: x[:7], "have 7 times, but there are 10 in the problem 'lotka_volterra'"),
        (lambda x: x[:7].values, "have 7 times, but there are 10"),
        (lambda x: x[:, 0].values, r"\('sample', 'time'\), but \('sample', 'time', 'channel'\)"),
        (lambda x: x.rename(time="t"), r"the dimensions \('sample', 't', 'channel'\), but"),
        (
            lambda x: x.assign_coords(time=x.time.assign_attrs(units="year")),
            "unit of time is 'year'",
        ),
        (lambda x: x.expand_dims("sample"), "must be of one sample"),
        (lambda x: np.nan * x, r"missing altogether \(1 of 1 samples\); at least one value"),
        (lambda x: np.full((10, 2), np.nan), "missing altogether"),
        (lambda x: x / 0.0, "is infinite"),
    ],
    ids=[
        "times",
        "exchanged",
        "length",
        "array",
        "axis",
        "name",
        "unit",
        "samples",
        "unseen",
        "nothing",
        "infinite",
    ],
)
def test_an_observation_that_the_problem_cannot_give_is_refused(hares, sampler, change, message):
    with pytest.raises(ValueError, match=message):
        sampler(lotka_volterra(), change(hares))


@pytest.mark.filterwarnings("ignore:R²")  # after one epoch
@pytest.mark.parametrize("numbers", [[1, 0], [0, 1]])
def test_numbers_are_no_names_of_channels(numbers):
    """They may say the order of another file."""
    named = replace(lotka_volterra(), observed=("prey", "predator"))
    data = simulate(named, samples=40, noise=LogNormal(sd=0.1))
    one = data.observation[:1].assign_coords(channel=numbers)
    net = fit(Dense(4, 1), data, epochs=1, recipe=Recipe(batch=20))
    for ask in (lambda: observed_of(named, one[0], LogNormal(sd=0.1)), lambda: net.predict(one)):
        with pytest.raises(ValueError, match=r"channel .* is \[\d, \d\], but \['prey'.*drop_vars"):
            ask()
    assert net.predict(one.drop_vars("channel")).sizes["sample"] == 1


def test_gaps_rounded_times_and_bare_arrays_are_taken(hares):
    gaps = hares.copy(deep=True)
    gaps[3:, 1] = np.nan
    rounded = gaps.assign_coords(time=hares.time * (1 + 1e-8))
    for some in (gaps, rounded, gaps.values, gaps.drop_vars("time")):
        found = observed_of(lotka_volterra(), some, LogNormal(sd=0.1))
        np.testing.assert_array_equal(found, gaps)


@pytest.mark.parametrize("field", ["particles", "moves", "kept", "temperatures"])
def test_an_impossible_population_is_refused(field: str):
    with pytest.raises(ValueError, match="particles"):
        Population(**{field: 0.0 if field == "kept" else 0})


def test_impossible_chains_are_refused():
    with pytest.raises(ValueError, match="2 chains"):
        Chains(chains=1)


def test_a_population_that_does_not_arrive_says_so():
    with pytest.raises(RuntimeError, match="more temperatures"):
        smc(line(), np.array([30.0, 0.0]), settings=Population(8, 1, 0.99, temperatures=2))


@needs_sbibm
@pytest.mark.parametrize("task", ["two_moons", "lotka_volterra", "sir"])
def test_the_benchmark_is_read_in_our_shapes(task: str):
    data = sbibm_posterior(task, 3)
    assert data.posterior.shape == (10_000, len(CATALOG[task]().prior))
    shape = {"two_moons": (2,), "lotka_volterra": (10, 2), "sir": (10,)}[task]
    assert data.observation.shape == shape
    for draws, prior in zip(data.posterior.T.values, CATALOG[task]().prior.values(), strict=True):
        assert bool(prior.support(draws).all())


STORED = sorted(p.stem for p in Path(__file__).parents[3].glob("datasets/reference/*.nc"))


def test_a_reference_is_stored_for_every_problem_with_a_likelihood():
    assert sorted(set(CATALOG) - {"hodgkin_huxley_stochastic"}) == STORED
    with pytest.raises(FileNotFoundError, match="there are"):
        stored("pendulum")


@pytest.mark.parametrize("name", STORED)
def test_stored_references_hold_up(name: str):
    data, problem = stored(name), CATALOG[name]()
    assert list(data.parameter) == list(problem.parameter_names)
    assert data.posterior.shape[0] >= 300
    for draws, prior in zip(data.posterior.T.values, problem.prior.values(), strict=True):
        assert bool(prior.support(draws).all())
    z = (data.posterior.mean("draw") - data.parameters) / data.posterior.std("draw")
    assert np.abs(z).max() < 4.5  # the data were made with these parameters
    if "r_hat" in data:
        assert (data.r_hat < 1.01).all()
        assert (data.ess > 200).all()
        assert data.attrs["difference_of_means"] < 0.25
        assert data.attrs["ratio_of_sds"] < 1.2
    assert data.attrs["versions"]
    page = (Path(__file__).parents[3] / "docs/lab/reference-posteriors.md").read_text()
    assert f"| `{name}` | `{data.attrs['method']}` | {data.sizes['draw']} |" in page
    assert (Path(__file__).parents[3] / f"datasets/reference/{name}.nc").stat().st_size <= 100_000


@pytest.mark.parametrize("name", STORED)
def test_stored_observations_are_such_as_their_problems_give(name: str):
    problem = CATALOG[name]()
    seen = stored(name).observation.expand_dims("sample")
    check_observations(problem, seen, problem.noise)
    with pytest.raises(ValueError, match="but there are"):
        check_observations(problem, seen[:, 1:], problem.noise)


def test_the_stored_gaussian_posterior_is_the_closed_form():
    data = stored("gaussian_linear")
    z = (data.posterior - data.observation.values / 2) / 0.05**0.5
    assert np.abs(z.mean("draw")).max() < 5 / 1000**0.5
    np.testing.assert_allclose(z.std("draw"), 1, atol=0.08)


def test_the_command_names_what_is_wrong():
    app = typer.Typer()
    app.command()(reference)
    result = CliRunner().invoke(app, ["pendulum", "--out", "/dev/null/folder"])
    assert result.exit_code == 2
    assert "error: " in result.output


def test_the_command_checks_every_name_before_it_samples(tmp_path):
    app = typer.Typer()
    app.command()(reference)
    result = CliRunner().invoke(app, ["sir", "pendulum", "--out", str(tmp_path / "new")])
    assert result.exit_code == 2
    assert "name is 'pendulum'" in result.output
    assert not [*tmp_path.iterdir()]


def test_a_failed_solution_is_impossible():
    posterior = target(
        lotka_volterra(), np.ones((10, 2)), LogNormal(sd=0.1), RungeKutta4(substeps=1)
    )
    assert posterior.log_likelihood(jnp.array([6.0, 6.0, 6.0, 6.0])) == -jnp.inf


def test_gaussian_linear_has_ten_parameters():
    assert len(gaussian_linear().prior) == 10
