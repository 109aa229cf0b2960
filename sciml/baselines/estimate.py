"""The estimates of a baseline as a labelled data set."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from sciml.provenance import provenance

if TYPE_CHECKING:
    import xarray as xr


def labelled(
    named: "xr.Dataset",
    data: "xr.Dataset",
    estimate: Float[np.ndarray, "sample param"],
    method: str,
    **more: np.ndarray,
) -> "xr.Dataset":
    """Return `estimate (sample, parameter)`, NaN where the observation itself failed.

    Args:
        named: a data set with the names of the parameters.
        data: what was inverted.
        estimate: in physical units.
        method: the name of the baseline.
        more: further variables, per sample or per sample and parameter.
    """
    import xarray as xr

    axes = ("sample", "parameter")
    failed = ~data.valid.values.astype(bool)
    columns = {"estimate": np.where(failed[:, None], np.nan, estimate)}
    variables = {name: (axes[: v.ndim], v) for name, v in (columns | more).items()}
    return xr.Dataset(
        variables,
        coords={"parameter": named.parameter.values},
        attrs={"system": data.attrs.get("system", ""), "method": method, **provenance()},
    )
