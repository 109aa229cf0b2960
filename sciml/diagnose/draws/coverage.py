"""How often credible regions hold the truth."""

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.stats import beta

from sciml.diagnose.draws.band import path_p_value, simultaneous_band
from sciml.diagnose.draws.sbc import check_quantity
from sciml.diagnose.pairs import Labelled, Posterior, pair
from sciml.diagnose.rank import join, rank

LEVELS = np.arange(1, 20) / 20


def coverage(
    posterior: Posterior,
    truth: Labelled,
    *,
    density: tuple[Labelled, Labelled] | None = None,
    levels: Float[np.ndarray, " level"] = LEVELS,
    probability: float = 0.95,
    seed: int = 0,
) -> xr.Dataset:
    """Return the share of truths inside credible regions of each level.

    Per parameter the regions are central intervals: the truth lies in the interval of level 1 − α
    if |2u − 1| ≤ 1 − α, u its rank as a fraction. Jointly they are those of highest density: the
    share of draws with a higher density than the truth is at most 1 − α. A coverage below the
    level says over-confident, above it under-confident.

    Args:
        posterior: `posterior (draw, sample, parameter)`, or a function from indices of samples.
        truth: `parameters (sample, parameter)`.
        density: log q(θ | x) of each draw (draw, sample) and of the truth (sample): adds "joint".
        levels: of the regions, increasing within (0, 1).
        probability: of the intervals and the band.
        seed: of the random numbers that fill the gaps between ranks.

    Returns:
        `coverage, low, high (level, parameter)`: shares with their binomial intervals (Clopper and
        Pearson); `lower, upper (level)`: the band in which all levels of a calibrated posterior
        stay together; `p_value (parameter)` of leaving it so far; `worst_points (parameter)`: the
        largest deviation from the level, in points of per cent, negative where over-confident.

    Raises:
        ValueError: shapes do not fit, or a value is not finite.

    Source: J. Hermans et al., arXiv 2110.06581; highest density: M. Deistler, P. J. Gonçalves,
    J. H. Macke, arXiv 2210.04815.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(200, 2))
    >>> draws = rng.normal(size=(100, 200, 2))
    >>> bool(abs(coverage(draws, truth).worst_points).max() < 15)
    True
    """
    pairs = pair(posterior, truth)
    rng = np.random.default_rng(seed)
    uniform = rng.random(pairs.truth.shape)
    parts = [rank(d, pairs.truth[i], uniform[i]) for i, d in pairs.chunks(label="coverage")]
    credibility, names = central(join(parts).pit), pairs.names
    if density is not None:
        values, known = check_quantity("density", *density, samples=len(uniform))
        joint = highest(rank(values, known, rng.random(len(uniform))).pit)
        credibility, names = np.column_stack([credibility, joint]), (*names, "joint")
    return judge_coverage(credibility, names, levels, probability)


def central(pit: np.ndarray) -> np.ndarray:
    """Return the smallest level whose central interval holds the truth."""
    return np.abs(2 * pit - 1)


def highest(pit: np.ndarray) -> np.ndarray:
    """Return the smallest level whose region of highest density holds the truth."""
    return 1 - pit


def judge_coverage(
    credibility: Float[np.ndarray, "sample param"],
    names: tuple[str, ...],
    levels: Float[np.ndarray, " level"] = LEVELS,
    probability: float = 0.95,
) -> xr.Dataset:
    """Return the coverage that follows from the smallest level that holds each truth."""
    samples = len(credibility)
    counts = np.array([(credibility <= level).sum(axis=0) for level in levels])
    low, high = binomial_interval(counts, samples, probability)
    lower, upper = simultaneous_band(samples, levels, probability)
    off = 100 * (counts / samples - levels[:, None])
    worst = np.take_along_axis(off, np.abs(off).argmax(axis=0)[None], axis=0)[0]
    dims = ("level", "parameter")
    return xr.Dataset(
        {
            "coverage": (dims, counts / samples),
            "low": (dims, low),
            "high": (dims, high),
            "lower": ("level", lower),
            "upper": ("level", upper),
            "p_value": ("parameter", [path_p_value(c, samples, levels) for c in counts.T]),
            "worst_points": ("parameter", worst),
        },
        coords={"level": levels, "parameter": list(names)},
        attrs={"samples": samples, "probability": probability},
    )


def binomial_interval(
    counts: np.ndarray, samples: int, probability: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return Clopper and Pearson's interval of a share of which `counts` of `samples` were seen."""
    tails = (1 - probability) / 2
    low = beta.ppf(tails, counts, samples - counts + 1)
    high = beta.ppf(1 - tails, counts + 1, samples - counts)
    # NaN where none, or all, were seen
    return np.nan_to_num(low, nan=0.0), np.nan_to_num(high, nan=1.0)
