"""Learn an inverse map from simulations."""

import json
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from sciml.diagnose import r2
from sciml.estimator.borders import check_same_grid, training_arrays
from sciml.estimator.result import Fit, Grid, apply, structure
from sciml.estimator.scaling import MinMax
from sciml.ode.noise import AR1
from sciml.provenance import provenance
from sciml.train.loop import Trained, Validation, train
from sciml.train.precision import dot_general
from sciml.train.recipe import Recipe

if TYPE_CHECKING:
    import xarray as xr

COLLAPSED = 0.1  # assumed: R² on the training set below which a net has learned nothing


class CollapseWarning(UserWarning):
    """A net has learned nothing: it gives the mean whatever it sees, or a constant extreme."""


def fit(
    model,
    data: "xr.Dataset",
    validation: "xr.Dataset | None" = None,
    *,
    epochs: int = 1000,
    seed: int = 0,
    noise: AR1 | None = None,
    recipe: Recipe | None = None,
    checkpoint: Path | str | None = None,
) -> Fit:
    """Train a net to estimate parameters from observations, by the mean squared error.

    minimise  mean over samples of |net(x + noise) − scaled θ|²

    The targets are scaled to [0, 1] by the extremes of the training set. Whole epochs run as one
    compiled program with the data on the device.

    Args:
        model: a configuration, as `sciml.models.Dense(width=512)`.
        data: `observation (sample, time)` and `parameters (sample, parameter)`.
        validation: another such set; the weights that do best on it are kept.
        epochs: passes over the data.
        seed: of weights, shuffles and noise; the same seed gives the same numbers.
        noise: drawn afresh for every sample of every epoch, the largest single gain known for
            noisy observations; None trains on the observations as they are.
        recipe: how to train; default `model.recipe()`.
        checkpoint: a file from which an interrupted fit goes on.

    Raises:
        ValueError: data of a wrong shape, grid or unit, or not finite; sizes that do not fit.
        FloatingPointError: the loss stopped being finite.

    Warns:
        CollapseWarning: R² of a parameter on the training set itself is below 0.1.
    """
    recipe = recipe or model.recipe()
    x, targets = training_arrays(data)
    scaling = MinMax.of(targets)
    grid = grid_of(data)
    product = dot_general(recipe.precision)
    graph, _ = structure(model, len(grid.times), len(grid.parameters), product)
    loss = mean_squared_error(graph, noise)
    trained = train(
        loss,
        initial_params(model, grid, seed),
        (jnp.asarray(x), jnp.asarray(scaling.forward(targets))),
        recipe=recipe,
        epochs=epochs,
        seed=seed,
        validate=validation_score(graph, grid, scaling, validation, epochs),
        checkpoint=checkpoint,
    )
    estimates = scaling.backward(apply(model, grid, trained.params, x))
    settings = {"epochs": epochs, "seed": seed, "samples": len(x), "noise": described(noise)}
    return Fit(
        model=model,
        params=trained.params,
        scaling=scaling,
        grid=grid,
        recipe=recipe,
        history=history(trained),
        collapsed=collapsed_parameters(estimates, targets, grid),
        attrs={
            "model": f"{model}",
            "recipe": json.dumps(asdict(recipe)),
            "fit": json.dumps(settings),
            "data": data.attrs.get("settings", ""),
            **provenance(),
        },
    )


def described(noise: AR1 | None):
    """Return what a file says of the noise."""
    return noise.describe() if noise else None


def grid_of(data: "xr.Dataset") -> Grid:
    """Return the times and the names of the parameters."""
    times = data["time"] if "time" in data.coords else data["observation"]["time"]
    return Grid(
        times=np.asarray(times.values, np.float64),
        time_unit=times.attrs.get("units", "s"),
        parameters=tuple(map(str, data["parameter"].values)),
    )


def initial_params(model, grid: Grid, seed: int):
    """Return fresh weights, drawn in one compiled program."""

    def draw(key):
        net = model.build(len(grid.times), len(grid.parameters), rngs=nnx.Rngs(params=key))
        return nnx.state(net)

    return jax.jit(draw)(jax.random.key(seed))


def mean_squared_error(graph, noise: AR1 | None):
    """Return `loss(params, (x, y), key)`."""

    def loss(params, batch, key):
        x, y = batch
        if noise is not None:
            x = x + noise.sample(key, x.shape)
        return jnp.mean(jnp.square(nnx.merge(graph, params)(x) - y))

    return loss


def validation_score(graph, grid: Grid, scaling: MinMax, validation, epochs: int):
    """Return the score on a validation set, or None where there is none."""
    if validation is None:
        return None
    check_same_grid(validation["observation"], grid.times, grid.time_unit)
    x, targets = training_arrays(validation)
    x, y = jnp.asarray(x), jnp.asarray(scaling.forward(targets))
    loss = mean_squared_error(graph, None)
    score = jax.jit(lambda params, x, y: loss(params, (x, y), None))
    return Validation(lambda params: score(params, x, y), every=max(1, epochs // 100))


def history(trained: Trained) -> "xr.Dataset":
    """Return the losses by epoch, counted from 1, and the seconds spent."""
    import xarray as xr

    return xr.Dataset(
        {
            "loss": ("epoch", trained.loss),
            "validation_loss": ("validated_epoch", trained.validation),
        },
        coords={
            "epoch": np.arange(1, len(trained.loss) + 1),
            "validated_epoch": trained.validated,
        },
        attrs={
            "compile_s": trained.compile_s,
            "train_s": trained.train_s,
            "overhead_s": trained.overhead_s,
        },
    )


def collapsed_parameters(estimates, targets, grid: Grid) -> tuple[str, ...]:
    """Return, and warn of, the parameters that the net does not tell apart at all."""
    scores = [r2(t, e) for t, e in zip(targets.T, estimates.T, strict=True)]
    names = tuple(
        name for name, score in zip(grid.parameters, scores, strict=True) if score < COLLAPSED
    )
    if names:
        warnings.warn(
            f"R² of {', '.join(names)} on the training set itself is {min(scores):.3f}; a net that "
            "learns is well above 0. It has collapsed to the mean, or saturated: "
            "lower Recipe.learning_rate, set Recipe.clip, or train for more epochs",
            CollapseWarning,
            stacklevel=3,
        )
    return names
