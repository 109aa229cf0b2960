"""What was done to a file's content, told in the result."""

import xarray as xr


def changed(winds: xr.Dataset, *said: str) -> xr.Dataset:
    """Return a dataset whose attribute `changes` says this too, each thing once."""
    before = str(winds.attrs.get("changes", "")).split("; ")
    told = "; ".join(dict.fromkeys(filter(None, (*before, *said))))
    return winds.assign_attrs(changes=told) if told else winds
