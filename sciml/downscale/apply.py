"""From a coarse data set to a fine one: names, units, places, and tiles of any domain."""

import logging
from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from sciml._arguments import check_whole, whole_seed
from sciml._session import each
from sciml.downscale.arrays import with_gaps, without_gaps
from sciml.downscale.cards import NEAR, card, net_names
from sciml.wind.cf.changes import changed
from sciml.wind.cf.check import warn_of_uneven
from sciml.wind.cf.components import with_components
from sciml.wind.cf.kinds import of_fields, refuse_timeless
from sciml.wind.cf.names import components_in
from sciml.wind.cf.position import columns_of_turn
from sciml.wind.cf.schema import finished
from sciml.wind.prepare.channels import COMPONENT, channels
from sciml.wind.prepare.matching import SPACING
from sciml.wind.prepare.resolution import finer, refuse_misplaced, respaced
from sciml.wind.prepare.tiled import Tiles, Window, refine_located
from sciml.wind.read.covariates import covariates

log = logging.getLogger(__name__)

BLOCKS = "block_m"  # the attribute of a net of pairs that says how wide their blocks were
ENDS = min, max
TILE = 96  # coarse points: a domain of fewer is refined in one piece


@of_fields
def predict(
    net: Any,
    coarse: xr.Dataset,
    statics: xr.Dataset | None = None,
    *,
    draws: int = 0,
    seed: int = 0,
    tiles: Tiles | None = None,
    before: int = 0,
) -> xr.Dataset:
    """Return fine wind on a finer grid, with names and attributes as `sciml.wind.open` gives them.

    Large domains are refined tile by tile, with so much around each tile that the result is that of
    the whole. Missing blocks stay missing. What follows from what was refined (the speed of two
    components, those towards east and north) is added. Arguments are those of a net's `predict`;
    `before` times of the same wind were refined, and warned of, already.

    The noise of draws is that of a seed, a date and a place, so a part of the times draws what all
    of them do; where there are no dates they are counted.
    """
    check_whole(0, draws=draws)
    refuse_timeless(coarse, "the coarse wind")
    if 0 in (sizes := {axis: coarse.sizes[axis] for axis in ("time", "y", "x")}).values():
        raise ValueError(f"the coarse wind has {sizes}; there is nothing to refine: open it anew")
    seed = whole_seed(seed, 0)
    reach = getattr(net.model, "reach_of_draws", net.model.reach) if draws else net.model.reach
    tiles = Tiles(TILE, reach) if tiles is None else tiles
    refuse_other_blocks(net, coarse)
    coarse = coarse if before else warn_of_uneven(coarse, "the coarse wind")
    ground = ground_of(net, coarse, statics)
    columns, factor, turn = coarse.sizes["x"], net.model.factor, turn_of(coarse)
    halo = tiles.reach if turn else 0
    if halo and ground is not None:
        ground = ground[..., around(columns * factor, halo * factor, turn * factor)]
    found, own = {}, [[seed, *of_time] for of_time in numbered(coarse, before)]
    for number, names in enumerate(groups(coarse, net)):
        fields = channels(coarse, (*names, *net.beside))
        fields = fields.isel(x=around(columns, halo, turn)) if halo else fields
        at = partial(at_time, net, fields, ground, draws, number, tiles)
        values = np.stack(list(each(at, list(enumerate(own)))))
        values = values[..., halo * factor : (halo + columns) * factor]
        found |= {name: values[..., c, :, :] for c, name in enumerate(names)}
    dims = ("time", "draw", "y", "x") if draws else ("time", "y", "x")
    result = xr.Dataset(
        {name: (dims, values, coarse[name].attrs) for name, values in found.items()},
        coords=finer(coarse, net.model.factor),
    )
    if "time" in coarse.coords:
        result = result.assign_coords(time=coarse["time"].variable)
    if halo:
        noise = ", but for the noise of the draws" if draws else ""
        twice = ", where a meridian is there twice" if turn < columns else ""
        result = changed(result, f"the grid goes round: refined across its seam{twice}{noise}")
    fine = described(with_components(result, "the prediction", stated=True), net, coarse, draws)
    for one in [] if before else unlearned(net, coarse):  # after all that may be refused
        name = net.attrs.get("card")
        log.warning("%s; what it adds there has not been scored (sciml wind nets %s)", one, name)
    return fine


def refuse_other_blocks(net: Any, coarse: xr.Dataset) -> None:
    """Refuse coarse wind whose points are not as far apart as the blocks of a net of pairs were."""
    if SPACING not in coarse.attrs or not all(BLOCKS in one.attrs for one in net.members):
        return
    width = float(coarse.attrs[SPACING])
    low, high = (pick(end for one in net.members for end in one.attrs[BLOCKS]) for pick in ENDS)
    if not low / NEAR <= width <= high * NEAR:
        fine = " to ".join(f"{each / 1000:.4g}" for each in sorted({low, high}))
        raise ValueError(
            f"the coarse wind is {width / 1000:.4g} km apart, and the net has learned from pairs "
            f"on blocks of {fine} km: pass --onto a file of the fine grid, or what "
            "sciml.wind.onto_blocks makes of the coarse wind and that grid"
        )


