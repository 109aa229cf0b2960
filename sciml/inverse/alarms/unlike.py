"""Which observations are unlike those of the training, alone or beside their conditions."""

import logging
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from sciml.diagnose import Nearest, View, alarm, judge
from sciml.diagnose.samples.distance import Distance, Fitted
from sciml.diagnose.samples.features import Principal, principal
from sciml.diagnose.samples.misspecification import Alarm, default_views, is_series

log = logging.getLogger(__name__)

EACH = 60  # derived: samples, of which a third resolves FALSE_ALARMS; as many for each view again
FAR = 3.0  # assumed: times as far as the farthest unseen simulation, where no density is to be had
FALSE_ALARMS = 0.05  # assumed: share of proper observations that are flagged
MARGIN = 0.05  # assumed: of the range of 512 conditions, of which draws reach a little further
ROUNDING = 1e-6  # of float32
FEW = 10.0  # assumed: values of a time that chance does not leave out of all samples
COMPONENTS = 10  # assumed: of observations, and of conditions, that are compared

Rows = Float[np.ndarray, "sample entry"]


@dataclass(frozen=True)
class Beside:
    """A distance among the components of the first entries beside those of the others.

    A dose and its effect may both be usual, and the one not belong to the other.
    """

    width: int
    distance: Distance

    def fitted(self, training: Rows) -> Fitted:
        """Return the distance, fitted to training observations and their conditions."""
        parts = training[:, : self.width], training[:, self.width :]
        both = tuple(principal(x, variance=0.999, most=COMPONENTS) for x in parts)
        return FittedBeside(both, self.width, self.distance.fitted(beside(both, parts)))


@dataclass(frozen=True)
class FittedBeside:
    """The components of both, and the distance among them."""

    both: tuple[Principal, ...]
    width: int
    distance: Fitted

    def __call__(self, observation: Rows) -> np.ndarray:
        """Return one distance for each row."""
        parts = observation[:, : self.width], observation[:, self.width :]
        return self.distance(beside(self.both, parts))


