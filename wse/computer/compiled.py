"""What a compiler makes of a jaxpr: products, convolutions, and passes over memory.

Products and convolutions run by themselves. What lies between them is fused: a chain of elementwise
operations becomes one pass, which reads what was stored before it and writes what is stored after.
Stored are inputs, outputs, results of reductions, and what a product or convolution reads.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

from jax.extend import core

from wse.computer.timings import Convolution
from wse.graph.equations import needs
from wse.graph.flops import products

Kind = Literal["product", "convolution", "pass"]
# What an element costs beside an addition, in exponentials; assumed, from vector units' tables.
SLOW = {
    **dict.fromkeys(("exp", "exp2", "expm1", "log", "log1p", "pow", "tanh", "logistic"), 1.0),
    **dict.fromkeys(("erf", "erfc", "erf_inv"), 1.0),
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "atan2"), 1.0),
    **dict.fromkeys(("div", "rem", "sqrt", "rsqrt", "cbrt"), 0.2),
}
# These end a fusion: their results are stored.
ENDS = {
    *("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "argmax", "argmin"),
    *("cumsum", "cumprod", "cummax", "cumlogsumexp", "reduce_window_sum", "reduce_window_max"),
    *("select_and_scatter_add", "scatter", "scatter-add", "gather", "dynamic_update_slice"),
    *("concatenate", "sort", "top_k", "fft", "threefry2x32", "random_bits", "rng_bit_generator"),
}
# The same values by another name; JAX means a copy by some, a compiler does not.
VIEWS = ("reshape", "squeeze", "expand_dims", "stop_gradient", "copy")


@dataclass(frozen=True)
class Kernel:
    """One thing that a processor runs.

    Attributes:
        kind: what bounds it.
        flops: of a product or convolution.
        nbytes: read and written.
        numbers: of a pass, those that it reads and writes.
        slow: elements that go through an exponential; a quotient counts for a part of one.
        shape: of a product (m, n, k); of a convolution (pixels, channels in, channels out).
        result: of a convolution, "image" or "kernel".
        convolution: which, exactly.
        turns: how often it runs.
        copies: of a product, how many are alike, on numbers of their own.
    """

    kind: Kind
    flops: int = 0
    nbytes: int = 0
    numbers: int = 0
    slow: int = 0
    shape: tuple[int, int, int] = (0, 0, 0)
    result: str = ""
    convolution: Convolution | None = None
    turns: int = 1
    copies: int = 1


def kernels(closed: core.ClosedJaxpr) -> list[Kernel]:
    """Return the kernels of a jaxpr and all that it calls; a scan's body counts once per turn."""
    found = _Walk()
    found.inputs(closed.jaxpr.invars)
    found.inputs(closed.jaxpr.constvars)
    found.walk(closed.jaxpr, 1)
    found.store(x for x in closed.jaxpr.outvars if isinstance(x, core.Var))
    return found.kernels


