"""What a net is shown: clean observations and parameters, measured anew with fresh noise."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from sciml._labels import NOISE
from sciml.ode.conditions import drawn
from sciml.ode.methods.solver import solver
from sciml.ode.observe.noise import Noise, level_priors, measure
from sciml.ode.prior import draws

Clean = tuple[Any, ...]  # observations (sample, …), parameters and, where there are any, conditions
Targeted = tuple[Float[Array, "row ..."], Float[Array, "row target"]]
ONLINE_SAMPLES = 1000  # assumed: simulations in an epoch, as many as in the published training set


@dataclass(frozen=True)
class Measurement:
    """(u, θ) ↦ (x, θ′): noise applied to u; its sampled levels join θ where they are estimated."""

    noise: Noise | None
    shown: Callable[[Any, Any], Any] | None = None  # observations, conditions ↦ what a net sees

    @property
    def targets(self) -> dict[str, Any]:
        """The priors of the noise's levels that are targets, by their names as such."""
        return level_priors(self.noise) if self.noise is not None and self.noise.estimate else {}

    def __call__(self, pair: Clean, key: Key[Array, ""]) -> Targeted:
        """Return measured observations, with their conditions, which have no noise; and targets."""
        clean, theta, *known = pair
        observed, targets = self.measured(clean, theta, key)
        return (self.shown(observed, *known) if self.shown and known else observed), targets

    def measured(self, clean: Any, theta: Any, key: Key[Array, ""]) -> Targeted:
        """Return measured observations and targets."""
        if self.noise is None:
            return clean, theta
        observed, levels = measure(self.noise, key, clean)
        own = [levels[name.removeprefix(NOISE)][:, None] for name in self.targets]
        return observed, jnp.concatenate([theta, *own], axis=1)

    def once(self, pair: Clean, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return one measurement of a whole data set."""
        if self.noise is None and len(pair) == 2:
            return pair
        x, theta = jax.jit(self.__call__)(tuple(map(jnp.asarray, pair)), jax.random.key(seed))
        return np.asarray(x), np.asarray(theta)


def simulations(problem: Any) -> Callable[[Key[Array, ""]], Clean]:
    """Return `draw(key)`: solutions of fresh parameters, these, and conditions; traceable.

    The places of solutions that are not finite go round those of the draw that are.
    """
    solve = solver(problem)

    size = len(problem.parameter_names)

    def draw(key: Key[Array, ""]) -> Clean:
        theta = jnp.stack([*draws(problem.prior, ONLINE_SAMPLES, key).values()], axis=1)
        if problem.conditions:
            theta = jnp.concatenate([theta, drawn(problem, ONLINE_SAMPLES, key)], axis=1)
        solved = solve(theta)
        finite = jnp.isfinite(solved).reshape(len(solved), -1).all(axis=1)
        row = jnp.arange(len(solved))
        others = jnp.argsort(~finite)[row % jnp.maximum(finite.sum(), 1)]  # finite ones come first
        rows = jnp.where(finite, row, others)
        theta = theta[rows]
        known = (theta[:, size:],) if problem.conditions else ()
        return solved[rows], theta[:, :size], *known

    return draw
