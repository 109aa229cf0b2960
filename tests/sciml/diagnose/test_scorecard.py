"""The table of all scores."""

import numpy as np
import pytest

from sciml.diagnose.wind.errors import skill
from sciml.diagnose.wind.scorecard import scorecard, squares, sureness

RNG = np.random.default_rng(0)
TRUTH = RNG.normal(8, 2, (6, 32, 48))
GUESSES = {"near": TRUTH + 0.1 * RNG.normal(size=TRUTH.shape), "flat": TRUTH.mean() + 0 * TRUTH}
OPTIONS = {"baseline": "flat", "factor": 4, "spacing_m": 1000.0}


def test_each_score_is_in_its_column():
    table = scorecard(GUESSES, TRUTH, block=2, **OPTIONS).set_index("scheme")
    near, flat = table.loc["near"], table.loc["flat"]
    assert near.rmse_m_s == pytest.approx(0.1, rel=0.05)
    assert near.skill == pytest.approx(1 - (near.rmse_m_s / flat.rmse_m_s) ** 2)
    assert near.skill_low <= near.skill <= near.skill_high
    assert flat.skill == flat.subgrid_variance_ratio == 0
    assert near.fine_energy_ratio == pytest.approx(1, abs=0.02)
    assert near.ssim > 0.99 > flat.ssim
    assert flat.effective_wavelength_m == np.inf


def test_gaps_count_nowhere_and_leave_whole_field_scores_out():
    truth = TRUTH.copy()
    truth[:, :8, :8] = np.nan
    table = scorecard(GUESSES, truth, **OPTIONS).set_index("scheme")
    there = np.isfinite(truth)
    expected = np.sqrt(np.mean((GUESSES["near"] - TRUTH)[there] ** 2))
    assert table.loc["near"].rmse_m_s == pytest.approx(expected)
    assert "ssim" not in table.columns


def test_squares_cover_a_snapshot():
    field = np.arange(130 * 64.0).reshape(1, 130, 64)
    cut = squares(field)
    assert cut.shape == (2, 64, 64)
    np.testing.assert_array_equal(cut[1], field[0, 64:128])


@pytest.mark.usefixtures("untyped")
def test_what_cannot_be_scored_is_refused():
    with pytest.raises(ValueError, match="baseline is 'none'; name one of near, flat"):
        scorecard(GUESSES, TRUTH, **OPTIONS | {"baseline": "none"})
    with pytest.raises(ValueError, match=r"an estimate has shape \(6, 32, 40\)"):
        scorecard({"flat": TRUTH[..., :40]}, TRUTH, **OPTIONS)
    with pytest.raises(ValueError, match="no point is in the truth"):
        scorecard(GUESSES, np.nan * TRUTH, **OPTIONS)


@pytest.mark.parametrize(("y", "x"), [(130, 100), (65, 64), (64, 129)])
def test_the_interval_of_a_snapshot_counts_every_point(y, x):
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(1, y, x))
    estimate, base = (truth + s * rng.normal(size=truth.shape) for s in (0.5, 1.0))
    estimate[:, :, 64:] += 3  # behind the last whole square
    estimate[:, 64:] += 3
    found = sureness(estimate, truth, base, None)
    assert found.skill == pytest.approx(skill(estimate, truth, base))
    assert found.low <= found.skill <= found.high
    alike = sureness(truth + 0.5, truth, truth + 1.0, None)
    assert alike.low == pytest.approx(0.75)
    assert alike.high == pytest.approx(0.75)
