"""Posterior heads that are trained on their own density."""

from abc import abstractmethod

from flax import nnx
from jaxtyping import Array, Float, Key

from sciml.models.shared.presence import Observed

Targets = Float[Array, "batch param"]
Draws = Float[Array, "draw batch param"]


class MaximumLikelihood(nnx.Module):
    """A net with an exact log p(y | x), whose loss is −log p(y | x)."""

    @abstractmethod
    def log_prob(self, targets: Targets, observed: Observed) -> Float[Array, " batch"]:
        """Return log p(targets | observed)."""

    def loss(
        self, targets: Targets, observed: Observed, key: Key[Array, ""] | None = None
    ) -> Float[Array, " batch"]:
        """Return −log p(targets | observed); no draw is needed, so `key` is not used."""
        del key
        return -self.log_prob(targets, observed)
