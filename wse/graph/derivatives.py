"""The programs of a layer: forward, and backward by recomputing or from what was kept."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core

from wse.graph.equations import Flat, depends, needs, program, variables

Arrays = Sequence[Any]


@dataclass(frozen=True)
class Demand:
    """Which derivatives of a layer are asked for, one flag per weight, read and write.

    Attributes:
        weights: the loss depends on them.
        reads: they depend on weights, and the loss on them.
        writes: the loss depends on them.
    """

    weights: tuple[bool, ...]
    reads: tuple[bool, ...]
    writes: tuple[bool, ...]

    @property
    def any(self) -> bool:
        """Whether the layer has a backward pass."""
        return any(self.weights) or any(self.reads)


def demand(
    jaxpr: core.Jaxpr, weights: int, trained: Sequence[bool], wanted: Sequence[bool]
) -> Demand:
    """Return what a layer must give: of `trained` reads, for `wanted` writes."""
    held = jaxpr.invars[:weights]
    reads = list(zip(jaxpr.invars[weights:], trained, strict=True))
    writes = [(x, w and is_float(x)) for x, w in zip(jaxpr.outvars, wanted, strict=True)]
    moves = depends(jaxpr, [*held, *(x for x, t in reads if t)])
    reach = needs(jaxpr, [x for x, w in writes if w])
    return Demand(
        tuple(x in reach for x in held),
        tuple(t and x in reach and is_float(x) for x, t in reads),
        tuple(w and not isinstance(x, core.Literal) and x in moves for x, w in writes),
    )


def demands(rows: Sequence[Any], loss: Any) -> list[Demand]:
    """What each backward pass must give: forward for what varies, back for what matters.

    Args:
        rows: for each program, itself, how many weights it reads first, then the names of what
            else it reads and of what it writes, by which programs exchange values.
        loss: the name of the value to be derived.
    """
    varies: set[Any] = set()
    for closed, weights, reads, writes in rows:
        inputs = closed.jaxpr.invars
        moved = [x for x, name in zip(inputs[weights:], reads, strict=True) if name in varies]
        moves = depends(closed.jaxpr, [*inputs[:weights], *moved])
        made = zip(closed.jaxpr.outvars, writes, strict=True)
        varies.update(name for x, name in made if variables([x]) and x in moves)
    wanted: set[Any] = {loss}
    found: list[Demand] = []
    for closed, weights, reads, writes in reversed(rows):
        asked = demand(
            closed.jaxpr,
            weights,
            [name in varies for name in reads],
            [name in wanted for name in writes],
        )
        wanted |= {x for x, want in zip(reads, asked.reads, strict=True) if want}
        found.append(asked)
    return found[::-1]


def is_float(atom: Any) -> bool:
    """Whether a value can have a derivative."""
    return jnp.issubdtype(atom.aval.dtype, jnp.inexact)


@dataclass(frozen=True)
class Kept:
    """A layer's programs that keep what the backward pass needs.

    Attributes:
        forward: (weights, reads) -> (writes, kept).
        backward: (weights, kept, reads, cotangents) -> (weight gradients, read cotangents).
        reads: which reads the backward pass needs again.
        kept: shapes of what is kept.
    """

    forward: Callable[..., Any]
    backward: Callable[..., Any]
    reads: tuple[bool, ...]
    kept: tuple[Any, ...]


def forward(closed: core.ClosedJaxpr) -> Callable[..., Any]:
    """Return the program (weights, reads) -> writes."""
    run = core.jaxpr_as_fun(closed)
    return lambda weights, reads: run(*weights, *reads)


def recompute(closed: core.ClosedJaxpr, asked: Demand) -> Callable[..., Any]:
    """Return the program (weights, reads, cotangents) -> (weight gradients, read cotangents)."""
    split = _Split(closed, asked)

    def backward(weights: Arrays, reads: Arrays, cotangents: Arrays) -> Any:
        moving = split.moving(weights, reads)
        _, vjp = jax.vjp(lambda *x: split.run(weights, reads, x)[1], *moving)
        return split.gradients(vjp(list(cotangents)))

    return backward


def keep(closed: core.ClosedJaxpr, asked: Demand) -> Kept:
    """Trace a layer's forward pass and what its backward pass needs of it.

    What the backward pass needs is sorted by where it can come from: weights, and what is made of
    weights alone, come with the next visit; reads are held anyway; only the rest is kept.
    """
    split = _Split(closed, asked)
    tree: list[Any] = []

    def outward(weights: Arrays, reads: Arrays) -> Any:
        moving = split.moving(weights, reads)
        _, vjp, writes = jax.vjp(
            lambda *x: split.run(weights, reads, x)[::-1], *moving, has_aux=True
        )
        leaves, structure = jax.tree.flatten(vjp)
        tree[:] = [structure]
        return writes, leaves

    count = len(asked.weights)
    shapes = [jax.ShapeDtypeStruct(x.aval.shape, x.aval.dtype) for x in closed.jaxpr.invars]
    traced = jax.make_jaxpr(outward)(shapes[:count], shapes[count:])
    flat = Flat({}, ())
    inputs = list(traced.jaxpr.invars)
    results = flat.inline(traced, inputs)
    writes, residuals = results[: len(asked.writes)], results[len(asked.writes) :]
    whole = program([*flat.constants, *inputs], results, flat.equations)
    batch = depends(whole.jaxpr, [*inputs[count:]])
    held = variables(residuals)
    kept = list(dict.fromkeys(x for x in held if x in batch and x not in inputs))
    asked_reads = [x for x in inputs[count:] if x in held]
    run = _runner(flat, inputs, [*writes, *kept])
    again = _runner(flat, [*inputs[:count], *kept, *asked_reads], residuals)

    def forward(weights: Arrays, reads: Arrays) -> Any:
        results = run(*weights, *reads)
        return results[: len(writes)], results[len(writes) :]

    def backward(weights: Arrays, stored: Arrays, reads: Arrays, cotangents: Arrays) -> Any:
        vjp = jax.tree.unflatten(tree[0], again(*weights, *stored, *reads))
        return split.gradients(vjp(list(cotangents)))

    return Kept(
        forward,
        backward,
        tuple(x in held for x in inputs[count:]),
        tuple(x.aval for x in kept),
    )


def backward_jaxpr(closed: core.ClosedJaxpr, asked: Demand, kept: Kept) -> core.ClosedJaxpr:
    """Trace the backward pass of a layer from what was kept, on shapes alone."""
    jaxpr, count = closed.jaxpr, len(asked.weights)
    again = [x.aval for x, want in zip(jaxpr.invars[count:], kept.reads, strict=True) if want]
    weights = [x.aval for x in jaxpr.invars[:count]]
    return _traced(kept.backward, weights, kept.kept, again, _given(jaxpr, asked))


def recompute_jaxpr(closed: core.ClosedJaxpr, asked: Demand) -> core.ClosedJaxpr:
    """Trace the backward pass of a layer from what it reads, on shapes alone."""
    jaxpr, count = closed.jaxpr, len(asked.weights)
    inputs = [x.aval for x in jaxpr.invars]
    back = recompute(closed, asked)
    return _traced(back, inputs[:count], inputs[count:], _given(jaxpr, asked))


def _given(jaxpr: core.Jaxpr, asked: Demand) -> list[Any]:
    """Shapes of the cotangents."""
    return [x.aval for x, want in zip(jaxpr.outvars, asked.writes, strict=True) if want]


def _traced(function: Callable[..., Any], *arguments: Arrays) -> core.ClosedJaxpr:
    shapes = [[jax.ShapeDtypeStruct(x.shape, x.dtype) for x in each] for each in arguments]
    return jax.make_jaxpr(function)(*shapes)


def _runner(flat: Flat, inputs: Sequence[core.Var], outputs: Sequence[Any]) -> Callable[..., Any]:
    constants = list(flat.constants)
    run = core.jaxpr_as_fun(program([*constants, *inputs], outputs, flat.equations))
    return lambda *args: run(*flat.constants.values(), *args)


class _Split:
    """A layer as a function of the arguments whose derivatives are asked for."""

    def __init__(self, closed: core.ClosedJaxpr, asked: Demand) -> None:
        self._function = core.jaxpr_as_fun(closed)
        self._asked = asked
        self._moves = (*asked.weights, *asked.reads)

    def moving(self, weights: Arrays, reads: Arrays) -> list[Any]:
        args = (*weights, *reads)
        return [x for x, moves in zip(args, self._moves, strict=True) if moves]

    def run(self, weights: Arrays, reads: Arrays, moving: Arrays) -> tuple[Any, Any]:
        """All writes, and those that have cotangents, with the moving arguments put in place."""
        left = iter(moving)
        args = (*weights, *reads)
        inner = [next(left) if m else x for x, m in zip(args, self._moves, strict=True)]
        writes = self._function(*inner)
        return writes, [y for y, w in zip(writes, self._asked.writes, strict=True) if w]

    def gradients(self, found: Arrays) -> tuple[list[Any], list[Any]]:
        count = sum(self._asked.weights)
        return list(found[:count]), list(found[count:])
