"""Structural similarity of fields, on physical values with a stated range."""

import numpy as np
from scipy.ndimage import gaussian_filter

from sciml.diagnose.wind.alike import Field, alike

SIGMA = 1.5  # sourced: Wang et al. (2004), IEEE Trans. Image Process. 13, 600: as is all below
RADIUS = 5
K1, K2 = 0.01, 0.03


def ssim(estimate: Field, truth: Field, *, value_range: float) -> float:
    """Return the mean structural similarity, 1 for equal fields.

        (2 a b + c₁) (2 cov + c₂) / ((a² + b² + c₁) (var a + var b + c₂)),  c = (K range)²

    with means, variances and covariance under a Gaussian window of 1.5 points; the five points at
    each edge, where the window is cut off, are left out.

    Args:
        estimate: fields.
        truth: fields of the same shape.
        value_range: the peak-to-peak range in the unit of the fields, such as 40 m/s.

    Raises:
        ValueError: shapes differ, fields have fewer than 11 points a side, or the range is not
            positive.

    >>> import numpy as np
    >>> field = np.random.default_rng(0).uniform(0, 40, size=(16, 16))
    >>> round(ssim(field, field, value_range=40.0), 3)
    1.0
    """
    estimate, truth = a, b = alike(estimate, truth)
    smallest = min(truth.shape[-2:])
    if estimate.shape != truth.shape or smallest < 2 * RADIUS + 1 or not value_range > 0:
        raise ValueError(
            f"estimate has shape {estimate.shape}, truth {truth.shape}, value_range is "
            f"{value_range}; shapes must be equal with at least {2 * RADIUS + 1} points a side, "
            "and the range positive"
        )

    def smooth(field: np.ndarray) -> np.ndarray:
        smoothed = gaussian_filter(field, SIGMA, radius=RADIUS, axes=(-2, -1))
        return smoothed[..., RADIUS:-RADIUS, RADIUS:-RADIUS]

    mean_a, mean_b = smooth(a), smooth(b)
    var_a, var_b = smooth(a * a) - mean_a**2, smooth(b * b) - mean_b**2
    cov = smooth(a * b) - mean_a * mean_b
    c1, c2 = (K1 * value_range) ** 2, (K2 * value_range) ** 2
    above = (2 * mean_a * mean_b + c1) * (2 * cov + c2)
    return float(np.mean(above / ((mean_a**2 + mean_b**2 + c1) * (var_a + var_b + c2))))
