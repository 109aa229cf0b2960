"""What moves between the store and the wafer, and in how many bytes."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from wse.graph.equations import Weight
from wse.precision import Format

INDEX_BYTES = 2  # sourced: SDK technical white paper: a sparse wavelet is 16 bits of index, value


@dataclass(frozen=True)
class Link:
    """Weights on their way in and gradients on their way out, in one step.

    Attributes:
        masks: for each parameter where it may be other than zero, or a scalar; empty: all dense.
        whole_gradients: whether gradients of weights outside the masks are sent too.
        half: the format in which values travel; None: as they are.
        scale: what the loss is multiplied with.
    """

    masks: Sequence[NDArray[np.bool_]] = ()
    whole_gradients: bool = False
    half: Format | None = None
    scale: float = 1.0

    @property
    def plain(self) -> bool:
        """Whether everything travels as it is."""
        return not self.masks and self.half is None

    def down(self, weight: Weight, array: Any) -> tuple[Any, int]:
        """A weight as it arrives on the wafer, and the bytes that were sent."""
        return self._rounded(array), self._bytes(array, self._mask(weight))

    def up(self, weight: Weight, gradient: Any) -> tuple[Any, int]:
        """A gradient as it arrives in the store, and the bytes that were sent."""
        array = self._rounded(np.asarray(gradient))
        mask = None if self.whole_gradients else self._mask(weight)
        sent = array if mask is None else np.where(mask, array, np.zeros((), array.dtype))
        return sent, self._bytes(array, mask)

    def _mask(self, weight: Weight) -> NDArray[np.bool_] | None:
        """Where a weight may be other than zero; None: everywhere."""
        if not self.masks or not self.masks[weight.leaf].ndim:
            return None
        return self.masks[weight.leaf][weight.index]

    def _bytes(self, array: Any, mask: NDArray[np.bool_] | None) -> int:
        """P min(b, s (b + b_index)): values with their indices, or all values if that is less."""
        each = array.dtype.itemsize if self.half is None else self.half.bytes
        kept = array.size if mask is None else int(np.count_nonzero(mask))
        return min(array.size * each, kept * (each + INDEX_BYTES))

    def _rounded(self, array: Any) -> Any:
        if self.half is None:
            return array
        return np.asarray(self.half.round(jnp.asarray(array)))
