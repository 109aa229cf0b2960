"""How large an image a net can train on: what stays on the wafer between the two passes."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from wse._numbers import check_kinds
from wse.layout.pieces import VALUE_BYTES, Layout, Shape, Wafer, check_axes, part
from wse.layout.splits import layouts


@dataclass(frozen=True)
class Node:
    """A layer of a net, and what it reads.

    Attributes:
        shape: the layer.
        reads: places of the layers whose outputs it reads, joined; -1 is the net's input. Pooling
            in between is computed again, and not kept.

    >>> from wse import layout
    >>> last = layout.unet((64, 64), (8, 16)).nodes[-1]
    >>> last.shape.channels, last.shape.filters, last.reads
    (8, 1, (6,))
    """

    shape: Shape
    reads: tuple[int, ...]

    def __post_init__(self) -> None:
        check_kinds(self)


@dataclass(frozen=True)
class Net:
    """Layers with skip connections.

    Attributes:
        name: what tables call it.
        nodes: in the order of the forward pass.
        inputs: numbers per place that enter.

    Raises:
        ValueError: a layer that reads a later one.

    >>> from wse import layout
    >>> net = layout.unet((64, 64), (8, 16))
    >>> [node.shape.name for node in net.nodes]
    ['down_0a', 'down_0b', 'down_1a', 'down_1b', 'up_0', 'up_0a', 'up_0b', 'outputs']
    """

    name: str
    nodes: tuple[Node, ...]
    inputs: int

    def __post_init__(self) -> None:
        check_kinds(self)
        for i, node in enumerate(self.nodes):
            if not all(-1 <= read < i for read in node.reads):
                raise ValueError(
                    f"layer {node.shape.name!r} of {self.name!r} reads {node.reads}; it can only "
                    "read the input (-1) and earlier layers: reorder the layers"
                )

    @property
    def tensors(self) -> tuple[tuple[int, int, tuple[int, ...]], ...]:
        """(batch, channels, places) of the input and of every layer's output."""
        first = self.nodes[0].shape
        outputs = [(x.shape.batch, x.shape.filters, x.shape.outputs) for x in self.nodes]
        return ((first.batch, self.inputs, first.size), *outputs)


