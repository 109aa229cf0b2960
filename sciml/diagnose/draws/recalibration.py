"""Posterior draws stretched and shifted until they are calibrated on average."""

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from sciml._labels import Labelled, labels_of, parameter_names, variable
from sciml.diagnose.pairs import MEMORY_BYTES, POSTERIOR, Posterior, check_draws, pair


def recalibration(
    posterior: Posterior, truth: Labelled, *, memory_bytes: int = MEMORY_BYTES
) -> xr.Dataset:
    """Return where truths stand among their draws, from which `recalibrate` mends other draws.

    Of each parameter, t(θ; x) is the share of draws below θ, linear between two of them, and goes
    on beyond the lowest and the highest of S draws by the distance in standard deviations:

    t = 1/(S + 1) − (θ₍₁₎ − θ)/sd   below θ₍₁₎,   t = S/(S + 1) + (θ − θ₍ₛ₎)/sd   above θ₍ₛ₎

    The distribution F of t over the pairs is uniform where the posterior is calibrated; F(t(θ; x))
    is, for any posterior. Use fresh simulations, many more than will judge the result: F is known
    to about 50 / √samples points of per cent.

    Args:
        posterior: `posterior (draw, sample, parameter)`, or a function from indices of samples to
            such draws, as in `calibration`.
        truth: `parameters (sample, parameter)`.
        memory_bytes: which a chunk may take.

    Returns:
        `position (rank, parameter)`: t of all pairs in increasing order; `low, high (parameter)`:
        the range of the truths. The attribute `draws` says how many there were per sample.

    Raises:
        ValueError: shapes do not fit, a value is not finite, or all draws of a sample are equal.

    Source: V. Kuleshov, N. Fenner, S. Ermon, arXiv 1807.00263, there for regression; the tails
    are ours.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth, draws = rng.normal(size=(500, 1)), 0.5 * rng.normal(size=(100, 500, 1))
    >>> sorted(recalibration(draws, truth).data_vars)
    ['high', 'low', 'position']
    """
    pairs = pair(posterior, truth)
    found = [
        position(draws, pairs.truth[indices])
        for indices, draws in pairs.chunks(memory_bytes, "recalibration")
    ]
    return xr.Dataset(
        {
            "position": (("rank", "parameter"), np.sort(np.concatenate(found), axis=0)),
            "low": ("parameter", pairs.truth.min(axis=0)),
            "high": ("parameter", pairs.truth.max(axis=0)),
        },
        coords={"parameter": list(pairs.names)},
        attrs={"draws": pairs.draws},
    )


def recalibrate(posterior: Any, known: xr.Dataset) -> Any:
    """Return draws moved along each parameter until F(t) is uniform, F that of `recalibration`.

    Of S draws the k-th smallest goes to where F(t) = k/(S + 1), so their order, and with it the
    dependence among parameters, stays; none leaves the range of the truths. What is mended is the
    average over observations: a posterior too wide here and too narrow there stays so.

    Args:
        posterior: `posterior (draw, sample, parameter)`, a Dataset that has it, or an array; with
            as many draws as `known` was made from, or more.
        known: what `recalibration` returned.

    Returns:
        The same kind of object as was given, with other draws.

    Raises:
        ValueError: shapes or parameters do not fit, a draw is not finite, or draws are too few.

    >>> import numpy as np
    >>> from sciml.diagnose import recalibration
    >>> rng = np.random.default_rng(0)
    >>> truth, draws = rng.normal(size=(500, 1)), 0.5 * rng.normal(size=(100, 500, 1))
    >>> wider = recalibrate(draws, recalibration(draws, truth))  # half as wide as they should be
    >>> bool(np.std(wider) > 1.5 * np.std(draws))
    True
    """
    values = variable(posterior, *POSTERIOR)
    draws = np.asarray(values, np.float64)
    if sorted(own := labels_of(values)) == sorted(map(str, known.parameter.values)):
        known = known.sel(parameter=list(own))
    check_fit(values, draws, known)
    moved = np.clip(placed(draws, known), known.low.values, known.high.values)
    if isinstance(posterior, xr.Dataset):
        return posterior.assign(posterior=values.copy(data=moved))
    return values.copy(data=moved) if isinstance(values, xr.DataArray) else moved


def position(
    draws: Float[np.ndarray, "draw sample param"], truth: Float[np.ndarray, "sample param"]
) -> Float[np.ndarray, "sample param"]:
    """Return t(θ; x) of the truths; see `recalibration`."""
    count = len(draws)
    ordered = np.sort(draws, axis=0)
    sd = ordered.std(axis=0)
    if flat := int((sd == 0).any(axis=-1).sum()):
        raise ValueError(
            f"all draws of a parameter are equal in {flat} of {len(truth)} samples; a point has no "
            "width to mend: keep the other samples, or take a model that returns a density"
        )
    lower = np.clip((ordered <= truth).sum(axis=0), 1, count - 1)[None]
    left, right = neighbours(ordered, lower)
    with np.errstate(divide="ignore", invalid="ignore"):  # equal draws: the truth stands at either
        part = np.nan_to_num(np.clip((truth - left) / (right - left), 0.0, 1.0))
    beyond = np.maximum(truth - ordered[-1], 0.0) - np.maximum(ordered[0] - truth, 0.0)
    return ((lower + part) / (count + 1))[0] + beyond / sd


def placed(
    draws: Float[np.ndarray, "draw sample param"], known: xr.Dataset
) -> Float[np.ndarray, "draw sample param"]:
    """Return the draws moved to where they belong, whatever range that takes."""
    count, edge = len(draws), 1 / (known.attrs["draws"] + 1)
    levels = np.arange(1, count + 1) / (count + 1)
    goal = np.quantile(known.position.values, levels, axis=0)[:, None]
    level = np.clip(goal, edge, 1 - edge)
    rank = level * (count + 1)
    lower = np.clip(rank.astype(int), 1, count - 1)
    order = np.argsort(draws, axis=0, kind="stable")
    ordered = np.take_along_axis(draws, order, axis=0)
    left, right = neighbours(ordered, np.broadcast_to(lower, draws.shape))
    there = left + (rank - lower) * (right - left) + (goal - level) * draws.std(axis=0)
    moved = np.empty_like(draws)
    np.put_along_axis(moved, order, there, axis=0)
    return moved


def neighbours(
    ordered: Float[np.ndarray, "draw sample param"], lower: Int[np.ndarray, "place sample param"]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the draws of rank `lower`, of 1 … S, and of the rank above."""
    left, right = (np.take_along_axis(ordered, lower + shift, axis=0) for shift in (-1, 0))
    return left, right


def check_fit(values: Labelled, draws: np.ndarray, known: xr.Dataset) -> None:
    """Refuse draws of other parameters than `known` has, and fewer of them."""
    names, count = tuple(map(str, known.parameter.values)), known.attrs["draws"]
    check_draws(draws, (*draws.shape[:2], len(names)))
    own = parameter_names(values, len(names))
    if own not in (names, parameter_names(draws, len(names))):
        raise ValueError(
            f"posterior has the parameters {', '.join(own)}; the recalibration was made for "
            f"{', '.join(names)}: use draws of the same fit"
        )
    if len(draws) < count:
        raise ValueError(
            f"posterior has {len(draws)} draws per sample; the recalibration was made from "
            f"{count}: take as many or more, or make it again from fewer"
        )
