"""Priors: of one parameter, or of several together; checked, drawn, described."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions
from jaxtyping import Array, Bool, Float, Key
from numpyro.distributions import Distribution, constraints

from sciml._numbers import short
from sciml._precision import check_fine
from sciml.ode import rule
from sciml.ode.sampled import sampled

Prior = Mapping[Any, Any]  # name → scalar distribution, or names → the distribution of all of them
Ends = tuple[float, float]

DISTRIBUTION = ("sample", "log_prob", "support", "event_shape", "batch_shape")
TRIED = 2**16  # assumed: draws for the share inside; of one half they give 0.4 %
LEAST = 0.01  # assumed: share inside, below which drawing again and again takes too long
TRIES = 3000  # derived: rounds after which, at that share, one draw of 10¹³ is still outside
ROUNDING = 1e-6  # of float32: what draws on a simplex lie within its border


def check_entries(prior: Prior, of: str = "") -> None:
    """Refuse names that come twice, and what is not the distribution of so many real numbers."""
    if not isinstance(prior, Mapping) or not prior:
        raise TypeError(
            f"the prior{of} is {short(prior)}; it must be a dict of names and of distributions, as "
            "{'rate': numpyro.distributions.Uniform(0.1, 1.0)}"
        )
    names = names_of(prior)
    if len({*names}) < len(names) or not all(isinstance(name, str) for name in names):
        raise ValueError(
            f"the prior{of} names {', '.join(map(str, names))}; each must be text, and come once"
        )
    for key, distribution in prior.items():
        said = f"the prior of {key!r}{of}"
        if isinstance(key, tuple):
            check_joint(distribution, key, said)
        else:
            check_scalar(distribution, said)


def check_scalar(distribution: Any, name: str) -> None:
    """Refuse what is not the distribution of one real number."""
    check_distribution(distribution, name)
    if distribution.event_shape or distribution.batch_shape:
        shape = (*distribution.batch_shape, *distribution.event_shape)
        raise ValueError(
            f"{name} has the shape {shape}; it must be scalar: name each component, or all in a "
            "tuple, as {('a', 'b'): MultivariateNormal(…)}"
        )
    check_real(distribution, name)


def check_joint(distribution: Any, names: tuple[str, ...], said: str) -> None:
    """Refuse what is not the distribution of as many real numbers as there are names."""
    check_distribution(distribution, said)
    shape = (*distribution.batch_shape, *distribution.event_shape)
    on_simplex = is_simplex(distribution)
    if distribution.batch_shape or shape != (len(names) + on_simplex,):
        remedy = (
            "components that sum to one are named all but the last, which is 1 minus the others"
            if on_simplex
            else "it must have one component for each name: .to_event(1) makes them of a batch"
        )
        raise ValueError(f"{said} has the shape {shape} and {len(names)} names; {remedy}")
    check_real(distribution, said)
    if isinstance(distribution, Truncated):
        if names != distribution.names:
            raise ValueError(
                f"{said} is Truncated of {', '.join(distribution.names)}; both must have the same "
                "names in the same order"
            )
    elif not on_simplex and elementwise(distribution).event_dim:
        raise ValueError(
            f"{said} lives on {distribution.support}, which is not supported; it must be all "
            "numbers, an interval for each, or a simplex: write the rest as a rule, as "
            "Truncated({'a': Uniform(0, 1), 'b': Uniform(0, 1)}, inside='a < b')"
        )
    elif on_simplex and rule.names_in(rule.parsed(simplex_rule(names))) != {*names}:
        raise ValueError(
            f"{said} names what is no word, as a rule needs it: take letters, digits, _"
        )


def check_distribution(distribution: Any, name: str, other: str = "") -> None:
    """Refuse what is no distribution, and name what `other` it might be."""
    if any(getattr(distribution, part, None) is None for part in DISTRIBUTION):
        kind = type(distribution).__name__  # noises of sciml.ode have names of distributions
        like = kind if kind in numpyro.distributions.__all__ else "Uniform(0.0, 1.0)"
        raise ValueError(
            f"{name} is {short(distribution)}; it must be a numpyro distribution, "
            f"as numpyro.distributions.{like}{other}"
        )


def check_real(distribution: Any, name: str) -> None:
    """Refuse whole numbers, scaled ones too."""
    within: Any = distribution
    while within is not None and not within.support.is_discrete:
        within = getattr(within, "base_dist", None)
    if within is not None:
        raise ValueError(
            f"{name} is {type(within).__name__}, which gives whole numbers; nets and "
            "samplers here take every parameter for a real number: take a continuous prior, as "
            "Uniform, or one problem for each value"
        )


def names_of(prior: Prior) -> tuple[str, ...]:
    """Return the names of all parameters, in order."""
    return tuple(n for key in prior for n in (key if isinstance(key, tuple) else (key,)))


def widths(prior: Prior) -> tuple[int, ...]:
    """Return how many parameters each distribution has together, 0 for a scalar one."""
    return tuple(len(key) if isinstance(key, tuple) else 0 for key in prior)


def pieces(wide: Sequence[int], values: Any) -> list[Any]:
    """Return the values of each distribution, from those (…, param) of all: scalars as (…)."""
    ends = np.cumsum([max(width, 1) for width in wide]).tolist()
    return [
        values[..., end - width : end] if width else values[..., end - 1]
        for width, end in zip(wide, ends, strict=True)
    ]


def parts(prior: Prior) -> list[tuple[tuple[str, ...], Any]]:
    """Return the names and the distribution of each entry, a simplex without its last component."""
    return [
        (key, Corner(each) if is_simplex(each) else each)
        if isinstance(key, tuple)
        else ((key,), each)
        for key, each in prior.items()
    ]


def log_prob(prior: Prior, theta: Float[Array, "*point param"]) -> Any:
    """Return ln p(θ)."""
    return log_density(widths(prior), [each for _, each in parts(prior)], theta)


def log_density(wide: Sequence[int], each: Sequence[Any], theta: Any) -> Any:
    """Return ln p(θ) of distributions of so many parameters each."""
    return sum(p.log_prob(x) for p, x in zip(each, pieces(wide, theta), strict=True))


def is_simplex(distribution: Any) -> bool:
    """Tell whether components are positive and sum to one."""
    return isinstance(distribution.support, type(constraints.simplex))


def simplex_rule(names: tuple[str, ...]) -> str:
    """Return what holds of all components of a simplex but the last."""
    return f"{' + '.join(names)} < 1"


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Corner:
    """All but the last component of a distribution on a simplex; with density of these alone."""

    base: Any

    def sample(self, key: Key[Array, ""], sample_shape: tuple[int, ...] = ()) -> Any:
        """Return draws, none on the border."""
        drawn = self.base.sample(key, sample_shape)[..., :-1]
        return jnp.clip(drawn * (1 - ROUNDING), jnp.finfo(drawn.dtype).tiny)

    def log_prob(self, theta: Float[Array, "*point param"]) -> Float[Array, "*point"]:
        """Return the log density, −∞ outside."""
        whole = self.filled(theta)
        inside = (whole > 0).all(axis=-1)
        known = jnp.where(inside[..., None], whole, 1 / whole.shape[-1])
        return jnp.where(inside, self.base.log_prob(known), -jnp.inf)

    @staticmethod
    def filled(theta: Float[Array, "*point param"]) -> Float[Array, "*point component"]:
        """Return all components."""
        return jnp.concatenate([theta, 1 - theta.sum(axis=-1, keepdims=True)], axis=-1)


@dataclass(frozen=True, eq=False)
class Truncated:
    """A prior where a rule holds: p(θ) = p₀(θ) / s inside, and 0 elsewhere.

    Drawn by rejection. The share s of p₀ inside is estimated once by 65,536 draws; its relative
    error, 0.4 % of one half, is that of an evidence. Posterior draws do not depend on it.

    Args:
        base: p₀, as the prior of a system.
        inside: the rule: formulas of the parameters with + - * / **, abs, exp, log and sqrt,
            compared by < <= > >=, joined by and, or, not. Text, so that files can say it; it is
            parsed and never executed.

    Attributes:
        share: s.

    Raises:
        ValueError: no such rule, one that speaks of others, or one that holds for less than 1 %.

    >>> from numpyro.distributions import Uniform
    >>> low = Truncated({"a": Uniform(0, 1), "b": Uniform(0, 1)}, inside="a + b < 1")
    >>> round(low.share, 1)
    0.5
    """

    base: Prior
    inside: Any  # text; what else is given, as a function, is refused in words
    share: float = field(init=False, default=1.0)
    batch_shape = ()
    is_discrete = False

    def __post_init__(self):
        """Check every value, and measure the share."""
        check_entries(self.base, " of Truncated")
        if strange := rule.names_in(rule.parsed(self.inside)) - {*self.names}:
            raise ValueError(
                f"the rule {self.inside!r} speaks of {', '.join(sorted(strange))}; the parameters "
                f"are {', '.join(self.names)}"
            )
        share = float(self(self.free(jax.random.key(0), TRIED)).mean())
        if share < LEAST:
            raise ValueError(
                f"the rule {self.inside!r} holds for {share:.2%} of draws; it must for "
                f"{LEAST:.0%}: take a narrower base, or other parameters"
            )
        object.__setattr__(self, "share", share)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return names_of(self.base)

    @property
    def event_shape(self) -> tuple[int]:
        """One component for each name."""
        return (len(self.names),)

    @property
    def support(self) -> "Truncated":
        """Where the rule holds: call it with θ."""
        return self

    def __call__(self, theta: Float[Array, "*point param"]) -> Bool[Array, "*point"]:
        """Tell whether the rule holds."""
        return rule.holds(
            self.inside, dict(zip(self.names, jnp.moveaxis(theta, -1, 0), strict=True))
        )

    def free(self, key: Key[Array, ""], samples: int) -> Float[Array, "sample param"]:
        """Return draws of the base."""
        return jnp.stack([*draws(self.base, samples, key).values()], axis=-1)

    def sample(self, key: Key[Array, ""], sample_shape: tuple[int, ...] = ()) -> Any:
        """Return draws, those outside drawn again; traceable."""
        samples = math.prod(sample_shape)

        def lacking(state):
            return ~self(state[1]).all() & (state[2] < TRIES)

        def again(state):
            key, kept, tries = state
            key, now = jax.random.split(key)
            return key, jnp.where(self(kept)[:, None], kept, self.free(now, samples)), tries + 1

        key, first = jax.random.split(key)
        _, drawn, _ = jax.lax.while_loop(lacking, again, (key, self.free(first, samples), 0))
        return drawn.reshape(*sample_shape, -1)

    def log_prob(self, theta: Float[Array, "*point param"]) -> Float[Array, "*point"]:
        """Return ln p(θ), −∞ outside."""
        return jnp.where(self(theta), log_prob(self.base, theta) - math.log(self.share), -jnp.inf)


def bounds(distribution: Distribution) -> Ends:
    """Return the ends of the support, infinite where it has none."""
    return ends(distribution, 1)[0]


def elementwise(distribution: Any) -> Any:
    """Return the constraint of each component."""
    return getattr(distribution.support, "base_constraint", distribution.support)


def ends(distribution: Any, width: int) -> list[Ends]:
    """Return the ends of each component."""
    if isinstance(distribution, Corner):
        return [(0.0, 1.0)] * width
    if isinstance(distribution, Truncated):
        return all_ends(distribution.base)
    each = elementwise(distribution)
    low, high = getattr(each, "lower_bound", None), getattr(each, "upper_bound", None)
    low = np.broadcast_to(-math.inf if low is None else np.asarray(low, float), width)
    high = np.broadcast_to(math.inf if high is None else np.asarray(high, float), width)
    return list(zip(low.tolist(), high.tolist(), strict=True))


def all_ends(prior: Prior) -> list[Ends]:
    """Return the ends of each parameter."""
    return [pair for names, each in parts(prior) for pair in ends(each, len(names))]


def support(prior: Prior) -> dict[str, list[float | None]]:
    """Return name → [low, high], with None for an infinite end, as JSON wants it."""
    return {
        name: [end if math.isfinite(end) else None for end in pair]
        for name, pair in zip(names_of(prior), all_ends(prior), strict=True)
    }


def rules(prior: Prior) -> list[str]:
    """Return what holds inside the support beside its ends."""
    found = []
    for names, distribution in parts(prior):
        if isinstance(distribution, Corner):
            found.append(simplex_rule(names))
        if isinstance(distribution, Truncated):
            found += [*rules(distribution.base), distribution.inside]
    return found


def described(prior: Prior) -> dict[str, dict[str, Any]]:
    """Return name, or names, → description, as JSON wants it."""
    return {
        ", ".join(key) if isinstance(key, tuple) else key: describe(each)
        for key, each in prior.items()
    }


def describe(distribution: Any) -> dict[str, Any]:
    """Return the family and its numbers; of a truncated or transformed one also its base."""
    if isinstance(distribution, Truncated):
        base = described(distribution.base)
        return {"kind": "Truncated", "inside": distribution.inside, "base": base}
    told: dict[str, Any] = {"kind": type(distribution).__name__}
    for name in distribution.arg_constraints:
        value = vars(distribution).get(name)  # of two ways to say one number, one is kept
        if value is not None:
            told[name] = np.asarray(value, float).tolist()
    base = getattr(distribution, "base_dist", None)
    return told if base is None else {**told, "base": describe(base)}


def draw(
    prior: Prior, samples: int, key: Key[Array, ""], owner: str
) -> Float[np.ndarray, "sample param"]:
    """Return draws of all parameters, checked; `owner` names whose prior it is."""
    columns = {name: np.asarray(drawn) for name, drawn in draws(prior, samples, key).items()}
    told = [x for key, x in prior.items() for _ in (key if isinstance(key, tuple) else (key,))]
    for (name, drawn), each, pair in zip(columns.items(), told, all_ends(prior), strict=True):
        check_draws(drawn, pair, describe(each), f"{name} of {owner}")
    return np.stack([*columns.values()], axis=1)


def draws(prior: Prior, samples: int, key: Key[Array, ""]) -> dict[str, Float[Array, " sample"]]:
    """Return draws of each parameter, traceable; entries are independent of each other."""
    keys = jax.random.split(key, max(len(prior), 1))
    found: dict[str, Any] = {}
    for (names, distribution), k in zip(parts(prior), keys, strict=False):
        drawn = jnp.asarray(sampled(distribution, k, samples))
        columns = [drawn] if drawn.ndim == 1 else jnp.moveaxis(drawn, -1, 0)
        found |= dict(zip(names, columns, strict=True))
    return found


def within(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Tell which values lie between two ends, but for rounding to float32, which ends are not."""
    ends = max((abs(end) for end in (low, high) if math.isfinite(end)), default=0.0)
    slack = ROUNDING * np.maximum(np.abs(values), ends)
    return (values >= low - slack) & (values <= high + slack)


def check_draws(drawn: np.ndarray, pair: Ends, told: dict[str, Any], name: str) -> None:
    """Refuse draws that cannot be parameters."""
    low, high = pair
    possible = np.isfinite(drawn) & within(drawn, low, high)
    if not possible.all():
        example = drawn[int(np.argmin(possible))]
        raise ValueError(
            f"{int((~possible).sum())} of {drawn.size} draws of {name} are impossible, such as "
            f"{example}; draws must be finite and lie in [{low}, {high}]: check the numbers of "
            f"{told}"
        )
    if drawn.size > 1 and drawn.min() == drawn.max():
        raise ValueError(
            f"all {drawn.size} draws of {name} are {drawn.flat[0]}; a parameter that never varies "
            f"cannot be estimated: widen {told}, or make it a constant of the "
            "equation"
        )
    check_fine(drawn, name)
