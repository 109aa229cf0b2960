"""How good the posteriors of a flow are, over the catalogue of reference problems."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sciml.diagnose import c2st, calibration
from sciml.estimator import Fit, fit
from sciml.models import SplineFlow
from sciml.ode import CATALOG, simulate
from sciml.provenance import provenance
from sciml.reference import stored
from sciml.reference.compute import NOISE
from sciml.studies.store import results_folder, run_file, stored_fit
from sciml.studies.study import Scale, Study, check_scale
from wse._files import write_aside

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

SAMPLES = {"fast": 1000, "full": 100_000}  # 10,000 leave narrow posteriors (Goodwin) overconfident
EPOCHS = {"fast": 20, "full": 60}  # after 12 posteriors are wider
TESTS = {"fast": 300, "full": 5000}
DRAWS = {"fast": 200, "full": 250}
REFERENCE_DRAWS = {"fast": 500, "full": 4000}
FAST = ("gaussian_linear", "sir")
TEST_SEED = 10_000
DEAR = ("hodgkin_huxley_stochastic",)  # whose noise is all of the simulation


def posteriors(
    scale: Scale = "fast", *, out=None, ax=None, names: Sequence[str] | None = None, seed: int = 0
) -> "xr.Dataset":
    """Fit a spline flow to each problem of the catalogue and judge its posteriors.

    Args:
        scale: "fast" (1000 simulations of two small problems, 300 tests) or "full" (100,000
            simulations of every problem, 5000 tests).
        out: the folder in which runs are kept, and from which an interrupted study goes on.
        ax: two axes to draw on; None draws nothing.
        names: of problems, if not those of the scale.
        seed: of simulations, weights and draws.

    Returns:
        By `problem`: `log_density`, the mean log q(θ | x) of unseen pairs; `worst_points`, the
        largest deviation of the coverage from its level, in points of per cent; `calibrated_p`,
        the smallest p-value of all calibration checks after Holm's correction; `contraction`;
        `c2st` against the stored reference posterior (NaN where there is none); `train_s`,
        `sample_s`.

    Raises:
        ValueError: another scale, or a problem that is not in the catalogue.
        NotADirectoryError, PermissionError: `out` cannot be written.
    """
    import xarray as xr

    check_scale(scale)
    chosen = tuple(names or (FAST if scale == "fast" else CATALOG))
    unknown = [name for name in chosen if name not in CATALOG]
    if unknown:
        raise ValueError(f"no problem {unknown[0]!r}; the catalogue has {', '.join(CATALOG)}")
    folder = results_folder(out)
    rows = [judged(name, scale, seed, folder) for name in chosen]
    dataset = xr.concat(rows, "problem").assign_coords(problem=list(chosen))
    dataset = dataset.assign_attrs(title=STUDY.title, scale=scale, seed=seed, **provenance())
    if ax is not None:
        from sciml.figure import draw_posteriors

        draw_posteriors(dataset, ax)
    return dataset


def judged(name: str, scale: Scale, seed: int, out: Path) -> "xr.Dataset":
    """Return the scores of one problem; read if the results folder has them."""
    import xarray as xr

    identity = {
        "run": f"posterior-{name}",
        "model": f"{SplineFlow()}",
        "recipe": f"{SplineFlow().recipe()}",
        "samples": SAMPLES[scale],
        "epochs": EPOCHS[scale],
        "tests": TESTS[scale],
        "seed": seed,
    }
    path = run_file(out, identity, ".nc")
    if path.exists():
        with xr.open_dataset(path, engine="h5netcdf") as kept:
            return kept.load()
    trained = stored_fit(out, identity, lambda checkpoint: learned(name, scale, seed, checkpoint))
    scores = xr.Dataset(scored(name, trained, scale))
    with write_aside(path) as aside:
        scores.to_netcdf(aside, engine="h5netcdf")
    return scores


def learned(name: str, scale: Scale, seed: int, checkpoint: Path) -> Fit:
    """Return a flow fitted to simulations, with fresh noise in each epoch unless that is dear."""
    problem = CATALOG[name]()
    noise = NOISE.get(name, problem.noise)
    once, fresh = (noise, None) if name in DEAR else (None, noise)
    data = simulate(problem, samples=SAMPLES[scale], seed=seed, noise=once)
    return fit(SplineFlow(), data, 0.1, EPOCHS[scale], seed, noise=fresh, checkpoint=checkpoint)


def scored(name: str, trained: Fit, scale: Scale) -> dict[str, float]:
    """Return the scores of a fit on unseen pairs, and against the reference posterior."""
    problem = CATALOG[name]()
    noise = NOISE.get(name, problem.noise)
    test = simulate(problem, samples=TESTS[scale], seed=TEST_SEED, noise=noise)
    test = test.isel(sample=test.valid.values)

    def draws(indices) -> Any:
        some = test.isel(sample=indices)
        return trained.sample(some, draws=DRAWS[scale], seed=int(indices[0])).posterior

    report = calibration(draws, test.parameters)
    return {
        "log_density": float(trained.log_prob(test, test.parameters).mean()),
        "worst_points": float(abs(report["coverage"].worst_points).max()),
        "calibrated_p": float(report["checks"].adjusted.min()),
        "contraction": float(report["contraction"].contraction.mean()),
        "c2st": against_reference(name, trained, scale),
        "train_s": float(trained.history.attrs["train_s"]),
    }


def against_reference(name: str, trained: Fit, scale: Scale) -> float:
    """Return the C2ST score against the stored posterior; NaN where there is none."""
    import xarray as xr

    try:
        reference = stored(name)
    except FileNotFoundError:
        return float("nan")
    observed = np.asarray(reference["observation"].values, np.float32)[None]
    dims = trained.grid.dimensions
    count = min(REFERENCE_DRAWS[scale], reference.sizes["draw"])
    own = trained.sample(xr.DataArray(observed, dims=dims), draws=count).posterior[:, 0]
    known = reference.posterior.values[:count]
    return float(c2st(np.asarray(known, np.float64), np.asarray(own.values, np.float64)).score)


def tables(dataset: "xr.Dataset") -> "dict[str, pd.DataFrame]":
    """Return a row for each problem."""
    return {"posteriors": dataset.to_dataframe().reset_index()}


def axes(scale: Scale):
    """Return a figure as tall as it has rows."""
    from sciml.figure import panels

    return panels(1, 2, (7.0, 1.4 + 0.28 * (len(FAST) if scale == "fast" else len(CATALOG))))


STUDY = Study(
    name="posteriors",
    title="Posteriors over the catalogue",
    about=(
        "A neural spline flow with its default settings, fitted to simulations with fresh noise "
        "(drawn once for the noisy neuron); a tenth of them chooses the weights. Calibration on "
        "unseen pairs, and C2ST against one reference posterior each, computed by two independent "
        "samplers."
    ),
    published=(
        "Lueckmann et al., arXiv 2101.04653: mean C2ST of NPE at 10,000 simulations over ten "
        "other observations: SIR 0.680, Lotka-Volterra 0.997, two moons 0.606, SLCP 0.901, "
        "Gaussian linear 0.552."
    ),
    run=posteriors,
    tables=tables,
    axes=axes,
)
