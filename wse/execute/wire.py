"""What moves between the store and the wafer, and in how many bytes."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from wse.graph.equations import Weight

if TYPE_CHECKING:
    from wse.precision import Format

INDEX_BYTES = (
    2  # sourced: SDK technical white paper: a sparse wavelet is 16 bits of index and value
)


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
    half: "Format | None" = None
    scale: float = 1.0

    def down(self, weight: Weight, array: Any) -> tuple[Any, int]:
        """A weight as it arrives on the wafer, and the bytes that were sent."""
        return self._rounded(array), self._bytes(array, self._kept(weight, array))

    def up(self, weight: Weight, gradient: Any) -> tuple[Any, int]:
        """A gradient as it arrives in the store, and the bytes that were sent."""
        array = self._rounded(np.asarray(gradient))
        if self.whole_gradients or not self._is_masked(weight):
            return array, self._bytes(array, array.size)
        mask = self.masks[weight.leaf][weight.index]
        sent = np.where(mask, array, np.zeros((), array.dtype))
        return sent, self._bytes(array, int(np.count_nonzero(mask)))

    def _is_masked(self, weight: Weight) -> bool:
        return bool(self.masks) and self.masks[weight.leaf].ndim > 0

    def _kept(self, weight: Weight, array: Any) -> int:
        if not self._is_masked(weight):
            return array.size
        return int(np.count_nonzero(self.masks[weight.leaf][weight.index]))

    def _bytes(self, array: Any, kept: int) -> int:
        """P min(b, s (b + b_index)): values with their indices, or all values if that is less."""
        each = array.dtype.itemsize if self.half is None else self.half.bytes
        return min(array.size * each, kept * (each + INDEX_BYTES))

    def _rounded(self, array: Any) -> Any:
        if self.half is None:
            return array
        return np.asarray(self.half.round(jnp.asarray(array)))
