"""FLOPs of products and convolutions, from the shapes in a jaxpr."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import prod
from typing import Any

from jax.extend import core

from wse.graph.equations import depends, turned, variables

CONVOLUTION = "conv_general_dilated"
LAID_OUT = {"reshape", "transpose", "squeeze", "expand_dims", "convert_element_type"}
RAGGED = "ragged_dot_general"


def flops(jaxpr: core.Jaxpr, counted: Callable[[core.JaxprEqn], bool] | None = None) -> int:
    """FLOPs of products of matrices and convolutions in a jaxpr and what it calls: all, or some.

    A product of (..., m, k) and (..., k, n) counts 2 m n k, of complex numbers four times that, a
    ragged one as if each row met the matrix of one group; a convolution counts two per tap,
    input channel (of one group) and output. Taps that fall on the border are counted: a compiler
    may skip them. The body of a scan counts once per turn, of a branch the dearest one counts.
    """
    return sum(_equation(eqn, counted) for eqn in jaxpr.eqns)


def products(jaxpr: core.Jaxpr) -> list[tuple[core.JaxprEqn, int]]:
    """The products and convolutions of a jaxpr, or what it calls that holds some; their FLOPs."""
    return [(eqn, count) for eqn in jaxpr.eqns if (count := _equation(eqn))]


@dataclass
class Traffic:
    """What the products and convolutions of a program read and write of the samples.

    Attributes:
        products: of each product of matrices, the variables that it reads.
        images: of all convolutions, and of what is called, the variables that they read.
        inside: numbers that loops and calls make and multiply themselves.
        written: numbers that products and convolutions write.
        times: how many convolutions are run, and products inside of loops and calls, in each turn.
    """

    products: list[tuple[core.Var, ...]] = field(default_factory=list[tuple[core.Var, ...]])
    images: list[core.Var] = field(default_factory=list[core.Var])
    inside: int = 0
    written: int = 0
    times: int = 0

    def call(self, eqn: core.JaxprEqn, inputs: Sequence[bool], inner: core.Jaxpr) -> None:
        """Add what a loop or a call does; inputs that depend on the batch are marked."""
        kept = _kept(eqn, inner)
        pairs = zip(inner.invars, inputs, strict=True)
        found = traffic(inner, [x for x, some in pairs if some or x not in kept])
        read = dict.fromkeys([*chain(*found.products), *found.images])
        turns = _turns(eqn)
        self.inside += turns * (found.inside + numbers(x for x in read if x not in kept))
        self.written += turns * found.written
        self.times += turns * (found.times + len(found.products))


def traffic(jaxpr: core.Jaxpr, moving: Iterable[core.Var]) -> Traffic:
    """What products and convolutions read and write that depends on `moving`.

    Variables that are others laid out anew are named by these.
    """
    made = Traffic()
    for one in each(jaxpr, moving).values():
        made.products += one.products
        made.images += one.images
        made.inside += one.inside
        made.written += one.written
        made.times += one.times
    return made


def each(jaxpr: core.Jaxpr, moving: Iterable[core.Var]) -> dict[int, Traffic]:
    """The same of every product, convolution, and call that holds some, by its equation's id."""
    varies, same = depends(jaxpr, moving), laid_out(jaxpr)
    found: dict[int, Traffic] = {}
    for eqn, _ in products(jaxpr):
        made = found[id(eqn)] = Traffic()
        inputs = [not isinstance(x, core.Literal) and x in varies for x in eqn.invars]
        read = [x for x, some in zip(eqn.invars, inputs, strict=True) if some]
        read = [same.get(x, x) for x in variables(read)]
        if inner := inner_programs(eqn):
            made.images += read
            for one in inner:
                if len(one.invars) == len(inputs) and read:
                    made.call(eqn, inputs, one)
        elif eqn.primitive.name == CONVOLUTION:
            made.images += read
            made.written += numbers(eqn.outvars) if read else 0
            made.times += 1
        else:
            made.products.append(tuple(read))
            made.written += numbers(eqn.outvars) if read else 0
    return found


