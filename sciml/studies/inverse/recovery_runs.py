"""Trained inverse maps of FitzHugh-Nagumo, each judged on the same held-out parameters."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sciml.diagnose import recovery
from sciml.inverse import Fit, fit
from sciml.ode import fitzhugh_nagumo, is_spiking, simulate
from sciml.studies.inverse.net import TEST_SAMPLES, TEST_SEED
from sciml.studies.store import run_file
from sciml.train.recipe import Recipe
from wse._files import write_aside

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

Training = Literal["fixed", "fresh", "online"]
LABELS = ("net", "noise", "training", "samples", "epochs")
SCORES = ("r2", "mse", "mae", "median_se", "p90_se")


@dataclass(frozen=True)
class Run:
    """One training: which net, under which noise, on how many samples.

    `training` says whether the noise of a sample is drawn once ("fixed"), anew at every epoch
    ("fresh"), or whether even the simulations are new at every epoch ("online").
    """

    net: str
    model: Any
    noise: Any = None
    training: Training = "fresh"
    samples: int = 1000
    epochs: int = 300
    seed: int = 0

    def labels(self) -> dict[str, Any]:
        """Return what tells this run from others, but for its seed."""
        return {
            "net": self.net,
            "noise": noise_label(self.noise),
            "training": self.training,
            "samples": self.samples,
            "epochs": self.epochs,
        }

    def identity(self) -> dict[str, Any]:
        """Return everything that decides its numbers."""
        identity = {"run": f"{self.net}-seed{self.seed}", "model": f"{self.model}", **self.labels()}
        described = self.noise and self.noise.describe()
        return identity | {"recipe": f"{self.recipe}", "noise": described}

    @property
    def recipe(self) -> Recipe:
        """How it is trained: by the model's recipe, on inputs as they are, as published."""
        return self.model.recipe().replace(standardise=False)

    def trained(self, checkpoint: Path) -> Fit:
        """Train; an interrupted training goes on from the checkpoint."""
        system = fitzhugh_nagumo()
        if self.training == "fixed" and self.noise is not None:
            data = simulate(system, samples=self.samples, seed=self.seed, noise=self.noise)
        else:
            data = clean_set(self.samples, self.seed)
        return fit(
            self.model,
            system if self.training == "online" else data,
            epochs=self.epochs,
            seed=self.seed,
            noise=None if self.training == "fixed" else self.noise,
            recipe=self.recipe,
            checkpoint=checkpoint,
            online=self.training == "online",
        )


def noise_label(noise: Any) -> str:
    """Return the noise's name and level; sampled levels by their range."""
    if noise is None:
        return "none"
    described = noise.describe()
    sd = described["sd"]
    return f"{described['kind']} sd {sd:g}" if isinstance(sd, float) else f"{described['kind']}"


@lru_cache(maxsize=8)
def clean_set(samples: int, seed: int) -> "xr.Dataset":
    """Return noise-free simulations."""
    return simulate(fitzhugh_nagumo(), samples=samples, seed=seed)


@lru_cache(maxsize=8)
def test_set(noise: Any) -> "xr.Dataset":
    """Return the held-out parameters, measured with the noise."""
    return simulate(fitzhugh_nagumo(), samples=TEST_SAMPLES, seed=TEST_SEED, noise=noise)


def judged(run: Any, out: Path) -> "xr.Dataset":
    """Return the scores of a run; read if the results folder has them, else made and kept.

    A run has `labels()`, `identity()`, `trained(checkpoint)` and `noise`, as `Run` has them.
    """
    import xarray as xr

    path = run_file(out, run.identity(), ".nc")
    if path.exists():
        with xr.open_dataset(path, engine="h5netcdf") as stored:
            return stored.load()
    scores = scored(run, path.with_suffix(".checkpoint"))
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_aside(path) as aside:
        scores.to_netcdf(aside, engine="h5netcdf")
    path.with_suffix(".checkpoint").unlink(missing_ok=True)  # the result is on disk
    return scores


def scored(run: Any, checkpoint: Path) -> "xr.Dataset":
    """Train and judge; scores by regime and parameter, and the seconds of training."""
    trained = run.trained(checkpoint)
    test = test_set(run.noise)
    truth = test.parameters.values
    if len(trained.grid.parameters) > truth.shape[1]:
        truth = np.concatenate([truth, test.levels.values], axis=1)
    # The regime is that of the neuron, not of what the noise makes of it.
    spiking = is_spiking(test_set(None).observation.values)
    scores = recovery(
        truth,
        trained.predict(test).estimate.values,
        names=trained.grid.parameters,
        regimes={"spiking": spiking, "quiescent": ~spiking},
    )
    return scores.assign(train_s=float(trained.history.attrs["train_s"]))


def gathered(runs: Sequence[Any], out: Path) -> "xr.Dataset":
    """Return the scores of all runs along `run`, with what each was as coordinates."""
    import xarray as xr

    scores = xr.concat(
        [judged(run, out) for run in runs],
        dim="run",
        join="outer",
        data_vars="all",
        coords="minimal",
        compat="override",
    )
    labels: dict[str, Any] = {
        name: ("run", [run.labels()[name] for run in runs]) for name in runs[0].labels()
    }
    return scores.assign_coords({"seed": ("run", [run.seed for run in runs]), **labels})


def summary(
    dataset: "xr.Dataset", each: bool = False, labels: Sequence[str] = LABELS
) -> "pd.DataFrame":
    """Return a row per kind of run: means over seeds with 95 % intervals.

    Each score is first averaged over the parameters, unless `each` of them gets its own row; the
    interval of its mean over n seeds is
    ± t(0.975, n − 1) s / √n, Student's, and missing for one seed.
    """
    import pandas as pd
    from scipy.stats import t

    scores = dataset[list(SCORES)].sel(regime="all", drop=True)
    scores = scores if each else scores.mean("parameter")
    keys = [*labels, "parameter"] if each else list(labels)
    frame = scores.assign(train_s=dataset.train_s).to_dataframe().reset_index()
    rows = []
    for found, group in frame.groupby(keys, sort=False):
        assert isinstance(found, tuple)
        count = len(group)
        row: dict[str, Any] = {**dict(zip(keys, found, strict=True)), "seeds": count}
        for name in SCORES:
            row[name] = group[name].mean()
            half: Any = t.ppf(0.975, count - 1) * group[name].std() / count**0.5
            row[f"{name}_half"] = half if count > 1 else np.nan
        rows.append({**row, "train_s": group["train_s"].mean()})
    return pd.DataFrame(rows)


def by_parameter(dataset: "xr.Dataset", labels: Sequence[str] = LABELS) -> "pd.DataFrame":
    """Return a row per run, regime and parameter."""
    frame = dataset[list(SCORES)].to_dataframe().reset_index()
    return frame.loc[frame["mse"].notna(), [*labels, "seed", "regime", "parameter", *SCORES]]
