"""What `wse` counts of a model by its shapes is what `sciml` builds."""

import jax
import pytest
from flax import nnx

import wse
from sciml.models import Dense
from sciml.studies.table4 import WIDTHS
from wse.machine.published import TABLE4


def leaves(model: Dense, inputs: int, outputs: int) -> list[tuple[int, ...]]:
    """Return the shapes of a model's arrays; none is made."""
    net = nnx.eval_shape(lambda: model.build(inputs, outputs, rngs=nnx.Rngs(0)))
    return [leaf.shape for leaf in jax.tree.leaves(nnx.state(net, nnx.Param))]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("depth", "inputs", "outputs"), [(8, 1000, 2), (1, 7, 3)])
def test_a_dense_net_counts_the_same_in_both(width: int, depth: int, inputs: int, outputs: int):
    shapes = leaves(Dense(width, depth), inputs, outputs)
    work = wse.workload.dense(inputs, width, depth, outputs)
    kernels = sorted(shape for shape in shapes if len(shape) == 2)
    assert kernels == sorted((layer.inputs, layer.outputs) for layer in work.layers)
    assert work.parameters == sum(map(_size, shapes))
    assert work.forward_flops == 2 * sum(map(_size, kernels))


def test_the_studies_ask_for_the_published_widths():
    assert tuple(WIDTHS) == tuple(row.units for row in TABLE4)


def _size(shape: tuple[int, ...]) -> int:
    return shape[0] if len(shape) == 1 else shape[0] * shape[1]