def beside(both: tuple[Principal, ...], parts: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return the components of each part, beside each other."""
    return np.concatenate([seen.scores(x) for seen, x in zip(both, parts, strict=True)], axis=1)


def alarm_of(fit: Any) -> Alarm | None:
    """Return what the training observations of a fit look like; None where there are too few.

    Few samples resolve the level of false alarms in fewer views.
    """
    given = bool(fit.grid.conditions or fit.grid.series)
    most = len(fit.reference) // EACH - 1
    if most < 1:
        log.warning(
            "the fit has seen %d samples; observations unlike those of the training are "
            "flagged from %d on",
            len(fit.reference),
            2 * EACH,
        )
        return None
    alone = xr.DataArray(fit.grid.apart(fit.reference)[0], dims=fit.grid.dimensions)
    about = "refinement" in fit.attrs  # the simulations are drawn about the observation
    views = default_views(alone.shape[1:], time=is_series(alone), central=about)
    if not given:
        return alarm(alone, views=dict(islice(views.items(), most)))
    size = alone[0].size
    own = {name: of_the_first(view, alone.shape[1:]) for name, view in views.items()}
    both = View(lambda x: x[:, size:], Beside(size, Nearest()))
    ranked = {"conditions": both} | own
    return alarm(joined(fit, fit.reference), views=dict(islice(ranked.items(), most)))


def of_the_first(view: View, shape: tuple[int, ...]) -> View:
    """Return a view of observations of a shape, which are the first entries of rows."""
    size = int(np.prod(shape))
    return View(lambda x: view.features(x[:, :size].reshape(-1, *shape)), view.distance)


def joined(fit: Any, shown: np.ndarray) -> xr.DataArray:
    """Return rows of observations as measured, and as the net takes them with their conditions."""
    scaled = np.asarray(fit.inputs.forward(shown))
    (seen, _), (curved, known) = (fit.grid.apart(x) for x in (shown, scaled))
    if fit.grid.dimension == "time":  # conditions that are numbers stand at each time
        once, series = np.split(known, [len(fit.grid.conditions)], axis=-1)
        known = np.concatenate([once[:, 0], series.reshape(len(series), -1)], axis=1)
    parts = [part.reshape(len(shown), -1) for part in (seen, curved, known)]
    return xr.DataArray(np.concatenate(parts, axis=1), dims=("sample", "feature"))


def unlike(fit: Any, observed: xr.DataArray) -> np.ndarray:
    """Tell which observations are not like those of the training, alone or by their conditions."""
    return judged(fit, observed).flagged.values


def judged(fit: Any, observed: xr.DataArray) -> xr.Dataset:
    """Return what the alarm says of observations beside their conditions."""
    given = fit.grid.conditions or fit.grid.series
    rows = joined(fit, fit.grid.seen(observed)) if given else observed
    return judge(fit.alarm, rows, level=FALSE_ALARMS)


def tell_far(fit: Any, observed: xr.DataArray) -> None:
    """Say, where an answer has no room for `flagged`, which observation is far off, if one is."""
    if fit.alarm is None:
        return
    found = judged(fit, observed)
    farthest = found.usual.max("simulation").values[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.where(farthest > 0, found.distance.values / farthest, 0.0).max(axis=0)
    if times.max() > FAR:
        tell_once(
            fit,
            f"observation {times.argmax()} is {times.max():.3g} times as far from the training as "
            "any simulation of it that was kept apart, and the net has learned no density there: "
            "see `flagged` of predict or sample",
        )


def untrained(fit: Any, shown: np.ndarray) -> np.ndarray:
    """Tell and say which observations have conditions, gaps or values that the training lacks."""
    return outside(fit, shown) | gappy(fit, shown) | unseen(fit, shown)


def outside(fit: Any, shown: np.ndarray) -> np.ndarray:
    """Tell which observations have conditions beyond those of the training, by a margin."""
    usual, given = (fit.grid.apart(x)[1] for x in (fit.reference, shown))
    low, high = (each(usual, axis=0) for each in (np.min, np.max))
    margin = MARGIN * (high - low) + ROUNDING * np.maximum(np.abs(low), np.abs(high))
    beyond = np.maximum(low - margin - given, given - high - margin)
    for i, name in enumerate((*fit.grid.conditions, *fit.grid.series)):
        at = np.unravel_index(beyond[..., i].argmax(), beyond.shape[:-1])
        if beyond[..., i][at] > 0:
            tell_once(
                fit,
                f"{name} is {given[..., i][at]:g} at observation {at[0]}, beyond the "
                f"{low[..., i].min():g} to {high[..., i].max():g} of the training, where the net "
                "has learned nothing: fit again to simulations that reach so far",
            )
    return (beyond > 0).reshape(len(given), -1).any(axis=1)


def gappy(fit: Any, shown: np.ndarray) -> np.ndarray:
    """Tell which observations miss values of a channel that the training never missed."""
    usual, given = (np.isnan(fit.grid.apart(x)[0]) for x in (fit.reference, shown))
    channels = () if fit.grid.channels is None else (2,)
    never = ~usual.any(axis=tuple(i for i in range(usual.ndim) if i not in channels))
    return told_of(
        fit,
        given & never,
        "misses values, as none of the training did there, so that the net has not learned it: "
        "fit again with noise=sciml.ode.Missing(noise, 0.2)",
    )


def unseen(fit: Any, shown: np.ndarray) -> np.ndarray:
    """Tell which observations have values where all of the training miss them.

    Not where so few of a channel are there that it may be chance.
    """
    usual, given = (~np.isnan(fit.grid.apart(x)[0]) for x in (fit.reference, shown))
    channels = usual.mean(axis=(0, 1), keepdims=usual.ndim == 3)
    never = ~usual.any(axis=0) & ((channels == 0) | (channels * len(usual) > FEW))
    return told_of(
        fit,
        given & never,
        "has values where all of the training miss theirs, of which the net knows nothing: set "
        "them to NaN, or fit again to data that have some",
    )


def told_of(fit: Any, places: np.ndarray, what: str) -> np.ndarray:
    """Return which observations have any of some places, and say what the first of them does."""
    found = np.asarray(places.reshape(len(places), -1).any(axis=1))
    if found.any():
        tell_once(fit, f"observation {found.argmax()} {what}")
    return found


def tell_once(fit: Any, message: str) -> None:
    """Warn, but not again of the same."""
    if message not in fit.said:
        fit.said.add(message)
        log.warning("%s", message)


def overflowing(answers: Any, dims: tuple[str, ...]) -> np.ndarray:
    """Tell and say for which observations an answer, axes `dims`, is beyond all numbers."""
    axes = tuple(i for i, dim in enumerate(dims) if dim != "sample")
    lost = ~np.all([np.isfinite(each).all(axis=axes) for each in answers], axis=0)
    if lost.any():
        log.warning(
            "the answers to %d of %d observations, of which %d is the first, overflow and are NaN: "
            "these observations or their conditions lie far beyond those of the training",
            *(lost.sum(), lost.size, lost.argmax()),
        )
    return lost