def unet(
    size: tuple[int, ...],
    filters: Sequence[int] = (32, 64, 128, 256),
    *,
    inputs: int = 1,
    outputs: int = 1,
    batch: int = 1,
    strided: bool = False,
) -> Net:
    """A U-Net: two convolutions of three taps per level, down and up again, skips joined.

    Going down halves the image, by pooling or by the stride of a level's first convolution; going
    up is a transposed convolution of two taps. A convolution of one tap makes the outputs. This is
    the U-Net of the Model Zoo (vision/pytorch/unet).

    Args:
        size: of the image, (height, width) or (depth, height, width); 2^(levels - 1) divides it.
        filters: of each level, the widest image first.
        inputs: numbers per place that enter.
        outputs: numbers per place that leave.
        batch: samples.
        strided: whether a stride halves the image, instead of pooling.

    Raises:
        ValueError: an image that does not halve often enough.

    >>> from wse import layout
    >>> len(layout.unet((64, 64), (8, 16)).nodes)
    8
    """
    check_axes("size", size)
    check_axes("filters", filters)
    levels, axes = len(filters), len(size)
    if not levels:
        raise ValueError(f"filters is {filters}; a net has one level at least: pass (32, 64)")
    if any(n % 2 ** (levels - 1) for n in size):
        raise ValueError(
            f"size is {size}; {levels} levels halve it {levels - 1} times: pass multiples of "
            f"{2 ** (levels - 1)}"
        )
    three, two, one = (3,) * axes, (2,) * axes, (1,) * axes
    nodes: list[Node] = []
    skips: list[int] = []
    channels = inputs
    for level, width in enumerate(filters):
        image = tuple(n // 2**level for n in size)
        stride = 2 if strided and level > 0 else 1
        above = tuple(stride * n for n in image)
        first = Shape(f"down_{level}a", batch, above, channels, width, three, stride)
        second = Shape(f"down_{level}b", batch, image, width, width, three)
        nodes += [Node(first, (len(nodes) - 1,)), Node(second, (len(nodes),))]
        skips.append(len(nodes) - 1)
        channels = width
    for level in range(levels - 2, -1, -1):
        width, image = filters[level], tuple(n // 2**level for n in size)
        below = tuple(n // 2 for n in image)
        up = Shape(f"up_{level}", batch, below, channels, width, two, upsample=2)
        first = Shape(f"up_{level}a", batch, image, 2 * width, width, three)
        second = Shape(f"up_{level}b", batch, image, width, width, three)
        last = len(nodes)
        nodes += [
            Node(up, (last - 1,)),
            Node(first, (last, skips[level])),
            Node(second, (last + 1,)),
        ]
        channels = width
    nodes.append(Node(Shape("outputs", batch, size, channels, outputs, one), (len(nodes) - 1,)))
    return Net(f"U-Net {' x '.join(map(str, size))} x {inputs}", tuple(nodes), inputs)


def activation_bytes(net: Net) -> int:
    """What the forward pass keeps: the input and every layer's output once, in half precision.

    Norms and activation functions are computed again from the output of their convolution.

    >>> from wse import layout
    >>> volume = layout.unet((512, 512, 512), (32, 64, 128, 256))
    >>> round(layout.activation_bytes(volume) / 1e9, 1)
    57.2
    """
    return sum(VALUE_BYTES * batch * channels * prod(size) for batch, channels, size in net.tensors)


def needed_bytes(net: Net, wafer: Wafer) -> int:
    """The most memory that one PE needs during a step of training.

    Every tensor is spread over the grid as thinly as its sizes allow. In the backward pass a
    layer's output has made room for its gradient; the gradients of what the layer reads come on
    top, and those of skip connections wait until their layer's turn.

    Args:
        net: the layers.
        wafer: the grid.


    >>> from wse import layout
    >>> net = layout.unet((512, 512), (32, 64))
    >>> layout.needed_bytes(net, layout.Wafer.of()) < layout.Wafer.of().data_bytes
    True
    """
    held = [spread_bytes(*tensor, wafer) for tensor in net.tensors]
    peak = sum(held)
    kept, waiting = sum(held), 0
    early: set[int] = set()  # tensors whose gradient has begun to gather
    for i in range(len(net.nodes) - 1, -1, -1):
        own = i + 1  # the place of its output among the tensors
        if own in early:  # its gradient takes its place
            waiting -= held[own]
        reads = {read + 1 for read in net.nodes[i].reads}
        fresh = {read for read in reads if read > 0} - early
        waiting += sum(held[read] for read in fresh)
        early |= fresh
        peak = max(peak, kept + waiting)
        kept -= held[own]
    return peak


def largest(make: Callable[[int], Net], wafer: Wafer, step: int) -> int:
    """The largest edge, a multiple of `step`, whose net fits.

    Args:
        make: the net of an edge.
        wafer: the grid.
        step: what edges are multiples of.

    Returns:
        The edge; 0 if not even one step fits.

    >>> from wse import layout
    >>> layout.largest(lambda n: layout.unet((n, n), (32, 64)), layout.Wafer.of(), step=512) > 4000
    True
    """

    def too_large(n: int) -> bool:
        return needed_bytes(make(n * step), wafer) > wafer.data_bytes

    high = 1
    while not too_large(high):
        high *= 2
    first = bisect_left(range(high), True, lo=high // 2 + 1, key=too_large)
    return (first - 1) * step


@lru_cache(maxsize=16_384)
def spread_bytes(batch: int, channels: int, size: tuple[int, ...], wafer: Wafer) -> int:
    """Bytes of a tensor in the PE that holds most, in the layout in which that is least."""

    def share(x: Layout) -> int:
        places = prod(part(n, p) for n, p in zip(size, x.size, strict=True))
        return part(batch, x.batch) * part(channels, x.channels) * places

    return VALUE_BYTES * min(share(x) for x in layouts(batch, channels, size, wafer))
