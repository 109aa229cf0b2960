"""What a net that refines fields is trained to minimise."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float, Key

from sciml.models.wind.between import Between
from sciml.models.wind.refinement import Refinement
from sciml.wind.prepare.coarsen import continued, pair_known, spread
from wse._compilation import enable_cache

Batch = Float[Array, "batch channel y x"]
Objective = Callable[[Any, Batch, Key[Array, ""] | None], Float[Array, ""]]


def objective_of(model: Refinement, structure: Any, *, gaps: bool = False) -> Objective:
    """Return the loss of weights on fine fields: wind, statics, what the coarse grid has beside.

    Where a coarse model's wind follows, constant on each block, it is the net's input; else block
    means of the fine fields are. In `gaps` a net is shown what it is shown when it is applied.

    A loss is a mean over all points; divided by the share that is known it is one over these.
    """

    def objective(params: Any, fine: Batch, key: Key[Array, ""] | None) -> Float[Array, ""]:
        net = nnx.merge(structure, params)
        parts = [model.wind, model.wind + model.statics, channels_of(model)]
        wind, statics, beside, blocks = jnp.split(fine, parts, axis=1)
        if blocks.shape[1]:
            coarse, truth = given(wind, blocks, model.factor)
        else:
            coarse, truth = pair_known(wind, model.factor)
        coarse = continued(coarse, model.reach if gaps else 0)
        if model.beside:
            known = continued(pair_known(beside, model.factor)[0])
            coarse = jnp.concatenate([coarse, known], axis=1)
        statics = statics if model.statics else None
        share = jnp.isfinite(truth).mean()
        return net.loss(coarse, truth, statics, key) / jnp.maximum(share, 1e-6)

    return objective


def channels_of(model: Refinement) -> int:
    """Return how many channels the fields have that a net is trained on."""
    return model.wind + model.statics + model.beside


def given(
    fine: Batch, blocks: Batch, factor: int
) -> tuple[Float[Array, "batch channel y_lo x_lo"], Batch]:
    """Return a coarse wind that is given, and the truth, NaN where that is missing."""
    coarse = blocks[..., ::factor, ::factor]
    return coarse, jnp.where(spread(jnp.isfinite(coarse), factor), fine, jnp.nan)


def executed_objective(
    model: Refinement, structure: Any, *, gaps: bool = False
) -> Callable[[Any, Batch], Any]:
    """Return the loss for an executor, which hands out no keys."""
    if model.probabilistic:
        raise ValueError(
            f"{type(model).__name__} draws in its loss, for which executors have no keys; leave "
            "the executor out"
        )
    objective = objective_of(model, structure, gaps=gaps)
    return lambda params, fine: objective(params, fine, None)


def skeleton(model: Refinement | Between) -> tuple["nnx.GraphDef[Any]", Any]:
    """Return the structure of a net and the shapes of its weights, without making these."""
    enable_cache()  # a net that was loaded is not trained
    return nnx.split(nnx.eval_shape(lambda: model.build(nnx.Rngs(0))), nnx.Param)


def traceable(model: Refinement, batch: int, size: int) -> tuple[Any, Any, Any]:
    """Return what `Downscaling.traceable` says, for a configuration that is not trained."""
    if batch < 1 or size < 1 or size % model.factor:
        raise ValueError(
            f"batch is {batch} and size {size}; both must be positive, and size a multiple of "
            f"{model.factor}, the factor by which the net refines"
        )
    structure, params = skeleton(model)
    channels = channels_of(model)
    made = jax.ShapeDtypeStruct((batch, channels, size, size), np.float32)
    return executed_objective(model, structure), params, made
