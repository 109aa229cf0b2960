"""The reference posteriors that are stored with the package, and how to make them again."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from sciml._session import as_usual
from sciml.ode import AR1, CATALOG, TRUTHS, simulate
from sciml.ode.methods.solver import chosen_method
from sciml.reference.nuts import Chains, nuts
from sciml.reference.record import double
from sciml.reference.smc import Population, smc
from wse._files import write_aside

log = logging.getLogger(__name__)

# Where only `smc` is used, and why.
ALONE = {
    "fitzhugh_nagumo": "one sampler only: 4000 steps make gradients dear",
    "goodwin": "one sampler only: the chains need many steps",
    "hodgkin_huxley": "one sampler only: 4800 steps make gradients dear",
    "lorenz96": "one sampler only: the solution is chaotic, gradients say nothing",
}
# Dear solutions get small populations.
POPULATIONS = {
    "fitzhugh_nagumo": Population(particles=1000, moves=20, kept=0.5),
    "hodgkin_huxley": Population(particles=400, moves=8, kept=0.5),
    "lorenz96": Population(particles=300, moves=8, kept=0.5),
}
NOISE = {"fitzhugh_nagumo": AR1(sd=0.3)}  # derived: the level that fits the published errors
WITHOUT = ("hodgkin_huxley_stochastic",)  # no likelihood


@as_usual
def compute(
    name: str, *, chains: Chains | None = None, population: Population | None = None, seed: int = 0
) -> xr.Dataset:
    """Return the posterior of one observation of a problem of the catalogue.

    The observation is simulated at the catalogue's true values with the published noise. Two
    samplers that have nothing in common draw from its posterior: `nuts` and `smc`. The draws
    returned are those of `nuts` where its chains agree, else those of `smc`, since chains cannot
    weigh separate modes. The attributes `difference_of_means` (in posterior standard deviations)
    and `ratio_of_sds` are the largest disagreement of the two; `modes` says what the chains did,
    or why there are none.

    Args:
        name: of `sciml.ode.CATALOG`.
        chains: settings of `nuts`.
        population: settings of `smc`.
        seed: of observation and draws.

    Returns:
        `posterior (draw, parameter)`, `observation`, the true `parameters (parameter)`; where
        `nuts` was used `r_hat` and `ess`.

    Raises:
        ValueError: the name is not in the catalogue, or the problem has no likelihood.

    >>> from sciml.reference import Population, compute
    >>> found = compute("sir", population=Population(particles=500))  # doctest: +SKIP
    >>> found.attrs["modes"], found.attrs["difference_of_means"]  # doctest: +SKIP
    """
    check_name(name)
    problem = CATALOG[name]()
    noise = NOISE.get(name, problem.noise)
    theta = np.array([TRUTHS[name]])
    observed = simulate(problem, parameters=theta, seed=seed, noise=noise)
    seen: Any = observed.observation.values[0]
    method = chosen_method(problem) if name in ALONE else double(chosen_method(problem))
    options = {"noise": noise, "method": method, "seed": seed}
    best = smc(problem, seen, settings=population or POPULATIONS.get(name), **options)
    log.info("%s: %d temperatures", name, best.attrs["temperatures"])
    if name in ALONE:
        best = best.assign_attrs(modes=ALONE[name])
    else:
        best = compared(nuts(problem, seen, settings=chains, **options), best)
    command = f"sciml reference {name} --seed {seed}"
    return best.assign(parameters=("parameter", theta[0])).assign_attrs(command=command)


def check_name(name: str) -> None:
    """Refuse a name that the catalogue does not have, or whose problem has no likelihood."""
    if name not in CATALOG:
        raise ValueError(f"name is {name!r}; the catalogue has {', '.join(CATALOG)}")
    if name in WITHOUT:
        raise ValueError(f"{name} has no likelihood, so no reference posterior; choose another")


def compared(found: xr.Dataset, other: xr.Dataset) -> xr.Dataset:
    """Return the draws to trust, with the disagreement of the two samplers."""
    sd = other.posterior.std("draw")
    means = np.abs(found.posterior.mean("draw") - other.posterior.mean("draw")) / sd
    ratios = np.abs(np.log(found.posterior.std("draw") / sd))
    notes = {
        "difference_of_means": float(means.max()),
        "ratio_of_sds": float(np.exp(ratios.max())),
        "log_evidence": other.attrs["log_evidence"],
        "modes": found.attrs["modes"],
        "divergences": found.attrs["divergences"],
    }
    agree = found.attrs["modes"].startswith("the chains agree: ")
    log.info("%s", notes)
    return (found if agree else other).assign_attrs(notes)


def write(data: xr.Dataset, folder: Path | str) -> Path:
    """Write a reference as `NAME.nc`: draws in steps of about sd/1000, compressed."""
    path = Path(folder) / f"{data.attrs['system']}.nc"
    step = 2.0 ** np.floor(np.log2(data.posterior.std("draw") / 1000))
    rounded = (np.round(data.posterior / step) * step).astype("float32")  # zeros at the end pack
    small = data.assign(posterior=rounded)
    encoding = {name: {"zlib": True, "complevel": 9, "shuffle": True} for name in data.data_vars}
    with write_aside(path) as aside:
        small.to_netcdf(aside, engine="h5netcdf", encoding=encoding)
    return path


def stored(name: str) -> xr.Dataset:
    """Return the reference posterior that comes with the package.

    Raises:
        FileNotFoundError: there is none of this name.

    >>> stored('sir').posterior.sizes['draw']
    2000
    """
    beside = Path(__file__).parents[1] / "datasets" / "reference"
    folder = beside if beside.is_dir() else Path(__file__).parents[2] / "datasets" / "reference"
    path = folder / f"{name}.nc"
    if not path.exists():
        there = ", ".join(sorted(p.stem for p in folder.glob("*.nc"))) or "none"
        raise FileNotFoundError(f"no reference posterior of {name!r} is stored; there are: {there}")
    with xr.open_dataset(path, engine="h5netcdf") as data:
        return data.load()
