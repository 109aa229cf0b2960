"""Every operation of a traced function, forward and backward, with the user's own line."""

# JAX annotates only part of what it gives.
# pyright: reportUnknownVariableType=false

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from jax.extend import core

from wse.graph import derivatives
from wse.graph.equations import depends, turned, variables
from wse.graph.flops import inner_programs
from wse.graph.layers import Graph, Layer
from wse.graph.source import nearer
from wse.machine.support.rules import Use

# Calls are looked into. A loop or a branch is an operation itself, and is looked into as well.
CALLS = frozenset(
    {"jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint"}
    | {"custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "custom_lin"}
)
LAID_OUT = frozenset({"transpose", "reshape", "convert_element_type", "copy", "rev"})
# Nothing runs for them.
MARKS = frozenset(
    {"stop_gradient", "name", "optimization_barrier", "copy_p"}
    | {"device_put", "sharding_constraint", "layout_constraint", "pvary"}  # where arrays lie
)
SUMS = frozenset({"add", "add_any", "convert_element_type"})

Uses = Counter[tuple[str, str, Use]]  # by layer and the user's line


def of_graph(graph: Graph) -> Uses:
    """Count the uses of operations by every layer, forward and backward.

    Layers that share a program share its walk.
    """
    walks: dict[int, list[tuple[str, Use]]] = {}
    found: Uses = Counter()
    for layer in graph.layers:
        if layer.program not in walks:
            back = _backward(layer)
            walks[layer.program] = [
                *walk(layer.jaxpr.jaxpr, backward=False),
                *(walk(back, backward=True) if back else ()),
            ]
        found.update((layer.name, line, use) for line, use in walks[layer.program])
    return found


def of_function(closed: core.ClosedJaxpr) -> Uses:
    """Count the uses of operations by a whole function that has no layers, forward only."""
    return Counter(("", line, use) for line, use in walk(closed.jaxpr, backward=False))


def walk(jaxpr: core.Jaxpr, *, backward: bool, call: str = "") -> Iterator[tuple[str, Use]]:
    """Yield the user's line and the use of every equation, inner programs included.

    Args:
        jaxpr: the program.
        backward: whether it is a backward pass.
        call: the line for equations that have none of the user's.
    """
    yield from _walk(
        jaxpr, [True] * len(jaxpr.invars), [False] * len(jaxpr.outvars), backward, call
    )


def _walk(
    jaxpr: core.Jaxpr, varies: Sequence[bool], filters: Sequence[bool], backward: bool, call: str
) -> Iterator[tuple[str, Use]]:
    """Yield as `walk` does, given which inputs vary and which outputs are filters outside."""
    varying = {var for var, some in zip(jaxpr.invars, varies, strict=True) if some}
    flipped = _filters(jaxpr, filters)
    for eqn in jaxpr.eqns:
        name, line = eqn.primitive.name, nearer(eqn, call)
        inputs = [not isinstance(x, core.Literal) and x in varying for x in eqn.invars]
        if not any(inputs) and not eqn.effects:  # a constant, which the compiler computes
            continue
        varying.update(eqn.outvars)
        outputs = [var in flipped for var in eqn.outvars]
        if name not in CALLS | MARKS:
            yield line, _use(eqn, backward, is_filter=any(outputs))
        for inner in inner_programs(eqn):
            same = name in CALLS and len(inner.invars) == len(inputs)
            given = inputs if same else [True] * len(inner.invars)
            kept = outputs if len(inner.outvars) == len(outputs) else [False] * len(inner.outvars)
            yield from _walk(inner, given, kept, backward, line)


def _filters(jaxpr: core.Jaxpr, filters: Sequence[bool]) -> set[Any]:
    """Return the values that become filters of convolutions, as they are or laid out anew."""
    found = {var for var, some in zip(jaxpr.outvars, filters, strict=True) if some}
    for eqn in reversed(jaxpr.eqns):
        if eqn.primitive.name == "conv_general_dilated":
            found.add(eqn.invars[1])
        elif eqn.primitive.name in LAID_OUT and eqn.outvars[0] in found:
            found.add(eqn.invars[0])
    return {var for var in found if not isinstance(var, core.Literal)}


def _backward(layer: Layer) -> core.Jaxpr | None:
    if not layer.demand.any:
        return None
    kept = derivatives.keep(layer.jaxpr, layer.demand)
    return derivatives.backward_jaxpr(layer.jaxpr, layer.demand, kept).jaxpr


def _use(eqn: core.JaxprEqn, backward: bool, *, is_filter: bool) -> Use:
    avals: list[Any] = [atom.aval for atom in (*eqn.invars, *eqn.outvars)]
    ranks = tuple(len(aval.shape) for aval in avals[: len(eqn.invars)])
    dtypes = tuple(str(aval.dtype) for aval in avals)
    return Use(
        eqn.primitive.name, dtypes, ranks, frozenset(_traits(eqn, backward, is_filter)), backward
    )


def _only_sums(eqn: core.JaxprEqn) -> bool:
    """Whether all that a scan carries are sums over its turns, as of losses and of gradients."""
    same, carried = turned(eqn)
    (body,) = inner_programs(eqn)
    made = {var: each for each in body.eqns for var in each.outvars}
    pairs = zip(body.invars[same:], body.outvars[:carried], strict=False)
    changed = [(start, end) for start, end in pairs if end is not start]
    depending = depends(body, [start for start, _ in changed])

    def adds(start: core.Var, atom: Any) -> bool:
        while atom is not start:
            last = made.get(atom) if isinstance(atom, core.Var) else None
            moving = [x for x in variables(last.invars) if x in depending] if last else []
            if last is None or last.primitive.name not in SUMS or len(moving) != 1:
                return False
            atom = moving[0]
        return True

    return all(adds(*pair) for pair in changed)


def _traits(eqn: core.JaxprEqn, backward: bool, is_filter: bool) -> Iterator[str]:
    params: Any = eqn.params
    if is_filter:
        yield "filter"
    if eqn.primitive.name == "scan" and not _only_sums(eqn):
        yield "carries"
    if eqn.primitive.name != "conv_general_dilated":
        return
    # The gradient of a strided convolution's kernel is a dilated one: only the user's own counts.
    if not backward and any(n > 1 for n in params["rhs_dilation"]):
        yield "dilated"
    if any(n > 1 for n in params["lhs_dilation"]):
        yield "transposed"
    if params["feature_group_count"] > 1 or params["batch_group_count"] > 1:
        yield "grouped"
