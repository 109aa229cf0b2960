"""Nets that draw wind learn a distribution that is known exactly.

The problem has a linear mean and normal noise in each cell of 2 × 2 points. In the orthonormal
basis of a cell without its mean, along x, along y, and diagonal,

    along x = 1.2 c + 0.8 e₁,  along y = 0.2 e₂,  diagonal = 0.2 e₃

with e ~ N(0, 1) and the coarse wind c.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from sciml.models import Density, FlowRefinement, Generative
from sciml.train import Recipe, train
from sciml.wind import block_mean, conservative_bicubic

pytestmark = pytest.mark.validation

KEY = jax.random.key(0)
BASIS = np.array([[[-1, 1], [-1, 1]], [[-1, -1], [1, 1]], [[-1, 1], [1, -1]]]) / 2
NOISE = np.array([0.8, 0.2, 0.2])
SLOPE = np.array([1.2, 0.0, 0.0])


def coefficients(fine, coarse):
    """What is added to interpolation, in the basis of each cell: (..., 1, basis, y_lo, x_lo)."""
    added = fine - conservative_bicubic(coarse, 2)
    cells = added.reshape(*added.shape[:-2], added.shape[-2] // 2, 2, added.shape[-1] // 2, 2)
    return np.einsum("...iyjx,byx->...bij", np.asarray(cells), BASIS)


def toy(seed, samples, n=8):
    """Coarse and fine fields of the toy problem."""
    rng = np.random.default_rng(seed)
    coarse = rng.normal(size=(samples, 1, n, n)).astype(np.float32)
    wanted = SLOPE[:, None, None] * coarse + NOISE[:, None, None] * rng.normal(
        size=(samples, 3, n, n)
    )
    cells = np.einsum("sbij,byx->siyjx", wanted, BASIS).reshape(samples, 1, 2 * n, 2 * n)
    fine = np.asarray(conservative_bicubic(coarse, 2)) + cells.astype(np.float32)
    return jnp.asarray(coarse), jnp.asarray(fine)


@pytest.mark.parametrize(
    "config",
    [
        Generative(2, channels=16, blocks=1),
        FlowRefinement(2, channels=16, blocks=1, spread=0.5),
        Density(2, channels=8, blocks=1),
    ],
    ids=lambda config: type(config).__name__,
)
def test_the_distribution_of_the_toy_problem_is_learned(config):
    """Mean and spread along each basis field; a density knows points, not what they share."""
    coarse, fine = toy(0, 2048)
    graph, params = nnx.split(config.build(nnx.Rngs(0)), nnx.Param)

    def loss(params, batch, key):
        return nnx.merge(graph, params).loss(batch[0], batch[1], None, key)

    found = train(
        loss, params, (coarse, fine), recipe=Recipe(batch=64, learning_rate=5e-3), epochs=32
    )
    net = nnx.merge(graph, found.params)
    coarse, _ = toy(1, 64)
    estimate, draws = nnx.jit(lambda net: (net(coarse), net.sample(coarse, KEY, 64)))(net)
    np.testing.assert_allclose(block_mean(draws, 2), jnp.stack([coarse] * 64), atol=1e-5)
    error = coefficients(estimate, coarse) - SLOPE[:, None, None] * np.asarray(coarse)[:, :, None]
    assert np.sqrt((error**2).mean()) < 0.1
    spread = np.asarray(draws - estimate).std()
    if isinstance(config, Density):  # at each point a quarter of the sum over the basis
        np.testing.assert_allclose(spread, np.sqrt((NOISE**2).sum() / 4), rtol=0.1)
        return
    drawn = coefficients(draws, coarse) - coefficients(estimate, coarse)
    np.testing.assert_allclose(drawn.std(axis=(0, 1, 2, 4, 5)), NOISE, rtol=0.15)
