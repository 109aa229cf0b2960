"""Hills for generated wind: faster over crests, slower in valleys, and known beforehand."""

import numpy as np
import xarray as xr
from jaxtyping import Float

from sciml.wind.cf.kinds import of_fields
from sciml.wind.make.surface_qg import wavenumbers

HEIGHT_M = 300.0  # assumed: standard deviation of hilly country
SLOPE = -2.0  # sourced: spectra of topography along a line, Huang and Turcotte (1989), JGR 94, 7491
LARGEST = 0.8  # of the change by a hill: the wind keeps its direction


def hills(seed: int, n: int, shortest: float = 4.0) -> Float[np.ndarray, "y x"]:
    """Return a periodic orography (n, n) in metres, at least 0, no wave below `shortest` points."""
    k = wavenumbers(n)[2]
    inside = (k > 0) & (k <= n / shortest)
    amplitude = np.where(inside, np.where(k > 0, k, 1) ** ((SLOPE - 1) / 2), 0.0)
    noise = np.fft.rfft2(np.random.default_rng(seed).normal(size=(n, n)))
    height = np.fft.irfft2(noise * amplitude, s=(n, n))
    height *= HEIGHT_M / height.std()
    return np.asarray(height - height.min(), np.float32)


@of_fields
def with_hills(winds: xr.Dataset, seed: int, gain: float = 0.2) -> xr.Dataset:
    """Return generated wind over hills, with the `orography` that changed it as a covariate.

        w′ = w · (1 + gain · (h − ⟨h⟩) / std h),  the change limited to ±80 %

    A stated factor, not physics: it gives terrain something that can be learned, exactly known. The
    wind is no longer free of divergence.

    Args:
        winds: of `generate`, on a square of even side.
        seed: of the hills; independent parts may share their hills, as real ones do.
        gain: change of speed one standard deviation above the mean height.

    Raises:
        ValueError: the fields are not square or odd, or the gain is not finite.

    >>> from sciml import wind
    >>> hilly = wind.with_hills(wind.gaussian(seed=0, snapshots=2, n=16), seed=1)
    >>> hilly.orography.dims
    ('y', 'x')
    """
    winds = winds.transpose(..., "y", "x")
    y, x = winds.sizes["y"], winds.sizes["x"]
    if y != x or y % 2 or not np.isfinite(gain):
        raise ValueError(
            f"the fields are {y}×{x} and gain is {gain}; they must be an even square, and finite"
        )
    height = hills(seed, y)
    change = np.clip(gain * (height - height.mean()) / height.std(), -LARGEST, LARGEST)
    result = winds.copy()
    for name in ("wind_speed", "x_wind", "y_wind"):
        result[name] = winds[name].copy(data=winds[name].values * (1 + change).astype(np.float32))
    result["orography"] = (("y", "x"), height, {"units": "m", "standard_name": "surface_altitude"})
    return result.assign_attrs(terrain=f"hills of seed {seed}, speed-up gain {gain:g}")
