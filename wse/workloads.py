"""Models by name or from a YAML file: the public name of `wse.models.shapes`."""

from wse.models.shapes import (
    KERNELS,
    PRODUCTS,
    Entry,
    Kernel,
    Product,
    Transformer,
    dit,
    entries,
    entry,
    get,
    perceptron,
    read,
    resnet50,
    retinanet,
    transformer,
    unet,
)

__all__ = [
    "KERNELS",
    "PRODUCTS",
    "Entry",
    "Kernel",
    "Product",
    "Transformer",
    "dit",
    "entries",
    "entry",
    "get",
    "perceptron",
    "read",
    "resnet50",
    "retinanet",
    "transformer",
    "unet",
]
__dir__ = __all__.copy  # what tab completion shows
