"""What all nets that refine wind share: shapes, statics, block means, the plain loss.

A configuration has `factor`, `wind` (channels in and out: 1 for a speed or a component, 2 for both
components), `statics` (channels known on the fine grid, as terrain and land mask), `beside`
(channels of coarse fields behind the wind, as temperature), `conservative`, `probabilistic`,
`reach` and `build(rngs)`. All fields of a net are normalised alike. What is not known of a fine
field is NaN in a loss, and counts in none.
"""

from abc import abstractmethod
from typing import Any, ClassVar, Protocol, runtime_checkable

import jax.numpy as jnp
from flax import nnx
from jax import lax
from jaxtyping import Array, Float, Key

from sciml.models.wind.square_convolution import Image
from sciml.wind.prepare.coarsen import block_mean, restore_means, spread
from sciml.wind.prepare.upsample import bicubic

Coarse = Float[Array, "batch seen y_lo x_lo"]  # the wind, and what is beside it
Fine = Float[Array, "batch wind y x"]
Statics = Float[Array, "batch statics y x"]
Draws = Float[Array, "draw batch wind y x"]
Scalar = Float[Array, ""]
Ground = Statics | None
Seed = Key[Array, ""] | None
Known = Float[Array, "batch y_lo x_lo in"]

CUBIC = 2  # coarse points to each side that cubic convolution looks at


@runtime_checkable
class Refinement(Protocol):
    """A configuration of a net that refines wind.

    >>> from sciml.models import Refinement, SuperResolution
    >>> isinstance(SuperResolution(factor=4), Refinement)
    True
    """

    probabilistic: ClassVar[bool]

    @property
    def factor(self) -> int:
        """Fine points per coarse point, in each direction."""
        ...

    @property
    def wind(self) -> int:
        """Channels of wind, in and out."""
        ...

    @property
    def statics(self) -> int:
        """Channels of fields known on the fine grid."""
        ...

    @property
    def beside(self) -> int:
        """Channels known on the coarse grid beside the wind."""
        ...

    @property
    def conservative(self) -> bool:
        """Whether block means of the output equal the input."""
        ...

    @property
    def reach(self) -> int:
        """Coarse points to each side on which a fine point depends."""
        ...

    def build(self, rngs: nnx.Rngs) -> "RefinementNet":
        """Return the net with fresh weights."""
        ...


class RefinementNet(nnx.Module):
    """A net (coarse, statics) ↦ fine that is trained on the mean squared error."""

    config: Any

    @abstractmethod
    def __call__(self, coarse: Coarse, statics: Ground = None) -> Fine:
        """Return the estimate of the fine field, the mean of the draws where there are any."""

    def loss(self, coarse: Coarse, fine: Fine, statics: Ground = None, key: Seed = None) -> Scalar:
        """Return ⟨(net(coarse) − fine)²⟩; no draw is needed, so `key` is not used."""
        del key
        return square_error(self(coarse, statics), fine)

    @property
    def separable(self) -> bool:
        """Whether the loss of a batch is the mean of those of its samples, as the plain one is."""
        return type(self).loss is RefinementNet.loss


def filled(fine: Fine, guess: Fine) -> Fine:
    """Return a fine field with what is not known of it (NaN) as in a guess, which is not moved."""
    return jnp.where(jnp.isnan(fine), lax.stop_gradient(guess), fine)


def square_error(estimate: Fine, fine: Fine) -> Scalar:
    """Return ⟨(estimate − fine)²⟩, in which what is not known of the fine field is no error."""
    return jnp.mean(jnp.square(estimate - filled(fine, estimate)))


def check_statics(config: Any, statics: Ground) -> None:
    """Refuse statics of another number of channels than the net was made for."""
    given = 0 if statics is None else statics.shape[1]
    if given != config.statics:
        raise ValueError(
            f"{given} static channels were passed to a net for {config.statics}; pass statics of "
            f"shape (batch, {config.statics}, y, x) on the fine grid, or build the net with "
            f"statics={given}"
        )


def check_inputs(config: Any, coarse: Coarse, statics: Ground) -> None:
    """Refuse fields of another number of channels than the net was made for."""
    check_statics(config, statics)
    if coarse.shape[1] != config.wind + config.beside:
        raise ValueError(
            f"{coarse.shape[1]} coarse channels were passed to a net of {config.wind} of wind and "
            f"{config.beside} beside it; pass (batch, {config.wind + config.beside}, y, x)"
        )


def at_coarse(config: Any, coarse: Coarse, statics: Ground) -> Known:
    """Return the inputs of a net at coarse resolution, channels last.

    The factor² values of a static field within a coarse cell become that cell's channels.
    """
    check_inputs(config, coarse, statics)
    inputs = coarse.transpose(0, 2, 3, 1)
    if statics is None:
        return inputs
    return jnp.concatenate([inputs, unshuffle(statics, config.factor)], axis=-1)


def at_fine(config: Any, coarse: Coarse, statics: Ground) -> Image:
    """Return the inputs of a net at fine resolution, channels last: bicubic wind and statics."""
    check_inputs(config, coarse, statics)
    fine = bicubic(coarse, config.factor)
    fields = fine if statics is None else jnp.concatenate([fine, statics], axis=1)
    return fields.transpose(0, 2, 3, 1)


def refined(config: Any, coarse: Coarse, residual: Fine) -> Fine:
    """Return bicubic(wind) + residual, shifted to the coarse block means if `conservative`."""
    wind = coarse[:, : config.wind]
    fine = bicubic(wind, config.factor) + residual
    return restore_means(fine, wind) if config.conservative else fine


def without_means(field: Float[Array, "*batch y x"], factor: int) -> Float[Array, "*batch y x"]:
    """Subtract from each block its mean: project onto what a coarse field does not know."""
    return field - spread(block_mean(field, factor), factor)


def shuffle(x: Image, factor: int) -> Float[Array, "batch wind y_hi x_hi"]:
    """Lay the channels of each coarse point, wind · factor², out as the points of its block."""
    batch, y, x_, channels = x.shape
    wind = channels // factor**2
    cells = x.reshape(batch, y, x_, wind, factor, factor).transpose(0, 3, 1, 4, 2, 5)
    return cells.reshape(batch, wind, factor * y, factor * x_)


def unshuffle(fine: Float[Array, "batch channel y_hi x_hi"], factor: int) -> Image:
    """Gather the points of each block as channels of its coarse point: undo `shuffle`."""
    batch, channels, y, x = fine.shape
    cells = fine.reshape(batch, channels, y // factor, factor, x // factor, factor)
    cells = cells.transpose(0, 2, 4, 1, 3, 5)
    return cells.reshape(batch, y // factor, x // factor, channels * factor**2)
