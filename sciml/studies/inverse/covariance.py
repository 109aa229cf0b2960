"""The posterior's covariance from a net: learned from labels, or by likelihood."""

from dataclasses import asdict, dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import xarray as xr
from numpyro.distributions import TruncatedNormal, Uniform
from scipy.stats import chi2

from sciml.diagnose.draws.coverage import judge_coverage
from sciml.figure import draw_coverage, panels
from sciml.inverse import Fit, fit
from sciml.models import Dense, Gaussian
from sciml.ode import AR1, System, dataset, fitzhugh_nagumo_ramsay, simulate
from sciml.ode.prior import described, draw
from sciml.provenance import provenance
from sciml.reference import importance, laplace
from sciml.studies.description import Scale, Study, check_scale
from sciml.studies.store import kept, results_folder

NAMES = ("a", "b", "c")
SPREAD = np.array([0.25, 0.25, 1.0])  # assumed: of the prior, which is cut at two of them
LOWER = np.tril_indices(3)
DIAGONAL = LOWER[0] == LOWER[1]
TEST_SEED = 10_000  # that no training set has
LEARNED = "net of Laplace labels"
LIKELY = "net by likelihood"
EXACT = "weighted draws"
MIDDLE = 0.8  # the level of the coverage in the tables


@dataclass(frozen=True)
class Size:
    """How much a study of covariances computes: `weighed` of the tests have exact posteriors."""

    samples: int
    epochs: int
    tests: int
    weighed: int
    measured: int
    seeds: int
    width: int


SIZES = {
    "fast": Size(500, 20, 200, 20, 100, 1, 64),
    "full": Size(4000, 100, 1000, 200, 1000, 3, 256),
}


def problem() -> System:
    """Return FitzHugh and Nagumo's equations with three unknowns, normal priors and AR(1) noise."""
    ends = {"a": (0.5, 0.0, 1.0), "b": (0.5, 0.0, 1.0), "c": (3.0, 1.0, 5.0)}
    prior = {
        name: TruncatedNormal(middle, spread, low=low, high=high)
        for (name, (middle, low, high)), spread in zip(ends.items(), SPREAD, strict=True)
    }
    return replace(fitzhugh_nagumo_ramsay(), prior=prior, noise=AR1(sd=0.2, correlation=0.8))


def covariance(scale: Scale = "fast", *, out=None, ax=None) -> xr.Dataset:
    """Return how nets tell the covariance of the posterior, and a net of paths with own noise.

    Args:
        scale: "fast" (500 simulations, one seed) or "full" (4000, three seeds).
        out: the folder in which runs are kept, and from which an interrupted study goes on.
        ax: an axes to draw on; None draws nothing.

    Returns:
        By `seed` and `covariance` (whose it is): `held`, the share of truths within its ellipsoid
        of 80 %; `r2` of its estimate; and against exact posteriors `sd_ratio`, the median ratio of
        standard deviations, and `sd_error`, the median |ln| of that. `smallest (truth, …)`, the
        level at which each ellipsoid holds the truth. By `seed` and `unknown`, of the equation
        with noise of its own: `own_r2`, `own_error`, the mean |error|, and `own_held`.

    Raises:
        ValueError: another scale.
        NotADirectoryError, PermissionError: `out` cannot be written.

    >>> from sciml import studies
    >>> found = studies.covariance(out="results")  # doctest: +SKIP
    """
    check_scale(scale)
    size, folder = SIZES[scale], results_folder(out)
    known, runs = problem(), []
    told = {"prior": described(known.prior), "noise": known.noise.describe()}
    for seed in range(size.seeds):
        identity = {"run": f"covariance-seed{seed}", **asdict(size), **told}
        runs.append(kept(folder, identity, ".nc", lambda _, seed=seed: judged(size, seed)))
    found = xr.concat(runs, "seed").assign_attrs(title=STUDY.title, scale=scale, **provenance())
    if ax is not None:
        names = tuple(name.removeprefix("net ") for name in found.covariance.values)
        columns = found.smallest.transpose("seed", "truth", "covariance").values
        columns = columns.reshape(-1, len(names))
        draw_coverage(judge_coverage(columns[np.isfinite(columns).all(1)], names), ax)
    return found


