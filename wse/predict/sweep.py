"""Estimates by the hundred thousand: every model, batch, number of systems and density at once."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from wse._numbers import MOST, as_float, each_of_kind, numbers, of_kind, short
from wse.machine.cluster import Cluster
from wse.machine.machine import Machine
from wse.machine.target import target
from wse.models.shapes.workload import Workload
from wse.predict import arrays, bandwidth, limits, seconds
from wse.predict.arrays import Reals

if TYPE_CHECKING:
    import xarray as xr

CASES = 8192  # that are computed together: the arrays of so many stay in the processor's cache
QUANTITIES = {  # name -> unit and long name
    "step_s": ("s", "time of a step"),
    "lower_s": ("s", "time of a step, busiest resource alone"),
    "upper_s": ("s", "time of a step, one after another"),
    "samples_per_s": ("1/s", "rate of training"),
    "micro_batches": ("1", "micro-batches of a step"),
}
REFUSED = {  # why a case has no times, as `refused` counts them
    1: "systems do not divide the batch",
    2: "the activations of one sample do not fit",
}


def sweep(
    models: Workload | Mapping[Any, Workload],
    batch: Iterable[int],
    *,
    machine: Cluster | Machine | str | None = None,
    systems: Iterable[int] = (1,),
    density: Iterable[float] = (1.0,),
    release: str | None = None,
) -> "xr.Dataset":
    """One weight-streaming step of every combination, by the equations of `wse.predict.seconds`.

    Args:
        models: one workload, or several by label, such as their widths.
        batch: samples per step, on all systems together.
        machine: what they run on, a cluster or a name; its number of systems is replaced.
        systems: how many.
        density: share of the sparsifiable weights that are not zero.
        release: of the vendor's software; None: the last that the machine had.

    Returns:
        Times and rates with dimensions model, batch, systems, density; NaN where `refused` is 1,
        for systems do not divide the batch, or 2, for one sample's activations do not fit.

    Raises:
        ValueError: a size that is not positive, a density outside 0 to 1, or what the estimate
            refuses of the machine, the store and the release.

    >>> from wse import workloads
    >>> found = sweep(workloads.get("GPT-J-6B"), [120], systems=[2, 7])
    >>> found.samples_per_s.values.round(1).ravel()
    array([43.7,  nan])
    >>> found.refused.values.ravel()
    array([0, 1], dtype=int8)
    """
    import xarray as xr

    several: Any = {models.name: models} if isinstance(models, Workload) else models
    remedy = "pass a workload, as wse.workload.dense(), or a dictionary of such"
    of_kind("models", several, Mapping, remedy)
    each_of_kind("models", [*several.values()], Workload, remedy)
    axes = _axes(batch, systems, density)
    goal = target(machine, "streaming", release)
    cluster = goal.cluster
    if cluster.sparsity is not None:
        raise ValueError(
            f"machine has sparsity {cluster.sparsity!r}, and a sweep thins all sparsifiable "
            f"weights alike: leave it out and pass density=[{1 - cluster.sparsity.sparsity:.3g}]"
        )
    found = np.stack([_one(work, cluster, axes, goal.release) for work in several.values()], axis=1)
    dims = ("model", "batch", "systems", "density")
    table: dict[str, Any] = {
        name: (dims, values, {"units": unit, "long_name": long_name})
        for (name, (unit, long_name)), values in zip(QUANTITIES.items(), found[:-1], strict=True)
    }
    flags = {"flag_values": [*REFUSED], "flag_meanings": [*REFUSED.values()]}
    table["refused"] = (dims, found[-1].astype(np.int8), flags)
    said = {"machine": cluster.machine.name, "mode": cluster.mode, "release": goal.release}
    meant = {str(work.attention): "" for work in several.values() if work.attention}
    attrs = {**said, "why": "; ".join((goal.why, *meant))}
    return xr.Dataset(table, dict(zip(dims, ([*several], *axes), strict=True)), attrs)


def _axes(
    batch: Iterable[int], systems: Iterable[int], density: Iterable[float]
) -> tuple[Reals, Reals, Reals]:
    given = {"batch": batch, "systems": systems, "density": density}
    rows = {name: numbers(name, row, f"pass {name}=[1]") for name, row in given.items()}
    axes = [np.array([as_float(x) for x in row]) for row in rows.values()]
    for name, axis in (("systems", axes[1]), ("batch", axes[0])):
        if not len(axis) or not ((axis >= 1) & (axis <= MOST) & (np.floor(axis) == axis)).all():
            raise ValueError(
                f"{name} is {short(rows[name])}; it must hold positive integers up to 10^18: pass "
                f"{name}=[100]"
            )
    if not len(axes[2]) or not ((axes[2] >= 0) & (axes[2] <= 1)).all():
        raise ValueError(
            f"density is {short(rows['density'])}; it must lie between 0 and 1: pass density=[0.25]"
        )
    return axes[0], axes[1], axes[2]


def _one(
    work: Workload, cluster: Cluster, axes: tuple[Reals, Reals, Reals], release: str
) -> Float[Reals, "quantity batch systems density"]:
    """The quantities of `QUANTITIES` for one model, and which of `REFUSED` holds."""
    made, plans = bandwidth.rates(work, cluster), arrays.plans(work)
    cases = [values.ravel() for values in np.meshgrid(*axes, indexing="ij")]
    found = np.empty((len(QUANTITIES) + 1, len(cases[0])))
    # Seconds of a sample that links and arithmetic allow at least: linear in the density.
    least = [_least_s(work.sparse(s), cluster) for s in (0.0, 1.0)]
    for held, alike in _held(work, made.sram_bytes, cases[0] / cases[1]).items():
        layers = arrays.shapes(work, cluster, release, merged=True, held=held)
        for some in np.array_split(alike, -(-len(alike) // CASES)):
            b, n, s = (values[some] for values in cases)
            density = np.where(layers.thin, s[:, None], 1.0)
            times = seconds.tried(layers, made, plans, b, n, density)
            sample_s = np.maximum(least[0][0], least[0][1] + s * (least[1][1] - least[0][1]))
            found[:, some] = _best(times, b, n, b / n * sample_s)
    return found.reshape(len(QUANTITIES) + 1, *map(len, axes))


def _held(work: Workload, sram_bytes: float, per_system: Float[Reals, " case"]) -> dict[int, Any]:
    """The cases by samples at once on a system, a power of two; only convolutions ask for it."""
    if not any(layer.grid for layer in work.layers):
        return {1: np.arange(len(per_system))}
    # None at once where none fits, which the times then say.
    most = max(1, arrays.held_at_once(work, sram_bytes, float(per_system.max())))
    powers = 2 ** np.log2(np.clip(per_system, 1, most)).astype(np.int64)
    return {int(n): np.flatnonzero(powers == n) for n in np.unique(powers)}


def _least_s(work: Workload, cluster: Cluster) -> tuple[float, float]:
    """What the link and the arithmetic of one system take of one sample, at least."""
    found = limits.least_s(work, replace(cluster, systems=1), 1.0)
    return found["host link"], found["fabric"]


def _best(
    times: tuple[seconds.Times, ...],
    batch: Float[Reals, " case"],
    systems: Float[Reals, " case"],
    least_s: Float[Reals, " case"],
) -> Float[Reals, "quantity case"]:
    best = seconds.fastest(times)
    fields = ("lockstep_s", "lower_s", "upper_s", "micro")
    chosen = [np.choose(best, [getattr(t, name) for t in times], mode="clip") for name in fields]
    step_s, lower_s, upper_s = (np.maximum(one, least_s) for one in chosen[:3])
    micro = chosen[3]
    found = np.stack([step_s, lower_s, upper_s, batch / step_s, micro])
    refused = np.where(batch % systems != 0, 1.0, 2.0 * (best < 0))
    return np.stack([*np.where(refused > 0, np.nan, found), refused])
