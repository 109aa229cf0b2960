"""Targets as the nets give them: in [0, 1], or on the whole line with unit spread."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sciml.ode.rule import names_in, parsed

MARGIN = 1e-6  # assumed: part of a bounded range that its ends are moved in, for a finite logit
CROWD = 1e-3  # assumed: share of parameters within it, from which they are told apart there
TINY = 1e-37  # of float32: what a parameter lies above an end at 0, for a finite logarithm
ROUNDING = 2.0**-23  # of float32: and above another end, in parts of it
Method = TypeVar("Method", bound=Callable[..., Any])


def compiled(method: Method) -> Method:
    """Compile a method for each object and shape: one by one its operations compile for longer."""
    program: Any = jax.jit(method, static_argnums=0)
    return program


@dataclass(frozen=True)
class MinMax:
    """y = (θ − low) / (high − low), with the extremes of the training set.

    Source: Rudi, Bessac, Lenzi, arXiv 2012.06691 (targets scaled for the sigmoid).
    """

    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self):
        """Refuse an empty range."""
        for i, (low, high) in enumerate(zip(self.low, self.high, strict=True)):
            if not low < high:
                raise ValueError(
                    f"parameter {i} spans [{low}, {high}]; it must vary in the training set"
                )

    @classmethod
    def of(cls, targets: Float[np.ndarray, "sample param"], names: tuple[str, ...]) -> "MinMax":
        """Return the scaling of a training set; refuse one where a parameter does not vary."""
        low, high = targets.min(axis=0), targets.max(axis=0)
        if (same := low >= high).any():
            at = int(same.argmax())
            raise ValueError(
                f"{names[at]} is {low[at]:g} in all {len(targets)} samples; it must vary in the "
                "training set: simulate more, or drop it"
            )
        return cls(tuple(low.tolist()), tuple(high.tolist()))

    def forward(self, targets: Float[Any, "*sample param"]) -> Any:
        """Return scaled targets."""
        low, high = np.asarray(self.low, np.float32), np.asarray(self.high, np.float32)
        return (targets - low) / (high - low)

    def backward(self, scaled: Float[Any, "*sample param"]) -> Any:
        """Return targets in their own units."""
        low, high = np.asarray(self.low, np.float32), np.asarray(self.high, np.float32)
        return low + scaled * (high - low)


@dataclass(frozen=True)
class Unconstrained:
    """z = (g(θ) − mean) / sd, where g maps each parameter's support onto the whole line.

    g(θ) = θ without ends, log(θ − low) or −log(high − θ) with one end, and
    logit((θ − low) / (high − low)) with two. `mean` and `sd` are those of g(θ) in the training
    set. A density in z never puts mass outside these ends. `inside` are the rules of a joint prior,
    as "a + b < 1": draws that break one are drawn again. `nearest` are the distances from the low
    ends and from the high ones below which parameters between two are not told apart; of none
    given a millionth of the range. A parameter over many decades has many within that.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    mean: tuple[float, ...]
    sd: tuple[float, ...]
    inside: tuple[str, ...] = ()
    nearest: tuple[tuple[float, ...], ...] = ()

    @classmethod
    def of(
        cls,
        targets: Float[np.ndarray, "sample param"],
        support: list[tuple[float, float]],
        names: tuple[str, ...],
    ) -> "Unconstrained":
        """Return the scaling of a training set whose parameters have the given supports."""
        low, high = (tuple(float(s[i]) for s in support) for i in (0, 1))
        # In the targets' own precision: a draw at the very end may be rounded past the exact end.
        ends = np.array([low, high], targets.dtype)
        inside = (targets >= ends[0]) & (targets <= ends[1])
        if not inside.all():
            row, column = np.argwhere(~inside)[0]
            raise ValueError(
                f"{names[column]} of sample {row} is {targets[row, column]}; its prior is on "
                f"[{low[column]}, {high[column]}]: drop that sample or widen the prior"
            )
        near = nearest(targets, low, high)
        bare = cls(low, high, (0.0,) * len(low), (1.0,) * len(low), nearest=near)
        free = np.asarray(bare.forward(np.asarray(targets)), np.float64)
        sd = free.std(axis=0)
        if not (sd > 0).all():
            raise ValueError(
                f"{names[int(np.argmin(sd))]} is the same in all samples; it must vary"
            )
        mean = tuple(free.mean(axis=0).tolist())
        return cls(low, high, mean, tuple(sd.tolist()), nearest=near)

    @compiled
    def forward(self, targets: Float[Any, "*sample param"]) -> Float[Array, "*sample param"]:
        """Return scaled targets."""
        return (self.freed(jnp.asarray(targets, jnp.float32)) - row(self.mean)) / row(self.sd)

    def freed(self, targets: Float[Array, "*sample param"]) -> Float[Array, "*sample param"]:
        """Return g(θ)."""
        _, _, lower, upper = self.ends()
        above, below = self.distances(targets)
        bounded = jnp.log(above) * lower - jnp.log(below) * upper
        return jnp.where(lower | upper, bounded, targets)

    @compiled
    def backward(self, scaled: Float[Any, "*sample param"]) -> Float[Array, "*sample param"]:
        """Return targets in their own units, inside their support."""
        low, high, lower, upper = self.ends()
        free = scaled * row(self.sd) + row(self.mean)
        both = low + (high - low) / (1 + jnp.exp(-free))
        if self.nearest:  # from the nearer end, by a root whose square float32 may not hold
            root = jnp.exp(-jnp.abs(free) / 2)
            part = root * (high - low) * root / (1 + root * root)
            both = jnp.where(free < 0, low + part, high - part)
        value = jnp.where(lower & ~upper, low + jnp.exp(free), free)
        value = jnp.where(upper & ~lower, high - jnp.exp(-free), value)
        return jnp.where(lower & upper, both, value)

    @compiled
    def log_slope(self, targets: Float[Any, "*sample param"]) -> Float[Array, "*sample"]:
        """Return log |∂z/∂θ|, summed over the parameters: log p(θ) = log p(z) + log |∂z/∂θ|."""
        low, high, lower, upper = self.ends()
        theta = jnp.asarray(targets, jnp.float32)
        above, below = self.distances(theta)
        both = jnp.log(high - low) - jnp.log(above) - jnp.log(below)  # whatever the unit
        slope = jnp.where(lower & upper, both, -jnp.log(jnp.where(lower, above, below)))
        return (jnp.where(lower | upper, slope, 0.0) - jnp.log(row(self.sd))).sum(axis=-1)

    def distances(self, targets: Float[Array, "*sample param"]) -> tuple[Any, Any]:
        """Return how far targets lie above the low end and below the high one, never nothing."""
        low, high, lower, upper = self.ends()
        margins = self.nearest or (MARGIN * (high - low),) * 2
        least = [
            jnp.where(lower & upper, row(margin), jnp.maximum(ROUNDING * jnp.abs(end), TINY))
            for end, margin in zip((low, high), margins, strict=True)
        ]
        return jnp.maximum(targets - low, least[0]), jnp.maximum(high - targets, least[1])

    def ends(self):
        """Return the ends, with 0 for one that is not there, and which are there."""
        low, high = row(self.low), row(self.high)
        lower, upper = jnp.isfinite(low), jnp.isfinite(high)
        return jnp.where(lower, low, 0.0), jnp.where(upper, high, 0.0), lower, upper


