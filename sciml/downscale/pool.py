"""Fields of several grids side by side, from which a training draws its patches."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int, Key

from sciml._arguments import check_whole
from sciml._numbers import as_real, real
from sciml.train.epoch import Online
from sciml.train.repeated import warn_of_repeated
from sciml.wind.cf.check import refuse_unlike, warn_of_uneven
from sciml.wind.cf.names import EARTH, GRID, PAIRS
from sciml.wind.prepare.channels import COMPONENT, Normaliser, components
from sciml.wind.prepare.coarsen import spread
from sciml.wind.prepare.matching import Matched
from sciml.wind.prepare.symmetry import COUNT, symmetry
from sciml.wind.read.covariates import KNOWN

FIELD = "field"  # the channel of an array that has no name
COARSE = "coarse "  # before the names of channels that hold a coarse model's wind
MOST = 2**31 - 1  # values that 32-bit indices can tell apart


@dataclass(frozen=True)
class Patches:
    """What is trained on: `count` squares of `size` fine points in each epoch.

    They are cut anywhere, not at multiples of the factor, each field as often as its area and its
    times are large, and turned and mirrored at random into one of the eight symmetries of the
    square (components with their signs), so that no two are alike.

    Raises:
        ValueError: a value is not positive.

    >>> from sciml.estimator import Patches
    >>> Patches(size=32, count=128).size
    32
    """

    size: int = 64
    count: int = 512

    def __post_init__(self):
        for name in ("size", "count"):
            check_whole(1, **{f"Patches.{name}": getattr(self, name)})

    def check_factor(self, factor: int) -> None:
        """Refuse a size that blocks of the factor do not fill."""
        if self.size % factor:
            raise ValueError(
                f"Patches.size is {self.size}; it must be a multiple of the factor {factor}"
            )


@dataclass(frozen=True)
class Pool:
    """Normalised fields (time, channel, y, x) of several grids, one after the other.

    `table` has the first index, times, rows and columns of each. Patches begin at multiples of
    `step`, which is 1 unless there is a coarse wind, whose blocks must stay whole.
    """

    values: Float[np.ndarray, " value"]
    table: Int[np.ndarray, "grid 4"]
    names: tuple[str, ...]
    step: int = 1

    def draws(self, patches: Patches) -> Online:
        """Return patches (patch, channel, size, size), drawn anew for every epoch."""
        area = np.prod(self.table[:, 1:].astype(np.float64), axis=1)
        chances = jnp.log(jnp.asarray(area / area.sum(), jnp.float32))

        def draw(key: Key[Array, ""], values: Array, table: Array) -> Array:
            keys = jax.random.split(key, patches.count)
            here = (values, table, chances, self.names, patches.size)
            return jax.vmap(lambda key: cut(key, *here, step=self.step))(keys)

        return Online(patches.count, draw, (jnp.asarray(self.values), jnp.asarray(self.table)))


def cut(
    key: Key[Array, ""],
    values: Array,
    table: Array,
    chances: Float[Array, " grid"],
    names: tuple[str, ...],
    size: int,
    step: int = 1,
) -> Float[Array, "channel side side"]:
    """Cut one patch out of the values of a pool, from a grid drawn by its chances."""
    grid, place, turn, sign = jax.random.split(key, 4)
    first, times, y, x = table[jax.random.categorical(grid, chances)]
    most = jnp.stack([times, (y - size) // step + 1, (x - size) // step + 1])
    time, top, left = jax.random.randint(place, (3,), 0, most) * jnp.array([1, step, step])
    line = jnp.arange(size)
    planes = (time * len(names) + jnp.arange(len(names))) * y
    rows = (planes[:, None] + top + line) * x + left
    square = values[first + rows[:, :, None] + line]
    turned = jax.random.randint(turn, (), 0, COUNT)
    own = sum(not name.startswith(COARSE) for name in names)
    bare = tuple(name.removeprefix(COARSE) for name in names)
    # What is fine turns together, and so does a coarse wind behind it.
    parts = [slice(own)] if own == len(names) else [slice(own), slice(own, None)]
    square = jnp.concatenate([symmetry(square[part], bare[part], turned) for part in parts])
    flips = jnp.array([name == COMPONENT for name in bare])[:, None, None]
    return jnp.where(flips & jax.random.bernoulli(sign), -square, square)


def pooled(grids: Sequence[xr.DataArray], normaliser: Normaliser, step: int = 1) -> Pool:
    """Return the fields of all grids, normalised, in memory."""
    total = sum(grid.size for grid in grids)
    if total > MOST:
        raise ValueError(
            f"the fields have {total:,} values; at most {MOST:,} are drawn from: take every "
            "second time, fields.isel(time=slice(None, None, 2))"
        )
    values = np.empty(total, np.float32)
    table, first = [], 0
    for grid in grids:
        times, _, y, x = grid.shape
        normal = normaliser.normal(np.asarray(grid.values, np.float32))
        values[first : first + grid.size] = normal.ravel()
        table.append((first, times, y, x))
        first += grid.size
    if np.isinf(values).any():
        raise ValueError(
            f"a field has an infinite value, or {np.isinf(values).sum()}; look for it with "
            "sciml.wind.check"
        )
    return Pool(values, np.array(table, np.int32), normaliser.names, step)


def warn_of_seen(trained: Sequence[xr.DataArray], held: Sequence[xr.DataArray]) -> None:
    """Say that fields are held out which are trained on too."""
    fields = (((field,) for grid in part for field in grid.values) for part in (trained, held))
    remedy = "pass wind of other dates, or of another region"
    warn_of_repeated(*fields, what="fields", remedy=remedy)


def with_coarse(normaliser: Normaliser, grid: xr.DataArray) -> Normaliser:
    """Return the normaliser of fields behind which lies a coarse wind, normalised as the fine."""
    return normaliser.over(grid["channel"].values, lambda name: name.removeprefix(COARSE))


def fine_of(grid: xr.DataArray) -> xr.DataArray:
    """Return the channels of fields that are no coarse model's."""
    own = [not str(name).startswith(COARSE) for name in grid["channel"].values]
    return grid.isel(channel=own)


