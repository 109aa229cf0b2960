import numpy as np
import pytest
from skimage.metrics import normalized_root_mse

from sciml.diagnose.wind.errors import bias, field_scores, mae, rmse, skill

TRUTH = np.random.default_rng(0).gamma(2, 4, (3, 8, 9)).astype(np.float32)
GUESS = TRUTH + np.random.default_rng(1).normal(0.5, 1, TRUTH.shape).astype(np.float32)


def test_scores_of_a_shift():
    assert (rmse(TRUTH + 2, TRUTH), mae(TRUTH + 2, TRUTH)) == pytest.approx((2, 2))
    assert bias(TRUTH - 2, TRUTH) == pytest.approx(-2)
    assert skill(TRUTH + 1, TRUTH, TRUTH + 2) == pytest.approx(0.75)
    assert np.isnan(skill(GUESS, TRUTH, TRUTH))


def test_rmse_agrees_with_scikit_image():
    spread = float(TRUTH.max() - TRUTH.min())
    expected = normalized_root_mse(TRUTH, GUESS, normalization="min-max") * spread
    assert rmse(GUESS, TRUTH) == pytest.approx(expected, rel=1e-5)


def test_a_baseline_has_no_skill_over_itself():
    scores = field_scores({"a": GUESS, "b": TRUTH}, TRUTH, baseline="a")
    np.testing.assert_allclose(scores.skill, [0, 1])
    assert float(scores["rmse"].sel(scheme="b")) == 0


def test_wrong_input_is_refused():
    with pytest.raises(ValueError, match="baseline is 'x'; name one of a"):
        field_scores({"a": GUESS}, TRUTH, baseline="x")
    with pytest.raises(ValueError, match=r"shape \(2, 8, 9\) and truth \(3, 8, 9\)"):
        rmse(GUESS[:2], TRUTH)
