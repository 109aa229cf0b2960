"""Draws in the groups and axes that ArviZ plots as they are."""

from typing import TYPE_CHECKING, Any

import numpy as np

from sciml.diagnose.pairs import Labelled, parameter_names, variable

if TYPE_CHECKING:
    import xarray as xr

Variables = dict[str, tuple[tuple[str, ...], Any]]


def arviz_tree(
    posterior: Labelled,
    *,
    truth: Labelled | None = None,
    prior: Labelled | None = None,
    observation: Labelled | None = None,
    replicated: Labelled | None = None,
    log_likelihood: Labelled | None = None,
) -> "xr.DataTree":
    """Return draws as ArviZ has them: one variable a parameter, axes `chain, draw` first.

    `plot_dist`, `plot_pair`, `plot_forest` and `plot_ppc_dist` of arviz-plots take the tree without
    conversion. They make a panel for each sample, so choose one first:
    `tree.isel(sample=0, drop=True)`. Independent draws count as one chain.

    Args:
        posterior: `posterior (draw, sample, parameter)`.
        truth: `parameters (sample, parameter)`, for the group `constant_data`.
        prior: draws (draw, parameter).
        observation: (sample, time, …), for `observed_data`.
        replicated: (draw, sample, time, …), for `posterior_predictive`.
        log_likelihood: of the draws (draw, sample), or by time (draw, sample, time).

    Raises:
        ValueError: axes do not fit.
    """
    import xarray as xr

    draws = variable(posterior, "posterior", ("draw", "sample", "parameter"))
    if np.ndim(draws) != 3:
        raise ValueError(f"posterior has shape {draws.shape}; it must be (draw, sample, parameter)")
    names = parameter_names(draws, draws.shape[2])
    groups: dict[str, Variables] = {"posterior": split(draws, names, ("chain", "draw", "sample"))}
    if prior is not None:
        values = variable(prior, "prior", ("draw", "parameter"))
        groups["prior"] = split(values, names, ("chain", "draw"))
    if truth is not None:
        values = variable(truth, "parameters", ("sample", "parameter"))
        groups["constant_data"] = split(values, names, ("sample",))
    if observation is not None:
        groups["observed_data"] = {"observation": series(observation, ("sample",))}
    if replicated is not None:
        groups["posterior_predictive"] = {"observation": series(replicated, ("draw", "sample"))}
    if log_likelihood is not None:
        groups["log_likelihood"] = {"observation": series(log_likelihood, ("draw", "sample"))}
    return xr.DataTree.from_dict(
        {name: xr.Dataset(group).assign_coords(numbers(group)) for name, group in groups.items()}
    )


def split(values: Any, names: tuple[str, ...], dims: tuple[str, ...]) -> Variables:
    """Return one variable for each entry of the last axis, with a chain in front if asked."""
    array = np.asarray(values)
    lead = (1,) * (dims[0] == "chain")
    if array.ndim + len(lead) != len(dims) + 1 or array.shape[-1] != len(names):
        raise ValueError(
            f"values have shape {array.shape}; they must have {len(names)} parameters last"
        )
    return {
        name: (dims, array[..., i].reshape(*lead, *array.shape[:-1]))
        for i, name in enumerate(names)
    }


def series(values: Labelled, dims: tuple[str, ...]) -> tuple[tuple[str, ...], Any]:
    """Return observations with their axes named, and a chain in front of draws."""
    import xarray as xr

    data = variable(values, "observation", dims)
    rest = ("time", "channel")[: np.ndim(data) - len(dims)]
    if isinstance(data, xr.DataArray):
        rest = tuple(map(str, data.dims[len(dims) :]))
    array = np.asarray(data)
    if dims[0] == "draw":
        return ("chain", *dims, *rest), array[None]
    return (*dims, *rest), array


def numbers(group: Variables) -> dict[str, np.ndarray]:
    """Return a coordinate that counts, for each axis."""
    sizes = {d: n for dims, array in group.values() for d, n in zip(dims, array.shape, strict=True)}
    return {dim: np.arange(size) for dim, size in sizes.items()}
