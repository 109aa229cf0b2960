"""A data set larger than memory, as `sciml.fit` trains on it."""

import logging
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from scipy.stats import chi2

from sciml._labels import marked
from sciml.inverse.axes import Grid
from sciml.inverse.borders import targets_of, valid_samples, variable
from sciml.inverse.scaling import MinMax
from sciml.ode.data.evidence import valid_in
from sciml.train.pieces import Stream, chance

log = logging.getLogger(__name__)

WINDOW_BYTES = 2**30  # assumed: what a lazy data set may have to be loaded as a whole
NUMBER_BYTES = 4  # of float32
LEAST_PART = 256  # pieces of a window, beyond which chunks on disk are taken together
FIRST_PART = 8  # part of a window by which inputs and targets are scaled
FIRST_LEAST = 1000  # assumed: samples that scale them well
UNLIKE = 4.0  # assumed: variance of means of pieces, in that of independent samples, to be told
SHOWN = 200  # characters of a library's message
CHANCE = 1e-3  # assumed: of independent samples, share of data sets that are told
READ = ("observation", "parameters", "levels", "valid")
TARGETS = ("parameters", "levels")


@dataclass(frozen=True)
class Windows:
    """A data set that is read while a net trains on it, a window of samples at a time.

    `sciml.fit` makes one of a lazy data set of more than 1 GiB (as float32). Give it one to
    choose another size. Each epoch takes the chunks on disk in a fresh order, and shuffles the
    samples of as many as fill a window. Two windows are in memory.

    Args:
        data: as `sciml.fit` takes it, lazy: as `sciml.ode.open_simulations` or `xarray.open_zarr`
            give it.
        size_bytes: of a window. It changes the shuffles, and so the numbers.

    Raises:
        TypeError: the data are no Dataset.
        ValueError: the size is not positive, or a chunk is larger.

    >>> import sciml
    >>> from sciml.estimator import Windows
    >>> data = sciml.simulate(sciml.ode.lotka_volterra(), samples=20).chunk(sample=5)
    >>> Windows(data, size_bytes=2**20).size_bytes
    1048576
    """

    data: xr.Dataset
    size_bytes: int = WINDOW_BYTES
    kept: np.ndarray | None = field(default=None, repr=False)  # numbers of pieces; None: all

    def __post_init__(self):
        if not isinstance(self.data, xr.Dataset):
            raise TypeError(f"data is a {type(self.data).__name__}; Windows takes a Dataset")
        if self.size_bytes < 1:
            raise ValueError(f"Windows.size_bytes is {self.size_bytes}; it must be positive")
        variable(self.data, "observation")
        variable(self.data, "parameters")
        longest = max(stop - start for start, stop in self.pieces) * self.sample_bytes
        if longest > self.size_bytes:
            raise ValueError(
                f"a chunk of the data has {longest:,} bytes as float32 and Windows.size_bytes is "
                f"{self.size_bytes:,}; a window must hold several: give more, or store the data in "
                f"smaller chunks, as data.chunk(sample={self.window // 16 or 1})"
            )

    @cached_property
    def lazy(self) -> xr.Dataset:
        """What is read: observations, parameters, levels, conditions, and what is valid."""
        return self.data[[name for name in READ if name in self.data]]

    @cached_property
    def sample_bytes(self) -> int:
        """Bytes of a sample as float32."""
        parts = [*self.lazy.data_vars.values(), *(self.lazy[name] for name in marked(self.lazy))]
        return sum(NUMBER_BYTES * p.size // max(1, p.sizes.get("sample", 1)) for p in parts)

    @property
    def window(self) -> int:
        """Samples in a window."""
        return self.size_bytes // self.sample_bytes

    @cached_property
    def pieces(self) -> list[tuple[int, int]]:
        """The first sample of each piece, and the one behind it: chunks, small ones together."""
        total = self.lazy.sizes["sample"]
        chunks = self.lazy["observation"].chunksizes.get("sample")
        least = max(1, self.window // LEAST_PART)
        ends = np.cumsum(chunks if chunks else [least] * (total // least) + [total % least])
        found, start = [], 0
        for end in map(int, ends):
            if end - start >= least or (end == total and end > start):
                found.append((start, end))
                start = end
        return found

    @cached_property
    def valid(self) -> np.ndarray:
        """Which samples did not fail."""
        return valid_in(self.lazy)

    @cached_property
    def numbers(self) -> np.ndarray:
        """The pieces that are trained on, by number: not those in which all samples failed."""
        if self.kept is not None:
            return self.kept
        if not self.valid.any():
            raise ValueError(f"all {self.valid.size} samples on disk have failed: `valid` is False")
        return np.flatnonzero([self.valid[slice(*piece)].any() for piece in self.pieces])

    @cached_property
    def sizes(self) -> np.ndarray:
        """Valid samples of each piece."""
        return np.array([self.valid[slice(*self.pieces[i])].sum() for i in self.numbers])

    def piece(self, place: int, names: tuple[str, ...] = READ[:-1]) -> xr.Dataset:
        """Read the valid samples of a piece."""
        start, stop = self.pieces[self.numbers[place]]
        part = self.lazy[[name for name in names if name in self.lazy]]
        try:
            part = part.isel(sample=slice(start, stop)).compute()
        except (OSError, MemoryError, ImportError):
            raise
        except Exception as error:  # whatever damaged bytes lead the libraries of the formats to
            said = " ".join(str(error).split())
            if not isinstance(error, ValueError):
                said = (
                    f"{type(error).__name__}: {said[:SHOWN]}; write them again, or leave them out"
                )
            raise ValueError(f"of samples {start} to {stop - 1} on disk, {said}") from error
        valid = self.valid[start:stop]
        return part if valid.all() else part.isel(sample=np.flatnonzero(valid))

    def joined(self, places: np.ndarray) -> xr.Dataset:
        """Read some pieces as one data set, which says of itself what the whole does."""
        parts = [self.piece(place) for place in map(int, places)]
        alike: Any = {"compat": "override", "join": "override", "combine_attrs": "override"}
        return xr.concat(parts, "sample", data_vars="minimal", coords="minimal", **alike)

    def held_out(self, share: float, seed: int) -> "tuple[Windows, xr.Dataset]":
        """Return what to train on, and pieces that are held out, in memory."""
        total = int(self.sizes.sum())
        order = chance(seed).permutation(len(self.numbers))
        count = int(np.searchsorted(np.cumsum(self.sizes[order]), share * total)) + 1
        held = int(self.sizes[order[:count]].sum())
        if not 0 < share < 1:
            raise ValueError(f"validation is {share}; it must be a share within (0, 1): pass 0.1")
        if count >= len(order):
            raise ValueError(
                f"validation is {share}, which holds out {count} of {len(order)} chunks; some must "
                "be left: hold out less, or store the data in smaller chunks, as "
                f"data.chunk(sample={max(1, total // 20)})"
            )
        if held > self.window:
            raise ValueError(
                f"validation is {share}, which holds out {held:,} samples; these stay in memory "
                f"and must fit into a window of {self.window:,}: hold out less, as "
                f"{self.window / total / 2:.1g}"
            )
        rest = np.sort(self.numbers[order[count:]])
        return Windows(self.data, self.size_bytes, rest), self.joined(np.sort(order[:count]))

    def first(self, seed: int, missing: bool) -> xr.Dataset:
        """Return the samples by which inputs and targets are scaled, in memory."""
        refuse_lost(self.data)
        if not self.valid.all():
            log.warning("%d failed samples are left out", int((~self.valid).sum()))
        order, wanted = chance(seed, 0).permutation(len(self.numbers)), self.window // FIRST_PART
        wanted = max(wanted, FIRST_LEAST)
        count = int(np.searchsorted(np.cumsum(self.sizes[order]), wanted)) + 1
        for place in map(int, order[:count]):
            self.checked(place, missing)  # names the sample on disk
        found = self.joined(order[:count])
        tell_unlike(found["parameters"].values, self.sizes[order[:count]])
        return found

    def checked(self, place: int, missing: bool) -> tuple[xr.Dataset, np.ndarray]:
        """Return a piece and its observations, or refuse what is not finite, by its place."""
        part = self.piece(place)
        try:
            return valid_samples(part, missing)
        except ValueError as error:
            start, stop = self.pieces[self.numbers[place]]
            raise ValueError(f"of samples {start} to {stop - 1} on disk, {error}") from error

    def spanned(self, made: Any) -> Any:
        """Return the setup of a fit to the first samples with targets that span all samples."""
        if not isinstance(made.scaling, MinMax):
            return made
        low, high = np.array(made.scaling.low), np.array(made.scaling.high)
        for place in range(len(self.sizes)):
            own, _ = targets_of(
                self.piece(place, TARGETS), levels=made.measurement.noise is None
            )  # levels of noise that is drawn afresh are behind, and stay
            count = own.shape[1]
            low[:count] = np.minimum(low[:count], own.min(axis=0))
            high[:count] = np.maximum(high[:count], own.max(axis=0))
        return replace(made, scaling=MinMax(tuple(low.tolist()), tuple(high.tolist())))

    def stream(self, made: Any, missing: bool) -> Stream:
        """Return what `train_piecewise` takes, arranged as by the setup of a fit."""

        def read(place: int) -> Any:
            data, clean = self.checked(place, missing)
            theta, _ = targets_of(data, levels=made.measurement.noise is None)
            if not marked(data):
                return clean, theta
            grid: Grid = made.grid
            return clean, theta, grid.known(data["observation"])

        held = made.clean, np.array(self.pieces)[self.numbers], self.sizes
        return Stream(self.sizes, self.window, read, held)


def refuse_lost(data: xr.Dataset) -> None:
    """Refuse a Zarr store, opened by xarray, that lacks chunks: they would read as its fill value.

    `open_simulations` looks at each chunk that it reads.
    """
    store = Path(str(data.encoding.get("source", "")))
    for name in (name for name in READ[:2] if (store / name).is_dir()):
        import zarr

        array = zarr.open_array(store / name, mode="r")
        if array.fill_value is not None and np.isnan(array.fill_value):
            continue  # failed samples, which are not written where a chunk holds no others
        if lost := array.nchunks - array.nchunks_initialized:
            raise ValueError(
                f"{name} of {store} lacks {lost} of {array.nchunks} chunks, which would read as "
                f"{array.fill_value}: write them again, if that is their value with "
                "write_empty_chunks=True, or leave their samples out by "
                "data.isel(sample=…).drop_encoding()"
            )


def tell_unlike(parameters: np.ndarray, sizes: np.ndarray) -> None:
    """Warn of pieces whose samples are not alike, as of data that were sorted.

    Of n independent samples a mean has the variance σ²/n, so Σ nᵢ (mᵢ − m)² / σ² over k pieces is
    nearly χ² with k − 1 degrees of freedom, whatever their sizes.
    """
    free = len(sizes) - 1
    if free < 1:
        return
    parts = np.split(parameters, np.cumsum(sizes)[:-1])
    away = np.stack([part.mean(axis=0) for part in parts]) - parameters.mean(axis=0)
    variance = parameters.var(axis=0)
    ratio = np.max(sizes @ away**2 / np.where(variance > 0, variance, np.inf)) / free
    if ratio > UNLIKE and chi2.sf(ratio * free, free) * parameters.shape[1] < CHANCE:
        log.warning(
            "the chunks of the data differ among themselves: means of parameters vary %.0f times "
            "as much as those of independent samples, so that batches of one window are not like "
            "those of another; shuffle the samples once on disk",
            ratio,
        )


def windows_of(data: Any, executor: Any = None) -> Any:
    """Return Windows of a lazy data set that is too large to be loaded, else what is given."""
    if isinstance(data, xr.Dataset) and any(v.chunks for v in data.variables.values()):
        names = {"observation", "parameters"} <= {*data.data_vars}
        if names and "sample" in data["observation"].dims:
            one = data[["observation", "parameters"]].isel(sample=slice(1))
            size = NUMBER_BYTES * data.sizes["sample"] * sum(v.size for v in one.values())
            data = Windows(data, WINDOW_BYTES) if size > WINDOW_BYTES else data
    if isinstance(data, Windows) and executor is not None:
        raise ValueError(
            f"the data have {data.sample_bytes * data.lazy.sizes['sample']:,} bytes and are read "
            f"as they are trained on, which the loop of {executor!r} does not do: leave the "
            "executor out, or pass data.load()"
        )
    return data
