"""Figures of estimates: where the time goes, what bounds it, how it scales, when what moves.

Each function draws on axes that it is given, or on new ones, and returns them.
"""

# Matplotlib and xarray annotate only part of what they give.
# pyright: reportUnknownMemberType=false

from typing import TYPE_CHECKING, Any

import numpy as np

from wse.predict.estimate import Estimate
from wse.predict.step import PARTS, Step

if TYPE_CHECKING:
    import xarray as xr

COLOURS = {  # Okabe and Ito's, told apart by readers who do not see all colours
    "weights, forward": "#56B4E9",
    "forward": "#0072B2",
    "weights, backward": "#F0E442",
    "backward": "#D55E00",
    "gradients": "#CC79A7",
    "update": "#009E73",
}
MOST_LAYERS = 30  # bars that a reader can tell apart


def bars(estimate: Estimate, ax: Any = None) -> Any:
    """The seconds of one step by layer, its parts stacked as if nothing overlapped.

    Where there are more than 30 layers, those of the same name in different blocks are added up.

    Args:
        estimate: of weight streaming.
        ax: axes to draw on.

    Raises:
        ValueError: an estimate of the pipelined mode, which has no layers.

    >>> import wse
    >>> gpt = wse.workloads.get("GPT-3-1.3B")
    >>> ax = wse.charts.bars(wse.estimate(gpt, batch=121))
    >>> ax.get_xlabel()
    'time of one step, nothing overlapping (s)'
    """
    step, ax = _step(estimate), _axes(ax)
    names, times_s = _grouped(estimate, step)
    longest_s = max(map(sum, zip(*times_s, strict=True)))
    scale, unit = (
        (1.0, "s") if longest_s > 0.1 else (1e3, "ms") if longest_s > 1e-4 else (1e6, "µs")
    )
    left = [0.0] * len(names)
    for part, column in zip(PARTS, times_s, strict=True):
        lengths = [scale * time_s for time_s in column]
        ax.barh(names, lengths, left=left, color=COLOURS[part], label=part)
        left = [a + b for a, b in zip(left, lengths, strict=True)]
    ax.invert_yaxis()
    ax.set(xlabel=f"time of one step, nothing overlapping ({unit})", ylabel="layer")
    ax.legend(fontsize="small", frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax


def roofline(estimate: Estimate, ax: Any = None) -> Any:
    """Operations per byte of weights, and the rate that the machine and the links allow.

    A layer runs at most at its efficiency times the peak, and at most as fast as its weights come:
    operations of one micro-batch over the bytes streamed for them, times the rate of the link.

    Args:
        estimate: of weight streaming.
        ax: axes to draw on.

    Raises:
        ValueError: an estimate of the pipelined mode.

    >>> import wse
    >>> gpt = wse.workloads.get("GPT-3-1.3B")
    >>> ax = wse.charts.roofline(wse.estimate(gpt, batch=121))
    >>> ax.get_xscale()
    'log'
    """
    step, ax = _step(estimate), _axes(ax)
    times, layers = step.times, estimate.workload.layers
    machine, systems = estimate.cluster.machine, estimate.cluster.systems
    held = estimate.batch / (systems * step.micro_batches)
    flops = held * np.array([float(layer.forward_flops) for layer in layers])
    sent = (flops > 0) & (times.weights_s[0] > 0)
    link = machine.host_bits_per_s.value / 8
    intensity = flops[sent] / (times.weights_s[0][sent] * link)
    slot_s = np.maximum(times.forward_s[0], times.weights_s[0])[sent]
    ax.loglog(intensity, flops[sent] / slot_s, "o", color=COLOURS["forward"], label="layers")
    peak = machine.peak_fp16_flops_per_s
    reached = (flops[sent] / times.forward_s[0][sent]).max()
    low, high = min(intensity.min(), reached / link) / 3, 10 * max(intensity.max(), peak / link)
    roofs = ((peak, "-", "links and dense peak"), (reached, "--", "links and what products reach"))
    for top, style, label in roofs:
        at = np.array([low, top / link, high])
        ax.loglog(at, np.minimum(at * link, top), style, color="black", lw=1, label=label)
    ax.set(
        xlabel="operations per byte of weights, forward (FLOP/B)",
        ylabel="rate of one system (FLOP/s)",
    )
    ax.legend(frameon=False)
    return ax


def scaling(found: "xr.Dataset", ax: Any = None) -> Any:
    """Rate over systems, one line to a model and batch, beside the line of perfect scaling.

    Args:
        found: from `wse.sweep`, with several systems.
        ax: axes to draw on.

    >>> import wse
    >>> gpt = wse.workloads.get("GPT-3-1.3B")
    >>> ax = wse.charts.scaling(wse.sweep(gpt, batch=[256], systems=[1, 2, 4]))
    >>> ax.get_xlabel()
    'systems'
    """
    ax = _axes(ax)
    first = found.isel(density=0)
    styles = ("-o", "--s", ":^", "-.D")
    for model in first.model.values:
        for style, batch in zip(styles * len(first.batch), first.batch.values, strict=False):
            rate = first.samples_per_s.sel(model=model, batch=batch).dropna("systems")
            ax.loglog(rate.systems, rate, style, ms=4, label=f"{model}, batch {batch:g}")
    rates = first.samples_per_s.max("batch")
    lowest = rates.isel(model=0).dropna("systems")
    ideal = lowest[0] / lowest.systems[0] * first.systems
    ax.loglog(first.systems, ideal, color="grey", lw=0.8, label="perfect")
    ax.set(xlabel="systems", ylabel="samples per second")
    ax.legend(fontsize="small", frameon=False)
    return ax


def timeline(estimate: Estimate, ax: Any = None) -> Any:
    """What moves and what computes when, in the first micro-batch of a step.

    Each slot begins when the slot before it ends, as in the overlap rules of `wse.predict.seconds`.

    Args:
        estimate: of weight streaming.
        ax: axes to draw on.

    Raises:
        ValueError: an estimate of the pipelined mode.

    >>> import wse
    >>> gpt = wse.workloads.get("GPT-3-1.3B")
    >>> ax = wse.charts.timeline(wse.estimate(gpt, batch=121))
    >>> ax.get_xlabel()
    'time of the first micro-batch (ms)'
    """
    step, ax = _step(estimate), _axes(ax)
    t = step.times
    w, f, b, g = (x[0] for x in (t.weights_s, t.forward_s, t.backward_s, t.gradients_s))
    forward_s, backward_s = t.slots_s[0][0], t.slots_s[1][0][::-1]
    starts = w[0] + np.concatenate([[0.0], np.cumsum([*forward_s, *backward_s])])
    n = len(w)
    going, coming = starts[:n], starts[n : 2 * n]  # of layer 1 to L, then of L to 1
    back_w, back_g = step.plan.passes * w[:-1][::-1], g[1:][::-1]
    spans = {
        "weights in": [
            (0.0, w[0]),
            *zip(going[:-1], w[1:], strict=True),
            *zip(coming[:-1], back_w, strict=True),
        ],
        "forward": [*zip(going, f, strict=True)],
        "backward": [*zip(coming, b[::-1], strict=True)],
        "gradients out": [*zip(coming[1:], back_g, strict=True), (starts[2 * n], g[0])],
    }
    colours = ("weights, forward", "forward", "backward", "gradients")
    for row, ((name, found), colour) in enumerate(zip(spans.items(), colours, strict=True)):
        bars_ms = [(1e3 * start, 1e3 * length) for start, length in found]
        edge = {"edgecolor": "white", "linewidth": 0.3}
        ax.broken_barh(bars_ms, (row - 0.4, 0.8), color=COLOURS[colour], label=name, **edge)
    ax.set_yticks(range(len(spans)), [*spans])
    ax.invert_yaxis()
    ax.set_xlabel("time of the first micro-batch (ms)")
    return ax


def _step(estimate: Estimate) -> Step:
    if estimate.step is None:
        raise ValueError(
            f"the estimate of {estimate.workload.name!r} is of the pipelined mode, which is not "
            "known layer by layer: pass machine=wse.CS2(mode='streaming')"
        )
    return estimate.step


def _grouped(estimate: Estimate, step: Step) -> tuple[list[str], list[list[float]]]:
    """Names of bars, and for every part the seconds of each."""
    names = [layer.name for layer in estimate.workload.layers]
    if len(names) > MOST_LAYERS:
        names = [name.rpartition(".")[2] for name in names]
    rows = {name: [0.0] * len(PARTS) for name in names}
    for name, times_s in zip(names, step.layer_times_s(), strict=True):
        rows[name] = [a + float(b) for a, b in zip(rows[name], times_s, strict=True)]
    return [*rows], [list(column) for column in zip(*rows.values(), strict=True)]


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(7, 4), layout="constrained")[1]
