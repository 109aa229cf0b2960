"""How well any estimator could read the neuron's parameters under noise: R² of the posterior mean.

python benchmarks/bound.py --observations 200 --out docs/results/bound.csv

No estimate has a smaller mean squared error than the posterior mean, whose own is the mean
posterior variance. Posteriors are of `sciml.reference.importance`. Its proposals are a third of the
prior and two thirds about the truth, since a prior's own draws would not find a peak a thousandth
as wide. A mode that lies elsewhere and is as narrow is not found: R² comes out too large then.
Where few proposals are effective draws are too wide, and it comes out too small.
"""

import argparse
import csv
import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from scipy import stats
from scipy.special import logsumexp

import sciml
from sciml.provenance import machine
from sciml.reference import importance

log = logging.getLogger("bound")
LEVELS = 0.07, 0.28, 0.35
WIDTHS = 0.05, 0.005  # of proposals about the truth
PROPOSALS = 2000, 16_000  # the second where fewer than ENOUGH of the first are effective
ENOUGH = 100


@dataclass(frozen=True)
class AboutTruth:
    """Proposals of the prior, and about the truth at two widths, in equal parts."""

    truth: xr.DataArray
    prior: dict

    def sample(self, data, draws, seed):
        """Return draws of the mixture."""
        rng = np.random.default_rng(seed)
        truth = self.truth.sel(sample=data.sample).values
        free = np.stack(
            [each.icdf(rng.uniform(size=(draws, len(truth)))) for each in self.prior.values()], -1
        )
        kind = rng.integers(3, size=(draws, len(truth), 1))
        width = np.array([0.0, *WIDTHS])[kind]
        theta = np.where(kind == 0, free, truth + width * rng.normal(size=free.shape))
        return xr.Dataset(
            {"posterior": (("draw", "sample", "parameter"), theta)},
            {"parameter": list(self.prior)},
        )

    def log_prob(self, data, parameters):
        """Return the density of the mixture."""
        truth = self.truth.sel(sample=data.sample).values
        inside = [
            np.asarray(p.log_prob(np.float32(c)))
            for p, c in zip(self.prior.values(), parameters.T, strict=True)
        ]
        parts = [np.sum(inside, axis=0)]
        parts += [stats.norm.logpdf(parameters, truth, width).sum(axis=1) for width in WIDTHS]
        return xr.DataArray(np.asarray(logsumexp(parts, axis=0)) - np.log(3), dims="sample")


def bound(sd: float, observations: int, seed: int) -> dict[str, Any]:
    """Return R² of the posterior mean at one level of noise, and its standard error."""
    neuron, noise, began = sciml.ode.fitzhugh_nagumo(), sciml.ode.AR1(sd=sd), time.process_time()
    data = sciml.simulate(neuron, observations, seed=seed, noise=noise)
    data = data.assign_coords(sample=np.arange(observations))
    proposal = AboutTruth(data.parameters, dict(neuron.prior))
    found = importance(proposal, neuron, data, draws=ENOUGH, proposals=PROPOSALS, noise=noise)
    scale = np.array([float(each.variance) for each in neuron.prior.values()])
    left = found.posterior.var("draw", ddof=1).values / scale  # (sample, parameter)
    missed = np.square(found.posterior.mean("draw").values - data.parameters.values) / scale
    few = (found.efficiency * found.proposals).values < ENOUGH
    return {
        "noise": f"AR1 sd {sd}",
        "observations": observations,
        "r2": 1 - left.mean(),
        "standard_error": left.mean(axis=1).std() / np.sqrt(observations),
        "r2_of_truths": 1 - missed.mean(),
        "standard_error_of_truths": missed.mean(axis=1).std() / np.sqrt(observations),
        "median_se": float(np.median(missed * scale)),
        "few_effective": int(few.sum()),
        "processor_s": round(time.process_time() - began),
    }


def main():
    """Write one row for each level of noise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--observations", type=int, default=200)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--levels", type=float, nargs="+", default=LEVELS)
    parser.add_argument("--out", type=Path, default=Path("bound.csv"))
    chosen = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    log.info("%s", machine())
    rows = []
    for sd in chosen.levels:
        rows.append(bound(sd, chosen.observations, chosen.seed))
        log.info("%s", rows[-1])
        with chosen.out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(
                {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()}
                for row in rows
            )


if __name__ == "__main__":
    main()