def is_paired(grid: xr.DataArray) -> bool:
    """Tell fields behind which lies a coarse model's wind."""
    return str(grid["channel"].values[-1]).startswith(COARSE)


def samples(fields: Any, model: Any) -> list[xr.DataArray]:
    """Return fields as a net takes them: one (time, channel, y, x) for each grid.

    A net of one channel of wind sees each component of a vector as a field of its own.

    Args:
        fields: a DataArray (time, [channel], y, x) or an array (sample, y, x), or several.
        model: the configuration of the net.
    """
    listed = list(fields) if isinstance(fields, list | tuple) else [fields]
    if not listed:
        raise ValueError("fields is empty; pass at least one DataArray (time, [channel], y, x)")
    if len({isinstance(one, Matched) for one in listed}) > 1:
        raise ValueError(
            "fields are partly pairs of two sources and partly fine fields alone; pass one kind: "
            "`sciml.wind.matched` makes pairs"
        )
    grids = [
        side_by_side(one, model) if isinstance(one, Matched) else separated(labelled(one), model)
        for one in listed
    ]
    return alike(grids, grids[0])


def alike(grids: Sequence[xr.DataArray], first: xr.DataArray) -> list[xr.DataArray]:
    """Return fields with their channels in the order of those of `first`; refuse other channels."""
    names = [tuple(str(n) for n in grid["channel"].values) for grid in (first, *grids)]
    if len({tuple(sorted(each)) for each in names}) > 1:
        raise ValueError(
            f"the channels of the fields are {sorted({*names})}; they must be the same: speeds are "
            "not learned together with components"
        )
    order = [*names[0]]
    known = zip(names[1:], grids, strict=True)
    return [grid if [*own] == order else grid.sel(channel=order) for own, grid in known]


