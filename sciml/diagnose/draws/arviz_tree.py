"""Draws in the groups and axes that ArviZ plots as they are."""

from typing import Any

import numpy as np
import xarray as xr

from sciml._labels import Labelled, by_name, parameter_names, truths, variable

Variables = dict[str, tuple[tuple[str, ...], Any]]


AXES = {  # argument → variable and axes
    "posterior": ("posterior", ("draw", "sample", "parameter")),
    "prior": ("prior", ("draw", "parameter")),
    "truth": ("parameters", ("sample", "parameter")),
    "observation": ("observation", ("sample",)),
    "replicated": ("observation", ("draw", "sample")),
    "log_likelihood": ("observation", ("draw", "sample")),
}
SERIES = {  # argument → group
    "observation": "observed_data",
    "replicated": "posterior_predictive",
    "log_likelihood": "log_likelihood",
}


def arviz_tree(
    posterior: Labelled,
    *,
    truth: Labelled | None = None,
    prior: Labelled | None = None,
    observation: Labelled | None = None,
    replicated: Labelled | None = None,
    log_likelihood: Labelled | None = None,
) -> xr.DataTree:
    """Return draws as ArviZ has them: one variable a parameter, axes `chain, draw` first.

    A slash in a name, which parts groups there, becomes a division slash, U+2215.

    `plot_dist`, `plot_pair`, `plot_forest` and `plot_ppc_dist` of arviz-plots take the tree without
    conversion. They make a panel for each sample, so choose one first:
    `tree.isel(sample=0, drop=True)`. Independent draws count as one chain.

    Args:
        posterior: `posterior (draw, sample, parameter)`; of one sample also `(draw, parameter)`
            with its axes named, as `sciml.reference.stored` has it. The rest then has no axis
            `sample` either.
        truth: `parameters (sample, parameter)`, for the group `constant_data`.
        prior: draws (draw, parameter).
        observation: (sample, time, …), for `observed_data`.
        replicated: (draw, sample, time, …), for `posterior_predictive`.
        log_likelihood: of the draws (draw, sample), or by time (draw, sample, time).

    Raises:
        ValueError: axes do not fit.

    >>> import xarray as xr
    >>> from sciml import diagnose
    >>> dims = ("draw", "sample", "parameter")
    >>> draws = xr.DataArray([[[1.0], [2.0]]], dims=dims, coords={"parameter": ["rate"]})
    >>> diagnose.arviz_tree(draws).posterior.rate.dims
    ('chain', 'draw', 'sample')
    """
    given = {
        "posterior": posterior,
        "truth": truth,
        "prior": prior,
        "observation": observation,
        "replicated": replicated,
        "log_likelihood": log_likelihood,
    }
    given = {key: values for key, values in given.items() if values is not None}
    if not is_one_sample(posterior):
        return tree_of(**given)
    many = {key: with_sample(values, *AXES[key]) for key, values in given.items()}
    return tree_of(**many).isel(sample=0, drop=True)


def is_one_sample(posterior: Labelled) -> bool:
    """Tell whether draws have named axes, and none of samples; unnamed ones could be either."""
    if isinstance(posterior, xr.Dataset):
        posterior = variable(posterior, "posterior", ("draw", "parameter"))
    return isinstance(posterior, xr.DataArray) and set(posterior.dims) == {"draw", "parameter"}


def with_sample(values: Labelled, name: str, dims: tuple[str, ...]) -> Labelled:
    """Return what belongs to one sample with an axis of length one for it, where `dims` has it."""
    if "sample" not in dims:
        return values
    data = variable(values, name, tuple(dim for dim in dims if dim != "sample"))
    if not isinstance(data, xr.DataArray):
        return np.expand_dims(data, dims.index("sample"))
    if "sample" in data.dims:
        raise ValueError(
            f"{name} has the axes {', '.join(map(str, data.dims))}, but the posterior is of one "
            "sample: choose it, as data.isel(sample=0)"
        )
    return data.expand_dims("sample")


def tree_of(posterior: Labelled, **rest: Labelled) -> xr.DataTree:
    """Return the groups of what there is, all with an axis of samples."""
    draws = variable(posterior, *AXES["posterior"])
    if np.ndim(draws) != 3:
        raise ValueError(
            f"posterior has shape {draws.shape}; it must be (draw, sample, parameter): of one "
            "sample pass draws[:, None], or name the axes (draw, parameter) in a DataArray"
        )
    names = parameter_names(draws, draws.shape[2])
    groups: dict[str, Variables] = {"posterior": split(draws, names, ("chain", "draw", "sample"))}
    if "prior" in rest:
        values = by_name(variable(rest["prior"], *AXES["prior"]), names, "the prior")
        groups["prior"] = split(values, names, ("chain", "draw"))
    if "truth" in rest:
        values = by_name(truths(rest["truth"]), names, "the truth")
        groups["constant_data"] = split(values, names, ("sample",))
    for key, group in SERIES.items():
        if key in rest:
            groups[group] = {"observation": series(rest[key], AXES[key][1])}
    like = {group: variable(rest[key], *AXES[key]) for key, group in SERIES.items() if key in rest}
    return xr.DataTree.from_dict(
        {name: counted(group, like.get(name)) for name, group in groups.items()}
    )


def split(values: Any, names: tuple[str, ...], dims: tuple[str, ...]) -> Variables:
    """Return one variable for each entry of the last axis, with a chain in front if asked."""
    array = np.asarray(values)
    lead = (1,) * (dims[0] == "chain")
    if array.ndim + len(lead) != len(dims) + 1 or array.shape[-1] != len(names):
        raise ValueError(
            f"values have shape {array.shape}; they must have {len(names)} parameters last"
        )
    if taken := [name for name in names if name in dims]:
        raise ValueError(
            f"the parameter {taken[0]!r} is called as an axis of the tree is ({', '.join(dims)}), "
            "which would take its place: rename it, as by .assign_coords(parameter=[…])"
        )
    return {
        leaf(name): (dims, array[..., i].reshape(*lead, *array.shape[:-1]))
        for i, name in enumerate(names)
    }


def leaf(name: str) -> str:
    """Return a name as a tree takes it, where a slash would part groups: with U+2215 for it."""
    return name.replace("/", "\N{DIVISION SLASH}")


def series(values: Labelled, dims: tuple[str, ...]) -> tuple[tuple[str, ...], Any]:
    """Return observations with their axes named, and a chain in front of draws."""
    data = variable(values, "observation", dims)
    rest = ("time", "channel")[: np.ndim(data) - len(dims)]
    if isinstance(data, xr.DataArray):
        rest = tuple(map(str, data.dims[len(dims) :]))
    array = np.asarray(data)
    if dims[0] == "draw":
        return ("chain", *dims, *rest), array[None]
    return (*dims, *rest), array


def counted(group: Variables, like: Any = None) -> xr.Dataset:
    """Return variables with a coordinate along each axis: that of `like`, else one that counts."""
    dataset = xr.Dataset(group)
    known = like.indexes if isinstance(like, xr.DataArray) else {}
    return dataset.assign_coords(
        {
            dim: known[dim] if dim in known and dim not in ("draw", "sample") else np.arange(size)
            for dim, size in dataset.sizes.items()
        }
    )
