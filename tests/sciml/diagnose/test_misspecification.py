from dataclasses import replace

import jax
import numpy as np
import pytest
import xarray as xr

import sciml
from sciml.diagnose import Kernel, Mahalanobis, Nearest, View, alarm, judge, mmd
from sciml.diagnose.samples.features import principal, quantiles, summaries
from sciml.ode import AR1, Gaussian, Noise, Observation, fitzhugh_nagumo, van_der_pol

SD = 0.07
NOISE = AR1(SD)


GRID = Observation.regular(states=(0,), interval=0.5, length=200)
NEURON = replace(fitzhugh_nagumo(), observation=GRID)


@pytest.fixture(scope="module")
def clean() -> np.ndarray:
    return sciml.simulate(NEURON, samples=1560).observation.values


def measured(clean: np.ndarray, noise: Noise, seed: int = 0) -> np.ndarray:
    return np.asarray(jax.jit(lambda x: noise.apply(jax.random.key(seed), x, {}))(clean))


@pytest.fixture(scope="module")
def known(clean):
    return alarm(measured(clean[:900], NOISE))


@pytest.fixture(scope="module")
def fresh(clean):
    return measured(clean[900:1500], NOISE, seed=1)


@pytest.mark.slow
def test_false_alarms_come_at_the_chosen_rate(known, fresh):
    for level in (0.05, 0.2):
        found = judge(known, fresh, level=level)
        assert float(found.flagged.mean()) == pytest.approx(level, abs=0.04)
        np.testing.assert_array_equal(found.flagged, (found.distance > found.threshold).any("view"))


@pytest.mark.parametrize(
    ("change", "share"),
    [
        (lambda x: measured(x, AR1(5 * SD)), 0.95),
        (lambda x: measured(x, AR1(2 * SD)), 0.5),
        (lambda x: x, 0.3),
        (lambda x: measured(x, Gaussian(2 * SD)), 0.8),
    ],
    ids=["× 5", "× 2", "none", "white"],
)
def test_other_noise_is_flagged(known, clean, change, share):
    assert float(judge(known, change(clean[1500:])).flagged.mean()) > share


@pytest.mark.parametrize(
    ("change", "share"),
    [
        (lambda x: x + 0.5, 0.9),
        (lambda x: 1.3 * x, 0.8),
        (lambda x: x[:, ::-1], 0.9),
        (lambda x: np.full_like(x, 0.2), 0.95),
        (lambda x: np.sin(np.linspace(0, 80, x.shape[1])) + 0 * x, 0.95),
    ],
    ids=["offset", "gain", "backwards", "constant", "sine"],
)
def test_strange_observations_are_flagged(known, fresh, change, share):
    assert float(judge(known, change(fresh[:60])).flagged.mean()) > share


def test_a_foreign_system_is_flagged(known):
    system = van_der_pol()
    data = sciml.simulate(system, samples=60, noise=Gaussian(SD))
    series = data.observation.values
    repeated = np.tile(series, (1, 1 + 200 // series.shape[1]))[:, :200]
    assert float(judge(known, repeated).flagged.mean()) > 0.95


@pytest.mark.parametrize("distance", [Mahalanobis(), Nearest(), Kernel()])
def test_every_distance_keeps_its_rate_and_sees_a_shift(distance):
    rng = np.random.default_rng(0)
    training, new = rng.normal(size=(900, 5)), rng.normal(size=(600, 5))
    found = alarm(training, views={"values": View(lambda x: x, distance)})
    assert float(judge(found, new).flagged.mean()) == pytest.approx(0.05, abs=0.04)
    assert judge(found, new + 6).flagged.all()


def test_missing_values_are_neither_strange_nor_fatal():
    rng = np.random.default_rng(0)

    def series(samples: int) -> np.ndarray:
        x = np.sin(np.linspace(0, 9, 40)) * rng.normal(1, 0.2, (samples, 1))
        x = x + 0.1 * rng.normal(size=x.shape)
        return np.where(rng.random(x.shape) < 0.1, np.nan, x)

    known = alarm(series(600))
    assert list(known.views) == ["values", "summaries"]
    assert float(judge(known, series(400)).flagged.mean()) == pytest.approx(0.05, abs=0.045)


def test_quantiles_of_rows_with_gaps():
    x = np.random.default_rng(0).normal(size=(20, 30))
    x[np.random.default_rng(1).random(x.shape) < 0.3] = np.nan
    found = quantiles(x, (0.0, 0.25, 1.0))
    np.testing.assert_allclose(found, np.nanquantile(x, [0.0, 0.25, 1.0], axis=1))


def test_summaries_of_a_channel_that_is_missing_are_missing():
    """A sensor that failed is told from the others, without a warning of NumPy's."""
    x = np.random.default_rng(0).normal(size=(3, 50, 2))
    whole = summaries(x)
    x[1, :, 1] = np.nan
    told = summaries(x)
    np.testing.assert_array_equal(
        np.isnan(told), [[False] * 42, [False] * 21 + [True] * 21, [False] * 42]
    )
    np.testing.assert_array_equal(told[[0, 2]], whole[[0, 2]])


def test_summaries_do_not_see_the_timing():
    x = np.random.default_rng(0).normal(size=(3, 50, 2)).cumsum(axis=1)
    assert summaries(x).shape == (3, 42)
    np.testing.assert_allclose(summaries(x[:, ::-1]), summaries(x), rtol=1e-6)


def test_principal_components_are_white_and_leave_out_the_rest():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 2)) @ rng.normal(size=(2, 30)) + 1e-3 * rng.normal(size=(500, 30))
    seen = principal(x)
    np.testing.assert_allclose(seen.scores(x).std(axis=0), 1.0)
    assert seen.axes.shape == (2, 30)
    assert seen.residual(x).max() < 1e-3


