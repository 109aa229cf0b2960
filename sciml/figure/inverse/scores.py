"""Scores of point estimates with their intervals."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from sciml.figure.palette import MARKERS, colour, line, symbol
from sciml.figure.style import legend_above

NAMES = {
    "r2": "R²",
    "mse": "mean squared error",
    "mae": "mean absolute error",
    "median_se": "median squared error",
    "p90_se": "90th percentile of the squared error",
}
LOGARITHMIC = ("mse", "mae", "median_se", "p90_se")


def draw_scores(dataset: xr.Dataset, ax: Axes, *, score: str = "r2") -> Axes:
    """Draw one score by regime and parameter, with its interval.

    Args:
        dataset: as `sciml.diagnose.bootstrap` returns it.
        ax: to draw on.
        score: r2, mse, mae, median_se or p90_se; errors are in the parameter's unit, or its square.

    Raises:
        ValueError: there is no such score.

    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from sciml import diagnose, figure
    >>> draw = np.random.default_rng(0)
    >>> truth, guess = draw.uniform(size=(2, 50, 1))
    >>> scores = diagnose.bootstrap(truth, guess, names=("rate",), resamples=20)
    >>> ax = figure.draw_scores(scores, Figure().subplots())
    >>> bool(ax.get_ylabel())
    True
    """
    check(score)
    place = np.arange(dataset.sizes["regime"])
    count = dataset.sizes["parameter"]
    for i, name in enumerate(dataset.parameter.values):
        one = dataset.sel(parameter=name)
        shift = 0.5 * (i - (count - 1) / 2) / count
        look: Any = {"fmt": MARKERS[i % len(MARKERS)], "color": colour(i), "capsize": 3}
        ax.errorbar(place + shift, one[score], bars(one, score), label=symbol(str(name)), **look)
    labels = [
        f"{name}\n({samples})"
        for name, samples in zip(dataset.regime.values, dataset.samples.values, strict=True)
    ]
    ax.set_xticks(place, labels)
    ax.set(xlabel="regime (samples)", xlim=(-0.5, len(place) - 0.5))
    return decorate(dataset, ax, score)


def draw_learning(dataset: xr.Dataset, ax: Axes, *, score: str = "r2") -> Axes:
    """Draw one score against the number of training samples, with its interval.

    Args:
        dataset: as `sciml.diagnose.learning_curve` returns it.
        ax: to draw on.
        score: as in `draw_scores`.

    Raises:
        ValueError: there is no such score.

    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from sciml import diagnose, figure
    >>> draw = np.random.default_rng(0)
    >>> truth = draw.uniform(size=(50, 1))
    >>> guesses = {n: truth + draw.normal(size=(50, 1)) / n for n in (10, 100)}
    >>> curve = diagnose.learning_curve(truth, guesses, names=("rate",), resamples=20)
    >>> ax = figure.draw_learning(curve, Figure().subplots())
    >>> bool(ax.get_xlabel())
    True
    """
    check(score)
    sizes = dataset.training_samples.values
    for i, name in enumerate(dataset.parameter.values):
        one = dataset.sel(parameter=name)
        look: Any = {"marker": MARKERS[i % len(MARKERS)], "color": colour(i), "ls": line(i)}
        ax.plot(sizes, one[score], label=symbol(str(name)), **look)
        ax.fill_between(
            sizes, one[f"{score}_low"], one[f"{score}_high"], color=colour(i), alpha=0.2, lw=0
        )
    ax.set_xscale("log")
    ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
    ax.minorticks_off()
    ax.set_xlabel("training samples")
    return decorate(dataset, ax, score)


def bars(one: xr.Dataset, score: str) -> np.ndarray:
    """Return the lengths of an interval below and above a score."""
    ends = np.stack([one[f"{score}_low"].values, one[f"{score}_high"].values])
    return np.abs(ends - one[score].values)


def decorate(dataset: xr.Dataset, ax: Axes, score: str) -> Axes:
    """Label the score, and say what the intervals are."""
    ax.set_ylabel(NAMES[score])
    if score in LOGARITHMIC:
        ax.set_yscale("log")
    ax.set_title(
        f"{100 * dataset.attrs['probability']:g} % intervals", loc="right", fontsize="small"
    )
    legend_above(ax)
    return ax


def check(score: str) -> None:
    """Refuse a score that there is not."""
    if score not in NAMES:
        raise ValueError(f"score is {score!r}; it must be one of {', '.join(NAMES)}")
