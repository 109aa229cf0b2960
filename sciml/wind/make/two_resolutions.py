"""One weather by two models: surface quasi-geostrophic turbulence at a fine and a coarse grid."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Key
from tqdm.auto import tqdm

from sciml._session import as_usual
from sciml.wind.make.surface_qg import (
    Spectrum,
    SurfaceQG,
    filtered,
    resolved,
    ring,
    run,
    velocity,
    wavenumbers,
)
from sciml.wind.make.synthetic import (
    INTERVAL,
    SPACING_M,
    SPIN_UP,
    default_config,
    in_nominal_units,
    labelled,
)

LEAD = 0.5  # assumed: of a forecast, about a third of the time in which a forced eddy turns over


@as_usual
def generate_two(
    seed: int, snapshots: int, n: int = 128, factor: int = 4, *, lead: float = LEAD
) -> dict[str, xr.Dataset]:
    """Make snapshots of one turbulent weather by a fine and by a coarse model; none is averaged.

    The fine model (`SurfaceQG` of n points) runs on. Every `INTERVAL` the coarse model, of
    n / factor points, starts from the large scales of the fine one and forecasts for `lead`, with
    the same forcing; what it cannot resolve it lacks, and it errs on the rest. Its points are the
    middles of the blocks of the fine grid.

    Args:
        seed: of initial state and forcing.
        snapshots: how many.
        n: points along each side of the fine grid.
        factor: fine points per coarse one, in each direction.
        lead: of each forecast, in the equation's unit of time.

    Returns:
        `coarse` and `fine`, in nominal units as `generate`, with one time axis.

    Raises:
        ValueError: no snapshots, a lead that is not positive or above `INTERVAL`, or a size that
            `SurfaceQG` refuses.

    >>> from sciml import wind
    >>> both = wind.generate_two(seed=0, snapshots=1, n=32, factor=2)
    >>> both["coarse"].x_wind.shape, both["fine"].x_wind.shape
    ((1, 16, 16), (1, 32, 32))
    """
    if snapshots < 1 or not 0 < lead <= INTERVAL or n % factor:
        raise ValueError(
            f"snapshots is {snapshots}, lead {lead}, n {n} and factor {factor}; they must be at "
            f"least 1, in (0, {INTERVAL:g}], and a multiple of the factor"
        )
    fine = default_config(n)
    coarse = SurfaceQG(n=n // factor, dt=fine.dt)
    start, spin_up, *keys = jax.random.split(jax.random.key(seed), 2 + snapshots)
    theta = on_its_way(fine, ring(fine, start, 1.0), spin_up, round(SPIN_UP / fine.dt))
    found: dict[str, list[np.ndarray]] = {"fine": [], "coarse": []}
    for key in tqdm(keys, "turbulence twice", unit="snapshot", leave=False):
        rest, forecast = jax.random.split(key)
        theta = on_its_way(fine, theta, rest, round((INTERVAL - lead) / fine.dt))
        theta, other = together(fine, coarse, theta, forecast, round(lead / fine.dt))
        for name, config, spectrum in (("fine", fine, theta), ("coarse", coarse, other)):
            found[name].append(np.stack(velocity(config, spectrum)))
    made = in_nominal_units(np.stack(found["fine"]), fine, seed)
    scale = float(made.x_wind[0].std()) / float(found["fine"][0][0].std())
    u, v = np.moveaxis((scale * np.stack(found["coarse"])).astype(np.float32), 1, 0)
    title = "SYNTHETIC wind: a coarse model's forecasts of surface quasi-geostrophic turbulence"
    near = labelled(u, v, seed, factor * SPACING_M, title=title, model=str(coarse))
    middles = SPACING_M * (factor * np.arange(n // factor) + (factor - 1) / 2)
    axes: Any = {axis: (axis, middles, {"units": "m"}) for axis in ("y", "x")}
    return {"coarse": near.assign_coords(time=made.time.variable, **axes), "fine": made}


on_its_way = jax.jit(run, static_argnums=(0, 3))


@partial(jax.jit, static_argnums=(0, 1, 4))
def together(
    fine: SurfaceQG, coarse: SurfaceQG, theta: Spectrum, key: Key[Array, ""], steps: int
) -> tuple[Spectrum, Array]:
    """Advance the fine model, and the coarse one from its large scales, by the same forcing."""

    def one(state: tuple[Spectrum, Array], key: Key[Array, ""]) -> tuple[tuple[Array, Array], None]:
        kick = ring(fine, key, float(np.sqrt(fine.power * fine.dt)))
        return (
            filtered(fine, state[0], kick),
            filtered(coarse, state[1], large_scales(kick, coarse.n)),
        ), None

    state = (theta, large_scales(theta, coarse.n))
    return jax.lax.scan(one, state, jax.random.split(key, steps))[0]


def large_scales(theta: Spectrum, n: int) -> Array:
    """Return what n points resolve of a spectrum, seen from the middles of the blocks."""
    size, half = theta.shape[0], n // 2
    kx, ky, _ = wavenumbers(n)
    offset = (size / n - 1) / 2 * 2 * np.pi / size
    part = jnp.concatenate([theta[:half, : half + 1], theta[-half:, : half + 1]]) * (n / size) ** 2
    return part * resolved(n) * np.exp(1j * offset * (kx + ky))