def nearest(targets: np.ndarray, low: Any, high: Any) -> tuple[tuple[float, ...], ...]:
    """Return the distances from both ends that are told apart; none where MARGIN serves all."""
    ends = np.array([low, high], np.float64)
    margin = np.where(np.isfinite(ends).all(axis=0), MARGIN * (ends[1] - ends[0]), 0.0)
    away = np.abs(np.float64(targets) - ends[:, None])
    crowded = (away < margin).mean(axis=1) > CROWD
    if not crowded.any():
        return ()
    least = np.where(away > 0, away, np.inf).min(axis=1)
    floor = np.maximum(ROUNDING * np.abs(ends), TINY)
    found = np.where(crowded, np.maximum(least, floor), margin)
    return tuple(map(tuple, found.tolist()))


def row(values: Any) -> Float[Array, " param"]:
    """Return one value per parameter as an array."""
    return jnp.asarray(values, jnp.float32)


def supports(described: Any, names: tuple[str, ...]) -> list[tuple[float, float]]:
    """Return the support of each parameter from a data set's attribute `support`.

    An end that is not there, or not said, is infinite. A name is taken for mistyped where it is no
    parameter, and a parameter is not named.
    """
    ends = ends_of(described) if described else {}
    strange, lacking = [n for n in ends if n not in names], [n for n in names if n not in ends]
    if strange and lacking:
        raise ValueError(
            f"the attribute support names {', '.join(strange)} and not {', '.join(lacking)}; it "
            "must name each parameter with its [low, high], null where there is no end"
        )
    return [ends.get(name, (-np.inf, np.inf)) for name in names]


def rules_of(described: Any, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the rules of a data set's attribute `inside`, without those on other parameters."""
    try:
        rules = tuple(json.loads(described)) if described else ()
        return tuple(rule for rule in rules if names_in(parsed(rule)) <= {*names})
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"the attribute inside is {str(described)[:120]!r} ({error}); it must be JSON, as "
            "'[\"a + b < 1\"]'"
        ) from error


def ends_of(described: Any) -> dict[str, tuple[float, float]]:
    """Return the attribute `support` as name → (low, high), refusing anything else."""
    try:
        ends = {
            name: (-np.inf if low is None else float(low), np.inf if high is None else float(high))
            for name, (low, high) in json.loads(described).items()
        }
        for low, high in ends.values():
            if not low < high:
                raise ValueError(f"{low} is not below {high}")
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"the attribute support is {str(described)[:120]!r} ({error}); it must be JSON, as "
            "'{\"rate\": [0, null]}'; json.dumps makes it from a dict"
        ) from error
    return ends
