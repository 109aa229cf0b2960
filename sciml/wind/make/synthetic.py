"""Wind that needs no download: synthetic, physical, reproducible."""

import jax
import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from sciml._arguments import check_whole, whole_seed
from sciml._session import as_usual
from sciml.wind.cf.units import METRES_PER_SECOND
from sciml.wind.make.surface_qg import SurfaceQG, ring, run, velocity

RMS_M_S = 8.0  # assumed: a breezy day; the equation has no unit of its own
SPACING_M = 3000.0  # assumed: that of a convection-permitting forecast
SPIN_UP = 24.0  # in units of side / (2π · wind): the spectrum is steady after that (measured)
INTERVAL = 2.0  # between snapshots; an eddy of the forced size turns over in about 1.6


@as_usual
def generate(
    seed: int, snapshots: int, n: int = 128, config: SurfaceQG | None = None
) -> xr.Dataset:
    """Make snapshots of turbulent wind by `SurfaceQG`; nothing of it was ever measured.

    Sets that must be independent (training, validation, test) need different seeds: snapshots of
    one seed are parts of one run, `INTERVAL` apart.

    Args:
        seed: of initial state and forcing; the same seed gives the same bytes on one platform.
        snapshots: how many.
        n: points along each side.
        config: the equation's constants, in place of the defaults for `n`.

    Returns:
        `wind_speed`, `x_wind`, `y_wind` (time, y, x) in m/s, scaled to a root mean square speed of
        8 m/s over all snapshots, on a 3 km grid: nominal units. `attrs["synthetic"]` is "true".

    Raises:
        ValueError: no snapshots, or a size that `SurfaceQG` refuses.

    >>> from sciml import wind
    >>> made = wind.generate(seed=0, snapshots=1, n=16)
    >>> round(float((made.wind_speed**2).mean() ** 0.5), 3), made.attrs["synthetic"]
    (8.0, 'true')
    """
    check_whole(1, snapshots=snapshots)
    seed = whole_seed(seed)
    config = default_config(n) if config is None else config
    start, spin_up, *keys = jax.random.split(jax.random.key(seed), 2 + snapshots)
    theta = ring(config, start, 1.0)
    theta = advance(config, theta, spin_up, round(SPIN_UP / config.dt))
    winds = []
    for key in tqdm(keys, "turbulence", unit="snapshot", leave=False):
        theta = advance(config, theta, key, round(INTERVAL / config.dt))
        winds.append(np.stack(velocity(config, theta)))
    return in_nominal_units(np.stack(winds), config, seed)


advance = jax.jit(run, static_argnums=(0, 3))  # one program for all runs of an equation


def default_config(n: int) -> SurfaceQG:
    """Return the equation with a time step that is stable at `n` points."""
    return SurfaceQG(n=n, dt=0.01 * min(1.0, 128 / n))


def in_nominal_units(winds: np.ndarray, config: SurfaceQG, seed: int) -> xr.Dataset:
    """Give wind (time, component, y, x) its nominal units, its times and its provenance."""
    rms = float(np.sqrt((winds**2).sum(axis=1).mean()))
    if not np.isfinite(rms):
        raise FloatingPointError(
            f"the wind is not finite with dt {config.dt} at n {config.n}; "
            "pass a smaller SurfaceQG.dt"
        )
    winds = (RMS_M_S / rms * winds).astype(np.float32)
    second = SPACING_M * config.n / (2 * np.pi) / (RMS_M_S / rms)  # the unit of time
    hours = INTERVAL * second / 3600 * np.arange(len(winds))
    title = "SYNTHETIC wind: surface quasi-geostrophic turbulence in nominal units"
    made = labelled(winds[:, 0], winds[:, 1], seed, SPACING_M, title=title, model=str(config))
    said = {"units": "h", "long_name": "time since the spin-up"}
    return made.assign_coords(time=("time", hours, said))


def labelled(u: np.ndarray, v: np.ndarray, seed: int, spacing_m: float, **attrs: str) -> xr.Dataset:
    """Return generated components (time, y, x) with their speed, marked as synthetic."""
    winds = {"wind_speed": np.hypot(u, v), "x_wind": u, "y_wind": v}
    unit, metres = {"units": METRES_PER_SECOND}, {"units": "m"}
    cells = spacing_m * np.arange(u.shape[-1])
    said = {"synthetic": "true", "seed": seed, "spacing_m": spacing_m, "licence": "CC0-1.0"}
    return xr.Dataset(
        {name: (("time", "y", "x"), values, unit) for name, values in winds.items()},
        coords={"y": ("y", cells, metres), "x": ("x", cells, metres)},
        attrs=said | attrs,
    )
