"""An alarm for nets that learned nothing."""

import warnings

import numpy as np

from sciml.diagnose import r2

COLLAPSED = 0.1  # assumed: R² on the training set below which a net has learned nothing


class CollapseWarning(UserWarning):
    """A net has learned nothing: it gives the mean whatever it sees, or a constant extreme."""


def collapsed_parameters(
    estimates: np.ndarray, targets: np.ndarray, names: tuple[str, ...]
) -> tuple[str, ...]:
    """Return, and warn of, the parameters that the net does not tell apart at all."""
    scores = [r2(t, e) for t, e in zip(targets.T, estimates.T, strict=True)]
    poor = tuple(name for name, score in zip(names, scores, strict=True) if score < COLLAPSED)
    if poor:
        warnings.warn(
            f"R² of {', '.join(poor)} on the training set itself is {min(scores):.3f}; a net that "
            "learns is well above 0. It has collapsed to the mean, or saturated: "
            "lower Recipe.learning_rate, set Recipe.clip, or train for more epochs",
            CollapseWarning,
            stacklevel=4,
        )
    return poor
