"""Wind whose scales know nothing of each other: the null against which learning is measured."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from sciml._arguments import check_whole, whole_seed
from sciml.wind.cf.kinds import of_fields
from sciml.wind.cf.names import EARTH, GRID
from sciml.wind.make.surface_qg import wavenumbers, weights
from sciml.wind.make.synthetic import labelled

SMALLEST = 16


def two_slopes(k: Any, k_t: float = 12.0) -> Any:
    """Return (k/k_t)⁻³ + (k/k_t)^(−5/3) for k > 0: steep at large scales, shallow at small ones.

    The order in which the atmosphere has the two ranges (Nastrom and Gage 1985, J. Atmos. Sci. 42,
    950).
    """
    return (k / k_t) ** -3.0 + (k / k_t) ** (-5 / 3)


def gaussian(
    seed: int,
    snapshots: int,
    n: int = 128,
    *,
    spectrum: Callable[[Any], Any] = two_slopes,
    rms_m_s: float = 8.0,
    spacing_m: float = 3000.0,
) -> xr.Dataset:
    """Make divergence-free Gaussian wind of a given spectrum, doubly periodic.

    All Fourier coefficients of the streamfunction are independent, so the best estimate of the
    fine field from the coarse one is linear: what a net gains here over interpolation is the gain
    of a linear filter, and no more can be had. The expected kinetic energy in ring k is
    proportional to `spectrum(k)`.

    Args:
        seed: the same gives the same fields; another gives independent ones.
        snapshots: how many, all independent.
        n: points along each side, even.
        spectrum: of wavenumber k (in waves along a side), an array of positive numbers.
        rms_m_s: root mean square speed expected over all snapshots (nominal).
        spacing_m: between points (nominal).

    Returns:
        `wind_speed`, `x_wind`, `y_wind` (time, y, x), marked as synthetic.

    Raises:
        ValueError: there are no snapshots, n is odd or below 16, or a number is not positive.

    >>> list(gaussian(seed=0, snapshots=2, n=16).sizes.values())
    [2, 16, 16]
    """
    seed = whole_seed(seed)
    check_whole(1, snapshots=snapshots)
    check_whole(SMALLEST, n=n)
    if n % 2:
        raise ValueError(f"n is {n}; it must be even: pass {n + 1}")
    for name, value in {"rms_m_s": rms_m_s, "spacing_m": spacing_m}.items():
        if not 0 < value < np.inf:
            raise ValueError(f"{name} is {value}; it must be a positive number")
    kx, ky, k = wavenumbers(n)
    ring = np.floor(k + 0.5).astype(int)
    modes = np.bincount(ring.ravel(), weights(n).ravel())
    given = np.broadcast_to(np.asarray(spectrum(np.maximum(ring, 1)), np.float64), ring.shape)
    if not (np.isfinite(given).all() and given.min() >= 0 and given[k > 0].any()):
        raise ValueError(
            f"spectrum gives {given.min():g} to {given.max():g}; energies must be finite, none "
            "negative and some positive"
        )
    energy = np.where(k > 0, given / modes[ring], 0.0)
    energy[np.broadcast_to((kx >= n / 2) | (np.abs(ky) >= n / 2), k.shape)] = 0.0
    amplitude = np.sqrt(energy) / np.where(k > 0, k, 1)
    noise = np.fft.rfft2(np.random.default_rng(seed).normal(size=(snapshots, n, n)))
    psi = noise * amplitude
    u, v = np.fft.irfft2(-1j * ky * psi, s=(n, n)), np.fft.irfft2(1j * kx * psi, s=(n, n))
    expected = np.sum(weights(n) * energy) / n**2  # of u² + v², the noise having power n² a mode
    u, v = (np.asarray(rms_m_s / np.sqrt(expected) * c, np.float32) for c in (u, v))
    title = "SYNTHETIC wind: Gaussian, scales independent of each other, nominal units"
    return labelled(u, v, seed, spacing_m, title=title)


@of_fields
def random_phases(winds: xr.Dataset, seed: int) -> xr.Dataset:
    """Return wind of the same spectrum, snapshot by snapshot, without relations between scales.

    Each wave is shifted at random, both components by the same, so that the spectrum, the mean and
    the absence of divergence stay. What was told of the wind otherwise, as its components to east
    and north, is left out. A learned model must lose here what it gained from structure.

    Args:
        winds: `x_wind` and `y_wind` on (time, y, x), periodic in both directions.
        seed: of the shifts.

    Raises:
        ValueError: a side is odd, or a value is missing.

    >>> from sciml.wind import gaussian
    >>> winds = gaussian(seed=0, snapshots=1, n=16)
    >>> dict(random_phases(winds, seed=1).sizes)
    {'time': 1, 'y': 16, 'x': 16}
    """
    winds = winds.transpose("time", ..., "y", "x")
    winds = winds.drop_vars([n for n in (*EARTH, "wind_from_direction") if n in winds])
    y, x = winds.sizes["y"], winds.sizes["x"]
    if y % 2 or x % 2:
        raise ValueError(f"the fields are {y}×{x}; both sides must be even")
    if lost := sum(int(winds[name].isnull().sum()) for name in GRID):
        raise ValueError(f"{lost} values are missing, and a wave needs all: select a part")
    shape = (winds.sizes["time"], y, x)
    noise = np.fft.rfft2(np.random.default_rng(seed).normal(size=shape))
    phase = noise / np.abs(noise)
    own = [(0, 0), (0, x // 2), (y // 2, 0), (y // 2, x // 2)]  # real: mean and shortest waves
    for at in own:
        phase[(slice(None), *at)] = 1.0
    result = winds.copy()
    for name in ("x_wind", "y_wind"):
        turned = np.fft.irfft2(np.fft.rfft2(winds[name].values) * phase, s=(y, x))
        result[name] = winds[name].copy(data=turned.astype(np.float32))
    speed = np.hypot(result["x_wind"].values, result["y_wind"].values)
    result["wind_speed"] = winds["x_wind"].copy(data=speed)
    return result.assign_attrs(title="SYNTHETIC null: random phases", synthetic="true")
