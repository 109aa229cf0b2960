"""An estimate in words and tables: phases of a streamed run, cautions, rows, labelled data."""

from typing import TYPE_CHECKING, Any

from wse import catalog
from wse.cluster import Cluster
from wse.constants import efficiency
from wse.machine import Sourced, Status
from wse.phase import Phase, Resource
from wse.workload import Workload

if TYPE_CHECKING:
    import xarray as xr

    from wse.estimate import Estimate
    from wse.step import Step

RESOURCES: dict[str, Resource] = {  # phase of training -> what is busy in it
    "compute": "fabric",
    "weights": "weights in",
    "gradients": "gradients out",
    "update": "store",
    "input": "host link",
    "step": "systems",
}


def streamed_phases(
    workload: Workload, cluster: Cluster, step: "Step", release: str, run: tuple[int, int]
) -> tuple[Phase, ...]:
    """The training phases of a streamed run, as if nothing overlapped.

    Args:
        workload: the model.
        cluster: the machine and how many.
        step: one step.
        release: of the vendor's software.
        run: samples in all, and in a step.
    """
    samples, batch = run
    busy_s = {name: float(time_s[0]) for name, time_s in step.times.busy_s.items()}
    # The last layer's weights wait on the wafer; without overlap they would come again.
    busy_s["weights in"] += step.upper_s - step.step_s - sum(busy_s.values())
    busy_s["systems"] = step.step_s
    flops = samples * (workload.forward_flops + workload.backward_flops)
    dense = all(layer.density == 1 for layer in workload.layers)
    at_peak_s = flops / (cluster.systems * cluster.machine.peak_fp16_flops_per_s) if dense else 0.0
    statuses: dict[str, Status] = {
        "compute": _widest(workload, cluster, release).status,
        "step": "calibrated",
        "input": "derived",
    }
    return tuple(
        Phase(
            name,
            resource,
            samples / batch * busy_s[resource],
            at_peak_s if name == "compute" else 0.0,
            statuses.get(name, "assumed"),
        )
        for name, resource in RESOURCES.items()
    )


def streamed_cautions(workload: Workload, cluster: Cluster, release: str) -> tuple[str, ...]:
    """What lies outside the one model that weight streaming was calibrated on."""
    share = _widest(workload, cluster, release)
    tree = cluster.tree or catalog.TREES[cluster.machine.wafer]
    kinds = {layer.kind for layer in workload.layers}
    sparse = any(layer.density < 1 or layer.zeros > 0 for layer in workload.layers)
    low, high = share.interval or (share.value, share.value)
    found = {
        f"efficiency {share.value:.3g} is {share.status} ({low:.2g} to {high:.2g}): "
        f"{share.source}": share.status != "calibrated",
        "efficiencies were calibrated on a transformer: for convolutions nothing was published": (
            "convolution" in kinds
        ),
        "efficiencies were calibrated on a transformer: for dense nets nothing was published but "
        "the time of a small step": kinds == {"dense"},
        "zero weights are assumed to cost nothing": sparse,
        f"{cluster.systems} systems are more than the {tree.most_systems.value:g} planned for": (
            cluster.systems > tree.most_systems.value
        ),
    }
    return tuple(text for text, holds in found.items() if holds)


def caption(estimate: "Estimate") -> str:
    """What was asked, in one line."""
    cluster, workload = estimate.cluster, estimate.workload
    release = f", {estimate.release}" if estimate.release else ""
    return (
        f"{workload.name}, {workload.parameters:,} parameters, on {cluster.systems} x "
        f"{cluster.machine.name} ({cluster.mode}{release}): {estimate.samples:,} samples, "
        f"batch {estimate.batch}"
    )


def rows(estimate: "Estimate") -> list[tuple[str, ...]]:
    """The phases and their total as text."""
    found: list[tuple[str, ...]] = [
        (x.name, seconds(x.time_s), seconds(x.limit_s), x.resource, x.status)
        for x in estimate.phases
    ]
    return [*found, ("one after another", seconds(estimate.upper_s), "", "", "")]


