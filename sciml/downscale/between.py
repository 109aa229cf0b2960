"""From wind every few hours to wind at each hour: nets trained on sequences, and their use."""

from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from flax import nnx
from jaxtyping import Array, Float

from sciml._arguments import whole_seed
from sciml._numbers import real
from sciml._session import as_usual
from sciml.downscale.arrays import ground_of, in_order
from sciml.downscale.fit import validation_of
from sciml.downscale.objective import skeleton
from sciml.downscale.pool import Patches, alike, labelled, pooled, warn_of_seen
from sciml.downscale.storage import read_net, write_net
from sciml.models.archive import described_config, reading
from sciml.models.wind.between import Between
from sciml.provenance import provenance
from sciml.train.checkpoint import Checkpoint
from sciml.train.loop import Trained, train
from sciml.train.recipe import Recipe
from sciml.wind.cf.changes import changed
from sciml.wind.cf.components import with_components
from sciml.wind.cf.kinds import refuse_timeless
from sciml.wind.cf.times import moments, steps_h
from sciml.wind.prepare.channels import Normaliser, channels, fit_normaliser, warn_of_unlike
from sciml.wind.read.covariates import KNOWN

FORMAT = "sciml.between"
UNEVEN = 0.01  # of a step, by which times of a sequence may differ from it


@dataclass(frozen=True)
class Interpolation:
    """A trained net for the hours between, and what its numbers mean."""

    model: Between
    normaliser: Normaliser
    trained: Trained = field(repr=False)
    step_h: float = 1.0
    attrs: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def winds(self) -> tuple[str, ...]:
        """The channels that are interpolated."""
        return self.normaliser.names[: self.model.wind]

    @property
    def statics(self) -> tuple[str, ...]:
        """The channels that do not change."""
        return self.normaliser.names[self.model.wind :]

    @cached_property
    def told(self) -> set[str]:
        """The channels of which was told that they are unlike those of the training."""
        return set()

    @as_usual
    def between(
        self,
        ends: Float[Any, "sample end wind y x"],
        statics: Float[Any, "statics y x"] | None = None,
    ) -> Float[np.ndarray, "sample hour wind y x"]:
        """Return the fields between two ends, in m/s.

        Raises:
            ValueError: sizes are not those of the net, or a value is missing.
        """
        if isinstance(ends, xr.DataArray):
            ends = in_order(ends, self.winds, "the net interpolates")
        ends = real(ends, "ends", np.float32)
        if ends.shape[1:3] != (2, self.model.wind) or not np.isfinite(ends).all():
            raise ValueError(
                f"ends have shape {ends.shape}, {int((~np.isfinite(ends)).sum())} values missing; "
                f"pass (sample, 2, {self.model.wind}, y, x) of {', '.join(self.winds)}, all there"
            )
        mean, std = self.normaliser.columns()
        winds, ground = slice(self.model.wind), None
        warn_of_unlike(ends, self.winds, self.normaliser, self.told)
        if self.statics or statics is not None:
            given = ground_of(statics, self.statics, ends.shape[-2:])
            warn_of_unlike(given, self.statics, self.normaliser, self.told)
            ground = (given - mean[self.model.wind :]) / std[self.model.wind :]
        found = [
            program(self.model)(self.trained.params, (one - mean[winds]) / std[winds], ground)
            for one in ends
        ]
        return np.stack([np.asarray(one) for one in found]) * std[winds] + mean[winds]

    def predict(self, winds: xr.Dataset) -> xr.Dataset:
        """Return wind at all hours of a dataset that has one every `model.steps` of them.

        Raises:
            ValueError: times are not as far apart as the net has learned, or a channel is lacking.
        """
        refuse_timeless(winds, "the wind")
        every = self.model.steps * self.step_h
        check_even(winds, every)
        known = channels(winds, self.winds, self.statics)
        fields, ground = np.split(np.asarray(known.values, np.float32), [self.model.wind], axis=1)
        ends = np.stack([fields[:-1], fields[1:]], axis=1)
        made = self.between(ends, ground[0] if self.statics else None)
        joined = np.concatenate([ends[:, :1], made], axis=1).reshape(-1, *fields.shape[1:])
        joined = np.concatenate([joined, fields[-1:]])
        times = times_between(winds["time"].values, self.model.steps)
        places = {n: c for n, c in winds.coords.items() if "time" not in c.dims}
        result = xr.Dataset(
            {
                name: (("time", "y", "x"), joined[:, i], winds[name].attrs)
                for i, name in enumerate(self.winds)
            },
            coords=places | {"time": ("time", times, winds["time"].attrs)},
            attrs=winds.attrs,
        )
        result = changed(result, f"{self.model.steps - 1} times between each two by {self.model}")
        return with_components(result, "the prediction", stated=True)

    def save(self, path: Path | str) -> Path:
        """Write everything to one file; `load_between` reads it."""
        written = write_net(self, path, FORMAT, {"step_h": self.step_h})
        self.trained.checkpoint.remove()
        return written


