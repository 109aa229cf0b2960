"""Files of every format that users keep, as the tree before the move of the modules wrote them.

Run once, at commit 1551785, and kept as the record of how the files beside it were made:

    PYTHONPATH=. python write.py FOLDER/written_before_the_move

It interrupts trainings and simulations by names that only that commit has, so it is not to be run
again: files of another commit would say nothing about what that one wrote. What the tests need to
go on with what was interrupted, they take from here; that part uses public names alone.
"""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from numpyro.distributions import Uniform

import sciml
import wse
from sciml.estimator import Patches, fit_downscaling
from sciml.models import (
    SRCNN,
    Attention,
    Cascade,
    Convolutional,
    Dense,
    Density,
    Ensemble,
    FlowMatching,
    FlowRefinement,
    Gaussian,
    Generative,
    LocallyScaled,
    SplineFlow,
    SuperResolution,
    UNet,
)
from sciml.train import Recipe
from wse.job import Job, evaluate, infer, read, train

PARAMS = """
train_input: {{data_dir: {folder}/train.npz, batch_size: 4}}
eval_input: {{data_dir: {folder}/train.npz, batch_size: 4}}
model: {{hidden_sizes: [3], activation_fn: swish}}
optimizer: {{optimizer_type: Adam, learning_rate: 0.05, max_gradient_norm: 1.0}}
runconfig: {{max_steps: 6, checkpoint_steps: 2, num_csx: 2, model_dir: {folder}/model}}
sparsity: {{type: static, sparsity: 0.5}}
"""
# A few updates move every weight; inputs are as they were then.
FAST = Recipe(batch=4, learning_rate=0.03, standardise=False)
STORED = {"samples": 300, "seed": 7, "method": sciml.ode.RungeKutta4(chunk=100)}


def oscillator() -> Any:
    """An equation of the catalogue, seen at few times."""
    seen = sciml.ode.Observation.regular(states=(0,), interval=1.0, length=6)
    return replace(sciml.ode.van_der_pol(), observation=seen)


def noise() -> Any:
    """A noise whose level is drawn, and estimated with the parameter."""
    return sciml.ode.Gaussian(sd=Uniform(0.05, 0.2), estimate=True)


def own_data(samples: int, *shape: int, gaps: bool = False) -> xr.Dataset:
    """Observations that a user brings along: eighths, which no processor rounds."""
    seen = np.random.default_rng(0).integers(-8, 8, (samples, *shape)) / np.float32(8)
    theta = seen.reshape(samples, -1)[:, :2].astype("f8")
    if gaps:
        seen[1::3, 1] = np.nan
    names = ("sample", "time", "channel")[: seen.ndim]
    return xr.Dataset(
        {
            "observation": (names, seen),
            "parameters": (("sample", "parameter"), theta),
        },
        coords={"time": ("time", np.arange(shape[0]) / 2, {"units": "h"}), "parameter": ["a", "b"]},
        attrs={"support": '{"a": [-2, 2], "b": [null, null]}'},
    )


def fits(stored: xr.Dataset) -> dict[str, tuple[Any, xr.Dataset, dict[str, Any]]]:
    """Net, data and options of every kind of fit."""
    few = stored.isel(sample=slice(20))
    embedding = Attention(width=4, depth=1, heads=2, tokens=3, missing=True)
    half = FAST.replace(precision="bfloat16", weight_decay=0.1)
    blurred = sciml.ode.AR1(sd=Uniform(0.1, 0.2), correlation=0.5, estimate=True)
    return {
        "dense": (Dense(4, 2), stored, {"validation": few}),
        "ensemble": (Ensemble(Dense(4, 1), size=2), few, {"recipe": half}),
        "spline_flow": (SplineFlow(4, 1, layers=1, bins=3, embedding=Dense(4, 1)), few, {}),
        "flow_matching": (FlowMatching(4, 1, steps=2), few, {"validation": 0.5}),
        "gaussian": (
            Gaussian(4, 1, embedding=embedding),
            own_data(12, 6, 2, gaps=True),
            {"noise": blurred},
        ),
        "convolutional": (Convolutional(filters=1, units=4), own_data(8, 60), {}),
    }


