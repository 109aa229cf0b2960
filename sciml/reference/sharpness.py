"""Whether draws are wider than the posterior, told by simulations at these draws alone."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy import stats
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from sciml._labels import by_name, labels_of
from sciml.ode.data.simulate import simulate
from sciml.ode.methods.solver import Problem
from sciml.ode.observe.missing import Missing

DRAWS = 1000  # assumed: draws that are simulated anew, of each observation
NEAREST = 0.2  # assumed: share of these in which errors are counted
LEAST = 200  # assumed: simulations that must succeed
PENALTIES = np.logspace(-4, 4, 17)  # assumed
FAR = 10.0  # assumed: standard deviations at which an input is cut

Rows = Float[np.ndarray, "draw feature"]
One = Float[np.ndarray, "1 feature"]
Scores = Float[np.ndarray, "draw param"]


def too_wide(proposal: Any, problem: Problem, observed: xr.DataArray, seed: int) -> xr.DataArray:
    """Return at least how many times draws are wider than the posterior (sample, parameter).

    1000 draws θ ~ q(θ | x) are simulated, x′ ~ p(x′ | θ), and θ is regressed on x′. Of a posterior,
    simulations tell at most about half of the variance again: to the precision Λ = P + F of prior
    and observation they add F ≤ Λ. Where q is k times wider they tell R² = k² / (1 + k²), so that

        k = √(R² / (1 − R²)).

    R² is that of normal scores of θ, left out one by one, among the fifth of the simulations that
    the regression takes to be most like x: what is learned nearby counts. It is exact in linear
    Gaussian problems; a regression that learns less tells a smaller k. NaN where fewer than 200
    simulations succeed, and of draws that are all one number.
    """
    found, names = [], None
    for i in tqdm(range(len(observed)), "simulating at draws", leave=False, delay=5):
        one = observed[i : i + 1]
        theta = proposal.sample(one, draws=DRAWS, seed=seed + i).posterior.isel(sample=0, drop=True)
        names = theta.parameter
        theta = theta.rename(draw="sample")
        data = simulated(problem, theta, one, seed + i)
        ok = data.valid.values
        seen = np.where(np.isnan(one.values[0]), np.nan, data.observation.values[ok])
        scores = normal_scores(theta.values[ok])
        enough = ok.sum() >= LEAST
        found.append(excess(scores, *inputs(seen, one.values)) if enough else np.nan * scores[0])
    return xr.DataArray(np.stack(found), {"parameter": names}, ("sample", "parameter"))


def simulated(problem: Problem, theta: Any, seen: xr.DataArray, seed: int) -> xr.Dataset:
    """Return simulations of given parameters and levels under the conditions seen, without gaps."""
    noise: Any = getattr(problem, "noise", None)
    noise = noise.noise if isinstance(noise, Missing) else noise
    given = seen if problem.conditions else None
    made = simulate(problem, None, given, parameters=theta, noise=noise, seed=seed)
    return as_seen(made, seen, problem.name)


def as_seen(made: xr.Dataset, seen: xr.DataArray, owner: str) -> xr.Dataset:
    """Return simulations with names along their axis in the order of the observation's.

    Those of another shape or other names are refused: what is seen is compared place by place.
    """
    found, dim = made["observation"], str(made["observation"].dims[-1])
    names, wanted = labels_of(found, dim), labels_of(seen, dim)
    if names and wanted and names != wanted:
        by_name(found, wanted, f"what {owner} gives", dim)
        made = made.sel({dim: [*wanted]})
    shapes = made["observation"].shape[1:], seen.shape[1:]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"{owner} gives observations of shape {shapes[0]}, and what is seen has {shapes[1]}; "
            "they must be alike: pass the problem that the fit was trained on"
        )
    return made


def normal_scores(theta: Scores) -> Scores:
    """Return quantiles of the standard normal by rank."""
    return np.asarray(stats.norm.ppf((stats.rankdata(theta, axis=0) - 0.5) / len(theta)))


def inputs(made: np.ndarray, seen: np.ndarray) -> tuple[Rows, One]:
    """Return simulations and the observation, standardised by the former; 0 where one lacks."""
    rows, one = made.reshape(len(made), -1), seen.reshape(1, -1)
    known = ~np.isnan(one[0])
    rows, one = rows[:, known], one[:, known]
    mean, sd = np.nanmean(rows, axis=0), np.nanstd(rows, axis=0)
    sd = np.where(sd > 0, sd, 1.0)
    first, second = (np.nan_to_num((each - mean) / sd) for each in (rows, one))
    return np.clip(first, -FAR, FAR), np.clip(second, -FAR, FAR)


def excess(scores: Scores, x: Rows, seen: One) -> Float[np.ndarray, " param"]:
    """Return k of each parameter, of which the scores have unit variance; NaN where all are one."""
    lost = np.where(np.ptp(scores, axis=0) > 0, errors_near(scores, x, seen), np.nan)
    return np.sqrt(np.maximum(1 - lost, 0) / lost)


def wider(
    spread: np.ndarray, theta: Scores, x: np.ndarray, seen: np.ndarray
) -> Float[np.ndarray, " param"]:
    """Return at least how many times a standard deviation is that of the posterior.

    Simulations (θ, x′) from wherever draws may lie bound the latter from above: by the errors of a
    regression of θ on x′ near x.
    """
    theta, x = (np.asarray(each[:DRAWS], np.float64) for each in (theta, x))
    scores = (theta - theta.mean(axis=0)) / theta.std(axis=0)
    lost = errors_near(scores, *inputs(x, np.asarray(seen, np.float64)))
    return spread / (theta.std(axis=0) * np.sqrt(lost))


def errors_near(scores: Scores, x: Rows, seen: One) -> Float[np.ndarray, " param"]:
    """Return mean squared errors near x, by the kernel and penalty that leave the least of all."""
    with threadpool_limits(1, "blas"):  # two threads on busy cores wait for each other
        tried = [left_out(*pair, scores) for pair in kernels(x, seen)]
    best = np.stack([np.square(error).mean(axis=0) for error, _ in tried]).argmin(axis=0)
    error = np.stack([tried[k][0][:, i] for i, k in enumerate(best)], axis=1)
    here = np.array([tried[k][1][i] for i, k in enumerate(best)])
    told = scores - error
    far = np.square((told - here) / np.maximum(told.std(axis=0), 1e-9)).sum(axis=1)
    near = np.argsort(far)[: int(NEAREST * len(far))]
    return np.square(error[near]).mean(axis=0)


def kernels(x: Rows, seen: One) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield kernels among simulations, and of the observation.

    Linear, with squares, with all products, which tell the spread of an error, and Gaussian.
    """
    both = np.concatenate([x, seen])
    linear = both @ x.T
    squares = (both**2 - 1) / np.sqrt(2)
    square = cdist(both, x, "sqeuclidean")
    for whole in (
        linear,
        linear + squares @ squares[:-1].T,
        np.square(1 + linear / x.shape[1]),
        np.exp(-square / max(float(np.median(square)), 1e-12)),
    ):
        yield whole[:-1], whole[-1:]


def left_out(
    kernel: Float[np.ndarray, "draw draw"], seen: Float[np.ndarray, "1 draw"], scores: Scores
) -> tuple[Scores, Float[np.ndarray, " param"]]:
    """Return errors of ridge regression for each draw left out, and what it says of x.

    With K = U W Uᵀ and G = (W + α)⁻¹ in that basis, the error of a draw left out is
    (G y)ᵢ / Gᵢᵢ; α is chosen for each parameter.
    """
    scale = len(kernel) / max(float(np.trace(kernel)), 1e-12)
    values, basis = np.linalg.eigh(scale * kernel)
    mean = scores.mean(axis=0)
    projected = basis.T @ (scores - mean)
    shrunk = 1 / (np.maximum(values, 0) + PENALTIES[:, None])
    dual = basis @ (shrunk[..., None] * projected)
    errors = dual / (shrunk @ np.square(basis).T)[..., None]
    best = np.square(errors).mean(axis=1).argmin(axis=0)
    columns = np.arange(len(best))
    here = scale * (seen @ dual[best, :, columns].T)[0] + mean
    return errors[best, :, columns].T, here
