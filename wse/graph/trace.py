"""From a training function to its graph of layers."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core

from wse.graph import derivatives
from wse.graph.cuts import Cutter, Stage, nbytes, total_bytes
from wse.graph.equations import (
    Flat,
    Weight,
    depends,
    fresh,
    key,
    program,
    variables,
    without_remats,
    without_repeats,
)
from wse.graph.flops import flops, products
from wse.graph.function import program_of
from wse.graph.layers import Graph, Layer, Work
from wse.graph.outline import paths, shape
from wse.graph.source import user_line


def trace(
    loss: Callable[..., Any],
    params: Any,
    batch: Any,
    *,
    has_aux: bool | None = False,
    batch_size: int | None = None,
) -> Graph:
    """Cut a training function into layers, where its parameters enter.

    The function is traced on shapes alone: a model of any size costs nothing, and `params` and
    `batch` may be trees of `jax.ShapeDtypeStruct`. Shared parameters are visited once per use,
    a scan over stacked parameters becomes one layer per slice.

    Args:
        loss: `loss(params, batch)` gives a scalar, with `has_aux` a scalar and anything else.
        params: any tree of floating-point arrays: nested dictionaries, `nnx.state(model, Param)`.
        batch: any tree of arrays: samples, batch statistics, dropout keys.
        has_aux: whether the function returns auxiliary outputs beside the loss; None: whether it
            returns a pair.
        batch_size: samples of the batch, along the leading axes of its arrays; None: the leading
            axis of the largest one.

    Returns:
        The graph, frozen.

    Raises:
        ValueError: no parameters, a parameter that is not of floating point, a loss that is not a
            scalar or that no parameter reaches, a layer that has no derivative, or a number of
            samples that no array of the batch has.

    >>> import jax.numpy as jnp
    >>> params = {"hidden": {"w": jnp.ones((3, 4))}, "output": {"w": jnp.ones((4, 1))}}
    >>> def loss(p, x):
    ...     return jnp.mean(jnp.tanh(x @ p["hidden"]["w"]) @ p["output"]["w"])
    >>> [layer.name for layer in trace(loss, params, jnp.ones((2, 3))).layers]
    ['hidden', 'output']
    """
    found = program_of(loss, params, batch, has_aux=has_aux, batch_size=batch_size)
    closed = found.closed
    if closed.effects:
        raise ValueError(
            f"loss has side effects {sorted(map(str, closed.effects))}, which would run at every "
            "visit: take out jax.debug.print and callbacks, return values with has_aux=True"
        )
    names, shapes = paths(params), tuple(map(shape, jax.tree.leaves(params)))
    inputs = [fresh(var.aval) for var in closed.jaxpr.invars]
    groups = _groups(names, [len(each.shape) for each in shapes])
    flat = Flat({var: Weight(i) for i, var in enumerate(inputs[: len(names)])}, groups)
    outputs = flat.inline(closed, inputs)
    auxiliary = jax.tree.structure(found.result[1]) if found.has_aux else None
    graph = _Assembly(flat, inputs[len(names) :], outputs).graph(names, shapes, auxiliary)
    return replace(graph, batch_size=found.samples, doubt=found.doubt)


def _groups(names: Sequence[str], axes: Sequence[int]) -> list[str]:
    """The layer of each parameter: the path that holds it; its own at the top, or of a list."""
    parents = [path.rpartition(".")[0] for path in names]
    matrices = Counter(parent for parent, count in zip(parents, axes, strict=True) if count > 1)
    listed = [
        count > 1 and matrices[parent] > 1 and path.rpartition(".")[2].isdecimal()
        for path, parent, count in zip(names, parents, axes, strict=True)
    ]
    return [
        path if own or not parent else parent
        for path, parent, own in zip(names, parents, listed, strict=True)
    ]


class _Assembly:
    """The layers of a flat program, being put together."""

    def __init__(self, flat: Flat, inputs: Sequence[core.Var], outputs: Sequence[Any]) -> None:
        flat.equations, outputs = without_repeats(flat, inputs, outputs)
        self._flat, self._outputs = flat, outputs
        # What nothing reads would still be made: only what the outputs need is cut into layers.
        flat.equations = program((), outputs, flat.equations).jaxpr.eqns
        self._cut = Cutter(flat, outputs)
        if not self._cut.stages:
            raise ValueError(
                "no parameter reaches the loss; it must read some: pass its own params"
            )
        self._values: dict[core.Var, int] = {}
        for var in (*inputs, *flat.constants):
            self._values[var] = len(self._values)
        self._inputs = tuple(self._values[var] for var in inputs)

    def graph(self, names: Sequence[str], shapes: Sequence[Any], auxiliary: Any) -> Graph:
        jaxprs = self._jaxprs([self._cut.equations(stage) for stage in self._cut.stages])
        rows = [(x, len(held), reads, x.jaxpr.outvars) for held, reads, x in jaxprs]
        demands = derivatives.demands(rows, self._outputs[0])
        numbers: dict[Any, int] = {}
        works: dict[int, Work] = {}
        layers: list[Layer] = []
        for stage, (weights, reads, closed), asked in zip(
            self._cut.stages, jaxprs, demands, strict=True
        ):
            name = self._name(stage, layers)
            number = numbers.setdefault((key(closed), asked), len(numbers))
            if number not in works:
                works[number] = _work(closed, len(weights), asked, name)
            held = tuple(self._flat.weights[var] for var in weights)
            layers.append(
                Layer(
                    name=name,
                    parameters=tuple(indexed(names[w.leaf], w.index) for w in held),
                    weights=held,
                    reads=tuple(self._number(var) for var in reads),
                    writes=tuple(self._number(var) for var in closed.jaxpr.outvars),
                    jaxpr=closed,
                    demand=asked,
                    work=works[number],
                    program=number,
                    source=self._source(stage),
                    recomputed=self._recomputed(closed),
                )
            )
        return Graph(
            layers=tuple(layers),
            values=tuple(var.aval for var in self._values),
            inputs=self._inputs,
            constants=tuple((self._values[v], x) for v, x in self._flat.constants.items()),
            outputs=tuple(self._output(atom) for atom in self._outputs),
            parameters=tuple(names),
            shapes=tuple(shapes),
            auxiliary=auxiliary,
        )

    def _jaxprs(self, stages: Sequence[Sequence[core.JaxprEqn]]) -> list[Any]:
        """Each stage's weights, reads and closed jaxpr; it writes what others read."""
        used = [dict.fromkeys(x for eqn in eqns for x in variables(eqn.invars)) for eqns in stages]
        known, home = self._flat.weights, self._cut.home
        found: list[Any] = []
        for i, eqns in enumerate(stages):
            made = [x for eqn in eqns for x in eqn.outvars]
            here = set(made)
            outside = [x for x in used[i] if x not in here]
            weights = sorted((x for x in outside if x in known), key=lambda x: known[x])
            reads = [x for x in outside if x not in known]
            elsewhere = {*variables(self._outputs)}.union(*used[i + 1 :])
            writes = [x for x in made if home.get(x) == i and x in elsewhere]
            found.append((weights, reads, program([*weights, *reads], writes, eqns)))
        return found

    def _number(self, var: core.Var) -> int:
        return self._values.setdefault(var, len(self._values))

    def _name(self, stage: Stage, before: Sequence[Layer]) -> str:
        sizes: dict[str, int] = {}
        for weight in stage.weights:
            group = indexed(self._flat.groups[weight.leaf], weight.index)
            sizes[group] = sizes.get(group, 0) + nbytes(self._cut.variable[weight].aval)
        name = max(sizes, key=lambda group: (sizes[group], group), default="layer")
        visits = 1 + sum(layer.name.partition("#")[0] == name for layer in before)
        return name if visits == 1 else f"{name}#{visits}"

    def _source(self, stage: Stage) -> str:
        for eqn in self._cut.equations(stage):
            if any(x in self._flat.weights for x in variables(eqn.invars)) and (
                line := user_line(eqn)
            ):
                return line
        return ""

    def _recomputed(self, closed: core.ClosedJaxpr) -> bool:
        made = [x for eqn in closed.jaxpr.eqns for x in eqn.outvars]
        return 2 * sum(x in self._flat.recomputed for x in made) > len(made)  # most of it

    def _output(self, atom: Any) -> Any:
        if isinstance(atom, core.Literal):
            return jnp.asarray(atom.val, jax.typeof(atom.val).dtype)
        return self._flat.weights[atom] if atom in self._flat.weights else self._values[atom]


