"""A fit made sharp at one observation, by simulations about its own draws, round by round."""

import json
import logging
import time
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.special import gammaln, logsumexp

from sciml._arguments import check_whole
from sciml._labels import Observed
from sciml._precision import unresolved
from sciml.diagnose import c2st
from sciml.inverse.borders import targets_of, valid_samples
from sciml.inverse.fit import fitted
from sciml.inverse.loss import PreparedLoss
from sciml.inverse.program import initial_params
from sciml.inverse.resampled import Resampled, cumulative, filled, padded, weighted_loss
from sciml.inverse.result import Fit
from sciml.inverse.scaling import Unconstrained
from sciml.inverse.setup import Setup, setup
from sciml.ode.methods.solver import Problem
from sciml.ode.observe.noise import level_priors
from sciml.ode.prior import log_prob
from sciml.reference import sharpness
from sciml.reference.observed import check_problem_of
from sciml.reference.trust import DOUBT, WIDE, judgement, weighable
from sciml.train.epoch import Online
from sciml.train.loop import Validation, train
from wse._numbers import of_kind

log = logging.getLogger(__name__)

AGREE = 0.55  # sourced: C2ST that is called very good, GenSBI
SHARP = 1.25  # assumed: times too wide by weight that are told; tried: docs/lab/too-wide.md
KERNELS = 500  # assumed: draws about which the next simulations lie
FREEDOM = 5.0  # assumed: tails of each
EXACT = (0.999, 0.99, 0.95, 0.8, 0.5)  # assumed: share of draws where the prior is kept, at best
ACCEPTED = 0.01  # assumed: share of proposals that is enough
HELD = 10  # assumed: one in so many simulations is held out
LEAST = 1e-4  # assumed: spread on the whole line, of a prior of width about 2; less is rounding
PROPOSED = 4096  # assumed: proposals at once


