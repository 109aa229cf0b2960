"""Which weights are kept, and whether the later ones had learned the training by heart."""

import logging
from functools import partial
from typing import Any

import jax
import numpy as np
import xarray as xr

from sciml._numbers import short
from sciml.inverse.beyond_memory.windows import Windows, windows_of
from sciml.inverse.borders import (
    SHAPES,
    check_dimensions,
    is_measured,
    targets_of,
    valid_samples,
    variable,
)
from sciml.inverse.loss import PreparedLoss
from sciml.inverse.measured import Measurement
from sciml.inverse.setup import Setup, accepts_missing
from sciml.train.loop import Trained, Validation
from sciml.train.repeated import warn_of_repeated

log = logging.getLogger(__name__)

HEART = 0.5  # assumed: share of what was gained on held-out samples that is lost again
HELD_SEED = 2**31 - 1  # of the noise on validation sets: no training draws from it


def split_off(data: Any, validation: Any, seed: int) -> tuple[Any, Any]:
    """Return the training and the validation set; a number is the share of `data` to hold out."""
    if validation is None or isinstance(validation, xr.Dataset):
        if validation is not None and isinstance(windows_of(validation), Windows):
            raise ValueError(
                f"the validation set has {validation.sizes['sample']:,} samples on disk, more than "
                "fit into memory: pass fewer, as validation.isel(sample=slice(10_000))"
            )
        return data, validation
    if not isinstance(validation, int | float | np.number):
        raise TypeError(
            f"validation is {short(validation)}; it must be a Dataset, or the share of data to "
            "hold out: pass 0.1"
        )
    if isinstance(data, Windows):
        return data.held_out(float(validation), seed)
    check_dimensions(variable(data, "observation"), *SHAPES)
    total = data.sizes["sample"]
    if total < 2:
        raise ValueError(f"the data set has {total} samples; it needs 2 to hold some out")
    held = round(validation * total)
    if not 0 < validation < 1 or not 0 < held < total:
        raise ValueError(
            f"validation is {validation}, which holds out {held} of {total} samples; "
            "it must be a share within (0, 1) that leaves samples on both sides, as "
            f"{0.1 if total > 5 else 0.5}"
        )
    order = np.random.default_rng(seed).permutation(total)
    return data.isel(sample=np.sort(order[held:])), data.isel(sample=np.sort(order[:held]))


def validation_score(
    loss: PreparedLoss, setup: Setup, validation, epochs: int
) -> Validation | None:
    """Return the score on a validation set, if any: measured once, unless simulated with noise."""
    if validation is None:
        return None
    data, x = valid_samples(validation, accepts_missing(loss.model))
    measured = is_measured(data)
    shown = setup.measurement.shown
    measurement = Measurement(None, shown) if measured else setup.measurement
    if measurement.noise is None:
        setup.grid.check(data["observation"])
    known = setup.grid.known(data["observation"])
    theta, told = targets_of(data, levels=measured)
    wanted = setup.grid.parameters
    if sorted(told) == sorted(own := wanted[: len(told)]):
        theta, told = theta[:, [told.index(name) for name in own]], own
    found = (*told, *measurement.targets)
    if found != wanted:
        raise ValueError(
            f"the validation set tells of {', '.join(found)}; the net is to learn "
            f"{', '.join(wanted)}: simulate both alike, or hold out a share, as validation=0.1"
        )
    whole = (x, theta, known) if shown else (x, theta)
    held = setup.prepared(*measurement.once(whole, seed=HELD_SEED))
    every = max(1, epochs // 100)
    return Validation(lambda params: scored(loss, params, held), every, held=whole)


@partial(jax.jit, static_argnums=0)
def scored(loss: PreparedLoss, params, held):
    """Return the loss of a whole set, by a key of its own."""
    return loss(params, held, jax.random.key(HELD_SEED))


def warn_of_leak(trained: tuple[np.ndarray, ...], held: tuple[np.ndarray, ...]) -> None:
    """Say that simulations are held out which are trained on too, as of a table read twice."""
    remedy = "pass other simulations, or of a table that holds runs twice each run once"
    pairs = (zip(*part[:2], strict=True) for part in (trained, held))
    warn_of_repeated(*pairs, what="simulations", remedy=remedy)


def warn_of_heart(found: Trained) -> None:
    """Say that a net went on to learn its training by heart, and what helps.

    The score on held-out samples fell from the loss of the first epoch to its least, and then lost
    half of that again. Where it never fell below that of the first epoch, what the loss of the
    training fell by stands for it.
    """
    held, first = found.validation, float(found.loss[0])
    gained = first - float(held.min()) if len(held) else 0.0
    gained = gained if gained > 0 else max(first - float(found.loss[-1]), 0.0)
    if len(held) < 2 or not float(held[-1] - held.min()) > HEART * gained:
        return
    log.warning(
        "the net learned its training by heart: on held-out samples the loss is best after epoch "
        "%d of %d, %.3g, whose weights are kept, and %.3g at the end; take more simulations, an "
        "embedding as sciml.models.Convolutional() of a series, or weight_decay= of the Recipe",
        *(found.validated[held.argmin()], len(found.loss), held.min(), held[-1]),
    )
