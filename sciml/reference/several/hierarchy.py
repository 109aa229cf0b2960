"""The density of a population's mean and spread, and draws of it by NUTS."""

import functools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpyro import distributions as dist
from numpyro.diagnostics import split_gelman_rubin
from numpyro.distributions.transforms import CorrCholeskyTransform
from numpyro.infer.hmc import hmc
from scipy.special import logsumexp

from sciml.reference.several.individuals import filled

CHAINS, WARMUP, DEPTH = 4, 200, 6  # assumed
BLUR = 0.2  # assumed: kernel of a proposal, in standard deviations of an individual
TINY = 1e-6  # assumed: least σ
LONGER = 4  # assumed: times as long are chains that did not agree
AGREE = 1.05  # assumed: R̂ of chains that agree
TURNS = 60  # assumed: of the search for a start, each a fraction nearer

Points = Float[Any, "sample draw param"]
LogWeights = Float[Any, "sample draw"]
Coordinate = Float[Any, "param sample draw"]


@dataclass(frozen=True)
class Hyper:
    """Priors of a population: s ~ N(μ, Σ), Σ = diag(σ) R diag(σ).

    s is a parameter on the whole line, where its own prior has median 0 and its middle 68 % reach
    from −1 to 1. μ ~ N(0, `mean`²), σ ~ half-normal of scale `spread`, and R ~ LKJ(`correlation`);
    None takes R = 1, a population without correlations.

    Raises:
        ValueError: a number that is not positive.

    >>> from sciml.reference import Hyper
    >>> Hyper(spread=0.5, correlation=None).spread  # a narrow population, without correlations
    0.5
    """

    mean: float = 1.0
    spread: float = 1.0
    correlation: float | None = 2.0

    def __post_init__(self):
        for name in ("mean", "spread", "correlation"):
            value = getattr(self, name)
            if name == "correlation" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise ValueError(f"{name} is {value!r}; it must be a positive number")


def log_shares(
    points: Coordinate, log_weight: LogWeights, mean: Float[Array, " param"], inverse: Any
) -> LogWeights:
    """Return ln of weight times exp(−|inverse (s − μ)|² / 2) of every point."""
    off = [one - centre for one, centre in zip(points, mean, strict=True)]
    # Sums that are fused: a product with so small a matrix is a slow call for each chain.
    white = [sum(a * x for a, x in zip(row, off, strict=True)) for row in inverse]
    return log_weight - 0.5 * sum(jnp.square(each) for each in white)


# By hand, since every sum over the points that JAX derives takes each exponential anew: a step
# then takes five times as long. These are products with one matrix of the points.
@jax.custom_vjp
def log_integrals(mean, inverse, points, products, log_weight, real):
    """Return the sum over individuals that count of ln of the sum of their shares."""
    return with_slopes(mean, inverse, points, products, log_weight, real)[0]


def with_slopes(mean, inverse, points, products, log_weight, real):
    """Return `log_integrals`, and its derivatives by mean and inverse."""
    logs = log_shares(points, log_weight, mean, inverse)
    most = logs.max(axis=1)
    each = jnp.exp(logs - most[:, None])
    total = each.sum(axis=1)
    weight = (each * (real / total)[:, None]).ravel()
    size, count = len(mean), real.sum()
    moments = products @ weight
    first, second = moments[:size], moments[size:].reshape(size, size)
    # Of s, about 0; from here on of s − μ.
    second += count * jnp.outer(mean, mean) - jnp.outer(first, mean) - jnp.outer(mean, first)
    first -= count * mean
    slopes = inverse.T @ (inverse @ first), -inverse @ second
    return (real * (jnp.log(total) + most)).sum(), slopes


log_integrals.defvjp(
    with_slopes, lambda slopes, g: (*(g * slope for slope in slopes), None, None, None, None)
)


def unpacked(u: Float[Array, " coordinate"], size: int, hyper: Hyper) -> tuple[Any, Any, Any]:
    """Return μ, the factor of Σ, and ln of their prior as a density of u = (μ, ±σ, …)."""
    # A half-normal σ is |u| of a normal u, which has no border that a chain would turn at.
    mean, sd, rest = u[:size], jnp.abs(u[size : 2 * size]) + TINY, u[2 * size :]
    density = dist.Normal(0, hyper.mean).log_prob(mean).sum()
    density += dist.Normal(0, hyper.spread).log_prob(sd).sum()
    if not rest.size:
        return mean, jnp.diag(sd), density
    transform = CorrCholeskyTransform()
    root = transform(rest)
    density += dist.LKJCholesky(size, hyper.correlation).log_prob(root)
    density += transform.log_abs_det_jacobian(rest, root)
    return mean, sd[:, None] * root, density


# Of the module, so that populations of one size compile once, and longer chains not again. One
# after the other: side by side, each step would take as long as the longest, and twice to compile.
@functools.partial(jax.jit, static_argnames=("hyper", "most"))
def chains(points, log_weight, real, blur, centre, starts, keys, hyper, draws, most):
    """Return draws of μ and of the factor of Σ by chain, and which of them diverged.

    Points are those about a centre. Rows behind the first `draws` of `most` are empty.
    """
    points = jnp.moveaxis(points, -1, 0)
    flat = points.reshape(len(points), -1)
    products = jnp.concatenate([flat, (flat[:, None] * flat).reshape(-1, flat.shape[1])])
    given = points, products, log_weight, real, blur, centre

    def one(own):
        start, key = own
        return chain(given, start, key, hyper, draws, most)

    return jax.lax.map(one, (starts, keys))


