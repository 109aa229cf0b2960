"""The main path of both packages, for an environment that nothing pins: warnings are errors.

    python -W error .ci/smoke.py

Every module is imported, a system simulated, a net trained, kept and read, wind generated and
refined, a machine estimated and a model checked. Exit code 1 with a traceback where one fails.
"""

import importlib
import pkgutil
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

import sciml
import wse
from sciml import downscale, wind
from sciml.downscale.pool import Patches
from sciml.inverse.alarms.collapse import CollapseWarning

OPTIONAL = ("eccodes", "libsbml", "ipywidgets", "arviz", "arviz_plots", "xskillscore")


def modules() -> int:
    """Import every module; return how many there are."""
    count = 0
    for package in (sciml, wse):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if found.name.endswith("__main__"):
                continue
            try:
                importlib.import_module(found.name)
            except ImportError as error:
                if error.name not in OPTIONAL:
                    raise
            count += 1
    return count


def inverse_map(folder: Path) -> None:
    """Simulate, train, keep, read, predict, draw."""
    neuron = sciml.ode.fitzhugh_nagumo()
    data = sciml.simulate(neuron, samples=64, seed=0)
    noise = sciml.ode.AR1(sd=0.07)
    with warnings.catch_warnings():  # so short a training learns nothing, as it says
        warnings.simplefilter("ignore", CollapseWarning)
        recipe = sciml.train.Recipe(batch=32)
        fit = sciml.fit(
            sciml.models.Dense(width=8, depth=2), data, epochs=2, noise=noise, recipe=recipe
        )
    again = sciml.load(fit.save(folder / "run.fit"))
    np.testing.assert_array_equal(again.predict(data).estimate, fit.predict(data).estimate)
    flow = sciml.fit(sciml.models.SplineFlow(), data, epochs=1, recipe=recipe)
    assert np.isfinite(flow.sample(data.isel(sample=[0]), draws=3).posterior.values).all()


def downscaling(folder: Path) -> None:
    """Train on generated wind, keep, read, refine."""
    fields = wind.conform(wind.gaussian(seed=0, snapshots=4, n=32), "generated")
    channels = wind.channels(fields, ("x_wind", "y_wind"))
    model = sciml.models.SuperResolution(2, 4, 1, wind=2)
    recipe = sciml.train.Recipe(batch=2)
    patches = Patches(size=16, count=4)
    net = downscale.fit_downscaling(
        model, channels[1:], channels[:1], recipe=recipe, epochs=1, patches=patches
    )
    again = downscale.load_downscaling(net.save(folder / "net.wind"))
    assert again.predict(fields).x_wind.shape == (4, 64, 64)


def machine() -> None:
    """Estimate a model by name and a loss, and check which operations would port."""
    work = wse.workload.dense(inputs=100, width=64, depth=8, outputs=2)
    assert wse.estimate(work, machine=wse.CS2(), samples=1000).total_s > 0
    params = {"a": np.ones((6, 8), np.float32)}
    batch = np.ones((12, 6), np.float32)

    def squares(p, x):
        import jax.numpy as jnp

        return jnp.mean(jnp.tanh(x @ p["a"]) ** 2)

    assert wse.check(squares, params, batch).verdict
    value, _ = wse.CS2(systems=1).executor(squares, params, batch).value_and_grad(params, batch)
    assert float(value) > 0


def main() -> None:
    """Run all of it."""
    count, python = modules(), sys.version.split()[0]
    with tempfile.TemporaryDirectory() as name:
        inverse_map(Path(name))
        downscaling(Path(name))
    machine()
    sys.stdout.write(f"{count} modules and the main path: good on Python {python}\n")


if __name__ == "__main__":
    main()