def load_between(path: Path | str) -> Interpolation:
    """Read a net that `Interpolation.save` wrote.

    Raises:
        FileNotFoundError: there is no such file.
        NotAFitError: the file is damaged or foreign, or its weights do not fit its configuration.

    >>> from sciml.estimator import load_between
    >>> net = load_between("hours.net")  # doctest: +SKIP
    """
    return reading(path, stored, "Interpolation.save")


def stored(archive: Any) -> Interpolation:
    """Return the net in an open npz file."""
    described, model, normaliser, trained = read_net(archive, FORMAT, {Between.__name__: Between})
    return Interpolation(model, normaliser, trained, described["step_h"], described["attrs"])


@cache
def program(model: Between) -> Any:
    """Return the compiled (params, ends, statics) ↦ hours of one sample."""
    structure, _ = skeleton(model)

    def run(params: Any, ends: Array, ground: Array | None) -> Array:
        ground = None if ground is None else ground[None]
        return nnx.merge(structure, params)(ends[None], ground)[0]

    return jax.jit(run)


@as_usual
def fit_between(
    model: Between,
    fields: Any,
    validation: Any,
    *,
    recipe: Recipe,
    epochs: int,
    patches: Patches | None = None,
    seed: int = 0,
    checkpoint: Path | str | None = None,
) -> Interpolation:
    """Train a net to find the fields between two that are `model.steps` times apart.

    Args:
        model: configuration of the net.
        fields: sequences (time, channel, y, x) without gaps, as `sciml.wind.channels` gives; or
            several, of grids of their own and one step in time.
        validation: the same, of other weather; it chooses the epoch that is kept.
        recipe: batch (in patches), step size, clipping.
        epochs: at most so many, of `patches.count` patches each.
        patches: size and number of what is cut from the sequences for each epoch.
        seed: of weights and patches.
        checkpoint: a file from which an interrupted training goes on.

    Raises:
        ValueError: a sequence is too short or has gaps, steps in time differ, or a patch does not
            fit.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from sciml import models, train, wind
    >>> from sciml.estimator import Patches, fit_between, load_between
    >>> winds = wind.gaussian(seed=0, snapshots=9, n=16)
    >>> hours = np.datetime64("2020-01-01", "ns") + np.arange(9) * np.timedelta64(1, "h")
    >>> fields = wind.channels(winds.assign_coords(time=hours), ("x_wind", "y_wind"))
    >>> net = models.Between(steps=2, channels=4, blocks=1)
    >>> how = {"recipe": train.Recipe(2), "epochs": 1, "patches": Patches(16, 4)}
    >>> found = fit_between(net, fields[:6], fields[6:], **how)
    >>> load_between(found.save(Path(tempfile.mkdtemp(), "hours.net"))).step_h
    1.0
    """
    patches = Patches() if patches is None else patches
    train_on, held_out = (
        [labelled(one) for one in (part if isinstance(part, list | tuple) else [part])]
        for part in (fields, validation)
    )
    train_on, held_out = (alike(part, train_on[0]) for part in (train_on, held_out))
    lengths = {step for one in (*train_on, *held_out) if (step := check_even(one)) is not None}
    if len(lengths) > 1:
        raise ValueError(f"sequences have steps of {sorted(lengths)} h; they must have one")
    warn_of_seen(train_on, held_out)
    one_hour = fit_normaliser(*train_on)
    grids, held = ([windows(one, model) for one in part] for part in (train_on, held_out))
    # Every hour has the numbers of its wind.
    normaliser = one_hour.over(grids[0]["channel"].values, lambda name: name.split(" +")[0])
    pool = pooled(grids, normaliser)
    least = int(pool.table[:, 2:].min())
    if patches.size > least:
        raise ValueError(f"Patches.size is {patches.size}; a field has {least} points along a side")
    structure, params = nnx.split(model.build(nnx.Rngs(whole_seed(seed))), nnx.Param)

    def objective(params: Any, patch: Array, key: Any) -> Float[Array, ""]:
        del key
        ends, hidden, statics = parted(patch, model)
        return jnp.mean(jnp.square(nnx.merge(structure, params)(ends, statics) - hidden))

    told = {"model": described_config(model), "patches": asdict(patches)}
    trained = train(
        objective,
        params,
        pool.draws(patches),
        recipe=recipe,
        epochs=epochs,
        seed=seed,
        validate=validation_of(objective, [normaliser.normal(one.values) for one in held], epochs),
        checkpoint=checkpoint and Checkpoint(checkpoint, told),
    )
    said = {"epochs": epochs, "seed": seed, "recipe": asdict(recipe), "patches": asdict(patches)}
    return Interpolation(model, one_hour, trained, (lengths or {1.0}).pop(), said | provenance())


