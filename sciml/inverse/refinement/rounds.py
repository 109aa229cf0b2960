"""A fit made sharp at one observation, by simulations about its own draws, round by round."""

import json
import logging
import time
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from sciml._arguments import check_whole
from sciml._labels import Observed
from sciml._precision import unresolved
from sciml._session import as_usual
from sciml.diagnose import c2st
from sciml.inverse.borders import targets_of, valid_samples
from sciml.inverse.fit import fitted
from sciml.inverse.loss import PreparedLoss
from sciml.inverse.program import initial_params
from sciml.inverse.refinement.memory import Kept
from sciml.inverse.refinement.region import KERNELS, Region, Simulated
from sciml.inverse.refinement.resampled import Resampled, cumulative, filled, padded, weighted_loss
from sciml.inverse.result import Fit
from sciml.inverse.setup import Setup, setup
from sciml.ode.methods.solver import Problem
from sciml.ode.observe.noise import level_priors
from sciml.reference import sharpness
from sciml.reference.observed import check_problem_of
from sciml.reference.trust import DOUBT, WIDE, judgement, weighable
from sciml.train.checkpoint import Checkpoint, Store
from sciml.train.epoch import Online
from sciml.train.loop import Validation, train
from wse._numbers import of_kind

log = logging.getLogger(__name__)

AGREE = 0.55  # sourced: C2ST that is called very good, GenSBI
SHARP = 1.25  # assumed: times too wide by weight that are told; tried: docs/lab/too-wide.md
HELD = 10  # assumed: one in so many simulations is held out


@as_usual
def refine(
    fit: Fit,
    problem: Problem,
    observed: Observed,
    rounds: int = 3,
    *,
    simulations: int = 2000,
    epochs: int = 100,
    likelihood: bool = True,
    seed: int = 0,
    folder: Path | str | None = None,
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
        folder: where rounds are kept, and their training every 20 seconds, at Ctrl-C and at
            SIGTERM; the same call goes on from there, to the same numbers. It stays until you
            delete it.

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
            fit's, numbers that are too small, or the folder keeps another run.

    Source: truncated proposals, Deistler, Gonçalves, Macke, arXiv 2210.04815.

    >>> sharp = sciml.refine(fit, problem, observed)  # doctest: +SKIP
    """
    of_kind("fit", fit, Fit, "pass what sciml.fit gives")
    fit.check_density()
    check_problem_of(fit, problem)
    seen = one_observation(fit, observed)
    check_whole(1, rounds=rounds)
    check_whole(2 * fit.recipe.batch, simulations=simulations)
    asked = likelihood and weighable(problem, fit.grid.parameters)
    options = {"rounds": rounds, "simulations": simulations, "epochs": epochs, "seed": seed}
    kept = Kept.of(folder, fit, problem, seen, options | {"likelihood": asked})
    began = time.perf_counter()
    best, by, told = in_rounds(fit, problem, seen, options, kept)
    spent = {"simulations": simulations * (len(told) - 1)}
    spent |= {"seconds": round(time.perf_counter() - began, 1)} | summed(told, by)
    refinement = json.dumps({**spent, "observations": 1, "rounds": told})
    return best.replace(attrs=best.attrs | {"refinement": refinement}, checkpoint=Store())


def in_rounds(
    fit: Fit, problem: Problem, seen: xr.DataArray, options: dict[str, int], kept: Kept
) -> tuple[Fit, dict[str, Any], list[dict[str, Any]]]:
    """Return the best fit, what was said of its round, and what of every one."""
    simulations, rounds, seed = (options[name] for name in ("simulations", "rounds", "seed"))
    prior, lacking = prior_of(problem, fit.grid.parameters), np.isnan(seen.values[0])
    asked, made, rng = kept.asked, Simulated(), np.random.default_rng(seed)
    told = [kept.row(0, partial(judged, fit, problem, seen, asked))]
    best, current, by = fit, fit, told[0]
    while (number := len(told)) <= rounds and not agrees(told[-1]):
        draws = current.sample(seen, 2 * KERNELS, seed=number).posterior[:, 0].values
        region = Region.about(prior, current, draws, rng)
        theta, key = region.draw(rng, simulations), int(rng.integers(2**31))
        data = kept.data(number, partial(sharpness.simulated, problem, theta, seen, key))
        made = made.joined(data, region)
        sizes = simulations, rounds, options["epochs"]
        checkpoint = kept.checkpoint(number)
        current = trained(current, made, lacking, sizes, (seed + number, checkpoint))
        last = draws, data
        row = kept.row(number, partial(judged, current, problem, seen, asked, last))
        told.append(row)
        if row.get("weights", 0.0) <= by.get("weights", 1.0):
            best, by = current, row
    return best, by, told


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
    fit: Fit,
    made: Simulated,
    lacking: np.ndarray,
    sizes: tuple[int, int, int],
    told: tuple[int, Checkpoint | None],
) -> Fit:
    """Return a fit of the same configuration to simulations by their weights, with gaps."""
    seed, checkpoint = told
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
        checkpoint=checkpoint,
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
