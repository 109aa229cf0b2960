"""A data set the other way round: parameters in, one independent part of the observation out."""

import json
import logging
from dataclasses import asdict, dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.stats import ks_2samp

from sciml._labels import labels_of, marked
from sciml.inverse.borders import check_finite, targets_of, valid_samples
from sciml.inverse.inputs import power_and_offset
from sciml.inverse.surrogate.known import of_data, same_of
from sciml.inverse.surrogate.series import unit_of, unrolled
from sciml.inverse.surrogate.span import levels_of
from sciml.ode.data.evidence import valid_in

log = logging.getLogger(__name__)

UNLIKE = 1e-6  # assumed: p-value below which two parts do not follow one law
LOOKED = 32  # assumed: parts that are compared
ATOM = 0.01  # assumed: share of samples that may have one and the same value
KNOWN = "known of parts"  # no name of a user's
HALF = 0.5  # counts are spread over as much on both sides
STEPS = 20  # assumed: whole numbers that a count must take, to be smoothed into a density


@dataclass(frozen=True)
class Points:
    """What a learned law is of: parts of an observation, their features, and where they lie.

    `low` and `high` are the extremes of each feature of a part, `whole` says which are counts,
    `positive` which have a density on (0, ∞); `least` and `most` are the extremes of each
    parameter, then of each condition. `conditions` names these, `values` holds those of each where
    they are few, `known` those of its parts where all samples have the same; the first `shared` of
    them are of a whole sample. `rooted` are the
    counts that are learned by their roots, `axes` those of an observation, whose times
    have the unit `time_unit`, where it says one.
    """

    parts: int
    labels: tuple[str, ...]
    whole: tuple[bool, ...]
    positive: tuple[bool, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    least: tuple[float, ...]
    most: tuple[float, ...]
    conditions: tuple[str, ...] = ()
    values: tuple[tuple[float, ...], ...] = ()
    known: tuple[tuple[float, ...], ...] = ()
    shared: int = 0
    rooted: tuple[bool, ...] = ()
    axes: tuple[str, ...] = ("feature",)
    time_unit: str = ""

    @property
    def size(self) -> int:
        """The features of a part."""
        return len(self.low)

    def root(self, values: Any) -> Any:
        """Return features as the net has them: √(x + ½) of counts, whose noise is alike then."""
        if not any(self.rooted):
            return values
        return jnp.where(jnp.array(self.rooted), jnp.sqrt(jnp.maximum(values + HALF, 0.0)), values)

    def square(self, values: Any) -> Any:
        """Return features of what the net draws, counts in whole numbers."""
        if any(self.rooted):
            counts = jnp.maximum(jnp.square(jnp.maximum(values, 0.0)) - HALF, 0.0)
            values = jnp.where(jnp.array(self.rooted), counts, values)
        return jnp.where(jnp.array(self.whole), jnp.round(values), values)

    def log_slope(self, values: Any) -> Any:
        """Return ln |d root / d x| of each row; −∞ where a count would be negative."""
        if not any(self.rooted):
            return 0.0
        above = values + HALF
        each = jnp.where(above > 0, -jnp.log(4 * jnp.maximum(above, HALF)) / 2, -jnp.inf)
        return jnp.where(jnp.array(self.rooted), each, 0.0).sum(axis=-1)

    def described(self) -> str:
        """Return it as a file says it."""
        return json.dumps(asdict(self))


def points_of(data: Any, parts: int, conditions: Any = None) -> tuple[xr.Dataset, Points]:
    """Return the valid samples of a data set as `pairs` takes them, and what they are of."""
    channels, unit = labels_of(getattr(data, "observation", None), "channel"), unit_of(data)
    data, conditions, axes = unrolled(data, parts, conditions)
    check_features(data, parts)
    told, values = of_data(data, conditions, parts)
    shared = len(marked(data))
    data = usable(data.assign({KNOWN: (("sample", f"{KNOWN} part", f"{KNOWN} of"), values)}))
    values, theta = data[KNOWN].values, targets_of(data, levels=True)
    names = check_names(theta[1], told)
    seen = data["observation"].values.astype(np.float64).reshape(*values.shape[:2], -1)
    if (values == values[:, :1]).all():
        check_alike(seen)
    flat = np.concatenate(seen)
    whole = tuple(check_smooth(column, i) for i, column in enumerate(flat.T))
    inputs = np.concatenate([np.repeat(theta[0][:, None], parts, axis=1), values], axis=2)
    found = Points(
        parts=parts,
        labels=labels_of(data["observation"], "feature") or channels,
        whole=whole,
        positive=tuple(not w and positive(c) for w, c in zip(whole, flat.T, strict=True)),
        low=tuple(flat.min(axis=0).tolist()),
        high=tuple(flat.max(axis=0).tolist()),
        least=tuple(inputs.min(axis=(0, 1)).tolist()),
        most=tuple(inputs.max(axis=(0, 1)).tolist()),
        conditions=told,
        values=levels_of(values),
        known=same_of(values),
        shared=shared,
        rooted=tuple(bool(w and c.min() >= 0) for w, c in zip(whole, flat.T, strict=True)),
        axes=axes,
        time_unit=unit,
    )
    given = {
        "input": (("sample", "one", "name"), inputs),
        "part": (("sample", "one", "of"), seen),
    }
    return xr.Dataset(given, {"name": [*names, *told]}), found


def check_features(data: xr.Dataset, parts: int) -> None:
    """Refuse features that are not so many equal parts."""
    observed = data["observation"]
    if (width := observed.sizes["feature"]) % parts:
        raise ValueError(
            f"an observation has {width} features, which are not {parts} equal parts; parts must "
            "divide them: all features of the first part stand first, then those of the second"
        )


def usable(data: xr.Dataset) -> xr.Dataset:
    """Return the valid samples of a data set; refuse what no density is learned of."""
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


def check_names(names: tuple[str, ...], told: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of parameters; refuse one that is a condition too."""
    if both := {*names} & {*told}:
        raise ValueError(
            f"{', '.join(sorted(both))} is a parameter and a condition; what is estimated is not "
            "known: rename one"
        )
    return names


def check_alike(seen: Float[np.ndarray, "sample part feature"]) -> None:
    """Refuse parts that are not draws of one law."""
    for j in range(min(seen.shape[1], LOOKED) * (seen.shape[1] > 1)):
        others = np.delete(seen, j, axis=1)
        for i in range(seen.shape[2]):
            test: Any = ks_2samp(seen[:, j, i], others[..., i].ravel())
            if test.pvalue < UNLIKE:
                raise ValueError(
                    f"feature {i} of part {j} is distributed otherwise than in the other parts; "
                    "parts must be independent draws of one law: leave parts=1, or pass "
                    "what tells them apart, as conditions={'time': [...]}"
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
    (uniform dequantisation), then taken by their roots. Positive features over more than a factor
    of 20 have a density on (0, ∞).
    """
    rows = data["part"].values.reshape(-1, points.size)
    spread = np.random.default_rng(seed).uniform(-HALF, HALF, rows.shape)
    rows = np.asarray(points.root(rows + np.where(points.whole, spread, 0.0)))
    inputs = np.concatenate(data["input"].values)
    names = [f"x{i}" for i in range(points.size)]
    lows = [0.0 if above else None for above in points.positive]
    ends = {name: [low, None] for name, low in zip(names, lows, strict=True)}
    return xr.Dataset(
        {
            "observation": (("sample", "feature"), inputs),
            "parameters": (("sample", "parameter"), rows),
        },
        {"parameter": names, "feature": list(map(str, data["name"].values))},
        {"support": json.dumps(ends)},
    )


def positive(column: np.ndarray) -> bool:
    """Tell whether a feature, of training or held out, is taken by its logarithm."""
    return bool(column.min() > 0) and power_and_offset(column)[0] == 0