def laid_out(jaxpr: core.Jaxpr) -> dict[core.Var, core.Var]:
    """The variables that hold the numbers of another one, laid out anew, and which one that is."""
    same: dict[core.Var, core.Var] = {}
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in LAID_OUT and isinstance(eqn.invars[0], core.Var):
            same[eqn.outvars[0]] = same.get(eqn.invars[0], eqn.invars[0])
    return same


def numbers(atoms: Iterable[Any]) -> int:
    """How many real numbers these hold."""
    return sum(_parts(x) * prod(_shape(x)) for x in atoms)


def _turns(eqn: core.JaxprEqn) -> int:
    return eqn.params["length"] if eqn.primitive.name == "scan" else 1


def _kept(eqn: core.JaxprEqn, inner: core.Jaxpr) -> list[core.Var]:
    """What a body reads that is kept outside: all but what a loop carries from turn to turn."""
    if eqn.primitive.name != "scan":
        return inner.invars
    consts, carry = turned(eqn)
    return [*inner.invars[:consts], *inner.invars[consts + carry :]]


def mostly_convolves(jaxpr: core.Jaxpr) -> bool:
    """Whether convolutions take half of a jaxpr's FLOPs or more, in what it calls too."""
    return 0 < flops(jaxpr) <= 2 * flops(jaxpr, lambda eqn: eqn.primitive.name == CONVOLUTION)


def convolving(jaxpr: core.Jaxpr) -> int:
    """FLOPs of the convolutions whose windows overlap: what processors take longer for.

    Windows as far apart as they are wide, as where a transformer cuts up an image, are a product.
    """
    return flops(jaxpr, _overlaps)


def _overlaps(eqn: core.JaxprEqn) -> bool:
    params = eqn.params
    if eqn.primitive.name != CONVOLUTION:
        return False
    window = tuple(_shape(eqn.invars[1])[axis] for axis in params["dimension_numbers"].rhs_spec[2:])
    plain = (1,) * len(window)
    apart = window == params["window_strides"] != plain
    whole = params["lhs_dilation"] == params["rhs_dilation"] == plain
    return not (apart and whole and params["feature_group_count"] == 1)


