"""What zeros in blocks cost an inverse map in error, beside as many single zeros.

FitzHugh-Nagumo without noise, dense nets of eight layers, static masks; 2000 held-out parameters.
"""

import argparse
import statistics

from sciml.inverse import fit
from sciml.models import Dense
from sciml.studies.inverse.net import clean_set, scored, test_set
from sciml.studies.inverse.plain import PlainJax
from wse._processor import processor, usable_cores
from wse.sparsity import Static

SAMPLES, BATCH = 1000, 100
BLOCKS = {0.75: (1, 8, 16, 32), 0.9: (1, 8, 16)}  # of 128 units; 32 leaves no block at 90 %


def main() -> None:
    """Train every net for every seed and print means with the smallest and largest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    print(f"{processor()}, {usable_cores()} cores")
    print("| zeros | block | R² | median squared error (10⁻⁶) |\n|---|---|---|---|")
    cases = [(0.0, 1), *((share, block) for share, blocks in BLOCKS.items() for block in blocks)]
    for share, block in cases:
        found = [score(options, share, block, seed) for seed in range(options.seeds)]
        r2, error = zip(*found, strict=True)
        print(f"| {share} | {block} | {spread(r2, '.3f')} | {spread(error, '.0f')} |", flush=True)


def score(options: argparse.Namespace, share: float, block: int, seed: int) -> tuple[float, float]:
    """Train one net; return R² and the median squared error in 10⁻⁶, means over parameters."""
    model = Dense(options.width)
    method = Static(share, seed=seed, block=block) if share else None
    net = fit(
        model,
        clean_set(SAMPLES, seed),
        epochs=options.epochs,
        seed=seed,
        recipe=model.recipe().replace(batch=BATCH, standardise=False),
        executor=PlainJax(sparsity=method),
    )
    test = test_set(None)
    scores = scored(net, test, net.predict(test)).sel(regime="all").mean("parameter")
    return float(scores.r2), 1e6 * float(scores.median_se)


def spread(values: tuple[float, ...], form: str) -> str:
    """Return the mean of seeds, and their least and greatest."""
    return f"{statistics.mean(values):{form}} ({min(values):{form}} to {max(values):{form}})"


if __name__ == "__main__":
    main()