def vectors(times: int) -> xr.DataArray:
    """Both components of a wind, and terrain."""
    values = np.random.default_rng(1).integers(-8, 8, (times, 3, 16, 16))
    values[:, 2] = values[0, 2]
    names = ["x_wind", "y_wind", "orography"]
    dims = ("time", "channel", "y", "x")
    return xr.DataArray(values.astype("f4"), dims=dims, coords={"channel": names})


def speeds(times: int) -> np.ndarray:
    """Fields whose mean is 0 and whose mean square is 4: normalising them rounds nothing."""
    signs = np.random.default_rng(2).permutation(np.tile([-2.0, 2.0], times * 128))
    return signs.reshape(times, 16, 16).astype("f4")


def refinements() -> dict[str, tuple[Any, Any]]:
    """Nets for wind and what they are trained on."""
    small: Any = {"factor": 2, "channels": 2, "blocks": 1}
    return {
        "super_resolution": (SuperResolution(**small, wind=2, statics=1), vectors(3)),
        "srcnn": (SRCNN(factor=2, channels=1, narrow=1), speeds(3)),
        "unet": (UNet(**small), speeds(3)),
        "locally_scaled_cascade": (
            LocallyScaled(Cascade(factor=4, channels=2, blocks=1), window=3),
            speeds(3),
        ),
        "density": (Density(**small), speeds(3)),
        "generative": (Generative(**small), speeds(3)),
        "flow_refinement": (FlowRefinement(**small, steps=1, spread=0.5), speeds(3)),
    }


WIND: dict[str, Any] = {"recipe": Recipe(2, 0.03), "epochs": 3, "patches": Patches(8, 4)}
SEEN = slice(150, 250)  # of the simulations: half of them written, half to be simulated
LABELLED = ("observation", "parameters", "levels", "valid")
COARSE = np.random.default_rng(3).integers(-8, 8, (2, 4, 4)).astype("f4")
DRAWS = 512  # as many as `predict` takes, so that one program serves both


def refined(net: Any) -> np.ndarray:
    """What a net for wind makes of fields that it has not seen."""
    if net.model.probabilistic:
        return net.draw(COARSE, 2, seed=5)
    if net.model.statics:
        ground = vectors(1).values[0, 2:, :8, :8]
        return net.refine(np.stack([COARSE, -COARSE], axis=1), ground)
    return net.refine(COARSE)


def predicted(fit: Any, data: xr.Dataset) -> dict[str, np.ndarray]:
    """What a fit says of the first observations."""
    seen = data.isel(sample=slice(3))
    said = fit.predict(seen)
    found = {str(name): said[name].values for name in said.data_vars}
    if fit.model.targets == "unconstrained":
        theta = np.full((3, len(fit.grid.parameters)), 0.12)
        found["posterior"] = fit.sample(seen, draws=DRAWS, seed=1).posterior.values[:4]
        found["log_prob"] = fit.log_prob(seen, theta).values
    return found


def weights(params: Any) -> np.ndarray:
    """All numbers of a tree in one row."""
    return np.concatenate([np.ravel(leaf).astype("f4") for leaf in jax.tree.leaves(params)])


def interrupted_fit(checkpoint: Path | None, machine: Any = None) -> Any:
    """The fit that is interrupted, or goes on: on plain JAX, or on a machine."""
    data, held = own_data(12, 6), own_data(4, 6)
    options: Any = {"noise": sciml.ode.Gaussian(0.1), "recipe": FAST}
    return sciml.fit(
        Dense(4, 2), data, held, 4, 3, **options, checkpoint=checkpoint, executor=machine
    )


