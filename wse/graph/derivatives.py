"""The programs of a layer: forward, and backward by recomputing or from what was kept."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core

from wse.graph.equations import (
    Flat,
    depends,
    needs,
    program,
    structs,
    variables,
    without_remats,
)

Arrays = Sequence[Any]
TRACED = 256  # assumed: layers of the last models, which each answer about a model asks for again


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


def demands(rows: Sequence[Any], loss: Any) -> list[Demand]:
    """What each backward pass must give: forward for what varies, back for what matters.

    Args:
        rows: for each program, itself, how many weights it reads first, then the names of what
            else it reads and of what it writes, by which programs exchange values.
        loss: the name of the value to be derived.
    """
    # What `stop_gradient` cuts off asks for no backward pass, also within checkpointed blocks.
    rows = [(_passing(without_remats(closed)), *rest) for closed, *rest in rows]
    varies: set[Any] = set()
    moves: list[list[bool]] = []  # of each program, which inputs and outputs vary with weights
    for closed, weights, reads, writes in rows:
        jaxpr, given = closed.jaxpr, [True] * weights + [name in varies for name in reads]
        moved = depends(jaxpr, compress(jaxpr.invars, given))
        made = [not isinstance(x, core.Literal) and x in moved for x in jaxpr.outvars]
        varies.update(compress(writes, made))
        moves.append(given + made)
    wanted: set[Any] = {loss}
    found: list[Demand] = []
    for (closed, weights, reads, writes), moved in zip(rows[::-1], moves[::-1], strict=True):
        inputs, outputs = closed.jaxpr.invars, closed.jaxpr.outvars
        asked = [name in wanted and is_float(x) for x, name in zip(outputs, writes, strict=True)]
        reach = needs(closed.jaxpr, compress(outputs, asked))
        asked = [x in reach and is_float(x) for x in inputs] + asked
        flags = tuple(a and b for a, b in zip(asked, moved, strict=True))
        count = len(inputs)
        found.append(Demand(flags[:weights], flags[weights:count], flags[count:]))
        wanted.update(compress(reads, found[-1].reads))
    return found[::-1]


def _passing(closed: core.ClosedJaxpr) -> core.ClosedJaxpr:
    """A program without the equations that pass no derivative on."""
    jaxpr = closed.jaxpr
    eqns = [eqn for eqn in jaxpr.eqns if eqn.primitive.name != "stop_gradient"]
    return core.ClosedJaxpr(jaxpr.replace(eqns=eqns), closed.consts)


def is_float(atom: Any) -> bool:
    """Whether a value can have a derivative."""
    return jnp.issubdtype(atom.aval.dtype, jnp.inexact)


@dataclass(frozen=True)
class Programs:
    """A layer's programs.

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

    @property
    def waits(self) -> bool:
        """Whether the backward pass needs what the forward pass had or made."""
        return bool(self.kept) or any(self.reads)


def recompute(closed: core.ClosedJaxpr, asked: Demand) -> Programs:
    """Keep nothing: the backward pass computes the layer again from what it reads."""
    split = _Split(closed, asked)

    def forward(weights: Arrays, reads: Arrays) -> Any:
        return split.function(*weights, *reads), []

    def backward(weights: Arrays, _: Arrays, reads: Arrays, cotangents: Arrays) -> Any:
        moving = split.moving(weights, reads)
        _, vjp = jax.vjp(lambda *x: split.run(weights, reads, x)[1], *moving)
        return split.gradients(vjp(list(cotangents)))

    return Programs(forward, backward, (True,) * len(asked.reads), ())


@lru_cache(maxsize=TRACED)
def keep(closed: core.ClosedJaxpr, asked: Demand) -> Programs:
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
    shapes = structs(closed.jaxpr.invars)
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

    flags = tuple(x in held for x in inputs[count:])
    return Programs(forward, backward, flags, tuple(structs(kept)))


@lru_cache(maxsize=TRACED)
def backward_jaxpr(closed: core.ClosedJaxpr, asked: Demand, made: Programs) -> core.ClosedJaxpr:
    """Trace the backward pass of a layer on shapes alone."""
    jaxpr, count = closed.jaxpr, len(asked.weights)
    weights = structs(jaxpr.invars[:count])
    reads = structs(compress(jaxpr.invars[count:], made.reads))
    cotangents = structs(compress(jaxpr.outvars, asked.writes))
    return jax.make_jaxpr(made.backward)(weights, made.kept, reads, cotangents)


def adding(
    backward: Callable[..., Any], reduce: Callable[[list[Any]], list[Any]]
) -> Callable[..., Any]:
    """Return a backward pass that takes the sums so far, too, and adds to them.

    The gradients of weights are those of all systems, by `reduce`.
    """

    def back(weights: Arrays, kept: Arrays, reads: Arrays, cotangents: Arrays, sums: Any) -> Any:
        found = backward(weights, kept, reads, cotangents)
        own, moved = ([*map(add, new, old)] for new, old in zip(found, sums, strict=True))
        return reduce(own), moved

    return back


def add(new: Any, old: Any) -> Any:
    """Return the sum of a gradient and of what came before it; None: nothing did."""
    return new if old is None else new + old


def _runner(flat: Flat, inputs: Sequence[core.Var], outputs: Sequence[Any]) -> Callable[..., Any]:
    constants = list(flat.constants)
    run = core.jaxpr_as_fun(program([*constants, *inputs], outputs, flat.equations))
    return lambda *args: run(*flat.constants.values(), *args)


class _Split:
    """A layer as a function of the arguments whose derivatives are asked for."""

    def __init__(self, closed: core.ClosedJaxpr, asked: Demand) -> None:
        self.function = core.jaxpr_as_fun(closed)
        self._asked = asked
        self._moves = (*asked.weights, *asked.reads)

    def moving(self, weights: Arrays, reads: Arrays) -> list[Any]:
        return list(compress((*weights, *reads), self._moves))

    def run(self, weights: Arrays, reads: Arrays, moving: Arrays) -> tuple[Any, Any]:
        """All writes, and those that have cotangents, with the moving arguments put in place."""
        left = iter(moving)
        args = (*weights, *reads)
        inner = [next(left) if m else x for x, m in zip(args, self._moves, strict=True)]
        writes = self.function(*inner)
        return writes, list(compress(writes, self._asked.writes))

    def gradients(self, found: Arrays) -> tuple[list[Any], list[Any]]:
        count = sum(self._asked.weights)
        return list(found[:count]), list(found[count:])
