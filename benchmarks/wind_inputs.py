"""What relief, temperature, pressure and wind aloft bring a net that refines wind, on AROME-Arctic.

Run: SCIML_MIRROR=… python benchmarks/wind_inputs.py --updates 600 --seeds 3
"""

import argparse
from typing import Any

import numpy as np

from sciml import wind
from sciml.diagnose import skill
from sciml.estimator import Patches, fit_downscaling
from sciml.models import LocallyScaled, SuperResolution
from sciml.train import Recipe

NAMES = ("x_wind", "y_wind")
SURFACE = ("air_temperature", "surface_air_pressure")
ALOFT = ("x_wind_100m", "y_wind_100m", "x_wind_500m", "y_wind_500m")
INPUTS = {
    "the wind alone": ((), ()),
    "temperature, pressure": ((), SURFACE),
    "wind at 100 and 500 m": ((), ALOFT),
    "relief": (("orography",), ()),
    "relief, temperature, pressure": (("orography",), SURFACE),
    "relief and all of these": (("orography",), SURFACE + ALOFT),
}
PARTS = (slice(0, 9), slice(9, 11), slice(12, 17))  # hours 0-24, 27-30, 36-48


def judged(net, test, factor):
    """Return the MSE skill over conservative bicubic, plain and folded."""
    model = net.model
    shown = np.asarray(wind.crop(test.values, factor))
    truth, ground, _ = np.split(shown, [model.wind, model.wind + model.statics], axis=1)
    coarse = np.delete(np.asarray(wind.block_mean(shown, factor)),
                       range(model.wind, model.wind + model.statics), axis=1)  # fmt: skip
    base = np.asarray(wind.conservative_bicubic(coarse[:, : model.wind], factor))
    known = ground[0] if model.statics else None
    return [skill(one.refine(coarse, known), truth, base) for one in (net, net.folded())]


def main():
    """Train each and print its skill."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--updates", type=int, default=600)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--factor", type=int, default=4)
    asked = options.parse_args()
    paths = [*wind.fetch("arome_arctic").values()]
    fields = wind.open(paths, beside=SURFACE + ALOFT)
    for name, (statics, beside) in INPUTS.items():
        train, held, test = (
            wind.channels(fields.isel(time=part), NAMES, statics, beside) for part in PARTS
        )
        net: Any = SuperResolution(asked.factor, 32, 3, wind=2,
                              statics=len(statics), beside=len(beside))  # fmt: skip
        for seed in range(asked.seeds):
            model: Any = LocallyScaled(net)
            trained = fit_downscaling(
                model, [train], [held], recipe=Recipe(16, 2e-3, weight_decay=1e-4),
                epochs=20, patches=Patches(64, asked.updates // 20 * 16), seed=seed,
            )  # fmt: skip
            plain, folded = judged(trained, test, asked.factor)
            print(f"{name}, seed {seed}: skill {plain:.3f}, folded {folded:.3f}", flush=True)


if __name__ == "__main__":
    main()
