"""One weight-streaming step of one model on one cluster, layer by layer."""

from dataclasses import dataclass, field, replace
from math import ceil, gcd, log2
from typing import Literal

import numpy as np
from jaxtyping import Float

from wse.machine.cluster import Cluster
from wse.machine.constants import SHARES, STREAMING, Streaming
from wse.machine.machine import Sourced
from wse.machine.share import Shares as Known
from wse.models.shapes.workload import Workload
from wse.predict import arrays, bandwidth, seconds
from wse.predict.arrays import Plan, Reals, Shapes
from wse.predict.bandwidth import Rates
from wse.predict.seconds import Times

PARTS = ("weights, forward", "forward", "weights, backward", "backward", "gradients", "update")

MOST_LEVELS = 12  # of trees that are compared: 4096 systems are more than any site has

Resource = Literal[
    "host compiler",
    "host link",
    "fabric",
    "weights in",
    "gradients out",
    "store",
    "systems",
    "processor",
    "memory",
    "host",
    "network",
]
RESOURCES: dict[str, Resource] = {  # part of a step -> what it waits for in it
    "compute": "fabric",
    "weights": "weights in",
    "gradients": "gradients out",
    "update": "store",
    "input": "host link",
    "step": "systems",
}


@dataclass(frozen=True)
class Given:
    """Calibrated numbers of weight streaming; a fit that left a run out gives others.

    Attributes:
        constants: of the equations.
        shares: of the dense peak.
    """

    constants: Streaming = STREAMING
    shares: Known = SHARES


@dataclass(frozen=True)
class Step:
    """The seconds of one step.

    Attributes:
        plan: what waits on the wafer for the backward pass.
        micro_batches: m.
        times: the arrays of the equations, with one case.
        step_s: what a step costs whatever it computes.
        sram_share: of the usable memory that activations fill.
        share: of the dense peak that the layer with the most work reaches.
        held: samples at once on one system for which convolutions are laid out.
    """

    plan: Plan
    micro_batches: int
    times: Times = field(repr=False)
    step_s: float
    sram_share: float
    share: Sourced
    held: int

    @property
    def lower_s(self) -> float:
        """The busiest resource alone."""
        return float(self.times.lower_s[0])

    @property
    def lockstep_s(self) -> float:
        """With the overlaps of `wse.predict.seconds`."""
        return float(self.times.lockstep_s[0])

    @property
    def upper_s(self) -> float:
        """One after another."""
        return float(self.times.upper_s[0])

    def layer_times_s(self) -> Float[Reals, "layer part"]:
        """Seconds of every layer (rows) for each of `PARTS` (columns), all micro-batches added."""
        t, m = self.times, self.micro_batches
        back_s = self.plan.passes * t.weights_s[0]
        columns = [t.weights_s[0], t.forward_s[0], back_s, t.backward_s[0], t.gradients_s[0]]
        return np.stack([*(m * column for column in columns), t.update_s[0]], axis=1)

    def exposed_s(self) -> dict[str, float]:
        """Seconds of the step by what it waits for; together they are `lockstep_s`.

        A slot is its compute, and what weights or gradients take longer, whichever does.
        """
        t, m, r = self.times, self.micro_batches, self.plan.passes
        w, g = np.append(t.weights_s[0], 0.0), np.append(t.gradients_s[0], 0.0)
        forward, backward = (slots[0] for slots in t.slots_s)
        late_w, late_g = r * np.append(0.0, w[:-2]), g[1:]
        more = backward - t.backward_s[0]
        found = {
            "compute": m * float(t.forward_s.sum() + t.backward_s.sum()),
            "weights": m
            * float(w[0] + (forward - t.forward_s[0]).sum() + more[late_w >= late_g].sum()),
            "gradients": m * float(more[late_w < late_g].sum()) + float(g[0]),
            "update": float(t.update_s[0, 0]),
            "input": 0.0,
            "step": self.step_s,
        }
        # Where not the layers' order but one resource sets the pace, the step waits for that.
        busiest = max(t.busy_s, key=lambda name: t.busy_s[name][0])
        waits = next(part for part, resource in RESOURCES.items() if resource == busiest)
        found[waits] += max(0.0, self.lockstep_s - sum(found.values()))
        return found

    def binding(self) -> tuple[list[str], list[str]]:
        """For every layer, what sets its slot on the way forward and on the way back."""
        t = self.times
        w, g = np.append(t.weights_s[0], 0.0), np.append(t.gradients_s[0], 0.0)
        forward = np.stack([t.forward_s[0], w[1:]])
        back_w = self.plan.passes * np.append(0.0, t.weights_s[0][:-1])
        backward = np.stack([t.backward_s[0], back_w, g[1:]])
        names = ("compute", "weights", "gradients")
        return (
            [names[i] for i in forward.argmax(axis=0)],
            [names[i] for i in backward.argmax(axis=0)],
        )


