"""Models of the catalogue to trace, on shapes alone: a public name of `wse.models`."""

from wse.models.rebuilt.build import traceable
from wse.models.zoo import Traceable

__all__ = ["Traceable", "traceable"]
__dir__ = __all__.copy  # what tab completion shows