def side_by_side(pairs: Matched, model: Any) -> xr.DataArray:
    """Return pairs as fields on the fine grid: what is fine, then the coarse wind of each block."""
    if pairs.factor != model.factor:
        raise ValueError(f"pairs are of factor {pairs.factor}, the net of {model.factor}; make new")
    fine = separated(labelled(pairs.fine), model, beside=0)
    shown = xr.DataArray(pairs.shown(), dims=("time", "channel", "y", "x"))
    shown = shown.assign_coords(channel=list(pairs.names + pairs.beside))
    coarse = separated(shown, model, statics=0)
    names = [str(name) for name in coarse["channel"].values]
    winds, beside = names[: model.wind], names[model.wind :]
    if pairs.correction is not None and tuple(winds) != pairs.names:
        raise ValueError(
            f"a correction of {', '.join(pairs.names)} cannot be kept by a net of {winds[0]}, "
            "which does not know which it sees: train on vectors, or leave the correction out"
        )
    near, more = np.split(np.asarray(spread(coarse.values, pairs.factor)), [model.wind], axis=1)
    values = np.concatenate([fine.values, more, near], axis=1)
    names = [*fine["channel"].values, *beside, *(COARSE + name for name in winds)]
    return xr.DataArray(values, dims=("time", "channel", "y", "x"), coords={"channel": names})


def labelled(fields: Any) -> xr.DataArray:
    """Return an array as fields with names."""
    if isinstance(fields, xr.Dataset):
        raise TypeError("fields are a Dataset; pass sciml.wind.channels(winds, names) of it")
    if not isinstance(fields, xr.DataArray):
        if np.ndim(fields) != 3:
            raise ValueError(
                f"the fields have shape {np.shape(fields)}; bare ones are (sample, y, x): pass "
                "such, or sciml.wind.channels(winds, names)"
            )
        fields = xr.DataArray(real(fields, "the fields", np.float32), dims=("time", "y", "x"))
    refuse_unlike(fields)
    fields = warn_of_uneven(as_real(fields, "the fields"))
    if "channel" not in fields.dims:
        kept = fields.drop_vars("channel", errors="ignore")
        fields = kept.expand_dims(channel=[str(fields.name or FIELD)], axis=1)
    if {*fields.dims} != {"time", "channel", "y", "x"}:
        raise ValueError(
            f"fields are on {fields.dims}; they must be on (time, [channel], y, x): select a "
            "height, rename axes"
        )
    return fields.transpose("time", "channel", "y", "x")


def separated(
    fields: xr.DataArray, model: Any, *, statics: int | None = None, beside: int | None = None
) -> xr.DataArray:
    """Return the fields with as many channels of wind as the net has, statics, what is beside.

    For a net of vectors, a component that the data lack is there as missing everywhere.
    """
    wind = model.wind
    statics = int(model.statics if statics is None else statics)
    beside = int(model.beside if beside is None else beside)
    names = [str(name) for name in fields["channel"].values]
    ground = [name for name in names if name in KNOWN]
    winds = [name for name in names if name not in KNOWN]
    winds, more = winds[: len(winds) - beside], winds[len(winds) - beside :]
    ground = [*ground, *more]
    for pair in PAIRS:
        if wind == len(pair) and {*winds} < {*pair} and winds:
            fields, winds = fields.reindex(channel=[*pair, *ground]), [*pair]
    vector = any({*winds} == {*pair} for pair in PAIRS)
    if wind == 1 and {*winds} <= {*GRID, *EARTH} and winds:
        fields, winds = components(fields, winds, ground), [COMPONENT]
    if len(winds) != wind or (wind > 1 and not vector) or len(ground) != statics + beside:
        raise ValueError(
            f"the channels are {', '.join(names)} but the net has wind={wind} and "
            f"statics={statics}{f', beside={beside}' * (beside > 0)}; pass "
            "sciml.wind.channels(winds, names, statics, beside) with so many, both components "
            "where wind=2"
        )
    return fields.sel(channel=[*winds, *ground])
