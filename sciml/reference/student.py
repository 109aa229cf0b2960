"""Student's t about weighted points, one for each observation: a proposal with heavy tails."""

from dataclasses import dataclass
from functools import partial

import jax
import numpy as np
from jaxtyping import Array, Float
from scipy.special import gammaln

from sciml.ode.coordinates import Coordinates
from sciml.reference.weights import largest_power

FREEDOM = 5.0  # assumed: tails heavier than a posterior's, and a finite covariance
LEAST = 20.0  # assumed: effective points for each parameter, from which a covariance is taken
RIDGE = 1e-6  # assumed: least variance in any direction, as part of that along the axes

Points = Float[np.ndarray, "draw sample param"]
LogWeights = Float[np.ndarray, "draw sample"]


@dataclass(frozen=True)
class Student:
    """θ(z), z ~ t₅(centre, factor factorᵀ), for each sample; `factor` has lower triangles."""

    coordinates: Coordinates
    centre: Float[np.ndarray, "sample param"]
    factor: Float[np.ndarray, "sample param param"]

    @classmethod
    def about(cls, coordinates: Coordinates, theta: Points, log_weight: LogWeights) -> "Student":
        """Return the t with mean and covariance of weighted points.

        Where few points have nearly all of the weight, weights are raised to a power below 1
        until 20 points a parameter count, which makes the t wider.
        """
        z, _ = unbounded(coordinates, theta)
        size = z.shape[-1]
        weight = shares_of(log_weight, min(LEAST * size, len(z) / 2))
        usable = np.asarray(np.isfinite(z).all(axis=-1))
        weight = np.where(usable, weight, 0)
        with np.errstate(invalid="ignore"):  # without a usable point the t is nowhere: NaN
            weight /= weight.sum(axis=0)
        z = np.where(usable[..., None], z, 0)
        centre = np.einsum("ns,nsp->sp", weight, z)
        off = z - centre
        spread = np.einsum("ns,nsp,nsq->spq", weight, off, off)
        diagonal = np.maximum(np.einsum("spp->sp", spread), np.finfo(np.float32).tiny)
        spread += RIDGE * diagonal[..., None] * np.eye(size)
        return cls(coordinates, centre, np.linalg.cholesky(spread))

    def draw(self, rng: np.random.Generator, count: int) -> Points:
        """Return points (draw, sample, param)."""
        samples, size = self.centre.shape
        normal = rng.normal(size=(count, samples, size))
        heavy = np.sqrt(FREEDOM / rng.chisquare(FREEDOM, size=(count, samples, 1)))
        z = self.centre + heavy * np.einsum("spq,nsq->nsp", self.factor, normal)
        with jax.enable_x64(True):
            return np.asarray(bounded(self.coordinates, z))

    def log_prob(self, theta: Points) -> LogWeights:
        """Return the log density of points; −∞ on the border of the support and outside."""
        z, log_slope = unbounded(self.coordinates, theta)
        size = z.shape[-1]
        off = np.moveaxis(z - self.centre, 0, -1)  # (sample, param, draw)
        total = FREEDOM + size
        constant = gammaln(total / 2) - gammaln(FREEDOM / 2) - size / 2 * np.log(FREEDOM * np.pi)
        constant = constant - np.log(np.einsum("spp->sp", self.factor)).sum(axis=1)
        with np.errstate(invalid="ignore", over="ignore"):  # z is infinite on the border
            scaled = np.square(np.linalg.solve(self.factor, off)).sum(axis=1).T
            value = constant - total / 2 * np.log1p(scaled / FREEDOM) - log_slope
        return np.where(np.isfinite(value), value, -np.inf)


# Compiled as wholes, since one by one their operations take longer to compile.
@jax.jit
def bounded(coordinates: Coordinates, z: Array) -> Array:
    """Return θ(z)."""
    return coordinates(z)


@jax.jit
def inverted(coordinates: Coordinates, theta: Array) -> tuple[Array, Array]:
    """Return z(θ) and log |det dθ/dz|."""
    z = coordinates.inv(theta)
    return z, coordinates.log_abs_det_jacobian(z, theta)


def unbounded(coordinates: Coordinates, theta: Points) -> tuple[Points, LogWeights]:
    """Return z(θ), infinite on the border of the support, and log |det dθ/dz|."""
    with jax.enable_x64(True):
        z, slope = inverted(coordinates, np.asarray(theta, np.float64))
        return np.asarray(z), np.asarray(slope)


def shares_of(log_weight: LogWeights, least: float) -> LogWeights:
    """Return shares of wᵇ, with the largest b ≤ 1 that leaves `least` effective draws.

    Where nothing has any weight, all shares are equal.
    """
    lost = ~np.isfinite(log_weight).any(axis=0)
    count = len(log_weight)
    # Filled up with draws of no weight, so that one program serves several rounds.
    added = (1 << (count - 1).bit_length()) - count
    filled = np.pad(np.where(lost, 0, log_weight), [(0, added), (0, 0)], constant_values=-np.inf)
    with jax.enable_x64(True):
        return np.asarray(tempered(filled, least))[:count]


@jax.jit  # of the module, not of each call: it takes longer to compile than to run
@partial(jax.vmap, in_axes=(1, None), out_axes=1)
def tempered(log_weight, least):
    """Return the shares of the draws of one sample."""
    return jax.nn.softmax(largest_power(log_weight, least) * log_weight)
