"""A traced training function as a workload: what estimates need of a graph, without its arrays."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from math import ceil, prod
from typing import Any

from jax.extend import core

from wse._numbers import of_loss
from wse.graph import layers as graph
from wse.graph.equations import depends, variables
from wse.graph.flops import (
    convolving,
    flops,
    inner_programs,
    mostly_convolves,
    products,
    shorter_side,
    widest,
)
from wse.graph.layers import Graph
from wse.graph.trace import trace
from wse.machine.support.rules import Use
from wse.models import operators, to_layout
from wse.models.blocks import numbered
from wse.models.doors.given import ReadModel
from wse.models.held import Held, held, sizes, still
from wse.models.moved import Moved, multiplies_activations, visits
from wse.models.row import reread, stands_in_row, streams
from wse.models.shapes.workload import Layer, Part, Workload

LOOPED = "within a loop that ends when data say so (while)"
UNROLL = (
    "write a loop of a fixed number of turns, as lax.scan or lax.fori_loop with numbers for its "
    "ends"
)

# Their operations grow faster than their numbers, and are no products.
UNCOUNTED = frozenset(
    {"fft", "cholesky", "eig", "eigh", "lu", "geqrf", "qr", "householder_product", "svd", "schur"}
    | {"hessenberg", "tridiagonal", "triangular_solve", "tridiagonal_solve"}
    | {"pallas_call", "ffi_call", "pure_callback"}
)


def traced(
    model: Any, params: Any, batch: Any, sparsity: Any = None, **said: Any
) -> tuple[Workload, Any, tuple[str, ...], tuple[Use, ...], Graph]:
    """A graph, or a loss function with params and batch, as a workload.

    Args:
        model: one of these.
        params: of a loss function.
        batch: of a loss function; of a graph, the samples of a step, None: as traced.
        sparsity: a method of `wse.sparsity`, whose rule says which parameters it thins.
        **said: of a loss function, `has_aux` and `batch_size`, as for `wse.trace`.

    Returns:
        The workload, the samples of a step, what is to be said about these, the operations,
        and the graph.

    Raises:
        ValueError: something else, what `wse.trace` refuses, or products that all lie within loops
            whose turns data decide.
    """
    said = of_loss(model, said)
    if callable(model):
        model, batch = trace(model, params, batch, **said), None
    made = workload(model, sparsity=sparsity)
    size = model.batch_size if batch is None else batch
    uses = tuple({use: 0 for _, _, use in operators.of_graph(model)})
    looped = any(_loops(layer.jaxpr.jaxpr) for layer in model.layers)
    if looped and not made.forward_flops:
        raise ValueError(
            f"all products of the loss lie {LOOPED}, so that nobody knows how many run: {UNROLL}"
        )
    unsaid = (f"products {LOOPED} are not counted: {UNROLL}",) * looped
    said_too = (*unsaid, *_uncounted({x.operation for x in uses}), *_unravelled(model))
    return made, size, (*model.cautions, *said_too), uses, model


SHARED = (
    "of shard_map the part of one device is counted; systems share a batch without being told: "
    "take it out"
)


def _loops(program: core.Jaxpr) -> bool:
    """Whether products lie within a loop whose number of turns data decide."""
    return any(
        (eqn.primitive.name == "while" and any(map(flops, inner_programs(eqn))))
        or any(map(_loops, inner_programs(eqn)))
        for eqn in program.eqns
    )


def _uncounted(operations: set[str]) -> Iterator[str]:
    if "shard_map" in operations:
        yield SHARED
    if found := sorted(operations & UNCOUNTED):
        yield (
            f"operations of {', '.join(found)} are not counted: the time is of products and "
            "convolutions alone"
        )


def _unravelled(model: Graph) -> Iterator[str]:
    """Say where the loss makes its matrices of vectors, whose parts have no names."""
    if any(len(each.shape) > 1 for each in model.shapes):
        return
    for layer in model.layers:
        program = layer.jaxpr.jaxpr
        weights, reads = program.invars[: len(layer.weights)], program.invars[len(layer.weights) :]
        held = depends(program, weights) - depends(program, reads)
        if any(x in held for eqn, _ in products(program) for x in variables(eqn.invars)):
            yield (
                "the parameters are vectors, of which the loss makes matrices: these cannot be "
                "told apart, and are taken for one layer; pass the tree that holds the matrices"
            )
            return


def workload(model: Any, name: str = "traced model", sparsity: Any = None) -> Workload:
    """The layers of a graph, each with its parameters, operations and activations per sample.

    Operations are per sample of the batch that was traced. Weights that an earlier layer has
    visited come again as a layer of their own, without work: streamed again, counted once. What a
    visit reads waits for the backward pass. A visit that does nothing but multiply by one matrix
    after another gives "dense" layers with the matrices' inputs and outputs; features are the
    shorter side of a matrix. Layers named after an embedding, a norm or a head stay dense, as in
    the vendor's default. Layers are one block up to the first number in their path; what waits of
    a visit to several is told block by block, as `wse.models.blocks` has it.

    Args:
        model: from `wse.trace`.
        name: what tables call it.
        sparsity: a method of `wse.sparsity`; None: no weight is zero.

    Raises:
        ValueError: something else than a graph.

    >>> import jax.numpy as jnp
    >>> import wse
    >>> params, batch = {"w": jnp.ones((4, 2))}, jnp.ones((3, 4))
    >>> graph = wse.trace(lambda params, x: jnp.sum(x @ params["w"]), params, batch)
    >>> wse.traced.workload(graph).parameters
    8
    """
    if isinstance(model, ReadModel):
        raise ValueError(
            f"model is a ReadModel, of {model.workload.name}; times are of its layers: pass its "
            "workload, and batch and machine as the file has them, or the file to wse.port"
        )
    if not isinstance(model, Graph):
        raise ValueError(
            f"model is a {type(model).__name__}; it must be a wse.workload.Workload, a wse.Graph "
            "or a loss function with params and batch: pass one of these"
        )
    batch = model.batch_size
    shares, trained = _shares(model, sparsity), model.trained
    seen: set[Any] = set()
    layers: list[Layer] = []
    for layer, moved in zip(model.layers, visits(model), strict=True):
        brought = held(model, layer, shares, trained)
        if again := [x for x in brought if x.weight in seen]:
            layers.append(_again(f"{layer.name} again", again))
        own = [x for x in brought if x.weight not in seen]
        plain = _chain(layer, own, batch)
        made = _waiting(plain, moved.kept // batch) or [_layer(model, layer, moved, own)]
        made = made if layer.demand.any else [_unkept(x) for x in made]
        layers += _with_gradients(made, layer.work.backward_flops / (2 * batch), not layers)
        seen |= set(layer.weights)
    first, last = layers[0], layers[-1]
    entering, direct = streams(model)
    enters, compared = (
        max(1, _numbers(model, places) // batch)
        for places in (entering or model.inputs, direct - entering)
    )
    inputs = first.inputs if first.kind == "dense" else enters
    # A net of dense layers ends with what it makes, all others with the loss.
    outputs = last.outputs if last.kind == "dense" else compared
    in_row = stands_in_row(model)
    words = bool(entering) and all(model.values[x].dtype.kind in "iu" for x in entering)
    made = Workload(
        name,
        _numbered(layers),
        inputs,
        outputs,
        in_row=in_row,
        by_number=words,
        writes_matrices=multiplies_activations(model),
    )
    if not made.is_dense_chain:
        return made
    doubt, is_skip = reread(model, last.outputs)
    comes_in = None if direct - entering else inputs
    plain = tuple(replace(layer, features=None) for layer in made.layers)  # as of one by name
    return replace(made, layers=plain, in_row=not is_skip, doubt=doubt, comes_in=comes_in)


def _again(name: str, own: list[Held]) -> Layer:
    count = sum(x.count for x in own)
    idle: dict[str, Any] = {"multiplies": 0, "kept": 0, "moved": 0, "products": 0}
    told: dict[str, Any] = {"shared": True, "sparsifiable": False, "frozen": still(own)}
    return Layer(name, 1, 1, count, "again", **told, **idle)


def _shares(model: Graph, sparsity: Any) -> list[float]:
    """Of each parameter, the share of its weights that is not zero when training ends."""
    if sparsity is None:
        return [1.0] * len(model.shapes)
    params = dict(zip(model.parameters, model.shapes, strict=True))
    # As a tree, a dictionary is in the order of its sorted keys.
    kept = dict(zip(sorted(params), sparsity.rule.counts(params, sparsity.sparsity), strict=True))
    counts = [(kept[name], prod(shape.shape)) for name, shape in params.items()]
    return [1.0 if count is None else count / size for count, size in counts]


def _names(layer: graph.Layer, matrices: list[Held]) -> list[str]:
    """What the user calls the matrices of a visit; one alone as the visit."""
    names = to_layout.called(layer)
    return [names[x.weight] if len(matrices) > 1 else layer.name for x in matrices]


def _numbered(layers: list[Layer]) -> tuple[Layer, ...]:
    """A name that comes again has its number, as a visit's."""
    seen: Counter[str] = Counter()
    found: list[Layer] = []
    for layer in layers:
        seen[layer.name] += 1
        times = seen[layer.name]
        found.append(layer if times == 1 else replace(layer, name=f"{layer.name}#{times}"))
    return tuple(found)


