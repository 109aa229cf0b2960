"""Hours between by a net and by linear interpolation, on HRRR over Idaho and on AROME-MetCoOp.

Run: SCIML_MIRROR=… python benchmarks/wind_hours.py --updates 1000 --seeds 1
"""

import argparse

import numpy as np

from sciml import wind
from sciml.diagnose import rmse
from sciml.estimator import Patches, fit_between
from sciml.models import Between
from sciml.train import Recipe

NAMES = ("x_wind", "y_wind")


def judged(net, fields):
    """Return the RMSE of a net and of linear interpolation, over all hours between, in m/s."""
    steps, values = net.model.steps, fields.values
    count = len(values) - steps
    ends = np.stack([values[:count], values[steps:]], axis=1)
    shares = [k / steps for k in range(1, steps)]
    linear = np.stack([(1 - s) * ends[:, 0] + s * ends[:, 1] for s in shares], axis=1)
    truth = np.stack([values[k : count + k] for k in range(1, steps)], axis=1)
    return rmse(net.between(ends), truth), rmse(linear, truth)


def main():
    """Train on both, print both."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--updates", type=int, default=1000)
    options.add_argument("--seeds", type=int, default=1)
    asked = options.parse_args()
    idaho = wind.channels(wind.open([*wind.fetch("hrrr_idaho").values()]), NAMES)
    norway = {n: wind.channels(wind.open(p), NAMES) for n, p in wind.fetch("metcoop").items()}
    tests = {"HRRR Idaho": idaho[29:], "MetCoOp, November": norway["test"][29:]}
    for seed in range(asked.seeds):
        net = fit_between(
            Between(), [idaho[:24], norway["train"]], [norway["test"][:20]],
            recipe=Recipe(16, 1e-3, weight_decay=1e-4), epochs=20,
            patches=Patches(40, asked.updates // 20 * 16), seed=seed,
        )  # fmt: skip
        for name, fields in tests.items():
            found, linear = judged(net, fields)
            print(f"{name}, seed {seed}: net {found:.3f}, linear {linear:.3f} m/s", flush=True)


if __name__ == "__main__":
    main()
