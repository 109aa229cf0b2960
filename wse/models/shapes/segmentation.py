"""U-Nets as the vendor's Model Zoo describes them: any convolutions per block, down and up.

Every level halves the sides and has its own filters; on the way up a transposed convolution of two
taps to a side doubles them, and what the encoder wrote at that level is put beside its output.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from wse._numbers import one_of, positive
from wse.models.shapes.convolution import convolution, loops
from wse.models.shapes.stack import CORRECT
from wse.models.shapes.workload import Layer, Part, Workload

CONVOLUTIONS = ("3x3_conv", "3x3_dw_conv", "1x1_conv")


@dataclass(frozen=True)
class Segmentation:
    """A U-Net. Keys are the Model Zoo's.

    Attributes:
        encoder_filters: channels of each level; the last is the bottom.
        decoder_filters: of each level on the way up, one fewer.
        size: sides of the image or volume.
        input_channels: of it.
        outputs: channels that leave.
        convs_per_block: "3x3_conv", "1x1_conv", or "3x3_dw_conv", one filter for each channel.
        enable_bias: of the convolutions; the last one always has them.
        norm: whether each convolution is followed by a norm with scale and shift.
        skip_connect: what the encoder wrote comes back beside the decoder's.
        initial_conv_filters: of a convolution before the first block; 0: there is none.

    Raises:
        ValueError: sizes that are not positive, sides that cannot be halved so often, another kind
            of convolution, or filters that do not fit together.
    """

    encoder_filters: tuple[int, ...]
    decoder_filters: tuple[int, ...]
    size: tuple[int, ...]
    input_channels: int = 1
    outputs: int = 1
    convs_per_block: tuple[str, ...] = ("3x3_conv", "3x3_conv")
    enable_bias: bool = False
    norm: bool = False
    skip_connect: bool = True
    initial_conv_filters: int = 0

    def __post_init__(self) -> None:
        counts = (self.input_channels, self.outputs)
        for count in (*self.encoder_filters, *self.decoder_filters, *self.size, *counts):
            positive("a size of the U-Net", count, CORRECT)
        if len(self.encoder_filters) != len(self.decoder_filters) + 1:
            raise ValueError(
                f"encoder_filters are {len(self.encoder_filters)} and decoder_filters "
                f"{len(self.decoder_filters)}; the encoder has one more, the bottom: mend them"
            )
        for kind in self.convs_per_block:
            one_of("a kind of convs_per_block", kind, CONVOLUTIONS)
        levels = len(self.decoder_filters)
        if any(side % 2**levels for side in self.size):
            raise ValueError(
                f"size is {self.size}; every side must be divisible by {2**levels} for {levels} "
                "halvings: crop or pad it"
            )


def segmentation(name: str, net: Segmentation) -> Workload:
    """The convolutions of a U-Net, one layer each.

    >>> net = Segmentation((32, 64), (32,), (64, 64), norm=True)
    >>> segmentation("small", net).parameters == sum((
    ...     9 * 32 + 64, 9 * 32 * 32 + 64, 9 * 32 * 64 + 128, 9 * 64 * 64 + 128,
    ...     4 * 64 * 32, 9 * 64 * 32 + 64, 9 * 32 * 32 + 64, 32 + 1))
    True
    """
    levels = len(net.decoder_filters)
    sides = [tuple(side >> level for side in net.size) for level in range(levels + 1)]
    layers: list[Layer] = []
    c = net.input_channels
    if net.initial_conv_filters:
        extra = net.initial_conv_filters * net.enable_bias
        ports = (c, net.initial_conv_filters)
        layers.append(convolution("first", ports, sides[0], taps=_taps(net), extra=extra))
        c = net.initial_conv_filters
    written: list[int] = []
    for level, filters in enumerate(net.encoder_filters):
        made, c = _block(net, f"down_{level}", (c, filters), sides[level])
        layers += made
        written.append(c)
    for i, filters in enumerate(net.decoder_filters):
        level = levels - 1 - i
        ports = (c, filters)
        beside = net.encoder_filters[level] if net.skip_connect else 0
        layers.append(_double(net, f"up_{level}", ports, beside, (sides[level + 1], sides[level])))
        enters = filters + beside
        made, c = _block(net, f"up_{level}", (enters, filters), sides[level])
        layers += made
    layers.append(convolution("head", (c, net.outputs), net.size, taps=1, extra=net.outputs))
    count = prod(net.size)
    enters, leaves = net.input_channels * count, net.outputs * count
    return Workload(name, tuple(layers), enters, leaves, origin=("unet", net))


def unet(
    name: str = "U-Net",
    *,
    size: Sequence[int] = (512, 512),
    filters: Sequence[int] = (32, 64, 128, 256, 512, 1024),
    channels: int = 1,
    classes: int = 2,
    norm: bool = True,
) -> Workload:
    """A U-Net: two convolutions of three taps to a side at every level, halving down, doubling up.

    Args:
        name: what tables call it.
        size: sides of the image or volume; each divisible by 2^(levels - 1).
        filters: channels of each level; the last is the bottom.
        channels: that enter.
        classes: that leave.
        norm: a norm with scale and shift after each convolution.

    Raises:
        ValueError: a size that cannot be halved so often, or is not positive.

    >>> unet(size=(512, 512), filters=(64, 128, 256, 512, 1024), norm=False).parameters
    31030658
    """
    down, up = tuple(filters), tuple(filters[-2::-1])
    net = Segmentation(down, up, tuple(size), channels, classes, enable_bias=True, norm=norm)
    return segmentation(name, net)


def _taps(net: Segmentation) -> int:
    return 3 ** len(net.size)


def _block(
    net: Segmentation, where: str, channels: tuple[int, int], sides: Sequence[int]
) -> tuple[list[Layer], int]:
    """The convolutions of one block, and the channels that leave it."""
    c, filters = channels
    layers: list[Layer] = []
    for i, kind in enumerate(net.convs_per_block, start=1):
        alone = kind == "3x3_dw_conv"
        k = c if alone else filters
        taps = 1 if kind == "1x1_conv" else _taps(net)
        extra = k * (2 * net.norm + net.enable_bias)
        ports = (1 if alone else c, k)  # a filter for each channel alone reads one channel
        one = convolution(f"{where}.conv_{i}", ports, sides, taps=taps, extra=extra, block=where)
        more = (c - ports[0]) * prod(sides)
        layers.append(replace(one, inputs=one.inputs + more, kept=(one.kept or 0) + more))
        c = k
    return layers, c


def _double(
    net: Segmentation,
    where: str,
    channels: tuple[int, int],
    beside: int,
    sides: tuple[Sequence[int], Sequence[int]],
) -> Layer:
    """What doubles the sides; with it the block is entered by what comes back from the way down."""
    (c, k), (before, after) = channels, sides
    enters, leaves = c * prod(before), k * prod(after)
    return Layer(
        f"{where}.double",
        enters,
        leaves,
        2 ** len(after) * c * k + k * net.enable_bias,
        "convolution",
        multiplies=prod(after) * c * k,
        block=where,
        grid=loops("double", channels, before, 2 ** len(after), upsample=2),
        parts=(Part(where, enters + beside * prod(after), enters, enters + leaves),),
    )
