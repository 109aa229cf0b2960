"""A monotonic rational-quadratic spline of one variable, with straight tails."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

LEAST = 1e-3  # assumed: least share of a bin, and least slope at a knot
Knots = Float[Array, "*batch knot"]
Values = Float[Array, "*batch"]


def parameters_per_variable(bins: int) -> int:
    """Return how many numbers fix a spline: widths, heights, slopes at the inner knots."""
    return 3 * bins - 1


def knots_of(raw: Float[Array, "*batch raw"], bound: float) -> tuple[Knots, Knots, Knots]:
    """Return x, y and slopes at the knots on [−bound, bound]; zeros give the identity."""
    bins = (raw.shape[-1] + 1) // 3
    widths, heights, slopes = jnp.split(raw, [bins, 2 * bins], axis=-1)
    # softplus(log(e^(1 − LEAST) − 1)) = 1 − LEAST, so a zero becomes a slope of one.
    inner = LEAST + jax.nn.softplus(slopes + jnp.log(jnp.expm1(1 - LEAST)))
    ends = jnp.ones((*raw.shape[:-1], 1), raw.dtype)
    return (
        positions(widths, bound),
        positions(heights, bound),
        jnp.concatenate([ends, inner, ends], axis=-1),
    )


def positions(raw: Float[Array, "*batch bin"], bound: float) -> Knots:
    """Return increasing positions from −bound to bound."""
    bins = raw.shape[-1]
    shares = LEAST + (1 - LEAST * bins) * jax.nn.softmax(raw, axis=-1)
    inner = bound * (2 * jnp.cumsum(shares, axis=-1)[..., :-1] - 1)
    end = jnp.full((*raw.shape[:-1], 1), bound, raw.dtype)
    return jnp.concatenate([-end, inner, end], axis=-1)


def spline(x: Values, raw: Float[Array, "*batch raw"], bound: float) -> tuple[Values, Values]:
    """Return y = s(x) and log s′(x).

    Between two knots, with ξ = (x − x_k)/w, s_k = h/w and slopes d_k, d_{k+1}:

    y = y_k + h (s_k ξ² + d_k ξ(1−ξ)) / (s_k + (d_{k+1} + d_k − 2 s_k) ξ(1−ξ))

    Outside [−bound, bound] it is the identity. Source: Durkan, Bekasov, Murray, Papamakarios,
    "Neural Spline Flows", arXiv 1906.04032, equations 4 and 5.
    """
    xs, ys, slopes = knots_of(raw, bound)
    inside = jnp.abs(x) < bound
    safe = jnp.where(inside, x, 0)
    x0, w, y0, h, d0, d1 = bin_of(safe, xs, (xs, ys, slopes))
    xi, s = (safe - x0) / w, h / w
    bump = xi * (1 - xi)
    below = s + (d1 + d0 - 2 * s) * bump
    y = y0 + h * (s * xi**2 + d0 * bump) / below
    slope = s**2 * (d1 * xi**2 + 2 * s * bump + d0 * (1 - xi) ** 2) / below**2
    return jnp.where(inside, y, x), jnp.where(inside, jnp.log(slope), 0)


def inverse(y: Values, raw: Float[Array, "*batch raw"], bound: float) -> Values:
    """Return x with s(x) = y: the root of a ξ² + b ξ + c = 0, in the form that does not cancel.

    For b ≥ 0 that is 2c/(−b − √(b² − 4ac)), and for b < 0, where a > 0, (√(b² − 4ac) − b)/(2a).
    """
    xs, ys, slopes = knots_of(raw, bound)
    inside = jnp.abs(y) < bound
    safe = jnp.where(inside, y, 0)
    x0, w, y0, h, d0, d1 = bin_of(safe, ys, (xs, ys, slopes))
    s, up = h / w, safe - y0
    curve = d1 + d0 - 2 * s
    a = h * (s - d0) + up * curve
    b = h * d0 - up * curve
    c = -s * up
    root = jnp.sqrt(jnp.maximum(b**2 - 4 * a * c, 0))
    falling = b < 0
    above = jnp.where(falling, root - b, 2 * c)
    below = jnp.where(falling, 2 * a, -b - root)
    return jnp.where(inside, x0 + jnp.clip(above / below, 0, 1) * w, y)


def bin_of(value: Values, edges: Knots, knots: tuple[Knots, Knots, Knots]) -> tuple[Values, ...]:
    """Return the left end and size of the bin in x and y, and the slopes at its two ends.

    The bin is picked by a sum over all bins with one weight of 1: processors vectorise it, where
    a gather would go value by value.
    """
    above = (value[..., None] >= edges[..., 1:-1]).astype(value.dtype)
    one, none = jnp.ones_like(above[..., :1]), jnp.zeros_like(above[..., :1])
    chosen = jnp.concatenate([one, above], axis=-1) - jnp.concatenate([above, none], axis=-1)

    def left(k):
        return (k[..., :-1] * chosen).sum(axis=-1)

    def right(k):
        return (k[..., 1:] * chosen).sum(axis=-1)

    xs, ys, slopes = knots
    x0, y0 = left(xs), left(ys)
    return x0, right(xs) - x0, y0, right(ys) - y0, left(slopes), right(slopes)
