"""Values that were not observed: NaN comes in, zeros and a channel of presence go on."""

import math

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

Observed = Float[Array, "batch *input"]
Present = Bool[Array, "batch *input"]
Inputs = int | tuple[int, int]


def seen(x: Observed) -> tuple[Observed, Present]:
    """Return the values with 0 where they are missing, and where they are not."""
    present = ~jnp.isnan(x)
    return jnp.where(present, x, 0), present


def flat(x: Observed, missing: bool) -> Float[Array, "batch feature"]:
    """Return one row per observation; with `missing`, presence (1 or 0) follows the values."""
    if not missing:
        return x.reshape(len(x), -1)
    values, present = seen(x)
    return jnp.concatenate([flat(values, False), flat(present.astype(x.dtype), False)], axis=1)


def flat_size(inputs: Inputs, missing: bool) -> int:
    """Return the length of a row of `flat`."""
    return math.prod(shape(inputs)) * (2 if missing else 1)


def shape(inputs: Inputs) -> tuple[int, int]:
    """Return (time, channel) of one observation."""
    return (inputs, 1) if isinstance(inputs, int) else (inputs[0], inputs[1])


def series(x: Observed, missing: bool) -> Float[Array, "batch time channel"]:
    """Return (batch, time, channel); with `missing`, channels of presence follow the others."""
    x = x if x.ndim == 3 else x[..., None]
    if not missing:
        return x
    values, present = seen(x)
    return jnp.concatenate([values, present.astype(x.dtype)], axis=2)
