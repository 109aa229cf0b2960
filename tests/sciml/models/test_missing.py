import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st

from sciml.models import Attention, Convolutional, Dense, Gaussian
from sciml.models.inverse import attention
from sciml.models.shared.presence import flat, seen, series

pytestmark = pytest.mark.usefixtures("quick_compilation")

NETS = [
    Dense(8, 2, missing=True),
    Convolutional(2, 8, missing=True),
    Attention(8, 1, 2, 6, missing=True),
]


@pytest.mark.parametrize("config", NETS, ids=lambda c: type(c).__name__)
@pytest.mark.parametrize("inputs", [60, (60, 2)])
def test_nan_is_taken_and_its_place_counts(made, config, inputs):
    net = made(config, inputs, 2)
    shape = (4, 60) if inputs == 60 else (4, 60, 2)
    x = jax.random.normal(jax.random.key(1), shape)
    holes = jax.random.bernoulli(jax.random.key(2), 0.4, shape)
    run = jax.jit(lambda x: net(x))
    punched = run(jnp.where(holes, jnp.nan, x))
    assert bool(jnp.isfinite(punched).all())
    assert not np.allclose(punched, run(jnp.where(holes, 0.0, x)))


@pytest.mark.parametrize("config", NETS, ids=lambda c: type(c).__name__)
def test_gradients_through_nan_are_finite(made, config):
    net = made(Gaussian(width=8, embedding=config), 60, 2)
    x = jnp.full((3, 60), jnp.nan).at[:, ::2].set(jax.random.normal(jax.random.key(0), (3, 30)))
    graph, params = nnx.split(net)

    def loss(params, x):
        return nnx.merge(graph, params).loss(jnp.ones((3, 2)), x).mean()

    weights, values = jax.jit(jax.grad(loss, argnums=(0, 1)))(params, x)
    assert all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(weights))
    assert not values[:, 1::2].any()
    assert values[:, ::2].any()


def test_an_empty_patch_takes_part_in_nothing(made, monkeypatch):
    """Other codes for the places of empty patches change nothing; for a seen one they do."""
    net = made(Attention(8, 2, 2, 6, missing=True), 60, 4, embed=True)
    x = jax.random.normal(jax.random.key(1), (2, 60)).at[:, 30:].set(jnp.nan)
    code = attention.places

    def with_codes_from(first):
        def places(tokens, width):
            late = np.arange(tokens)[:, None] >= first
            return np.where(late, 9 * code(tokens, width)[:, ::-1], code(tokens, width))

        monkeypatch.setattr(attention, "places", places)
        return jax.jit(lambda x: net(x))(x)

    np.testing.assert_array_equal(with_codes_from(3), with_codes_from(6))
    assert not np.allclose(with_codes_from(2), with_codes_from(6))


@pytest.mark.slow
def test_attention_knows_the_order_unless_told(made):
    x = jax.random.normal(jax.random.key(1), (2, 10, 2))
    turned = x[:, ::-1]
    net = made(Attention(8, 1, 2, 10), (10, 2), 4, embed=True)
    assert not np.allclose(net(x), net(turned), atol=1e-4)
    net = made(Attention(8, 1, 2, 10, ordered=False), (10, 2), 4, embed=True)
    np.testing.assert_allclose(net(x), net(turned), atol=1e-5)


@pytest.mark.parametrize(("time", "patch"), [(1000, 20), (1001, 21), (10, 1)])
def test_long_series_stay_short_for_attention(time, patch):
    net = nnx.eval_shape(lambda: Attention().build((time, 2), 3, rngs=nnx.Rngs(0)))
    assert net.patch == patch
    x = jax.ShapeDtypeStruct((4, time, 2), jnp.float32)
    assert nnx.eval_shape(lambda net, x: net(x), net, x).shape == (4, 3)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.integers(1, 5), st.integers(1, 3), st.integers(0, 100))
def test_presence(time, channels, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2, time, channels)).astype(np.float32)
    x[rng.uniform(size=x.shape) < 0.5] = np.nan
    values, present = seen(jnp.asarray(x))
    np.testing.assert_array_equal(present, np.isfinite(x))
    np.testing.assert_array_equal(values, np.nan_to_num(x))
    assert flat(jnp.asarray(x), missing=True).shape == (2, 2 * time * channels)
    found = series(jnp.asarray(x), missing=True)
    np.testing.assert_array_equal(found[..., channels:], np.isfinite(x))


@pytest.mark.parametrize("config", [Dense(8, 2), Convolutional(2, 8), Attention(8, 1, 2, 6)])
def test_an_embedding_ends_linear(made, config):
    x = 100 * jax.random.normal(jax.random.key(0), (4, 60, 2))
    net, linear = made(config, (60, 2), 5), made(config, (60, 2), 5, embed=True)
    np.testing.assert_allclose(net(x), jax.nn.sigmoid(linear(x)), rtol=1e-5)
