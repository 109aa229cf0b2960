"""From pairs of coarse and fine fields to a net that refines fields of any size."""

from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float, Key

from sciml.models.super_resolution import SuperResolution, SuperResolutionNet
from sciml.train.checkpoint import Checkpoint
from sciml.train.executed import Cluster, train_on
from sciml.train.loop import Trained, Validation, train
from sciml.train.recipe import Recipe
from sciml.wind.coarsen import block_mean, crop

Fields = Float[np.ndarray, "sample y x"]


@dataclass(frozen=True)
class Patches:
    """Which parts of a field are trained on: `count` squares of `size` fine points per visit.

    They are cut anywhere, not at multiples of the factor, and turned and mirrored at random into
    one of the eight symmetries of the square, so that no two visits to a field are alike.

    Raises:
        ValueError: a value is not positive.
    """

    size: int = 64
    count: int = 4

    def __post_init__(self):
        """Check every value."""
        for name in ("size", "count"):
            if getattr(self, name) < 1:
                raise ValueError(f"Patches.{name} is {getattr(self, name)}; it must be positive")


@dataclass(frozen=True)
class Downscaling:
    """A trained net with the mean and the standard deviation of what it was trained on."""

    model: SuperResolution
    mean: float
    std: float
    trained: Trained = field(repr=False)

    @property
    def weights(self) -> int:
        """The number of trained weights."""
        return sum(leaf.size for leaf in jax.tree.leaves(self.trained.params))

    def refine(self, coarse: Float[Any, "sample y_lo x_lo"]) -> Float[np.ndarray, "sample y x"]:
        """Return the fine field of each coarse one, of any size, in the unit of the training data.

        With a conservative model the block means of the result are the coarse values.
        """
        net = nnx.merge(graph(self.model), self.trained.params)
        refine = jax.jit(lambda net, one: net(one))
        scaled = (jnp.asarray(coarse)[:, None, None] - self.mean) / self.std
        fine = [np.asarray(refine(net, one)[0, 0]) for one in scaled]
        return self.mean + self.std * np.stack(fine)


def fit_downscaling(
    model: SuperResolution,
    fields: Fields,
    validation: Float[np.ndarray, "held y_held x_held"],
    executor: Cluster | None = None,
    *,
    recipe: Recipe,
    epochs: int,
    patches: Patches | None = None,
    seed: int = 0,
    checkpoint: Path | str | None = None,
) -> Downscaling:
    """Train a net to undo block averaging, on mean squared error.

    The fine fields are truth, their block means are the input. Mean and standard deviation are
    taken from the training fields alone; `validation` (other dates) only chooses the epoch whose
    weights are kept.

    Args:
        model: configuration of the net.
        fields: fine training fields.
        validation: fine fields of other dates, of any size.
        executor: what executes the steps, as `wse.CS2()`; the weights are those of plain JAX but
            for rounding.
        recipe: batch (in fields; each gives `patches.count` patches), step size, clipping.
        epochs: visits to each field.
        patches: size and number of what is cut from a field at each visit.
        seed: of weights, shuffles and cuts; the same seed gives the same numbers.
        checkpoint: a file from which an interrupted training goes on.

    Raises:
        ValueError: a patch is no multiple of the factor or does not fit into the fields; or what
            the executor refuses.
    """
    patches = Patches() if patches is None else patches
    check_patches(patches, model.factor, fields.shape[1:])
    mean, std = float(fields.mean()), float(fields.std())
    structure, params = nnx.split(model.build(nnx.Rngs(seed)), nnx.Param)

    def error(params, fine: Float[Array, "batch y x"]) -> Float[Array, ""]:
        net = nnx.merge(structure, params)
        fine = fine[:, None]
        return jnp.mean((net(block_mean(fine, model.factor)) - fine) ** 2)

    def loss(params, batch: Float[Array, "batch y x"], key: Key[Array, ""]) -> Float[Array, ""]:
        return error(params, cut(batch, key, patches))

    held = crop((validation - mean) / std, model.factor)
    score = jax.jit(lambda params: error(params, held))
    data: Any = jnp.asarray((fields - mean) / std)
    options: dict[str, Any] = {
        "recipe": recipe,
        "epochs": epochs,
        "seed": seed,
        "validate": Validation(score, every=max(1, epochs // 20)),
        "checkpoint": checkpoint and Checkpoint(checkpoint, made_of(model, patches)),
    }
    if executor is None:
        trained = train(loss, params, data, **options)
    else:
        pieces = partial(cut, patches=patches)
        trained = train_on(executor, error, params, data, pieces, **options)
    return Downscaling(model, mean, std, trained)


def made_of(model: SuperResolution, patches: Patches) -> dict[str, Any]:
    """Return what tells this training apart from others of the same fields and recipe."""
    return {"model": asdict(model), "patches": asdict(patches)}


def graph(model: SuperResolution) -> "nnx.GraphDef[SuperResolutionNet]":
    """Return the structure of the net without making its weights."""
    net = nnx.eval_shape(lambda: model.build(nnx.Rngs(0)))
    return nnx.split(net, nnx.Param)[0]


def cut(
    fields: Float[Array, "batch y x"], key: Key[Array, ""], patches: Patches
) -> Float[Array, "patch side side"]:
    """Cut `patches.count` random squares from each field and turn and mirror each at random."""

    def one(field: Float[Array, "y x"], key: Key[Array, ""]) -> Float[Array, "side side"]:
        place, turn = jax.random.split(key)
        room = jnp.array(field.shape) - patches.size + 1
        corner = jax.random.randint(place, (2,), 0, room)
        square = jax.lax.dynamic_slice(field, (corner[0], corner[1]), (patches.size,) * 2)
        flip_y, flip_x, transpose = jax.random.bernoulli(turn, shape=(3,))
        square = jnp.where(flip_y, square[::-1], square)
        square = jnp.where(flip_x, square[:, ::-1], square)
        return jnp.where(transpose, square.T, square)

    keys = jax.random.split(key, (len(fields), patches.count))
    squares = jax.vmap(lambda field, keys: jax.vmap(lambda k: one(field, k))(keys))(fields, keys)
    return squares.reshape(-1, patches.size, patches.size)


def check_patches(patches: Patches, factor: int, shape: tuple[int, ...]) -> None:
    """Refuse patches that no field can give."""
    if patches.size % factor:
        raise ValueError(
            f"Patches.size is {patches.size}; it must be a multiple of the factor {factor}"
        )
    if patches.size > min(shape):
        raise ValueError(
            f"Patches.size is {patches.size} but the fields are {shape[0]}×{shape[1]} points; "
            f"a patch must fit: pass Patches(size={min(shape) - min(shape) % factor}) or less"
        )
