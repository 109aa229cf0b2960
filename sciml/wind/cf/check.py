"""What is wrong with a dataset of wind, found before anything is learned from it."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import xarray as xr

from sciml._grid import SPACING, TAKEN_FOR_EVEN, UNEVEN, uneven, uneven_line
from sciml.wind.cf.declared import MISSING
from sciml.wind.cf.kinds import of_fields, refuse_timeless
from sciml.wind.cf.names import IN_M_S, PAIRS
from sciml.wind.cf.position import planes
from sciml.wind.cf.times import hours, moments
from sciml.wind.cf.units import METRES_PER_SECOND, OURS, refuse_other_unit

log = logging.getLogger(__name__)

Labelled = TypeVar("Labelled", xr.Dataset, xr.DataArray)

# Sourced: the strongest gust ever measured is 113 m/s (Barrow Island 1996, WMO record); jets of
# the free atmosphere stay below as well. What exceeds this is a wrong unit or a wrong packing.
STRONGEST_M_S = 120.0
FAR_M_S, GAP_M_S, SEVERAL = 20.0, 10.0, 5  # assumed: so many equal values, so far out, are a mark
# The largest numbers that are places: in degrees, longitudes being continued across 360; in metres.
LARGEST = {"latitude": 90.001, "longitude": 720.0, "y": 1e9, "x": 1e9}
SENSE = (  # a packed zero may be a little less
    ("wind_speed", -0.1, np.inf, METRES_PER_SECOND),
    ("wind_from_direction", -360.5, 360.5, "degree"),
)
CHOSEN_BY = {"member": "member", "height": "height_m", "pressure": "pressure_hpa"}
OUR_AXES = ("time", "y", "x", "draw", "channel")
BREEZE_M_S = 1.0  # assumed: from where a speed is compared with its components
UNLIKE = 0.1  # assumed: how far it may be off, in parts of their length
SLAB_BYTES = 2**26  # read at once, of each variable


@dataclass(frozen=True)
class Finding:
    """One thing found: of which kind, whether it forbids to go on, and where it is.

    >>> from sciml import wind
    >>> found = wind.check(wind.gaussian(seed=0, snapshots=2, n=16), factor=3).findings[-1]
    >>> found.fatal, found.text
    (False, '3 does not divide 16×16: crop drops the last 1 rows and 1 columns')
    """

    kind: str
    fatal: bool
    text: str


@dataclass(frozen=True)
class Report:
    """All that `check` found in one dataset.

    >>> from sciml import wind
    >>> fields = wind.gaussian(seed=0, snapshots=2, n=16)
    >>> fields.x_wind[0, 3, 4] = 900.0
    >>> report = wind.check(fields)
    >>> report.good, report.findings[-1].text.partition(",")[0]
    (False, 'x_wind has 1 values beyond 120 m/s')
    """

    origin: str
    findings: tuple[Finding, ...]

    @property
    def good(self) -> bool:
        """Whether nothing forbids to go on."""
        return not any(finding.fatal for finding in self.findings)

    def refuse(self) -> None:
        """Raise what forbids to go on, if anything does.

        Raises:
            ValueError: naming the dataset and each fault.
        """
        if not self.good:
            faults = "; ".join(finding.text for finding in self.findings if finding.fatal)
            raise ValueError(f"{self.origin}: {faults}")

    def __str__(self):
        """Return a line for each finding."""
        lines = [f"{'refused' if f.fatal else 'noted'}: {f.text}" for f in self.findings]
        return "\n".join([f"{self.origin}: {len(lines)} findings", *lines])


@of_fields
def check(
    winds: xr.Dataset,
    *,
    origin: str = "the dataset",
    factor: int | None = None,
    allow_missing: bool = False,
) -> Report:
    """Look at every value of a dataset of wind, a slab of times at once.

    Refused: places that are not on the earth, a unit that is not m/s, descending axes, times out of
    order or twice, values that are missing (unless allowed) or infinite, winds above 120 m/s,
    speeds below zero or below the length of their components, directions beyond 360°.
    Noted: gaps in time, no dates, a component that is not there, a speed above the length of the
    components, rows and columns that `crop` will drop for `factor`.

    Args:
        winds: in the schema of `sciml.wind.open`.
        origin: what messages call it.
        factor: by which it is to be coarsened.
        allow_missing: NaN is let through, as over a sea that a land model leaves out; block means
            leave it out too (`block_mean_present`).

    >>> from sciml.wind import gaussian
    >>> check(gaussian(seed=0, snapshots=2, n=16), factor=3).good
    True
    """
    present = [name for name in IN_M_S if name in winds]
    if not present:
        fault = Finding("no wind", True, f"there is none of {', '.join(IN_M_S)}")
        return Report(origin, (fault,))
    refuse_timeless(winds, origin)
    found = [*places(winds), *units(winds, present), *order(winds), *times(winds)]
    found += shape(winds, present, factor)
    found += [f for name in present for f in values(winds[name], allow_missing=allow_missing)]
    found += [*signs(winds), *strength(winds)]
    lost = [finding.fatal for finding in found if finding.kind == "missing"]
    told = str(winds.attrs.get("changes", "")).split("; ")
    if lost and (made := [text for text in told if text.endswith(MISSING)]):
        found.append(Finding("declared", any(lost), f"by the file's attributes: {', '.join(made)}"))
    return Report(origin, tuple(found))


def places(winds: xr.Dataset) -> Iterator[Finding]:
    """Find coordinates that are no place on the earth."""
    for name, most in LARGEST.items():
        if name not in winds.coords:
            continue
        numbers = winds[name].values
        wrong = ~(np.abs(numbers) <= most)  # NaN too
        if wrong.any():
            at = np.unravel_index(int(wrong.argmax()), wrong.shape)
            yield Finding(
                "place",
                True,
                f"{name} is {numbers[at]:g} at index {', '.join(map(str, at))}; it must be a "
                f"number up to {most:g}: correct the file's coordinate or its unit",
            )


def units(winds: xr.Dataset, present: list[str]) -> Iterator[Finding]:
    """Find units that are not metres per second."""
    for name in present:
        unit = winds[name].attrs.get("units")
        if unit != METRES_PER_SECOND:
            yield Finding(
                "unit",
                True,
                f"the unit of {name} is {unit!r}, not {METRES_PER_SECOND!r}: multiply by "
                "what sciml.wind.units.metres_per_second says, or read the file by open",
            )


def order(winds: xr.Dataset) -> Iterator[Finding]:
    """Find axes that do not ascend evenly."""
    told = []
    for name, axis in (("y", "y"), ("latitude", "y"), ("x", "x"), ("longitude", "x")):
        if name not in winds.coords or winds[name].dims != (axis,):
            continue
        steps = np.diff(winds[name].values.astype(np.float64))
        if (steps <= 0).any():
            at = int((steps <= 0).argmax()) + 1
            yield Finding(
                "order",
                True,
                f"{name} does not ascend at index {at}: turn it by .isel({axis}=slice(None, None, "
                "-1)), or read the file by open",
            )
        elif found := uneven_line(steps):
            at, step, usual = found
            said = f"{name} is not evenly spaced: {step:.4g} after index {at}, {usual:.4g}"
            yield Finding("spacing", False, f"{said} {TAKEN_FOR_EVEN}, or use .interp")
            told.append(axis)
    curved = {"latitude", "longitude"} <= {*winds.coords} and winds["latitude"].ndim > 1
    for axis, (at, step, usual) in (uneven(*planes(winds)) if curved else {}).items():
        if axis not in told:
            said = f"points are not evenly spaced along {axis}, by latitude and longitude: "
            said += f"{step / 1000:.4g} km after index {at}, {usual / 1000:.4g} km"
            yield Finding("spacing", False, f"{said} {TAKEN_FOR_EVEN}, or regrid")


def refuse_several(field: xr.DataArray, name: str) -> None:
    """Refuse a field of several members, levels or of anything where one is meant."""
    for axis in (axis for axis in CHOSEN_BY if axis in field.dims):
        values = field[axis].values.tolist()
        values = ", ".join(f"{v:g}" if isinstance(v, int | float) else str(v) for v in values)
        on, by = "members" if axis == "member" else "levels", CHOSEN_BY[axis]
        raise ValueError(
            f"{name} is on {on} {values}; take one: open(path, {by}=…), or "
            f"--{by.replace('_', '-')} on the command line"
        )
    refuse_timeless(field, name)
    for axis in (axis for axis in field.dims if axis not in OUR_AXES):
        raise ValueError(
            f"{name} is on {', '.join(map(str, field.dims))}; of {axis} take one, as "
            f".isel({axis}=0)"
        )


def refuse_unlike(field: xr.DataArray) -> None:
    """Refuse a wind, or what lies beside, in another unit, and axes that run the other way."""
    channel = field.coords.get("channel")
    names = [field.name] if channel is None else np.ravel(channel.values).tolist()
    known = IN_M_S if channel is not None else (*IN_M_S, *OURS)
    if ours := [str(name) for name in names if name in known]:
        refuse_other_unit(field, ours[0])
    refuse_descending(field)


def refuse_descending(field: xr.DataArray) -> None:
    """Refuse a field whose rows or columns run the other way: nobody would see it."""
    for axis, angular in (("y", "latitude"), ("x", "longitude")):
        for line in (n for n in (axis, angular) if n in field.coords):
            values = field[line].values
            numbers = field[line].dims == (axis,) and values.dtype.kind in "fiu"
            if numbers and len(values) > 1 and (np.diff(values.astype(float)) < 0).all():
                raise ValueError(
                    f"{line} descends from {values[0]:g} to {values[-1]:g}; {axis} "
                    f"must ascend, else the field is a mirror image: use .sortby({line!r})"
                )


def warn_of_uneven(fields: Labelled, origin: str = "") -> Labelled:
    """Warn of points that are not evenly spaced, as where a row lacks; return fields that say so.

    What says it already, or comes from what does, is not warned of again.
    """
    coords = fields.coords.to_dataset()
    if any(line.attrs.get(SPACING) == UNEVEN for line in coords.coords.values()):
        return fields
    said = [finding.text for finding in order(coords) if finding.kind == "spacing"]
    for text in said:
        log.warning("%s: %s", origin or getattr(fields, "name", "") or "the fields", text)
    return said_uneven(fields) if said else fields


def said_uneven(fields: Labelled) -> Labelled:
    """Return fields whose places say that they are not evenly spaced, once that has been told."""
    names = [name for name in LARGEST if name in fields.coords]
    said = {n: fields[n].variable.copy(deep=False) for n in names}
    for line in said.values():
        line.attrs = line.attrs | {SPACING: UNEVEN}
    return fields.assign_coords(said)


def times(winds: xr.Dataset) -> Iterator[Finding]:
    """Find times that are none, out of order, twice, or missing among evenly spaced ones."""
    if "time" not in winds.coords:
        yield Finding("no dates", False, "there are no dates: it cannot be split in time")
        return
    try:
        stamps = moments(winds["time"])
    except ValueError as error:
        yield Finding("no date", True, str(error))
        return
    steps = hours(stamps)
    if (steps == 0).any():
        at = int((steps == 0).argmax()) + 1
        yield Finding("duplicate", True, f"time {stamps[at]} is there twice, at index {at}")
    if (steps < 0).any():
        at = int((steps < 0).argmax()) + 1
        yield Finding("time order", True, f"time goes back at index {at}, to {stamps[at]}")
    elif (steps > 0).any():
        usual = np.median(steps[steps > 0])
        for at in np.flatnonzero(steps > 1.5 * usual):
            yield Finding(
                "gap",
                False,
                f"{steps[at] / usual - 1:.0f} times are missing after {stamps[at]} (index {at})",
            )


def shape(winds: xr.Dataset, present: list[str], factor: int | None) -> Iterator[Finding]:
    """Find missing components and what a factor leaves over."""
    for first, second in PAIRS:
        for here, other in ((first, second), (second, first)):
            if here in present and other not in present:
                yield Finding("component", False, f"{other} is not there: no speed, no direction")
    if factor is not None:
        y, x = winds.sizes["y"], winds.sizes["x"]
        if not 1 <= factor <= min(y, x):
            yield Finding("factor", True, f"factor is {factor} on a {y}×{x} grid")
        elif y % factor or x % factor:
            yield Finding(
                "factor",
                False,
                f"{factor} does not divide {y}×{x}: crop drops the last {y % factor} rows "
                f"and {x % factor} columns",
            )


def values(field: xr.DataArray, *, allow_missing: bool) -> Iterator[Finding]:
    """Find values that are missing, infinite or too strong; the first of each is named."""
    wrong = {"missing": 0, "infinite": 0, "strong": 0, "filled": 0}
    first: dict[str, str] = {}
    gaps = np.zeros(field.shape[1:], int)  # how often each point is missing
    for start, slab in slabs(field):
        masks = {"missing": np.isnan(slab), "infinite": np.isinf(slab)}
        masks["strong"] = np.abs(np.where(masks["infinite"], 0, slab)) > STRONGEST_M_S
        masks["filled"] = apart(slab)
        gaps += masks["missing"].sum(axis=0)
        for kind, mask in masks.items():
            wrong[kind] += int(mask.sum())
            if kind not in first and mask.any():
                first[kind] = place(field, mask, slab, start)
    fixed = np.isin(gaps, (0, field.sizes["time"])).all()
    where = "always at the same points" if fixed else "at changing points"
    filling = "" if allow_missing else "; fill them, select a part, or pass allow_missing=True"
    said = {
        "missing": (f"missing values, {where}", filling),
        "infinite": ("infinite values", ""),
        "filled": ("equal values far from all others", ": missing values? set them to NaN"),
        "strong": (f"values beyond {STRONGEST_M_S:g} m/s", ": is the unit or the packing wrong?"),
    }
    for kind, (what, remedy) in said.items():
        if kind in first:
            fatal = not (kind == "missing" and allow_missing)
            text = f"{field.name} has {wrong[kind]} {what}, the first at {first[kind]}{remedy}"
            yield Finding(kind, fatal, text)


def signs(winds: xr.Dataset) -> Iterator[Finding]:
    """Find speeds below zero, and directions that are no angle: marks of missing values, often."""
    for name, least, most, unit in SENSE:
        for start, slab in slabs(winds[name]) if name in winds else ():
            wrong = (slab < least) | (slab > most)
            if wrong.any():
                at = place(winds[name], wrong, slab, start)
                yield Finding(
                    "sense",
                    True,
                    f"{name} has values that are not {least:g} to {most:g} {unit}, the first at "
                    f"{at}: missing values? set them to NaN",
                )
                break


def strength(winds: xr.Dataset) -> Iterator[Finding]:
    """Find a speed that is not the length of its components, at the first times.

    Speeds are averaged over time to more than the length of averaged components, never to less.
    """
    pair = next((pair for pair in PAIRS if {*pair, "wind_speed"} <= {*winds}), None)
    fields = [winds[name] for name in (*pair, "wind_speed")] if pair else []
    alike = len({frozenset(one.sizes.items()) for one in fields}) == 1
    if pair is None or not alike or not fields[0].size:
        return
    first, second, told = (next(slabs(one.transpose(*fields[0].dims)))[1] for one in fields)
    length = np.hypot(first, second)
    known = np.isfinite(told) & (length > BREEZE_M_S)
    ratio = float(np.median(told[known] / length[known])) if known.any() else 1.0
    if abs(ratio - 1) > UNLIKE:
        yield Finding(
            "strength",
            ratio < 1,
            f"wind_speed is {ratio:.2f} times the length of {' and '.join(pair)}: is its unit or "
            f"height another{', or is it a mean of speeds' * (ratio > 1)}? Correct it, or drop it",
        )


def apart(slab: np.ndarray) -> np.ndarray:
    """Mark an extreme that is there several times and far from all other values.

    So are marks of missing values that a file does not declare, as −99; the strongest wind is not.
    """
    known = slab[np.isfinite(slab)]
    marked = np.zeros(slab.shape, bool)
    for end in {float(known.min()), float(known.max())} if known.size else ():
        here = slab == end
        rest = np.abs(known[known != end] - end)
        if abs(end) > FAR_M_S and here.sum() >= SEVERAL and rest.size and rest.min() > GAP_M_S:
            marked |= here
    return marked


def slabs(field: xr.DataArray) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the first index and the values of consecutive times, a bounded number of bytes each."""
    one = max(1, field.nbytes // max(1, field.sizes["time"]))
    step = max(1, SLAB_BYTES // one)
    for start in range(0, field.sizes["time"], step):
        yield start, field.isel(time=slice(start, start + step)).values


def place(field: xr.DataArray, mask: np.ndarray, slab: np.ndarray, start: int) -> str:
    """Return where the first marked value is, and what it is."""
    at = np.unravel_index(int(mask.argmax()), mask.shape)
    offset = [start, *[0] * (mask.ndim - 1)]
    named = {str(d): int(i) + o for d, i, o in zip(field.dims, at, offset, strict=True)}
    return f"{named} ({slab[at]:g})"
