"""Spikes in a membrane potential: how many, how long, and which regime."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

THRESHOLD = 1.5  # derived: the level at which the published counts and durations come out


class Spikes(NamedTuple):
    """Number of spikes, and the mean time above threshold of one, per sample."""

    number: np.ndarray
    duration: np.ndarray


def spikes(voltage: Float[np.ndarray, "sample time"], interval: float) -> Spikes:
    """Return the spikes of each sample.

    A spike is an upward crossing of 1.5; one crossing alone counts as none (the neuron comes to
    rest). The duration is the time above threshold over the number of spikes; of a neuron that
    comes to rest it is 0 where it rests at a negative potential (hyperpolarised), and the
    whole record where at a positive one (depolarised), as in the published statistics.

    Args:
        voltage: u₀, equally spaced in time.
        interval: the spacing.

    >>> from sciml.ode import fitzhugh_nagumo, simulate
    >>> theta = {"theta0": [0.4], "theta1": [0.4]}
    >>> found = spikes(simulate(fitzhugh_nagumo(), parameters=theta).observation.values, 0.2)
    >>> found.number
    array([22])
    """
    above = voltage > THRESHOLD
    crossings = (above[:, 1:] & ~above[:, :-1]).sum(axis=1)
    count = np.where(crossings > 1, crossings, 0)
    mean = above.sum(axis=1) * interval / np.maximum(crossings, 1)
    at_rest = np.where(voltage[:, -1] > 0, (voltage.shape[1] - 1) * interval, 0.0)
    return Spikes(count, np.where(count > 0, mean, at_rest))


def is_spiking(voltage: Float[np.ndarray, "sample time"]) -> np.ndarray:
    """Tell which samples spike repeatedly; the others are quiescent.

    >>> import numpy as np
    >>> from sciml.ode import fitzhugh_nagumo, simulate
    >>> theta = {"theta0": [0.4, 0.9], "theta1": [0.4, 1.0]}
    >>> is_spiking(simulate(fitzhugh_nagumo(), parameters=theta).observation.values)
    array([ True, False])
    """
    return spikes(voltage, 1.0).number > 0
