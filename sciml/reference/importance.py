"""Draws of a net, weighted until they are draws of the posterior itself."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from tqdm.auto import tqdm

from sciml.ode.blocks import in_blocks
from sciml.ode.solver import Method, Problem, default_method, solver
from sciml.provenance import provenance
from sciml.reference.likelihood import log_likelihood

if TYPE_CHECKING:
    import xarray as xr

ROWS = 2**15  # assumed: proposals at once; of 1000 values each they take 130 MB
PER_DRAW = 4  # assumed: proposals for each draw that is kept


@runtime_checkable
class Density(Protocol):
    """A posterior that is drawn from and has a density: a `Fit` of a net that gives one."""

    def sample(self, data: Any, draws: int, seed: int) -> "xr.Dataset":
        """Return `posterior (draw, sample, parameter)`."""
        ...

    def log_prob(self, data: Any, parameters: Any) -> "xr.DataArray":
        """Return log q(θ | x) `(sample)`."""
        ...


def importance(
    proposal: Density,
    problem: Problem,
    data: "xr.Dataset",
    *,
    draws: int = 1000,
    proposals: int | None = None,
    noise: Any = None,
    method: Method | None = None,
    seed: int = 0,
) -> "xr.Dataset":
    """Return draws of the posterior, by weighing those of a net with the likelihood.

    Of n proposals θ ~ q(θ | x) each has the weight w = p(θ) p(x | θ) / q(θ | x); draws are taken
    from among them by weight (systematic resampling, so one proposal may come more than once).
    Where q covers the posterior, the draws follow it however q is shaped, the better the larger
    ε n, with the efficiency ε = (Σ w)² / (n Σ w²) in (0, 1]. A mode that q does not have is not
    found, and not noticed.

    Args:
        proposal: a fit of a posterior net.
        problem: whose solver and prior are asked, for `proposals` solutions an observation.
        data: `observation (sample, …)`, as the fit was trained on.
        draws: how many for each observation.
        proposals: n; default four for each draw. Take so many that ε n is a hundred and more.
        noise: what the measurement did; default `problem.noise`.
        method: the integrator; default the problem's own.
        seed: of proposals and draws.

    Returns:
        `posterior (draw, sample, parameter)`; `efficiency (sample)`; `log_evidence (sample)`,
        ln p(x) = ln Σ w / n. Where no proposal has any weight: NaN, 0 and −∞.

    Raises:
        ValueError: no noise or no draws; fewer proposals than draws; or levels of the noise that
            are drawn but were not estimated.
        TypeError: the noise has no likelihood, or the fit is no density.

    Source: Dax et al., arXiv 2210.05686; for the choice of draws Kitagawa, J. Comput. Graph.
    Stat. 5:1-25, 1996.
    """
    import xarray as xr

    count = proposals or PER_DRAW * draws
    if not 1 <= draws <= count:
        raise ValueError(f"draws is {draws} of {count} proposals; it must lie in 1…{count}")
    noise = noise or getattr(problem, "noise", None)
    method = method or default_method(problem)
    rng = np.random.default_rng(seed)
    parts, size = [], max(1, ROWS // count)
    starts = range(0, data.sizes["sample"], size)
    density = jax.jit(log_joint(problem, noise, method))
    for start in tqdm(starts, "weighing", unit="chunk", leave=False, disable=len(starts) < 2):
        some = data.isel(sample=slice(start, start + size))
        found = proposal.sample(some, draws=count, seed=int(rng.integers(2**31)))
        check_names(found.parameter.values, problem, noise)
        log_weight = weighed(proposal, density, method, some, found.posterior.values)
        parts.append(drawn(found, log_weight, draws, rng))
    described = {"proposals": count, "noise": str(noise), "integrator": str(method), "seed": seed}
    return xr.concat(parts, "sample").assign_attrs(described, **provenance())


def log_joint(problem: Problem, noise: Any, method: Method) -> Callable:
    """Return (θ, x) ↦ ln p(θ) + ln p(x | θ), row by row, θ being parameters and sampled levels."""
    if noise is None:
        raise ValueError(
            f"noise is None; the posterior of {problem.name} needs a likelihood: "
            "pass noise=problem.noise or another noise"
        )
    priors = dict(problem.prior) | dict(noise.prior)
    solve, size = solver(problem, method), len(problem.prior)

    def one(theta: Float[Array, " param"], clean: Array, observed: Array) -> Float[Array, ""]:
        prior = sum(p.log_prob(value) for p, value in zip(priors.values(), theta, strict=True))
        levels = dict(zip(noise.prior, theta[size:], strict=True))
        value = prior + log_likelihood(noise, observed, clean, levels)
        return jnp.where(jnp.isnan(value), -jnp.inf, value)  # a solution that failed

    return lambda theta, seen: jax.vmap(one)(theta, solve(theta[:, :size]), seen)


def weighed(
    proposal: Density, density: Callable, method: Method, data: "xr.Dataset", theta: np.ndarray
) -> Float[np.ndarray, "draw sample"]:
    """Return ln w of proposals (draw, sample, param)."""
    count, samples, size = theta.shape
    rows = theta.reshape(-1, size)
    repeated = data.isel(sample=np.tile(np.arange(samples), count))
    joint = in_blocks(density, (rows, repeated.observation.values), method, progress=False)
    log_q = np.asarray(proposal.log_prob(repeated, rows).values, np.float64)
    # A draw that is rounded onto the border of its support has no density there: none of it counts.
    inside = np.isfinite(log_q)
    weight = np.where(inside, joint.astype(np.float64) - np.where(inside, log_q, 0), -np.inf)
    return weight.reshape(count, samples)


def drawn(
    found: "xr.Dataset", log_weight: np.ndarray, draws: int, rng: np.random.Generator
) -> "xr.Dataset":
    """Return draws by weight, the efficiency and the evidence of each sample."""
    import xarray as xr

    top = log_weight.max(axis=0)
    lost = ~np.isfinite(top)
    weight = np.exp(log_weight - np.where(lost, 0, top))
    weight[:, lost] = 1
    share = weight / weight.sum(axis=0)
    # Evenly spaced points with one random start, in the cumulated shares
    points = (np.arange(draws)[:, None] + rng.random(len(top))) / draws
    ends = share.cumsum(axis=0)
    chosen = np.stack(
        [np.searchsorted(e / e[-1], p) for e, p in zip(ends.T, points.T, strict=True)]
    )
    posterior = np.take_along_axis(found.posterior.values, chosen.T[..., None], axis=0)
    posterior[:, lost] = np.nan
    efficiency = np.where(lost, 0, 1 / (len(share) * np.square(share).sum(axis=0)))
    evidence = np.where(lost, -np.inf, top + np.log(weight.mean(axis=0)))
    return xr.Dataset(
        {
            "posterior": (("draw", "sample", "parameter"), posterior),
            "efficiency": ("sample", efficiency),
            "log_evidence": ("sample", evidence),
        },
        coords=found.coords,
    )


def check_names(names: Any, problem: Problem, noise: Any) -> None:
    """Refuse a fit whose targets are not all that the likelihood depends on."""
    needed = (*problem.prior, *noise.prior)
    if tuple(names) != needed:
        raise ValueError(
            f"the fit estimates {', '.join(names)}, but the likelihood depends on "
            f"{', '.join(needed)}: fit with the levels of the noise as targets (estimate=True), or "
            "pass the noise and the problem of the fit"
        )
