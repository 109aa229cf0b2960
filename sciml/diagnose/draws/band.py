"""Within which band the empirical distribution of uniform numbers stays, all along at once.

Of N independent uniform numbers, C(z) lie at or below z. At one z, C is binomial; the band in which
C(z₁), …, C(z_K) all stay with a given probability takes at every z the binomial interval of one
smaller tail γ. The probability that a whole path stays inside follows exactly: C is a Poisson
process conditioned on C(1) = N, so its steps are independent until the last, and one convolution
a step carries the probability of all counts inside the band.

Source: T. Säilynoja, P.-C. Bürkner, A. Vehtari, Graphical test for discrete uniformity, Statistics
and Computing 32 (2022) 32, doi:10.1007/s11222-022-10090-6; they step with binomials.
"""

from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gammaln
from scipy.stats import binom

HALVINGS = 40  # of the search for γ on a logarithmic scale


def simultaneous_band(
    samples: int, points: Float[np.ndarray, " point"], probability: float = 0.95
) -> tuple[Float[np.ndarray, " point"], Float[np.ndarray, " point"]]:
    """Return the lower and upper share of uniform numbers at or below each of `points`.

    The empirical distribution of `samples` uniform numbers leaves this band anywhere with
    probability at most 1 − `probability`.

    Raises:
        ValueError: the points do not increase strictly within (0, 1), or the probability is not
            within (0, 1).

    >>> import numpy as np
    >>> low, high = simultaneous_band(100, np.array([0.25, 0.5, 0.75]))
    >>> bool((low < [0.25, 0.5, 0.75]).all() and (high > [0.25, 0.5, 0.75]).all())
    True
    """
    points = np.asarray(points, np.float64)
    if not (np.all(np.diff(points) > 0) and points[0] > 0 and points[-1] < 1):
        raise ValueError(f"points are {points}; they must increase strictly within (0, 1)")
    if not 0 < probability < 1:
        raise ValueError(f"probability is {probability}; it must lie within (0, 1), such as 0.95")
    lower, upper = interval(tail(samples, tuple(points), probability), samples, points)
    return lower / samples, upper / samples


def path_p_value(
    counts: Int[np.ndarray, " point"], samples: int, points: Float[np.ndarray, " point"]
) -> float:
    """Return how likely uniform numbers stray as far from z as `counts` do at their worst point."""
    below = binom.cdf(counts, samples, points)
    above = binom.sf(np.asarray(counts) - 1, samples, points)
    worst = 2 * float(np.minimum(below, above).min())
    lower, upper = interval(worst * (1 + 1e-9), samples, points)
    return float(np.clip(1 - staying(lower, upper, samples, points), 0, 1))


@lru_cache(maxsize=64)
def tail(samples: int, points: tuple[float, ...], probability: float) -> float:
    """Return the largest γ whose binomial intervals hold whole paths with `probability`."""
    grid = np.array(points)
    low, high = (1 - probability) / (2 * len(grid)), 1.0  # Bonferroni's γ is surely small enough
    for _ in range(HALVINGS):
        middle = np.sqrt(low * high)
        if staying(*interval(middle, samples, grid), samples, grid) >= probability:
            low = middle
        else:
            high = middle
    return float(low)


def interval(
    gamma: float, samples: int, points: Float[np.ndarray, " point"]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the counts whose binomial tails are not below γ/2 on either side."""
    half = min(gamma / 2, 1.0)
    lower, above = (binom.ppf(half, samples, share) for share in (points, 1 - points))
    # the quantile of a vanishing tail is −1
    return np.maximum(lower, 0).astype(int), samples - np.maximum(above, 0).astype(int)


def staying(
    lower: np.ndarray, upper: np.ndarray, samples: int, points: Float[np.ndarray, " point"]
) -> float:
    """Return P(lower_k ≤ C(z_k) ≤ upper_k for all k)."""
    if np.any(lower > upper):
        return 0.0
    log_factorial = gammaln(np.arange(samples + 1) + 1.0)
    lower, upper = np.append(lower, samples), np.append(upper, samples)
    rates = samples * np.diff(points, prepend=0.0, append=1.0)
    mass, base = np.ones(1), 0
    for low, high, rate in zip(lower, upper, rates, strict=True):
        step = np.arange(high - base + 1)
        poisson = np.exp(step * np.log(rate) - rate - log_factorial[step])
        mass = np.convolve(mass, poisson)[low - base : high - base + 1]
        base = low
    whole = np.exp(samples * np.log(samples) - samples - log_factorial[samples])
    return float(mass[0] / whole)
