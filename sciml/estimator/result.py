"""A trained inverse map."""

import functools
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from sciml.estimator.borders import check_same_grid, observations_of
from sciml.estimator.scaling import MinMax
from sciml.train.recipe import Recipe

if TYPE_CHECKING:
    import xarray as xr

PREDICT_BATCH = 1024


@dataclass(frozen=True)
class Grid:
    """What a net's inputs and outputs mean."""

    times: np.ndarray
    time_unit: str
    parameters: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class Fit:
    """A trained inverse map: weights, configuration, scaling, history, and what made it.

    `history` holds the loss by epoch, and the validation loss at the epochs where it was taken;
    its attributes the seconds of set-up (compilation), training, and validation with
    checkpoints. `collapsed` names the parameters of which the net learned nothing.
    """

    model: Any
    params: Any
    scaling: MinMax
    grid: Grid
    recipe: Recipe
    history: "xr.Dataset"
    collapsed: tuple[str, ...] = ()
    attrs: dict[str, Any] = field(default_factory=dict)

    def predict(self, data: "xr.Dataset | xr.DataArray") -> "xr.Dataset":
        """Estimate the parameters from observations.

        Args:
            data: observations (sample, time) on the grid of the training data.

        Returns:
            `estimate (sample, parameter)`, with the coordinates of `data`.

        Raises:
            TypeError, ValueError: another type, shape, grid or unit of time, or values that are
                not finite.
        """
        import xarray as xr

        observed = observations_of(data)
        check_same_grid(observed, self.grid.times, self.grid.time_unit)
        scaled = apply(self.model, self.grid, self.params, np.asarray(observed.values, np.float32))
        estimate = xr.DataArray(
            self.scaling.backward(scaled),
            dims=("sample", "parameter"),
            coords={"parameter": list(self.grid.parameters)},
        )
        kept = {k: v for k, v in observed.coords.items() if v.dims == ("sample",)}
        return xr.Dataset({"estimate": estimate}, coords=kept, attrs=self.attrs)

    def __repr__(self) -> str:
        """Return one line: configuration, size, targets, how far it was trained."""
        losses = self.history["loss"].values
        return (
            f"Fit({self.model}, {self.parameter_count:,} parameters → "
            f"{', '.join(self.grid.parameters)}; {len(losses)} epochs, loss {losses[-1]:.2e})"
        )

    def save(self, path: Path | str) -> Path:
        """Write everything to one file, aside and then renamed; `sciml.load` reads it."""
        from sciml.estimator.storage import save

        return save(self, path)

    @property
    def parameter_count(self) -> int:
        """The number of trainable numbers."""
        return sum(leaf.size for leaf in jax.tree.leaves(self.params))


def apply(model, grid: Grid, params, observed: np.ndarray) -> np.ndarray:
    """Return the scaled outputs of a net for many observations, in batches of one shape."""
    forward = forward_program(model, len(grid.times), len(grid.parameters))
    size = min(PREDICT_BATCH, len(observed))
    outputs = []
    for start in range(0, len(observed), size):
        part = observed[start : start + size]
        padded = np.pad(part, [(0, size - len(part)), (0, 0)])
        outputs.append(np.asarray(forward(params, jnp.asarray(padded)))[: len(part)])
    return np.concatenate(outputs)


@functools.lru_cache(maxsize=16)
def forward_program(model, inputs: int, outputs: int):
    """Return the compiled `(params, observations) → scaled outputs` of a configuration."""
    graph = structure(model, inputs, outputs)[0]
    return jax.jit(lambda params, x: nnx.merge(graph, params)(x))


def structure(model, inputs: int, outputs: int, dot_general=None):
    """Return the graph and the abstract parameters of a configuration, without any array."""
    abstract = nnx.eval_shape(
        lambda: model.build(inputs, outputs, rngs=nnx.Rngs(0), dot_general=dot_general)
    )
    return nnx.split(abstract)
