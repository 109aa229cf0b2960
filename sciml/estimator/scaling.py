"""Targets in [0, 1], as the nets give them."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True)
class MinMax:
    """y = (θ − low) / (high − low), with the extremes of the training set.

    Source: Rudi, Bessac, Lenzi, arXiv 2012.06691 (targets scaled for the sigmoid).
    """

    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self):
        """Refuse an empty range."""
        for i, (low, high) in enumerate(zip(self.low, self.high, strict=True)):
            if not low < high:
                raise ValueError(
                    f"parameter {i} spans [{low}, {high}]; it must vary in the training set"
                )

    @classmethod
    def of(cls, targets: Float[np.ndarray, "sample param"]) -> "MinMax":
        """Return the scaling of a training set."""
        return cls(tuple(targets.min(axis=0).tolist()), tuple(targets.max(axis=0).tolist()))

    def forward(self, targets: Float[np.ndarray, "sample param"]) -> np.ndarray:
        """Return scaled targets."""
        low, high = np.asarray(self.low, np.float32), np.asarray(self.high, np.float32)
        return (targets - low) / (high - low)

    def backward(self, scaled: Float[np.ndarray, "sample param"]) -> np.ndarray:
        """Return targets in their own units."""
        low, high = np.asarray(self.low, np.float32), np.asarray(self.high, np.float32)
        return low + scaled * (high - low)
