"""Zeros among activations: counted where they are, and only there."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import wse
from wse.models import from_graph
from wse.models.shapes.workload import Layer, Workload, dense
from wse.sparsity import activation_zeros


def net(activation):
    def loss(params, batch):
        x, y = batch
        for layer in params:
            x = activation(x) @ layer["w"]
        return jnp.mean((x - y) ** 2)

    return loss


PARAMS = [{"w": np.random.default_rng(i).normal(size=(6, 6)).astype("f4")} for i in range(3)]
BATCH = tuple(np.random.default_rng(i).normal(size=(50, 6)).astype("f4") for i in (7, 8))


def counted(activation):
    loss = net(activation)
    return activation_zeros(wse.trace(loss, PARAMS, BATCH), PARAMS, BATCH)


def test_rectifiers_make_zeros_and_swish_makes_none():
    found, x, shares = counted(jax.nn.relu), BATCH[0], []
    for layer in PARAMS:
        x = np.maximum(x, 0)
        shares.append((x == 0).mean())
        x = x @ layer["w"]
    assert found.layer.values.tolist() == ["0", "1", "2"]
    np.testing.assert_allclose(found.share, shares)
    assert (found["values"] == 300).all()
    np.testing.assert_array_equal(found.zeros, np.round(300 * np.array(shares)))
    assert float(counted(jax.nn.swish).share.max()) == 0


def test_products_of_one_layer_count_by_their_flops():
    def loss(params, x):
        wide, narrow = jax.nn.relu(x) @ params["w"], x[:, :1] @ params["w"][:1]
        return jnp.mean(wide + narrow)

    params, x = {"w": np.ones((6, 6), "f4")}, BATCH[0]
    found = activation_zeros(wse.trace(loss, params, x), params, x)
    assert found.sizes["layer"] == 1
    assert float(found.share[0]) == pytest.approx((x <= 0).mean() * 6 / 7)


def test_images_that_are_convolved_are_looked_at():
    def loss(params, x):
        x = jax.lax.conv_general_dilated(jnp.maximum(x, 0), params["k"], (1, 1), "SAME")
        return jnp.mean(x**2)

    params = {"k": np.ones((2, 3, 3, 3), "f4")}
    x = np.random.default_rng(0).normal(size=(2, 3, 5, 5)).astype("f4")
    found = activation_zeros(wse.trace(loss, params, x), params, x)
    assert float(found.share[0]) == pytest.approx((x <= 0).mean())


def test_other_shapes_are_refused():
    graph = wse.trace(net(jnp.tanh), PARAMS, BATCH)
    with pytest.raises(ValueError, match="batch has the shapes"):
        activation_zeros(graph, PARAMS, tuple(x[:3] for x in BATCH))
    with pytest.raises(ValueError, match="params has the shapes"):
        activation_zeros(graph, PARAMS[:2], BATCH)


def test_harvested_zeros_reach_their_layers_of_an_estimate():
    loss = net(jax.nn.relu)
    graph = wse.trace(loss, PARAMS, BATCH)
    found = activation_zeros(graph, PARAMS, BATCH)
    plain = from_graph.workload(graph)
    harvested = plain.harvested(found)
    assert [layer.zeros for layer in harvested.layers] == found.share.values.tolist()
    assert harvested.layers[0].zeros > 0.4
    assert harvested.sparse(0.5).layers[0].zeros == harvested.layers[0].zeros


def test_every_matrix_of_a_visit_has_the_zeros_of_the_visit():
    visits = {"a": "a", "b": "a", "c": "c", "d": ""}
    layers = tuple(Layer(name, 6, 6, 36, visit=visit) for name, visit in visits.items())
    table = xr.Dataset({"share": ("layer", [0.5, 0.25])}, coords={"layer": ["a", "c"]})
    harvested = Workload("visits", layers, 6, 6).harvested(table)
    assert [layer.zeros for layer in harvested.layers] == [0.5, 0.5, 0.25, 0]


def test_zeros_of_hidden_layers_save_time_at_the_fast_end_alone():
    wide = dense(width=2048)
    names = [layer.name for layer in wide.layers[1:]]
    table = xr.Dataset({"share": ("layer", [0.5] * len(names))}, coords={"layer": names})
    found = [
        wse.estimate(net, batch=4096, machine=wse.CS2(mode="streaming")).training_interval_s
        for net in (wide, wide.harvested(table))
    ]
    assert found[1][0] < found[0][0]
    assert found[1][1] == found[0][1]


def test_zeros_of_another_model_are_refused():
    found = counted(jax.nn.relu)
    other = dense(width=32)
    with pytest.raises(ValueError, match=r"zeros are of the layers \['0', '1', '2'\]"):
        other.harvested(found)