def interrupted_downscaling(checkpoint: Path | None) -> Any:
    """The training on wind that is interrupted, or goes on."""
    model = SuperResolution(factor=2, channels=2, blocks=1)
    return fit_downscaling(model, speeds(3), speeds(1), **WIND, checkpoint=checkpoint)


def loss(params: Any, batch: Any) -> Any:
    """A training function of two layers."""
    hidden = jnp.tanh(batch["x"] @ params["first"]["kernel"] + params["first"]["bias"])
    return jnp.mean((hidden @ params["last"] - batch["y"]) ** 2)


def stores() -> dict[str, tuple[Any, Any, dict[str, Any]]]:
    """Machine, optimizer and options of the executors that keep a folder."""
    half = wse.precision.Precision("float16", wse.precision.Dynamic(initial=256.0, run=2))
    moving = wse.sparsity.RigL(0.5, steps=8, every=2)
    clipped = optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.1, momentum=0.9))
    return {
        "plain": (wse.CS2(systems=2), optax.adam(0.05), {}),
        "sparse": (wse.CS2(sparsity=moving), optax.adamw(0.05), {"checkpoint_every": 2}),
        "half": (wse.CS2(precision=half), clipped, {}),
    }


def executor(name: str, folder: Path) -> tuple[Any, Any]:
    """An executor with a store in a folder, and its state."""
    machine, optimizer, options = stores()[name]
    rng = np.random.default_rng(4)
    draw = lambda *shape: (rng.integers(-8, 8, shape) / 8).astype("f4")  # noqa: E731
    params = {"first": {"bias": draw(4), "kernel": draw(3, 4)}, "last": draw(4, 2)}
    made = machine.executor(loss, params, batch(0), optimizer, folder=folder, **options)
    return made, made.init(params)


def batch(step: int) -> dict[str, np.ndarray]:
    """The samples of a step."""
    rng = np.random.default_rng(step)
    values = (rng.integers(-8, 8, (4, 5)) / 8).astype("f4")
    return {"x": values[:, :3], "y": values[:, 3:]}


def stepped(made: Any, state: Any, steps: int) -> tuple[Any, list[float]]:
    """The state after so many steps, and their losses."""
    losses = []
    for _ in range(steps):
        state, value = made.train_step(state, batch(state.step))
        losses.append(float(value))
    return state, losses


def job(folder: Path, steps: int | None = None) -> Job:
    """The run of a params file."""
    path = folder / "params.yaml"
    path.write_text(PARAMS.format(folder=folder))
    return Job(read(path), steps=steps)


def turbulence(folder: Path) -> dict[str, xr.Dataset]:
    """The generated wind that is kept in a folder."""
    return sciml.wind.generate_parts(3, {"test": 1}, n=16, folder=folder)


@contextmanager
def cut_short(owner: Any, name: str, calls: int, *, before: bool) -> Iterator[None]:
    """Interrupt, as Ctrl-C does, before or after so many calls of a method."""
    real, seen = getattr(owner, name), []

    def counted(*given: Any) -> Any:
        seen.append(name)
        if before and len(seen) == calls:
            raise KeyboardInterrupt
        real(*given)
        if len(seen) == calls:
            raise KeyboardInterrupt

    with patch.object(owner, name, counted):
        try:
            yield
        except KeyboardInterrupt:
            return
    raise AssertionError(f"{name} was called {len(seen)} times only")


def write_stored(out: Path, scratch: Path) -> dict[str, Any]:
    """A store of simulations that was interrupted before its last chunk."""
    from sciml.ode import store

    with cut_short(store, "write", 3, before=True):
        sciml.ode.accumulate(oscillator(), out, noise=noise(), **STORED)
    whole = sciml.ode.accumulate(oscillator(), scratch / "whole", noise=noise(), **STORED)
    return {f"stored/{name}": whole[name].values[SEEN] for name in LABELLED}


def write_fits(out: Path, stored: xr.Dataset) -> dict[str, Any]:
    """A file of each kind of fit."""
    found = {}
    for name, (model, data, options) in fits(stored).items():
        fit = sciml.fit(model, data, **({"epochs": 8, "recipe": FAST} | options))
        fit.save(out / f"{name}.fit")
        found |= {f"fits/{name}/{key}": v for key, v in predicted(fit, data).items()}
    return found


