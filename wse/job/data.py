"""Samples of a run: read whole, dealt out in an order that a step's number determines."""

# xarray and h5py annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wse._document import short
from wse._npz import DamagedFile, read_npz
from wse.job import fitting
from wse.job.packaged import FASTA, PREFIX, codons, packaged
from wse.job.params import Input
from wse.models.trainable.which import Named

MOST = 2**31 - 1  # of a whole number, as JAX has them

Array = NDArray[Any]
Batch = dict[str, Array]


@dataclass(frozen=True)
class Samples:
    """Features and labels, and how batches are taken from them.

    Attributes:
        features: what enters the model; samples lead.
        labels: what its output is compared with; None: nothing.
        plan: batch and order.
        more: what else a model by name reads of a sample, as the segments of its tokens.
    """

    features: Array
    labels: Array | None
    plan: Input
    more: Batch = field(default_factory=dict[str, Array])

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
        found = {name: x[rows] for name, x in (("features", self.features), *self.more.items())}
        return found if self.labels is None else {**found, "labels": self.labels[rows]}


def load(plan: Input, *, labels: bool = True, named: Named | None = None) -> Samples:
    """Read the samples of an input.

    Args:
        plan: where they are, and what they are called.
        labels: whether labels are needed.
        named: the model by name that they are for; its sequences need no labels.

    Raises:
        ValueError: no such file, one without these arrays, arrays of other lengths, values that
            are not finite, samples that the model does not take, or fewer than a batch.
    """
    place = plan.data_dir if isinstance(plan.data_dir, str) else ", ".join(plan.data_dir)
    parts = _parts(plan, named)
    features = _joined(parts, plan.features, place)
    there = labels and (named is None or any(plan.labels in part for part in parts))
    found = _joined(parts, plan.labels, place) if there else None
    more = {
        name: _joined(parts, name, place)
        for name in (fitting.MORE if named else ())
        if any(name in part for part in parts)
    }
    for name, array in (*(((plan.labels, found),) if found is not None else ()), *more.items()):
        if len(array) != len(features):
            raise ValueError(
                f"{place} has {len(features)} {plan.features} and {len(array)} {name}; "
                "each sample needs both: write them again"
            )
    if len(features) < plan.batch_size:
        raise ValueError(
            f"batch_size is {plan.batch_size} but {place} has {len(features)} samples; "
            f"a batch must fit: write batch_size: {len(features)} or less"
        )
    if named is not None:
        features, found = fitting.fitted(named, features, found, more, labels)
    return Samples(features, found, plan, more)


def _parts(plan: Input, named: Named | None) -> list[dict[str, Array]]:
    places = (plan.data_dir,) if isinstance(plan.data_dir, str) else plan.data_dir
    found: list[dict[str, Array]] = []
    shape = named and named.shape
    size = (shape.max_sequence_length, int(shape.is_causal)) if shape else ()  # of a text
    if named and named.family == "pair":
        size = (fitting.text_length(named), 0)
    for place in places:
        if place.startswith(PREFIX):
            found.append(packaged(place.removeprefix(PREFIX), *size))
        else:
            found += [_read(path, size) for path in _paths(place)]
    return found


def _paths(place: str) -> list[Path]:
    path = Path(place)
    several = sorted(
        x for kind in ("*.npz", "*.h5", *(f"*{x}" for x in FASTA)) for x in path.glob(kind)
    )
    found = several if path.is_dir() else [path] if path.is_file() else []
    if not found:
        raise ValueError(
            f"data_dir is {short(place)}, where there is nothing to read; it must be a folder with "
            ".npz, .h5 or .fasta files, or an .npz, HDF5, FASTA or netCDF file: check the path"
        )
    return found


def _read(path: Path, size: tuple[int, ...] = ()) -> dict[str, Array]:
    """The arrays of one file. Object arrays, which would be unpickled, are refused."""
    try:
        if path.suffix == ".npz":
            return read_npz(path)
        if path.suffix in FASTA and size:
            return codons(path, *size)
        if path.suffix == ".h5":
            return _tokens(path)
        import xarray as xr

        with xr.open_dataset(path) as dataset:
            return {str(name): x.values for name, x in dataset.data_vars.items()}
    except (ValueError, OSError) as error:
        if isinstance(error, DamagedFile):  # names the file
            raise
        raise ValueError(
            f"{path} cannot be read ({error}); it must be an .npz or netCDF file of plain arrays: "
            "write it again with numpy.savez"
        ) from error


def _tokens(path: Path) -> dict[str, Array]:
    """A file of tokens as the vendor's converter writes it: tokens, which count, the next ones."""
    import h5py

    with h5py.File(path) as found:
        data = found.get("data")
        if not isinstance(data, h5py.Dataset) or data.ndim != 3 or data.shape[1] != 3:
            raise ValueError(
                f"its data is {data!r}; it must be of (samples, 3, tokens), with tokens, which of "
                "them count, and the next ones"
            )
        read: Array = data[:].astype(np.int32)
    return {"features": read[:, 0], "labels": np.where(read[:, 1] > 0, read[:, 2], -1)}


def _joined(parts: list[dict[str, Array]], name: str, place: str) -> Array:
    if any(name not in part for part in parts):
        has = ", ".join(sorted(set[str]().union(*parts)))
        raise ValueError(f"{place} has {has}, but no {short(name)}: name the array of the input")
    joined = np.concatenate([part[name] for part in parts])
    if joined.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} of {place} is of {joined.dtype}; it must hold real numbers: write it again"
        )
    if (
        joined.dtype.kind in "iu"
        and (far := max(int(joined.max(initial=0)), -int(joined.min(initial=0)))) > MOST
    ):
        raise ValueError(
            f"{name} of {place} has whole numbers up to {far}; 32 bits hold up to {MOST}: scale "
            "them, or write them as floating point"
        )
    if np.issubdtype(joined.dtype, np.floating):
        joined = joined.astype(np.float32)
        if bad := int((~np.isfinite(joined)).reshape(len(joined), -1).any(axis=1).sum()):
            raise ValueError(
                f"{name} of {place} is not finite in {bad} samples; leave these samples out"
            )
    return joined
