"""What a net's inputs and outputs mean."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sciml.ode.data.evidence import check_same_grid

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class Grid:
    """Times (or features), channels, and the names of the parameters.

    `times` holds the values of the observations' second dimension, which `dimension` names;
    `channels` is None where there is no third. `labels` are the names of channels or features,
    empty where they have none.
    """

    times: np.ndarray
    time_unit: str
    parameters: tuple[str, ...]
    channels: int | None = None
    dimension: str = "time"
    labels: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one observation."""
        return (len(self.times),) if self.channels is None else (len(self.times), self.channels)

    @property
    def inputs(self) -> int | tuple[int, ...]:
        """The shape of one observation, as `model.build` takes it."""
        return len(self.times) if self.channels is None else self.shape

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The dimensions of observations."""
        return ("sample", self.dimension) + (() if self.channels is None else ("channel",))

    def check(self, observed: "xr.DataArray") -> None:
        """Refuse observations at other times, of other channels, or in another unit of time."""
        import xarray as xr

        coords = {self.dimension: (self.dimension, self.times, {"units": self.time_unit})}
        named = {self.dimensions[-1]: list(self.labels)} if self.labels else {}
        like = xr.DataArray(np.empty((1, *self.shape)), coords | named, self.dimensions)
        check_same_grid(observed, like, "what the net was trained on")


def labels_of(observed: "xr.DataArray") -> tuple[str, ...]:
    """Return the names of channels or features, empty where they have none."""
    last = observed.dims[-1]
    if last == "time" or last not in observed.coords or observed[last].dtype.kind not in "UOT":
        return ()
    return tuple(map(str, observed[last].values))


def grid_of(data: "xr.Dataset", observed: np.ndarray, names: tuple[str, ...]) -> Grid:
    """Return the grid of a data set as measured, for parameters of these names.

    The noise of a task without an ODE may give more features than its solution has.
    """
    dimension, labels = str(data["observation"].dims[1]), labels_of(data["observation"])
    times = data["observation"][dimension]
    same = times.size == observed.shape[1] and times.dtype.kind not in "UOT"
    return Grid(
        times=np.asarray(times.values if same else np.arange(observed.shape[1]), np.float64),
        time_unit=times.attrs.get("units", "s"),
        parameters=names,
        channels=None if observed.ndim == 2 else observed.shape[2],
        dimension=dimension,
        labels=labels if len(labels) == observed.shape[-1] else (),
    )
