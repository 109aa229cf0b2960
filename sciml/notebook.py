"""What the notebooks share."""

import os
from typing import TypeVar

__all__ = ["scale"]
__dir__ = __all__.copy  # what tab completion shows

T = TypeVar("T")


def scale(full: T, fast: T) -> T:
    """Return `full` or `fast`, as the environment variable SCIML_SCALE says (default `fast`).

    Raises:
        ValueError: SCIML_SCALE is neither.

    >>> import os
    >>> from sciml.notebook import scale
    >>> epochs = scale(1000, 100)
    >>> epochs == (1000 if os.environ.get("SCIML_SCALE") == "full" else 100)
    True
    """
    chosen = os.environ.get("SCIML_SCALE", "fast")
    if chosen not in ("fast", "full"):
        raise ValueError(f"SCIML_SCALE is {chosen!r}; it must be 'fast' or 'full'")
    return full if chosen == "full" else fast