def shorter_side(jaxpr: core.Jaxpr, matrix: tuple[int, ...]) -> int | None:
    """The shorter side of an array of some axes, as a product takes it; None: none takes it."""
    same = laid_out(jaxpr)
    for eqn, _ in products(jaxpr):
        if eqn.primitive.name not in ("dot_general", RAGGED):
            continue
        for side, operand in enumerate(eqn.invars[:2]):
            held = same.get(operand, operand) if isinstance(operand, core.Var) else operand
            if _shape(held) == matrix:
                summed, each = _axes(eqn, side)
                added, given = (prod(_shape(operand)[i] for i in axes) for axes in (summed, each))
                return min(added, prod(matrix) // (added * given))
    return None


def widest(jaxpr: core.Jaxpr, weights: Iterable[core.Var]) -> int | None:
    """The most numbers that one product by weights makes of one token or pixel; None: of none."""
    held, same, found = {*weights}, laid_out(jaxpr), list[int]()
    for eqn, _ in products(jaxpr):
        by = [x for x in variables(eqn.invars[:2]) if same.get(x, x) in held]
        if not by or inner_programs(eqn):
            continue
        if eqn.primitive.name == CONVOLUTION:
            numbers: Any = eqn.params["dimension_numbers"]
            filters = _shape(by[0])[numbers.rhs_spec[0]]
            found.append(filters * prod(eqn.params["lhs_dilation"]))  # a transposed one makes more
        elif eqn.primitive.name in ("dot_general", RAGGED):
            summed, each = _axes(eqn, eqn.invars.index(by[0]))
            meets = prod(_shape(by[0])[axis] for axis in (*summed, *each))
            found.append(prod(_shape(by[0])) // meets)
    return max(found, default=None)


def _axes(eqn: core.JaxprEqn, side: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Axes of an operand along which a product sums, and those of which each is by itself."""
    if eqn.primitive.name != RAGGED:
        contracted, batched = eqn.params["dimension_numbers"]
        return contracted[side], batched[side]
    numbers: Any = eqn.params["ragged_dot_dimension_numbers"]
    contracted, batched = numbers.dot_dimension_numbers
    groups = numbers.rhs_group_dimensions if side else ()
    return tuple(contracted[side]), (*batched[side], *groups)


def inner_programs(eqn: core.JaxprEqn) -> list[core.Jaxpr]:
    """The programs inside an equation."""
    values = [x for v in eqn.params.values() for x in (v if isinstance(v, tuple | list) else (v,))]
    jaxprs = [x.jaxpr if isinstance(x, core.ClosedJaxpr) else x for x in values]
    return [x for x in jaxprs if isinstance(x, core.Jaxpr)]


def _equation(eqn: core.JaxprEqn, counted: Callable[[core.JaxprEqn], bool] | None = None) -> int:
    name, params = eqn.primitive.name, eqn.params
    if name in PRODUCTS:
        taken = counted is None or counted(eqn)
        return taken and PRODUCTS[name](eqn) * _parts(eqn.outvars[0]) ** 2
    if name == "scan":
        return params["length"] * flops(params["jaxpr"].jaxpr, counted)
    if name == "cond":
        return max(flops(branch.jaxpr, counted) for branch in params["branches"])
    inner = params.get("jaxpr", params.get("call_jaxpr"))
    if isinstance(inner, core.ClosedJaxpr):
        return flops(inner.jaxpr, counted)
    return flops(inner, counted) if isinstance(inner, core.Jaxpr) else 0


def _product(eqn: core.JaxprEqn) -> int:
    (contracted, _), _ = eqn.params["dimension_numbers"]
    left = _shape(eqn.invars[0])
    return 2 * prod(_shape(eqn.outvars[0])) * prod(left[axis] for axis in contracted)


def _ragged(eqn: core.JaxprEqn) -> int:
    numbers: Any = eqn.params["ragged_dot_dimension_numbers"]
    (contracted, _), _ = numbers.dot_dimension_numbers
    left, out = _shape(eqn.invars[0]), _shape(eqn.outvars[0])
    summed = prod(left[axis] for axis in contracted)
    if numbers.lhs_ragged_dimensions[0] in contracted:  # each row is in one group's sum
        out = out[1:]
    return 2 * prod(out) * summed


def _convolution(eqn: core.JaxprEqn) -> int:
    numbers: Any = eqn.params["dimension_numbers"]
    image, kernel, out = _shape(eqn.invars[0]), _shape(eqn.invars[1]), _shape(eqn.outvars[0])
    specs = [
        [shape[axis] for axis in spec[2:]]
        for shape, spec in zip((image, kernel, out), numbers, strict=True)
    ]
    # Every tap meets each pixel of the coarser image: a stride leaves out pixels of the finer one,
    # a transposed convolution puts holes between those of the coarser one, which take no product.
    # In a kernel's gradient, in which JAX contracts the batch as channels, the result is the taps.
    # Where there are holes it may be either: a pixel, a tap and a result meet once for any two.
    behind, holes = numbers.lhs_spec[0] != 0, max(eqn.params["lhs_dilation"]) > 1
    meetings = prod(
        min(b * k, a * k if holes or not behind else a * b, a * b if holes or behind else a * k)
        for a, k, b in zip(*specs, strict=True)
    )
    channels = kernel[numbers.rhs_spec[1]]  # of one group
    return 2 * prod(out[axis] for axis in numbers.out_spec[:2]) * meetings * channels


PRODUCTS: dict[str, Callable[[core.JaxprEqn], int]] = {
    "dot_general": _product,
    CONVOLUTION: _convolution,
    RAGGED: _ragged,
}


def _parts(atom: Any) -> int:
    """Real numbers of each value: a complex one has two, a product of such is four."""
    return 2 if str(atom.aval.dtype).startswith("complex") else 1


def _shape(atom: Any) -> tuple[int, ...]:
    return atom.aval.shape
