"""Distances of distributions by a Gaussian kernel: the maximum mean discrepancy (MMD)."""

import numpy as np
import xarray as xr
from jaxtyping import Float
from tqdm.auto import tqdm

from sciml._labels import Labelled, measured_alike, variable
from sciml.diagnose.samples.features import flat, principal

MEDIAN_OF = 1000  # points at most among which the median distance is sought


def gaussian_kernel(
    a: Float[np.ndarray, "sample entry"], b: Float[np.ndarray, "other entry"], bandwidth: float
) -> Float[np.ndarray, "sample other"]:
    """Return k(a, b) = exp(−|a − b|² / (2 bandwidth²)) of all pairs."""
    return np.exp(-squared_distance(a, b) / (2 * bandwidth**2))


def squared_distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return |a − b|² of all pairs."""
    squares = np.square(a).sum(axis=1)[:, None] + np.square(b).sum(axis=1) - 2 * a @ b.T
    return np.maximum(squares, 0.0)


def median_bandwidth(points: Float[np.ndarray, "sample entry"]) -> float:
    """Return the median distance of different points, 1 where all are the same."""
    some = points[:MEDIAN_OF]
    distance = np.sqrt(squared_distance(some, some)[np.triu_indices(len(some), 1)])
    return float(np.median(distance)) or 1.0


def mmd(
    observation: Labelled,
    training: Labelled,
    *,
    bandwidth: float | None = None,
    permutations: int = 500,
    seed: int = 0,
) -> xr.Dataset:
    """Test whether a set of observations comes from the distribution of the training set.

    MMD² = ⟨k(x, x′)⟩ + ⟨k(y, y′)⟩ − 2 ⟨k(x, y)⟩ without equal pairs, over principal components of
    the training observations. Many observations together show shifts that none shows alone.

    Args:
        observation: the set to judge, (sample, …), 2 or more.
        training: observations from simulations.
        bandwidth: of the kernel; the median distance if not given.
        permutations: of set membership, which make the null distribution.
        seed: of the permutations.

    Returns:
        `mmd2`, `p_value`, `null (permutation)`.

    Raises:
        ValueError: a set is too small, or they are not measured alike.

    Source: A. Gretton et al., JMLR 13 (2012) 723; for amortised inference M. Schmitt et al.,
    arXiv 2112.08866.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(60, 2))
    >>> float(mmd(x + 3.0, x).p_value) < 0.05
    True
    """
    like = variable(training, "observation", ("sample",))
    seen = variable(observation, "observation", ("sample",))
    here, there = flat(measured_alike(seen, like, "observations")), flat(like)
    if len(here) < 2 or here.shape[1] != there.shape[1]:
        raise ValueError(
            f"observations have shape {here.shape} and training {there.shape}; they must be "
            "measured alike, and 2 or more"
        )
    seen = principal(there)
    points = np.concatenate([seen.scores(here), seen.scores(there)])
    gram = gaussian_kernel(points, points, bandwidth or median_bandwidth(points))
    np.fill_diagonal(gram, 0.0)
    rng = np.random.default_rng(seed)
    member = np.arange(len(points)) < len(here)
    rounds = tqdm(range(permutations), "permutations", leave=False, disable=len(points) < 1000)
    null = np.array([discrepancy(gram, rng.permutation(member)) for _ in rounds])
    found = discrepancy(gram, member)
    p_value = (1 + int((null >= found).sum())) / (1 + permutations)
    return xr.Dataset({"mmd2": found, "p_value": p_value, "null": ("permutation", null)})


def discrepancy(gram: np.ndarray, member: np.ndarray) -> float:
    """Return the unbiased MMD² of members and others, from kernels with an empty diagonal."""
    inside = member.astype(float)
    outside = 1 - inside
    m, n = inside.sum(), outside.sum()
    to_inside, to_outside = gram @ inside, gram @ outside
    within = inside @ to_inside / (m * (m - 1)) + outside @ to_outside / (n * (n - 1))
    return float(within - 2 * (inside @ to_outside) / (m * n))
