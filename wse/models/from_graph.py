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
from wse.graph.equations import Weight, depends, variables
from wse.graph.flops import (
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
    shares = _shares(model, sparsity)
    seen: set[Any] = set()
    layers: list[Layer] = []
    for layer, moved in zip(model.layers, visits(model), strict=True):
        again = [weight for weight in layer.weights if weight in seen]
        if again:
            layers.append(_again(f"{layer.name} again", _sizes(model, again)))
        first = [x for x in _as_read(layer) if x not in seen]
        own, density = _sizes(model, first), [shares[x.leaf] for x in first]
        turned = _turned(layer)
        sides = [size[::-1] if x in turned else size for x, size in zip(first, own, strict=True)]
        plain = _chain(layer, _names(model, layer, first), sides, batch, density)
        made = _waiting(plain, moved.kept // batch) or [_layer(model, layer, moved, own, density)]
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


def _again(name: str, sizes: list[tuple[int, ...]]) -> Layer:
    count = sum(map(prod, sizes))
    still: dict[str, Any] = {"multiplies": 0, "kept": 0, "moved": 0, "products": 0}
    return Layer(name, 1, 1, count, "again", shared=True, sparsifiable=False, **still)


def _shares(model: Graph, sparsity: Any) -> list[float]:
    """Of each parameter, the share of its weights that is not zero when training ends."""
    if sparsity is None:
        return [1.0] * len(model.shapes)
    params = dict(zip(model.parameters, model.shapes, strict=True))
    # As a tree, a dictionary is in the order of its sorted keys.
    kept = dict(zip(sorted(params), sparsity.rule.counts(params, sparsity.sparsity), strict=True))
    counts = [(kept[name], prod(shape.shape)) for name, shape in params.items()]
    return [1.0 if count is None else count / size for count, size in counts]


def _as_read(layer: graph.Layer) -> list[Weight]:
    """The weights of a visit in the order in which products read them, then all others."""
    program = layer.jaxpr.jaxpr
    source: dict[Any, Weight] = dict(zip(program.invars, layer.weights, strict=False))
    found: dict[Weight, None] = {}
    multiplying = {id(eqn) for eqn, _ in products(program)}
    for eqn in program.eqns:
        known = [source.get(x) for x in variables(eqn.invars)]
        made_of = dict.fromkeys(x for x in known if x is not None)
        if id(eqn) in multiplying:
            found |= made_of
        elif len(made_of) == 1 and None not in known:
            source |= dict.fromkeys(eqn.outvars, *made_of)
    return [*dict.fromkeys([*found, *layer.weights])]


def _turned(layer: graph.Layer) -> set[Weight]:
    """The matrices whose rows are outputs, as those of PyTorch and Equinox are."""
    program = layer.jaxpr.jaxpr
    source: dict[Any, tuple[Weight, int]] = {  # and the axis that lies first
        var: (weight, 0) for var, weight in zip(program.invars, layer.weights, strict=False)
    }
    found: set[Weight] = set()
    for eqn in program.eqns:
        read = [None if isinstance(x, core.Literal) else source.get(x) for x in eqn.invars]
        if eqn.primitive.name == "dot_general":
            summed: Any = eqn.params["dimension_numbers"][0]
            pairs = zip(read, summed, strict=True)
            found |= {one[0] for one, axes in pairs if one and tuple(axes) == (1 - one[1],)}
        elif read and read[0] and eqn.primitive.name in ("transpose", "convert_element_type"):
            weight, first = read[0]
            turns = eqn.params.get("permutation") == (1, 0)
            source[eqn.outvars[0]] = weight, 1 - first if turns else first
    return found


def _names(model: Graph, layer: graph.Layer, own: list[Weight]) -> list[str]:
    """What the user calls the matrices among these weights of a visit; one alone as the visit."""
    names = to_layout.called(layer)
    sizes = zip(own, _sizes(model, own), strict=True)
    matrices = [weight for weight, size in sizes if len(size) == 2]
    return [names[x] for x in matrices] if len(matrices) > 1 else [layer.name] * len(matrices)


def _numbered(layers: list[Layer]) -> tuple[Layer, ...]:
    """A name that comes again has its number, as a visit's."""
    seen: Counter[str] = Counter()
    found: list[Layer] = []
    for layer in layers:
        seen[layer.name] += 1
        times = seen[layer.name]
        found.append(layer if times == 1 else replace(layer, name=f"{layer.name}#{times}"))
    return tuple(found)


def _chain(
    layer: graph.Layer,
    names: list[str],
    sides: list[tuple[int, ...]],
    batch: int,
    shares: list[float],
) -> list[Layer]:
    """A visit as dense layers one after another; empty if it is something else.

    Of each matrix the sides are its inputs and its outputs.
    """
    matrices: list[Any] = [size for size in sides if len(size) == 2]
    density = [share for size, share in zip(sides, shares, strict=True) if len(size) == 2]
    rest = [size for size in sides if len(size) < 2]
    multiplied = -(-layer.work.forward_flops // (2 * batch))
    joined = all(a[1] == b[0] for a, b in pairwise(matrices))
    if (
        not joined
        or len(matrices) + len(rest) < len(sides)
        or multiplied != sum(map(prod, matrices))
    ):
        return []
    layers: list[Layer] = []
    for i, (n, m) in enumerate(matrices):
        biased = (m,) in rest
        if biased:
            rest.remove((m,))
        layers.append(
            Layer(
                names[i],
                n,
                m,
                n * m + m * biased,
                features=min(n, m),
                block=numbered(names[i]),
                sparsifiable=not _left_dense(names[i]),
                density=density[i],
                visit=layer.name,
            )
        )
    return [] if rest else layers


def _waiting(plain: list[Layer], kept: int) -> list[Layer]:
    """Dense layers, of which more waits than what enters, as by a gate, or less, as read before."""
    more = kept - sum(x.inputs for x in plain)
    if not plain or not more:
        return plain
    return [replace(plain[0], kept=max(0, plain[0].inputs + more)), *plain[1:]]


def _layer(
    model: Graph,
    layer: graph.Layer,
    moved: Moved,
    own: list[tuple[int, ...]],
    shares: list[float],
) -> Layer:
    batch = model.batch_size
    matrices = [(prod(x), share) for x, share in zip(own, shares, strict=True) if len(x) > 1]
    count = sum(size for size, _ in matrices)
    density = sum(size * share for size, share in matrices) / count if count else 1.0
    largest: Any = max(_sizes(model, layer.weights), key=prod)
    program = layer.jaxpr.jaxpr
    constants = {place for place, _ in model.constants}
    reads = max(1, _numbers(model, [x for x in layer.reads if x not in constants]) // batch)
    multiplied = -(-layer.work.forward_flops // (2 * batch))
    convolves = mostly_convolves(program)
    laid = convolves and not to_layout.unlaid(layer)
    grid = to_layout.of_layer(layer) if laid else ()
    images = tuple(replace(x, batch=x.batch // batch) for x in grid if x.batch % batch == 0)
    vectors, filters = (sum(len(x) == 1 for x in own), sum(len(x) > 2 for x in own))
    normed = bool(grid) and vectors > filters  # more than a bias for each
    return Layer(
        layer.name,
        inputs=reads,
        outputs=max(1, _numbers(model, layer.writes) // batch),
        parameters=sum(map(prod, own)),
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


def _sizes(model: Graph, weights: Iterable[Any]) -> list[tuple[int, ...]]:
    return [tuple(model.shapes[x.leaf].shape[len(x.index) :]) for x in weights]


def _numbers(model: Graph, places: Iterable[int]) -> int:
    return sum(prod(model.values[place].shape) for place in places)


def _left_dense(name: str) -> bool:
    # sourced: the default filter of the vendor's sparsity, embedding, norm, lm_head
    return any(word in name.lower() for word in ("embed", "norm", "head"))
