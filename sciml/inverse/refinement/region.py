"""Where the next simulations of a refinement come from: the prior, about the draws of a net."""

from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.special import gammaln, logsumexp

from sciml.inverse.result import Fit
from sciml.inverse.scaling import Unconstrained
from sciml.ode.prior import log_prob

KERNELS = 500  # assumed: draws about which the next simulations lie
FREEDOM = 5.0  # assumed: tails of each
EXACT = (0.999, 0.99, 0.95, 0.8, 0.5)  # assumed: share of draws where the prior is kept, at best
ACCEPTED = 0.01  # assumed: share of proposals that is enough
LEAST = 1e-4  # assumed: spread on the whole line, of a prior of width about 2; less is rounding
PROPOSED = 4096  # assumed: proposals at once


@dataclass(frozen=True)
class Region:
    """p̂(θ) = min(p(θ), c g(θ)) / Z: the prior p where draws of a net are, fading out elsewhere.

    g is a mixture of Student t's about draws of the net, each as wide as all of these.
    """

    prior: dict[Any, Any]
    scaling: Unconstrained
    centres: Float[np.ndarray, "kernel param"]
    factor: Float[np.ndarray, "param param"]
    log_c: float = 0.0
    log_z: float = 0.0

    @classmethod
    def about(cls, prior: dict[Any, Any], fit: Fit, theta: Any, rng: Any) -> "Region":
        """Return the region about draws (draw, param) of a fit."""
        assert isinstance(fit.scaling, Unconstrained)
        z = np.asarray(fit.scaling.forward(np.asarray(theta, np.float32)), np.float64)
        spread = np.cov(z.T).reshape(z.shape[1], -1)
        spread += 1e-6 * np.diag(np.diag(spread))
        if not (np.isfinite(spread).all() and (np.diag(spread) > LEAST**2).all()):
            raise ValueError(
                f"draws of the net have spreads {np.sqrt(np.diag(spread))} here: they lie at the "
                "border of the prior or at one point, about which nothing can be simulated; the "
                "observation is unlike those of the training: look at `flagged` of fit.sample"
            )
        free = cls(prior, fit.scaling, z[:KERNELS], np.linalg.cholesky(spread))
        own, tried = (free.log_ratio(free.rounded(z[-1000:])), free.log_ratio(free.propose(rng)))
        log_c, accepted = 0.0, 0.0
        for share in EXACT:
            log_c = float(np.quantile(own[np.isfinite(own)], share))
            accepted = float(np.exp(np.minimum(tried - log_c, 0)).mean())
            if accepted >= ACCEPTED:
                break
        return replace(free, log_c=log_c, log_z=log_c + np.log(max(accepted, 1e-12)))

    def rounded(self, z: np.ndarray) -> np.ndarray:
        """Return θ(z)."""
        return np.asarray(self.scaling.backward(np.asarray(z, np.float32)))

    def propose(self, rng: np.random.Generator) -> Float[np.ndarray, "proposal param"]:
        """Return draws of g."""
        centre = self.centres[rng.integers(len(self.centres), size=PROPOSED)]
        heavy = np.sqrt(FREEDOM / rng.chisquare(FREEDOM, size=(PROPOSED, 1)))
        normal = rng.normal(size=centre.shape)
        return self.rounded(centre + heavy * normal @ self.factor.T)

    def log_prior(self, theta: np.ndarray) -> np.ndarray:
        """Return ln p, −∞ outside."""
        ends = np.array([self.scaling.low, self.scaling.high])
        inside = ((theta > ends[0]) & (theta < ends[1])).all(axis=1)
        with np.errstate(invalid="ignore"):
            value = np.asarray(log_prob(self.prior, jnp.asarray(theta)), np.float64)
        return np.where(inside & np.isfinite(value), value, -np.inf)

    def log_mixture(self, theta: np.ndarray) -> np.ndarray:
        """Return ln g."""
        z = np.asarray(self.scaling.forward(np.asarray(theta, np.float32)), np.float64)
        size, inverse = z.shape[1], np.linalg.inv(self.factor)
        a, b = z @ inverse.T, self.centres @ inverse.T
        square = (a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * a @ b.T
        total = FREEDOM + size
        constant = gammaln(total / 2) - gammaln(FREEDOM / 2) - size / 2 * np.log(FREEDOM * np.pi)
        constant -= np.log(np.diag(self.factor)).sum() + np.log(len(b))
        each = constant - total / 2 * np.log1p(np.maximum(square, 0) / FREEDOM)
        return np.asarray(logsumexp(each, axis=1)) + np.asarray(self.scaling.log_slope(theta))

    def log_ratio(self, theta: np.ndarray) -> np.ndarray:
        """Return ln p / g."""
        return self.log_prior(theta) - self.log_mixture(theta)

    def log_density(self, theta: np.ndarray) -> np.ndarray:
        """Return ln p̂."""
        capped = self.log_c + self.log_mixture(theta)
        return np.minimum(self.log_prior(theta), capped) - self.log_z

    def draw(self, rng: np.random.Generator, count: int) -> Float[np.ndarray, "sample param"]:
        """Return draws of p̂, by rejection."""
        kept: list[np.ndarray] = []
        for _ in range(100 + int(2 * count / (ACCEPTED * PROPOSED))):
            theta = self.propose(rng)
            chance = np.exp(np.minimum(self.log_ratio(theta) - self.log_c, 0))
            kept.append(theta[rng.uniform(size=len(theta)) < chance])
            if sum(map(len, kept)) >= count:
                return np.concatenate(kept)[:count]
        raise ValueError(
            f"of the draws about the net's own, {sum(map(len, kept))} of {count} lie where the "
            "prior allows; train the fit longer, or leave out an observation unlike its training"
        )


@dataclass(frozen=True)
class Simulated:
    """The simulations so far, padded to one size, and the regions that they are drawn from."""

    parts: tuple[xr.Dataset, ...] = ()
    regions: tuple[Region, ...] = ()

    def joined(self, data: xr.Dataset, region: Region) -> "Simulated":
        """Return these and those of a further round."""
        return Simulated((*self.parts, data), (*self.regions, region))

    def weights(self, theta: np.ndarray) -> np.ndarray:
        """Return p̂ of the last region over the mixture of all, by simulations in each."""
        logs = np.stack([region.log_density(theta) for region in self.regions])
        counts = np.array([part.sizes["sample"] for part in self.parts], float)
        mixture = np.asarray(logsumexp(logs, axis=0, b=(counts / counts.sum())[:, None]))
        with np.errstate(invalid="ignore"):
            value = np.exp(logs[-1] - mixture)
        return np.where(np.isfinite(value), value, 0.0)