def notes(estimate: "Estimate") -> list[str]:
    """Totals, bounds, intervals, how it was calibrated, cautions."""
    fast_s, slow_s = estimate.training_interval_s
    rate = f"{_rate(estimate.samples_per_s)} samples/s"
    if estimate.workload.tokens > 1:
        rate += f", {_rate(estimate.samples_per_s * estimate.workload.tokens)} tokens/s"
    return [
        f"set-up {estimate.setup_s:.1f} s, training {seconds(estimate.train_s)} ({rate}), in all "
        f"{seconds(estimate.total_s)}; longest phase: {estimate.binding}",
        f"in all at least {seconds(estimate.lower_s)}, if only the busiest resource counted, at "
        f"most {seconds(estimate.upper_s)}, if nothing overlapped",
        f"training {seconds(fast_s)} to {seconds(slow_s)} at the ends of the constants' intervals",
        *(_streamed_notes(estimate, estimate.step) if estimate.step else _pipelined_notes()),
        *(f"caution: {caution}" for caution in estimate.cautions),
    ]


def dataset(estimate: "Estimate") -> "xr.Dataset":
    """The phases, and in weight streaming the layers, as `Estimate.dataset` describes."""
    import xarray as xr

    phases = estimate.phases
    unit = {"units": "s", "long_name": "time, phases add"}
    limit = {"units": "s", "long_name": "least time that the machine's numbers allow"}
    table: dict[str, Any] = {
        "time_s": ("phase", [x.time_s for x in phases], unit),
        "limit_s": ("phase", [x.limit_s for x in phases], limit),
        "resource": ("phase", [x.resource for x in phases]),
        "status": ("phase", [x.status for x in phases]),
    }
    coords: dict[str, Any] = {"phase": [x.name for x in phases]}
    attrs = {**estimate.summary(), "cautions": list(estimate.cautions)}
    if estimate.step is None:
        from wse.calibrate import errors_percent

        return xr.Dataset(table, coords, attrs | errors_percent())
    from wse.step import PARTS

    layers = estimate.workload.layers
    per_step = {"units": "s", "long_name": "time of one step"}
    table |= {
        "layer_time_s": (("layer", "part"), estimate.step.layer_times_s(), per_step),
        "binding": (("direction", "layer"), [*estimate.step.binding()]),
        "parameters": ("layer", [x.parameters for x in layers], {"units": "1"}),
        "forward_flops": ("layer", [float(x.forward_flops) for x in layers], {"units": "FLOP"}),
    }
    coords |= {"layer": [x.name for x in layers], "part": [*PARTS]}
    return xr.Dataset(table, coords | {"direction": ["forward", "backward"]}, attrs)


def seconds(time_s: float) -> str:
    """Seconds to be read: two decimals, or three digits where that is less than 10 ms.

    >>> seconds(1.234), seconds(0.00123)
    ('1.23 s', '0.00123 s')
    """
    return f"{time_s:,.2f} s" if time_s >= 0.01 or time_s == 0 else f"{time_s:.3g} s"


def _pipelined_notes() -> list[str]:
    from wse.calibrate import errors_percent

    errors = errors_percent()
    return [
        "calibrated on Table 4 of the OSTI brief, no prediction; mean error in sample and of "
        f"a net left out: training {errors['train_in_sample_mape_percent']:.1f} and "
        f"{errors['train_leave_one_out_mape_percent']:.1f} %, set-up "
        f"{errors['setup_in_sample_mape_percent']:.1f} and "
        f"{errors['setup_leave_one_out_mape_percent']:.1f} %"
    ]


def _streamed_notes(estimate: "Estimate", step: "Step") -> list[str]:
    share = _widest(estimate.workload, estimate.cluster, estimate.release)
    kept = {
        "keep": "all activations wait for the backward pass",
        "blocks": "what enters each block waits for the backward pass",
        "segments": "what enters every few blocks waits for the backward pass",
    }
    return [
        f"a step of {estimate.batch} samples takes {seconds(estimate.step_s)} in "
        f"{step.micro_batches} micro-batches: {kept[step.plan.name]} and fills "
        f"{100 * step.sram_share:.0f} % of the memory that it may use",
        f"products reach {100 * share.value:.1f} % of the dense peak ({share.status}: "
        f"{share.source})",
    ]


def _widest(workload: Workload, cluster: Cluster, release: str) -> Sourced:
    """The efficiency of the layer with the most work."""
    layer = max(workload.layers, key=lambda x: x.forward_flops)
    return efficiency(cluster.machine.wafer, release, layer.features or layer.inputs)


def _rate(per_s: float) -> str:
    return f"{per_s:,.0f}" if per_s >= 1000 else f"{per_s:.4g}"
