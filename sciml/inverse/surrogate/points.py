"""A data set the other way round: parameters in, one independent part of the observation out."""

import json
import logging
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.stats import ks_2samp

from sciml._labels import labels_of, marked
from sciml.inverse.borders import check_finite, targets_of, valid_samples, variable
from sciml.inverse.inputs import power_and_offset
from sciml.ode.data.evidence import valid_in

log = logging.getLogger(__name__)

UNLIKE = 1e-6  # assumed: p-value below which two parts do not follow one law
LOOKED = 32  # assumed: parts that are compared
ATOM = 0.01  # assumed: share of samples that may have one and the same value
STEPS = 20  # assumed: whole numbers that a count must take, to be smoothed into a density


@dataclass(frozen=True)
class Points:
    """What a learned law is of: parts of an observation, their features, and where they lie.

    `low` and `high` are the extremes of each feature of a part, `whole` says which are counts,
    `positive` which have a density on (0, ∞); `least` and `most` are the extremes of each
    parameter.
    """

    parts: int
    labels: tuple[str, ...]
    whole: tuple[bool, ...]
    positive: tuple[bool, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    least: tuple[float, ...]
    most: tuple[float, ...]

    @property
    def size(self) -> int:
        """The features of a part."""
        return len(self.low)

    def described(self) -> str:
        """Return it as a file says it."""
        return json.dumps(asdict(self))


def points_of(data: Any, parts: int) -> tuple[xr.Dataset, Points]:
    """Return the valid samples of a data set as `pairs` takes them, and what they are of."""
    data = usable(data)
    count, width = data["observation"].shape
    if width % parts:
        raise ValueError(
            f"an observation has {width} features, which are not {parts} equal parts; parts must "
            "divide them: all features of the first part stand first, then those of the second"
        )
    seen = data["observation"].values.astype(np.float64).reshape(count, parts, -1)
    check_alike(seen)
    flat = seen.reshape(count * parts, -1)
    whole = tuple(check_smooth(column, i) for i, column in enumerate(flat.T))
    theta, names = targets_of(data, levels=True)
    found = Points(
        parts=parts,
        labels=labels_of(data["observation"], "feature"),
        whole=whole,
        positive=tuple(not w and positive(c) for w, c in zip(whole, flat.T, strict=True)),
        low=tuple(flat.min(axis=0).tolist()),
        high=tuple(flat.max(axis=0).tolist()),
        least=tuple(theta.min(axis=0).tolist()),
        most=tuple(theta.max(axis=0).tolist()),
    )
    given = {"theta": (("sample", "parameter"), theta), "part": (("sample", "one", "of"), seen)}
    return xr.Dataset(given, {"parameter": list(names)}), found


def usable(data: Any) -> xr.Dataset:
    """Return the valid samples of a data set of features; refuse what no density is learned of."""
    if not isinstance(data, xr.Dataset):
        raise TypeError(
            f"data is a {type(data).__name__}; it must be a Dataset, as sciml.simulate or "
            "sciml.dataset makes it"
        )
    observed = variable(data, "observation")
    if observed.dims != ("sample", "feature"):
        raise ValueError(
            f"the observations have the dimensions {observed.dims}; a likelihood is learned of "
            "('sample', 'feature'): pass sciml.dataset(theta, features), of a series a few numbers "
            "that tell it; a fit of a posterior takes series as they are"
        )
    if known := marked(data):
        raise ValueError(
            f"the data set has the conditions {', '.join(known)}; a likelihood is learned of "
            "parameters alone: make them parameters, with a prior of their own"
        )
    if json.loads(data.attrs.get("settings", "{}")).get("noise", True) is None:
        raise ValueError(
            "the data set was simulated without noise, so that parameters give one observation and "
            "no other: simulate with noise=, as noise=problem.noise"
        )
    valid = valid_in(data)
    if lost := int((~valid).sum()):
        log.warning(
            "%d of %d simulations failed and are left out: the likelihood is that of an "
            "observation given that none fails, which is right where failures do not depend on "
            "the parameters",
            *(lost, len(valid)),
        )
        data = data.isel(sample=valid)
    check_finite(data["observation"], ": a density is of all features, so none may be missing")
    return valid_samples(data)[0]


def check_alike(seen: Float[np.ndarray, "sample part feature"]) -> None:
    """Refuse parts that are not draws of one law."""
    for j in range(min(seen.shape[1], LOOKED) * (seen.shape[1] > 1)):
        others = np.delete(seen, j, axis=1)
        for i in range(seen.shape[2]):
            test: Any = ks_2samp(seen[:, j, i], others[..., i].ravel())
            if test.pvalue < UNLIKE:
                raise ValueError(
                    f"feature {i} of part {j} is distributed otherwise than in the other parts; "
                    "parts must be independent draws of one law: leave parts=1, or put what "
                    "tells them apart, as a time, beside the parameters"
                )


def check_smooth(column: Float[np.ndarray, " row"], i: int) -> bool:
    """Tell whether a feature is a count; refuse one that no density describes."""
    values, times = np.unique(column, return_counts=True)
    whole = bool((column == np.round(column)).all())
    if whole and len(values) < STEPS:
        raise ValueError(
            f"feature {i} takes {len(values)} whole numbers, from {values[0]:g} to {values[-1]:g}; "
            f"a density stands for counts of at least {STEPS}: take a noise with a likelihood, as "
            "sciml.ode.Poisson(), or a fit of a posterior"
        )
    if not whole and times.max() > max(1, ATOM * len(column)):
        raise ValueError(
            f"feature {i} is {values[times.argmax()]:g} in {times.max()} of {len(column)} rows; a "
            "density has no such value: leave the feature out, or take a fit of a posterior"
        )
    return whole


def pairs(data: xr.Dataset, points: Points, seed: int) -> xr.Dataset:
    """Return a row for each part: its parameters to be observed, its features to be told.

    Counts are spread evenly over ± ½, so that the density at a count stands for its probability
    (uniform dequantisation). Positive features over more than a factor of 20 have a density on
    (0, ∞).
    """
    rows = data["part"].values.reshape(-1, points.size)
    spread = np.random.default_rng(seed).uniform(-0.5, 0.5, rows.shape)
    rows = rows + np.where(points.whole, spread, 0.0)
    theta = np.repeat(data["theta"].values, points.parts, axis=0)
    names = [f"x{i}" for i in range(points.size)]
    lows = [0.0 if above else None for above in points.positive]
    ends = {name: [low, None] for name, low in zip(names, lows, strict=True)}
    return xr.Dataset(
        {
            "observation": (("sample", "feature"), theta),
            "parameters": (("sample", "parameter"), rows),
        },
        {"parameter": names, "feature": list(map(str, data["parameter"].values))},
        {"support": json.dumps(ends)},
    )


def positive(column: np.ndarray) -> bool:
    """Tell whether a feature, of training or held out, is taken by its logarithm."""
    return bool(column.min() > 0) and power_and_offset(column)[0] == 0
