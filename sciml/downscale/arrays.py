"""Bare or labelled arrays of what a net refines: in the order of its channels, or refused."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float

from sciml._numbers import real
from sciml.models.wind.refinement import Refinement
from sciml.wind.cf.check import refuse_unlike
from sciml.wind.prepare.channels import COMPONENT
from sciml.wind.prepare.coarsen import continued


def fields_of(
    coarse: Any, winds: Sequence[str], beside: Sequence[str] = ()
) -> tuple[Float[np.ndarray, "sample wind y_lo x_lo"], bool]:
    """Return coarse fields with an axis of channels, and whether they had none.

    A labelled array is brought into the order of the net's channels by its `channel`, and its axes
    y and x to the end. A bare one must have as many channels as the net refines together.
    """
    if isinstance(coarse, xr.DataArray):
        does = "the net sees" if beside else "the net refines"
        coarse = in_order(coarse, (*winds, *beside), does)
    fields = real(coarse, "the fields", np.float32)
    bare = fields.ndim == 3
    fields = fields[:, None] if bare else fields
    count = len(winds) + len(beside)
    if fields.ndim != 4 or fields.shape[1] != count:
        more = f"with {', '.join(beside)} " if beside else ""
        takes = "(sample, y, x)" if count == 1 else f"(sample, {count}, y, x)"
        raise ValueError(
            f"the fields have shape {np.shape(coarse)}; the net refines {', '.join(winds)} "
            f"{more}"
            f"together and takes {takes}: pass that, or a dataset to `predict`"
        )
    if not fields.size:
        raise ValueError(f"the fields have shape {np.shape(coarse)}; there is nothing in them")
    return fields, bare


def ground_of(
    statics: Any, names: Sequence[str], expected: tuple[int, int]
) -> Float[np.ndarray, "statics y x"]:
    """Return what is known of the fine grid, in the order of the net's channels."""
    if statics is None:
        raise ValueError(
            f"the net knows {', '.join(names)} of the fine grid; pass statics holding them"
        )
    if isinstance(statics, xr.DataArray):
        statics = in_order(statics, names, "the net knows")
    given = real(statics, "statics", np.float32)
    if given.shape != (len(names), *expected):
        raise ValueError(
            f"statics have shape {given.shape}; the net knows {', '.join(names) or 'none'} of "
            f"{expected[0]}×{expected[1]} fine points: pass {(len(names), *expected)}"
        )
    refuse_unknown(given, names)
    return given


def refuse_unknown(ground: Float[np.ndarray, "*times statics y x"], names: Sequence[str]) -> None:
    """Refuse statics of which some are missing: a net spreads a NaN as far as it reaches."""
    for name, one in zip(names, np.moveaxis(ground, -3, 0), strict=True):
        if lost := int((~np.isfinite(one)).sum()):
            raise ValueError(
                f"{name} is missing at {lost} of {one.size} points, which would spread: fill it, "
                "as a relief over the sea by .fillna(0)"
            )


def without_gaps(
    fields: Float[np.ndarray, "*sample seen y_lo x_lo"], model: Refinement
) -> Float[np.ndarray, "*sample seen y_lo x_lo"]:
    """Return fields whose wind is `continued` into its gaps, as far as a net sees of them."""
    wind, beside = np.split(fields, [model.wind], axis=-3)
    if np.isfinite(wind).all():
        return fields
    farthest = getattr(model, "reach_of_draws", model.reach)
    return np.concatenate([np.asarray(continued(wind, farthest)), beside], axis=-3)


def with_gaps(
    fine: Float[np.ndarray, "*sample wind y x"],
    known: Bool[np.ndarray, "*coarse wind y_lo x_lo"],
    factor: int,
) -> Float[np.ndarray, "*sample wind y x"]:
    """Return fine fields, of any draws, that are missing (NaN) in all blocks that are not known."""
    if known.all():
        return fine
    gap = np.kron(~known, np.ones((factor, factor), bool))
    draws = fine.ndim - gap.ndim  # they stand before the wind
    return np.where(np.expand_dims(gap, [*range(gap.ndim - 3, gap.ndim - 3 + draws)]), np.nan, fine)


def in_order(fields: xr.DataArray, names: Sequence[str], does: str) -> xr.DataArray:
    """Return a labelled array with the channels of these names in this order, then y and x."""
    refuse_unlike(fields)
    channel = [dim for dim in ("channel",) if dim in fields.dims]
    if channel and "channel" in fields.coords:
        there = [str(name) for name in fields["channel"].values]
        if tuple(names) == (COMPONENT,) and len(there) == 1:
            names = there  # components are refined one by one
        if sorted(there) != sorted(names):
            raise ValueError(
                f"the channels are {', '.join(there)}; {does} {', '.join(names)}: pass these"
            )
        fields = fields.sel(channel=list(names))
    if not {"y", "x"} <= {*fields.dims}:
        raise ValueError(f"the axes are {fields.dims}; y and x must be among them: rename the axes")
    return fields.transpose(..., *channel, "y", "x")
