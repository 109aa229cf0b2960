"""The estimates of a baseline as a labelled data set."""

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float

from sciml._labels import observations_in, of_samples
from sciml.ode.data.evidence import check_seen, valid_in
from sciml.provenance import provenance


def labelled(
    named: xr.Dataset,
    data: xr.Dataset,
    estimate: Float[np.ndarray, "sample param"],
    method: str,
    **more: np.ndarray,
) -> xr.Dataset:
    """Return `estimate (sample, parameter)`, NaN where `data` failed, beside `more` variables."""
    axes = ("sample", "parameter")
    columns = {"estimate": np.where(valid_of(data)[:, None], estimate, np.nan)}
    variables = {name: (axes[: v.ndim], v) for name, v in (columns | more).items()}
    return xr.Dataset(
        variables,
        coords={**of_samples(data.observation), "parameter": named.parameter.values},
        attrs={"system": data.attrs.get("system", ""), "method": method, **provenance()},
    )


def data_of(data: Any, like: xr.DataArray | None = None) -> xr.Dataset:
    """Return observations as a data set; bare ones and tables with the axes of others."""
    seen = observations_in(data, () if like is None else tuple(map(str, like.dims)))
    if isinstance(data, xr.Dataset):
        return data.assign(observation=seen)
    return seen.to_dataset(name="observation")


def valid_of(data: xr.Dataset) -> Bool[np.ndarray, " sample"]:
    """Return which samples did not fail; all where the data do not say."""
    valid = valid_in(data)
    check_seen(data.observation.values, valid)
    return valid