def chain(given, start, key, hyper, draws, most):
    """Return what `chains` does, of one."""
    points, products, log_weight, real, blur, centre = given
    size = len(points)

    def potential(u):
        mean, factor, density = unpacked(u, size, hyper)
        wide = jnp.linalg.cholesky(factor @ factor.T + blur)
        integrals = log_integrals(
            mean - centre, jnp.linalg.inv(wide), points, products, log_weight, real
        )
        return -(density + integrals - real.sum() * jnp.log(jnp.diagonal(wide)).sum())

    begin, step = hmc(potential, algo="NUTS")
    state = begin(
        start, WARMUP, target_accept_prob=0.8, max_tree_depth=DEPTH, dense_mass=True, rng_key=key
    )

    def turn(i, carry):
        state, u, diverging = carry
        state, at = step(state), jnp.maximum(i - WARMUP, 0)
        return state, u.at[at].set(state.z), diverging.at[at].set(state.diverging)

    kept = jnp.zeros((most, len(start)), start.dtype), jnp.zeros(most, bool)
    _, u, diverging = jax.lax.fori_loop(0, WARMUP + draws, turn, (state, *kept))
    mean, factor, _ = jax.vmap(lambda each: unpacked(each, size, hyper))(u)
    return mean, factor, diverging


def run(points: Points, log_weight: LogWeights, hyper: Hyper, draws: int, seed: int) -> Any:
    """Return μ (draw, param), the factor of Σ (draw, param, param), largest R̂, and divergences.

    Each proposal is a kernel of `BLUR` times what the individuals leave open on average, so that
    the density is smooth where σ is small: σ below that cannot be told from 0.
    """
    size = points.shape[-1]
    mean, cov, left = settled(points, log_weight)
    rng, sd = np.random.default_rng(seed), np.sqrt(np.diag(cov))
    pairs = size * (size - 1) // 2 if hyper.correlation is not None else 0
    start = np.concatenate([mean, sd, np.zeros(pairs)])
    wide = np.concatenate([sd, sd, np.ones(pairs)])
    starts = start + 0.1 * wide * rng.normal(size=(CHAINS, len(start)))
    keys = jax.random.split(jax.random.key(seed), CHAINS)
    blur = BLUR**2 * left
    # Filled up with individuals that do not count, so that one program serves several numbers.
    real = np.arange(len(filled(len(points)))) < len(points)
    added = [(0, len(real) - len(points)), (0, 0)]
    near = np.pad(points - mean, [*added, (0, 0)])  # so that sums of squares lose no digits
    data = (near, np.pad(log_weight, added), real, blur, mean, starts)
    real_numbers = jnp.result_type(float)  # of 64 bits where JAX was asked for them
    given = (*(np.asarray(part, real_numbers) for part in data), keys, hyper)
    each = -(-draws // CHAINS)
    mean, factor, worst, diverged = sampled(given, each, LONGER * each)
    if not worst < AGREE:
        mean, factor, worst, diverged = sampled(given, LONGER * each, LONGER * each)
        mean, factor = mean[:, ::LONGER], factor[:, ::LONGER]
    flat = (part.reshape(-1, *part.shape[2:]) for part in (mean, factor))
    return *flat, worst, diverged


def sampled(
    given: tuple[Any, ...], draws: int, most: int
) -> tuple[np.ndarray, np.ndarray, float, int]:
    """Return μ and the factor of Σ by chain, largest R̂, and divergences."""
    found = (np.asarray(part, np.float64)[:, :draws] for part in chains(*given, draws, most))
    mean, factor, diverging = found
    sd = np.sqrt(np.square(factor).sum(axis=-1))
    worst = max(float(split_gelman_rubin(part).max()) for part in (mean, sd))
    return mean, factor, worst, int(diverging.sum())


def settled(points: Points, log_weight: LogWeights) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean and covariance of a likely population, by expectation and maximisation.

    And the covariance of one individual in it, on average. That of the population is as if some
    more individuals had been seen, 0.1 about the mean each.
    """
    samples, _, size = points.shape
    mean, cov, left = np.zeros(size), np.eye(size), np.eye(size)
    more = size + 1
    for _ in range(TURNS):
        inverse = np.linalg.inv(np.linalg.cholesky(cov))
        logs = log_weight - 0.5 * np.square((points - mean) @ inverse.T).sum(axis=-1)
        share = np.exp(logs - np.asarray(logsumexp(logs, axis=1, keepdims=True)))
        own = np.einsum("nk,nkp->np", share, points)
        mean, off = own.mean(axis=0), points - own[:, None]
        left = np.einsum("nkp,nkq->pq", share[..., None] * off, off) / samples
        between = (own - mean).T @ (own - mean) / samples
        cov = (samples * (between + left) + more * 0.01 * np.eye(size)) / (samples + more)
    return mean, cov, left + 1e-6 * np.eye(size)
