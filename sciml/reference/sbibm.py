"""The reference posteriors that come with the benchmark sbibm, read from its files."""

import bz2
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import xarray as xr

from sciml.ode.data.labels import dimensions
from sciml.ode.problems import catalog

# Tasks of the benchmark that the catalogue has; the benchmark stores both channels of
# Lotka-Volterra one behind the other.
TASKS = ("gaussian_linear", "lotka_volterra", "sir", "slcp", "two_moons")


def sbibm_posterior(
    task: str, observation: int = 1, *, folder: Path | str | None = None
) -> xr.Dataset:
    """Return a reference posterior of the benchmark: 10 000 draws, exact for our purposes.

    Args:
        task: one of `TASKS`.
        observation: 1 to 10.
        folder: a copy of the folder `sbibm/tasks`; default the installed package, of which only
            data files are read.

    Returns:
        `posterior (draw, parameter)`, the `observation` in the shape of our own data sets, and
        the true `parameters (parameter)` that made it.

    Raises:
        ValueError: an unknown task or observation.
        FileNotFoundError: the package is not installed and no folder is given.

    Source: Lueckmann et al., "Benchmarking Simulation-Based Inference", arXiv 2101.04653.

    >>> from sciml.reference import sbibm_posterior
    >>> known = sbibm_posterior("two_moons", observation=3)  # doctest: +SKIP
    """
    if task not in TASKS:
        raise ValueError(f"task is {task!r}; the benchmark's are {', '.join(TASKS)}")
    if observation not in range(1, 11):
        raise ValueError(f"observation is {observation}; they are numbered 1 to 10")
    files = tasks(folder) / task / "files" / f"num_observation_{observation}"
    with bz2.open(files / "reference_posterior_samples.csv.bz2", "rt") as text:
        posterior = np.loadtxt(text, delimiter=",", skiprows=1)
    problem = catalog.CATALOG[task]()
    seen = row(files / "observation.csv")
    if task == "lotka_volterra":
        seen = seen.reshape(2, -1).T
    return xr.Dataset(
        {
            "posterior": (("draw", "parameter"), posterior),
            "observation": (dimensions(problem, seen[None])[1:], seen),
            "parameters": ("parameter", row(files / "true_parameters.csv")),
        },
        coords={"parameter": list(problem.parameter_names)},
        attrs={"system": task, "reference": problem.reference, "method": "sbibm"},
    )


def tasks(folder: Path | str | None) -> Path:
    """Return the folder of tasks, given or installed."""
    if folder is not None:
        return Path(folder)
    package = find_spec("sbibm")
    if package is None or not package.submodule_search_locations:
        raise FileNotFoundError(
            "sbibm is not installed; `pip install sbibm --no-deps` brings its data files, or "
            "name a copy of its folder tasks: folder=..."
        )
    return Path(package.submodule_search_locations[0]) / "tasks"


def row(path: Path) -> np.ndarray:
    """Return the one row of numbers below the names of a file."""
    return np.loadtxt(path, delimiter=",", skiprows=1)
