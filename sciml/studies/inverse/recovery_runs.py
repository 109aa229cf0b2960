"""Trained inverse maps of FitzHugh-Nagumo, each judged on the same held-out parameters."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import xarray as xr
from scipy.stats import t

from sciml.diagnose.point.recovery import SCORES
from sciml.inverse import Fit, fit
from sciml.ode import fitzhugh_nagumo, simulate
from sciml.studies.inverse.net import clean_set, scored, test_set
from sciml.studies.store import kept
from sciml.train.recipe import Recipe

Training = Literal["fixed", "fresh", "online"]
LABELS = ("net", "noise", "training", "samples", "epochs")


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


def judged(run: Any, out: Path) -> xr.Dataset:
    """Return the scores of a run, and the seconds of training; kept in `out`.

    A run has `labels()`, `identity()`, `trained(checkpoint)` and `noise`, as `Run` has them.
    """

    def make(checkpoint: Path) -> xr.Dataset:
        net, test = run.trained(checkpoint), test_set(run.noise)
        scores = scored(net, test, net.predict(test))
        return scores.assign(train_s=float(net.history.attrs["train_s"]))

    return kept(out, run.identity(), ".nc", make)


def gathered(runs: Sequence[Any], out: Path) -> xr.Dataset:
    """Return the scores of all runs along `run`, with what each was as coordinates."""
    how: Any = {"join": "outer", "data_vars": "all", "coords": "minimal", "compat": "override"}
    scores = xr.concat([judged(run, out) for run in runs], "run", **how)
    rows = [{"seed": run.seed, **run.labels()} for run in runs]
    return scores.assign_coords({name: ("run", [row[name] for row in rows]) for name in rows[0]})


def summary(
    dataset: xr.Dataset, each: bool = False, labels: Sequence[str] = LABELS
) -> pd.DataFrame:
    """Return a row per kind of run: means over seeds with 95 % intervals.

    Each score is first averaged over the parameters, unless `each` of them gets its own row; the
    interval of its mean over n seeds is ± t(0.975, n − 1) s / √n, Student's.
    """
    scores = dataset[list(SCORES)].sel(regime="all", drop=True)
    scores = scores if each else scores.mean("parameter")
    keys = [*labels, "parameter"] if each else list(labels)
    frame = scores.assign(train_s=dataset.train_s).to_dataframe().reset_index()
    groups = frame.groupby(keys, sort=False)
    count = groups.size()
    width = t.ppf(0.975, count - 1) / count**0.5  # NaN for one seed
    columns = {"seeds": count}
    for name in SCORES:
        columns |= {name: groups[name].mean(), f"{name}_half": width * groups[name].std()}
    return pd.DataFrame({**columns, "train_s": groups["train_s"].mean()}).reset_index()


def by_parameter(dataset: xr.Dataset, labels: Sequence[str] = LABELS) -> pd.DataFrame:
    """Return a row per run, regime and parameter."""
    frame = dataset[list(SCORES)].to_dataframe().reset_index()
    return frame.loc[frame["mse"].notna(), [*labels, "seed", "regime", "parameter", *SCORES]]
