"""An alarm for observations that the simulator does not make.

A net that inverts a simulator answers any observation, also one unlike all it was trained on, and
calibration on simulations says nothing then. The alarm measures how far an observation lies from
the training observations, and compares with the distances of simulations that the fit has not
seen: the p-value is the share of these that lie as far (a conformal p-value), so false alarms come
at the chosen rate whatever the distribution. Of several views of an observation the strangest
counts, for the unseen simulations as well.

Sources: M. Schmitt et al., arXiv 2112.08866; conformal p-values: V. Vovk, A. Gammerman, G. Shafer,
Algorithmic Learning in a Random World (2005), chapter 2.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr
from jaxtyping import Float

from sciml._labels import Labelled, measured_alike, variable
from sciml.diagnose.samples.distance import Distance, Fitted, Mahalanobis, Nearest
from sciml.diagnose.samples.features import flat, summaries

FEWEST = 200  # training observations for an alarm at a level of 5 % in two views or more,
EACH = 60  # of which fewer views need fewer: so many, and as many for each
SERIES = 8  # entries along the second axis from which it may be time


@dataclass(frozen=True)
class View:
    """One way to look at observations.

    Attributes:
        features: observations (sample, …) → features (sample, feature).
        distance: among the features.

    >>> import numpy as np
    >>> from sciml import diagnose
    >>> mean = diagnose.View(lambda seen: seen.mean(1, keepdims=True), diagnose.Mahalanobis())
    >>> mean.features(np.ones((3, 5))).shape
    (3, 1)
    """

    features: Callable[[np.ndarray], np.ndarray]
    distance: Distance


@dataclass(frozen=True)
class Alarm:
    """Fitted distances, and how large they are for observations that are as they should be.

    Attributes:
        views: name → view.
        distances: name → fitted distance.
        usual: distances (view, simulation) of simulations that the fit has not seen.
        shape: of one observation.
        like: one of the training observations, for its axes and labels.
        scale: the spread of each channel, by which observations are divided: units do not matter.
    """

    views: Mapping[str, View]
    distances: Mapping[str, Fitted]
    usual: Float[np.ndarray, "view simulation"]
    shape: tuple[int, ...]
    like: Labelled
    scale: Labelled

    def __repr__(self) -> str:
        """Return one line: the views, and how many simulations set the threshold."""
        views = ", ".join(self.views)
        return f"Alarm({views}; {self.usual.shape[1]} simulations of shape {self.shape})"

    def measured(self, observation: np.ndarray) -> Float[np.ndarray, "view sample"]:
        """Return the distance of each observation in each view."""
        return np.stack(
            [self.distances[n](view.features(observation)) for n, view in self.views.items()]
        )


def default_views(shape: tuple[int, ...], *, time: bool, central: bool = False) -> dict[str, View]:
    """Return how to look at observations of one shape; `central` is as of `Mahalanobis`.

    Both views see the values by their principal components and what these leave out; of a series
    the second sees its summaries, where levels, amplitudes and noise show whatever the timing.
    """
    values = View(rows, Mahalanobis(central=central))
    if time and shape[0] >= SERIES:
        return {"values": values, "summaries": View(summaries, Nearest())}
    return {"values": values, "neighbours": View(rows, Nearest())}


def alarm(
    training: Labelled,
    *,
    views: Mapping[str, View] | None = None,
    seed: int = 0,
) -> Alarm:
    """Return an alarm that knows the training observations.

    Args:
        training: (sample, …), as observed: with noise, and gaps (NaN) if any; what all of them
            lack is looked at in none. The second axis of a
            bare array of 8 entries or more is taken for time; for features name it, as
            `xarray.DataArray(values, dims=("sample", "feature"))`.
        views: name → `View(features, distance)`, with the distances `Mahalanobis()`, `Nearest()`,
            `Kernel()` and any features, those of a net among them; `default_views` if not given.
        seed: of the split into two thirds for the fit and one third for the p-values.

    Raises:
        ValueError: there are fewer than 200 training observations, for two views 180 and for one
            120; or no views.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(300, 4))
    >>> from sciml.diagnose import judge
    >>> bool(judge(alarm(x), x[:3] + 20.0).flagged.all())
    True
    """
    observed = rectangular(training)
    shape, scale = observed.shape[1:], spread(observed)
    chosen = default_views(shape, time=is_series(training)) if views is None else dict(views)
    if not chosen:
        raise ValueError("views is empty; leave it out, or name one: {'values': View(…)}")
    fewest = min(FEWEST, EACH * (1 + len(chosen)))
    if len(observed) < fewest:
        raise ValueError(
            f"there are {len(observed)} training observations; an alarm needs {fewest}, better 1000"
        )
    observed = observed / scale
    order = np.random.default_rng(seed).permutation(len(observed))
    fit, rest = np.split(observed[order], [2 * len(order) // 3])
    fitted = {name: view.distance.fitted(view.features(fit)) for name, view in chosen.items()}
    like = variable(training, "observation", ("sample",))[:1]
    known = Alarm(chosen, fitted, np.empty((len(chosen), 0)), shape, like, scale)
    return replace(known, usual=known.measured(rest))


def judge(known: Alarm, observation: Labelled, *, level: float = 0.05) -> xr.Dataset:
    """Return, for each observation, whether the simulator could have made it.

    Args:
        known: from `alarm`.
        observation: (sample, …), measured as the training observations were.
        level: the share of false alarms.

    Returns:
        `flagged, p_value (sample)`; `distance (view, sample)`, `usual (view, simulation)` and
        `threshold (view)`, the distance beyond which a view flags. A p-value of n unseen
        simulations and v views is never below (1 + v) / (n + 1); the distance tells how strange an
        observation is beyond that.

    Raises:
        ValueError: the observations have another shape than the training ones, or the level is
            finer than the alarm can resolve.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(300, 4))
    >>> from sciml.diagnose import alarm
    >>> judge(alarm(x), x[:3] + 20.0).flagged.values.tolist()
    [True, True, True]
    """
    given = variable(observation, "observation", ("sample",))
    observed = rectangular(measured_alike(given, known.like, "observations"))
    if observed.shape[1:] != known.shape:
        raise ValueError(
            f"observations have shape {observed.shape[1:]} and the training ones {known.shape}; "
            "they must be measured alike"
        )
    views, simulations = known.usual.shape
    finest = (1 + views) / (simulations + 1)
    if not finest <= level < 1:
        raise ValueError(
            f"level is {level}; with {views} views and {simulations} unseen simulations it must be "
            f"at least {finest:.2g} and below 1: give more training observations"
        )
    distance = known.measured(observed / np.asarray(known.scale))
    ordered = np.sort(known.usual, axis=1)
    strange = nearer(ordered, distance).max(axis=0) / simulations
    usual = np.sort(nearer(ordered, known.usual).max(axis=0) / (simulations - 1))
    p_value = (1 + simulations - np.searchsorted(usual, strange, side="left")) / (simulations + 1)
    largest = usual[simulations - int(level * (simulations + 1))]  # that is not flagged
    return xr.Dataset(
        {
            "flagged": ("sample", p_value <= level),
            "p_value": ("sample", p_value),
            "distance": (("view", "sample"), distance),
            "usual": (("view", "simulation"), known.usual),
            "threshold": ("view", ordered[:, int(largest * simulations)]),
        },
        coords={"view": list(known.views)},
        attrs={"level": level},
    )


def nearer(ordered: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Return, view by view, how many unseen simulations are nearer than each distance."""
    return np.stack([np.searchsorted(u, d) for u, d in zip(ordered, distance, strict=True)])


def spread(observed: np.ndarray) -> np.ndarray:
    """Return the standard deviation of each channel, over samples and time; 1 where it is 0."""
    axes = (0, 1) if observed.ndim == 3 else None
    never = np.isnan(observed).all(axis=axes)
    sd = np.asarray(np.nanstd(np.where(never, 0.0, observed), axis=axes))
    return np.where(sd > 0, sd, 1.0)


def rows(observation: np.ndarray) -> np.ndarray:
    """Return observations as rows of numbers."""
    return observation.reshape(len(observation), -1)


def rectangular(observation: Labelled) -> np.ndarray:
    """Return observations (sample, …) as numbers, not infinite."""
    values = variable(observation, "observation", ("sample",))
    return flat(values).reshape(np.shape(values))


def is_series(observation: Labelled) -> bool:
    """Return whether the second axis is time, by its name if it has one."""
    values = variable(observation, "observation", ("sample",))
    return not isinstance(values, xr.DataArray) or values.dims[1] == "time"
