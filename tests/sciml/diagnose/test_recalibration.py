"""What recalibration mends, what it leaves, and what it refuses."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from sciml.diagnose import (
    calibration,
    informed_references,
    recalibrate,
    recalibration,
    sbc,
    tarp,
)

EDGE = 1e-3  # a p-value below is a catch
WRONG = {
    "too narrow": lambda model: model.scaled(0.6),
    "too wide": lambda model: model.scaled(1.6),
    "biased": lambda model: model.shifted(0.5),
}


def least(posterior, truth) -> float:
    return float(calibration(posterior, truth).checks.adjusted.min())


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_one_error_for_all_observations_is_undone(conjugate, wrong):
    held, fresh = conjugate(8000, 100, 1), conjugate(1000, 100, 2)
    before = wrong(fresh)
    after = recalibrate(before, recalibration(wrong(held), held.truth))
    assert least(before, fresh.truth) < EDGE
    assert least(after, fresh.truth) > 0.05
    spread = fresh.exact.std(axis=0).mean(axis=0)
    off = (after.mean(axis=0) - fresh.exact.mean(axis=0)) / spread
    np.testing.assert_allclose(off.mean(axis=0), 0, atol=0.03)
    np.testing.assert_allclose(after.std(axis=0).mean(axis=0), spread, rtol=0.04)


def test_a_calibrated_posterior_stays(conjugate):
    held, fresh = conjugate(8000, 100, 1), conjugate(200, 100, 2)
    after = recalibrate(fresh.exact, recalibration(held.exact, held.truth))
    spread = fresh.exact.std(axis=0).mean(axis=0)
    assert np.abs((after - fresh.exact) / spread).mean() < 0.03


def test_errors_that_cancel_over_observations_stay(conjugate):
    """Half of the posteriors too wide, half too narrow: calibrated on average is not right."""
    held, fresh = conjugate(8000, 100, 1), conjugate(2000, 100, 2)
    factor = lambda m: np.where(m.observation[:, :1] > 0, 1.5, 0.6)  # noqa: E731
    wrong = lambda m: m.mean + factor(m) * (m.exact - m.mean)  # noqa: E731
    after = recalibrate(wrong(fresh), recalibration(wrong(held), held.truth))
    assert float(sbc(after, fresh.truth).ecdf_p.min()) > EDGE
    half = fresh.observation[:, 0] > 0
    for part in (half, ~half):
        assert float(sbc(after[:, part], fresh.truth[part]).ecdf_p.max()) < EDGE


@pytest.mark.parametrize("name", ["independent", "prior"])
def test_lost_dependence_and_ignored_data_stay(conjugate, name):
    held, fresh = conjugate(5000, 100, 1), conjugate(1000, 100, 2)
    rng = np.random.default_rng(5)
    made = [m.independent() if name == "independent" else m.prior(rng) for m in (held, fresh)]
    after = recalibrate(made[1], recalibration(made[0], held.truth))
    assert float(sbc(after, fresh.truth).ecdf_p.min()) > EDGE
    references = informed_references(fresh.observation, fresh.truth)
    assert float(tarp(after, fresh.truth, references=references).p_value) < EDGE


@settings(deadline=None, max_examples=50)
@given(
    seed=st.integers(0, 2**16),
    samples=st.integers(20, 200),
    draws=st.integers(3, 60),
    scale=st.floats(0.05, 20.0),
    shift=st.floats(-5.0, 5.0),
)
def test_its_own_pairs_have_every_rank_equally_often(seed, samples, draws, scale, shift):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(samples, 1))
    posterior = shift + scale * rng.normal(size=(draws, samples, 1))
    moved = recalibrate(posterior, recalibration(posterior, truth))
    share = (truth <= np.sort(moved, axis=0)).mean(axis=(1, 2))
    expected = np.arange(1, draws + 1) / (draws + 1)
    np.testing.assert_allclose(share, expected, atol=2.5 / samples)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**16), draws=st.integers(3, 60), more=st.integers(0, 40))
def test_order_range_and_kind_are_kept(seed, draws, more):
    rng = np.random.default_rng(seed)
    truth = rng.uniform(size=(50, 2))
    known = recalibration(truth + rng.normal(size=(draws, 50, 2)), truth)
    new = rng.normal(size=(draws + more, 7, 2))
    moved = recalibrate(new, known)
    inner = (moved > truth.min(axis=0)) & (moved < truth.max(axis=0))
    for column in np.ndindex(7, 2):
        keep = inner[:, *column]
        ranked = np.argsort(new[:, *column][keep])
        assert (np.diff(moved[:, *column][keep][ranked]) >= 0).all()
    assert ((moved >= truth.min(axis=0)) & (moved <= truth.max(axis=0))).all()
    labelled = xr.Dataset({"posterior": (("draw", "sample", "parameter"), new)})
    same = recalibrate(labelled, known)
    assert isinstance(same, xr.Dataset)
    np.testing.assert_array_equal(same.posterior.values, moved)
    turned = recalibrate(labelled.posterior.transpose("sample", "draw", "parameter"), known)
    np.testing.assert_array_equal(turned.transpose("draw", "sample", "parameter").values, moved)


def test_equal_draws_and_ends_of_the_range(conjugate):
    """Draws that occur twice, as weighed ones do, have a place; a function is read in chunks."""
    held, fresh = conjugate(4000, 100, 1), conjugate(1000, 100, 2)
    twice = lambda m: np.repeat(m.scaled(0.6)[::2], 2, axis=0)  # noqa: E731
    known = recalibration(lambda i: twice(held)[:, i], held.truth, memory_bytes=2**20)
    xr.testing.assert_identical(known, recalibration(twice(held), held.truth))
    after = recalibrate(twice(fresh), known)
    assert float(sbc(after, fresh.truth).ecdf_p.min()) > EDGE


def test_what_does_not_fit_is_refused(conjugate):
    model = conjugate(50, 20)
    known = recalibration(model.exact, model.truth)
    with pytest.raises(ValueError, match=r"has 19 draws per sample; .* made from 20"):
        recalibrate(model.exact[:19], known)
    with pytest.raises(ValueError, match="it must be"):
        recalibrate(model.exact[..., :1], known)
    with pytest.raises(ValueError, match="not finite for 1 of 50"):
        recalibrate(np.where(np.arange(50)[:, None] == 3, np.nan, model.exact), known)
    with pytest.raises(ValueError, match="a point has no width to mend"):
        recalibration(np.zeros_like(model.exact), model.truth)
    named = xr.DataArray(
        model.exact, dims=("draw", "sample", "parameter"), coords={"parameter": ["a", "b"]}
    )
    with pytest.raises(ValueError, match=r"the parameters a, b; .* made for theta0, theta1"):
        recalibrate(named, known)
