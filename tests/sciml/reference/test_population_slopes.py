"""The derivatives of a population's density, which are written by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciml.reference.several.hierarchy import log_integrals, log_shares


@pytest.mark.parametrize("size", [1, 3])
def test_slopes_by_hand_are_those_that_jax_derives(size):
    """Also where individuals do not count, and where points have no weight."""
    rng = np.random.default_rng(size)
    points = rng.normal(size=(size, 5, 20))
    log_weight = -rng.exponential(size=(5, 20))
    log_weight[0, 3:] = -np.inf
    real = np.array([1.0, 1.0, 1.0, 0.0, 0.0])
    mean, inverse = rng.normal(size=size), np.tril(rng.normal(size=(size, size)))
    flat = points.reshape(size, -1)
    products = np.concatenate([flat, (flat[:, None] * flat).reshape(size**2, -1)])

    def derived(mean, inverse):
        logs = log_shares(points, log_weight, mean, inverse)
        return (real * jax.nn.logsumexp(logs, axis=1)).sum()

    with jax.enable_x64(True):
        mean, inverse = jnp.asarray(mean), jnp.asarray(inverse)
        wanted = jax.value_and_grad(derived, (0, 1))(mean, inverse)
        found = jax.value_and_grad(log_integrals, (0, 1))(
            mean, inverse, points, products, log_weight, real
        )
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)
