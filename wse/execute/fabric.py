"""How a layer's arrays lie on the rows and columns of one system's devices.

Activations: the batch over the systems, height (or time) over rows, channels over columns; width
over columns where they do not divide the channels. Weights: inputs of a layer over rows, outputs
over columns. An axis that is not divided evenly is left whole. Which axis is which is read from the
layer's convolution; without one, axis 0 is the batch and the last one the channels.

Convolutions are done here: rows exchange halos where a convolution keeps the height, else they add
up their shares of the input channels; columns make the output channels. So are sums and maxima over
windows, each device its own: an axis on which a window would cross to a neighbour is left whole.
XLA's partitioner places what the rest needs, such as sums of products over channels that lie apart,
but it is told for each result where that lies, on one axis of the mesh per axis of the array. Left
more freedom it errs: with jaxlib 0.10.2, gradients came out wrong by their own size where
convolutions were cut while they lay more than once on the devices, where a batch over systems and
rows was spread again, and where slices had steps; windows that cross uneven pieces, indices and
Fourier transforms did not compile. What is in `HELD` therefore finds its arrays whole.
"""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax.extend import core

from wse.graph.equations import alone, structs
from wse.graph.flops import CONVOLUTION, inner_programs

POOLINGS = ("reduce_window_sum", "reduce_window_max", "reduce_window_min")
# What XLA's partitioner is not trusted with, where its operands are cut.
_HELD = """
reduce_window select_and_scatter_add select_and_gather_add gather fft
scatter scatter-add scatter-sub scatter-mul scatter-min scatter-max
"""
HELD = (CONVOLUTION, *POOLINGS, *_HELD.split())

Spec = tuple[Any, ...]  # for each axis of an array the axis, or axes, of the mesh; None: whole


@dataclass(frozen=True)
class Roles:
    """Which axis of an activation is which.

    Attributes:
        batch: the axis of the samples.
        channel: the axis of the channels.
        spatial: the others, in order.
    """

    batch: int
    channel: int
    spatial: tuple[int, ...]


def roles(closed: core.ClosedJaxpr | None, rank: int) -> Roles:
    """Read the axes of a layer's activations of this rank from its convolution, if it has one."""
    for eqn in closed.jaxpr.eqns if closed is not None else ():
        if eqn.primitive.name == CONVOLUTION:
            out = tuple(eqn.params["dimension_numbers"].out_spec)
            if len(out) == rank:
                return Roles(out[0], out[1], out[2:])
    return Roles(0, rank - 1, tuple(range(1, rank - 1)))


def activation(shape: Sequence[int], mesh: tuple[int, int, int], at: Roles) -> Spec:
    """Where an activation lies; what has no channels beside its samples lies whole.

    >>> activation((8, 16, 16, 4), (2, 2, 2), Roles(0, 3, (1, 2)))
    ('system', 'row', None, 'column')
    """
    if len(shape) < 2:
        return ()
    systems, rows, columns = mesh
    found: list[Any] = [None] * len(shape)
    if shape[at.batch] % systems == 0:
        found[at.batch] = "system"
    high = next((axis for axis in at.spatial if shape[axis] % rows == 0), None)
    if high is not None:
        found[high] = "row"
    for axis in (at.channel, *at.spatial):
        if found[axis] is None and shape[axis] % columns == 0:
            found[axis] = "column"
            break
    return tuple(found)


def weight(shape: Sequence[int], mesh: tuple[int, int, int]) -> Spec:
    """Where weights lie: the last two axes are the inputs and outputs of a layer.

    >>> weight((3, 3, 4, 8), (1, 2, 4))
    (None, None, 'row', 'column')
    """
    if len(shape) < 2:
        return ()
    _, rows, columns = mesh
    found: list[Any] = [None] * len(shape)
    found[-2] = "row" if shape[-2] % rows == 0 else None
    found[-1] = "column" if shape[-1] % columns == 0 else None
    return tuple(found)


def laid(
    closed: core.ClosedJaxpr, mesh: Any, lay: Callable[[Any, Roles | None], Any]
) -> core.ClosedJaxpr:
    """A layer's program on the fabric.

    Args:
        closed: the layer.
        mesh: of devices, with the axes "system", "row" and "column".
        lay: lays an array by the roles of its axes; by None, on every device as a whole: so
            convolutions inside an equation, as of a derivative of the user's own, are not cut.
    """

    def placed(eqn: core.JaxprEqn, known: dict[Any, Any]) -> list[Any]:
        if eqn.primitive.name == CONVOLUTION and eqn.params["batch_group_count"] == 1:
            outputs = [convolution(eqn, mesh, *(known[x] for x in eqn.invars))]
        elif eqn.primitive.name in POOLINGS:
            (x,) = (known[x] for x in eqn.invars)
            outputs = [pooling(eqn, mesh, roles(closed, x.ndim), x)]
        else:
            outputs = applied(eqn, known, lay if is_held(eqn) else None)
        return [lay(x, roles(closed, x.ndim)) for x in outputs]

    return retraced(closed, placed)


def applied(
    eqn: core.JaxprEqn, known: dict[Any, Any], lay: Callable[[Any, Roles | None], Any] | None
) -> list[Any]:
    """What an equation gives; with `lay`, of arrays that lie whole."""
    inputs, function = alone(eqn)
    if lay is None:
        return function(*(known[x] for x in inputs))
    return [lay(x, None) for x in function(*(lay(known[x], None) for x in inputs))]


