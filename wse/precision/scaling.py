"""Loss scaling: gradients that would vanish in half precision are carried larger."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportUnknownLambdaType=false

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from wse._numbers import check_kinds


@dataclass(frozen=True)
class Dynamic:
    """A scale that halves on overflow and doubles after a run of steps without.

    Source: Micikevicius et al., arXiv 1710.03740; first scale and run length are the defaults of
    the vendor's model zoo (R 1.8, PyTorch runner).

    Attributes:
        initial: the first scale.
        run: steps without overflow after which it grows.
        factor: by what it grows, and shrinks.
        least: below this it does not shrink.
        most: above this it does not grow.

    Raises:
        ValueError: scales that are not in order, or a factor that is no growth.

    >>> from wse.precision import Dynamic
    >>> Dynamic(initial=1024.0).initial
    1024.0
    """

    initial: float = 2.0**15
    run: int = 2000
    factor: float = 2.0
    least: float = 2.0**-14
    most: float = 2.0**24

    def __post_init__(self) -> None:
        check_kinds(self)
        if not 0 < self.least <= self.initial <= self.most:
            raise ValueError(
                f"least, initial, most are {self.least}, {self.initial}, {self.most}; they must be "
                "positive and in this order: pass powers of two"
            )
        if self.factor <= 1 or self.run < 1:
            raise ValueError(
                f"factor, run are {self.factor}, {self.run}; they must be above 1 and at least 1: "
                "pass factor=2.0, run=2000"
            )


class ScaledState(NamedTuple):
    """The state of an optimizer of scaled gradients.

    Attributes:
        scale: what the next loss is multiplied with.
        good: steps since the last overflow or growth.
        skipped: steps that overflowed, and changed no weight.
        inner: the optimizer's own state.

    >>> import jax.numpy as jnp
    >>> import optax
    >>> from wse.precision import Dynamic, scaled
    >>> state = scaled(optax.sgd(0.1), Dynamic()).init({"w": jnp.zeros(2)})
    >>> float(state.scale), int(state.skipped)
    (32768.0, 0)
    """

    scale: Float[Array, ""]
    good: Int[Array, ""]
    skipped: Int[Array, ""]
    inner: Any


def scaled(inner: Any, scale: Dynamic | float) -> optax.GradientTransformation:
    """Take gradients of `state.scale` times the loss; skip the steps that overflowed.

    A step with an infinite or undefined gradient changes neither weights nor the optimizer's state.
    A scale that is a number never changes.

    Args:
        inner: any optax optimizer.
        scale: a number, or how it changes.

    Returns:
        An optax transformation with the state `ScaledState`.

    >>> import jax.numpy as jnp
    >>> import optax
    >>> from wse.precision import scaled
    >>> state = scaled(optax.sgd(0.1), 1024.0).init({"w": jnp.zeros(2)})
    >>> float(state.scale)
    1024.0
    """
    rule = scale if isinstance(scale, Dynamic) else None
    first = scale.initial if isinstance(scale, Dynamic) else scale

    def init(params: Any) -> ScaledState:
        zero = jnp.zeros((), jnp.int32)
        return ScaledState(jnp.full((), first, jnp.float32), zero, zero, inner.init(params))

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, ScaledState]:
        gradient = jax.tree.map(lambda g: g / state.scale.astype(g.dtype), updates)
        finite = jnp.array([jnp.isfinite(g).all() for g in jax.tree.leaves(gradient)]).all()
        safe = jax.tree.map(lambda g: jnp.where(finite, g, 0), gradient)
        change, held = inner.update(safe, state.inner, params)
        change = jax.tree.map(lambda u: jnp.where(finite, u, 0), change)
        held = jax.tree.map(lambda new, old: jnp.where(finite, new, old), held, state.inner)
        good = jnp.where(finite, state.good + 1, 0)
        skipped = state.skipped + jnp.where(finite, 0, 1)
        if rule is None:
            return change, ScaledState(state.scale, good, skipped, held)
        grown = good >= rule.run
        new = jnp.where(grown, state.scale * rule.factor, state.scale)
        new = jnp.clip(jnp.where(finite, new, state.scale / rule.factor), rule.least, rule.most)
        return change, ScaledState(new, jnp.where(grown, 0, good), skipped, held)

    return optax.GradientTransformation(init, update)
