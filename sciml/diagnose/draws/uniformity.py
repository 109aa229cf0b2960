"""Whether numbers that should be uniform are."""

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy import stats

from sciml.diagnose.draws.band import path_p_value, simultaneous_band

PER_BIN = 20  # assumed: samples a bin of a histogram needs for its χ² to be one
MOST_BINS = 50
POINTS = 100  # at which the empirical distribution is judged


def uniformity(pit: Float[np.ndarray, "sample quantity"], probability: float = 0.95) -> xr.Dataset:
    """Test every column for uniformity on [0, 1], in three ways.

    `chi2_p` is that of χ² of a histogram of about 20 samples a bin, which sees any coarse shape;
    `ks_p` that of Kolmogorov and Smirnov's largest distance of the distributions, which sees
    shifts; `ecdf_p` says how rarely the empirical distribution strays so far at its worst point, in
    units of its own binomial spread there, and sees the tails too. It is below 1 − probability
    exactly where `ecdf` leaves the band `lower … upper`.

    Args:
        pit: numbers in [0, 1].
        probability: with which uniform numbers stay within the band.

    Returns:
        Variables `chi2_p, ks_p, ecdf_p (quantity)`, `ecdf (level, quantity)`, `lower, upper
        (level)`, `count (bin, quantity)`, `count_low, count_high` (the binomial interval of one
        bin, at `probability`).

    >>> import numpy as np
    >>> pit = np.random.default_rng(0).uniform(size=(200, 1))
    >>> sorted(uniformity(pit).data_vars)
    ['chi2_p', 'count', 'count_high', 'count_low', 'ecdf', 'ecdf_p', 'ks_p', 'lower', 'upper']
    """
    samples = len(pit)
    levels = np.arange(1, POINTS) / POINTS
    below = np.array([(pit <= level).sum(axis=0) for level in levels])
    lower, upper = simultaneous_band(samples, levels, probability)
    bins = int(np.clip(samples // PER_BIN, 2, MOST_BINS))
    counts = np.stack([np.histogram(u, bins, (0.0, 1.0))[0] for u in pit.T], axis=1)
    tails = (1 - probability) / 2
    ecdf_p = [path_p_value(column, samples, levels) for column in below.T]
    return xr.Dataset(
        {
            "chi2_p": ("quantity", np.array([stats.chisquare(c).pvalue for c in counts.T])),
            "ks_p": ("quantity", np.array([stats.kstest(u, "uniform").pvalue for u in pit.T])),
            "ecdf_p": ("quantity", np.array(ecdf_p)),
            "ecdf": (("level", "quantity"), below / samples),
            "lower": ("level", lower),
            "upper": ("level", upper),
            "count": (("bin", "quantity"), counts),
            "count_low": int(stats.binom.ppf(tails, samples, 1 / bins)),
            "count_high": int(stats.binom.ppf(1 - tails, samples, 1 / bins)),
        },
        coords={"level": levels, "bin": (np.arange(bins) + 0.5) / bins},
        attrs={"samples": samples, "probability": probability},
    )
