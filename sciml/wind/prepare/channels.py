"""Winds as channels of numbers of order one, and back."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from sciml._numbers import as_real
from sciml.wind.cf.check import refuse_several, refuse_unlike, slabs
from sciml.wind.cf.kinds import of_fields, of_labelled
from sciml.wind.cf.names import vector_pairs
from sciml.wind.read.covariates import covariates

log = logging.getLogger(__name__)

UNLIKE = 5.0  # assumed: root mean square, in standard deviations; 30 m/s all over has about 4.5
COMPONENT = "wind_component"  # the channel in which components of a vector follow each other


@of_fields
def channels(
    winds: xr.Dataset,
    names: Sequence[str],
    statics: Sequence[str] = (),
    beside: Sequence[str] = (),
) -> xr.DataArray:
    """Return variables as (time, channel, y, x), lazily if they are lazy.

    Args:
        winds: in the schema of `open`.
        names: `("wind_speed",)` for the speed, `("x_wind", "y_wind")` for the vector.
        statics: what `covariates` knows of the ground, as channels that are the same at all times.
        beside: further variables, as `open` reads them; of these a net sees block means.

    Raises:
        TypeError: no Dataset.
        ValueError: a variable is not there, or is not on (time, y, x).

    >>> from sciml.wind import gaussian
    >>> channels(gaussian(seed=0, snapshots=2, n=16), ('x_wind', 'y_wind')).sizes['channel']
    2
    """
    names = (names,) if isinstance(names, str) else tuple(names)
    if not names or len({*names}) < len(names):
        raise ValueError(f"names is {names}; name at least one variable, and each once")
    if beside:
        parts = [channels(winds, names, statics), channels(winds, beside)]
        bare = [part.drop_vars([n for n in part.coords if n != "channel"]) for part in parts]
        times = {n: parts[0][n] for n in ("time",) if n in parts[0].coords}
        joined = xr.concat(bare, "channel", join="override").assign_coords(times)
        return joined.transpose("time", "channel", "y", "x")
    if statics:
        ground = covariates(winds, tuple(statics)).expand_dims(time=winds.sizes["time"])
        moving = channels(winds, names)
        ground = ground.assign_coords(time=moving["time"]) if "time" in moving.coords else ground
        places = [n for n in moving.coords if n not in ("time", "channel")]
        joined = xr.concat([moving.drop_vars(places), ground], "channel", join="override")
        return joined.transpose("time", "channel", "y", "x")

    for name in names:
        if name in winds:
            refuse_several(winds[name], name)
        if name not in winds or {*winds[name].dims} != {"time", "y", "x"}:
            there = [str(n) for n, v in winds.data_vars.items() if len(v.dims) == 3]
            if name in winds and not there:
                raise ValueError(
                    f"{name!r} is on {winds[name].dims}, and must be on (time, y, x): take one by "
                    ".isel, or its mean"
                )
            raise ValueError(
                f"{name!r} is not a variable on (time, y, x); name some of {', '.join(there)}"
            )
        refuse_unlike(winds[name])
    fields = [as_real(winds[n], str(n)).drop_vars("channel", errors="ignore") for n in names]
    joined = xr.concat(
        fields, xr.Variable("channel", list(names)), coords="minimal", compat="override",
        join="override", combine_attrs="drop_conflicts",
    )  # fmt: skip
    return joined.transpose("time", "channel", "y", "x")


def components(
    fields: xr.DataArray, winds: Sequence[str], statics: Sequence[str] = ()
) -> xr.DataArray:
    """Return each component of a vector as a field of its own, one after the other in time.

    The channels `winds` become one, `wind_component`; `statics` go with each.
    """
    bare = fields.drop_vars([n for n in fields.coords if n != "channel"])
    parts = [
        bare.sel(channel=[name, *statics]).assign_coords(channel=[COMPONENT, *statics])
        for name in winds
    ]
    return parts[0] if len(parts) == 1 else xr.concat(parts, "time")


@dataclass(frozen=True)
class Normaliser:
    """A mean and a standard deviation for each channel: normal = (value − mean) / std.

    Raises:
        ValueError: lengths differ, or a standard deviation is not positive.

    >>> from sciml import wind
    >>> normal = wind.Normaliser(names=("x_wind", "y_wind"), mean=(0.0, 0.0), std=(5.0, 5.0))
    >>> normal.std
    (5.0, 5.0)
    """

    names: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self):
        """Check that there is one of each, and nothing to divide by zero."""
        if not len(self.names) == len(self.mean) == len(self.std) > 0:
            raise ValueError(
                f"there are {len(self.names)} names, {len(self.mean)} means and {len(self.std)} "
                "standard deviations; there must be one of each for each channel"
            )
        if not all(np.isfinite(s) and s > 0 for s in self.std):
            bad = [n for n, s in zip(self.names, self.std, strict=True) if not s > 0]
            raise ValueError(
                f"std is {self.std}, that of {', '.join(bad or self.names)} among it; each must be "
                "positive: is a channel constant?"
            )

    def normal(self, values: Any) -> Any:
        """Return values (…, channel, y, x) as numbers of order one."""
        mean, std = self.columns()
        return (values - mean) / std

    def physical(self, values: Any) -> Any:
        """Return numbers of order one (…, channel, y, x) as values."""
        mean, std = self.columns()
        return values * std + mean

    def over(self, names: Iterable[Any], own: Callable[[str], str]) -> "Normaliser":
        """Return the normaliser of channels that have the numbers of the channel own(name)."""
        known = dict(zip(self.names, zip(self.mean, self.std, strict=True), strict=True))
        listed = tuple(map(str, names))
        mean, std = zip(*(known[own(name)] for name in listed), strict=True)
        return Normaliser(listed, mean, std)

    def columns(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard deviation on (channel, 1, 1)."""
        mean, std = (np.asarray(v, np.float32)[:, None, None] for v in (self.mean, self.std))
        return mean, std


