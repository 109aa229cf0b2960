"""Models by name or from a YAML file, as shapes alone: parameters, operations, activations."""

from wse.workloads.catalogue import Entry, entries, entry, get, read
from wse.workloads.convolution import resnet50, retinanet, unet
from wse.workloads.kernel import KERNELS, PRODUCTS, Kernel, Product
from wse.workloads.perceptron import perceptron
from wse.workloads.transformer import Transformer, dit, transformer

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
