"""What a net's inputs and outputs mean."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float

from sciml._labels import labels_of, marked
from sciml._numbers import finite_places
from sciml._precision import as_float32
from sciml.ode.conditions import Known, flat_columns
from sciml.ode.data.evidence import check_same_grid, check_same_unit


@dataclass(frozen=True)
class Grid:
    """Times (or features), channels, and the names of the parameters.

    `times` holds the values of the observations' second dimension, which `dimension` names;
    `channels` is None where there is no third. `labels` are the names of channels or features,
    empty where they have none. `conditions` are the names of known inputs that are numbers,
    `series` of those that have a value at each time. `units` are those of what says one, by name.
    """

    times: np.ndarray
    time_unit: str
    parameters: tuple[str, ...]
    channels: int | None = None
    dimension: str = "time"
    labels: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    series: tuple[str, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one observation."""
        return (len(self.times),) if self.channels is None else (len(self.times), self.channels)

    @property
    def inputs(self) -> int | tuple[int, ...]:
        """The shape of one observation and its conditions, as `model.build` takes it."""
        more = len(self.conditions) + len(self.series)
        if more and self.dimension == "time":
            return (len(self.times), (self.channels or 1) + more)
        return len(self.times) + more if self.channels is None else self.shape

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The dimensions of observations."""
        return ("sample", self.dimension) + (() if self.channels is None else ("channel",))

    def check(self, observed: xr.DataArray) -> None:
        """Refuse observations at other times, of other channels, or in another unit of time."""
        coords = {self.dimension: (self.dimension, self.times, {"units": self.time_unit})}
        named = {self.dimensions[-1]: list(self.labels)} if self.labels else {}
        like = xr.DataArray(np.empty((1, *self.shape)), coords | named, self.dimensions)
        owner, units = "what the net was trained on", self.units
        check_same_grid(observed, like.assign_attrs(units=units.get("observation", "")), owner)
        for name in {*self.conditions, *self.series} & {*observed.coords}:
            its = xr.DataArray(attrs={"units": units.get(name, "")})
            check_same_unit(observed[name], its, f"the condition {name}", owner)

    def known(self, observed: xr.DataArray) -> Known:
        """Return the conditions that observations carry as coordinates, flat."""
        source = observed if self.conditions or self.series or marked(observed) else {}
        names = (*self.conditions, *self.series), dict.fromkeys(self.series, self.times)
        return as_float32(flat_columns("the fit", source, names, len(observed)), "conditions")

    def shown(self, observed: Float[Any, "sample ..."], known: Float[Any, "sample given"]) -> Any:
        """Return what a net sees: observations, and conditions as further features or channels."""
        if not known.shape[1]:
            return observed
        if self.dimension != "time":
            return jnp.concatenate([observed, known], axis=1)
        count, times = len(observed), len(self.times)
        numbers, series = jnp.split(jnp.asarray(known), [len(self.conditions)], axis=1)
        parts = [
            observed[..., None] if observed.ndim == 2 else observed,
            jnp.broadcast_to(numbers[:, None], (count, times, len(self.conditions))),
            jnp.moveaxis(series.reshape(count, len(self.series), times), 1, 2),
        ]
        return jnp.concatenate(parts, axis=2)

    def seen(self, observed: xr.DataArray) -> Float[np.ndarray, "sample ..."]:
        """Return labelled observations with the conditions that they carry, as a net sees them."""
        values = as_float32(observed.values, "the observations", each=observed.dims[-1] != "time")
        return np.asarray(self.shown(values, self.known(observed)))

    def apart(self, shown: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the observations alone, and the conditions alone, of what a net sees."""
        width = shown.shape[-1] - len(self.conditions) - len(self.series)
        alone = shown.ndim == 3 and self.channels is None
        return shown[..., 0] if alone else shown[..., :width], shown[..., width:]


def grid_of(data: xr.Dataset, observed: np.ndarray, names: tuple[str, ...]) -> Grid:
    """Return the grid of a data set as measured: noise may give features that no solution has."""
    _, dimension, *_ = dims = tuple(map(str, data["observation"].dims))
    labels = labels_of(data["observation"], dims[-1])
    times, given = data["observation"][dimension], marked(data)
    if dimension != "time" and (series := [n for n in given if "time" in data[n].dims]):
        raise ValueError(
            f"the condition {series[0]} is a series, and the observations are {dimension}s; a net "
            "takes series beside observations at times: observe at times, or give numbers"
        )
    same = times.size == observed.shape[1] and times.dtype.kind not in "UOT"
    return Grid(
        times=finite_places(times if same else np.arange(observed.shape[1]), dimension),
        time_unit=times.attrs.get("units", "s"),
        parameters=names,
        channels=None if observed.ndim == 2 else observed.shape[2],
        dimension=dimension,
        labels=labels if len(labels) == observed.shape[-1] else (),
        conditions=tuple(n for n in given if "time" not in data[n].dims),
        series=tuple(n for n in given if "time" in data[n].dims),
        units={
            str(name): str(data[name].attrs["units"]).strip()
            for name in ("observation", *given)
            if "units" in data[name].attrs
        },
    )