def step(
    workload: Workload,
    cluster: Cluster,
    batch: int,
    release: str,
    *,
    micro_batch: int | None = None,
    fast: bool | None = None,
    known: Given | None = None,
) -> Step:
    """One step of a workload on a cluster.

    Args:
        workload: the model.
        cluster: the machine and how many.
        batch: samples of the step, on all systems together.
        release: of the vendor's software.
        micro_batch: samples of one micro-batch on one system; None: as many as fit.
        fast: take every constant at the fast or slow end of its interval; None: as they are.
        known: the calibrated numbers; None: those of `wse.constants`.

    Raises:
        ValueError: a batch that the systems do not divide, of which the micro-batch does not divide
            a share, activations of one sample that do not fit, or what `wse.predict.bandwidth` and
            `wse.constants` refuse.
    """
    if batch % cluster.systems:
        raise ValueError(
            f"batch is {batch} on {cluster.systems} systems; they must divide it: "
            f"pass batch={-(-batch // cluster.systems) * cluster.systems}"
        )
    share = batch // cluster.systems
    if micro_batch and share % micro_batch:
        raise ValueError(
            f"micro_batch is {micro_batch} for {share} samples of a system; it must divide them: "
            f"pass micro_batch={gcd(micro_batch, share)}"
        )
    per_system, known = batch / cluster.systems, known or Given()
    layers, made, held = given(workload, cluster, release, fast, known, per_system, micro_batch)
    plans = arrays.plans(workload, made.constants)
    cases = np.array([float(batch)]), np.array([float(cluster.systems)])
    found = seconds.tried(layers, made, plans, *cases, layers.density[None], micro_batch)
    best = int(seconds.fastest(found)[0])
    if best < 0:
        raise ValueError(_too_large(workload, cluster, plans, made.sram_bytes, micro_batch))
    micro = int(found[best].micro[0])
    each = min(micro_batch or batch, -(-batch // (cluster.systems * micro)))
    filled = plans[best].bytes_per_sample * each / made.sram_bytes
    step_s = made.constants.step_s.value
    return Step(plans[best], micro, found[best], step_s, filled, layers.share, held)


def crowded(
    workload: Workload,
    cluster: Cluster,
    batch: int,
    release: str,
    micro_batch: int | None,
    step_s: float,
) -> tuple[str, ...]:
    """What is said where fewer systems take less, for weights pass fewer levels of the tree.

    Arguments as of `step`, and its time.
    """
    levels, found = ceil(log2(cluster.systems)), dict[int, float]()
    for level in range(min(levels - 1, MOST_LEVELS), -1, -1):
        fewer = next(n for n in range(2**level, 0, -1) if batch % n == 0)
        if micro_batch and (batch // fewer) % micro_batch:
            break
        less = replace(cluster, systems=fewer)
        found[fewer] = step(workload, less, batch, release, micro_batch=micro_batch).lockstep_s
        if found[fewer] >= step_s:
            break
    best = min(found, key=lambda n: found[n], default=cluster.systems)
    if found.get(best, step_s) >= step_s:
        return ()
    return (
        f"{best} systems take {found[best]:.3g} s for a step, {cluster.systems} take {step_s:.3g} "
        f"s: every layer waits for weights and gradients through a tree of {levels} levels, of "
        f"{best} through one of {ceil(log2(best))}, and what each system computes is too little "
        "to hide it",
    )


def given(
    workload: Workload,
    cluster: Cluster,
    release: str,
    fast: bool | None,
    known: Given,
    per_system: float,
    micro_batch: int | None = None,
) -> tuple[Shapes, Rates, int]:
    """The layers and rates that the equations need, and samples at once; arguments as of `step`."""
    made = bandwidth.rates(workload, cluster, known.constants, fast)
    held = arrays.held_at_once(workload, made.sram_bytes, per_system, micro_batch)
    layers = arrays.shapes(workload, cluster, release, fast=fast, known=known.shares, held=held)
    return layers, made, held


def _too_large(
    workload: Workload,
    cluster: Cluster,
    plans: tuple[Plan, ...],
    sram_bytes: float,
    micro_batch: int | None,
) -> str:
    need = min(plan.bytes_per_sample for plan in plans)
    held = f"{sram_bytes / 1e9:.3g} GB of {cluster.machine.wafer} that activations may use"
    if micro_batch and need <= sram_bytes:
        return (
            f"micro_batch is {micro_batch}; its activations need {micro_batch * need / 1e9:.3g} GB "
            f"of the {held}: pass micro_batch={int(sram_bytes // need)} or fewer"
        )
    return (
        f"activations of one sample of {workload.name} need {need / 1e9:.3g} GB, computed again as "
        f"far as possible, of the {held}, and more systems do not help, for a sample stays on one: "
        f"{smaller(workload, sram_bytes / need)}make the model narrower"
    )


def smaller(workload: Workload, share: float) -> str:
    """What to make of a sample of which such a share of the activations fits, and an "or".

    >>> from wse.models.shapes import get
    >>> smaller(get("U-Net-3D"), 0.63)
    'crop the image from 512 x 512 x 512 to about 416 x 416 x 416, or '
    """
    sides = next((layer.grid[0].size for layer in workload.layers if layer.grid), ())
    if sides:
        each = share ** (1 / sum(n > 1 for n in sides))
        fit = [int(n * each) // 32 * 32 or max(1, int(n * each)) for n in sides]  # halves often
        old, new = (" x ".join(map(str, x)) for x in (sides, fit))
        return f"crop the image from {old} to about {new}, or "
    if workload.tokens > 1:
        tokens = max(1, int(workload.tokens * share))
        return f"shorten the sequence from {workload.tokens} to about {tokens} tokens, or "
    return ""
