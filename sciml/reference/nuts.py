"""Posterior draws by the No-U-Turn sampler: the reference for smooth posteriors."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Key
from numpyro.diagnostics import effective_sample_size, split_gelman_rubin
from numpyro.infer import NUTS
from tqdm.auto import tqdm

from sciml._session import as_usual
from sciml.ode.methods.diffrax_method import forwards, told_forwards
from sciml.ode.methods.solver import Method, Problem
from sciml.reference.record import Keeps, drawn, precise
from sciml.reference.smc import Population, cool
from sciml.reference.target import Target
from sciml.train import loop
from sciml.train.pace import Pace, bare, keyed
from wse._stop import stopping


@dataclass(frozen=True)
class Chains:
    """Settings of `nuts`.

    `starts` is the population that looks for starting points, one random member for each chain,
    so that each mode gets chains in proportion to its weight. `forward` differentiates
    forwards, which is right for up to about ten parameters and needs no memory of the solution.

    Raises:
        ValueError: fewer than 2 chains, or fewer than 10 draws or steps of warm-up.

    >>> from sciml.reference import Chains
    >>> Chains(chains=2, draws=100).draws
    100
    """

    chains: int = 4
    warmup: int = 500
    draws: int = 500
    accept: float = 0.9
    forward: bool = True
    starts: Population = field(default_factory=lambda: Population(particles=500))

    def __post_init__(self):
        if self.chains < 2 or self.warmup < 10 or self.draws < 10 or not 0 < self.accept < 1:
            raise ValueError(
                f"chains is {self.chains}, warmup {self.warmup}, draws {self.draws}, accept "
                f"{self.accept}; it takes 2 chains, 10 steps, 10 draws, a share between 0 and 1"
            )


@as_usual
def nuts(
    problem: Problem,
    observation: Any,
    *,
    noise: Any = None,
    method: Method | None = None,
    settings: Chains | None = None,
    seed: int = 0,
    folder: Path | str | None = None,
) -> xr.Dataset:
    """Return draws from the posterior by the No-U-Turn sampler of numpyro.

    Several chains run in unconstrained coordinates with a dense mass matrix. Chains cannot
    cross between modes: look at the attribute `modes`, which says in words whether they agree
    (every R̂ below 1.01), and compare with `smc`.

    Args:
        problem: a system or a task.
        observation: one sample: (time,), (time, channel) or (feature,), at the times of the
            problem, with its conditions as coordinates; NaN is missing.
        noise: what the measurement did; default `problem.noise`.
        method: the integrator; default the problem's own, in float64.
        settings: the chains.
        seed: of all draws.
        folder: where population and chains are kept, every 20 seconds at least, at Ctrl-C and at
            SIGTERM; the same call goes on from there, to the same numbers. It stays until you
            delete it.

    Returns:
        `posterior (draw, parameter)` with the coordinate `chain (draw)`; `r_hat (parameter)` and
        `ess (parameter)`; attributes `divergences`, `steps`, `modes`.

    Raises:
        ValueError: no noise, or an observation of another shape or other times than the
            problem's, or without any value; or the folder keeps another run.
        TypeError: the noise has no likelihood.

    Source: Hoffman, Gelman, J. Mach. Learn. Res. 15:1593-1623, 2014.

    >>> import sciml
    >>> problem = sciml.ode.sir()
    >>> seen = sciml.simulate(problem, 1, noise=problem.noise).observation[0]  # doctest: +SKIP
    >>> found = sciml.reference.nuts(problem, seen)  # doctest: +SKIP
    >>> found.attrs["modes"], found.posterior.mean("draw")  # doctest: +SKIP
    """
    settings = settings or Chains()

    def sample(posterior: Target, key: Key[Array, ""], keeps: Keeps):
        (z, diverging, steps), cloud = run_chains(posterior, settings, key, keeps)
        r_hat, ess = split_gelman_rubin(z), effective_sample_size(z)
        described = {
            "method": "nuts",
            "settings": str(settings),
            "divergences": int(np.sum(diverging)),
            "steps": int(np.sum(steps)),
            "modes": verdict(r_hat, z, np.asarray(cloud)),
        }
        return z, described, {"r_hat": ("parameter", r_hat), "ess": ("parameter", ess)}

    method = precise(problem, method)
    method = forwards(method) if settings.forward else method
    chain = np.repeat(np.arange(settings.chains, dtype=np.int8), settings.draws)
    with told_forwards(problem.name):
        data = drawn(problem, observation, noise, method, (seed, folder), sample)
    return data.assign_coords(chain=("draw", chain))


@dataclass(frozen=True)
class Chained:
    """Where chains stand after so many `turns`: what a file keeps of them.

    `carry` is the sampler's own state, random keys as numbers, and draws z (chain, draw, param),
    which of them diverged, and their steps, zero where none is yet.
    """

    carry: tuple[Any, tuple[Array, Array, Array]]
    turns: int = 0


def run_chains(
    posterior: Target, settings: Chains, key: Key[Array, ""], keeps: Keeps
) -> tuple[list[np.ndarray], Array]:
    """Return draws z (chain, draw, param), which diverged, their steps; and the population."""
    look, pick, run = jax.random.split(key, 3)
    cloud, _ = cool(posterior, settings.starts, look, keeps)
    first = jax.random.choice(pick, cloud.z, (settings.chains,), replace=False)
    kernel = NUTS(
        potential_fn=lambda z: -posterior.log_density(z),
        dense_mass=True,
        target_accept_prob=settings.accept,
        forward_mode_differentiation=settings.forward,
    )
    keys = jax.random.split(run, settings.chains)
    begun = kernel.init(keys, settings.warmup, first, (), {})
    shape = settings.chains, settings.draws
    empty = jnp.zeros((*shape, first.shape[1]), first.dtype), jnp.zeros(shape, bool)
    start = Chained((bare(begun), (*empty, jnp.zeros(shape, begun.num_steps.dtype))))
    store = keeps("chains", settings=str(settings), first=[f"{v:.6g}" for v in first.ravel()])

    def turn(i, carry):
        state, made = carry
        state = kernel.sample(keyed(begun, state), (), {})
        at, told = jnp.maximum(i - settings.warmup, 0), (state.z, state.diverging, state.num_steps)
        return bare(state), tuple(a.at[:, at].set(x) for a, x in zip(made, told, strict=True))

    turns = jax.jit(lambda carry, i, count: jax.lax.fori_loop(i, i + count, turn, carry))
    found = state = store.read(start)
    pace, total = Pace(), settings.warmup + settings.draws
    bar = tqdm(total=total, initial=state.turns, unit="draw", leave=False)
    with bar, stopping() as stopped:
        while (done := state.turns) < total and not stopped():
            carry, some = pace(turns, state.carry, done, total - done)
            state = replace(state, carry=carry, turns=done + some)
            bar.update(some)
            if loop.due(store):
                store.write(state)
        if state is not found:
            store.write(state)
    return [np.asarray(part) for part in state.carry[1]], cloud.z


def verdict(r_hat: np.ndarray, z: np.ndarray, cloud: np.ndarray) -> str:
    """Say whether the chains agree, and cover what the population of starts covers."""
    worst = float(np.max(r_hat))
    if not worst < 1.01:
        return (
            f"the chains disagree: largest R-hat {worst:.3f}; several modes, or chains that are "
            "too short: the weights of modes are not to be read from these draws"
        )
    wider = float(np.max(cloud.std(axis=0) / z.reshape(-1, z.shape[-1]).std(axis=0)))
    if wider > 1.5:
        return (
            f"the chains agree, largest R-hat {worst:.4f}, but the population of starts is "
            f"{wider:.2g} times wider: they have missed modes"
        )
    return f"the chains agree: largest R-hat {worst:.4f}"
