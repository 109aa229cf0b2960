"""Posterior draws beside the truths they should cover, read in chunks that fit in memory."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from jaxtyping import Float, Int
from tqdm.auto import tqdm


@runtime_checkable
class Labelled(Protocol):
    """An `xarray.Dataset` or `DataArray`, or an array of NumPy or JAX."""

    def __array__(self, *args: Any, **options: Any) -> Any:
        """Return the values."""
        ...


Posterior: TypeAlias = Labelled | Callable[[np.ndarray], Labelled]

MEMORY_BYTES = 256 * 2**20  # assumed: a share of a laptop that nobody misses
COPIES = 4  # of a chunk that alive at once: the draws, a comparison, distances, their squares


@dataclass(frozen=True)
class Pairs:
    """Posterior draws and truths, sample by sample.

    Attributes:
        read: indices of samples → their draws (draw, sample, param).
        truth: the parameters that made the observations (sample, param).
        names: of the parameters.
        draws: how many per sample.
    """

    read: Callable[[np.ndarray], np.ndarray]
    truth: Float[np.ndarray, "sample param"]
    names: tuple[str, ...]
    draws: int

    def chunks(
        self, memory_bytes: int = MEMORY_BYTES, label: str = "diagnose"
    ) -> Iterator[tuple[Int[np.ndarray, " chunk"], Float[np.ndarray, "draw chunk param"]]]:
        """Yield indices of samples with their draws, so many at once as memory allows.

        Raises:
            ValueError: a draw is not a number, or a chunk has another shape than promised.
        """
        samples, parameters = self.truth.shape
        size = max(1, memory_bytes // (COPIES * 8 * self.draws * parameters))
        starts = range(0, samples, size)
        for start in tqdm(starts, label, unit="chunk", leave=False, disable=len(starts) < 2):
            indices = np.arange(start, min(start + size, samples))
            draws = np.asarray(self.read(indices), np.float64)
            check_draws(draws, (self.draws, len(indices), parameters))
            yield indices, draws


def pair(posterior: Posterior, truth: Labelled) -> Pairs:
    """Return draws `posterior (draw, sample, parameter)` beside `parameters (sample, parameter)`.

    Args:
        posterior: a Dataset with the variable `posterior`, an array, or a function from indices of
            samples to such an array, for more draws than memory holds.
        truth: a Dataset with the variable `parameters`, or an array.

    Raises:
        ValueError: shapes do not fit each other, a truth is not a number, or there are too few
            draws (2) or samples (2) to say anything.
    """
    values = variable(truth, "parameters", ("sample", "parameter"))
    known = np.asarray(values, np.float64)
    if known.ndim != 2 or len(known) < 2:
        raise ValueError(
            f"truth has shape {known.shape}; it must be (sample, parameter) with 2 samples or more"
        )
    if bad := int((~np.isfinite(known)).any(axis=1).sum()):
        raise ValueError(
            f"truth has values that are not finite in {bad} of {len(known)} samples; "
            "keep the valid ones: data.sel(sample=data.valid)"
        )
    read, draws = reader(posterior, known.shape)
    if draws < 2:
        raise ValueError(f"posterior has {draws} draw per sample; it needs 2, better 100 or more")
    return Pairs(read, known, parameter_names(values, known.shape[1]), draws)


def reader(
    posterior: Posterior, shape: tuple[int, int]
) -> tuple[Callable[[np.ndarray], np.ndarray], int]:
    """Return a function that reads the draws of some samples, and how many draws there are."""
    order = ("draw", "sample", "parameter")
    if callable(posterior):

        def sampled(indices: np.ndarray) -> np.ndarray:
            return np.asarray(variable(posterior(indices), "posterior", order))

        first = sampled(np.arange(1))
        check_shape(first.shape, (*first.shape[:1], 1, shape[1]))
        return sampled, first.shape[0]
    values = variable(posterior, "posterior", order)
    check_shape(values.shape, (*values.shape[:1], *shape))
    return lambda indices: np.asarray(values[:, indices]), values.shape[0]


def variable(data: Labelled, name: str, dims: tuple[str, ...]) -> Any:
    """Return one variable of a Dataset with its axes in order, or the array as it is.

    Raises:
        ValueError: the Dataset lacks the variable, or the variable lacks an axis.
    """
    import xarray as xr

    if isinstance(data, xr.Dataset):
        if name not in data:
            raise ValueError(f"dataset has {', '.join(map(str, data))}; it must have {name!r}")
        data = data[name]
    if isinstance(data, xr.DataArray):
        if missing := [dim for dim in dims if dim not in data.dims]:
            raise ValueError(
                f"{name} has the axes {', '.join(map(str, data.dims))}; it lacks {missing}: "
                f"rename or expand_dims, until they are {dims}"
            )
        return data.transpose(*dims, ...)
    return data if isinstance(data, np.ndarray) else np.asarray(data)


def parameter_names(values: Any, count: int) -> tuple[str, ...]:
    """Return the labels of the axis `parameter`, or theta0, theta1, … where there are none."""
    import xarray as xr

    if isinstance(values, xr.DataArray) and "parameter" in values.coords:
        return tuple(map(str, values.parameter.values))
    return tuple(f"theta{i}" for i in range(count))


def check_draws(draws: np.ndarray, expected: tuple[int, ...]) -> None:
    """Refuse draws of another shape, and draws that are not numbers."""
    check_shape(draws.shape, expected)
    if bad := int((~np.isfinite(draws)).any(axis=(0, 2)).sum()):
        raise ValueError(
            f"posterior has draws that are not finite for {bad} of {draws.shape[1]} samples; "
            "keep the valid samples, or find out why the posterior fails there"
        )


def check_shape(found: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """Refuse draws whose axes do not fit the truth."""
    if found != expected or len(found) != 3:
        raise ValueError(
            f"posterior has shape {found}; to fit the truth it must be (draw, sample, parameter) = "
            f"{('any', *expected[-2:])}"
        )