def judged(size: Size, seed: int) -> xr.Dataset:
    """Return the scores of one repetition."""
    known = problem()
    data = simulate(known, samples=size.samples, seed=seed)
    test = simulate(known, samples=size.tests, seed=TEST_SEED + seed, noise=known.noise)
    fitted = by_likelihood(data, known, size, seed)
    some = test.isel(sample=slice(size.weighed))
    exact = importance(fitted, known, some, draws=2000, proposals=(4000, 16_000))
    told = {
        LEARNED: by_labels(data, known, size, seed, test),
        LIKELY: moments(fitted.sample(test, draws=2000, seed=seed).posterior),
        EXACT: moments(exact.posterior),
    }
    truth, right = test.parameters.values, roots(told[EXACT][1])
    rows = []
    for mean, spread in told.values():
        smallest = ellipsoid(truth[: len(mean)] - mean, spread)
        ratio = np.log(roots(spread)[: size.weighed] / right)
        beyond = size.tests - len(mean)  # of tests without an exact posterior
        error = ((truth[: len(mean)] - mean) ** 2).mean(0) / truth[: len(mean)].var(0)
        rows.append(
            xr.Dataset(
                {
                    "held": (smallest <= MIDDLE).mean(),
                    "r2": 1 - error.mean(),
                    "sd_ratio": np.exp(np.median(ratio)),
                    "sd_error": np.median(np.abs(ratio)),
                    "smallest": ("truth", np.pad(smallest, (0, beyond), constant_values=np.nan)),
                }
            )
        )
    scores = xr.concat(rows, "covariance").assign_coords(covariance=list(told))
    return xr.merge([scores, with_own_noise(size, seed)])


def by_labels(
    data: xr.Dataset, known: System, size: Size, seed: int, test: xr.Dataset
) -> tuple[np.ndarray, np.ndarray]:
    """Return means and covariances by a net that learned both, these from Laplace's at the truth.

    Six numbers stand for a covariance: L of Σ = L Lᵀ in units of the prior, ln of its diagonal.
    """
    labels = laplace(known, data, draws=size.measured, seed=seed).covariance.values
    factors = np.linalg.cholesky(labels / SPREAD[:, None] / SPREAD)[:, *LOWER]
    factors[:, DIAGONAL] = np.log(factors[:, DIAGONAL])
    targets = np.concatenate([data.parameters.values, factors], axis=1)
    names = (*NAMES, *(f"l{i}{j}" for i, j in zip(*LOWER, strict=True)))
    low, high = targets.min(0), targets.max(0)
    margin = 0.05 * (high - low)
    bounds = dict(zip(names, zip(low - margin, high + margin, strict=True), strict=True))
    pairs = dataset(targets, data.observation, names=names, bounds=bounds)
    model = Dense(size.width, depth=4)
    net = fit(model, pairs, 0.1, size.epochs, seed, noise=known.noise)
    found = net.predict(test).estimate.values
    factor = np.zeros((len(found), 3, 3))
    factor[:, *LOWER] = np.where(DIAGONAL, np.exp(found[:, 3:]), found[:, 3:])
    return found[:, :3], factor @ factor.swapaxes(1, 2) * SPREAD[:, None] * SPREAD


