import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from sciml.models import Attention, Convolutional, Dense, Ensemble, Gaussian
from sciml.models.inverse.ensemble import DenseEnsembleNet
from sciml.train.precision import dot_general

pytestmark = pytest.mark.usefixtures("quick_compilation")


def member_of(net, i, member=None):
    """Return one member as a net of its own."""
    if not isinstance(net, DenseEnsembleNet):
        graph, state = nnx.split(net.members)
        return nnx.merge(graph, jax.tree.map(lambda leaf: leaf[i], state))
    alone = member.build(60, 2, rngs=nnx.Rngs(0))
    kernels = [net.first[:, i], *(kernel[i] for kernel in net.kernels)]
    for layer, kernel, bias in zip(alone.layers, kernels, net.biases, strict=True):
        layer.kernel[...], layer.bias[...] = kernel, bias[i]
    return alone


X = jax.random.normal(jax.random.key(2), (6, 60))


@pytest.mark.parametrize(
    "member",
    [Dense(16, 3), Dense(8, 1, missing=True), Convolutional(2, 8), Attention(8, 1, 2, 6)],
    ids=lambda c: type(c).__name__,
)
def test_points_are_those_of_members_one_by_one(made, call, member):
    x = X.at[:, ::3].set(jnp.nan) if member.missing else X
    net = made(Ensemble(member, 3), 60, 2)
    together = call(net, "__call__", x)
    assert together.shape == (3, 6, 2)
    for i in range(3):
        alone = call(member_of(net, i, member), "__call__", x)
        np.testing.assert_allclose(alone, together[i], rtol=1e-5, atol=1e-6)


def test_members_start_apart_and_count_as_many(made, call):
    single = made(Dense(16, 2), 60, 2)
    net = Ensemble(Dense(16, 2), 3).build(60, 2, rngs=nnx.Rngs(0))
    sizes = [sum(leaf.size for leaf in jax.tree.leaves(nnx.state(n))) for n in (net, single)]
    assert sizes[0] == 3 * sizes[1]
    outputs = call(net, "__call__", X)
    assert not np.allclose(outputs[0], outputs[1])
    assert not np.allclose(outputs[1], outputs[2])


def test_gradients_are_those_of_members_one_by_one(made, slope):
    """The loss is the mean over members, so each gets a third of its own gradient."""
    member = Dense(16, 3)
    net = made(Ensemble(member, 3), 60, 2)
    loss = lambda net: jnp.square(net(X) - 0.3).mean()  # noqa: E731
    together = slope(net, loss)
    for i in range(3):
        alone = jax.tree.leaves(nnx.state(slope(member_of(net, i, member), loss)))
        stacked = jax.tree.leaves(nnx.state(member_of(together, i, member)))
        for a, b in zip(alone, stacked, strict=True):
            np.testing.assert_allclose(a / 3, b, rtol=1e-3, atol=1e-7)


def test_members_are_those_that_the_configuration_makes_alone(call):
    """The i-th starts from the i-th of the split keys."""
    member = Dense(16, 2)
    net = Ensemble(member, 3).build(60, 2, rngs=nnx.Rngs(0))
    keys = jax.random.split(nnx.Rngs(0).params(), 3)
    alone = member.build(60, 2, rngs=nnx.Rngs(params=keys[1]))
    np.testing.assert_allclose(alone(X), net(X)[1], rtol=1e-5)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_precision_reaches_every_product(call, precision):
    net = Ensemble(Dense(16, 2), 2).build(
        60, 2, rngs=nnx.Rngs(0), dot_general=dot_general(precision)
    )
    exact = Ensemble(Dense(16, 2), 2).build(60, 2, rngs=nnx.Rngs(0))
    tolerance = 1e-6 if precision == "float32" else 2e-2
    np.testing.assert_allclose(net(X), exact(X), atol=tolerance)
    assert np.array_equal(net(X), exact(X)) == (precision == "float32")


def test_a_mixture_is_the_mean_of_the_densities(made, call):
    net = made(Ensemble(Gaussian(width=8), 3), 60, 2)
    y = jnp.ones((6, 2))
    logs = np.stack([call(member_of(net, i), "log_prob", y, X) for i in range(3)])
    mixed = np.log(np.exp(logs).mean(axis=0))
    np.testing.assert_allclose(call(net, "log_prob", y, X), mixed, rtol=1e-5)
    np.testing.assert_allclose(call(net, "loss", y, X), -logs.mean(axis=0), rtol=1e-5)
    means = np.mean([call(member_of(net, i), "estimate", X) for i in range(3)], axis=0)
    np.testing.assert_allclose(call(net, "estimate", X), means, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("draws", [1, 7])
def test_draws_are_split_over_members(made, call, draws):
    net = made(Ensemble(Gaussian(width=8), 3), 60, 2, scale=0.1)
    net.members.whiten.straight.bias[...] = jnp.array([[0.0, 0.0], [99.0, 99.0], [198.0, 198.0]])
    found = np.asarray(call(net, "sample", jax.random.key(0), X, draws))
    assert found.shape == (draws, 6, 2)
    nearest = np.round(found[:, 0, 0] / 99).astype(int)
    np.testing.assert_array_equal(nearest, np.arange(draws) % 3)
