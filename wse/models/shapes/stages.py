"""Classifiers of images in stages that are each smaller and wider, in closed form: ConvNeXt.

Of a block of width d a filter of 49 taps reads each channel alone, and two products widen to 4 d
and back: 49 d + 8 d^2 parameters and biases, norms. Sources: Liu et al., arXiv 2201.03545; Woo et
al., arXiv 2301.00808.
"""

from dataclasses import dataclass, replace
from math import prod
from typing import Any

from wse._numbers import positive, short
from wse.models.shapes.convolution import convolution
from wse.models.shapes.stack import CORRECT
from wse.models.shapes.workload import Layer, Workload

TAPS = 7  # of a filter, along each side


@dataclass(frozen=True)
class Stages:
    """A ConvNeXt.

    Attributes:
        widths: channels of each stage.
        depths: blocks of each stage.
        size: sides of the image.
        channels: of the image.
        patch: side of the squares that the first filters read, one beside another.
        classes: that leave.
        scaled: a trained factor for each channel of what a block adds (version 1).
        evened: channels are weighed by their share of all, with scale and shift (version 2).
        nonlinearity: between the two products.

    Raises:
        ValueError: sizes that are not positive, depths of another number than the widths, or an
            image of which nothing is left in the last stage.
    """

    widths: tuple[int, ...] = (96, 192, 384, 768)
    depths: tuple[int, ...] = (3, 3, 9, 3)
    size: tuple[int, int] = (224, 224)
    channels: int = 3
    patch: tuple[int, int] = (4, 4)
    classes: int = 1000
    scaled: bool = True
    evened: bool = False
    nonlinearity: str = "gelu"

    def __post_init__(self) -> None:
        counts = (self.channels, self.classes)
        for count in (*self.widths, *self.depths, *self.size, *self.patch, *counts):
            positive("a size of the ConvNeXt", count, CORRECT)
        if len(self.widths) != len(self.depths) or not self.widths:
            raise ValueError(
                f"depths are {short(self.depths)}, widths {short(self.widths)}; there must be one "
                "of each for every stage: correct one of them"
            )
        if not all(self.sides(len(self.widths) - 1)):
            raise ValueError(
                f"size is {self.size}; of patches {self.patch}, halved {len(self.widths) - 1} "
                "times, nothing is left: take a larger image"
            )

    def sides(self, stage: int) -> tuple[int, int]:
        """Sides of what a stage works on; what does not fill a patch is left out."""
        rows, columns = (n // p >> stage for n, p in zip(self.size, self.patch, strict=True))
        return rows, columns


def convnext(name: str, net: Stages) -> Workload:
    """The layers of a ConvNeXt.

    >>> convnext("ConvNeXt-T", Stages()).parameters
    28589128
    """
    first, last = net.widths[0], net.widths[-1]
    sides, ports = net.sides(0), (net.channels, first)
    # A norm of scale and shift stands behind the first filters, and before all others.
    layers = [_plain("stem", ports, sides, net.size, taps=prod(net.patch), more=3 * first)]
    for stage, (d, depth) in enumerate(zip(net.widths, net.depths, strict=True)):
        before, sides = sides, net.sides(stage)
        if stage:
            ports, count = (net.widths[stage - 1], d), d + 2 * net.widths[stage - 1]
            layers.append(_plain(f"shrink_{stage}", ports, sides, before, taps=4, more=count))
        for i in range(depth):
            layers += _block(net, f"stage_{stage}.{i}", d, sides)
    common: dict[str, Any] = {"features": last, "sparsifiable": False, "kept": last}
    count = 2 * last + last * net.classes + net.classes
    layers.append(Layer("head", last, net.classes, count, multiplies=last * net.classes, **common))
    enters = net.channels * prod(net.size)
    return Workload(name, tuple(layers), enters, net.classes, origin=("convnext", net))


def _block(net: Stages, where: str, d: int, sides: tuple[int, int]) -> list[Layer]:
    places, wide = prod(sides), 4 * d
    alone = _plain(f"{where}.filter", (1, d), sides, sides, taps=TAPS**2, more=3 * d, block=where)
    return [
        # Each filter reads one channel of all that enter; the norm behind reads what leaves.
        replace(alone, inputs=places * d, kept=2 * places * d),
        _product(f"{where}.up", (d, wide), sides, wide + 2 * wide * net.evened, where),
        _product(f"{where}.down", (wide, d), sides, d + d * net.scaled, where),
    ]


def _product(
    name: str, channels: tuple[int, int], sides: tuple[int, int], more: int, block: str
) -> Layer:
    """A product of every place by itself, as the published classes have it."""
    made = _plain(name, channels, sides, sides, more=more, block=block)
    return replace(made, kind="products", features=min(channels), grid=())


def _plain(
    name: str,
    channels: tuple[int, int],
    sides: tuple[int, int],
    before: tuple[int, int],
    *,
    taps: int = 1,
    more: int,
    block: str = "",
) -> Layer:
    """A convolution with so many parameters more, whose norms are not over the batch."""
    made = convolution(name, channels, sides, taps=taps, before=before, block=block)
    return replace(made, parameters=made.parameters + more)
