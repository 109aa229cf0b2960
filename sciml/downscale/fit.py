"""From fine fields alone to a net that refines coarse ones of any size."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float

from sciml._arguments import whole_seed
from sciml._session import as_usual
from sciml.downscale.apply import BLOCKS
from sciml.downscale.arrays import refuse_unknown
from sciml.downscale.objective import Objective, executed_objective, objective_of
from sciml.downscale.own import built
from sciml.downscale.pool import (
    Patches,
    Pool,
    alike,
    fine_of,
    is_paired,
    pooled,
    samples,
    warn_of_seen,
    with_coarse,
)
from sciml.downscale.result import Downscaling
from sciml.models.archive import described_config
from sciml.models.wind.cascade import Cascade
from sciml.models.wind.locally_scaled import LocallyScaled
from sciml.models.wind.refinement import Refinement
from sciml.provenance import provenance
from sciml.train.checkpoint import Checkpoint, digest
from sciml.train.devices import Devices, check_devices
from sciml.train.executed import Cluster, train_on
from sciml.train.loop import Validation, train
from sciml.train.parts import in_parts
from sciml.train.recipe import Recipe
from sciml.wind.prepare.channels import fit_normaliser
from sciml.wind.prepare.coarsen import crop
from sciml.wind.prepare.correction import Correction
from sciml.wind.prepare.matching import SPACING, Matched
from sciml.wind.read.covariates import KNOWN

SCORES = 20  # how often the held-out fields are scored in a training
PATIENCE = 8  # scores without a new best after which a training ends: it only overfits
HELD_SEED = 2**31 - 1  # of the draws in a score, the same at every time


@as_usual
def fit_downscaling(
    model: Refinement | Downscaling,
    fields: Any,
    validation: Any,
    executor: Cluster | None = None,
    devices: Devices = None,
    *,
    recipe: Recipe,
    epochs: int,
    patches: Patches | None = None,
    seed: int = 0,
    checkpoint: Path | str | None = None,
) -> Downscaling:
    """Train a net to undo block averaging, on the loss that it has.

    The fine fields are truth, their block means are the input; of pairs of two sources
    (`sciml.wind.matched`) the coarse model's own wind is, and `conservative` is best off, since its
    means are not those of the truth. Several grids are learned together: patches come from each as
    often as its area and its times are large. Mean and standard deviation are those of the training
    fields. `validation` (other dates or regions) chooses the epoch whose weights are kept, and ends
    the training after 8 of 20 scores that only got worse. Missing points count nowhere.

    Args:
        model: configuration of the net, or a trained net, whose weights are trained on. With
            `wind=1` components of a vector are fields of their own, with `wind=2` they turn
            together.
        fields: fine training fields (time, [channel], y, x), such as `sciml.wind.channels` gives,
            or several of them, of grids of their own; or arrays (sample, y, x); or pairs.
        validation: the same, of other weather; any size.
        executor: what executes the steps, as `wse.CS2()`; the weights are those of plain JAX but
            for rounding.
        devices: what shares each batch of patches where no executor does, as of `sciml.fit`.
        recipe: batch (in patches), step size, clipping.
        epochs: at most so many, of `patches.count` patches each.
        patches: size and number of what is cut from the fields for each epoch.
        seed: of weights and patches; the same seed gives the same numbers.
        checkpoint: a file from which an interrupted training goes on; `Downscaling.save` removes
            it.

    Raises:
        ValueError: a patch is no multiple of the factor or does not fit into the fields, channels
            are not those of the net, corrections differ, or what executor or devices refuse.

    >>> import numpy as np
    >>> from sciml import estimator, models, train
    >>> fine = np.random.default_rng(0).normal(size=(4, 16, 16)).astype("f4")
    >>> net = models.SuperResolution(factor=4, channels=4, blocks=1)
    >>> how = {"recipe": train.Recipe(2), "epochs": 2, "patches": estimator.Patches(16, 4)}
    >>> found = estimator.fit_downscaling(net, fine[1:], fine[:1], **how)
    >>> found.refine(np.zeros((1, 4, 4), "f4")).shape
    (1, 16, 16)
    """
    check_devices(executor, devices)
    patches = Patches() if patches is None else patches
    model, start = begun(model)
    correction = corrected_alike(fields, validation, model)
    grids, others = sampled(fields, validation, model)
    normaliser = fit_normaliser(*map(fine_of, grids))
    both = with_coarse(normaliser, grids[0])
    pool = pooled(grids, both, model.factor if is_paired(grids[0]) else 1)
    check_patches(patches, model, pool)
    structure, fresh = nnx.split(net := built(model, whole_seed(seed), patches.size), nnx.Param)
    params = fresh if start is None else start
    held = [crop(both.normal(np.asarray(grid.values, np.float32)), model.factor) for grid in others]
    gaps = not all(np.isfinite(values).all() for values in (pool.values, *held))
    objective = objective_of(model, structure, gaps=gaps)
    options: dict[str, Any] = {"recipe": recipe, "epochs": epochs, "seed": seed}
    options["validate"] = validation_of(objective, held, epochs)
    options["checkpoint"] = checkpoint_of(checkpoint, model, patches, start)
    data = pool.draws(patches)
    if executor is None:
        separable = net.separable and not gaps  # else the mean is over what a batch knows
        loss = by_sample(objective, params, data, recipe.batch) if separable else objective
        trained = train(loss, params, data, devices, **options)
    else:
        error = executed_objective(model, structure, gaps=gaps)
        trained = train_on(executor, error, params, data, lambda batch, _: batch, **options)
    said = {"epochs": epochs, "seed": seed, "recipe": asdict(recipe), "patches": asdict(patches)}
    said |= blocks_of(fields) | provenance()
    return Downscaling(model, normaliser, trained, said, correction=correction)


def sampled(fields: Any, validation: Any, model: Refinement) -> tuple[list[Any], list[Any]]:
    """Return training and validation fields as the net takes them, of the same channels."""
    grids = samples(fields, model)
    others = alike(samples(validation, model), grids[0])
    for grid in (*grids, *others):
        ground = [name for name in map(str, grid["channel"].values) if name in KNOWN]
        refuse_unknown(np.asarray(grid.sel(channel=ground).values), ground)
    warn_of_seen(grids, others)
    return grids, others


def begun(model: Refinement | Downscaling) -> tuple[Refinement, Any]:
    """Return the configuration, and the weights of a net that was trained before."""
    if isinstance(model, Downscaling):
        return model.model, model.trained.params
    if not isinstance(model, Refinement):
        raise TypeError(
            f"model is a {type(model).__name__}; pass the configuration of a net, as "
            "SuperResolution(factor=4), or a trained one"
        )
    return model, None


def checkpoint_of(
    path: Path | str | None, model: Refinement, patches: Patches, start: Any
) -> Checkpoint | None:
    """Return the checkpoint of a training, which is told from others by what it starts from."""
    on = None if start is None else digest(start)
    told = {"model": described_config(model), "patches": asdict(patches), "on": on}
    return Checkpoint(path, told) if path else None


def by_sample(objective: Objective, params: Any, data: Any, batch: int) -> Any:
    """Return the objective of a batch as the mean of those of its samples."""
    patch = jax.eval_shape(data.draw, jax.random.key(0), *data.source)
    return in_parts(objective, params, patch, batch)


def corrected_alike(fields: Any, validation: Any, model: Refinement) -> Correction | None:
    """Return the one correction of all pairs, if any; refuse what cannot learn of pairs."""
    parts = [part if isinstance(part, list | tuple) else [part] for part in (fields, validation)]
    if len({isinstance(part[0], Matched) for part in parts if part}) > 1:
        raise ValueError("training and validation must both be pairs of two sources, or neither")
    listed = [one for part in parts for one in part if isinstance(one, Matched)]
    if not listed:
        return None
    inner = model.net if isinstance(model, LocallyScaled) else model
    if isinstance(inner, Cascade):
        raise ValueError(
            "a Cascade makes the coarse fields of its smaller factors by averaging; train another "
            "net on pairs of two sources, as SuperResolution(conservative=False)"
        )
    if any(one.correction != listed[0].correction for one in listed):
        raise ValueError(
            "pairs have different corrections; fit one to all training pairs by fit_correction, "
            "and give it to each by corrected_by"
        )
    return listed[0].correction


def blocks_of(fields: Any) -> dict[str, Any]:
    """Return how wide the blocks of pairs are, the least and the largest, as far as they say."""
    listed = fields if isinstance(fields, list | tuple) else [fields]
    pairs = [one.coarse.attrs for one in listed if isinstance(one, Matched)]
    widths = [float(said[SPACING]) for said in pairs if SPACING in said]
    return {BLOCKS: [min(widths), max(widths)]} if widths else {}


def validation_of(objective: Objective, held: list[Any], epochs: int) -> Validation:
    """Return the mean loss over held-out fields, each point counted once."""
    points = [one[:, :1].size for one in held]

    @jax.jit
    def score(params: Any, held: list[Any]) -> Float[Array, ""]:
        key = jax.random.key(HELD_SEED)
        total = jnp.zeros(())
        for n, fields in zip(points, held, strict=True):
            losses = jax.lax.map(lambda field: objective(params, field[None], key), fields)
            total = total + n * losses.mean()
        return total / sum(points)

    every = max(1, epochs // SCORES)
    return Validation(lambda params: score(params, held), every, PATIENCE, held)


def check_patches(patches: Patches, model: Refinement, pool: Pool) -> None:
    """Refuse patches that no field can give."""
    patches.check_factor(model.factor)
    y, x = min(pool.table[:, 2:].tolist(), key=min)  # of the grid with the shortest side
    if patches.size > min(y, x):
        raise ValueError(
            f"Patches.size is {patches.size} but the fields are {y}×{x} points; a patch must fit: "
            f"pass Patches(size={min(y, x) - min(y, x) % model.factor}) or less"
        )
