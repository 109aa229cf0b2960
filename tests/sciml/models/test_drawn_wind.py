"""Nets that draw wind: their scores by independent formulas, and the noise they start from."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from sciml.diagnose.wind.ensemble import crps
from sciml.models import Density
from sciml.models.wind.density import normal_crps
from sciml.models.wind.drawing import cell_noise
from sciml.models.wind.generative import OFFSETS, aspects, fair_score, increment, sides
from sciml.models.wind.refinement import without_means
from sciml.wind import block_mean

KEY = jax.random.key(0)
pytestmark = pytest.mark.usefixtures("quick_compilation")


@pytest.mark.parametrize(("mean", "deviation", "truth"), [(0.0, 1.0, 0.3), (2.0, 0.1, 1.7)])
def test_the_score_of_a_normal_distribution_is_its_integral(mean, deviation, truth):
    def gap(x):
        return (norm.cdf(x, mean, deviation) - (x >= truth)) ** 2

    expected = sum(quad(gap, a, b)[0] for a, b in ((-5, truth), (truth, 5)))
    found = normal_crps(*map(jnp.asarray, (mean, deviation, truth)))
    assert float(found) == pytest.approx(expected, rel=1e-4)


def test_the_fair_score_of_a_speed_is_the_fair_crps():
    one, other, truth = np.random.default_rng(0).normal(size=(3, 2, 1, 8, 8)).astype(np.float32)
    expected = crps(np.stack([one, other]), truth, fair=True)
    assert float(fair_score(*map(jnp.asarray, (one, other, truth)))) == pytest.approx(expected)


def test_the_fair_score_of_two_components_uses_the_length_of_the_vector():
    one, other, truth = np.random.default_rng(0).normal(size=(3, 2, 2, 4, 4)).astype(np.float32)

    def length(v):
        return np.hypot(v[:, 0], v[:, 1]).mean()

    expected = (length(one - truth) + length(other - truth) - length(one - other)) / 2
    found = fair_score(*map(jnp.asarray, (one, other, truth)))
    assert float(found) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("offset", OFFSETS)
def test_increments_are_differences_of_points_apart(offset):
    """On the plane 10 y + x each is the same everywhere; the number of points is what is left."""
    field = jnp.add.outer(10.0 * jnp.arange(5), jnp.arange(6.0))
    down, right = offset
    found = increment(field, down, right)
    assert found.shape == (5 - down, 6 - abs(right))
    np.testing.assert_array_equal(found, 10 * down + right)


def test_the_patterns_of_a_cell_are_scored_apart():
    """Neither of the larger patterns hides the diagonal one, which all increments see with one."""
    along_x, along_y, diagonal = jnp.array(
        [[[-1, 1], [-1, 1]], [[-1, -1], [1, 1]], [[-1, 1], [1, -1]]]
    ) / 2  # fmt: skip
    twists = [float(aspects(pattern)[-1].squeeze()) for pattern in (along_x, along_y, diagonal)]
    assert twists == [0, 0, -2]


def test_scores_are_taken_at_each_scale_between_the_grids():
    assert [sides(factor) for factor in (2, 3, 6, 8)] == [[1], [1], [1, 2], [1, 2, 4]]


def test_noise_is_white_and_belongs_to_its_cell():
    whole = cell_noise(KEY, (2, 20, 30), 3)
    np.testing.assert_array_equal(
        cell_noise(KEY, (2, 4, 5), 3, corner=(7, 11)), whole[:, 21:33, 33:48]
    )
    assert float(whole.mean()) == pytest.approx(0, abs=4 / whole.size**0.5)
    assert float(whole.var()) == pytest.approx(1, abs=4 * (2 / whole.size) ** 0.5)
    for axis in (-2, -1):
        neighbours = float((whole * jnp.roll(whole, 1, axis)).mean())
        assert neighbours == pytest.approx(0, abs=4 / whole.size**0.5)


@pytest.mark.slow
def test_draws_of_a_density_have_the_mean_and_the_deviation_that_it_states(refining):
    config = Density(3, channels=4, blocks=1)
    coarse = jax.random.normal(KEY, (1, 1, 2, 2))
    net = refining(config)
    mean, scale = net.parameters(coarse)
    deviation = net.deviation(scale)
    draws = net.sample(coarse, KEY, 4000)
    assert float(scale.std()) > 0.05
    np.testing.assert_allclose(draws.std(axis=0) / deviation, 1, atol=0.06)
    assert jnp.abs((draws.mean(axis=0) - mean) / deviation).max() < 4.5 / 4000**0.5


def test_what_a_coarse_field_leaves_free_has_no_means():
    field = jax.random.normal(KEY, (2, 6, 9))
    free = without_means(field, 3)
    np.testing.assert_allclose(block_mean(free, 3), 0, atol=1e-6)
    np.testing.assert_allclose(without_means(free, 3), free, atol=1e-6)