def check_even(fields: Any, every_h: float | None = None) -> float | None:
    """Return the hours between times, None of fields without dates; refuse gaps and other steps."""
    if "time" not in fields.coords:
        return None
    if fields.sizes["time"] < 2:
        raise ValueError(f"there are {fields.sizes['time']} times; two at least have some between")
    steps = steps_h(moments(fields["time"]))
    step = float(np.median(steps)) if steps.size else 0.0
    wanted = step if every_h is None else every_h
    off = np.abs(steps - wanted) > UNEVEN * wanted
    if not steps.size or off.any():
        at = int(off.argmax()) if steps.size else 0
        raise ValueError(
            f"times {at} and {at + 1} are {steps[at] if steps.size else 0:g} h apart; they must "
            f"be {wanted:g} h apart throughout: select a part without gaps"
        )
    return round(step, 6)


def times_between(ends: np.ndarray, steps: int) -> np.ndarray:
    """Return times and those between them; dates in whole numbers, which no rounding moves."""
    gaps = ends[1:] - ends[:-1]
    numbers = ends.dtype.kind in "iuf"
    parts = [gaps * k / steps if numbers else gaps * k // steps for k in range(steps)]
    return np.append(np.stack([ends[:-1] + part for part in parts], axis=1).ravel(), ends[-1:])


def windows(fields: xr.DataArray, model: Between) -> xr.DataArray:
    """Return each `steps` + 1 consecutive fields as channels of one sample, statics behind them."""
    names = [str(name) for name in fields["channel"].values]
    ground = [name for name in names if name in KNOWN]
    winds = [name for name in names if name not in KNOWN]
    count = fields.sizes["time"] - model.steps
    if (len(winds), len(ground)) != (model.wind, model.statics) or count < 1:
        raise ValueError(
            f"a sequence has {fields.sizes['time']} times of {', '.join(names)}; the net asks for "
            f"{model.steps + 1} times or more of {model.wind} winds and {model.statics} statics"
        )
    values = np.asarray(fields.sel(channel=[*winds, *ground]).values, np.float32)
    if not np.isfinite(values).all():
        raise ValueError(
            f"{int((~np.isfinite(values)).sum())} values of a sequence are missing; fill them, or "
            "select a part"
        )
    moving = [values[k : k + count, : model.wind] for k in range(model.steps + 1)]
    labels = [f"{name} +{k}" for k in range(model.steps + 1) for name in winds]
    joined = np.concatenate([*moving, values[:count, model.wind :]], axis=1)
    return xr.DataArray(
        joined, dims=("time", "channel", "y", "x"), coords={"channel": [*labels, *ground]}
    )


def parted(
    patch: Float[Array, "batch channel y x"], model: Between
) -> tuple[Array, Array, Array | None]:
    """Return the ends, the hours between and the statics of windows."""
    count = (model.steps + 1) * model.wind
    batch, _, y, x = patch.shape
    series = patch[:, :count].reshape(batch, model.steps + 1, model.wind, y, x)
    ends = jnp.stack([series[:, 0], series[:, -1]], axis=1)
    return ends, series[:, 1:-1], patch[:, count:] if model.statics else None
