"""One training of a wind net and its scores on every test set: made once, kept, gone on from."""

import logging
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from sciml.diagnose.wind.errors import rmse, skill
from sciml.diagnose.wind.scorecard import squares
from sciml.diagnose.wind.skill_interval import skill_interval
from sciml.diagnose.wind.spectra import cosine_spectrum
from sciml.diagnose.wind.subgrid import subgrid_variance_ratio
from sciml.downscale.fit import fit_downscaling
from sciml.downscale.pool import Patches, samples
from sciml.downscale.result import Downscaling
from sciml.models.archive import described_config
from sciml.studies.store import kept
from sciml.studies.wind.fields import Parts, synthetic
from sciml.train.recipe import Recipe
from sciml.wind import block_mean, conservative_bicubic, crop
from sciml.wind.read.covariates import KNOWN

log = logging.getLogger(__name__)

EPOCHS = 20  # of each training, with a validation after each


@dataclass(frozen=True)
class WindRun:
    """A training: what, on what, for how long.

    Args:
        name: what a table calls it.
        model: configuration of the net.
        updates: of the weights.
        data: the data sets whose training parts are learned from; all without names.
        share: of the times (or, of snapshots, of the rows) of each.
        pretrained: whether the net has first learned from the generator, for as many updates.
        folds: whether it is judged averaged over symmetries.
        size: of the patches, in fine points.
        batch: patches in an update.
        learning_rate: of Adam, at its highest.
        seed: of weights and patches.
        seeds: how many nets, from `seed` on, are judged by their mean.
        seen: whether it is judged also on what it was trained on, as `seen_skill`.
    """

    name: str
    model: Any
    updates: int
    data: tuple[str, ...] = ()
    share: float = 1.0
    pretrained: bool = False
    folds: bool = False
    size: int = 96
    batch: int = 16
    learning_rate: float = 2e-3
    seed: int = 0
    seeds: int = 1
    seen: bool = False

    def identity(self, source: str) -> dict[str, Any]:
        """Return everything that decides its numbers, but not how it is judged."""
        judging = ("name", "folds", "seeds", "seen", "model")
        own = {k: v for k, v in asdict(self).items() if k not in judging}
        model = described_config(self.model)
        return {"run": f"wind-{self.model.factor}x", "model": model, "source": source, **own}

    def members(self) -> list["WindRun"]:
        """Return the trainings whose nets are averaged."""
        return [replace(self, seed=self.seed + i, seeds=1) for i in range(self.seeds)]

    def trained(self, parts: Parts, out: Path) -> Downscaling:
        """Return the net: read, or trained, an interrupted training going on."""

        def make(checkpoint: Path) -> Downscaling:
            log.info("training %s, ×%d", self.name, self.model.factor)
            return self.fitted(parts, checkpoint, out)

        return kept(out, self.identity(parts.source), ".wind", make)

    def fitted(self, parts: Parts, checkpoint: Path, out: Path) -> Downscaling:
        """Train."""
        start = self.model
        if self.pretrained:
            first = replace(self, pretrained=False, data=(), share=1.0)
            start = first.trained(synthetic(128), out)
        per_epoch = max(1, self.updates // EPOCHS)
        return fit_downscaling(
            start,
            [seen(shortened(f, self.share), self.model) for f in parts.training(self.data)],
            [seen(fields, self.model) for fields in parts.validation],
            recipe=Recipe(self.batch, self.learning_rate, weight_decay=1e-4),
            epochs=EPOCHS,
            patches=Patches(self.size, per_epoch * self.batch),
            seed=self.seed,
            checkpoint=checkpoint,
        )


def shortened(fields: xr.DataArray, share: float) -> xr.DataArray:
    """Return the first share of the times of fields, or of the rows of a snapshot."""
    axis = "time" if fields.sizes["time"] > 1 else "y"
    return fields.isel({axis: slice(max(1, round(share * fields.sizes[axis])))})


def seen(fields: xr.DataArray, model: Any) -> xr.DataArray:
    """Return fields with what a net knows of the ground, or without the ground."""
    known = [name for name in fields["channel"].values if name in KNOWN]
    return fields if model.statics else fields.drop_sel(channel=known)


def judged_rows(runs: list[WindRun], parts: Parts, out: Path) -> list[dict[str, Any]]:
    """Return a row for each run and test set, reading those that were judged before."""
    return [row for run in runs for row in judged_run(run, parts, out)]


def judged_run(run: WindRun, parts: Parts, out: Path) -> list[dict[str, Any]]:
    """Return a row for each test set."""
    identity = run.identity(parts.source) | {"folds": run.folds, "name": run.name}
    identity |= {"seeds": run.seeds} if run.seeds > 1 else {}
    identity |= {"seen": True} if run.seen else {}

    def make(_: Path) -> list[dict[str, Any]]:
        net, *others = (one.trained(parts, out) for one in run.members())
        net = net.averaged(*others)
        net = net.folded() if run.folds else net
        return [judged(net, run, name, parts) for name in parts.test]

    return kept(out, identity, ".json", make)


def judged(net: Downscaling, run: WindRun, name: str, parts: Parts) -> dict[str, Any]:
    """Return the scores of a net on one test set, over both components."""
    factor, fields = run.model.factor, compared(net, parts.test[name])
    block = parts.block.get(name)
    units = {key: united(values, block) for key, values in fields.items() if values}
    sure = skill_interval(units["net"], units["truth"], units["base"], block=block or 1)
    kept = net.trained.validated[net.trained.validation.argmin()]
    row = {
        "net": run.name,
        "factor": factor,
        "data": name,
        "weights": net.weights,
        "updates": run.updates,
        "share": run.share,
        "pretrained": run.pretrained,
        "rmse_m_s": rmse(units["net"], units["truth"]),
        "baseline_rmse_m_s": rmse(units["base"], units["truth"]),
        "skill": sure.skill,
        "skill_low": sure.low,
        "skill_high": sure.high,
        **roughness("", fields["net"], fields["truth"], factor),
        "train_s": sum(one.trained.train_s for one in net.members),
        "kept_epoch": int(kept),
    }
    if run.model.probabilistic:
        row |= roughness("draw_", fields["draw"], fields["truth"], factor)
    if run.seen and name in (run.data or parts.train):
        learned = [shortened(one, run.share) for one in parts.train[name]]
        row["seen_skill"] = skill_over(compared(net, learned))
    return row


def compared(net: Downscaling, pieces: list[xr.DataArray]) -> dict[str, list[np.ndarray]]:
    """Return the truth, what the net makes of its block means, a draw, and interpolation."""
    model, factor = net.model, net.model.factor
    fields: dict[str, list[np.ndarray]] = {"truth": [], "net": [], "base": [], "draw": []}
    for piece in (seen(one, model) for one in pieces):
        there = piece.sizes["channel"] - model.statics  # components that the data have
        (shown,) = samples(piece, model)
        flat, ground = np.split(np.asarray(crop(shown.values, factor)), [model.wind], axis=1)
        known = ground[0] if model.statics else None
        coarse = np.asarray(block_mean(flat, factor))
        guesses = {"truth": flat, "net": net.refine(coarse, known)}
        guesses["base"] = np.asarray(conservative_bicubic(coarse, factor))
        if model.probabilistic:
            guesses["draw"] = net.draw(coarse, 1, known, seed=1)[:, 0]
        for key, values in guesses.items():
            fields[key].append(by_time(values, there))
    return fields


def skill_over(fields: dict[str, list[np.ndarray]]) -> float:
    """Return the MSE skill of a net over interpolation, over all pieces together."""
    keys = ("net", "truth", "base")
    return skill(*(np.concatenate([one.ravel() for one in fields[key]]) for key in keys))


def by_time(values: np.ndarray, components: int) -> np.ndarray:
    """Return (time, component, y, x) of the components that there are.

    Components that were samples of their own come one after the other in time; of vectors, those
    that the data lack are left out.
    """
    if values.shape[1] > 1:
        return values[:, np.isfinite(values).any(axis=(0, 2, 3))]
    each = values[:, 0].reshape(components, -1, *values.shape[2:])
    return np.moveaxis(each, 0, 1)


def united(pieces: list[np.ndarray], block: int | None) -> np.ndarray:
    """Return what intervals are drawn from: times of one piece, or squares of all pieces."""
    if block is not None:
        return pieces[0]
    return np.concatenate(
        [np.stack([squares(one) for one in np.moveaxis(piece, 1, 0)], axis=1) for piece in pieces]
    )


def roughness(
    prefix: str, estimate: list[np.ndarray], truth: list[np.ndarray], factor: int
) -> dict[str, float]:
    """Return what share of the variance within cells, and of the short waves, an estimate has."""
    largest = int(np.argmax([one.size for one in truth]))
    one, other = (fields[largest].reshape(-1, *fields[largest].shape[2:])
                  for fields in (estimate, truth))  # fmt: skip
    spectra = [cosine_spectrum(field, spacing_m=1.0) for field in (one, other)]
    short = spectra[0].wavelength_m < 2 * factor
    energy = [float(spectrum.energy[short].sum()) for spectrum in spectra]
    return {
        f"{prefix}subgrid_variance_ratio": subgrid_variance_ratio(one, other, factor),
        f"{prefix}short_wave_ratio": energy[0] / energy[1],
    }
