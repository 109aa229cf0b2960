"""What a model asks of a machine: the public name of `wse.models.shapes.workload`."""

from wse.models.shapes.workload import Layer, Workload, dense

__all__ = ["Layer", "Workload", "dense"]
__dir__ = __all__.copy  # what tab completion shows
