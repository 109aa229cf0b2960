"""A model whose posterior is known: θ ~ N(0, 1), x = A θ + σ ε."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

A = np.array([[1.0, 1.0], [0.0, 0.4]])  # the first number sees only the sum: θ₀, θ₁ depend
SIGMA = 0.5
COVARIANCE = np.linalg.inv(np.eye(2) + A.T @ A / SIGMA**2)


@dataclass(frozen=True)
class Conjugate:
    """Truths, observations and draws from the exact posterior, or from a wrong one."""

    truth: np.ndarray
    observation: np.ndarray
    mean: np.ndarray
    exact: np.ndarray

    def scaled(self, factor: float) -> np.ndarray:
        return self.mean + factor * (self.exact - self.mean)

    def shifted(self, spreads: float) -> np.ndarray:
        return self.exact + spreads * np.sqrt(np.diag(COVARIANCE))

    def shuffled(self) -> np.ndarray:
        return np.roll(self.exact, 1, axis=1)

    def prior(self, rng: np.random.Generator) -> np.ndarray:
        return rng.normal(size=self.exact.shape)

    def independent(self) -> np.ndarray:
        """Right marginals, no dependence: the draws of θ₁ in another order."""
        return np.stack([self.exact[..., 0], np.roll(self.exact[..., 1], 1, axis=0)], axis=-1)

    def log_density(self, parameters: np.ndarray, indices: np.ndarray) -> np.ndarray:
        off = parameters - self.mean[indices]
        return -0.5 * np.einsum("np,pq,nq->n", off, np.linalg.inv(COVARIANCE), off)


@pytest.fixture
def conjugate() -> Callable[..., Conjugate]:
    def make(samples: int, draws: int, seed: int = 0) -> Conjugate:
        rng = np.random.default_rng(seed)
        truth = rng.normal(size=(samples, 2))
        x = truth @ A.T + SIGMA * rng.normal(size=(samples, 2))
        mean = x @ A @ COVARIANCE / SIGMA**2
        z = rng.normal(size=(draws, samples, 2))
        return Conjugate(truth, x, mean, mean + z @ np.linalg.cholesky(COVARIANCE).T)

    return make
