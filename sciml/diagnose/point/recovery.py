"""How well parameters are recovered."""

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool

from sciml._labels import Labelled, by_name, labelled, variable
from sciml.diagnose.pairs import belonging

ROWS = ("sample", "parameter")
SCORES = ("r2", "mse", "mae", "median_se", "p90_se")


def r2(truth: Any, estimate: Any) -> float:
    """Return R² = 1 − Σ(estimate − truth)² / Σ(truth − mean)²; NaN where the truth is constant.

    Both are numbers of one parameter, (sample,), and matched by their samples where these have
    labels; `recovery` takes several parameters.

    Raises:
        ValueError: another shape: those of several parameters would be one number for all.

    >>> import numpy as np
    >>> truth = np.array([1.0, 2.0, 4.0])
    >>> round(r2(truth, np.array([1.5, 2.0, 3.0])), 3)
    0.732
    """
    known, found = labelled(truth, ROWS), labelled(estimate, ROWS)
    known, found = variable(known, "parameters", ROWS[:1]), variable(found, "estimate", ROWS[:1])
    known, found = map(np.asarray, (belonging(known, found, "the truth"), found))
    if known.ndim != 1 or known.shape != found.shape:
        raise ValueError(
            f"truth has shape {known.shape} and estimate {found.shape}; both must be (sample,), "
            "numbers of one parameter: pass sciml.diagnose.recovery those of several"
        )
    spread = np.sum(np.square(known - known.mean(), dtype=np.float64))
    error = np.sum(np.square(found - known, dtype=np.float64))
    return float(1 - error / spread) if spread > 0 else float("nan")


def recovery(
    truth: Labelled,
    estimate: Labelled,
    *,
    names: tuple[str, ...],
    regimes: dict[str, Bool[np.ndarray, " sample"]] | None = None,
) -> xr.Dataset:
    """Return R², MSE, MAE, and the median and 90th percentile of the squared error.

    A few samples carry most of the squared error where regimes meet, so a mean alone says little:
    read it beside the median and the 90th percentile, regime by regime.

    Args:
        truth: parameters (sample, parameter); named ones are put into the order of `names`.
        estimate: their estimates.
        names: of the parameters.
        regimes: name → mask of samples; "all" is always reported.

    Returns:
        Variables `r2, mse, mae, median_se, p90_se (regime, parameter)` and `samples (regime)`;
        NaN for an empty regime.

    Raises:
        ValueError: the shapes differ.

    >>> import numpy as np
    >>> truth = np.arange(8.0).reshape(4, 2)
    >>> recovery(truth, truth + 0.5, names=('a', 'b')).mae.sel(regime='all').values.tolist()
    [0.5, 0.5]
    """
    truth, estimate = in_order(truth, estimate, names)
    if truth.shape != estimate.shape:
        raise ValueError(
            f"truth has shape {truth.shape} and estimate {estimate.shape}; they must be equal"
        )
    masks = {"all": np.ones(len(truth), bool), **(regimes or {})}
    rows = [scores(truth[mask], estimate[mask]) for mask in masks.values()]
    dims = ("regime", "parameter")
    return xr.Dataset(
        {name: (dims, np.stack([row[name] for row in rows])) for name in rows[0]}
        | {"samples": ("regime", np.array([int(mask.sum()) for mask in masks.values()]))},
        coords={"regime": list(masks), "parameter": list(names)},
    )


def in_order(
    truth: Labelled, estimate: Labelled, names: tuple[str, ...], *repeated: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return truths, and estimates (repeated, sample, param), in the order of labels and names."""
    known = variable(truth, "parameters", ROWS)
    found = variable(estimate, "estimate", (*repeated, *ROWS))
    known = belonging(known, found, "the truth")
    return by_name(known, names, "the truth"), by_name(found, names, "the estimate")


def scores(truth: np.ndarray, estimate: np.ndarray) -> dict[str, np.ndarray]:
    """Return the scores by parameter."""
    if not len(truth):
        nothing = np.full(truth.shape[1], np.nan)
        return dict.fromkeys(SCORES, nothing)
    error = (estimate - truth).astype(np.float64)
    squared = np.square(error)
    return {
        "r2": np.array([r2(t, e) for t, e in zip(truth.T, estimate.T, strict=True)]),
        "mse": squared.mean(axis=0),
        "mae": np.abs(error).mean(axis=0),
        "median_se": np.median(squared, axis=0),
        "p90_se": np.quantile(squared, 0.9, axis=0),
    }
