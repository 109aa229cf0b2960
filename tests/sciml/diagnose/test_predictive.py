import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from sciml.diagnose import arviz_tree, calibration, predictive, replicate
from sciml.reference import stored

TIME = np.linspace(0, 6, 40)
NOISE = 0.2


def simulate(parameters: np.ndarray, seed: int = 0, noise: float = NOISE) -> np.ndarray:
    rng = np.random.default_rng(seed)
    clean = parameters[:, :1] * np.sin(TIME) + parameters[:, 1:]
    return clean + noise * rng.normal(size=clean.shape)


@pytest.fixture(scope="module")
def fitted() -> tuple[np.ndarray, np.ndarray]:
    """Observations with draws from the posterior of a flat prior."""
    rng = np.random.default_rng(1)
    observed = simulate(rng.normal(size=(30, 2)), seed=2)
    design = np.stack([np.sin(TIME), np.ones_like(TIME)], axis=1)
    covariance = NOISE**2 * np.linalg.inv(design.T @ design)
    mean = observed @ design @ covariance / NOISE**2
    z = rng.normal(size=(200, 30, 2))
    return observed, mean + z @ np.linalg.cholesky(covariance).T


def test_right_posteriors_predict_what_was_seen(fitted):
    observed, posterior = fitted
    tree = predictive(observed, replicate(simulate, posterior, rows_at_once=700))
    np.testing.assert_allclose(tree.check.inside.mean("sample"), [0.5, 0.8, 0.95], atol=0.06)
    assert float((tree.check.p_value < 0.05).mean()) < 0.06
    assert int(tree.check.failed.sum()) == 0
    assert tree.posterior_predictive.observation.dims == ("chain", "draw", "sample", "time")


@pytest.mark.parametrize(
    ("change", "statistic"),
    [
        (lambda x: x + 0.5, "mean"),
        (lambda x: x + 0.8 * np.random.default_rng(0).normal(size=x.shape), "roughness"),
        (lambda x: np.where(np.arange(x.shape[1]) == 9, 5.0, x), "highest"),
        (lambda x: 0.2 * x, "sd"),
    ],
)
def test_what_does_not_fit_shows_in_its_statistic(fitted, change, statistic):
    observed, posterior = fitted
    tree = predictive(change(observed), replicate(simulate, posterior))
    assert float((tree.check.p_value.sel(statistic=statistic) < 0.05).mean()) > 0.7


def test_gaps_and_failures_are_left_out(fitted):
    observed, posterior = fitted
    gaps = np.where(np.random.default_rng(0).random(observed.shape) < 0.3, np.nan, observed)
    copies = replicate(simulate, posterior)
    copies[:5, 3] = np.nan
    tree = predictive(gaps, copies)
    assert tree.check.failed.values[3] == 5
    assert np.isfinite(tree.check.p_value).all()
    np.testing.assert_allclose(tree.check.inside.mean("sample"), [0.5, 0.8, 0.95], atol=0.06)


def test_several_channels(fitted):
    observed, posterior = fitted
    both = np.stack([observed, -observed], axis=-1)
    copies = replicate(
        lambda p: np.stack([simulate(p), -simulate(p)], axis=-1), posterior, draws=20
    )
    tree = predictive(both, copies)
    assert tree.observed_data.observation.dims == ("sample", "time", "channel")
    assert copies.shape == (20, 30, 40, 2)


@pytest.mark.usefixtures("untyped")
def test_errors_say_what_is_wrong(fitted):
    observed, posterior = fitted
    with pytest.raises(ValueError, match="one for each row"):
        replicate(lambda p: simulate(p)[:3], posterior)
    with pytest.raises(TypeError, match="simulate is 7; it must be a function of parameters"):
        replicate(7, posterior)
    with pytest.raises(ValueError, match="to fit the observation"):
        predictive(observed, np.zeros((9, 3, 40)))
    with pytest.raises(ValueError, match="no two finite"):
        predictive(observed, np.full((9, *observed.shape), np.nan))
    with pytest.raises(ValueError, match="must be \\(draw, sample, parameter\\)"):
        arviz_tree(posterior[0])
    with pytest.raises(ValueError, match="last axis must hold theta0, theta1"):
        arviz_tree(posterior, prior=np.zeros((9, 3)))


