"""From fine to coarse without loss of the mean."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax import lax
from jaxtyping import Array, Float, Shaped

from sciml._arguments import check_whole
from sciml._labels import last

LARGEST = 16  # more than a fine field of 128 points would leave 8 of
Values = Array | np.ndarray  # what comes from files is NumPy; what goes out is JAX


def crop(
    field: Float[Values, "*batch y x"] | xr.DataArray, factor: int
) -> Float[Array, "*batch y_cut x_cut"]:
    """Return the largest part of `field`, from its first point on, that whole blocks cover.

    Raises:
        ValueError: the factor is not positive or larger than the field.

    >>> import numpy as np
    >>> crop(np.zeros((9, 10)), 4).shape
    (8, 8)
    """
    field = jnp.asarray(last(field, "y", "x"))
    y, x = field.shape[-2:]
    check_whole(1, factor=factor)
    if factor > min(y, x):
        raise ValueError(
            f"factor is {factor} on a {y}×{x} field; it must be between 1 and {min(y, x)}"
        )
    return field[..., : y - y % factor, : x - x % factor]


def block_mean(
    field: Float[Values, "*batch y x"] | xr.DataArray, factor: int
) -> Float[Array, "*batch y_lo x_lo"]:
    """Return the mean of each factor × factor block: what a coarse model's cell stands for.

        coarse[J, I] = Σ_{j, i < f} fine[f J + j, f I + i] / f²

    It conserves the integral over any whole block (on a grid of equal cells).

    Raises:
        ValueError: the factor does not divide both sides; `crop` first.

    >>> import numpy as np
    >>> field = np.arange(16.0).reshape(4, 4)
    >>> block_mean(field, 2).tolist()
    [[2.5, 4.5], [10.5, 12.5]]
    """
    field = jnp.asarray(last(field, "y", "x"))
    y, x = field.shape[-2:]
    check_whole(1, factor=factor)
    if y % factor or x % factor:
        raise ValueError(
            f"factor is {factor} on a {y}×{x} field; it must divide both sides: "
            "crop(field, factor) first"
        )
    return _block_mean(field, factor)


# Each operation by itself would be a program of its own, to be compiled for each shape of a field.
@partial(jax.jit, static_argnums=1)
def _block_mean(field: Float[Array, "*batch y x"], factor: int) -> Float[Array, "*batch y_lo x_lo"]:
    *lead, y, x = field.shape
    return field.reshape(*lead, y // factor, factor, x // factor, factor).mean(axis=(-3, -1))


def block_mean_present(
    field: Float[Values, "*batch y x"] | xr.DataArray, factor: int, least: float = 0.5
) -> Float[Array, "*batch y_lo x_lo"]:
    """Return the mean of the points of each block that are there.

    A block of which less than the share `least` is there is missing (NaN): a cell of sea with a
    strip of coast is not the coast. Without missing points it is `block_mean`.

    Raises:
        ValueError: the factor does not divide both sides, or the share is not in (0, 1].

    >>> import numpy as np
    >>> from sciml import wind
    >>> sea = np.array([[1.0, np.nan, 3.0, 3.0], [1.0, 1.0, np.nan, np.nan]])
    >>> wind.block_mean_present(sea, 2, least=0.6).tolist()
    [[1.0, nan]]
    """
    if not 0 < least <= 1:
        raise ValueError(f"least is {least}; it must be a share above 0 and at most 1")
    return _block_mean_present(jnp.asarray(last(field, "y", "x")), factor, least)


@partial(jax.jit, static_argnums=1)
def _block_mean_present(
    field: Float[Array, "*batch y x"], factor: int, least: Any
) -> Float[Array, "*batch y_lo x_lo"]:
    there = jnp.isfinite(field)
    share = block_mean(there.astype(field.dtype), factor)
    mean = block_mean(jnp.where(there, field, 0), factor) / jnp.where(share > 0, share, 1)
    enough = share >= least - 1e-6  # a share is a rounded mean
    return jnp.where(enough, mean, jnp.nan)


def pair(
    field: Float[Values, "*batch y x"] | xr.DataArray, factor: int
) -> tuple[Float[Array, "*batch y_lo x_lo"], Float[Array, "*batch y_cut x_cut"]]:
    """Return what a coarse model would know of a field, and the field, cut to whole blocks.

    Components are averaged as components: the speed of a mean wind is below the mean speed.

    Raises:
        ValueError: the factor is not one of 2 to 16, or larger than the field.

    >>> import numpy as np
    >>> coarse, fine = pair(np.ones((9, 10)), 4)
    >>> coarse.shape, fine.shape
    ((2, 2), (8, 8))
    """
    check_whole(1, factor=factor)
    if not 2 <= factor <= LARGEST:
        raise ValueError(f"factor is {factor}; it must be 2 to {LARGEST}")
    fine = crop(field, factor)
    return block_mean_present(fine, factor), fine


def pair_known(
    field: Float[Values, "*batch y x"] | xr.DataArray, factor: int
) -> tuple[Float[Array, "*batch y_lo x_lo"], Float[Array, "*batch y x"]]:
    """Return `block_mean_present`, and the field, NaN in those blocks where that is missing."""
    coarse = block_mean_present(field, factor)
    fine = jnp.asarray(last(field, "y", "x"))
    return coarse, jnp.where(spread(jnp.isfinite(coarse), factor), fine, jnp.nan)


def continued(field: Float[Values, "*batch y x"], reach: int = 0) -> Float[Array, "*batch y x"]:
    """Return a field without gaps, as a net is shown it: beside what is known, its continuation.

    From the edges inwards, up to `reach` points, a missing point takes the mean of those of its
    eight neighbours that are there or were filled before; farther in it is 0.
    """
    field = jnp.asarray(field)
    if reach:
        return _continued(field, reach)
    return jnp.where(jnp.isfinite(field), field, 0)


@jax.jit
def _continued(field: Float[Array, "*batch y x"], reach: Any) -> Float[Array, "*batch y x"]:
    there = jnp.isfinite(field)
    square = (1,) * (field.ndim - 2) + (3, 3)

    def around(of: Float[Array, "*batch y x"]) -> Float[Array, "*batch y x"]:
        return lax.reduce_window(of, 0.0, lax.add, square, (1,) * field.ndim, "SAME")

    def inwards(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        left, values, there = state
        count = around(there.astype(values.dtype))
        values = jnp.where(there, values, around(values) / jnp.maximum(count, 1))
        return left - 1, values, count > 0

    def lasts(state: tuple[Array, Array, Array]) -> Array:
        return (state[0] > 0) & ~state[2].all()

    return lax.while_loop(lasts, inwards, (reach, jnp.where(there, field, 0), there))[1]


def spread(
    coarse: Shaped[Values, "*batch y_lo x_lo"] | xr.DataArray, factor: int
) -> Shaped[Array, "*batch y x"]:
    """Return the fine field that is constant on each block."""
    return _spread(jnp.asarray(last(coarse, "y", "x")), factor)


@partial(jax.jit, static_argnums=1)
def _spread(coarse: Shaped[Array, "*batch y_lo x_lo"], factor: int) -> Shaped[Array, "*batch y x"]:
    return jnp.repeat(jnp.repeat(coarse, factor, axis=-2), factor, axis=-1)


def restore_means(
    fine: Float[Values, "*batch y x"] | xr.DataArray,
    coarse: Float[Values, "*batch y_lo x_lo"] | xr.DataArray,
) -> Float[Array, "*batch y x"]:
    """Shift each block of `fine` by a constant so that its mean is the coarse value.

        fine + spread(coarse − block_mean(fine))

    It is the orthogonal projection of `fine` onto the fields with these block means, so it never
    moves away from a truth that has them: the error falls or stays.

    Raises:
        ValueError: the sides of `fine` are not one common multiple of those of `coarse`.

    >>> import numpy as np
    >>> restore_means(np.zeros((2, 4)), np.array([[1.0, 2.0]])).tolist()
    [[1.0, 1.0, 2.0, 2.0], [1.0, 1.0, 2.0, 2.0]]
    """
    fine, coarse = (jnp.asarray(last(each, "y", "x")) for each in (fine, coarse))
    factor = fine.shape[-1] // coarse.shape[-1]
    if fine.shape[-2:] != (factor * coarse.shape[-2], factor * coarse.shape[-1]):
        raise ValueError(
            f"fine is {fine.shape[-2:]} and coarse {coarse.shape[-2:]}; the fine sides must be one "
            "common multiple of the coarse ones"
        )
    return _restore_means(fine, coarse, factor)


@partial(jax.jit, static_argnums=2)
def _restore_means(
    fine: Float[Array, "*batch y x"], coarse: Float[Array, "*batch y_lo x_lo"], factor: int
) -> Float[Array, "*batch y x"]:
    return fine + spread(coarse - block_mean(fine, factor), factor)


def restore_means_above(
    fine: Float[Values, "*batch y x"] | xr.DataArray,
    coarse: Float[Values, "*batch y_lo x_lo"] | xr.DataArray,
    least: float = 0.0,
) -> Float[Array, "*batch y x"]:
    """Return the nearest field to `fine` with these block means and no value below `least`.

        max(fine − τ, least),  τ in each block such that its mean is the coarse value

    For wind speeds, which `restore_means` or a draw can make negative in calm blocks. The truth
    lies in this convex set, so the error falls or stays. Where nothing is below `least` it is
    `restore_means`. A block whose coarse value is itself below `least` becomes `least` all over.

    Reference: Duchi et al. (2008), ICML 25, 272 (projection onto the simplex by sorting).

    Raises:
        ValueError: the sides of `fine` are not one common multiple of those of `coarse`.

    >>> import numpy as np
    >>> fine = np.array([[-3.0, 2.0], [2.0, 5.0]])
    >>> restore_means_above(fine, np.array([[1.5]])).tolist()
    [[0.0, 1.0], [1.0, 4.0]]
    """
    fine, coarse = (jnp.asarray(last(each, "y", "x")) for each in (fine, coarse))
    return _restore_means_above(fine, coarse, restore_means(fine, coarse), least)


@jax.jit
def _restore_means_above(
    fine: Float[Array, "*batch y x"],
    coarse: Float[Array, "*batch y_lo x_lo"],
    free: Float[Array, "*batch y x"],
    least: Any,
) -> Float[Array, "*batch y x"]:
    factor = fine.shape[-1] // coarse.shape[-1]
    lead, (y, x) = coarse.shape[:-2], coarse.shape[-2:]
    cells = jnp.moveaxis(free.reshape(*lead, y, factor, x, factor), -3, -2)
    above = cells.reshape(*lead, y, x, factor**2) - least
    total = jnp.maximum((coarse - least) * factor**2, 0)[..., None]
    falling = -jnp.sort(-above, axis=-1)
    count = jnp.arange(1, factor**2 + 1)
    shift = (jnp.cumsum(falling, axis=-1) - total) / count
    kept = jnp.maximum((falling > shift).sum(axis=-1, keepdims=True), 1)
    shift = jnp.take_along_axis(shift, kept - 1, axis=-1)
    cells = (least + jnp.maximum(above - shift, 0)).reshape(*lead, y, x, factor, factor)
    return jnp.moveaxis(cells, -2, -3).reshape(fine.shape)
