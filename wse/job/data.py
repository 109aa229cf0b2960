"""Samples of a run: read whole, dealt out in an order that a step's number determines."""

# xarray annotates only part of what it gives.
# pyright: reportUnknownMemberType=false

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wse._document import short
from wse._npz import read_npz
from wse.job.params import Input

Array = NDArray[Any]
Batch = dict[str, Array]


@dataclass(frozen=True)
class Samples:
    """Features and labels, and how batches are taken from them.

    Attributes:
        features: what enters the model; samples lead.
        labels: what its output is compared with; None: nothing.
        plan: batch and order.
    """

    features: Array
    labels: Array | None
    plan: Input

    @property
    def count(self) -> int:
        """How many samples there are."""
        return len(self.features)

    @property
    def steps_per_epoch(self) -> int:
        """Whole batches of an epoch; what is left of a shuffle waits for another."""
        return self.count // self.plan.batch_size

    def batch(self, step: int) -> Batch:
        """The batch of a step, counted from 0: the same whenever it is asked for."""
        epoch, place = divmod(step, self.steps_per_epoch)
        rows = self._order(epoch)[place * self.plan.batch_size :][: self.plan.batch_size]
        return self._rows(rows)

    def in_order(self, batches: int | None = None) -> Iterator[Batch]:
        """All samples in their order, batch by batch; the last may be smaller."""
        size = self.plan.batch_size
        starts = range(0, self.count, size)
        for start in starts[:batches]:
            yield self._rows(np.arange(start, min(start + size, self.count)))

    def _order(self, epoch: int) -> NDArray[np.int64]:
        if not self.plan.shuffle:
            return np.arange(self.count)
        return np.random.default_rng([self.plan.shuffle_seed, epoch]).permutation(self.count)

    def _rows(self, rows: NDArray[np.int64]) -> Batch:
        found = {"features": self.features[rows]}
        return found if self.labels is None else {**found, "labels": self.labels[rows]}


def load(plan: Input, *, labels: bool = True) -> Samples:
    """Read the samples of an input.

    Args:
        plan: where they are, and what they are called.
        labels: whether labels are needed.

    Raises:
        ValueError: no such file, one without these arrays, arrays of other lengths, values that
            are not finite, or fewer samples than a batch.
    """
    parts = [_read(path) for path in _paths(plan.data_dir)]
    features = _joined(parts, plan.features, plan.data_dir)
    found = _joined(parts, plan.labels, plan.data_dir) if labels else None
    if found is not None and len(found) != len(features):
        raise ValueError(
            f"{plan.data_dir} has {len(features)} {plan.features} and {len(found)} {plan.labels}; "
            "each sample needs both: write them again"
        )
    if len(features) < plan.batch_size:
        raise ValueError(
            f"batch_size is {plan.batch_size} but {plan.data_dir} has {len(features)} samples; "
            f"a batch must fit: write batch_size: {len(features)} or less"
        )
    return Samples(features, found, plan)


def _paths(place: str) -> list[Path]:
    path = Path(place)
    found = sorted(path.glob("*.npz")) if path.is_dir() else [path] if path.is_file() else []
    if not found:
        raise ValueError(
            f"data_dir is {short(place)}, where there is nothing to read; it must be a folder with "
            ".npz files, or an .npz or netCDF file: check the path"
        )
    return found


def _read(path: Path) -> dict[str, Array]:
    """The arrays of one file. Object arrays, which would be unpickled, are refused."""
    try:
        if path.suffix == ".npz":
            return read_npz(path)
        import xarray as xr

        with xr.open_dataset(path) as dataset:
            return {str(name): x.values for name, x in dataset.data_vars.items()}
    except (ValueError, OSError) as error:
        raise ValueError(
            f"{path} cannot be read ({error}); it must be an .npz or netCDF file of plain arrays: "
            "write it again with numpy.savez"
        ) from error


def _joined(parts: list[dict[str, Array]], name: str, place: str) -> Array:
    if any(name not in part for part in parts):
        has = ", ".join(sorted(set[str]().union(*parts)))
        raise ValueError(f"{place} has {has}, but no {short(name)}: name the array of the input")
    joined = np.concatenate([part[name] for part in parts])
    if np.issubdtype(joined.dtype, np.floating):
        joined = joined.astype(np.float32)
        if bad := int((~np.isfinite(joined)).reshape(len(joined), -1).any(axis=1).sum()):
            raise ValueError(
                f"{name} of {place} is not finite in {bad} samples; leave these samples out"
            )
    return joined
