import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from sciml.models import Convolutional, Dense

pytestmark = pytest.mark.usefixtures("quick_compilation")


@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        (Dense(width=32), 39_490),
        (Dense(width=128), 243_970),
        (Dense(width=512), 2_352_130),
        (Dense(width=2048), 31_428_610),
        (Convolutional(), 33_874),
    ],
)
def test_parameter_counts_are_the_published_ones(model, parameters):
    net = nnx.eval_shape(lambda: model.build(1000, 2, rngs=nnx.Rngs(0)))
    assert sum(leaf.size for leaf in jax.tree.leaves(nnx.state(net))) == parameters


def test_dense_is_its_formula(made):
    net = made(Dense(width=5, depth=2), 3, 2)
    x = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    h = x
    for layer in list(net.layers)[:-1]:
        z = h @ np.asarray(layer.kernel[...]) + np.asarray(layer.bias[...])
        h = z / (1 + np.exp(-z))
    z = h @ np.asarray(net.layers[-1].kernel[...]) + np.asarray(net.layers[-1].bias[...])
    np.testing.assert_allclose(net(jnp.asarray(x)), 1 / (1 + np.exp(-z)), rtol=1e-5)


def test_convolutional_is_its_formula(made, call):
    net = made(Convolutional(filters=2, units=4), 60, 2)
    x = np.random.default_rng(0).normal(size=(3, 60)).astype(np.float32)
    h = x[..., None]
    for stage, layer in enumerate(net.convolutions):
        kernel = np.asarray(layer.kernel[...])
        length = (h.shape[1] - 3) // 2 + 1
        windows = np.stack([h[:, 2 * i : 2 * i + 3] for i in range(length)], axis=1)
        z = np.einsum("bikc,kcd->bid", windows, kernel) + np.asarray(layer.bias[...])
        h = z / (1 + np.exp(-z))
        if stage < 2:
            half = h.shape[1] // 2
            h = h[:, : 2 * half].reshape(3, half, 2, -1).mean(axis=2)
    flat = jnp.asarray(h.reshape(3, -1))
    np.testing.assert_allclose(call(net, "__call__", jnp.asarray(x)), net.head(flat), rtol=1e-5)


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    "make",
    [
        lambda: Dense(width=-1),
        lambda: Dense(width=3.5),
        lambda: Dense(width=True),
        lambda: Dense(depth=0),
        lambda: Convolutional(filters=0),
        lambda: Convolutional(units=-2),
    ],
)
def test_bad_sizes_are_refused(make):
    with pytest.raises(ValueError, match="whole number"):
        make()


def test_too_short_a_series_is_refused():
    with pytest.raises(ValueError, match="at least 53"):
        Convolutional().build(52, 2, rngs=nnx.Rngs(0))
    nnx.eval_shape(lambda: Convolutional().build(53, 2, rngs=nnx.Rngs(0)))
