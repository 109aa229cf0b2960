"""From the height of a wind to another one, by a stated profile and never in silence."""

from typing import Any

import numpy as np
import xarray as xr

from sciml._arguments import check_number
from sciml.wind.cf.changes import changed
from sciml.wind.cf.kinds import of_labelled
from sciml.wind.cf.names import IN_M_S

# Sourced: the one-seventh law of neutral flow over smooth land; Counihan (1975), Atmos. Environ. 9.
EXPONENT = 1 / 7


@of_labelled
def power_law(winds: xr.Dataset, height_m: float, exponent: Any = EXPONENT) -> xr.Dataset:
    """Return the wind at another height by w(z) = w(z₀) (z / z₀)^exponent.

    Args:
        winds: in the schema of `open`, at one height that its attributes state.
        height_m: where to.
        exponent: a number, or a field on (y, x) or (time, y, x).

    Raises:
        ValueError: the height of `winds` is not known, or a height is not positive.

    >>> import xarray as xr
    >>> winds = xr.Dataset({"wind_speed": ("x", [5.0], {"height_m": 10.0})})
    >>> power_law(winds, 80.0).wind_speed.values.round(2)
    array([6.73])
    """
    here = stated_height_m(winds, height_m)
    text = f"power law with exponent {exponent:.3f}" if np.ndim(exponent) == 0 else "power law"
    return scaled(winds, (height_m / here) ** exponent, here, height_m, text)


@of_labelled
def log_law(winds: xr.Dataset, height_m: float, roughness_m: Any) -> xr.Dataset:
    """Return the wind at another height by w(z) = w(z₀) ln(z / r) / ln(z₀ / r): neutral air.

    Args:
        winds: in the schema of `open`, at one height that its attributes state.
        height_m: where to.
        roughness_m: the length r of the ground, a number or a field; well below both heights.

    Raises:
        ValueError: the height of `winds` is not known, or not above the roughness.

    >>> import xarray as xr
    >>> winds = xr.Dataset({"wind_speed": ("x", [5.0], {"height_m": 10.0})})
    >>> log_law(winds, 80.0, 0.03).wind_speed.values.round(2)
    array([6.79])
    """
    here = stated_height_m(winds, height_m)
    if not (np.asarray(roughness_m) > 0).all() or np.max(roughness_m) >= min(here, height_m):
        raise ValueError(
            f"roughness_m is {np.min(roughness_m)} to {np.max(roughness_m)}; it must be positive "
            f"and below both heights, {here:g} and {height_m:g} m"
        )
    factor = np.log(height_m / roughness_m) / np.log(here / roughness_m)
    return scaled(winds, factor, here, height_m, "logarithmic law")


def stated_height_m(winds: xr.Dataset, height_m: float) -> float:
    """Return the one height that all winds state."""
    check_number(height_m=height_m)
    heights = {winds[name].attrs.get("height_m") for name in IN_M_S if name in winds}
    here = next(iter(heights), None)
    if not 0 < height_m < np.inf:
        raise ValueError(f"height_m is {height_m}; it must be positive: name one in metres")
    if len(heights) != 1 or here is None:
        there = " and ".join("no height" if h is None else f"{h:g} m" for h in heights) or "none"
        raise ValueError(
            f"the winds state {there}; one positive height must be known: set .attrs['height_m'] "
            "on each"
        )
    return float(here)


def scaled(winds: xr.Dataset, factor: Any, here: float, height_m: float, law: str) -> xr.Dataset:
    """Return the winds multiplied, at their new height, and say so.

    xarray would leave out in silence what a labelled factor lacks.
    """
    if np.ndim(factor) == 0 and not np.isfinite(factor):
        raise ValueError(f"by the {law} winds would be multiplied by {factor}: pass another")
    for dim in factor.dims if isinstance(factor, xr.DataArray) else ():
        here_and_there = [part.coords[dim] for part in (winds, factor) if dim in part.coords]
        if len({(*one.sizes.values(), *np.sort(one.values)) for one in here_and_there}) > 1:
            raise ValueError(
                f"the {law} has other values of {dim} than the winds; both must have the same: "
                "bring it to their points, by .interp_like or .sel"
            )
    result = winds.copy()
    for name in (name for name in IN_M_S if name in winds):
        attrs = winds[name].attrs | {"height_m": float(height_m)}
        result[name] = (winds[name] * factor).astype(winds[name].dtype).transpose(*winds[name].dims)
        result[name].attrs = attrs
    return changed(result, f"extrapolated from {here:g} m to {height_m:g} m by the {law}")