@pytest.mark.filterwarnings("ignore:.*'axis' parameter:PendingDeprecationWarning")
def test_arviz_plots_the_trees_as_they_are(fitted):
    plots = pytest.importorskip("arviz_plots")
    observed, posterior = fitted
    rng = np.random.default_rng(0)
    labelled = xr.DataArray(
        posterior, dims=("draw", "sample", "parameter"), coords={"parameter": ["gain", "level"]}
    )
    copies = replicate(simulate, posterior, draws=50)
    tree = arviz_tree(
        labelled,
        truth=posterior.mean(axis=0),
        prior=rng.normal(size=(200, 2)),
        observation=observed,
        replicated=copies,
        log_likelihood=rng.normal(size=(200, 30)),
    )
    assert {"posterior", "prior", "constant_data", "observed_data", "posterior_predictive",
            "log_likelihood"} == set(tree.children)  # fmt: skip
    assert set(tree.posterior.data_vars) == {"gain", "level"}
    one = tree.isel(sample=0, drop=True)
    plots.plot_dist(one)
    plots.plot_forest(one)
    plots.plot_dist(one, group="prior")
    plots.plot_ppc_dist(one)
    plots.plot_ppc_dist(
        predictive(observed, copies).isel(sample=0, drop=True, missing_dims="ignore")
    )
    ranks = calibration(posterior, rng.normal(size=(30, 2)))
    plots.plot_ecdf_pit(ranks)
    plt.close("all")


def test_draws_of_one_sample_make_the_tree_of_that_sample(fitted):
    observed, posterior = fitted
    dims = ("draw", "sample", "parameter")
    draws = xr.DataArray(posterior, dims=dims, coords={"parameter": ["gain", "level"]})
    truth = xr.DataArray(posterior[0], dims=dims[1:])
    given = {"prior": posterior[:, 0], "log_likelihood": posterior[..., 0]}
    copies = replicate(simulate, posterior, draws=20)
    many = arviz_tree(draws, truth=truth, observation=observed, replicated=copies, **given)
    given["log_likelihood"] = posterior[:, 4, 0]
    one = draws.to_dataset(name="posterior").isel(sample=4)
    alone = {"truth": truth[4], "observation": observed[4], "replicated": copies[:, 4]}
    found = arviz_tree(one.transpose("parameter", "draw"), **alone, **given)
    expected = many.isel(sample=4, drop=True)
    assert set(found.children) == set(expected.children)
    for name in expected.children:
        xr.testing.assert_identical(found[name].to_dataset(), expected[name].to_dataset())
    with pytest.raises(ValueError, match="but the posterior is of one sample"):
        arviz_tree(one, truth=truth)
    with pytest.raises(ValueError, match=r"pass draws\[:, None\], or name the axes"):
        arviz_tree(one.posterior.values)


@pytest.mark.filterwarnings("ignore:.*'axis' parameter:PendingDeprecationWarning")
def test_arviz_plots_stored_references():
    plots = pytest.importorskip("arviz_plots")
    reference = stored("sir")
    tree = arviz_tree(reference, truth=reference, observation=reference)
    assert tree.posterior.beta.dims == ("chain", "draw")
    np.testing.assert_array_equal(tree.posterior.gamma[0], reference.posterior[:, 1])
    assert float(tree.constant_data.beta) == float(reference.parameters[0])
    plots.plot_dist(tree)
    plots.plot_forest(tree)
    plt.close("all")


def test_times_and_channels_are_those_of_the_observation():
    rng = np.random.default_rng(0)
    axes = {"time": [1.0, 2.0, 4.0], "channel": ["prey", "predator"]}
    seen = xr.DataArray(rng.normal(size=(2, 3, 2)), dims=("sample", *axes), coords=axes)
    copies = xr.DataArray(rng.normal(size=(9, 2, 3, 2)), dims=("draw", *seen.dims), coords=axes)
    posterior = rng.normal(size=(9, 2, 1))
    checked = predictive(seen, copies)
    tree = arviz_tree(posterior, observation=seen, replicated=copies)
    for group in (checked, tree):
        for name in ("observed_data", "posterior_predictive"):
            np.testing.assert_array_equal(group[name].time, axes["time"])
            np.testing.assert_array_equal(group[name].channel, axes["channel"])
            np.testing.assert_array_equal(group[name].sample, [0, 1])
