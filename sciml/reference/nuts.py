"""Posterior draws by the No-U-Turn sampler: the reference for smooth posteriors."""

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array, Key
from numpyro.diagnostics import effective_sample_size, split_gelman_rubin
from numpyro.infer import MCMC, NUTS

from sciml.ode.methods.diffrax_method import forwards, told_forwards
from sciml.ode.methods.solver import Method, Problem
from sciml.reference.record import drawn, precise
from sciml.reference.smc import Population, cool
from sciml.reference.target import Target


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


def nuts(
    problem: Problem,
    observation: Any,
    *,
    noise: Any = None,
    method: Method | None = None,
    settings: Chains | None = None,
    seed: int = 0,
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

    Returns:
        `posterior (draw, parameter)` with the coordinate `chain (draw)`; `r_hat (parameter)` and
        `ess (parameter)`; attributes `divergences`, `steps`, `modes`.

    Raises:
        ValueError: no noise, or an observation of another shape or other times than the
            problem's, or without any value.
        TypeError: the noise has no likelihood.

    Source: Hoffman, Gelman, J. Mach. Learn. Res. 15:1593-1623, 2014.

    >>> import sciml
    >>> problem = sciml.ode.sir()
    >>> seen = sciml.simulate(problem, 1, noise=problem.noise).observation[0]  # doctest: +SKIP
    >>> found = sciml.reference.nuts(problem, seen)  # doctest: +SKIP
    >>> found.attrs["modes"], found.posterior.mean("draw")  # doctest: +SKIP
    """
    settings = settings or Chains()

    def sample(posterior: Target, key: Key[Array, ""]):
        z, extra, cloud = run_chains(posterior, settings, key)
        z = np.asarray(z)
        r_hat, ess = split_gelman_rubin(z), effective_sample_size(z)
        described = {
            "method": "nuts",
            "settings": str(settings),
            "divergences": int(np.sum(extra["diverging"])),
            "steps": int(np.sum(extra["num_steps"])),
            "modes": verdict(r_hat, z, np.asarray(cloud)),
        }
        return z, described, {"r_hat": ("parameter", r_hat), "ess": ("parameter", ess)}

    method = precise(problem, method)
    method = forwards(method) if settings.forward else method
    chain = np.repeat(np.arange(settings.chains, dtype=np.int8), settings.draws)
    with told_forwards(problem.name):
        data = drawn(problem, observation, noise, method, seed, sample)
    return data.assign_coords(chain=("draw", chain))


def run_chains(posterior: Target, settings: Chains, key: Key[Array, ""]):
    """Return draws z (chain, draw, param), what the sampler says of each, and the population."""
    look, pick, run = jax.random.split(key, 3)
    cloud, _ = cool(posterior, settings.starts, look)
    first = jax.random.choice(pick, cloud.z, (settings.chains,), replace=False)
    kernel = NUTS(
        potential_fn=lambda z: -posterior.log_density(z),
        dense_mass=True,
        target_accept_prob=settings.accept,
        forward_mode_differentiation=settings.forward,
    )
    sampler = MCMC(
        kernel,
        num_warmup=settings.warmup,
        num_samples=settings.draws,
        num_chains=settings.chains,
        chain_method="vectorized",
        progress_bar=False,
    )
    sampler.run(run, init_params=first, extra_fields=("diverging", "num_steps"))
    return sampler.get_samples(group_by_chain=True), sampler.get_extra_fields(), cloud.z


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
