"""Which squares of which fields are read, planned before anything is read."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from sciml._arguments import check_whole


@dataclass(frozen=True)
class Plan:
    """Corners (time, y, x) of squares of `size` points, in the order in which they are read.

    Raises:
        ValueError: corners are not whole triples, or the size is not positive.

    >>> import numpy as np
    >>> from sciml import wind
    >>> plan = wind.Plan(corners=np.array([[0, 0, 0], [3, 8, 8]]), size=16)
    >>> plan.shuffled(seed=1).size
    16
    """

    corners: Int[np.ndarray, "patch 3"]
    size: int

    def __post_init__(self):
        shape, kind = np.shape(self.corners), np.asarray(self.corners).dtype
        if len(shape) != 2 or shape[1] != 3 or kind.kind not in "iu" or self.size < 1:
            raise ValueError(
                f"corners have shape {shape}, of {kind}, and size is {self.size}; they must be "
                "(patch, 3) whole numbers, and it positive"
            )

    def __repr__(self) -> str:
        """Return one line: how many squares, and their size."""
        return f"Plan({len(self)} squares of {self.size} x {self.size} points)"

    def __len__(self):
        """Return how many squares there are."""
        return len(self.corners)

    def shuffled(self, seed: int, times: int = 1) -> "Plan":
        """Return the squares in random order, among groups of `times` fields.

        Groups come in random order and squares at random within a group, so that a reader holds
        no more than a group of fields at once; `times` as large as there are shuffles fully.
        """
        check_whole(1, times=times)
        rng = np.random.default_rng(seed)
        fields = rng.permutation(np.unique(self.corners[:, 0]))
        rank = {int(field): place // times for place, field in enumerate(fields)}
        group = np.array([rank[int(field)] for field in self.corners[:, 0]])
        order = np.lexsort((rng.random(len(self)), group))
        return Plan(self.corners[order], self.size)


def gridded(times: int, y: int, x: int, size: int, stride: int | None = None) -> Plan:
    """Plan squares side by side (or `stride` apart) over all of every field.

    The last row and column are moved back to end at the edge, so that every point is covered.

    Raises:
        ValueError: a square does not fit, or the stride is not positive.

    >>> len(gridded(2, 64, 64, size=32))
    8
    """
    stride = size if stride is None else stride
    check_fit(y, x, size)
    if stride < 1:
        raise ValueError(f"stride is {stride}; it must be positive")
    rows, columns = (
        np.unique(np.append(np.arange(0, n - size + 1, stride), n - size)) for n in (y, x)
    )
    corners = np.stack(np.meshgrid(np.arange(times), rows, columns, indexing="ij"), axis=-1)
    return Plan(corners.reshape(-1, 3), size)


def scattered(times: int, y: int, x: int, size: int, *, count: int, seed: int = 0) -> Plan:
    """Plan `count` squares at random places of every field.

    Raises:
        ValueError: a square does not fit, or there are none.

    >>> len(scattered(10, 64, 64, size=16, count=4))
    40
    """
    check_fit(y, x, size)
    if count < 1:
        raise ValueError(f"count is {count}; it must be positive")
    rng = np.random.default_rng(seed)
    rows, columns = (rng.integers(0, n - size + 1, times * count) for n in (y, x))
    return Plan(np.stack([np.repeat(np.arange(times), count), rows, columns], axis=-1), size)


def check_fit(y: int, x: int, size: int) -> None:
    """Refuse squares larger than the field."""
    if not 1 <= size <= min(y, x):
        raise ValueError(f"size is {size} on a {y}×{x} field; it must be 1 to {min(y, x)}")
