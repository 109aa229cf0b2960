"""Classifiers of images by attention within windows, in closed form: Swin 1 and 2.

Of a stage of width d on n places, in windows of w places to a side, a block has

    parameters  4 d^2 + 2 d f + (2 w - 1)^2 heads, biases and norms
    multiplies  n (4 d^2 + 2 d f) + 2 n w^2 d

where attention meets places that fill the last windows too. Source: Liu et al., arXiv 2103.14030.
Swin 2 (arXiv 2111.09883) has in place of the table a net of 512 units that makes it anew,

    parameters  3 512 + 512 heads + heads
    multiplies  (2 w - 1)^2 (2 512 + 512 heads), once for a batch; here with every sample
"""

from dataclasses import dataclass
from math import prod
from typing import Any

from wse._numbers import positive, short
from wse.models.shapes.stack import CORRECT
from wse.models.shapes.transformer import ATTENTION
from wse.models.shapes.vision import patches
from wse.models.shapes.workload import Layer, Workload

Sides = tuple[int, int]
UNITS = 512  # sourced: Liu et al., arXiv 2111.09883: of the net that makes the table


@dataclass(frozen=True)
class Windowed:
    """A Swin transformer.

    Attributes:
        width: features of the first stage; each has twice those of the one before.
        depths: blocks of each stage; every other one moves its windows by half of one.
        heads: of each stage.
        filters: between the products after attention, of each stage.
        size: sides of the image.
        channels: of the image.
        patch: sides of a patch.
        window: places along each side of a window.
        classes: that leave.
        bias: of queries, keys and values.
        placed: whether each patch has a trained place.
        nonlinearity: between the products after attention.
        cosines: Swin 2: scores are cosines, norms stand behind, and a stage that is smaller than
            a window has windows as high as itself.

    Raises:
        ValueError: sizes that are not positive, heads or filters of another number of stages,
            heads that do not divide the features, patches that do not tile the image, or a stage
            that is smaller than a window.
    """

    width: int
    depths: tuple[int, ...]
    heads: tuple[int, ...]
    filters: tuple[int, ...]
    size: Sides = (224, 224)
    channels: int = 3
    patch: Sides = (4, 4)
    window: int = 7
    classes: int = 1000
    bias: bool = True
    placed: bool = False
    nonlinearity: str = "gelu"
    cosines: bool = False

    def __post_init__(self) -> None:
        counts = (self.width, self.channels, self.window, self.classes)
        for count in (*counts, *self.depths, *self.heads, *self.filters):
            positive("a size of the Swin", count, CORRECT)
        if not len(self.depths) == len(self.heads) == len(self.filters):
            raise ValueError(
                f"depths are {short(self.depths)}, num_heads {short(self.heads)}; there must be "
                "one of each for every stage: correct one of them"
            )
        patches(self.size, self.patch)
        for i, heads in enumerate(self.heads):
            if self.features(i) % heads:
                raise ValueError(
                    f"num_heads of stage {i + 1} is {heads}; it must divide its "
                    f"{self.features(i)} features: change one of them"
                )
            sides = zip(self.size, self.patch, strict=True)
            if self.cosines and not min(n // p >> i for n, p in sides):
                raise ValueError(
                    f"image_size is {[*self.size]}; of its patches, halved {i} times, nothing is "
                    "left: take a larger image, or fewer stages"
                )
            if not self.cosines and min(self.sides(i)) < self.window:
                raise ValueError(
                    f"window_size is {self.window}; stage {i + 1} has {self.sides(i)} places, "
                    "fewer than a window: take a larger image, or a smaller window"
                )

    def features(self, stage: int) -> int:
        """Of a place."""
        return self.width << stage

    def sides(self, stage: int) -> Sides:
        """Places of a stage along each side; an odd one is filled up when it is halved."""
        rows, columns = (
            -(-(n // p) // 2**stage) for n, p in zip(self.size, self.patch, strict=True)
        )
        return rows, columns

    def windows(self, stage: int) -> int:
        """Places along each side of a window of a stage."""
        # The class takes the rows of the whole image, halved and rounded down.
        rows = self.size[0] // self.patch[0] >> stage
        return min(rows, self.window) if self.cosines else self.window

    def moves(self, stage: int) -> int:
        """By how many places every other block of a stage moves its windows."""
        rows = self.size[0] // self.patch[0] >> stage
        least = rows if self.cosines else min(self.sides(stage))
        return self.window // 2 if least > self.windows(stage) else 0

    def filled(self, stage: int) -> Sides:
        """Sides of a stage, filled up to whole windows."""
        w = self.windows(stage)
        rows, columns = (-(-side // w) * w for side in self.sides(stage))
        return rows, columns


def swin(name: str, net: Windowed) -> Workload:
    """The layers of a Swin transformer.

    >>> filters = (384, 768, 1536, 3072)
    >>> swin("Swin-T", Windowed(96, (2, 2, 6, 2), (3, 6, 12, 24), filters)).parameters
    28288354
    """
    d, n, own = net.width, prod(net.sides(0)), net.channels * prod(net.patch)
    common: dict[str, Any] = {"sparsifiable": False}
    count = own * d + 3 * d + n * d * net.placed
    layers = [Layer("patches", n * own, n * d, count, multiplies=n * own * d, features=d, **common)]
    for stage, depth in enumerate(net.depths):
        if stage:
            d, n = net.features(stage - 1), prod(net.sides(stage))
            sizes, count = (4 * n * d, 2 * n * d), 8 * d * d + (4 if net.cosines else 8) * d
            made: dict[str, Any] = {"multiplies": n * 8 * d * d, "features": d}
            layers.append(Layer(f"merge_{stage}", *sizes, count, kept=4 * n * d, **made))
        for i in range(depth):
            layers += _block(net, f"stage_{stage}.{i}", stage)
    d, classes = net.features(len(net.depths) - 1), net.classes
    count = 2 * d + d * classes + classes
    layers.append(Layer("head", d, classes, count, multiplies=d * classes, kept=d, **common))
    enters = net.channels * prod(net.size)
    origin, tokens = ("swin", net), prod(net.sides(0))
    return Workload(name, tuple(layers), enters, classes, tokens=tokens, origin=origin)


def _block(net: Windowed, where: str, stage: int) -> list[Layer]:
    d, heads, f = net.features(stage), net.heads[stage], net.filters[stage]
    n, m, w = prod(net.sides(stage)), prod(net.filled(stage)), net.windows(stage)
    seen, table, more = w**2, (2 * w - 1) ** 2 * heads, 0
    if net.cosines:
        more = (2 * w - 1) ** 2 * UNITS * (2 + heads)
        table = UNITS * (3 + heads) + heads

    def layer(
        name: str, sizes: tuple[int, int], count: int, products: int, kept: int, **more: Any
    ) -> Layer:
        common: dict[str, Any] = {"features": d, "block": where, **more}
        return Layer(f"{where}.{name}", *sizes, count, multiplies=products, kept=kept, **common)

    first = 3 * d * d + (2 if net.cosines else 3) * d * net.bias + 2 * d
    return [
        layer("qkv", (n * d, 3 * m * d), first, 3 * m * d * d, n * d),
        layer("scores", (3 * m * d, m * d), table, 2 * m * seen * d + more, 3 * m * d, **ATTENTION),
        layer("attended", (m * d, n * d), d * d + d, m * d * d, m * d),
        layer("up", (n * d, n * f), d * f + f + 2 * d, n * d * f, n * d),
        layer("down", (n * f, n * d), d * f + d, n * d * f, n * f),
    ]
