"""What a file declares of its values by CF: what is missing is NaN, and categories are no wind."""

from collections.abc import Iterable

import xarray as xr

from sciml._numbers import MARKS, NEAR, is_packed, masked, packing, where_known
from sciml.wind.cf.changes import changed

# Sourced: NC_FILL_SHORT and NC_FILL_INT of netCDF, of what was never written.
DEFAULTS = {"int16": -32767, "int32": -2147483647}
# Measured with cfgrib 0.9.15: places are those of rows from the west.
MISLAID = ("GRIB_iScansNegatively", "GRIB_jPointsAreConsecutive")
FLAGS = ("flag_values", "flag_masks", "flag_meanings")
MISSING = "made missing"  # in the words of `changes`


def with_declared(content: xr.Dataset, names: Iterable[str], origin: str) -> xr.Dataset:
    """Return a dataset whose variables of these names hold NaN where it declares no value.

    See `where_known`, and what it refuses.
    """
    said = []
    for name in names:
        keep, words = where_known(content[name], f"{name} of {origin}")
        said += [f"values of {name} {each} {MISSING}" for each in words]
        if (mark := unwritten(content[name])) is not None:
            keep = keep & (abs(content[name] - mark) > NEAR * abs(packing(content[name])[0]))
            said.append(f"values of {name} that are netCDF's mark of none {MISSING}")
        if keep is not True:
            content = content.assign({name: masked(content[name], keep)})
    return changed(content, *said)


def unwritten(field: xr.DataArray) -> float | None:
    """Return what netCDF's own mark became by unpacking, where a file declares no other."""
    if not is_packed(field) or {*MARKS} & {*field.encoding, *field.attrs}:
        return None
    scale, offset = packing(field)
    mark = DEFAULTS.get(str(field.encoding["dtype"]))
    return None if mark is None else mark * scale + offset


def refuse_flags(field: xr.DataArray, origin: str) -> None:
    """Refuse a wind whose values stand for something else, or are not where they should be."""
    if flags := [name for name in FLAGS if name in field.attrs]:
        raise ValueError(
            f"{field.name} of {origin} has {flags[0]} {field.attrs[flags[0]]!r:.60}, so its "
            "numbers are categories, no wind: drop it, or name another by variable="
        )
    if field.dtype.kind == "c":
        raise TypeError(
            f"{field.name} of {origin} is complex; it must be real: pass .real or .imag"
        )
    if lost := next((name for name in MISLAID if field.attrs.get(name) == 1), None):
        raise ValueError(
            f"{field.name} of {origin} has {lost} 1, and cfgrib writes the values of such a "
            "message to other places: open the GRIB file itself"
        )