def _work(closed: core.ClosedJaxpr, weights: int, asked: derivatives.Demand, name: str) -> Work:
    jaxpr = closed.jaxpr
    try:
        residual_bytes, backward_flops = _backward_work(closed, asked)
    except Exception as error:
        raise ValueError(f"layer {name!r} has no derivative: {error}") from error
    return Work(
        forward_flops=flops(jaxpr),
        backward_flops=backward_flops,
        weight_bytes=total_bytes(jaxpr.invars[:weights]),
        read_bytes=total_bytes(jaxpr.invars[weights:]),
        write_bytes=total_bytes(jaxpr.outvars),
        residual_bytes=residual_bytes,
    )


def _backward_work(closed: core.ClosedJaxpr, asked: derivatives.Demand) -> tuple[int, int]:
    """Bytes kept for a layer's backward pass, and its FLOPs."""
    if not asked.any:
        return 0, 0
    kept = derivatives.keep(closed, asked)
    plain = without_remats(closed)
    made = kept if plain is closed else derivatives.keep(plain, asked)
    whole = derivatives.backward_jaxpr(plain, asked, made).jaxpr
    # A user's own derivative gives gradients that nobody asks for, which no compiler computes.
    asked_for = program(whole.invars, whole.outvars, whole.eqns).jaxpr
    # What is made of weights alone is made anew at each visit, and in the user's program once.
    moving = depends(asked_for, asked_for.invars[len(asked.weights) :])
    again = (n for eqn, n in products(asked_for) if moving.isdisjoint(variables(eqn.invars)))
    return sum(nbytes(aval) for aval in kept.kept), flops(asked_for) - sum(again)


def indexed(path: str, index: tuple[int, ...]) -> str:
    """The path of a slice of a stacked parameter, as `blocks[3]`."""
    return path + "".join(f"[{i}]" for i in index)