def turn_of(coarse: xr.Dataset) -> int:
    """Return after how many columns a grid of latitudes and longitudes begins anew; 0 if never."""
    straight = "longitude" in coarse.coords and coarse["longitude"].dims == ("x",)
    return columns_of_turn(coarse["longitude"].values) if straight else 0


def around(count: int, halo: int, turn: int) -> np.ndarray:
    """Return the indices of `count` columns and of `halo` more on both sides, `turn` being once."""
    places = np.arange(-halo, count + halo)
    return np.where((places >= 0) & (places < count), places, places % turn)


def groups(coarse: xr.Dataset, net: Any) -> list[tuple[str, ...]]:
    """Return the variables that are refined together."""
    if net.winds != (COMPONENT,):
        wanted = net.winds
        if not {*wanted} <= {*coarse.data_vars}:
            raise ValueError(
                f"the net refines {', '.join(wanted)}, the data have "
                f"{', '.join(map(str, coarse.data_vars))}: open a file that has it"
            )
        return [wanted]
    if there := components_in(coarse):
        return [(name,) for name in there]
    raise ValueError(
        f"the net refines components of wind, the data have {', '.join(map(str, coarse.data_vars))}"
        ": open a file that has x_wind or eastward_wind"
    )


def ground_of(net: Any, coarse: xr.Dataset, statics: xr.Dataset | None) -> Any:
    """Return what the net knows of the ground, (statics, y, x)."""
    if not net.statics and statics is not None:
        raise ValueError(
            f"statics hold {', '.join(map(str, statics))}; the net knows nothing of the fine grid: "
            "leave them out, or take a net that was trained with them"
        )
    if not net.statics:
        return None
    if statics is None:
        raise ValueError(
            f"the net knows {', '.join(net.statics)} of the fine grid; pass statics holding them"
        )
    ground = covariates(statics, net.statics)
    expected = tuple(net.model.factor * coarse.sizes[axis] for axis in ("y", "x"))
    if ground.shape[1:] != expected:
        raise ValueError(
            f"statics have {ground.shape[1]}×{ground.shape[2]} points; they must have the "
            f"{expected[0]}×{expected[1]} of the fine grid: with_statics brings them there"
        )
    fine = finer(coarse, net.model.factor)
    alike = {n: line for n, line in fine.items() if line.shape == statics.get(n, line).shape}
    placed = xr.Dataset(coords=alike)
    refuse_misplaced(statics, placed, net.model.factor, "statics and the fine grid")
    means = dict(zip(net.normaliser.names, net.normaliser.mean, strict=True))
    values = ground.values
    for at, name in enumerate(net.statics):
        if name == "longitude":  # counted as those that the net has learned, 5° or 365°
            line = np.unwrap(values[at], period=360.0)
            values[at] = line - 360.0 * np.round((line.mean() - means[name]) / 360.0)
    return values


def numbered(coarse: xr.Dataset, before: int) -> list[list[int]]:
    """Return whole numbers that tell each time from all others: of its date, or its place."""
    count = coarse.sizes["time"]
    if "time" not in coarse.coords:
        return [[before + n] for n in range(count)]
    stamps = coarse["time"].values
    stamps = stamps.astype("datetime64[us]") if stamps.dtype.kind == "M" else stamps
    seen: Counter[str] = Counter()
    found = []
    for text in map(str, stamps):
        found.append([*text.encode(), seen[text]])
        seen[text] += 1
    return found


def at_time(
    net: Any,
    fields: xr.DataArray,
    ground: Any,
    draws: int,
    group: int,
    tiles: Tiles,
    at: tuple[int, list[int]],
) -> np.ndarray:
    """Return the fine field of one of the coarse ones ([draw], channel, y, x), tile by tile."""
    time, own = at
    seed = int(np.random.SeedSequence([group, *own]).generate_state(1)[0] >> 1)
    field = np.asarray(fields.isel(time=time).values, np.float32)
    known = np.isfinite(field[: net.model.wind])

    def tile(part: Any, window: Window) -> Any:
        here = None if ground is None else window.cut(ground, net.model.factor)
        one = np.asarray(part)[None]
        if not draws:
            return net.refine(one, here)[0]
        return net.draw(one, draws, here, seed=seed, corner=window.corner)[0]

    # Before it is cut: what a tile sees of a gap may come from farther than its edge.
    whole = without_gaps(field, net.model)
    made = refine_located(tile, whole, net.model.factor, tiles, threads=True)
    return with_gaps(made, known, net.model.factor)


def described(fine: xr.Dataset, net: Any, coarse: xr.Dataset, draws: int) -> xr.Dataset:
    """Return a prediction that says how it came about."""
    how = f"the mean of {len(net.members)} × {net.model}" if net.others else str(net.model)
    how += ", in draws" if draws else ", over all symmetries" if net.folds else ""
    said: dict[str, Any] = {"title": "Wind refined by a trained net", "refined_by": how}
    said |= respaced(coarse, 1 / net.model.factor)
    fine = changed(fine.assign_attrs(coarse.attrs | said), str(fine.attrs.get("changes", "")))
    fine = changed(fine, *unlearned(net, coarse))
    return finished(changed(fine, f"refined {net.model.factor}-fold by {how}"))


def unlearned(net: Any, coarse: xr.Dataset) -> list[str]:
    """Return what of coarse wind a net that comes with the package has not learned from."""
    name = net.attrs.get("card")
    return card(name).beyond(coarse, net.model.factor) if name in net_names() else []
