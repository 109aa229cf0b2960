"""Numbers that stand for a missing value."""

import logging

import numpy as np

log = logging.getLogger(__name__)

# What files and programs write for "missing"; what netCDF does, 1e37, no float32 net takes.
SENTINELS = -99.0, 999.0, -999.0, 9999.0, -9999.0, -32768.0, -99999.0, 1e20, -1e30
ENDS = (np.min, np.inf), (np.max, -np.inf)


def warn_of_sentinels(values: np.ndarray, what: str, *, each: bool = True) -> None:
    """Warn of a number that usually stands for a missing value, and lies far from all others.

    Farther than the others from each other. With `each`, entries of the last axis are kinds.
    """
    kinds = values.reshape(-1, values.shape[-1] if each else 1)
    ends = [pick(kinds, axis=0, where=np.isfinite(kinds), initial=far) for pick, far in ENDS]
    for i in np.flatnonzero(is_sentinel(ends[0]) | is_sentinel(ends[1])):
        known = kinds[np.isfinite(kinds[:, i]), i]
        likely = is_sentinel(known)
        marks, others = known[likely], known[~likely]
        if not others.size:
            continue
        low, high = others.min(), others.max()
        if (np.maximum(low - marks, marks - high) > high - low).all():
            log.warning(
                "%d of %s%s are %s, far from the others, %.3g to %.3g, and were taken for "
                "measured: where that stands for a missing value, pass NaN",
                *(len(marks), what, f"[..., {i}]" if each else ""),
                *(", ".join(f"{mark:g}" for mark in np.unique(marks)), low, high),
            )


def is_sentinel(values: np.ndarray) -> np.ndarray:
    """Tell which numbers usually stand for a missing value."""
    return np.any([np.isclose(values, mark, rtol=1e-6, atol=0) for mark in SENTINELS], axis=0)
