"""Posterior draws beside the truths they should cover, read in chunks that fit in memory."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float, Int
from tqdm.auto import tqdm

from sciml._labels import (
    Labelled,
    by_name,
    labels_of,
    marked,
    parameter_names,
    same_rows,
    truths,
    variable,
)

POSTERIOR = ("posterior", ("draw", "sample", "parameter"))  # name and axes
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
        """Yield indices of samples with their draws, so many at once as memory allows."""
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

    Truths are put into the order of the draws by the names of their parameters and, where both have
    them, the labels of their samples; what has no labels is taken to be in order.

    Args:
        posterior: a Dataset with the variable `posterior`, an array, or a function from indices of
            samples to such an array, for more draws than memory holds.
        truth: a Dataset with the variable `parameters`, and with `levels` where the noise's are
            estimated; or an array.

    Raises:
        ValueError: shapes or names do not fit each other, a truth is not a number, or there are too
            few draws (2) or samples (2) to say anything.
    """
    values = truths(truth)
    first = variable(posterior(np.arange(1)) if callable(posterior) else posterior, *POSTERIOR)
    if values.ndim != 2 or len(values) < 2:
        raise ValueError(
            f"truth has shape {values.shape}; it must be (sample, parameter) with 2 samples or more"
        )
    count = np.shape(first)[-1]
    names = labels_of(first) or chosen_names(truth, values, count)
    if not callable(posterior):
        values = belonging(values, first, "the truth")
    known = np.asarray(by_name(values, names, "the truth"), np.float64)
    if bad := int((~np.isfinite(known)).any(axis=1).sum()):
        raise ValueError(
            f"truth has values that are not finite in {bad} of {len(known)} samples; "
            "keep the valid ones: data.sel(sample=data.valid)"
        )
    draws = len(first)
    check_shape(first.shape, (draws, 1 if callable(posterior) else len(known), known.shape[1]))
    if draws < 2:
        raise ValueError(f"posterior has {draws} draw per sample; it needs 2, better 100 or more")

    def read(indices: np.ndarray) -> np.ndarray:
        if callable(posterior):
            return by_name(variable(posterior(indices), *POSTERIOR), names, "the posterior")
        return np.asarray(first[:, indices])

    return Pairs(read, known, names, draws)


def belonging(values: Any, like: Any, what: str) -> Any:
    """Return values for the samples of `like`; refuse those of samples with other known inputs."""
    found = same_rows(values, like, what)
    for name in set(marked(found)) & set(marked(like)):
        own, other = found[name], like[name]
        if own.dims[:1] != ("sample",) or own.shape != other.shape:
            continue
        differ = ~np.isclose(own.values, other.values, rtol=1e-5, atol=0)  # of single precision
        if differ.any():
            at = tuple(np.argwhere(differ)[0])
            raise ValueError(
                f"{name} of sample {at[0]} is {own.values[at]:g} by {what} and "
                f"{other.values[at]:g} by what they belong to: these are other samples, or in "
                "another order; pass both of one data set"
            )
    return found


def chosen_names(truth: Labelled, values: Any, count: int) -> tuple[str, ...]:
    """Return the names of draws that have none: those of the truth, with levels or without."""
    own = parameter_names(values, np.shape(values)[-1])
    alone = labels_of(variable(truth, "parameters", ("sample", "parameter")))
    return alone if len(alone) == count else own


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
