"""What a file declares of its values by CF: what is missing is NaN, and categories are no wind."""

from collections.abc import Iterable

import xarray as xr

from sciml._numbers import masked, where_known
from sciml.wind.cf.changes import changed

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
        if keep is not True:
            content = content.assign({name: masked(content[name], keep)})
    return changed(content, *said)


def refuse_flags(field: xr.DataArray, origin: str) -> None:
    """Refuse a wind whose values stand for something else."""
    if flags := [name for name in FLAGS if name in field.attrs]:
        raise ValueError(
            f"{field.name} of {origin} has {flags[0]} {field.attrs[flags[0]]!r:.60}, so its "
            "numbers are categories, no wind: drop it, or name another by variable="
        )