def test_mmd_sees_what_no_single_observation_shows():
    rng = np.random.default_rng(0)
    training, same, moved = rng.normal(size=(300, 3)), rng.normal(size=(100, 3)), 0.0
    moved = rng.normal(size=(100, 3)) + 0.5
    assert float(mmd(same, training, permutations=100).p_value) > 0.02
    found = mmd(moved, training, permutations=100)
    assert float(found.p_value) < 0.02
    assert float(judge(alarm(training), moved).flagged.mean()) < 0.4


def test_mmd_agrees_with_sbi():
    torch = pytest.importorskip("torch")
    metrics = pytest.importorskip("sbi.utils.metrics")
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(40, 2)), rng.normal(size=(50, 2)) + 1
    seen = principal(b)
    ours = float(mmd(a, b, bandwidth=1.0, permutations=1).mmd2)
    points = [torch.as_tensor(seen.scores(x)) for x in (a, b)]
    assert ours == pytest.approx(float(metrics.unbiased_mmd_squared(*points, scale=1.0)))


@pytest.mark.usefixtures("untyped")
def test_errors_say_what_is_wrong():
    x = np.random.default_rng(0).normal(size=(240, 4))
    known = alarm(x)
    for call, message in (
        (lambda: alarm(x[:179]), "179 training observations; an alarm needs 180"),
        (lambda: alarm(x, views={}), "views is empty"),
        (lambda: judge(known, x[:, :3]), "measured alike"),
        (lambda: judge(known, x, level=0.01), "at least 0.037"),
        (lambda: alarm(np.where(x > 9, x, np.inf)), "infinite"),
        (lambda: alarm(x[:, 0]), r"must be \(sample, time"),
        (lambda: principal(x, variance=0.0), "variance is 0"),
        (lambda: principal(x * np.nan), "all 4 entries are missing in every"),
        (lambda: principal(x[:5]), "5 observations"),
        (lambda: mmd(x[:1], x), "2 or more"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_what_all_of_the_training_lack_is_left_out():
    rng = np.random.default_rng(0)
    x, far = rng.normal(size=(240, 4)), rng.normal(90.0, size=(3, 4)) * [0, 0, 0, 1]
    lacking = x * [1, 1, 1, np.nan]
    for made in (judge(alarm(lacking), far), judge(alarm(lacking), far * [1, 1, 1, np.nan])):
        np.testing.assert_allclose(made.p_value, judge(alarm(x[:, :3]), far[:, :3]).p_value)
    three = xr.DataArray(np.stack([x, x * np.nan], axis=2), dims=("sample", "time", "channel"))
    assert float(judge(alarm(three), three).flagged.mean()) < 0.5


def test_named_features_are_not_taken_for_a_series():
    values = np.random.default_rng(0).normal(size=(600, 9))
    features = xr.DataArray(values, dims=("sample", "feature"))
    assert list(alarm(features).views) == ["values", "neighbours"]
    assert list(alarm(features.rename(feature="time")).views) == ["values", "summaries"]
    swapped = judge(alarm(features), features.transpose("feature", "sample")[:, :60])
    assert float(swapped.flagged.mean()) < 0.2


def test_the_centre_is_strange_unless_the_training_was_drawn_about_it():
    """Too little of everything is flagged; of simulations about the observation only too much."""
    training = np.random.default_rng(0).normal(size=(900, 4))
    seen = np.array([np.zeros(4), np.full(4, 4.0)])
    for central in (False, True):
        views = {"values": View(lambda x: x, Mahalanobis(central=central))}
        flagged = judge(alarm(training, views=views), seen).flagged.values
        assert flagged.tolist() == [not central, True]


@pytest.mark.parametrize("dim", ["time", "feature"])
@pytest.mark.parametrize("kind", ["poisson", "negative binomial", "lognormal"])
def test_zeros_where_the_training_has_none_are_flagged(kind, dim):
    """Of amounts that are never negative, zero is near by their spread, and far by their roots."""
    rng = np.random.default_rng(0)
    mean = rng.uniform(50, 200, (600, 1)) * np.exp(-np.linspace(0, 1, 5))
    drawn = {
        "poisson": lambda: rng.poisson(mean),
        "negative binomial": lambda: rng.poisson(rng.gamma(10, mean / 10)),
        "lognormal": lambda: mean * np.exp(0.3 * rng.normal(size=mean.shape)),
    }[kind]().astype(float)
    known = alarm(xr.DataArray(drawn[:400], dims=("sample", dim)))
    odd = xr.DataArray([np.zeros(5), 5 * drawn.max(axis=0)], dims=known.like.dims)
    assert judge(known, odd).flagged.values.tolist() == [True, True]
    proper = judge(known, xr.DataArray(drawn[400:], dims=("sample", dim))).flagged
    assert float(proper.mean()) < 0.12
