"""A learned likelihood: a noise like any other, whose density is that of a net."""

import json
import logging
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float

from sciml._arguments import check_whole
from sciml.inverse.program import structure
from sciml.inverse.result import Fit
from sciml.inverse.surrogate.known import as_trained, of_problem
from sciml.inverse.surrogate.points import Points
from sciml.inverse.surrogate.span import check_known, check_possible
from sciml.inverse.surrogate.task import problem_of
from sciml.models.archive import tuples
from sciml.models.inverse.ensemble import Ensemble
from sciml.ode.prior import Prior
from sciml.ode.static import Static
from sciml.reference.likelihood import log_likelihood
from sciml.train.checkpoint import digest

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Likelihood:
    """p(x | θ) as a net has learned it: what `fit_likelihood` returns.

    An observation is of `parts` independent draws of one law,

        ln p(x | θ) = Σ ln q(x_part | θ, c_part),

    with c what is known of a part, and `problem` gives it a prior: a problem for `smc`, `nuts`,
    `importance`, `trust`, `simulate`, and all else that takes a problem with a likelihood. The
    prior need not be that of the training, nor the number of parts. `fit` is the net, with the
    parameters as its observation and the features of a part as its parameters; `known`
    (part, condition) is what is known of each part, by default as in the training.

    Raises:
        ValueError: a fit that `fit_likelihood` did not make, or no parts.

    >>> import sciml
    >>> from numpyro.distributions import Normal
    >>> line = sciml.ode.Static("line", {"mean": Normal(0.0, 1.0)}, 1, sciml.ode.Gaussian(sd=0.5))
    >>> data = sciml.simulate(line, samples=500, noise=line.noise)
    >>> found = sciml.fit_likelihood(sciml.models.Gaussian(8, 1), data, epochs=20)
    >>> found.problem(line.prior, parts=3).features
    3
    """

    fit: Fit
    parts: int = 0
    known: Any = None  # (part, condition)
    points: Points = field(init=False)
    said: set[str] = field(default_factory=set, init=False)
    estimate: ClassVar[bool] = False
    learned: ClassVar[bool] = True

    def __post_init__(self):
        """Read from the fit what it is of; without a number of parts take that of the training."""
        told = self.fit.attrs.get("likelihood")
        if told is None:
            raise ValueError(
                f"{self.fit!r} is not of a likelihood: pass one that sciml.fit_likelihood made"
            )
        points = Points(**tuples(json.loads(told)))
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "parts", self.parts or points.parts)
        check_whole(1, parts=self.parts)
        if self.known is None:
            object.__setattr__(self, "known", as_trained(points, self.parts))

    @property
    def prior(self) -> dict[str, Any]:
        """Levels that are drawn: none."""
        return {}

    def describe(self) -> dict[str, Any]:
        """Return what tells it from others."""
        known = {"known": self.known.tolist()} if self.points.conditions else {}
        return {
            "kind": "Likelihood",
            "parts": self.parts,
            "net": digest(self.fit.params),
            **known,
        }

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of θ."""
        return self.fit.grid.labels[: len(self.points.least) - len(self.points.conditions)]

    def __repr__(self) -> str:
        """Return one line: what it is of."""
        of = ", ".join(self.parameters) + "".join(f", {c} known" for c in self.points.conditions)
        return f"Likelihood({self.parts} x {self.points.size} features | {of}; {self.fit.model})"

    def problem(
        self,
        prior: Prior,
        *,
        parts: int | None = None,
        conditions: Any = None,
        name: str = "learned",
    ) -> Static:
        """Return the problem of an observation under a prior.

        Args:
            prior: as of a `System`, of the parameters of the training, in any order; within what
                they span there.
            parts: how many draws of the law an observation has; default as many as in the training.
            conditions: what is known of each part, name → (part,), or one number for all; default
                that of the training, where all samples had the same. Conditions of the data set
                that are not given are those of the problem, and come with the observation.
            name: one word, used in files.

        Raises:
            ValueError: a prior of other parameters, or with more than 1 % of its draws outside
                those of the training; other conditions, or values of them that it did not have; or
                no parts.
        """
        parts = self.parts if parts is None else parts
        found = replace(self, parts=parts, known=self.known_of(parts, conditions))
        return problem_of(found, prior, name)

    @property
    def open(self) -> tuple[str, ...]:
        """The conditions that come with an observation."""
        missing = np.isnan(self.known).all(axis=0)
        return tuple(n for n, one in zip(self.points.conditions, missing, strict=True) if one)

    def check_conditions(self, known: Float[np.ndarray, "sample condition"]) -> None:
        """Refuse conditions of observations that the training did not have."""
        check_known(self.open, known, self.points, "of sample")

    def known_of(self, parts: Any, conditions: Any) -> Float[np.ndarray, "part condition"]:
        """Return what is known of each part, within what the training had."""
        check_whole(1, parts=parts)
        points = self.points
        if conditions is None and len(self.known) == parts:
            return self.known
        known = of_problem(points, conditions, parts)
        check_known(points.conditions, known, points, "in part")
        return known

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Refuse a table of parts, whose features stand in one row."""
        if len(self.points.axes) == 1 and shape == (self.parts, self.points.size):
            raise ValueError(
                f"the observation is a table of {shape}, parts by features; it must be one row of "
                f"{self.parts * self.points.size} numbers, part after part: .reshape(-1)"
            )

    def check_observed(self, seen: Float[np.ndarray, "sample ..."]) -> None:
        """Refuse parts that are impossible, or of which some features lack.

        Say which lie outside those of the training. Further outside than those lie apart, as in
        another unit, they are refused.
        """
        each = seen.reshape(-1, self.points.size)
        check_possible(each, self.points.whole, self.points.positive)
        missing = np.isnan(each)
        if (missing.any(axis=1) & ~missing.all(axis=1)).any():
            raise ValueError(
                f"of {self.points.size} features of a part some are missing; the density is of all "
                "together: mark the whole part as NaN, which leaves it out"
            )
        low, high = np.array(self.points.low), np.array(self.points.high)
        beyond = np.nan_to_num(np.maximum(low - each, each - high))
        if (beyond > 0).any():
            row, i = np.unravel_index((beyond / (high - low)).argmax(), beyond.shape)
            told = (
                f"feature {i} of an observed part is {each[row, i]:.4g}, and from "
                f"{self.points.low[i]:.4g} to {self.points.high[i]:.4g} in the training: there the "
                "net was never asked; simulate where that is observed"
            )
            if beyond[row, i] > high[i] - low[i]:
                raise ValueError(f"{told}, or check the unit")
            if told not in self.said:  # a sampler asks more than once
                self.said.add(told)
                log.warning("%s", told)

    def apply(self, key: Array, clean: Any, levels: dict[str, Any]) -> Any:
        """Return an observation of each θ (sample, param) as the net draws it."""
        del levels
        rows = jnp.concatenate(
            jax.vmap(lambda one: self.inputs_of(one, self.parts))(jnp.asarray(clean))
        )
        members = self.fit.model.size if isinstance(self.fit.model, Ensemble) else 1
        own, other = jax.random.split(key)
        drawn = self.net().sample(own, self.fit.inputs.forward(rows), members)
        chosen = jax.random.randint(other, (len(rows),), 0, members)  # one is of one member
        found = self.fit.scaling.backward(drawn[chosen, jnp.arange(len(rows))])
        shape = (self.parts, -1) if "channel" in self.points.axes else (-1,)
        return self.points.square(found).reshape(len(clean), *shape).astype(clean.dtype)

    def log_density(
        self, seen: Float[Array, "..."], theta: Float[Array, " param"]
    ) -> Float[Array, ""]:
        """Return ln p(x | θ) of one observation; parts that are missing say nothing."""
        points = jnp.asarray(seen, jnp.float32).reshape(-1, self.points.size)
        missing = jnp.isnan(points).any(axis=1)
        points = jnp.where(missing[:, None], jnp.array(self.points.low, jnp.float32), points)
        slope, points = self.points.log_slope(points), self.points.root(points)
        inputs = self.fit.inputs.forward(self.inputs_of(theta, len(points)))
        scaling: Any = self.fit.scaling
        each = (
            self.net().log_prob(scaling.forward(points), inputs) + scaling.log_slope(points) + slope
        )
        possible = (points > jnp.array(scaling.low)).all(axis=1)
        return jnp.where(missing, 0.0, jnp.where(possible, each, -jnp.inf)).sum()

    def inputs_of(self, clean: Float[Array, " given"], parts: int) -> Float[Array, "part input"]:
        """Return for each part parameters, and what is known of it; open conditions come last."""
        count = len(self.parameters)
        rows = jnp.broadcast_to(clean[:count], (parts, count))
        if not self.points.conditions:
            return rows
        if len(self.known) != parts or len(clean) != count + len(self.open):
            raise ValueError(
                f"conditions are known of {len(self.known)} parts, and there are {parts}: pass "
                f"problem(prior, parts={parts}, conditions=) with {parts} values of "
                f"{', '.join(self.points.conditions)}"
            )
        known = jnp.asarray(self.known, rows.dtype)
        known = known.at[:, np.isnan(self.known[0])].set(clean[count:])
        return jnp.concatenate([rows, known], axis=1)

    def net(self) -> Any:
        """Return the net with its weights."""
        graph, _ = structure(self.fit.model, self.fit.grid.inputs, self.points.size)
        return nnx.merge(graph, self.fit.params)

    def save(self, path: Path | str) -> Path:
        """Write the net to one file, which `Likelihood(sciml.load(path))` reads."""
        return self.fit.save(path)


@log_likelihood.register
def learned(
    noise: Likelihood,
    observed: Float[Array, "..."],
    clean: Float[Array, " param"],
    levels: dict[str, Any],
) -> Float[Array, ""]:
    """Σ ln q(x_part | θ) of the net."""
    del levels
    return noise.log_density(observed, clean).astype(clean.dtype)
