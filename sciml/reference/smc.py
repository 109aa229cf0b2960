"""Posterior draws by a population that cools from prior to posterior: no gradients, many modes."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Key
from tqdm.auto import tqdm

from sciml._session import as_usual
from sciml.ode.methods.solver import Method, Problem
from sciml.reference.record import Keeps, drawn, shown
from sciml.reference.target import Target
from sciml.reference.weights import largest_power, systematic
from sciml.train import loop
from sciml.train.pace import Pace, bare
from wse._stop import stopping


@dataclass(frozen=True)
class Population:
    """Settings of `smc`.

    `particles` follow the posterior p(θ) p(x | θ)ᵇ, b from 0 to 1; b is raised until the
    effective number of particles falls to the share `kept`, then they are drawn anew by weight
    and take `moves` Metropolis steps. Good values: 2000 particles; more moves where modes are
    curved or many.

    Raises:
        ValueError: fewer than 8 particles, no moves, or a share outside (0, 1).
    """

    particles: int = 2000
    moves: int = 40
    kept: float = 0.8
    temperatures: int = 200

    def __post_init__(self):
        if self.particles < 8 or self.moves < 1 or not 0 < self.kept < 1 or self.temperatures < 1:
            raise ValueError(
                f"{self}; it takes at least 8 particles, one move and one temperature, "
                "and a share of particles kept between 0 and 1"
            )


class Cloud(NamedTuple):
    """Particles z (draw, param), their log likelihoods and log priors, and b."""

    z: Float[Array, "draw param"]
    likelihood: Float[Array, " draw"]
    prior: Float[Array, " draw"]
    power: Float[Array, ""]


@dataclass(frozen=True)
class Cooling:
    """Where a population stands: what a file keeps of it.

    `carry` holds the particles, which of their last moves were accepted, the keys of these moves
    and that of the next temperature, as numbers. Of the moves at this temperature `moved` are done.
    """

    carry: tuple[Cloud, Array, Array, Array]
    moved: int
    count: int = 0
    evidence: float = 0.0

    @property
    def ended(self) -> bool:
        """Whether the particles follow the posterior."""
        cloud, accepted, _, _ = self.carry
        return float(cloud.power) >= 1 and self.moved == len(accepted)


@as_usual
def smc(
    problem: Problem,
    observation: Any,
    *,
    noise: Any = None,
    method: Method | None = None,
    settings: Population | None = None,
    seed: int = 0,
    folder: Path | str | None = None,
) -> xr.Dataset:
    """Return draws from the posterior by sequential Monte Carlo with tempering.

    Moves are those of differential evolution: a particle is displaced by a multiple of the
    difference of two others, 2.38/√(2 d) as a rule and 1 in every tenth, which carries particles
    between modes. Needs no gradient, so it also serves where the solution is chaotic.

    Args:
        problem: a system or a task.
        observation: one sample: (time,), (time, channel) or (feature,), at the times of the
            problem, with its conditions as coordinates; NaN is missing.
        noise: what the measurement did; default `problem.noise`.
        method: the integrator; default the problem's own, in float64.
        settings: the population.
        seed: of all draws.
        folder: where the population is kept as it cools, every 20 seconds at least, at Ctrl-C and
            at SIGTERM; the same call goes on from there, to the same numbers. It stays until you
            delete it.

    Returns:
        `posterior (draw, parameter)`; attributes `log_evidence`, `temperatures`, `acceptance`.

    Raises:
        ValueError: no noise, or an observation of another shape or other times than the
            problem's, or without any value; or the folder keeps another run.
        TypeError: the noise has no likelihood.

    Source: Del Moral, Doucet, Jasra, J. R. Stat. Soc. B 68, 2006; ter Braak, Stat. Comput. 16,
    2006.

    >>> from numpyro.distributions import Normal
    >>> from sciml.ode import Gaussian, Static, simulate
    >>> line = Static("line", {"mean": Normal(0.0, 1.0)}, features=1, noise=Gaussian(sd=1.0))
    >>> seen = simulate(line, parameters=[[1.0]], seed=0).observation[0]
    >>> found = smc(line, seen, settings=Population(particles=400, moves=10))
    >>> bool(abs(found.posterior.mean() - 0.5) < 0.2)  # half of what was seen
    True
    """
    settings = settings or Population()

    def sample(posterior: Target, key: Key[Array, ""], keeps: Keeps):
        cloud, found = cool(posterior, settings, key, keeps)
        return cloud.z, {"method": "smc", "settings": str(settings), **found}, {}

    return drawn(problem, observation, noise, method, (seed, folder), sample)


def cool(
    posterior: Target, settings: Population, key: Key[Array, ""], keeps: Keeps
) -> tuple[Cloud, dict]:
    """Return the population at b = 1, and what happened on the way."""
    first, key = jax.random.split(key)
    z = posterior.draw(first, settings.particles).astype(jnp.result_type(float))
    cloud = jax.jit(lambda z: evaluate(posterior, z, jnp.zeros(())))(z)
    if not jnp.isfinite(cloud.likelihood).any():
        raise ValueError(
            f"no one of {settings.particles} draws of the prior gives the observation any density: "
            "the noise never makes it, as a 0 under LogNormal, or all solutions fail; mark such "
            "values as NaN, or take another noise or prior"
        )
    store = keeps("population", settings=str(settings), likelihood=shown(cloud.likelihood))
    moves = jnp.zeros(settings.moves, cloud.z.dtype), bare(jax.random.split(key, settings.moves))
    start = Cooling((cloud, *moves, bare(key)), settings.moves)
    found = state = store.read(start)
    cools, moves = jax.jit(lambda carry: cooler(settings, carry)), jax.jit(mover(posterior))
    pace, total = Pace(), settings.temperatures
    bar = tqdm(total=total, initial=state.count, unit="temperature", leave=False)
    with bar, stopping() as stopped:
        while not state.ended and not stopped():
            if state.moved == settings.moves:
                if state.count == total:
                    break
                carry, gain = cools(state.carry)
                state = Cooling(carry, 0, state.count + 1, state.evidence + float(gain))
                bar.update()
            carry, some = pace(moves, state.carry, state.moved, settings.moves - state.moved)
            state = replace(state, carry=carry, moved=state.moved + some)
            if loop.due(store):
                store.write(state)
        if state is not found:
            store.write(state)
    cloud, accepted, _, _ = state.carry
    if not state.ended:
        raise RuntimeError(
            f"the population is at b = {float(cloud.power):.3g} after {total} temperatures; give "
            "it more particles or moves, or allow more temperatures"
        )
    return cloud, {
        "log_evidence": state.evidence,
        "temperatures": state.count,
        "acceptance": float(np.mean(accepted)),
    }


def evaluate(posterior: Target, z, power) -> Cloud:
    """Return the population at z."""
    return Cloud(z, jax.vmap(posterior.log_likelihood)(z), jax.vmap(posterior.log_prior)(z), power)


def cooler(settings: Population, carry: tuple[Cloud, Array, Array, Array]):
    """Return the population drawn anew at the next b, not yet moved, and the gain in ln p(x)."""
    cloud, accepted, _, key = carry
    key, now = jax.random.split(jax.random.wrap_key_data(key))
    kept = settings.kept * len(cloud.likelihood)
    rise = largest_power(cloud.likelihood, kept, 1 - cloud.power)
    weights = jax.nn.softmax(rise * cloud.likelihood)
    gain = jax.nn.logsumexp(rise * cloud.likelihood) - jnp.log(len(weights))
    pick, walk = jax.random.split(now)
    chosen = systematic(weights, pick, len(weights))
    power = jnp.minimum(cloud.power + rise, 1.0)
    cloud = Cloud(cloud.z[chosen], cloud.likelihood[chosen], cloud.prior[chosen], power)
    return (cloud, accepted, bare(jax.random.split(walk, settings.moves)), bare(key)), gain


def mover(posterior: Target):
    """Return (carry, first, count) ↦ the carry after so many moves."""

    def one(i, carry):
        cloud, accepted, keys, key = carry
        cloud, share = move(posterior, cloud, jax.random.wrap_key_data(keys[i]))
        return cloud, accepted.at[i].set(share), keys, key

    return lambda carry, first, count: jax.lax.fori_loop(first, first + count, one, carry)


def move(posterior: Target, cloud: Cloud, key: Key[Array, ""]) -> tuple[Cloud, Array]:
    """Return the population after one Metropolis step of all particles, and the accepted share.

    Each half moves by differences within the other, which stands still meanwhile: only so is
    the step reversible.
    """
    order, first, second = jax.random.split(key, 3)
    shuffled = jax.random.permutation(order, len(cloud.z))
    half = len(shuffled) // 2
    red, black = shuffled[:half], shuffled[half:]
    cloud, one = move_some(posterior, cloud, red, black, first)
    cloud, other = move_some(posterior, cloud, black, red, second)
    return cloud, (one.sum() + other.sum()) / len(shuffled)


def move_some(posterior: Target, cloud: Cloud, some, others, key: Key[Array, ""]):
    """Return the population after a Metropolis step of `some`, and which of them moved."""
    pairs, leap, jitter, accept = jax.random.split(key, 4)
    z, size = cloud.z[some], cloud.z.shape[1]
    picks = jax.random.randint(pairs, (2, len(z)), 0, len(others))
    difference = cloud.z[others[picks[0]]] - cloud.z[others[picks[1]]]
    large = jax.random.uniform(leap, (len(z), 1)) < 0.1
    scale = jnp.where(large, 1.0, 2.38 / (2 * size) ** 0.5)
    noise = 1e-4 * cloud.z[others].std(axis=0) * jax.random.normal(jitter, z.shape)
    new = evaluate(posterior, z + scale * difference + noise, cloud.power)
    gain = (new.prior - cloud.prior[some]) + cloud.power * (new.likelihood - cloud.likelihood[some])
    take = jnp.log(jax.random.uniform(accept, (len(z),))) < gain

    def put(whole, part):
        chosen = jnp.where(take.reshape(-1, *[1] * (part.ndim - 1)), part, whole[some])
        return whole.at[some].set(chosen)

    z, likelihood, prior = (put(a, b) for a, b in zip(cloud[:3], new[:3], strict=True))
    return Cloud(z, likelihood, prior, cloud.power), take
