"""What each diagnostic of posteriors sees, what it cannot see, and how often it errs."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from sciml.diagnose import (
    arviz_tree,
    calibration,
    contraction,
    coverage,
    informed_references,
    sbc,
    tarp,
    uniformity,
)
from sciml.diagnose.draws.calibration import holm

EDGE = 1e-3  # a p-value below is a catch


def p_values(tree: xr.DataTree) -> dict[str, float]:
    return {
        str(c): float(p)
        for c, p in zip(tree.checks.check.values, tree.checks.p_value.values, strict=True)
    }


@pytest.mark.slow
def test_exact_posteriors_fail_as_often_as_promised(conjugate):
    rejected = []
    for seed in range(60):
        model = conjugate(120, 40, seed)
        tree = calibration(
            model.exact,
            model.truth,
            log_prob=model.log_density,
            references=informed_references(model.observation, model.truth),
            seed=seed,
        )
        tests = [tree.checks.p_value.values, tree.sbc.chi2_p.values, tree.sbc.ks_p.values]
        tests += [[float(tree.tarp.ks_p)], [float(tree.tarp.chi2_p)]]
        rejected.append(np.concatenate(tests) < 0.1)
    # 60 trials of 0.1: sd 0.04
    np.testing.assert_allclose(np.mean(rejected, axis=0), 0.1, atol=0.13)
    assert np.mean(rejected) == pytest.approx(0.1, abs=0.03)


@pytest.mark.parametrize(
    ("factor", "sign"), [(0.6, -1), (1.6, 1)], ids=["over-confident", "under-confident"]
)
def test_wrong_widths_are_caught_and_named(conjugate, factor, sign):
    model = conjugate(500, 100)
    tree = calibration(model.scaled(factor), model.truth, log_prob=model.log_density)
    assert max(p_values(tree).values()) < EDGE
    assert (np.sign(tree.coverage.worst_points) == sign).all()
    assert np.sign(tree.tarp.area) == sign
    assert (np.sign(1 - tree.contraction.z_sd) == sign).all()


def test_a_bias_is_caught_and_named(conjugate):
    model = conjugate(500, 100)
    tree = calibration(model.shifted(0.5), model.truth)
    assert float(tree.sbc.ks_p.max()) < EDGE
    assert (tree.sbc.ecdf_p < EDGE).all()
    np.testing.assert_allclose(tree.contraction.z_mean, 0.5, atol=0.15)


def test_shuffled_posteriors_are_caught(conjugate):
    model = conjugate(500, 100)
    tree = calibration(model.shuffled(), model.truth)
    assert float(tree.sbc.ecdf_p.min()) < EDGE
    assert float(tree.contraction.z_sd.max()) > 1.2
    assert float(tree.tarp.p_value) < EDGE


def test_the_prior_passes_ranks_but_not_contraction_nor_informed_tarp(conjugate):
    model = conjugate(500, 100)
    prior = model.prior(np.random.default_rng(5))
    blind = calibration(prior, model.truth)
    assert min(p_values(blind).values()) > 0.01
    assert abs(blind.contraction.median_contraction).max() < 0.15
    np.testing.assert_allclose(blind.contraction.variance_ratio, 1.0, atol=0.15)
    seen = tarp(prior, model.truth, references=informed_references(model.observation, model.truth))
    assert float(seen.p_value) < EDGE


def test_lost_dependence_passes_ranks_but_not_tarp(conjugate):
    model = conjugate(1000, 100)
    tree = calibration(
        model.independent(),
        model.truth,
        log_prob=model.log_density,
        references=informed_references(model.observation, model.truth),
    )
    found = p_values(tree)
    assert min(found[f"ranks of theta{i}"] for i in range(2)) > 0.01
    assert found["TARP"] < EDGE
    assert found["coverage of joint"] < EDGE


def test_a_quantity_of_the_data_shows_the_prior_to_ranks(conjugate):
    model = conjugate(500, 100)
    prior = model.prior(np.random.default_rng(5))

    def distance(parameters: np.ndarray) -> np.ndarray:
        return np.abs(parameters.sum(axis=-1) - model.observation[:, 0])

    found = sbc(
        prior, model.truth, quantities={"distance": (distance(prior), distance(model.truth))}
    )
    assert list(found.parameter.values) == ["theta0", "theta1", "distance"]
    assert float(found.ecdf_p.sel(parameter="distance")) < EDGE
    assert float(found.ecdf_p.sel(parameter="theta0")) > 0.01


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_coverage_has_its_closed_form(conjugate, factor):
    model = conjugate(4000, 200)
    found = coverage(model.scaled(factor), model.truth)
    expected = 2 * norm.cdf(factor * norm.ppf((1 + found.level.values) / 2)) - 1
    np.testing.assert_allclose(found.coverage, np.stack([expected] * 2, axis=1), atol=0.03)
    at = abs(expected - found.level.values).argmax()
    off = 100 * (expected - found.level.values)[at]
    np.testing.assert_allclose(found.worst_points, off, atol=3)
    assert (found.low <= found.coverage).all()
    assert (found.coverage <= found.high).all()


def test_contraction_has_its_closed_form(conjugate):
    model = conjugate(2000, 500)
    found = contraction(
        model.exact, model.truth, prior=np.random.default_rng(0).normal(size=(20_000, 2))
    )
    covariance = np.linalg.inv(np.eye(2) + np.array([[1, 1], [1, 1.16]]) / 0.25)
    np.testing.assert_allclose(found.median_contraction, 1 - np.diag(covariance), atol=0.02)
    np.testing.assert_allclose(found.z_sd, 1.0, atol=0.05)


def test_draws_that_are_all_the_same_are_infinitely_sure():
    """As weighted draws are where one proposal has all of the weight."""
    truth = np.arange(40.0).reshape(20, 2)
    point = np.broadcast_to(truth + 0.5, (64, 20, 2))
    found = contraction(point, truth)
    np.testing.assert_array_equal(found.contraction, 1.0)
    assert np.isposinf(found.z_score).all()
    assert np.isposinf(found.z_mean).all()
    assert np.isnan(found.z_sd).all()


def test_many_chunks_and_a_function_give_the_same(conjugate):
    model = conjugate(60, 20)
    whole = calibration(model.exact, model.truth, log_prob=model.log_density)
    asked = []

    def read(indices: np.ndarray) -> np.ndarray:
        asked.append(len(indices))
        return model.exact[:, indices]

    parts = calibration(read, model.truth, log_prob=model.log_density, memory_bytes=10_000)
    assert max(asked) == 7  # 10 000 bytes / (4 copies × 8 bytes × 20 draws × 2 parameters)
    xr.testing.assert_allclose(parts, whole)
    for name, alone in {
        "sbc": sbc(model.exact, model.truth),
        "contraction": contraction(model.exact, model.truth),
    }.items():
        xr.testing.assert_allclose(alone, whole[name].to_dataset())


def test_labelled_inputs_may_have_their_axes_in_any_order(conjugate):
    model = conjugate(30, 20)
    posterior = xr.DataArray(model.exact, dims=("draw", "sample", "parameter"))
    truth = xr.DataArray(
        model.truth, dims=("sample", "parameter"), coords={"parameter": ["rate", "source"]}
    )
    found = sbc(
        posterior.transpose("parameter", "sample", "draw").to_dataset(name="posterior"),
        truth.T.to_dataset(name="parameters"),
    )
    assert list(found.parameter.values) == ["rate", "source"]
    np.testing.assert_array_equal(found["rank"], sbc(model.exact, model.truth)["rank"])


def test_ties_are_split_evenly():
    truth = np.zeros((4000, 1))
    found = sbc(np.zeros((9, 4000, 1)), truth)
    counts = np.bincount(found["rank"].values[:, 0], minlength=10)
    assert abs(counts - 400).max() < 5 * np.sqrt(360)


@settings(max_examples=8, deadline=None)
@given(st.integers(2, 40), st.integers(2, 30), st.integers(1, 4), st.integers(0, 99))
def test_any_shape_is_welcome(samples, draws, parameters, seed):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(samples, parameters))
    tree = calibration(rng.normal(size=(draws, samples, parameters)), truth)
    assert tree.sbc["rank"].shape == (samples, parameters)
    assert int(tree.sbc["rank"].max()) <= draws
    assert ((tree.sbc.pit >= 0) & (tree.sbc.pit < 1)).all()
    assert int(tree.sbc["count"].sum()) == samples * parameters
    assert ((tree.checks.p_value >= 0) & (tree.checks.p_value <= 1)).all()
    assert (tree.checks.adjusted >= tree.checks.p_value).all()


def test_holm():
    np.testing.assert_allclose(holm(np.array([0.04, 0.01, 0.03])), [0.06, 0.03, 0.06])


def test_uniformity_agrees_with_scipy():
    from scipy.stats import chisquare, kstest

    u = np.random.default_rng(0).random((100, 1)) ** 2
    found = uniformity(u).isel(quantity=0)
    assert float(found.ks_p) == kstest(u[:, 0], "uniform").pvalue
    counts = np.histogram(u, 5, (0, 1))[0]
    assert float(found.chi2_p) == chisquare(counts).pvalue


@pytest.mark.parametrize(
    ("posterior", "truth", "message"),
    [
        (np.zeros((1, 5, 2)), np.ones((5, 2)), "1 draw per sample"),
        (np.zeros((9, 4, 2)), np.ones((5, 2)), "to fit the truth"),
        (np.zeros((9, 5, 3)), np.ones((5, 2)), "to fit the truth"),
        (np.zeros((5, 2)), np.ones((5, 2)), "to fit the truth"),
        (np.full((9, 5, 2), np.nan), np.ones((5, 2)), "not finite for 5 of 5 samples"),
        (np.zeros((9, 5, 2)), np.full((5, 2), np.nan), "data.sel"),
        (np.zeros((9, 1, 2)), np.ones((1, 2)), "2 samples or more"),
        (np.zeros((9, 5, 2)), np.ones(5), "2 samples or more"),
        (lambda i: np.zeros((9, 1, 2)), np.ones((5, 2)), "to fit the truth"),
        (xr.Dataset({"other": 1}), np.ones((5, 2)), "must have 'posterior'"),
        (xr.DataArray(np.zeros((9, 5, 2))), np.ones((5, 2)), "lacks"),
    ],
)
@pytest.mark.parametrize("diagnose", [calibration, sbc, coverage, tarp, contraction])
@pytest.mark.usefixtures("untyped")
def test_errors_say_what_is_wrong(diagnose, posterior, truth, message):
    with pytest.raises(ValueError, match=message):
        diagnose(posterior, truth)


@pytest.mark.usefixtures("untyped")
def test_errors_of_the_options(conjugate):
    model = conjugate(20, 9)
    with pytest.raises(ValueError, match="references have shape"):
        tarp(model.exact, model.truth, references=np.zeros((3, 2)))
    with pytest.raises(ValueError, match="at least 10"):
        informed_references(model.observation[:8], model.truth[:8])
    with pytest.raises(ValueError, match="density has shapes"):
        coverage(model.exact, model.truth, density=(np.zeros((9, 3)), np.zeros(20)))
    with pytest.raises(ValueError, match="prior has variances"):
        contraction(model.exact, model.truth, prior=np.zeros((100, 2)))
    with pytest.raises(ValueError, match="log_prob returned"):
        calibration(model.exact, model.truth, log_prob=lambda p, i: np.zeros(3))


def test_agrees_with_sbi(conjugate):
    torch = pytest.importorskip("torch")
    diagnostics = pytest.importorskip("sbi.diagnostics.tarp")
    model = conjugate(300, 99)
    references = np.random.default_rng(3).uniform(-2, 2, model.truth.shape)
    theirs, levels = diagnostics._run_tarp(
        *(torch.as_tensor(a) for a in (model.scaled(0.6), model.truth, references)),
        num_bins=100,
        z_score_theta=True,
    )
    ours = tarp(model.scaled(0.6), model.truth, references=references)
    grid = ours.level.values
    np.testing.assert_allclose(
        np.interp(grid, levels.numpy(), theirs.numpy()), ours.coverage, atol=0.03
    )


def test_names_of_parameters_fit_into_a_tree():
    """A slash ended both in xarray's words; a parameter called `draw` was lost for the axis."""
    rng = np.random.default_rng(0)
    dims = ("draw", "sample", "parameter")
    draws = xr.DataArray(rng.normal(size=(60, 40, 2)), {"parameter": ["k1/k2", "b"]}, dims)
    truth = draws[0].drop_vars("draw", errors="ignore")
    tree = arviz_tree(draws, truth=truth)
    np.testing.assert_array_equal(tree["posterior/k1\N{DIVISION SLASH}k2"][0], draws[..., 0])
    found = calibration(draws, truth)
    assert list(found["prior_sbc"].data_vars) == ["k1\N{DIVISION SLASH}k2", "b"]
    assert found["sbc"].parameter.values.tolist() == ["k1/k2", "b"]
    with pytest.raises(ValueError, match="the parameter 'draw' is called as an axis"):
        arviz_tree(draws.assign_coords(parameter=["draw", "b"]))
