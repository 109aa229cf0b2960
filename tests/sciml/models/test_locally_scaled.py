"""Nets that see wind in units of its local variation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from sciml.models import Density, LocallyScaled, SuperResolution
from sciml.wind import block_mean, conservative_bicubic

pytestmark = pytest.mark.usefixtures("quick_compilation")
COARSE = jax.random.normal(jax.random.key(0), (2, 1, 12, 14))


def net_of(config):
    """A net whose weights are nowhere zero."""
    structure, params = nnx.split(config.build(nnx.Rngs(0)), nnx.Param)
    keys = iter(jax.random.split(jax.random.key(1), len(jax.tree.leaves(params))))
    noisy = jax.tree.map(lambda p: p + 0.1 * jax.random.normal(next(keys), p.shape), params)
    return nnx.merge(structure, noisy)


def test_it_starts_as_interpolation_and_keeps_block_means():
    config = LocallyScaled(SuperResolution(2, 4, 1), 3)
    start = config.build(nnx.Rngs(0))(COARSE)
    np.testing.assert_allclose(start, conservative_bicubic(COARSE, 2), atol=1e-5)
    np.testing.assert_allclose(block_mean(net_of(config)(COARSE), 2), COARSE, atol=1e-4)


def test_stronger_wind_is_the_same_wind():
    net = net_of(LocallyScaled(SuperResolution(2, 4, 1), 5))
    strong = net(30 * COARSE + 7)
    np.testing.assert_allclose(strong, 30 * net(COARSE) + 7, rtol=2e-2, atol=0.2)
    plain = net_of(SuperResolution(2, 4, 1))
    assert jnp.abs(plain(30 * COARSE + 7) - 30 * plain(COARSE) - 7).max() > 1


def test_a_point_sees_no_farther_than_its_reach():
    config = LocallyScaled(SuperResolution(2, 4, 1), 5)
    net = net_of(config)
    field = jax.random.normal(jax.random.key(2), (1, 1, 24, 24))
    changed = net(field.at[..., 12, 12].add(1.0)) != net(field)
    rows = np.flatnonzero(np.asarray(changed[0, 0].any(axis=1))) // 2
    assert config.reach == 4 + 2
    assert 12 - rows.min() <= config.reach
    assert rows.max() - 12 <= config.reach


@pytest.mark.slow
def test_draws_keep_block_means_and_the_loss_is_finite():
    net = net_of(LocallyScaled(Density(2, 4, 1), 3))
    fine = jax.random.normal(jax.random.key(3), (2, 1, 24, 28))
    assert np.isfinite(net.loss(block_mean(fine, 2), fine))
    draws = net.sample(COARSE, jax.random.key(4), 2)
    np.testing.assert_allclose(block_mean(draws[1], 2), COARSE, atol=1e-4)
    assert jnp.abs(draws[0] - draws[1]).max() > 0


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match=r"LocallyScaled\.window is 4; it must be odd"):
        LocallyScaled(SuperResolution(), 4)
    with pytest.raises(ValueError, match="scale once"):
        LocallyScaled(LocallyScaled(SuperResolution()))
