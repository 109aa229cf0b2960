"""A small wafer, stepped cycle by cycle: processing elements, routers, colours and wavelets."""

from wse.mesh.clock import simulate
from wse.mesh.code import Grid, Instruction, Port, Route, Stream
from wse.mesh.kernels import Kernel, matvec, stencil, total
from wse.mesh.patterns import all_reduce, broadcast, reduce
from wse.mesh.program import Program
from wse.mesh.result import Run

__all__ = [
    "Grid",
    "Instruction",
    "Kernel",
    "Port",
    "Program",
    "Route",
    "Run",
    "Stream",
    "all_reduce",
    "broadcast",
    "matvec",
    "reduce",
    "simulate",
    "stencil",
    "total",
]
__dir__ = __all__.copy  # what tab completion shows