def warn_of_unlike(
    values: Float[np.ndarray, "*samples channel y x"],
    names: Sequence[str],
    normaliser: Normaliser,
    told: set[str],
) -> None:
    """Tell, once of each channel, that it lies far from the training's; bare arrays say no unit."""
    rest = (*range(values.ndim - 3), -2, -1)
    known = np.isfinite(values)
    count = np.maximum(known.sum(axis=rest), 1)
    at = [normaliser.names.index(name) for name in names]
    mean, std = (column[at] for column in normaliser.columns())
    normal = np.where(known, (values - mean) / std, 0.0)
    far = np.sqrt((normal**2).sum(axis=rest) / count)
    for name, by, *of in zip(names, far, mean.ravel(), std.ravel(), strict=True):
        if by > UNLIKE and name not in told:
            told.add(name)
            log.warning(
                "%s lies %.3g standard deviations from its mean in training, %.3g ± %.3g, in the "
                "root mean square: is it in the unit that it had there? What is made of it has not "
                "been scored",
                *(name, by, *of),
            )


@of_labelled
def fit_normaliser(*train: xr.DataArray) -> Normaliser:
    """Return the normaliser of training fields (time, channel, y, x) or (channel, y, x), alone.

    The two components of a vector have mean 0 and one common scale, their root mean square, so
    that turning a field and normalising it commute. Missing values are left out. Fields are read
    a slab at a time; those of several grids count as their points are many.

    Raises:
        ValueError: a channel is constant.

    >>> from sciml.wind import channels, gaussian
    >>> winds = gaussian(seed=0, snapshots=20, n=16)
    >>> fit_normaliser(channels(winds, ("x_wind", "y_wind"))).mean
    (0.0, 0.0)
    """
    if lacking := [one.dims for one in train if "channel" not in one.coords]:
        raise ValueError(
            f"fields have the axes {lacking[0]}; the channels must have names: pass "
            "sciml.wind.channels(winds, names)"
        )
    names = tuple(str(name) for name in train[0]["channel"].values)
    moments = np.zeros((3, len(names)))
    for fields in train:
        fields = fields if "time" in fields.dims else fields.expand_dims("time")
        for _, slab in slabs(
            fields.sel(channel=list(names)).transpose("time", "channel", "y", "x")
        ):
            there = np.isfinite(slab)
            known = np.where(there, slab, 0).astype(np.float64)
            moments += [part.sum(axis=(0, 2, 3)) for part in (there, known, known**2)]
    count, first, second = moments
    if lacking := [name for name, n in zip(names, count, strict=True) if not n]:
        raise ValueError(f"there is no value of {', '.join(lacking)}: pass fields that have some")
    mean, square = first / count, second / count
    std = np.sqrt(np.maximum(square - mean**2, 0))
    for pair in (*vector_pairs(names), (COMPONENT,)):
        if {*pair} <= {*names}:
            at = [names.index(name) for name in pair]
            mean[at], std[at] = 0.0, np.sqrt(square[at].mean())
    return Normaliser(names, tuple(map(float, mean)), tuple(map(float, std)))
