"""What brings a coarse model's wind to the mean and spread of a fine one's."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Correction:
    """What brings a coarse model's wind to the mean and spread of the fine one's, by channel.

        w′ = scale · w + offset

    Raises:
        ValueError: lengths differ, or a value is not finite.

    >>> from sciml import wind
    >>> slow = wind.Correction(names=("x_wind",), scale=(1.1,), offset=(0.5,))
    >>> slow.scale
    (1.1,)
    """

    names: tuple[str, ...]
    scale: tuple[float, ...]
    offset: tuple[float, ...]

    def __post_init__(self):
        if not len(self.names) == len(self.scale) == len(self.offset) > 0:
            raise ValueError(f"{self} must have a scale and an offset for each name")
        if not np.isfinite([*self.scale, *self.offset]).all():
            raise ValueError(f"{self} is not finite: a channel is missing everywhere")

    def of(self, values: Any) -> Any:
        """Return values (…, channel, y, x) corrected."""
        scale, offset = (
            np.asarray(v, np.float32)[:, None, None] for v in (self.scale, self.offset)
        )
        return values * scale + offset
