"""Scores of several fields that are drawn for one truth."""

import numpy as np
import xarray as xr
from jaxtyping import Int

from sciml.diagnose.rank import rank
from sciml.diagnose.wind.alike import Field, alike, check_gapless


def crps(members: Field, truth: Field, *, fair: bool = False) -> float:
    """Return the mean continuous ranked probability score, in the unit of the fields.

        ⟨|x − y|⟩ − ½ ⟨|x − x′|⟩

    over members x and pairs of members x, x′. One member gives the mean absolute error, with which
    deterministic estimates are compared. `fair` leaves the m pairs of a member with itself out, so
    that the score does not improve by the mere number of members (Ferro 2014, QJRMS 140, 1917).

    Raises:
        ValueError: shapes do not fit, or `fair` with one member.

    >>> import numpy as np
    >>> round(crps(np.array([[1.0], [3.0]]), np.array([2.0])), 3)
    0.5
    """
    members, truth = alike(members, truth, drawn=True)
    count = check(members, truth)
    if fair and count < 2:
        raise ValueError(
            f"fair is {fair} and there is one member, which has no fair score; pass at least two"
        )
    ordered = np.sort(members, axis=0)
    error = np.mean(np.abs(ordered - truth))
    weight = (2 * np.arange(1, count + 1) - count - 1).reshape(-1, *[1] * (ordered.ndim - 1))
    pairs = 2 * np.sum(weight * ordered, axis=0).mean()  # Σ over all ordered pairs of |x − x′|
    return float(error - pairs / (2 * count * (count - fair)))


def rank_histogram(members: Field, truth: Field, *, seed: int = 0) -> Int[np.ndarray, " rank"]:
    """Return how often each of the member + 1 ranks of the truth occurs; flat is right.

    A valley says that members are too much alike, a slope that they are biased. Ties are split at
    random. Points of one field are not independent: judge flatness by eye or over many times.

    Raises:
        ValueError: shapes do not fit, or a value is missing.

    >>> import numpy as np
    >>> rank_histogram(np.array([[1.0, 1.0], [3.0, 3.0]]), np.array([2.0, 4.0])).tolist()
    [0, 1, 1]
    """
    members, truth = alike(members, truth, drawn=True)
    count = check(members, truth)
    check_gapless((members, truth), "a rank")
    uniform = np.random.default_rng(seed).random(truth.shape)
    ranks = rank(members, truth, uniform).rank
    return np.bincount(ranks.ravel(), minlength=count + 1)


def spread_skill(members: Field, truth: Field, *, bins: int = 10) -> xr.Dataset:
    """Return the spread of members and the error of their mean, where the spread is alike.

    The spread is √((m + 1)/m · variance) of m members, whose mean square equals that of the error
    of the mean if truth and members are drawn alike (Fortin et al. 2014, J. Hydrometeorol. 15,
    1708). Points are sorted by spread into bins of equal number.

    Returns:
        `spread, error (bin)`, root mean squares in the unit of the fields, and `ratio`, that of all
        spread to all error: 1 is right, below is too sure.

    Raises:
        ValueError: shapes do not fit, there is one member, or there are more bins than points.

    >>> import numpy as np
    >>> members, truth = np.random.default_rng(0).normal(size=(8, 400)), np.zeros(400)
    >>> [*spread_skill(members, truth, bins=5).data_vars]
    ['spread', 'error', 'ratio']
    """
    members, truth = alike(members, truth, drawn=True)
    count = check(members, truth)
    if count < 2 or not 1 <= bins <= truth.size:
        raise ValueError(
            f"there are {count} members, {truth.size} points and {bins} bins; at least two members "
            "and a point for each bin are needed"
        )
    variance = (members.var(axis=0, ddof=1) * (count + 1) / count).ravel()
    square = np.square(members.mean(axis=0) - truth).ravel()
    groups = np.array_split(np.argsort(variance, kind="stable"), bins)
    spread, error = (
        np.sqrt([part[group].mean() for group in groups]) for part in (variance, square)
    )
    return xr.Dataset(
        {
            "spread": ("bin", spread),
            "error": ("bin", error),
            "ratio": float(np.sqrt(variance.mean() / square.mean())),
        }
    )


def check(members: np.ndarray, truth: np.ndarray) -> int:
    """Return the number of members of the truth's shape."""
    if members.ndim != truth.ndim + 1 or members.shape[1:] != truth.shape or not len(members):
        raise ValueError(
            f"members have shape {members.shape} and truth {truth.shape}; they must be "
            "(member, …) and (…)"
        )
    return len(members)