def retraced(
    closed: core.ClosedJaxpr, does: Callable[[core.JaxprEqn, dict[Any, Any]], list[Any]]
) -> core.ClosedJaxpr:
    """The program in which `does` says what each equation gives, of the values known so far."""
    jaxpr = closed.jaxpr

    def run(*args: Any) -> list[Any]:
        known: dict[Any, Any] = dict(zip(jaxpr.invars, args, strict=True))
        for eqn in jaxpr.eqns:
            known.update(zip(eqn.outvars, does(eqn, known), strict=True))
        return [x.val if isinstance(x, core.Literal) else known[x] for x in jaxpr.outvars]

    return jax.make_jaxpr(run)(*structs(jaxpr.invars))


def is_held(eqn: core.JaxprEqn, names: Sequence[str] = HELD) -> bool:
    """Whether an equation, or one inside it, is only right where its arrays lie whole.

    It is one of `names`, a slice with steps, or a pad between values.
    """
    name, params = eqn.primitive.name, eqn.params
    if name == "slice":
        return any(step != 1 for step in params["strides"] or ())
    if name == "pad":
        return any(inside for _, _, inside in params["padding_config"])
    return name in names or any(
        is_held(each, names) for x in inner_programs(eqn) for each in x.eqns
    )


def convolution(eqn: core.JaxprEqn, mesh: Any, x: jax.Array, w: jax.Array) -> jax.Array:
    """A convolution on the fabric: every device does its share of it, and JAX derives that."""
    systems, rows, columns = mesh.devices.shape
    numbers, params = eqn.params["dimension_numbers"], dict(eqn.params)
    image, kernel, out = numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec
    given: list[Any] = [None] * x.ndim
    held: list[Any] = [None] * x.ndim
    made: list[Any] = [None] * x.ndim
    if x.shape[image[0]] % systems == 0:
        given[image[0]] = made[out[0]] = "system"
    grouped = params["feature_group_count"] != 1
    if not grouped and w.shape[kernel[0]] % columns == 0:
        held[kernel[0]] = made[out[1]] = "column"
    halo, added = _halo(params, x.shape[image[2]], w.shape[kernel[2]], rows), False
    if halo:
        given[image[2]] = made[out[2]] = "row"
        params["padding"] = ((0, 0), *params["padding"][1:])
    elif not grouped and x.shape[image[1]] % rows == 0:
        given[image[1]] = held[kernel[1]] = "row"
        added = True
    params.pop("out_sharding", None)

    def share(x: jax.Array, w: jax.Array) -> jax.Array:
        x = _exchanged(x, image[2], halo, rows) if halo else x
        y = jax.lax.conv_general_dilated(x, w, **params)
        return jax.lax.psum(y, "row") if added else y

    spec = jax.sharding.PartitionSpec
    inputs = (spec(*given), spec(*held))
    return jax.shard_map(share, mesh=mesh, in_specs=inputs, out_specs=spec(*made))(x, w)


def pooling(eqn: core.JaxprEqn, mesh: Any, at: Roles, x: jax.Array) -> jax.Array:
    """A sum or a maximum over windows on the fabric: every device does its own, none is shared."""
    where = activation(x.shape, mesh.devices.shape, at)
    cut = (
        (name, axis, x.shape[axis] // mesh.shape.get(name, 1)) for axis, name in enumerate(where)
    )
    kept = (None if crossing(eqn.params, axis, piece) else name for name, axis, piece in cut)
    spec = jax.sharding.PartitionSpec(*kept)

    def share(x: jax.Array) -> jax.Array:
        return eqn.primitive.bind(x, **eqn.params)

    return jax.shard_map(share, mesh=mesh, in_specs=spec, out_specs=spec)(x)


def crossing(params: dict[str, Any], axis: int, piece: int) -> bool:
    """Whether a window reaches from one piece of an axis, of so many places, to the next one."""
    reach = (params["window_dimensions"][axis] - 1) * params["window_dilation"][axis] + 1
    filled = params["padding"][axis] != (0, 0) or params["base_dilation"][axis] != 1
    step = params["window_strides"][axis]
    return filled or reach > step or piece % step > 0


def _halo(params: dict[str, Any], height: int, taps: int, rows: int) -> tuple[int, int] | None:
    """Rows needed from above and below, where the height is kept and neighbours hold them."""
    low, high = params["padding"][0]
    reach = (taps - 1) * params["rhs_dilation"][0]
    still = params["window_strides"][0] == params["lhs_dilation"][0] == 1
    kept = still and low + high == reach and min(low, high) >= 0
    return (low, high) if kept and height % rows == 0 and height // rows >= reach else None


def _exchanged(x: jax.Array, axis: int, halo: tuple[int, int], rows: int) -> jax.Array:
    """Rows with those that they need of their neighbours; beyond the border lie zeros."""
    low, high = halo
    height = x.shape[axis]
    above = jax.lax.slice_in_dim(x, height - low, height, axis=axis)
    below = jax.lax.slice_in_dim(x, 0, high, axis=axis)
    down = [(i, i + 1) for i in range(rows - 1)]
    above = jax.lax.ppermute(above, "row", down)
    below = jax.lax.ppermute(below, "row", [(j, i) for i, j in down])
    return jax.lax.concatenate([above, x, below], axis)