def write_wind(out: Path) -> dict[str, Any]:
    """A file of each kind of net for wind."""
    found = {}
    for name, (model, fields) in refinements().items():
        net = fit_downscaling(model, fields, fields[:1], **WIND)
        net = net.folded() if name == "super_resolution" else net
        net.save(out / f"{name}.wind")
        found[f"wind/{name}"] = refined(net)
    return found


def write_checkpoints(out: Path) -> dict[str, Any]:
    """Checkpoints of trainings that were interrupted."""
    from sciml.train import loop
    from sciml.train.checkpoint import Store

    out.mkdir()
    with patch.object(loop, "CHECKPOINT_S", -1.0):
        with cut_short(Store, "write", 1, before=False):
            interrupted_fit(out / "fit.checkpoint")
        with cut_short(Store, "write", 6, before=False):  # within an epoch
            interrupted_fit(out / "executed.checkpoint", wse.CS2())
        with cut_short(Store, "write", 1, before=False):
            interrupted_downscaling(out / "wind.checkpoint")
    fit, executed = interrupted_fit(None), interrupted_fit(None, wse.CS2())
    net = interrupted_downscaling(None)
    return {
        "checkpoints/fit": weights(fit.params),
        "checkpoints/fit/loss": fit.history.loss.values,
        "checkpoints/executed": weights(executed.params),
        "checkpoints/executed/loss": executed.history.loss.values,
        "checkpoints/wind": weights(net.trained.params),
        "checkpoints/wind/loss": net.trained.loss,
    }


def write_stores(out: Path, scratch: Path) -> dict[str, Any]:
    """Stores of executors after two steps."""
    found = {}
    for name in stores():
        made, state = executor(name, out / name)
        state, _ = stepped(made, state, 2)
        found[f"stores/{name}/kept"] = weights((state.params, state.optimizer_state))
        made, state = executor(name, scratch / name)
        state, losses = stepped(made, state, 4)
        found[f"stores/{name}/losses"] = losses[2:]
        found[f"stores/{name}/reached"] = weights((state.params, state.optimizer_state))
    return found


def write_run(out: Path, scratch: Path) -> dict[str, Any]:
    """What a run leaves that stopped after three steps of six."""
    rng = np.random.default_rng(6)
    out.mkdir()
    x, y = (rng.integers(-8, 8, (12, size)) / 8 for size in (5, 2))
    np.savez(out / "train.npz", features=x, labels=y)
    whole = Path(shutil.copytree(out, scratch / "run"))
    begun = job(out, steps=3)
    train(begun)
    found = {"run/begun": evaluate(begun)["loss"], "run/predictions": predictions(begun)}
    (out / "params.yaml").unlink()  # it names this folder; the test writes its own
    train(job(whole))
    return found | {"run/done": evaluate(job(whole))["loss"]}


def predictions(made: Job) -> np.ndarray:
    """What a run's last step says of the samples."""
    with np.load(infer(made), allow_pickle=False) as found:
        return found["predictions"]


def write(out: Path) -> None:
    """Write everything below a folder that is not there yet."""
    scratch = out.with_name("scratch")
    scratch.mkdir(parents=True)
    out.mkdir()
    found = write_stored(out / "stored.zarr", scratch)
    found |= write_fits(out / "fits", sciml.ode.open_simulations(out / "stored.zarr"))
    found |= write_wind(out / "wind") | write_checkpoints(out / "checkpoints")
    found |= write_stores(out / "stores", scratch) | write_run(out / "run", scratch)
    found |= {
        f"turbulence/{name}": part.wind_speed.values
        for name, part in turbulence(out / "turbulence").items()
    }
    np.savez(out / "expected.npz", allow_pickle=False, **found)
    shutil.rmtree(scratch)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
