import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax import lax

from sciml.train.precision import dot_general, mixed_product


def random(seed: int, *shape: int) -> jax.Array:
    return jax.random.normal(jax.random.key(seed), shape)


def error(found, exact) -> float:
    return float(np.abs(np.asarray(found, np.float64) - exact).max() / np.abs(exact).max())


def test_float32_is_the_plain_product():
    assert dot_general("float32") is lax.dot_general


@pytest.mark.parametrize("shape", [(100, 64, 48), (1, 7, 3), (33, 1000, 2)])
def test_mixed_product_and_gradients_against_float64(shape):
    rows, channels, units = shape
    x, w, g = random(0, rows, channels), random(1, channels, units), random(2, rows, units)
    y, pull = jax.vjp(mixed_product, x, w)
    dx, dw = pull(g)
    x64, w64, g64 = (np.asarray(a, np.float64) for a in (x, w, g))
    assert y.dtype == dx.dtype == dw.dtype == jnp.float32
    for found, exact in [(y, x64 @ w64), (dx, g64 @ w64.T), (dw, x64.T @ g64)]:
        assert error(found, exact) < 2**-7


def test_mixed_product_sums_in_float32():
    ones = jnp.ones((1, 4096))
    assert mixed_product(ones, ones.T) == 4096  # sums in bfloat16 would stop at 256


def test_a_layer_takes_the_mixed_product():
    plain = nnx.Linear(16, 8, rngs=nnx.Rngs(0))
    mixed = nnx.Linear(16, 8, rngs=nnx.Rngs(0), dot_general=dot_general("bfloat16"))
    for x in (random(0, 5, 16), random(1, 16), random(2, 3, 5, 16)):
        assert error(mixed(x), np.asarray(plain(x), np.float64)) < 2**-7


def test_the_mixed_product_batches():
    x, w = random(0, 4, 5, 16), random(1, 16, 8)
    each = jax.vmap(mixed_product, (0, None))(x, w)
    np.testing.assert_allclose(each[2], mixed_product(x[2], w), rtol=1e-6)


def test_other_products_are_refused():
    with pytest.raises(ValueError, match="precision is 'float16'"):
        dot_general("float16")
    x, w = random(0, 3, 4), random(1, 3, 4)
    with pytest.raises(ValueError, match="contracts the last axis"):
        dot_general("bfloat16")(x, w, (((0,), (0,)), ((), ())))
    with pytest.raises(ValueError, match="takes none"):
        dot_general("bfloat16")(x, w.T, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int8)
