"""ATen's complex numbers and Fourier transforms as JAX."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from math import prod
from typing import Any

import jax
import jax.numpy as jnp

from wse.models.pytorch.table import Table

NORMS = ("backward", "ortho", "forward")  # by nothing, the root of the count, the count


def real_to_complex(x: Any, dim: Any, norm: int, onesided: bool) -> Any:
    """The transform of real numbers, of which half says all."""
    transform = jnp.fft.rfftn if onesided else jnp.fft.fftn
    return transform(x, axes=tuple(dim), norm=NORMS[norm])


def complex_to_complex(x: Any, dim: Any, norm: int, forward: bool) -> Any:
    """The transform of complex numbers, or its inverse."""
    if forward:
        return jnp.fft.fftn(x, axes=tuple(dim), norm=NORMS[norm])
    return jnp.fft.ifftn(x, axes=tuple(dim), norm=NORMS[2 - norm])


def complex_to_real(x: Any, dim: Any, norm: int, last: int) -> Any:
    """The inverse, of which only half was given, to so many real numbers along the last axis."""
    *lead, axis = dim
    for one in lead:
        x = jnp.fft.ifft(x, axis=one, norm="forward")
    y = jnp.fft.irfft(x, last, axis=axis, norm="forward")
    count = prod(y.shape[one] for one in dim)
    return y * (1.0, count**-0.5, 1 / count)[norm]


SPECTRA: Table = {
    "_fft_r2c": real_to_complex,
    "_fft_c2c": complex_to_complex,
    "_fft_c2r": complex_to_real,
    "view_as_complex": lambda x: jax.lax.complex(x[..., 0], x[..., 1]),
    "view_as_real": lambda x: jnp.stack([jnp.real(x), jnp.imag(x)], axis=-1),
    "polar": lambda r, angle: jax.lax.complex(r * jnp.cos(angle), r * jnp.sin(angle)),
    "complex": jax.lax.complex,
    **dict.fromkeys(("conj", "_conj", "conj_physical", "_conj_physical"), jnp.conj),
    "angle": jnp.angle,
}