def _chain(layer: graph.Layer, own: list[Held], batch: int) -> list[Layer]:
    """A visit as dense layers one after another; empty if it is something else."""
    matrices = [x for x in own if len(x.sides) == 2]
    rest = [x for x in own if len(x.sides) < 2]
    multiplied = -(-layer.work.forward_flops // (2 * batch))
    joined = all(a.sides[1] == b.sides[0] for a, b in pairwise(matrices))
    if (
        not joined
        or len(matrices) + len(rest) < len(own)
        or multiplied != sum(x.count for x in matrices)
    ):
        return []
    layers: list[Layer] = []
    for name, matrix in zip(_names(layer, matrices), matrices, strict=True):
        n, m = matrix.sides
        bias = next((x for x in rest if x.sides == (m,)), None)
        both = [matrix] if bias is None else [matrix, bias]
        rest = [x for x in rest if x is not bias]
        layers.append(
            Layer(
                name,
                n,
                m,
                sum(x.count for x in both),
                features=min(n, m),
                block=numbered(name),
                sparsifiable=not _left_dense(name),
                density=matrix.density,
                visit=layer.name,
                frozen=still(both),
            )
        )
    return [] if rest else layers


def _waiting(plain: list[Layer], kept: int) -> list[Layer]:
    """Dense layers, of which more waits than what enters, as by a gate, or less, as read before."""
    more = kept - sum(x.inputs for x in plain)
    if not plain or not more:
        return plain
    return [replace(plain[0], kept=max(0, plain[0].inputs + more)), *plain[1:]]


def _unkept(layer: Layer) -> Layer:
    """A layer without a backward pass, as below all that is trained: nothing waits for one."""
    return replace(layer, kept=0, parts=(Part(layer.block or f"layer {layer.name}", 0, 0, 0),))


def _layer(model: Graph, layer: graph.Layer, moved: Moved, own: list[Held]) -> Layer:
    batch = model.batch_size
    matrices = [x for x in own if len(x.size) > 1]
    count = sum(x.count for x in matrices)
    density = sum(x.count * x.density for x in matrices) / count if count else 1.0
    largest: Any = max(sizes(model, layer.weights), key=prod)
    program = layer.jaxpr.jaxpr
    constants = {place for place, _ in model.constants}
    reads = max(1, _numbers(model, [x for x in layer.reads if x not in constants]) // batch)
    multiplied = -(-layer.work.forward_flops // (2 * batch))
    convolves = mostly_convolves(program)
    laid = convolves and not to_layout.unlaid(layer)
    grid = to_layout.of_layer(layer) if laid else ()
    images = tuple(replace(x, batch=x.batch // batch) for x in grid if x.batch % batch == 0)
    vectors, filters = sum(len(x.size) == 1 for x in own), sum(len(x.size) > 2 for x in own)
    normed = bool(grid) and vectors > filters  # more than a bias for each
    return Layer(
        layer.name,
        inputs=reads,
        outputs=max(1, _numbers(model, layer.writes) // batch),
        parameters=sum(x.count for x in own),
        kind="convolution" if convolves else "products",
        multiplies=multiplied,
        kept=moved.kept // batch,
        moved=(moved.read + moved.written) // batch,
        products=moved.started,
        units=widest(program, program.invars[: len(layer.weights)]),
        features=_features(program, largest) or reads,
        block=numbered(layer.name),
        sparsifiable=len(largest) > 1 and multiplied > 0 and not _left_dense(layer.name),
        density=density,
        grid=images if len(images) == len(grid) else (),
        normed=normed,
        visit=layer.name,
        parts=tuple(
            Part(x.block, x.enters // batch, x.kept // batch, x.moved // batch) for x in moved.parts
        ),
        frozen=still(own),
        convolving=multiplied * convolving(program) // max(1, flops(program)),
    )


def _features(program: Any, largest: tuple[int, ...]) -> int | None:
    return min(largest) if len(largest) == 2 else shorter_side(program, largest)


def _with_gradients(made: list[Layer], backward: float, starts: bool) -> list[Layer]:
    """The layers of a visit with its multiply-adds backward, where these are not the usual ones."""
    forward = [layer.forward_flops / 2 for layer in made]
    usual = 2 * sum(forward) - (forward[0] if starts else 0)
    if abs(backward - usual) < len(made):  # each was rounded up
        return made
    shares = [count / max(1, sum(forward)) for count in forward]
    return [
        replace(layer, backward=ceil(share * backward))
        for layer, share in zip(made, shares, strict=True)
    ]


def _numbers(model: Graph, places: Iterable[int]) -> int:
    return sum(prod(model.values[place].shape) for place in places)


def _left_dense(name: str) -> bool:
    # sourced: the default filter of the vendor's sparsity, embedding, norm, lm_head
    return any(word in name.lower() for word in ("embed", "norm", "head"))
