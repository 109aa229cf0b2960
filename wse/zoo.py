"""Models of the catalogue as Flax modules: the public name of `wse.models.zoo`."""

from wse.models.zoo import Block, Ends, Traceable, language, traceable

__all__ = ["Block", "Ends", "Traceable", "language", "traceable"]
__dir__ = __all__.copy  # what tab completion shows
