"""Models by name or from a YAML file, as shapes alone: parameters, operations, activations."""

from wse.models.shapes.convolution import resnet50, retinanet
from wse.models.shapes.handwritten import KERNELS, PRODUCTS, Kernel, Product
from wse.models.shapes.named import Entry, entries, entry, get, read
from wse.models.shapes.perceptron import perceptron
from wse.models.shapes.segmentation import unet
from wse.models.shapes.transformer import Transformer, transformer
from wse.models.shapes.vision import dit

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
