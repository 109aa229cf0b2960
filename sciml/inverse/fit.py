"""Learn an inverse map from simulations."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import xarray as xr

from sciml._arguments import check_whole, whole_seed
from sciml._session import as_usual
from sciml.inverse.alarms.collapse import collapsed_parameters
from sciml.inverse.alarms.seen import first_of
from sciml.inverse.beyond_memory.windows import Windows, windows_of
from sciml.inverse.loss import PreparedLoss, as_prepared, executed_batch, executed_loss, loss_of
from sciml.inverse.measured import ONLINE_SAMPLES, simulations
from sciml.inverse.program import initial_params, is_posterior
from sciml.inverse.result import REFERENCES, Fit, point_estimates
from sciml.inverse.setup import Setup, accepts_missing, setup
from sciml.inverse.storage import history
from sciml.inverse.validation import (
    split_off,
    validation_score,
    warn_of_heart,
    warn_of_leak,
)
from sciml.ode.data.identity import identity
from sciml.ode.data.simulate import simulate
from sciml.ode.observe.noise import Noise
from sciml.provenance import provenance
from sciml.train.checkpoint import Checkpoint
from sciml.train.devices import Devices, check_devices
from sciml.train.epoch import Online
from sciml.train.executed import Cluster, train_on
from sciml.train.loop import Trained, train
from sciml.train.piecewise import train_piecewise
from sciml.train.recipe import Recipe

ORIGIN = ("system", "reference")  # what a data set says of its problem


@as_usual
def fit(
    model,
    data: xr.Dataset | Windows | Any,
    validation: xr.Dataset | int | float | None = None,
    epochs: int = 1000,
    seed: int = 0,
    devices: Devices = None,
    *,
    noise: Noise | None = None,
    recipe: Recipe | None = None,
    checkpoint: Path | str | None = None,
    online: bool = False,
    executor: Cluster | None = None,
) -> Fit:
    """Train a net to tell parameters from observations.

    Observations are scaled by the training set, so that units do not matter. A point net minimises
    the mean over samples of |net(x) − scaled θ|², with the targets scaled to [0, 1] by the extremes
    of the training set. A posterior minimises −log p(θ | x) (flow matching: its own regression) on
    the whole line, onto which the support of each prior is mapped, so that no mass falls outside.

    Args:
        model: a configuration, as `sciml.models.Dense(width=512)`.
        data: `observation (sample, time)`, `(sample, time, channel)` or `(sample, feature)`, and
            `parameters (sample, parameter)`; with `online` a problem, as `sciml.ode.System`. What
            is lazy is loaded, up to 1 GiB; more is read as it trains: `sciml.estimator.Windows`.
        validation: another such set, or the share of `data` to hold out, as 0.1; the weights
            that do best on it are kept. `noise` is applied to it once, unless it has some.
        epochs: passes over the data.
        seed: of weights, shuffles and noise; the same seed gives the same numbers.
        devices: what shares each batch: a number, or JAX's own, as `jax.local_devices()`; default
            all local ones, or the most of them that divide the batch; where `jax.distributed` has
            joined processes, those of all. They change numbers by rounding alone.
        noise: drawn afresh for every sample of every epoch; None trains on the observations as
            they are. Levels of a noise with `estimate=True`, given here or to `simulate`, are
            targets beside the parameters, as `noise_sd`.
        recipe: how to train; default `model.recipe()`.
        checkpoint: a file from which an interrupted fit goes on. It keeps the whole training until
            `Fit.save` has written the fit, which removes it, or another fit takes its place.
        online: simulate anew for every epoch, 1000 samples each, as it trains. Places of solutions
            that fail go to others of the same epoch; of the first 1000 they are counted.
        executor: what executes the steps, as `wse.CS2(systems=4)`; the weights are those of plain
            JAX but for rounding, `Fit.run` records the last step. Not with `online` or `devices`.

    Raises:
        ValueError: data of a wrong shape, grid or unit, or not finite; sizes or devices do not fit.
        TypeError: the model or the noise is none.
        FloatingPointError: the loss stopped being finite.

    Warns:
        CollapseWarning: R² of a parameter on the training set itself is below 0.1.

    >>> import sciml
    >>> data = sciml.simulate(sciml.ode.van_der_pol(), samples=100)
    >>> found = sciml.fit(sciml.models.Dense(16, 1), data, epochs=100).predict(data)
    >>> float(abs(found.estimate - data.parameters).mean()) < 0.3 * float(data.parameters.std())
    True
    """
    check_choices(model, recipe, (executor, devices), online, epochs)
    seed, epochs, recipe = whole_seed(seed, least=0), int(epochs), recipe or model.recipe()
    problem: Any = data if online else None
    source, validation = split_off(data_set(data, online, seed, executor), validation, seed)
    windows = source if isinstance(source, Windows) else None
    seen: Any = windows.first(seed, accepts_missing(model)) if windows else source
    made = setup(model, seen, noise, seed, standardise=recipe.standardise)
    made = windows.spanned(made) if windows else made
    described = {
        "model": f"{model}",
        "noise": made.noise,
        "online": problem.name if problem is not None else None,
        "prior": seen.attrs.get("prior"),
    }
    equations = {} if problem is None else {"problem": identity(problem, {}, "float32")}
    sizes: Any = {"recipe": recipe, "epochs": epochs, "seed": seed}
    sizes["checkpoint"] = checkpoint and Checkpoint(checkpoint, described | equations)
    trained = learned(model, made, windows or problem, validation, (executor, devices), sizes)
    warn_of_heart(trained)
    samples = int(windows.sizes.sum()) if windows else len(made.targets)
    settings = {"epochs": epochs, "seed": seed, "samples": samples, **described}
    return fitted(model, made, trained, recipe, {"fit": settings, "data": seen.attrs})


def learned(
    model: Any,
    made: Setup,
    source: Any,
    validation: Any,
    where: tuple[Any, Devices],
    sizes: dict[str, Any],
) -> Trained:
    """Train fresh weights on windows, on simulations of a problem, or on the data of the setup."""
    (executor, devices), recipe, seed = where, sizes["recipe"], sizes["seed"]
    inputs, outputs = made.grid.inputs, len(made.grid.parameters)
    before = PreparedLoss(model, inputs, outputs, recipe.precision)
    params = initial_params(model, inputs, outputs, seed)
    validate = validation_score(before, made, validation, sizes["epochs"])
    afresh, sizes = source is not None or made.measurement.noise is not None, dict(sizes)
    sizes["validate"], prepare = validate, made.prepare if afresh else as_prepared
    loss = loss_of(model, before.graph, prepare) if afresh else before
    if isinstance(source, Windows):
        stream = source.stream(made, accepts_missing(model))
        return train_piecewise(loss, params, stream, devices, **sizes)
    if source is None and validate is not None:
        warn_of_leak(made.clean, validate.held)
    examples = training_data(made, source, afresh)
    if executor is None:
        return train(loss, params, examples, devices, **sizes)
    batch = executed_batch(prepare)
    return train_on(executor, executed_loss(model, before.graph), params, examples, batch, **sizes)


def check_choices(
    model: Any, recipe: Any, where: tuple[Any, Devices], online: bool, epochs: Any
) -> None:
    """Refuse what is no configuration of a net, and what the loop on an executor cannot do."""
    executor, devices = where
    check_whole(1, epochs=epochs)
    if isinstance(model, type) or getattr(model, "build", None) is None:
        said = f"the class {model.__name__}" if isinstance(model, type) else repr(model)
        raise TypeError(
            f"the model is {said}; it must be a configuration, as sciml.models.Dense(width=512)"
        )
    if recipe is not None and not isinstance(recipe, Recipe):
        raise TypeError(f"recipe is {recipe!r}; it must be a Recipe: pass sciml.train.Recipe(...)")
    if executor is not None and not callable(getattr(executor, "executor", None)):
        raise TypeError(f"executor is {executor!r}; it must make executors: pass wse.CS2()")
    if executor is not None and online:
        raise ValueError(
            f"online=True is given with an executor, {executor!r}, whose loop does not simulate: "
            "leave one of the two out"
        )
    check_devices(executor, devices)


def data_set(data: Any, online: bool, seed: int, executor: Any) -> Any:
    """Return the data set, or one epoch's worth of simulations, by which the scalings are set.

    One that is too large to be loaded comes as `Windows`.
    """
    given = isinstance(data, xr.Dataset | Windows)
    if given and online:
        whole = data.data if isinstance(data, Windows) else data
        raise TypeError(
            f"data is a Dataset of {dict(whole.sizes)} but online=True simulates as it trains; "
            "pass the problem itself, as fit(model, sciml.ode.fitzhugh_nagumo(), online=True)"
        )
    if not given and not online:
        raise TypeError(
            f"data is a {type(data).__name__}; it must be a Dataset, as sciml.simulate makes it: "
            "of arrays pass sciml.dataset(theta, x); of a folder xarray.open_zarr(folder), or, if "
            "accumulate filled it, sciml.ode.open_simulations(folder); of a problem, with "
            "online=True, itself"
        )
    if given:
        return windows_of(data, executor)
    return simulate(data, samples=ONLINE_SAMPLES, seed=seed)


def training_data(made: Setup, problem: Any, afresh: bool) -> Any:
    """Return what `train` takes: drawn anew each epoch, measured anew each batch, or prepared."""
    if problem is not None:
        return Online(ONLINE_SAMPLES, simulations(problem))
    if afresh:
        return jax.tree.map(jnp.asarray, made.clean)
    return made.prepared(made.observed, made.targets)


def fitted(model, made: Setup, trained: Trained, recipe: Recipe, said: dict[str, Any]) -> Fit:
    """Return the fit, with the names of the parameters of which a point net learned nothing."""
    fit = Fit(
        model=model,
        params=trained.params,
        inputs=made.inputs,
        scaling=made.scaling,
        grid=made.grid,
        recipe=recipe,
        history=history(trained.loss, trained.validated, trained.validation, trained.seconds),
        reference=made.observed[:REFERENCES].copy(),  # not the caller's, who may write to it
        attrs={
            "model": f"{model}",
            "recipe": json.dumps(asdict(recipe)),
            "fit": json.dumps(said["fit"]),
            "data": said["data"].get("settings", ""),
            "first": json.dumps([] if said["fit"].get("online") else first_of(made.clean[1])),
            **{key: said["data"][key] for key in ORIGIN if key in said["data"]},
            **provenance(),
        },
        run=trained.run,
        checkpoint=trained.checkpoint,
    )
    if is_posterior(fit.model):
        return fit
    estimates = point_estimates(fit, made.observed)[0]
    return fit.replace(collapsed=collapsed_parameters(estimates, made.targets, fit.grid.parameters))
