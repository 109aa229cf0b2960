"""Student's t about weighted points: SciPy's density, moments, and what is far too few points."""

import jax
import numpy as np
import pytest
from numpyro import distributions as dist
from scipy import stats

from sciml.ode.coordinates import Coordinates
from sciml.reference.student import FREEDOM, Student, shares_of, tempered

WHOLE_LINE = Coordinates.of({"a": dist.Normal(), "b": dist.Normal()})
MEAN, COVARIANCE = np.array([1.0, -2.0]), np.array([[2.0, 0.6], [0.6, 0.5]])


@pytest.fixture
def cloud():
    """Points of a normal distribution, the same for each of two samples but for their place."""
    points = np.random.default_rng(0).multivariate_normal(MEAN, COVARIANCE, 40_000)
    return np.stack([points, points + 10], axis=1)


def test_moments_and_density(cloud):
    student = Student.about(WHOLE_LINE, cloud, np.zeros(cloud.shape[:2]))
    np.testing.assert_allclose(student.centre, [MEAN, MEAN + 10], atol=0.05)
    np.testing.assert_allclose(student.factor @ student.factor.mT, [COVARIANCE] * 2, atol=0.05)
    for i in range(2):
        scale = student.factor[i] @ student.factor[i].T
        known = stats.multivariate_t(student.centre[i], scale, FREEDOM).logpdf(cloud[:50, i])
        np.testing.assert_allclose(student.log_prob(cloud[:50])[:, i], known, rtol=1e-10)
    drawn = student.draw(np.random.default_rng(1), 40_000)
    np.testing.assert_allclose(drawn.mean(axis=0), student.centre, atol=0.05)
    spread = np.cov(drawn[:, 0].T) * (FREEDOM - 2) / FREEDOM
    np.testing.assert_allclose(spread, COVARIANCE, rtol=0.15)


def test_the_density_is_one_of_parameters_within_their_bounds():
    """It integrates to one over the support, and there is none on its border."""
    bounded = Coordinates.of({"a": dist.Uniform(1.0, 3.0)})
    rng = np.random.default_rng(0)
    student = Student.about(bounded, rng.uniform(1.2, 2.0, (500, 1, 1)), np.zeros((500, 1)))
    drawn = student.draw(rng, 1000)
    assert ((drawn >= 1) & (drawn <= 3)).all()
    grid = np.linspace(1, 3, 20_001)[:, None, None]
    density = np.exp(student.log_prob(grid))[:, 0]
    assert density.sum() * 1e-4 == pytest.approx(1, abs=1e-3)
    assert density[0] == density[-1] == 0
    with jax.enable_x64(True):  # whatever the precision of the caller
        np.testing.assert_array_equal(np.exp(student.log_prob(grid))[:, 0], density)


def test_weights_move_it_and_too_few_are_tempered(cloud):
    wide = stats.multivariate_normal(MEAN, COVARIANCE)
    shifted = stats.multivariate_normal(MEAN + 0.5, COVARIANCE / 2)
    log_weight = np.stack([(shifted.logpdf(cloud[:, 0]) - wide.logpdf(cloud[:, 0]))] * 2, axis=1)
    student = Student.about(WHOLE_LINE, cloud, log_weight)
    np.testing.assert_allclose(student.centre[0], MEAN + 0.5, atol=0.05)
    one = np.full((1000, 2), -1e4)
    one[7] = 0
    share = shares_of(one, 40.0)
    np.testing.assert_allclose(1 / np.square(share).sum(axis=0), 40, rtol=1e-3)
    wide = Student.about(WHOLE_LINE, cloud[:1000], one)  # the one point alone would have no spread
    spread = np.linalg.eigvalsh(wide.factor[0] @ wide.factor[0].T)
    assert (spread > 0.5 * np.linalg.eigvalsh(COVARIANCE)).all()


@pytest.mark.parametrize("count", [1, 64, 65, 1000])
def test_shares_do_not_know_what_they_are_filled_up_with(count):
    log_weight = np.random.default_rng(count).normal(scale=9, size=(count, 2))
    least = min(20.0, count / 2)
    with jax.enable_x64(True):
        plain = tempered(log_weight, least)
    share = shares_of(log_weight, least)
    assert share.shape == (count, 2)
    np.testing.assert_allclose(share, plain, rtol=1e-9)
    np.testing.assert_allclose(share.sum(axis=0), 1)


def test_points_without_weight_do_not_count():
    log_weight = np.zeros((100, 2))
    log_weight[50:, 0] = -np.inf
    log_weight[:, 1] = -np.inf  # none has any: all count the same
    share = shares_of(log_weight, 20.0)
    np.testing.assert_allclose(share[:, 0], np.repeat([0.02, 0.0], 50))
    np.testing.assert_allclose(share[:, 1], 0.01)
