"""Interpolation from a coarse to a fine grid: what a learned model has to beat.

Both grids are cell centred: fine point i lies at coarse coordinate (i + ½)/f − ½. Beyond the edge
there is nothing: the weights that fall outside are left out and the others scaled up to sum to 1.
"""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from sciml._arguments import check_whole
from sciml._labels import last
from sciml.wind.cf.check import warn_of_uneven
from sciml.wind.prepare.coarsen import Values, restore_means, spread

Coarse = Float[Values, "*batch y_lo x_lo"] | xr.DataArray
Fine = Float[Array, "*batch y x"]


def block(coarse: Coarse, factor: int) -> Fine:
    """Give every fine point the value of its block (nearest neighbour).

    >>> import numpy as np
    >>> block(np.array([[1.0, 2.0]]), 2).tolist()
    [[1.0, 1.0, 2.0, 2.0], [1.0, 1.0, 2.0, 2.0]]
    """
    check_whole(1, factor=factor)
    return spread(coarse, factor)


def bilinear(coarse: Coarse, factor: int) -> Fine:
    """Interpolate linearly in each direction.

    >>> import numpy as np
    >>> bilinear(np.ones((3, 4)), 2).shape
    (6, 8)
    """
    return resize(coarse, factor, "linear")


def bicubic(coarse: Coarse, factor: int) -> Fine:
    """Interpolate by cubic convolution in each direction, with a = −1/2.

    Reference: Keys (1981), IEEE Trans. Acoust. Speech Signal Process. 29, 1153.

    >>> import numpy as np
    >>> bicubic(np.ones((3, 4)), 2).shape
    (6, 8)
    """
    return resize(coarse, factor, "cubic")


def conservative_bicubic(coarse: Coarse, factor: int) -> Fine:
    """Interpolate by `bicubic`, then shift each block to its coarse value.

    Plain interpolation does not give the coarse field back when it is coarsened again; this does,
    exactly, and its error is never larger. It is the honest baseline.

    >>> import numpy as np
    >>> coarse = np.array([[1.0, 2.0], [3.0, 5.0]])
    >>> from sciml.wind import block_mean
    >>> block_mean(conservative_bicubic(coarse, 4), 4).round(3).tolist()
    [[1.0, 2.0], [3.000000238418579, 5.0]]
    """
    return restore_means(bicubic(coarse, factor), coarse)


def spectral(coarse: Coarse, factor: int) -> Fine:
    """Continue the cosine series of the coarse field: no wave shorter than two cells is added.

    The discrete cosine transform mirrors the field at its edges, so these are no jumps. It is not
    among `METHODS`, and not conservative: apply `restore_means` to make it so.

    >>> import numpy as np
    >>> spectral(np.ones((1, 4, 4)), 2).shape
    (1, 8, 8)
    """
    check_whole(1, factor=factor)
    coarse = jnp.asarray(last(told(coarse), "y", "x"))
    along_y, along_x = (continuation(n, factor) for n in coarse.shape[-2:])
    return jnp.asarray(along_y @ coarse @ along_x.T)


def continuation(n: int, factor: int) -> Float[np.ndarray, "fine coarse"]:
    """Return the matrix that takes n values to their cosine series at n · factor points."""
    k = np.arange(n)
    series = np.cos(np.pi / n * k[:, None] * (np.arange(n) + 0.5)) * (2 - (k == 0))[:, None] / n
    points = np.cos(np.pi / (n * factor) * (np.arange(n * factor) + 0.5)[:, None] * k)
    return (points @ series).astype(np.float32)


METHODS = {
    "block": block,
    "bilinear": bilinear,
    "bicubic": bicubic,
    "conservative bicubic": conservative_bicubic,
}


def resize(coarse: Coarse, factor: int, method: str) -> Fine:
    """Resize the two last axes."""
    check_whole(1, factor=factor)
    coarse = jnp.asarray(last(told(coarse), "y", "x"))
    y, x = coarse.shape[-2:]
    return jax.image.resize(coarse, (*coarse.shape[:-2], factor * y, factor * x), method)


def told(coarse: Coarse) -> Coarse:
    """Return a field; a labelled one whose points are not evenly spaced is warned of."""
    return warn_of_uneven(coarse) if isinstance(coarse, xr.DataArray) else coarse
