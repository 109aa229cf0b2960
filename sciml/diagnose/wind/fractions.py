"""Fractions skill score: is the strong wind in the right neighbourhood?"""

import numpy as np
from scipy.ndimage import uniform_filter

from sciml.diagnose.wind.alike import Field, alike, check_gapless


def fractions_skill(estimate: Field, truth: Field, *, threshold: float, width: int) -> float:
    """Return 1 − Σ(p − q)² / (Σp² + Σq²); 1 is perfect, NaN if neither has an event.

    p and q are the shares of points above the threshold within squares of `width` points about
    each point; points beyond the edge count as below. A displaced gust is punished at every point
    by RMSE, twice; here it is forgiven once the width covers the displacement.

    Reference: Roberts and Lean (2008), Mon. Wea. Rev. 136, 78.

    Args:
        estimate: fields.
        truth: fields of the same shape.
        threshold: in the unit of the fields; an event is a value at or above it.
        width: of the neighbourhood in points, odd.

    Raises:
        ValueError: shapes differ, a value is missing, or the width is even or not positive.

    >>> import numpy as np
    >>> field = np.arange(16.0).reshape(4, 4)
    >>> round(fractions_skill(field, field, threshold=8.0, width=3), 3)
    1.0
    """
    estimate, truth = alike(estimate, truth)
    if estimate.shape != truth.shape or width < 1 or width % 2 == 0:
        raise ValueError(
            f"estimate has shape {estimate.shape}, truth {truth.shape}, width is {width}; shapes "
            "must be equal and the width an odd number of points"
        )
    check_gapless((estimate, truth), "a share of points")
    p, q = (
        uniform_filter((f >= threshold).astype(np.float64), width, mode="constant", axes=(-2, -1))
        for f in (estimate, truth)
    )
    most = float(np.sum(p**2) + np.sum(q**2))
    return 1 - float(np.sum((p - q) ** 2)) / most if most > 0 else float("nan")