def by_likelihood(data: xr.Dataset, known: System | None, size: Size, seed: int) -> Fit:
    """Return a normal posterior net; without a problem, observations are noisy already."""
    embedding = Dense(size.width, depth=4)
    model = Gaussian(width=size.width // 2, embedding=embedding)
    return fit(model, data, 0.1, size.epochs, seed, noise=known.noise if known else None)


def moments(posterior: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """Return means and covariances of draws, by sample."""
    draws = posterior.transpose("sample", "draw", "parameter").values
    centred = draws - draws.mean(1, keepdims=True)
    return draws.mean(1), np.einsum("ndi,ndj->nij", centred, centred) / (draws.shape[1] - 1)


def roots(spread: np.ndarray) -> np.ndarray:
    """Return standard deviations of covariances."""
    return np.sqrt(np.einsum("npp->np", spread))


def ellipsoid(error: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Return the level of the smallest ellipsoid of each normal density that holds the truth."""
    squares = np.einsum("ni,ni->n", error, np.linalg.solve(spread, error[:, :, None])[:, :, 0])
    return chi2(error.shape[1]).cdf(squares)


@jax.jit
@jax.vmap
def path(theta, key):
    """Return V and R, seen at 41 times, of dV = c (V − V³/3 + R) dt + σ dW, by Euler–Maruyama."""
    a, b, c, sigma = theta
    step, between = 0.025, 20

    def move(state, shock):
        v, r = state
        drift = c * (v - v**3 / 3 + r), -(v - a + b * r) / c
        return (v + drift[0] * step + sigma * step**0.5 * shock, r + drift[1] * step), None

    def see(state, shocks):
        state, _ = jax.lax.scan(move, state, shocks)
        return state, jnp.stack(state)

    start = (jnp.float32(-1.0), jnp.float32(1.0))
    _, seen = jax.lax.scan(see, start, jax.random.normal(key, (40, between)))
    return jnp.concatenate([jnp.stack(start)[None], seen])


def with_own_noise(size: Size, seed: int) -> xr.Dataset:
    """Return the scores of a normal posterior net for an equation with noise of its own."""
    prior = {**problem().prior, "sigma": Uniform(0.05, 0.5)}

    def pairs(samples: int, seed: int) -> xr.Dataset:
        chosen, shaken = jax.random.split(jax.random.key(seed))
        theta = draw(prior, samples, chosen, "own noise")
        seen = path(jnp.asarray(theta, jnp.float32), jax.random.split(shaken, samples))
        return dataset(
            theta, np.asarray(seen), names=list(prior), prior=prior, time=np.arange(41) / 2
        )

    net = by_likelihood(pairs(size.samples, seed), None, size, seed)
    test = pairs(size.tests, TEST_SEED + seed)
    draws = net.sample(test, draws=500, seed=seed).posterior
    truth = test.parameters.values
    low, middle, high = draws.quantile([0.1, 0.5, 0.9], "draw").transpose(
        ..., "sample", "parameter"
    )
    error = truth - draws.mean("draw").transpose("sample", "parameter").values
    return xr.Dataset(
        {
            "own_r2": ("unknown", 1 - (error**2).mean(0) / truth.var(0)),
            "own_error": ("unknown", np.abs(truth - middle.values).mean(0)),
            "own_held": ("unknown", ((truth >= low.values) & (truth <= high.values)).mean(0)),
        },
        coords={"unknown": list(prior)},
    )


def tables(found: xr.Dataset) -> dict[str, pd.DataFrame]:
    """Return means over seeds: a row of each covariance, and of each unknown under own noise."""
    mean = found.drop_vars("smallest").mean("seed")
    own = [name for name in mean.data_vars if "unknown" in mean[name].dims]
    return {
        "covariance": mean.drop_dims("unknown").to_dataframe().reset_index(),
        "covariance_own_noise": mean[own].to_dataframe().reset_index(),
    }


def axes(scale: Scale):
    """Return a figure of one panel."""
    del scale
    return panels(1, 1, (5.5, 3.8))


STUDY = Study(
    name="covariance",
    title="The posterior's covariance from a net",
    about=(
        "FitzHugh-Nagumo's equations in Ramsay's form, three unknowns with normal priors, AR(1) "
        "noise of sd 0.2. One net learns estimates and Laplace's covariance at the truth, as the "
        "follow-up study does; another a normal posterior by its likelihood; draws of this one are "
        "weighed by the known likelihood for comparison. Then a net for the same equations with "
        "noise of their own in the voltage, whose size is a fourth unknown."
    ),
    published=(
        "Villalobos, Rudi, Mang, arXiv 2510.14197: three parameters, one to three of the noise, "
        "and the covariance, by labels of Laplace's method; figures that could be compared were "
        "not found."
    ),
    run=covariance,
    tables=tables,
    shown={
        "covariance": {
            "covariance": "covariance",
            "held": "truths in the ellipsoid of 80 %",
            "r2": "R² of its mean",
            "sd_ratio": "its sd over the right one",
            "sd_error": "typical error of ln sd",
        },
        "covariance_own_noise": {
            "unknown": "unknown",
            "own_r2": "R²",
            "own_error": "mean absolute error",
            "own_held": "truths in the interval of 80 %",
        },
    },
    axes=axes,
)
