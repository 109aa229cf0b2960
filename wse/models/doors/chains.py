"""U-Nets and chains of dense layers by the words of the Model Zoo."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from wse._document import short
from wse.models.doors.decoders import Count, one_of
from wse.models.shapes.perceptron import perceptron
from wse.models.shapes.segmentation import Segmentation, segmentation
from wse.models.shapes.workload import Workload

MNIST = (784, 10)  # pixels of an image of MNIST, and digits
NORMS = (
    "", "none", "batchnorm2d", "batchnorm3d", "batch", "group", "group_instance", "instance",
    "layer", "instancenorm2d", "groupnorm", "group_norm",
)  # fmt: skip


@dataclass(frozen=True)
class FullyConnected:
    """Words of FC-MNIST."""

    hidden_sizes: tuple[Count, ...] | None = None
    depth: Count | None = None
    hidden_size: Count | None = None
    activation_fn: str = "relu"
    use_bias: bool = True
    name: str = ""


def fully_connected(
    name: str, said: FullyConnected, *_: Any
) -> tuple[Workload, Any, tuple[str, ...]]:
    """Dense layers over the pixels of MNIST."""
    sizes, told = said.hidden_sizes, (said.depth, said.hidden_size)
    if sizes is not None and told != (None, None):
        raise ValueError(
            f"model has hidden_sizes {list(sizes)}, and depth {said.depth}, hidden_size "
            f"{said.hidden_size} beside; each says the layers: leave the others out"
        )
    if sizes is None:
        if said.depth is None or said.hidden_size is None:
            raise ValueError(
                f"model has hidden_size {said.hidden_size}, depth {said.depth}, no hidden_sizes; "
                "the layers must be said: add hidden_sizes: [500, 300]"
            )
        sizes = (said.hidden_size,) * said.depth
    if not said.use_bias:
        raise ValueError("model.use_bias is False; dense layers are counted with biases alone")
    every = (MNIST[0], *sizes, MNIST[1])
    return perceptron(every, name), every, ()


@dataclass(frozen=True)
class Unet:
    """Words of U-Nets."""

    encoder_filters: tuple[Count, ...]
    decoder_filters: tuple[Count, ...]
    convs_per_block: tuple[str, ...] = ("3x3_conv", "3x3_conv")
    nonlinearity: str = "relu"
    norm_layer: str | None = None
    enable_bias: bool | None = None
    skip_connect: bool = True
    downscale_method: str = "max_pool"
    downscale_first_conv: bool = False
    downscale_encoder_blocks: bool | tuple[bool, ...] = True
    downscale_bottleneck: bool = False
    use_conv3d: bool = False
    input_channels: Count | None = None
    initial_conv_filters: Count | None = None
    num_classes: Count | None = None
    image_shape: tuple[Count, ...] | None = None
    loss: str = ""
    name: str = ""


def unet(
    name: str, said: Unet, _: str, entered: Mapping[str, Any]
) -> tuple[Workload, Any, tuple[str, ...]]:
    """A U-Net on images of the input's shape: (H, W, C), or (D, H, W) in three dimensions."""
    shape: Any = said.image_shape or entered.get("image_shape")
    if not isinstance(shape, list | tuple) or len(cast("list[Any]", shape)) != 3:
        raise ValueError(
            f"image_shape is {short(shape)}; it must be three sizes, (H, W, C) or, with "
            "use_conv3d, (D, H, W): write image_shape: [256, 256, 1]"
        )
    sides: tuple[Any, ...] = (*cast("list[Any]", shape),)
    channels = said.input_channels
    if not said.use_conv3d:
        *two, last = sides
        sides, channels = tuple(two), channels or last
    one_of("model.downscale_method", said.downscale_method, ("max_pool", "strided_conv"))
    one_of("model.norm_layer", (said.norm_layer or "").lower(), NORMS)
    if said.downscale_method == "strided_conv" and not said.downscale_first_conv:
        raise ValueError(
            "model.downscale_method is 'strided_conv' without downscale_first_conv; that the last "
            "convolution of a block halves the sides is not counted here"
        )
    classes = said.num_classes or entered.get("num_classes")
    if not isinstance(classes, int):
        raise ValueError("neither model nor input has num_classes: add num_classes: 2")
    loss = said.loss.lower() or ("bce" if classes <= 2 else "ssce")
    one = "bce" in loss and "multilabel" not in loss
    net = Segmentation(
        said.encoder_filters,
        said.decoder_filters,
        sides,
        channels or 1,
        1 if one else classes,
        said.convs_per_block,
        said.norm_layer is None if said.enable_bias is None else said.enable_bias,
        said.norm_layer not in (None, "", "none"),
        said.skip_connect,
        said.initial_conv_filters or 0,
    )
    return segmentation(name, net), net, ()
