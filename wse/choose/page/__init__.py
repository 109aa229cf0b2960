"""One page on one model: whether it ports, what it takes, what it gains, and what is not known."""

from wse.choose.page.port import Port, port
from wse.choose.page.trials import Data

__all__ = ["Data", "Port", "port"]
__dir__ = __all__.copy  # what tab completion shows
