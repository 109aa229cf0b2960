"""Convolutional nets in closed form: ResNet-50, RetinaNet."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from wse._numbers import positive
from wse.layout.pieces import Shape
from wse.models.shapes.workload import Layer, Workload

STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))  # sourced: He et al., arXiv 1512.03385
Stages = Sequence[tuple[int, int, int]]  # width, blocks, and stride of the first
ANCHORS = 9  # sourced: Lin et al., arXiv 1708.02002
PYRAMID = 256  # sourced: the same: channels of every level
STRIDES = (8, 16, 32, 64, 128)  # sourced: the same: of the levels
CORRECT = "correct the shape"


def convolution(
    name: str,
    channels: tuple[int, int],
    places: Sequence[int],
    *,
    taps: int,
    before: Sequence[int] | None = None,
    extra: int = 0,
    block: str = "",
    again: bool = False,
) -> Layer:
    """One convolution: taps of one filter, channels in and out, places that are computed.

    Parameters taps C K + extra, multiplies places taps C K. What enters waits for the backward
    pass; with a norm (`extra` = 2 K or more) so does what leaves, which the norm reads.

    Args:
        name: unique in its workload.
        channels: C that enter, K that leave.
        places: sides of what leaves.
        taps: 9 of a 3 x 3 filter.
        before: sides of what enters; None: `places`.
        extra: parameters of biases and norms.
        block: as of `wse.workload.Layer`.
        again: another layer reads what enters, and has it wait.

    >>> convolution("first", (3, 64), (112, 112), taps=49, before=(224, 224)).multiplies
    118013952
    """
    c, k = channels
    enters, leaves = c * prod(before or places), k * prod(places)
    normed, image = extra >= 2 * k, before or places
    stride = image[0] // places[0]
    return Layer(
        name,
        enters,
        leaves,
        taps * c * k + extra,
        "convolution",
        multiplies=prod(places) * taps * c * k,
        kept=(0 if again else enters) + (leaves if normed else 0),
        block=block,
        grid=loops(name, channels, image, taps, stride=stride),
        normed=normed,
        convolving=0 if 1 < taps == stride ** len(image) else None,
    )


def loops(
    name: str,
    channels: tuple[int, int],
    places: Sequence[int],
    taps: int,
    *,
    stride: int = 1,
    upsample: int = 1,
) -> tuple[Shape, ...]:
    """A convolution of one sample as `wse.layout` lays it out.

    Args:
        name: of the layer.
        channels: C that enter, K that leave.
        places: sides of what enters.
        taps: of one filter, as many along each side.
        stride: places of what enters per place of what leaves.
        upsample: the other way round.
    """
    side = round(taps ** (1 / len(places)))
    flat = (1,) * (2 - len(places))
    size, taps_of = (*flat, *places), (*flat, *(side,) * len(places))
    return (Shape(name, 1, size, *channels, taps_of, stride, upsample),)


def stages_of(width: int, repeats: Sequence[int]) -> Stages:
    """Four stages, each twice as wide as the one before, of so many blocks."""
    return tuple((width << i, n, STAGES[i][2]) for i, n in enumerate(repeats))


def resnet50(
    name: str = "ResNet-50",
    *,
    size: int = 224,
    classes: int = 1000,
    width: int = 64,
    repeats: Sequence[int] = (3, 4, 6, 3),
) -> Workload:
    """ResNet-50: four stages of bottlenecks, the stride in the middle convolution.

    Args:
        name: what tables call it.
        size: side of the image, divisible by 32.
        classes: that leave.
        width: channels of the first stage; each has twice those of the one before.
        repeats: blocks of the four stages.

    Raises:
        ValueError: another size, a width that is not positive, or another number of stages.

    >>> resnet50().parameters
    25557032
    """
    positive("classes", classes, CORRECT)
    stages = _stages(width, repeats)
    layers, wide = backbone(size, stages=stages), 4 * stages[-1][0]
    last = Layer("head", wide, classes, wide * classes + classes, sparsifiable=False)
    origin = "resnet50", {"size": size, "classes": classes, "width": width, "repeats": repeats}
    return Workload(name, (*layers, last), 3 * size * size, classes, origin=origin)


def backbone(size: int, norm: int = 2, stages: Stages = STAGES) -> tuple[Layer, ...]:
    """The convolutions of ResNet-50, with so many trained numbers per channel in each norm."""
    if size < 32 or size % 32:
        raise ValueError(f"size is {size}; it must be divisible by 32: crop or pad the image")
    side, c = size // 2, stages[0][0]
    stem = convolution("stem", (3, c), (side, side), taps=49, before=(size, size), extra=norm * c)
    layers = [stem]
    side //= 2
    for stage, (width, repeats, stride) in enumerate(stages, start=1):
        for i in range(repeats):
            step = stride if i == 0 else 1
            layers += _bottleneck(f"stage_{stage}.{i}", (c, width), side, step, norm)
            side, c = side // step, 4 * width
    return tuple(layers)


def _bottleneck(
    where: str, channels: tuple[int, int], side: int, stride: int, norm: int
) -> list[Layer]:
    c, width = channels
    before, after, wide = (side, side), (side // stride, side // stride), 4 * width
    rows = [
        ("a", (c, width), 1, before, before),
        ("b", (width, width), 9, before, after),
        ("c", (width, wide), 1, after, after),
        ("short", (c, wide), 1, before, after),
    ]
    return [
        convolution(
            f"{where}.{name}",
            ports,
            out,
            taps=taps,
            before=read,
            extra=norm * ports[1],
            block=where,
            again=name == "short",  # "a" reads it too
        )
        for name, ports, taps, read, out in rows
        if name != "short" or c != wide
    ]


def _stages(width: int, repeats: Sequence[int]) -> Stages:
    for name, count in (("width", width), *(("repeats", n) for n in repeats)):
        positive(name, count, CORRECT)
    if len(repeats) != len(STAGES):
        raise ValueError(f"repeats are {[*repeats]}; there are four stages: write [3, 4, 6, 3]")
    return stages_of(width, repeats)


def retinanet(
    name: str = "RetinaNet",
    *,
    size: int = 1024,
    classes: int = 91,
    width: int = 64,
    repeats: Sequence[int] = (3, 4, 6, 3),
    channels: int = PYRAMID,
) -> Workload:
    """RetinaNet: a ResNet, a pyramid of five levels, heads that are shared by the levels.

    The backbone's norms are frozen, as usual for this net: they are no parameters here.

    Args:
        name: what tables call it.
        size: side of the image, divisible by 128.
        classes: of the objects.
        width: of the ResNet, as of `resnet50`.
        repeats: of the ResNet.
        channels: of every level.

    Raises:
        ValueError: another size, or what `resnet50` refuses.

    >>> retinanet().parameters
    34014999
    """
    if size < 128 or size % 128:
        raise ValueError(f"size is {size}; it must be divisible by 128: crop or pad the image")
    for key, count in (("classes", classes), ("channels", channels)):
        positive(key, count, CORRECT)
    stages, c = _stages(width, repeats), channels
    layers = [*backbone(size, norm=0, stages=stages)]
    sides = [size // n for n in STRIDES]
    for level, ((wide, *_), side) in enumerate(zip(stages[1:], sides, strict=False), start=3):
        at = (side, side)
        # The next stage reads what enters too; after the last stage nothing else does.
        last = level == len(stages) + 1
        ports = (4 * wide, c)
        layers.append(convolution(f"lateral_{level}", ports, at, taps=1, extra=c, again=not last))
        layers.append(convolution(f"smooth_{level}", (c, c), at, taps=9, extra=c))
    for level in (6, 7):  # the heads read all levels too
        at = (sides[level - 3],) * 2
        layers.append(convolution(f"pyramid_{level}", (c, c), at, taps=9, extra=c, again=True))
    for head, leaving in (("classes", ANCHORS * classes), ("boxes", ANCHORS * 4)):
        for i, k in enumerate((c, c, c, c, leaving), start=1):
            # One layer over all levels: its weights are streamed once for all of them.
            places, one = (sum(side * side for side in sides),), f"{head}_{i}"
            grid = tuple(x for side in sides for x in loops(one, (c, k), (side, side), 9))
            again = head == "boxes" and i == 1  # the classes read the same levels
            made = convolution(one, (c, k), places, taps=9, extra=k, again=again)
            layers.append(replace(made, grid=grid))
    places = sum(side * side for side in sides) * ANCHORS
    origin = (
        "retinanet",
        {
            "size": size,
            "classes": classes,
            "width": width,
            "repeats": repeats,
            "channels": channels,
        },
    )
    leaves = places * (classes + 4)
    enters = 3 * size * size
    told = enters + places * 5  # of a place with a shape: its class by number, and four sides
    return Workload(name, tuple(layers), enters, leaves, origin=origin, comes_in=told)
