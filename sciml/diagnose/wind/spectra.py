"""Spectra of limited areas, where a plain Fourier transform would see a jump at every edge."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.fft import dctn

from sciml.diagnose.wind.alike import Field, alike, check_gapless, warn_of_uneven


class Spectrum(NamedTuple):
    """Variance in rings of wavenumbers, from long waves to short ones.

    Attributes:
        wavelength_m: of each ring, descending.
        energy: half the variance in each ring, summed over what was passed as components and
            averaged over samples, in the squared unit of the fields: kinetic energy for wind.
    """

    wavelength_m: Float[np.ndarray, " ring"]
    energy: Float[np.ndarray, " ring"]


def cosine_spectrum(*components: Field, spacing_m: float) -> Spectrum:
    """Return the spectrum by the discrete cosine transform, which mirrors a field at its edges.

    Ring r holds r − ½ ≤ N √((m/Ny)² + (n/Nx)²) < r + ½ of the coefficients (m, n), N the shorter
    side; its wavelength is 2 N spacing / r. All rings sum to half the variance of the fields.

    Reference: Denis, Côté and Laprise (2002), Mon. Wea. Rev. 130, 1812.

    Args:
        *components: u and v for kinetic energy, or one field.
        spacing_m: between points.

    Raises:
        ValueError: shapes differ, a value is missing, or the spacing is not positive.

    >>> import numpy as np
    >>> wave = np.cos(np.pi * 4 * (np.arange(32) + 0.5) / 32) * np.ones((32, 1))
    >>> found = cosine_spectrum(wave, spacing_m=1000.0)
    >>> float(found.wavelength_m[found.energy.argmax()])
    16000.0
    """
    parts = alike(*components)
    warn_of_uneven(*components)
    check(parts, spacing_m)
    y, x = parts[0].shape[-2:]
    shortest = min(y, x)
    ring = shortest * np.hypot(np.arange(y)[:, None] / y, np.arange(x)[None] / x)
    power = sum(np.square(np.asarray(dctn(c, axes=(-2, -1), norm="ortho"))) for c in parts)
    energy = ringed(np.asarray(power) / (2 * y * x), ring)
    return Spectrum(2 * shortest * spacing_m / np.arange(1, len(energy) + 1), energy)


def windowed_spectrum(*components: Field, spacing_m: float) -> Spectrum:
    """Return the spectrum by Fourier transform, after removing a plane and under a Hann window.

    Ring r holds r − ½ ≤ N √((ky/Ny)² + (kx/Nx)²) < r + ½; its wavelength is N spacing / r. The
    window is scaled to mean square 1, so that rings sum to half the variance about the plane in
    the mean over many fields, though not for each one.

    Raises:
        ValueError: shapes differ, a value is missing, or the spacing is not positive.

    >>> import numpy as np
    >>> from sciml import diagnose
    >>> wave = np.sin(2 * np.pi * np.arange(64) / 8) * np.ones((64, 1))
    >>> found = diagnose.windowed_spectrum(wave, spacing_m=1e3)
    >>> float(found.wavelength_m[found.energy.argmax()])
    8000.0
    """
    parts = alike(*components)
    warn_of_uneven(*components)
    check(parts, spacing_m)
    y, x = parts[0].shape[-2:]
    shortest = min(y, x)
    window = np.hanning(y + 2)[1:-1, None] * np.hanning(x + 2)[None, 1:-1]
    window /= np.sqrt(np.mean(window**2))
    ring = shortest * np.hypot(np.fft.fftfreq(y)[:, None], np.fft.fftfreq(x)[None])
    power = sum(np.abs(np.fft.fft2(without_plane(c) * window)) ** 2 for c in parts)
    energy = ringed(np.asarray(power) / (2 * (y * x) ** 2), ring)
    return Spectrum(shortest * spacing_m / np.arange(1, len(energy) + 1), energy)


def without_plane(field: Field) -> Field:
    """Return fields less the plane a + b y + c x that fits each best."""
    (field,) = alike(field)
    y, x = field.shape[-2:]
    j, i = np.mgrid[:y, :x].reshape(2, -1)
    basis, _ = np.linalg.qr(np.stack([np.ones(y * x), j, i], axis=1))
    flat = field.reshape(*field.shape[:-2], y * x)
    return (flat - (flat @ basis) @ basis.T).reshape(field.shape)


def ringed(
    power: Float[np.ndarray, "*sample y x"], ring: Float[np.ndarray, "y x"]
) -> Float[np.ndarray, " ring"]:
    """Sum over each ring from 1 on, averaged over samples; the mean, ring 0, is left out."""
    mean = power.reshape(-1, *ring.shape).mean(axis=0)
    number = np.floor(ring + 0.5).astype(int)
    number[ring > 0] = np.maximum(number[ring > 0], 1)
    return np.bincount(number.ravel(), mean.ravel())[1:]


def spectral_ratio(estimate: Spectrum, truth: Spectrum) -> Float[np.ndarray, " ring"]:
    """Return energy(estimate) / energy(truth) in each ring: 1 is right, below is too smooth.

    Raises:
        ValueError: the rings differ.

    >>> import numpy as np
    >>> from sciml import diagnose
    >>> field = np.random.default_rng(0).normal(size=(32, 32))
    >>> whole, half = (diagnose.cosine_spectrum(f, spacing_m=1e3) for f in (field, field / 2))
    >>> bool(np.allclose(diagnose.spectral_ratio(half, whole), 0.25))
    True
    """
    if not np.array_equal(estimate.wavelength_m, truth.wavelength_m):
        counts = [len(each.wavelength_m) for each in (estimate, truth)]
        raise ValueError(
            f"the two spectra have other rings, {counts[0]} and {counts[1]}; take fields of one "
            "shape and spacing"
        )
    return estimate.energy / np.maximum(truth.energy, np.finfo(np.float64).tiny)


def effective_wavelength_m(estimate: Spectrum, truth: Spectrum, *, least: float = 0.5) -> float:
    """Return down to which wavelength an estimate has at least the share `least` of the energy.

    From the longest waves on, the last before the first that falls short; infinite if the longest
    does. What is shorter is not resolved, however fine the grid.

    Raises:
        ValueError: the rings differ.

    >>> import numpy as np
    >>> from sciml import diagnose
    >>> field = np.random.default_rng(0).normal(size=(32, 32))
    >>> whole, half = (diagnose.cosine_spectrum(f, spacing_m=1e3) for f in (field, field / 2))
    >>> diagnose.effective_wavelength_m(half, whole)
    inf
    >>> diagnose.effective_wavelength_m(half, whole, least=0.2) < 3e3
    True
    """
    short = np.flatnonzero(spectral_ratio(estimate, truth) < least)
    if not short.size:
        return float(truth.wavelength_m[-1])
    return float(truth.wavelength_m[short[0] - 1]) if short[0] else float("inf")


def check(components: list[np.ndarray], spacing_m: float) -> None:
    """Refuse what has no spectrum."""
    shapes = {component.shape for component in components}
    if len(shapes) != 1 or not spacing_m > 0:
        raise ValueError(
            f"components have shapes {sorted(shapes)} and spacing_m is {spacing_m}; pass at least "
            "one field, all of one shape, and a positive spacing"
        )
    check_gapless(components, "a spectrum")
