"""How much the data taught, and how far the truth lies from the mean in posterior spreads."""

import numpy as np
import xarray as xr
from jaxtyping import Float

from sciml._labels import Labelled, by_name, variable
from sciml.diagnose.pairs import Posterior, pair


def contraction(
    posterior: Posterior, truth: Labelled, *, prior: Labelled | None = None
) -> xr.Dataset:
    """Return posterior contraction and z-score of each sample and parameter.

    contraction = 1 − Var[θ | x] / Var[θ]: 0 where the posterior is as wide as the prior, towards 1
    where the data say all; negative where it is wider. z = (E[θ | x] − θ*) / √Var[θ | x]: of mean
    0 and standard deviation near 1 where posteriors are right and near normal; wider where they
    are over-confident.

    Args:
        posterior: `posterior (draw, sample, parameter)`, or a function from indices of samples.
        truth: `parameters (sample, parameter)`.
        prior: draws from the prior (draw, parameter); without them the truths, which are such.

    Returns:
        `contraction, z_score, mean, sd (sample, parameter)`; `median_contraction, z_mean, z_sd
        (parameter)`, and `variance_ratio (parameter)` = (⟨Var[θ | x]⟩ + Var ⟨θ | x⟩) / Var[θ],
        which is 1 for any posterior that averages to the prior.

    Raises:
        ValueError: shapes do not fit, a value is not finite, or the prior does not vary.

    Source: D. J. Schad, M. Betancourt, S. Vasishth, Psychological Methods 26 (2021) 103,
    arXiv 1904.12765.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(200, 2))
    >>> draws = rng.normal(size=(100, 200, 2))
    >>> bool(abs(contraction(draws, truth).median_contraction).max() < 0.2)
    True
    """
    pairs = pair(posterior, truth)
    moments = [(d.mean(axis=0), d.var(axis=0, ddof=1)) for _, d in pairs.chunks(label="moments")]
    mean, variance = (np.concatenate(part) for part in zip(*moments, strict=True))
    return judge_contraction(mean, variance, pairs.truth, pairs.names, prior=prior)


def judge_contraction(
    mean: Float[np.ndarray, "sample param"],
    variance: Float[np.ndarray, "sample param"],
    truth: Float[np.ndarray, "sample param"],
    names: tuple[str, ...],
    *,
    prior: Labelled | None = None,
) -> xr.Dataset:
    """Return contraction and z-score from the moments of the posteriors."""
    wide = truth
    if prior is not None:
        wide = by_name(variable(prior, "prior", ("draw", "parameter")), names, "the prior")
    prior_variance = np.asarray(wide, np.float64).var(axis=0, ddof=1)
    if prior_variance.shape != mean.shape[1:] or not np.all(prior_variance > 0):
        raise ValueError(
            f"prior has variances {prior_variance}; they must be positive, one for each of "
            f"{', '.join(names)}: pass draws (draw, parameter)"
        )
    sd = np.sqrt(variance)
    with np.errstate(divide="ignore", invalid="ignore"):  # a posterior that is a point: z = ±∞
        z = (mean - truth) / sd
        z_mean, z_sd = z.mean(axis=0), z.std(axis=0, ddof=1)
    shrunk = 1 - variance / prior_variance
    ratio = (variance.mean(axis=0) + mean.var(axis=0, ddof=1)) / prior_variance
    dims = ("sample", "parameter")
    return xr.Dataset(
        {
            "contraction": (dims, shrunk),
            "z_score": (dims, z),
            "mean": (dims, mean),
            "sd": (dims, sd),
            "median_contraction": ("parameter", np.median(shrunk, axis=0)),
            "z_mean": ("parameter", z_mean),
            "z_sd": ("parameter", z_sd),
            "variance_ratio": ("parameter", ratio),
        },
        coords={"parameter": list(names)},
    )
