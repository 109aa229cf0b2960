"""Layers on the wafer's grid: how they are split, what that costs, what fits."""

from wse.layout.capacity import Net, Node, activation_bytes, largest, needed_bytes, unet
from wse.layout.cost import Cost, cost, norm_cycles
from wse.layout.figure import draw
from wse.layout.pieces import Layout, Shape, Wafer, dense
from wse.layout.pipeline import Kernel, Placement, Rectangle, dense_kernels, pipeline
from wse.layout.plan import Misfit, Placed, Plan, plan
from wse.layout.relayout import relayout_cycles
from wse.layout.splits import layouts

__all__ = [
    "Cost",
    "Kernel",
    "Layout",
    "Misfit",
    "Net",
    "Node",
    "Placed",
    "Placement",
    "Plan",
    "Rectangle",
    "Shape",
    "Wafer",
    "activation_bytes",
    "cost",
    "dense",
    "dense_kernels",
    "draw",
    "largest",
    "layouts",
    "needed_bytes",
    "norm_cycles",
    "pipeline",
    "plan",
    "relayout_cycles",
    "unet",
]
__dir__ = __all__.copy  # what tab completion shows
