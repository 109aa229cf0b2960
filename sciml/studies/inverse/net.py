"""The dense inverse maps that Table 4, Figure 2 and Figure 3 share."""

from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from sciml.inverse import Fit, fit
from sciml.models import Dense
from sciml.ode import fitzhugh_nagumo, simulate
from sciml.studies.store import stored_fit

if TYPE_CHECKING:
    import xarray as xr

SAMPLES = 1000  # sourced: OSTI brief, Table 4: 1,000,000 samples in 1,000 epochs
EPOCHS = 1000  # sourced: as SAMPLES
TEST_SAMPLES = 2000  # sourced: Rudi, Bessac, Lenzi, Table 1
TEST_SEED = 10_000


@lru_cache(maxsize=4)
def training_set(seed: int) -> "xr.Dataset":
    """Return the noise-free training set of one seed."""
    return simulate(fitzhugh_nagumo(), samples=SAMPLES, seed=seed)


@lru_cache(maxsize=1)
def held_out_set() -> "xr.Dataset":
    """Return the test set, of a seed that no training set has."""
    return simulate(fitzhugh_nagumo(), samples=TEST_SAMPLES, seed=TEST_SEED)


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
    return stored_fit(
        out,
        identity,
        lambda checkpoint: fit(
            model,
            training_set(seed),
            epochs=epochs,
            seed=seed,
            recipe=recipe,
            checkpoint=checkpoint,
        ),
    )
