"""The dense inverse maps that Table 4, Figure 2 and Figure 3 share, and what all are judged on."""

from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from sciml.diagnose import recovery
from sciml.inverse import Fit, fit
from sciml.models import Dense
from sciml.ode import fitzhugh_nagumo, is_spiking, simulate
from sciml.studies.store import kept

SAMPLES = 1000  # sourced: OSTI brief, Table 4: 1,000,000 samples in 1,000 epochs
EPOCHS = 1000  # sourced: as SAMPLES
TEST_SAMPLES = 2000  # sourced: Rudi, Bessac, Lenzi, Table 1
TEST_SEED = 10_000  # that no training set has


@lru_cache(maxsize=8)
def clean_set(samples: int, seed: int) -> xr.Dataset:
    """Return noise-free simulations."""
    return simulate(fitzhugh_nagumo(), samples=samples, seed=seed)


@lru_cache(maxsize=8)
def test_set(noise: Any) -> xr.Dataset:
    """Return the held-out parameters, measured with the noise."""
    return simulate(fitzhugh_nagumo(), samples=TEST_SAMPLES, seed=TEST_SEED, noise=noise)


def spiking() -> np.ndarray:
    """Return which held-out neurons spike: of the neuron, not of what the noise makes of it."""
    return is_spiking(test_set(None).observation.values)


def scored(net: Fit, test: xr.Dataset, estimate: xr.Dataset) -> xr.Dataset:
    """Return the scores of estimates of the held-out parameters, by regime and parameter."""
    truth = test.parameters.values
    if len(net.grid.parameters) > truth.shape[1]:
        truth = np.concatenate([truth, test.levels.values], axis=1)
    regimes = {"spiking": spiking(), "quiescent": ~spiking()}
    return recovery(truth, estimate.estimate.values, names=net.grid.parameters, regimes=regimes)


def trained(width: int, *, epochs: int, batch: int, seed: int, out: Path) -> Fit:
    """Return a dense net of eight layers, trained on the seed's own data; kept in `out`."""
    model = Dense(width=width)
    recipe = model.recipe().replace(batch=batch, standardise=False)  # as published
    identity = {
        "run": f"dense{width}-seed{seed}",
        "system": "fitzhugh_nagumo",
        "model": asdict(model),
        "samples": SAMPLES,
        "epochs": epochs,
        "seed": seed,
        "recipe": asdict(recipe),
    }

    def make(checkpoint: Path) -> Fit:
        data = clean_set(SAMPLES, seed)
        return fit(model, data, epochs=epochs, seed=seed, recipe=recipe, checkpoint=checkpoint)

    return kept(out, identity, ".fit", make)
