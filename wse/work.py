"""FLOPs of products and convolutions, from the shapes in a jaxpr."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from math import prod
from typing import Any

from jax.extend import core


def flops(jaxpr: core.Jaxpr) -> int:
    """FLOPs of all products of matrices and convolutions in a jaxpr and what it calls.

    A product of (..., m, k) and (..., k, n) counts 2 m n k; a convolution counts two per tap,
    input channel (of one group) and output. Taps that fall on the border are counted: a compiler
    may skip them. The body of a scan counts once per turn, of a branch the dearest one counts.
    """
    return sum(_equation(eqn) for eqn in jaxpr.eqns)


def _equation(eqn: core.JaxprEqn) -> int:
    name, params = eqn.primitive.name, eqn.params
    if name == "dot_general":
        return _product(eqn)
    if name == "conv_general_dilated":
        return _convolution(eqn)
    if name == "scan":
        return params["length"] * flops(params["jaxpr"].jaxpr)
    if name == "cond":
        return max(flops(branch.jaxpr) for branch in params["branches"])
    inner = params.get("jaxpr", params.get("call_jaxpr"))
    if isinstance(inner, core.ClosedJaxpr):
        return flops(inner.jaxpr)
    return flops(inner) if isinstance(inner, core.Jaxpr) else 0


def _product(eqn: core.JaxprEqn) -> int:
    (contracted, _), _ = eqn.params["dimension_numbers"]
    left = _shape(eqn.invars[0])
    return 2 * prod(_shape(eqn.outvars[0])) * prod(left[axis] for axis in contracted)


def _convolution(eqn: core.JaxprEqn) -> int:
    numbers: Any = eqn.params["dimension_numbers"]
    image, kernel, out = _shape(eqn.invars[0]), _shape(eqn.invars[1]), _shape(eqn.outvars[0])
    # A transposed convolution spreads each input over the taps: the holes between inputs are not
    # multiplied. So along an axis the smaller of inputs and outputs meets every tap.
    places = prod(
        min(image[i], out[o])
        for i, o in zip(numbers.lhs_spec[2:], numbers.out_spec[2:], strict=True)
    )
    # The kernel's axes are (outputs, inputs of one group, taps...).
    taps = prod(kernel[axis] for axis in numbers.rhs_spec[1:])
    return 2 * prod(out[axis] for axis in numbers.out_spec[:2]) * places * taps


def _shape(atom: Any) -> tuple[int, ...]:
    return atom.aval.shape