class _Walk:
    """Equations seen so far: for each value, what it is made of since it was last stored."""

    def __init__(self) -> None:
        self.kernels: list[Kernel] = []
        self._stored: set[Any] = set()
        self._sources: dict[Any, frozenset[Any]] = {}
        # Of each value, the slow operations that it is made of: one that is met twice runs once.
        self._slow: dict[Any, frozenset[int]] = {}
        self._costs: list[float] = []
        self._same: dict[Any, Any] = {}  # values that only have another name or shape
        self._turns = 1

    def inputs(self, atoms: Iterable[Any]) -> None:
        """Take values as stored."""
        for atom in atoms:
            self._stored.add(atom)
            self._sources[atom] = frozenset([atom])

    def walk(self, jaxpr: core.Jaxpr, turns: int) -> None:
        """Take the equations of a jaxpr in their order."""
        counted = {id(eqn): flops for eqn, flops in products(jaxpr)}
        needed = needs(jaxpr, [x for x in jaxpr.outvars if isinstance(x, core.Var)])
        for eqn in jaxpr.eqns:
            if needed.intersection(eqn.outvars):  # a compiler drops the rest
                self._turns = turns
                self._equation(eqn, turns, counted.get(id(eqn), 0))

    def store(self, atoms: Iterable[Any]) -> None:
        """Write values that are not stored yet: one pass for all that are made of the same."""
        passes: dict[Any, list[Any]] = {}
        for found in dict.fromkeys(self._held(atoms)):
            if found not in self._stored:
                made = (self._sources.get(found, frozenset()), found.aval.shape)
                passes.setdefault(made, []).append(found)
        for (read, _), written in passes.items():
            moved = (*read, *written)
            run = frozenset[int]().union(*(self._slow.get(x, frozenset()) for x in written))
            self.kernels.append(
                Kernel(
                    "pass",
                    nbytes=sum(map(_nbytes, moved)),
                    numbers=sum(prod(x.aval.shape) for x in moved),
                    slow=round(sum(self._costs[i] for i in run)),
                    turns=self._turns,
                )
            )
            self.inputs(written)

    def _equation(self, eqn: Any, turns: int, flops: int) -> None:
        name, params = eqn.primitive.name, eqn.params
        if name == "dot_general":
            self._alone(eqn, _product(eqn, turns))
        elif name == "conv_general_dilated":
            self._alone(eqn, _convolution(eqn, turns, flops))
        elif name == "scan":
            self._inner(eqn, params["jaxpr"].jaxpr, turns * params["length"])
        elif name == "cond":
            self._inner(eqn, max((b.jaxpr for b in params["branches"]), key=_weight), turns)
        elif (inner := _called(params)) is not None:
            self._inner(eqn, inner, turns)
        elif name in VIEWS or (name == "transpose" and len(params["permutation"]) == 2):
            # A product reads or writes a matrix in either order.
            self._same[eqn.outvars[0]] = self._named(eqn.invars[0])
        else:
            self._light(eqn)
            if name in ENDS:
                self.store(eqn.outvars)

    def _alone(self, eqn: Any, kernel: Kernel) -> None:
        self.store(eqn.invars)
        self.kernels.append(kernel)
        self.inputs(eqn.outvars)

    def _light(self, eqn: Any) -> None:
        read = self._held(eqn.invars)
        sources = frozenset[Any]().union(*(self._sources.get(x, frozenset()) for x in read))
        fused = (self._slow.get(x, frozenset[int]()) for x in read if x not in self._stored)
        slow = frozenset[int]().union(*fused)
        if own := SLOW.get(eqn.primitive.name, 0.0) * sum(prod(x.aval.shape) for x in eqn.outvars):
            slow |= {len(self._costs)}
            self._costs.append(own)
        for out in eqn.outvars:
            self._sources[out], self._slow[out] = sources, slow

    def _inner(self, eqn: Any, jaxpr: core.Jaxpr, turns: int) -> None:
        """Walk a called jaxpr as part of this one."""
        outer = [x for x in eqn.invars if not isinstance(x, core.Literal)]
        given = list(eqn.invars)[-len(jaxpr.invars) :] if jaxpr.invars else []
        looped = turns != self._turns
        if looped:  # what a loop reads lies in memory
            self.store(outer)
        for inner, atom in zip(jaxpr.invars, given, strict=False):
            if looped or isinstance(atom, core.Literal):
                self.inputs([inner])
            else:
                self._same[inner] = self._named(atom)
        self.inputs(jaxpr.constvars)
        before = self._turns
        self.walk(jaxpr, turns)
        self._turns = turns
        if looped:
            self.store(x for x in jaxpr.outvars if isinstance(x, core.Var))
        self._turns = before
        for out, inner in zip(eqn.outvars, jaxpr.outvars, strict=False):
            if looped or isinstance(inner, core.Literal):
                self.inputs([out])
            else:
                self._same[out] = self._named(inner)

    def _held(self, atoms: Iterable[Any]) -> list[Any]:
        """Those that are no numbers written into the program, nor others laid out anew."""
        return [x for x in map(self._named, atoms) if not isinstance(x, core.Literal)]

    def _named(self, atom: Any) -> Any:
        if isinstance(atom, core.Literal):
            return atom
        return self._same.get(atom, atom)


def _called(params: dict[str, Any]) -> core.Jaxpr | None:
    for key in ("jaxpr", "call_jaxpr", "fun_jaxpr", "body_jaxpr"):
        inner = params.get(key)
        if isinstance(inner, core.ClosedJaxpr):
            return inner.jaxpr
        if isinstance(inner, core.Jaxpr):
            return inner
    return None


def _weight(jaxpr: core.Jaxpr) -> int:
    return sum(flops for _, flops in products(jaxpr)) or len(jaxpr.eqns)


def _product(eqn: Any, turns: int) -> Kernel:
    (left, _), (shared, _) = eqn.params["dimension_numbers"]
    shape, other = eqn.invars[0].aval.shape, eqn.invars[1].aval.shape
    k = prod(shape[axis] for axis in left)
    count = prod(shape[axis] for axis in shared)
    m = prod(shape) // max(1, k * count)
    n = prod(other) // max(1, k * count)
    return Kernel(
        "product",
        flops=2 * m * n * k,
        nbytes=sum(_nbytes(x) for x in (*eqn.invars, *eqn.outvars)) // max(1, count),
        shape=(m, n, k),
        turns=turns,
        copies=count,
    )


def _convolution(eqn: Any, turns: int, flops: int) -> Kernel:
    numbers = eqn.params["dimension_numbers"]
    image, out = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    gradient = numbers.lhs_spec[0] != 0  # of the kernel: JAX sums over the batch as channels
    if gradient:
        ins, batch, *pixels = (image[axis] for axis in numbers.lhs_spec)
    else:
        ins = image[numbers.lhs_spec[1]]
        batch, _, *pixels = (out[axis] for axis in numbers.out_spec)
    return Kernel(
        "convolution",
        flops=flops,
        nbytes=sum(_nbytes(x) for x in (*eqn.invars, *eqn.outvars)),
        shape=(prod(pixels) * batch, ins, out[numbers.out_spec[1]]),
        result="kernel" if gradient else "image",
        convolution=Convolution.of(eqn),
        turns=turns,
    )


def _nbytes(atom: Any) -> int:
    return prod(atom.aval.shape) * getattr(atom.aval.dtype, "itemsize", 4)
