"""How far observations lie from training observations."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from sciml.diagnose.samples.features import Principal, principal
from sciml.diagnose.samples.kernel import gaussian_kernel, median_bandwidth, squared_distance

ROWS_AT_ONCE = 1000  # observations whose distances from all training observations are in memory


@runtime_checkable
class Distance(Protocol):
    """How far observations lie from training observations."""

    def fitted(self, training: Float[np.ndarray, "sample entry"]) -> "Fitted":
        """Return the distance, fitted to training observations."""
        ...


@runtime_checkable
class Fitted(Protocol):
    """A distance that has seen its training observations."""

    def __call__(self, observation: Float[np.ndarray, "sample entry"]) -> np.ndarray:
        """Return one distance for each observation; larger is stranger."""
        ...


@dataclass(frozen=True)
class Mahalanobis:
    """Distance among principal components, and what these leave out.

    T² is the squared Mahalanobis distance per component, Q the mean square of the rest. Both are
    compared with their usual size on a logarithmic scale, and the larger deviation counts, on
    either side: an observation with too little noise is as strange as one with too much. Values
    that are never negative in the training stand beside their roots, whose noise is even (Anscombe,
    1948): a zero is near them by their spread, and may be far by that of the roots.

    Attributes:
        variance: the share of the variance that the components carry.
        central: whether the training was drawn about the very observation, as a refined fit's: then
            T² counts where it is large alone.

    >>> from sciml import diagnose
    >>> diagnose.Mahalanobis(variance=0.9).variance
    0.9
    """

    variance: float = 0.99
    central: bool = False

    def fitted(self, training: Float[np.ndarray, "sample entry"]) -> "FittedMahalanobis":
        """Return the distance, fitted to one half and scaled on the other half of `training`."""
        half, roots = len(training) // 2, not (training < 0).any()
        training = with_roots(training) if roots else training
        seen = principal(training[:half], variance=self.variance)
        usual = log_deviations(seen, training[half:])
        mean, sd = usual.mean(axis=0), usual.std(axis=0)
        return FittedMahalanobis(seen, mean, sd, self.central, roots)


@dataclass(frozen=True)
class FittedMahalanobis:
    """Components of the training observations, and the usual size of log T² and log Q."""

    seen: Principal
    mean: Float[np.ndarray, " part"]
    sd: Float[np.ndarray, " part"]
    central: bool = False
    roots: bool = False

    def __call__(self, observation: Float[np.ndarray, "sample entry"]) -> np.ndarray:
        """Return the larger of |log T²| and |log Q|, in standard deviations from usual."""
        observation = with_roots(observation) if self.roots else observation
        off = log_deviations(self.seen, observation) - self.mean
        if self.central:
            off[:, 0] = np.maximum(off[:, 0], 0)
        return np.abs(off / np.where(self.sd > 1e-9, self.sd, 1.0)).max(axis=1)


@dataclass(frozen=True)
class Nearest:
    """Distance to a near neighbour among the training observations, which may lie on any surface.

    Attributes:
        neighbour: which one, counted from the nearest.
        variance: the share of the variance that the principal components carry.

    >>> import numpy as np
    >>> from sciml import diagnose
    >>> seen = np.random.default_rng(0).normal(size=(300, 4))
    >>> views = {"near": diagnose.View(lambda x: x, diagnose.Nearest())}
    >>> known = diagnose.alarm(seen, views=views)
    >>> diagnose.judge(known, np.array([[0.0] * 4, [9.0] * 4])).flagged.values.tolist()
    [False, True]
    """

    neighbour: int = 5
    variance: float = 0.9999

    def fitted(self, training: Float[np.ndarray, "sample entry"]) -> "FittedPoints":
        """Return the distance from `training`, in standard deviations of the components."""
        seen = principal(training, variance=self.variance)
        distance = partial(near_distance, place=self.neighbour - 1)
        return FittedPoints(seen, seen.scores(training), distance)


@dataclass(frozen=True)
class Kernel:
    """Distance in the space of a Gaussian kernel: the MMD of one point and the training set.

    Attributes:
        variance: the share of the variance that the principal components carry.
        bandwidth: of the kernel, in units of the components' spread; the median distance if None.

    >>> import numpy as np
    >>> from sciml import diagnose
    >>> seen = np.random.default_rng(0).normal(size=(300, 4))
    >>> views = {"kernel": diagnose.View(lambda x: x, diagnose.Kernel())}
    >>> known = diagnose.alarm(seen, views=views)
    >>> diagnose.judge(known, np.array([[0.0] * 4, [9.0] * 4])).flagged.values.tolist()
    [False, True]
    """

    variance: float = 0.99
    bandwidth: float | None = None

    def fitted(self, training: Float[np.ndarray, "sample entry"]) -> "FittedPoints":
        """Return 1 − ⟨k(x, ·)⟩ over the training points, which orders as the MMD does."""
        seen = principal(training, variance=self.variance)
        points = seen.scores(training)
        distance = partial(kernel_distance, bandwidth=self.bandwidth or median_bandwidth(points))
        return FittedPoints(seen, points, distance)


def near_distance(part: np.ndarray, points: np.ndarray, place: int) -> np.ndarray:
    """Return each row's distance to the neighbour of this place, from 0."""
    return np.sqrt(np.partition(squared_distance(part, points), place)[:, place])


def kernel_distance(part: np.ndarray, points: np.ndarray, bandwidth: float) -> np.ndarray:
    """Return each row's distance to all points, by a Gaussian kernel."""
    return 1 - gaussian_kernel(part, points, bandwidth).mean(axis=1)


@dataclass(frozen=True)
class FittedPoints:
    """The training observations as points among their components, and a distance from them."""

    seen: Principal
    points: Float[np.ndarray, "sample component"]
    distance: Callable[[np.ndarray, np.ndarray], np.ndarray]

    def __call__(self, observation: Float[np.ndarray, "sample entry"]) -> np.ndarray:
        """Return the distance of every row, some rows at a time, which bounds the memory."""
        rows = self.seen.scores(observation)
        pieces = np.array_split(rows, max(1, -(-len(rows) // ROWS_AT_ONCE)))
        return np.concatenate([self.distance(piece, self.points) for piece in pieces])


def with_roots(values: Float[np.ndarray, "sample entry"]) -> np.ndarray:
    """Return values with their roots beside, 0 of what is negative."""
    return np.concatenate([values, np.sqrt(np.maximum(values, 0))], axis=1)


def log_deviations(
    seen: Principal, observation: Float[np.ndarray, "sample entry"]
) -> Float[np.ndarray, "sample part"]:
    """Return log T² and log Q of each observation."""
    t2 = np.square(seen.scores(observation)).mean(axis=1)
    # below the floor Q is rounding, or the components leave nothing out
    return np.log(np.maximum(np.stack([t2, seen.residual(observation)], axis=1), 1e-20))
