import numpy as np
import pytest

from sciml.diagnose import bootstrap, learning_curve, recovery

NAMES = ("a", "b")


def noisy(seed: int, sd: float = 0.3, shape: tuple[int, ...] = (120, 2)):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=shape[-2:])
    return truth, truth + sd * rng.normal(size=shape)


def test_scores_are_those_of_recovery():
    truth, estimate = noisy(0)
    low = truth[:, 0] < 0
    found = bootstrap(truth, estimate, names=NAMES, regimes={"low": low}, resamples=20)
    plain = recovery(truth, estimate, names=NAMES, regimes={"low": low})
    for name in plain:
        np.testing.assert_allclose(found[name], plain[name])
    for name in ("r2", "mse", "mae", "median_se", "p90_se"):
        assert (found[f"{name}_low"] <= found[f"{name}_high"]).all()


@pytest.mark.slow
def test_intervals_hold_the_true_error_as_often_as_they_promise():
    inside = []
    for seed in range(60):
        truth, estimate = noisy(seed)
        found = bootstrap(truth, estimate, names=NAMES, resamples=80, seed=seed).isel(regime=0)
        inside.append((found.mse_low < 0.09) & (found.mse_high > 0.09))
    assert np.mean(inside) == pytest.approx(0.92, abs=0.06)  # 120 trials; slightly below 0.95


def test_repetitions_widen_the_intervals():
    truth, estimate = noisy(0, shape=(4, 120, 2))
    spread = estimate + np.array([-0.4, -0.1, 0.1, 0.4])[:, None, None]
    few = bootstrap(truth, estimate, names=NAMES, resamples=60).isel(regime=0)
    wide = bootstrap(truth, spread, names=NAMES, resamples=60).isel(regime=0)
    assert few.attrs["repetitions"] == 4
    assert (wide.mse_high - wide.mse_low > 1.5 * (few.mse_high - few.mse_low)).all()


def test_an_empty_regime_has_no_scores():
    truth, estimate = noisy(0)
    none = {"none": np.zeros(len(truth), bool)}
    found = bootstrap(truth, estimate, names=NAMES, regimes=none, resamples=10)
    assert np.isnan(found.r2_low.sel(regime="none")).all()


def test_learning_curve_falls():
    truth, _ = noisy(0)
    estimates = {n: truth + noisy(n, 10 / n, (3, 120, 2))[1] - truth for n in (100, 10)}
    estimates = {n: truth + (10 / n) * np.ones((3, 120, 2)) for n in (100, 10)}
    curve = learning_curve(truth, estimates, names=NAMES, resamples=10)
    assert curve.training_samples.values.tolist() == [10, 100]
    np.testing.assert_allclose(curve.mae, [[1.0, 1.0], [0.1, 0.1]])
    assert curve.r2.dims == ("training_samples", "parameter")


@pytest.mark.usefixtures("untyped")
def test_errors_say_what_is_wrong():
    truth, estimate = noisy(0)
    with pytest.raises(ValueError, match="estimate has shape"):
        bootstrap(truth, estimate[:5], names=NAMES)
    with pytest.raises(ValueError, match="not finite"):
        bootstrap(truth, np.nan * estimate, names=NAMES)
    with pytest.raises(ValueError, match="resamples is 1"):
        bootstrap(truth, estimate, names=NAMES, resamples=1)
    with pytest.raises(ValueError, match="estimates is empty"):
        learning_curve(truth, {}, names=NAMES)
