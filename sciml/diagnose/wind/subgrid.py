"""What lies below the coarse cells: how much variance, and where."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from jaxtyping import Float

from sciml._arguments import check_whole
from sciml._labels import last
from sciml.diagnose.wind.alike import Field, alike


def subgrid_variance(field: Field, factor: int) -> Float[np.ndarray, "*sample y_lo x_lo"]:
    """Return the variance within each block of factor × factor points, about the block's mean.

    Raises:
        ValueError: the factor does not divide both sides.

    >>> import numpy as np
    >>> field = np.arange(16.0).reshape(4, 4)
    >>> subgrid_variance(field, 2).tolist()
    [[4.25, 4.25], [4.25, 4.25]]
    """
    return blocks(field, factor).var(axis=(-3, -1))


def subgrid_variance_ratio(estimate: Field, truth: Field, factor: int) -> float:
    """Return ⟨subgrid variance of the estimate⟩ / ⟨that of the truth⟩: below 1 is too smooth.

    The mean of squared error is best at the conditional mean, whose ratio is below 1: no
    deterministic net can have both.

    >>> import numpy as np
    >>> field = np.arange(16.0).reshape(4, 4)
    >>> round(subgrid_variance_ratio(field / 2, field, 2), 3)
    0.25
    """
    estimate, truth = alike(estimate, truth)
    return float(subgrid_variance(estimate, factor).mean() / subgrid_variance(truth, factor).mean())


def subgrid_by_wind(
    estimate: Field, truth: Field, factor: int, edges: Sequence[float]
) -> xr.Dataset:
    """Return the subgrid standard deviations where the coarse wind of the truth is alike.

    Subgrid variance grows with the resolved wind; a scheme may be right in the mean and wrong at
    every wind.

    Args:
        estimate: fields.
        truth: fields of the same shape.
        factor: of the blocks.
        edges: ascending limits of the coarse wind, in its unit; n + 1 for n bins.

    Returns:
        `estimate, truth (bin)`, root mean subgrid variances, NaN in empty bins, and `blocks (bin)`.

    Raises:
        ValueError: shapes differ, or edges do not ascend.

    >>> import numpy as np
    >>> from sciml import diagnose
    >>> truth = np.abs(np.random.default_rng(0).normal(8.0, 3.0, size=(4, 32, 32)))
    >>> found = diagnose.subgrid_by_wind(0.5 * truth, truth, 4, edges=(0.0, 8.0, 16.0))
    >>> dict(found.sizes)
    {'bin': 2}
    """
    limits = np.asarray(edges, np.float64)
    estimate, truth = alike(estimate, truth)
    if estimate.shape != truth.shape or limits.size < 2 or (np.diff(limits) <= 0).any():
        raise ValueError(
            f"estimate has shape {estimate.shape}, truth {truth.shape}, edges are {list(edges)}; "
            "shapes must be equal and edges ascend"
        )
    coarse = blocks(truth, factor).mean(axis=(-3, -1)).ravel()
    place = np.digitize(coarse, limits) - 1
    inside = (place >= 0) & (place < limits.size - 1)
    counts = np.bincount(place[inside], minlength=limits.size - 1)

    def mean(field: Field) -> np.ndarray:
        variance = subgrid_variance(field, factor).ravel()[inside]
        total = np.bincount(place[inside], variance, minlength=limits.size - 1)
        return np.sqrt(np.where(counts, total / np.maximum(counts, 1), np.nan))

    return xr.Dataset(
        {
            "estimate": ("bin", mean(estimate)),
            "truth": ("bin", mean(truth)),
            "blocks": ("bin", counts),
        },
        coords={"wind": ("bin", (limits[1:] + limits[:-1]) / 2)},
    )


def blocks(field: Field, factor: int) -> Float[np.ndarray, "*sample y_lo factor x_lo factor"]:
    """Return a field as blocks, in double precision."""
    (wide,) = alike(last(field, "y", "x"))
    y, x = wide.shape[-2:]
    check_whole(1, factor=factor)
    if y % factor or x % factor:
        raise ValueError(f"factor is {factor} on a {y}×{x} field; it must divide both: crop first")
    return wide.reshape(*wide.shape[:-2], y // factor, factor, x // factor, factor)
