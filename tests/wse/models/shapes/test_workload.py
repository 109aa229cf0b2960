"""Workloads: counts from shapes."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wse.machine.published import TABLE4
from wse.models.shapes.workload import Layer, Workload, dense

sizes = st.integers(min_value=1, max_value=300)


@pytest.mark.parametrize("row", TABLE4, ids=lambda row: str(row.units))
def test_parameters_of_the_published_nets(row) -> None:
    net = dense(width=row.units)
    assert net.parameters == row.parameters
    assert (net.width, net.depth, len(net.layers)) == (row.units, 8, 9)
    assert net.is_dense_chain


@given(inputs=sizes, width=sizes, depth=st.integers(1, 6), outputs=sizes)
def test_closed_forms(inputs: int, width: int, depth: int, outputs: int) -> None:
    net = dense(inputs, width, depth, outputs)
    weights = inputs * width + (depth - 1) * width**2 + width * outputs
    assert net.parameters == weights + depth * width + outputs
    assert net.forward_flops == 2 * weights
    assert net.backward_flops == 4 * weights - 2 * inputs * width
    assert net.width == width


@pytest.mark.parametrize("name", ["inputs", "width", "depth", "outputs"])
@pytest.mark.parametrize("size", [0, -3])
def test_sizes_must_be_positive(name: str, size: int) -> None:
    with pytest.raises(ValueError, match=f"{name} is {size}; it must be a positive integer"):
        dense(**{name: size})


def test_a_layer_counts_its_own_multiplies() -> None:
    convolution = Layer("conv", 100, 200, 30, kind="convolution", multiplies=5_000)
    assert (convolution.forward_flops, convolution.backward_flops) == (10_000, 20_000)
    net = Workload("cnn", (convolution, Layer("output", 200, 2, 402)), 100, 2)
    assert not net.is_dense_chain


@pytest.mark.parametrize("field", ["parameters", "multiplies"])
def test_a_layer_refuses_negative_counts(field: str) -> None:
    with pytest.raises(ValueError, match=f"{field} of layer 'x' is -1"):
        Layer(**{"name": "x", "inputs": 1, "outputs": 1, "parameters": 0, field: -1})


def test_a_workload_needs_layers_with_their_own_names() -> None:
    layer = Layer("x", 1, 1, 1)
    with pytest.raises(ValueError, match="has no layers"):
        Workload("empty", (), 1, 1)
    with pytest.raises(ValueError, match=r"\['x'\] of workload 'twins' share a name"):
        Workload("twins", (layer, layer), 1, 1)


def test_layers_that_do_not_meet_are_no_chain() -> None:
    apart = Workload("apart", (Layer("x", 3, 4, 16), Layer("y", 5, 1, 6)), 3, 1)
    assert not apart.is_dense_chain


def test_zeros_enter_only_where_they_may() -> None:
    net = dense(width=32)
    head = dataclasses.replace(net.layers[-1], sparsifiable=False)
    thin = dataclasses.replace(net, layers=(*net.layers[:-1], head)).sparse(0.25, zeros=0.5)
    assert {layer.density for layer in thin.layers[:-1]} == {0.25}
    assert {layer.zeros for layer in thin.layers[:-1]} == {0.5}
    assert (thin.layers[-1].density, thin.layers[-1].zeros) == (1.0, 0.0)
    assert thin.parameters == net.parameters
    assert 0.9 < thin.sparsifiable_share < 1


@pytest.mark.parametrize(("field", "value"), [("density", -0.1), ("zeros", 1.1)])
def test_shares_lie_between_0_and_1(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{field} of layer 'x' is {value}; it must lie between"):
        Layer("x", 1, 1, 1, **{field: value})


def test_shared_weights_count_once() -> None:
    one = Layer("one", 4, 4, 16)
    net = Workload("tied", (one, dataclasses.replace(one, name="two", shared=True)), 4, 4)
    assert net.parameters == 16
    assert net.forward_flops == 2 * 2 * 16
