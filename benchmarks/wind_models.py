"""What each net for wind reaches on synthetic turbulence, in equal numbers of updates.

`python benchmarks/wind_models.py --updates 1500 --models Generative Density` prints a row for each:
skill and MAE of the estimate, and of nets that draw the fair CRPS of 16 draws, what part of the
truth's variance the draws have in the two octaves below the coarse grid, and their rank histogram.
"""

import argparse
from typing import Any

import jax.numpy as jnp
import numpy as np

from sciml.diagnose.wind.ensemble import crps, rank_histogram
from sciml.diagnose.wind.errors import mae, skill
from sciml.diagnose.wind.spectra import cosine_spectrum
from sciml.estimator import Patches, fit_downscaling
from sciml.models import REFINEMENTS
from sciml.train import Recipe
from sciml.wind import block_mean, conservative_bicubic, generate

FACTOR, DRAWS, SPACING_M = 4, 16, 3000.0
TRAIN, HELD, TEST = range(1, 7), (50,), (100, 101)  # seeds: independent runs
BATCH, UPDATES_PER_EPOCH = 16, 50


def winds(seeds, snapshots: int) -> np.ndarray:
    """Return wind speeds of independent runs."""
    return np.concatenate([generate(seed, snapshots).wind_speed.values for seed in seeds])


def octaves(estimate: np.ndarray, truth: np.ndarray) -> list[float]:
    """Return the ratio of variance in the octaves below two coarse cells and below one."""
    found, true = (cosine_spectrum(f, spacing_m=SPACING_M) for f in (estimate, truth))
    cell = FACTOR * SPACING_M
    bands = [(cell < true.wavelength_m) & (true.wavelength_m <= 2 * cell)]
    bands.append((cell / 2 < true.wavelength_m) & (true.wavelength_m <= cell))
    return [float(found.energy[band].sum() / true.energy[band].sum()) for band in bands]


def row(name: str, updates: int, data: tuple[np.ndarray, ...]) -> str:
    """Train one net and return its scores as text."""
    train, held, test = data
    kind: Any = REFINEMENTS[name]
    model = kind(factor=FACTOR)
    net = fit_downscaling(
        model,
        train,
        held,
        recipe=Recipe(batch=BATCH),
        epochs=max(1, updates // UPDATES_PER_EPOCH),
        patches=Patches(64, BATCH * UPDATES_PER_EPOCH),
    )
    coarse = np.asarray(block_mean(jnp.asarray(test), FACTOR))
    plain = np.asarray(conservative_bicubic(jnp.asarray(coarse), FACTOR))
    estimate = net.refine(coarse)
    text = (
        f"{name:16} {net.weights:>8} weights {net.trained.train_s:5.0f} s  skill "
        f"{skill(estimate, test, plain):.3f}  MAE {mae(estimate, test):.3f} "
        f"(interpolation {mae(plain, test):.3f}) m/s  octaves "
        + " ".join(f"{ratio:.2f}" for ratio in octaves(estimate, test))
    )
    if model.probabilistic:
        draws = np.moveaxis(net.draw(coarse, DRAWS), 1, 0)
        ranks = rank_histogram(draws, test)
        text += (
            f"\n{'':16} draws: CRPS {crps(draws, test, fair=True):.3f} m/s  octaves "
            + " ".join(
                f"{ratio:.2f}" for ratio in octaves(draws.reshape(-1, *test.shape[1:]), test)
            )
            + "  ranks "
            + " ".join(f"{count:.2f}" for count in ranks / ranks.mean())
        )
    return text


def main() -> None:
    """Train and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    drawn = [name for name in REFINEMENTS if name != "LocallyScaled"]
    parser.add_argument("--models", nargs="+", choices=drawn, default=drawn)
    parser.add_argument("--updates", type=int, default=1500)
    options = parser.parse_args()
    data = winds(TRAIN, 8), winds(HELD, 2), winds(TEST, 4)
    for name in options.models:
        print(row(name, options.updates, data), flush=True)


if __name__ == "__main__":
    main()
