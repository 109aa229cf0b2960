"""The computer at hand as a machine: its rates measured, a step's time predicted from a graph."""

from wse.computer.here import Local, LocalEstimate, local
from wse.computer.rates import Rates

__all__ = ["Local", "LocalEstimate", "Rates", "local"]
__dir__ = __all__.copy  # what tab completion shows