@dataclass(frozen=True)
class Region:
    """p̂(θ) = min(p(θ), c g(θ)) / Z: the prior p where draws of a net are, fading out elsewhere.

    g is a mixture of Student t's about draws of the net, each as wide as all of these.
    """

    prior: dict[Any, Any]
    scaling: Unconstrained
    centres: Float[np.ndarray, "kernel param"]
    factor: Float[np.ndarray, "param param"]
    log_c: float = 0.0
    log_z: float = 0.0

    @classmethod
    def about(cls, prior: dict[Any, Any], fit: Fit, theta: Any, rng: Any) -> "Region":
        """Return the region about draws (draw, param) of a fit."""
        assert isinstance(fit.scaling, Unconstrained)
        z = np.asarray(fit.scaling.forward(np.asarray(theta, np.float32)), np.float64)
        spread = np.cov(z.T).reshape(z.shape[1], -1)
        spread += 1e-6 * np.diag(np.diag(spread))
        if not (np.isfinite(spread).all() and (np.diag(spread) > LEAST**2).all()):
            raise ValueError(
                f"draws of the net have spreads {np.sqrt(np.diag(spread))} here: they lie at the "
                "border of the prior or at one point, about which nothing can be simulated; the "
                "observation is unlike those of the training: look at `flagged` of fit.sample"
            )
        free = cls(prior, fit.scaling, z[:KERNELS], np.linalg.cholesky(spread))
        own, tried = (free.log_ratio(free.rounded(z[-1000:])), free.log_ratio(free.propose(rng)))
        log_c, accepted = 0.0, 0.0
        for share in EXACT:
            log_c = float(np.quantile(own[np.isfinite(own)], share))
            accepted = float(np.exp(np.minimum(tried - log_c, 0)).mean())
            if accepted >= ACCEPTED:
                break
        return replace(free, log_c=log_c, log_z=log_c + np.log(max(accepted, 1e-12)))

    def rounded(self, z: np.ndarray) -> np.ndarray:
        """Return θ(z)."""
        return np.asarray(self.scaling.backward(np.asarray(z, np.float32)))

    def propose(self, rng: np.random.Generator) -> Float[np.ndarray, "proposal param"]:
        """Return draws of g."""
        centre = self.centres[rng.integers(len(self.centres), size=PROPOSED)]
        heavy = np.sqrt(FREEDOM / rng.chisquare(FREEDOM, size=(PROPOSED, 1)))
        normal = rng.normal(size=centre.shape)
        return self.rounded(centre + heavy * normal @ self.factor.T)

    def log_prior(self, theta: np.ndarray) -> np.ndarray:
        """Return ln p, −∞ outside."""
        ends = np.array([self.scaling.low, self.scaling.high])
        inside = ((theta > ends[0]) & (theta < ends[1])).all(axis=1)
        with np.errstate(invalid="ignore"):
            value = np.asarray(log_prob(self.prior, jnp.asarray(theta)), np.float64)
        return np.where(inside & np.isfinite(value), value, -np.inf)

    def log_mixture(self, theta: np.ndarray) -> np.ndarray:
        """Return ln g."""
        z = np.asarray(self.scaling.forward(np.asarray(theta, np.float32)), np.float64)
        size, inverse = z.shape[1], np.linalg.inv(self.factor)
        a, b = z @ inverse.T, self.centres @ inverse.T
        square = (a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * a @ b.T
        total = FREEDOM + size
        constant = gammaln(total / 2) - gammaln(FREEDOM / 2) - size / 2 * np.log(FREEDOM * np.pi)
        constant -= np.log(np.diag(self.factor)).sum() + np.log(len(b))
        each = constant - total / 2 * np.log1p(np.maximum(square, 0) / FREEDOM)
        return np.asarray(logsumexp(each, axis=1)) + np.asarray(self.scaling.log_slope(theta))

    def log_ratio(self, theta: np.ndarray) -> np.ndarray:
        """Return ln p / g."""
        return self.log_prior(theta) - self.log_mixture(theta)

    def log_density(self, theta: np.ndarray) -> np.ndarray:
        """Return ln p̂."""
        capped = self.log_c + self.log_mixture(theta)
        return np.minimum(self.log_prior(theta), capped) - self.log_z

    def draw(self, rng: np.random.Generator, count: int) -> Float[np.ndarray, "sample param"]:
        """Return draws of p̂, by rejection."""
        kept: list[np.ndarray] = []
        for _ in range(100 + int(2 * count / (ACCEPTED * PROPOSED))):
            theta = self.propose(rng)
            chance = np.exp(np.minimum(self.log_ratio(theta) - self.log_c, 0))
            kept.append(theta[rng.uniform(size=len(theta)) < chance])
            if sum(map(len, kept)) >= count:
                return np.concatenate(kept)[:count]
        raise ValueError(
            f"of the draws about the net's own, {sum(map(len, kept))} of {count} lie where the "
            "prior allows; train the fit longer, or leave out an observation unlike its training"
        )


@dataclass(frozen=True)
class Simulated:
    """The simulations so far, padded to one size, and the regions that they are drawn from."""

    parts: tuple[xr.Dataset, ...] = ()
    regions: tuple[Region, ...] = ()

    def joined(self, data: xr.Dataset, region: Region) -> "Simulated":
        """Return these and those of a further round."""
        return Simulated((*self.parts, data), (*self.regions, region))

    def weights(self, theta: np.ndarray) -> np.ndarray:
        """Return p̂ of the last region over the mixture of all, by simulations in each."""
        logs = np.stack([region.log_density(theta) for region in self.regions])
        counts = np.array([part.sizes["sample"] for part in self.parts], float)
        mixture = np.asarray(logsumexp(logs, axis=0, b=(counts / counts.sum())[:, None]))
        with np.errstate(invalid="ignore"):
            value = np.exp(logs[-1] - mixture)
        return np.where(np.isfinite(value), value, 0.0)


def refine(
    fit: Fit,
    problem: Problem,
    observed: Observed,
    *,
    rounds: int = 3,
    simulations: int = 2000,
    epochs: int = 100,
    likelihood: bool = True,
    seed: int = 0,
) -> Fit:
    """Return a fit for ONE observation, from simulations about the draws there, round by round.

    In round r parameters come from p̂ᵣ(θ) = min(p(θ), c g(θ)) / Z: the prior p, within the region
    where draws of the last net are, g being a mixture of wide Student t's about these and c such
    that p̂ᵣ is p, but for Z, for 99.9 % of them. A new net is trained on the simulations of all
    rounds s, each n_s, weighed by p̂ᵣ / Σ n_s p̂ₛ, with scalings of this region. It is a posterior
    under p where p̂ᵣ is p, so that no correction of its draws is needed.

    It stops before `rounds` where draws and their likelihood weights agree (a C2ST of 0.55 and
    spreads at most 1.25 times too wide), and returns the best fit by that C2ST; without likelihood
    where draws of two rounds cannot be told apart (the same) and its simulations tell no narrower
    ones, and returns the last; or where `exact` draws are a few steps of float32 apart. It warns.

    Args:
        fit: of a posterior net, by which the first region is found. A rough one will do.
        problem: that it was trained on, with the same prior and noise.
        observed: one observation, as for `fit.sample`; what is missing there is left out of the
            simulations too.
        rounds: at most.
        simulations: of each round.
        epochs: of each round, of as many simulations; a tenth is held out to choose the weights.
        likelihood: whether it is asked when to stop, for 500 solutions a round. It never enters the
            net.
        seed: of parameters, noise, weights and shuffles.

    Returns:
        A `Fit` for this observation alone: others are flagged by `sample`. Its attribute
        `refinement` is JSON: `simulations` and `seconds` spent in all, and `rounds`, of each the
        C2ST `weights` tell of and how many times they say that draws are `too_wide`, at most, in
        the parameter `widest`; or `change` since the last round and `width`, the spread of the
        draws over that of the last round, the geometric mean over parameters; all rounds together
        made it `width` times as wide as that of the first fit. It is at least `too_wide` times that
        of the posterior. A fit that agrees already is returned with nothing spent but the check.

    Raises:
        TypeError: the fit is a point net, or there is no such problem.
        ValueError: more observations than one, another grid, another prior or noise than the
            fit's, or numbers that are too small.

    Source: truncated proposals, Deistler, Gonçalves, Macke, arXiv 2210.04815.

    >>> sharp = sciml.refine(fit, problem, observed)  # doctest: +SKIP
    """
    of_kind("fit", fit, Fit, "pass what sciml.fit gives")
    fit.check_density()
    check_problem_of(fit, problem)
    seen = one_observation(fit, observed)
    check_whole(1, rounds=rounds)
    check_whole(2 * fit.recipe.batch, simulations=simulations)
    names = fit.grid.parameters
    prior = prior_of(problem, names)
    asked = likelihood and weighable(problem, names)
    rng, began = np.random.default_rng(seed), time.perf_counter()
    told, made, lacking = [judged(fit, problem, seen, asked)], Simulated(), np.isnan(seen.values[0])
    best, current, by = fit, fit, told[0]
    while len(told) <= rounds and not agrees(told[-1]):
        draws = current.sample(seen, 2 * KERNELS, seed=len(told)).posterior[:, 0].values
        region = Region.about(prior, current, draws, rng)
        theta = region.draw(rng, simulations)
        data = sharpness.simulated(problem, theta, seen, int(rng.integers(2**31)))
        made = made.joined(data, region)
        current = trained(current, made, lacking, (simulations, rounds, epochs), seed + len(told))
        told.append(row := judged(current, problem, seen, asked, (draws, data)))
        if row.get("weights", 0.0) <= by.get("weights", 1.0):
            best, by = current, row
    spent = {"simulations": simulations * (len(told) - 1)}
    spent |= {"seconds": round(time.perf_counter() - began, 1)} | summed(told, by)
    refinement = json.dumps({**spent, "observations": 1, "rounds": told})
    return best.replace(attrs=best.attrs | {"refinement": refinement})


def prior_of(problem: Problem, names: tuple[str, ...]) -> dict[Any, Any]:
    """Return the prior of what a fit estimates, levels of the noise with it."""
    prior = dict(problem.prior) | level_priors(getattr(problem, "noise", None))
    return {key: each for key, each in prior.items() if isinstance(key, tuple) or key in names}


def one_observation(fit: Fit, observed: Any) -> xr.DataArray:
    """Return the one observation, checked, with its axis `sample`."""
    seen = fit.checked(observed)
    if len(seen) != 1:
        raise ValueError(
            f"there are {len(seen)} observations; refine takes one: choose it, as "
            "data.isel(sample=[0])"
        )
    return seen


def judged(
    fit: Fit, problem: Problem, seen: xr.DataArray, asked: bool, last: Any = None
) -> dict[str, Any]:
    """Return what weights say of draws; else their change, and what the last simulations say."""
    after = fit.sample(seen, 2 * KERNELS, seed=0).posterior[:, 0]
    known = after.parameter.values[unresolved(after.values)]
    row: dict[str, Any] = {"exact": ", ".join(known)} if last and len(known) else {}
    if asked:
        said = judgement(fit, problem, seen, 0)
        row |= {"weights": float(said.c2st[0]), "effective": float(said.effective[0])}
        if said.too_wide.isnull().all():  # few draws have any weight
            return row
        times = said.too_wide[0]
        return row | {"too_wide": float(times.max()), "widest": str(times.idxmax().values)}
    if last is None:
        return row
    before, data = last
    ratio = np.divide(*(np.std(one, axis=0, dtype=float) for one in (after.values, before)))
    width = float(np.exp(np.log(ratio[ratio > 0]).mean())) if ratio.any() else 0.0
    row |= {"change": float(c2st(before, after.values).score), "width": width}
    return row | too_wide(after, data, seen)


def too_wide(draws: xr.DataArray, data: xr.Dataset, seen: xr.DataArray) -> dict[str, Any]:
    """Return at least how many times draws are too wide by a round's simulations, and in what."""
    ok, x = valid_samples(data)
    theta, names = targets_of(ok, levels=True)
    if len(x) < sharpness.LEAST:
        return {}
    x = np.where(np.isnan(seen.values[0]), np.nan, x)
    spread = draws.sel(parameter=list(names)).values.std(axis=0, dtype=float)
    found = sharpness.wider(spread, theta, x, seen.values)
    if np.isnan(found).all():
        return {}
    return {"too_wide": float(np.nanmax(found)), "widest": names[int(np.nanargmax(found))]}


def agrees(row: dict[str, Any]) -> bool:
    """Tell whether a round is good enough to stop, or none can be better."""
    measure, limit = ("weights", SHARP) if "weights" in row else ("change", WIDE)
    good = row.get(measure, 1.0) <= AGREE and row.get("too_wide", 0.0) <= limit
    return good or "exact" in row


def summed(told: list[dict[str, Any]], best: dict[str, Any]) -> dict[str, Any]:
    """Return by how much all rounds made draws narrower, where no weights tell; say what is left.

    Weights judge the best fit, of this row.
    """
    last = told[-1]
    if "exact" in last:
        log.warning(
            "draws of %s differ by a few steps of float32 alone, and refining stops: observations "
            "without noise tell a parameter exactly, as no net does; solve for it, or add noise",
            last["exact"],
        )
    if "weights" in last:
        warn_by_weights(best)
        return {}
    if "exact" not in last and last.get("too_wide", 0.0) > WIDE:
        log.warning(
            "the refined draws are still at least %.1f times too wide in %s, by the simulations of "
            "the last round: refine with more epochs= or simulations=, or a fit of a larger net",
            *(last["too_wide"], last["widest"]),
        )
    return {"width": float(np.prod([row.get("width", 1.0) for row in told]))}


def warn_by_weights(row: dict[str, Any]) -> None:
    """Say if likelihood weights doubt draws, or tell that they are too wide, and what to do."""
    again = "refine this fit again, with more epochs= or simulations=, or a fit of a larger net"
    if row["weights"] > DOUBT:
        log.warning(
            "the refined draws are not those of the posterior: by their likelihood weights a "
            "classifier tells them apart in %.0f %% of cases, where 50 %% are chance: %s",
            *(100 * row["weights"], again),
        )
    elif row.get("too_wide", 0.0) > SHARP:
        log.warning(
            "the refined draws are %.2f times too wide in %s, by their likelihood weights: %s; or "
            "weigh them, by sciml.reference.importance",
            *(row["too_wide"], row["widest"], again),
        )


def trained(
    fit: Fit, made: Simulated, lacking: np.ndarray, sizes: tuple[int, int, int], seed: int
) -> Fit:
    """Return a fit of the same configuration to simulations by their weights, with gaps."""
    model, recipe, (each, rounds, epochs) = fit.model, fit.recipe, sizes
    arranged = setup(model, made.parts[-1], None, seed, standardise=recipe.standardise)
    loss = PreparedLoss(model, arranged.grid.inputs, len(fit.grid.parameters), recipe.precision)
    x, y, weight = rows_of(made, arranged, lacking)
    held = np.arange(len(y)) % HELD == 0
    source = (
        *padded((x[~held], y[~held]), each * rounds),
        cumulative(weight[~held], each * rounds),
    )
    judged_by = (*padded((x[held], y[held]), each * rounds), filled(weight[held], each * rounds))
    samples = len(y[~held]) // len(made.parts) // recipe.batch * recipe.batch
    if not samples:
        raise ValueError(
            f"{len(y)} of {each * len(made.parts)} simulations succeeded, and a batch has "
            f"{recipe.batch}; pass more simulations="
        )
    score = partial(weighted_loss, loss, held=judged_by)
    params = initial_params(model, arranged.grid.inputs, len(fit.grid.parameters), seed)
    found = train(
        loss,
        params,
        Online(samples, Resampled(samples), source),
        recipe=recipe,
        epochs=epochs,
        seed=seed,
        validate=Validation(score, max(1, epochs // 50), held=judged_by),
    )
    settings = json.loads(fit.attrs.get("fit", "{}")) | {"epochs": epochs, "seed": seed}
    settings |= {"samples": len(y), "recipe": asdict(recipe)}
    attrs = made.parts[-1].attrs | {"settings": fit.attrs.get("data", "")}
    hidden = np.zeros(arranged.observed.shape, bool)
    arranged.grid.apart(hidden)[0][:] = lacking  # of what is kept, as of what is learned from
    grid = replace(arranged.grid, units=fit.grid.units)  # of which a problem says nothing
    arranged = replace(arranged, grid=grid, observed=np.where(hidden, np.nan, arranged.observed))
    return fitted(model, arranged, found, recipe, {"fit": settings, "data": attrs})


def rows_of(made: Simulated, arranged: Setup, lacking: np.ndarray) -> tuple[Any, Any, np.ndarray]:
    """Return observations with gaps and targets of all rounds, prepared, and their weights."""
    pairs, kept = [], []
    for part in made.parts:
        data, x = valid_samples(part)
        theta, _ = targets_of(data, levels=True)
        kept.append(theta)
        known = arranged.grid.known(data["observation"])
        shown = arranged.grid.shown(np.where(lacking, np.nan, x), known)
        pairs.append(arranged.prepared(shown, theta))
    x, y = (np.concatenate([np.asarray(pair[i]) for pair in pairs]) for i in (0, 1))
    return x, y, made.weights(np.concatenate(kept))
