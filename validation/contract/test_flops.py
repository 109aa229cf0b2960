"""FLOPs of the graph are those that XLA counts, on a twin that it can count whole.

XLA counts the body of a loop once and skips taps that fall on a padded border. So the twin has its
scans unrolled, and the images of its convolutions padded by an operation of their own. XLA counts
all arithmetic: what belongs to products and convolutions is what the count falls by when they are
replaced by operations that compute nothing.
"""

import jax
import jax.numpy as jnp
import pytest
from jax.extend import core

import wse
from wse.graph.equations import turned
from wse.graph.flops import flops


def run(jaxpr, consts, args, change):
    """Evaluate a jaxpr, its calls inlined, its scans unrolled and `change` made to products."""
    held = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *args), strict=True))

    def value(atom):
        return atom.val if isinstance(atom, core.Literal) else held[atom]

    for eqn in jaxpr.eqns:
        outputs = evaluated(eqn, [value(x) for x in eqn.invars], change)
        held.update(zip(eqn.outvars, outputs, strict=True))
    return [value(x) for x in jaxpr.outvars]


def evaluated(eqn, inputs, change):
    name, params = eqn.primitive.name, eqn.params
    if name == "scan":
        return unrolled(eqn, inputs, change)
    if name == "cond":
        dearest = max(params["branches"], key=lambda branch: flops(branch.jaxpr))
        return call(dearest, change, *inputs[1:])
    if name != "while" and (inner := params.get("jaxpr", params.get("call_jaxpr"))):
        return call(inner, change, *inputs)
    found = change(eqn, inputs)
    return found if eqn.primitive.multiple_results else [found]


def call(inner, change, *inputs):
    closed = getattr(inner, "jaxpr", None)
    return run(closed or inner, inner.consts if closed else (), inputs, change)


def unrolled(eqn, inputs, change):
    (consts, carry), params = turned(eqn), eqn.params
    turns = range(params["length"])
    held, state, stacked = inputs[:consts], inputs[consts:][:carry], inputs[consts + carry :]
    collected = {}
    for i in reversed(turns) if params["reverse"] else turns:
        slices = [x[i] for x in stacked]
        out = call(params["jaxpr"], change, *held, *state, *slices)
        state, collected[i] = out[:carry], out[carry:]
    return [*state, *(jnp.stack(x) for x in zip(*(collected[i] for i in turns), strict=True))]


def as_it_is(eqn, inputs):
    return eqn.primitive.bind(*inputs, **eqn.params)


def padded_before(eqn, inputs):
    """The same convolution on an image that already has its border."""
    if eqn.primitive.name != "conv_general_dilated" or max(eqn.params["lhs_dilation"]) > 1:
        return as_it_is(eqn, inputs)
    image, kernel = inputs
    widths = [(0, 0, 0)] * image.ndim
    axes = eqn.params["dimension_numbers"].lhs_spec[2:]
    for axis, (low, high) in zip(axes, eqn.params["padding"], strict=True):
        widths[axis] = (low, high, 0)
    bare = {**eqn.params, "padding": ((0, 0),) * len(axes)}
    return eqn.primitive.bind(jax.lax.pad(image, image.dtype.type(0), widths), kernel, **bare)


def counted(function, *args):
    """FLOPs of the products and convolutions of a function, by XLA's count."""
    closed = jax.make_jaxpr(function)(*args)

    def cost(replace):
        def program(*leaves):
            # What enters a product is given out, or its arithmetic would go with the product.
            entered = []

            def change(eqn, inputs):
                if eqn.primitive.name not in ("dot_general", "conv_general_dilated"):
                    return as_it_is(eqn, inputs)
                entered.extend(inputs)
                return replace(eqn, inputs)

            return run(closed.jaxpr, closed.consts, leaves, change), entered

        analysis = jax.jit(program).lower(*jax.tree.leaves(args)).cost_analysis()
        return analysis.get("flops", 0)

    return cost(as_it_is) - cost(nothing)


def nothing(eqn, inputs):
    """In place of a product: an array of its shape that takes no arithmetic."""
    shape = eqn.outvars[0].aval
    corners = [jnp.ravel(x)[:1].astype(shape.dtype) for x in inputs]
    return jnp.broadcast_to(jnp.concatenate(corners)[0], shape.shape)


def twin(loss, params, batch):
    """The loss with its scans unrolled and its images padded before they are convolved."""
    closed, structure = jax.make_jaxpr(loss)(params, batch), jax.tree.structure((params, batch))

    def unrolled_loss(params, batch):
        leaves = structure.flatten_up_to((params, batch))
        return run(closed.jaxpr, closed.consts, leaves, padded_before)[0]

    return unrolled_loss


def test_forward_and_backward_flops_are_those_that_xla_counts(case):
    graph = wse.trace(case.loss, case.params, case.batch, has_aux=case.has_aux)
    like = twin(case.loss, case.params, case.batch)
    forward = counted(like, case.params, case.batch)
    assert graph.forward_flops == pytest.approx(forward, rel=0.02)
    step = counted(jax.grad(like), case.params, case.batch)
    assert graph.forward_flops + graph.backward_flops == pytest.approx(step, rel=0.02)
