"""Forward only: how long a batch of answers takes, and how many come per second.

Streamed, B samples on N systems in m micro-batches take

    T = m (t_w(1) + sum_l max(t_f(l), t_w(l+1))) + input          B / T samples per second

with the terms of `wse.predict.seconds`. A chain of dense layers that stays on one wafer answers
one sample after another, at the slower of its input and of the packing of `wse.packing`:

    T = B max(input, cycles / f) + (layers - 1) cycles / f

with the input of `wse.predict.resident`. No answer is faster than the machine's links and
arithmetic allow (`wse.predict.limits`), and what does not stay on the wafer is refused.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wse import _render
from wse._numbers import positive, short
from wse.machine import specification
from wse.machine.cluster import Cluster
from wse.machine.machine import Machine
from wse.machine.target import Target
from wse.models.shapes.workload import Workload
from wse.predict import limits, packing, resident
from wse.predict import seconds as streamed
from wse.predict.arrays import Plan
from wse.predict.estimate import aimed, as_workload, doubts
from wse.predict.step import Given, given, smaller


@dataclass(frozen=True)
class Inference:
    """Seconds to answer one batch.

    Attributes:
        workload: the model.
        cluster: the machine, how many, and the mode.
        batch: samples that are asked together.
        latency_s: seconds until the last answer.
        interval_s: the least and the most that this may be.
        micro_batches: m.
        binding: what takes longest: "compute", "weights" or "input".
        release: of the vendor's software.
        why: who or what chose machine, mode and release.
        cautions: what is in doubt, and what the machine does not run.
    """

    workload: Workload
    cluster: Cluster
    batch: int
    latency_s: float
    interval_s: tuple[float, float]
    micro_batches: int
    binding: str
    release: str = ""
    why: str = ""
    cautions: tuple[str, ...] = ()

    @property
    def samples_per_s(self) -> float:
        """Answers per second, batch after batch."""
        return self.batch / self.latency_s

    def summary(self) -> dict[str, str | int | float]:
        """What was asked and what it takes, by name; times in s."""
        return {
            "workload": self.workload.name,
            "parameters": self.workload.parameters,
            "machine": self.cluster.machine.name,
            "systems": self.cluster.systems,
            "mode": self.cluster.mode or "streaming",
            "release": self.release,
            "why": self.why,
            "batch": self.batch,
            "latency_s": self.latency_s,
            "fastest_s": self.interval_s[0],
            "slowest_s": self.interval_s[1],
            "samples_per_s": self.samples_per_s,
            "micro_batches": self.micro_batches,
            "binding": self.binding,
        }

    def __repr__(self) -> str:
        """One line: what was asked, and the time that it takes; `print` shows more."""
        where = f"{self.cluster.systems} x {self.cluster.machine.name}, {self.batch} at once"
        return f"Inference({self.workload.name} on {where}: {self.latency_s:.3g} s)"

    def __str__(self) -> str:
        """All that `summary` says, in a sentence for a terminal."""
        fast_s, slow_s = self.interval_s
        return (
            f"{self.workload.name} on {self.cluster.systems} x {self.cluster.machine.name} "
            f"({self.cluster.mode}), batch {self.batch}: {self.latency_s:.3g} s "
            f"({fast_s:.3g} to {slow_s:.3g}), {self.samples_per_s:.4g} samples/s; {self.binding} "
            f"takes longest; for {self.why}"
            + "".join(f"\ncaution: {caution}" for caution in self.cautions)
        )

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        rows = [
            (name, f"{x:.6g}" if isinstance(x, float) else str(x))
            for name, x in self.summary().items()
        ]
        return _render.html(self.workload.name, ("", "forward only"), rows, self.cautions)


def inference(
    workload: Any,
    batch: int = 1,
    *,
    machine: Cluster | Machine | str | None = None,
    release: str | None = None,
) -> Inference:
    """Seconds that the forward pass of one batch takes.

    Args:
        workload: the model: a workload, a name as "GPT-J-6B", or a `wse.Graph`.
        batch: samples that are asked together; the systems must divide it.
        machine: what it runs on, a cluster or a name; one CS-2 if left out. Mode "pipelined": the
            model stays there. A mode left out is chosen as `wse.estimate` chooses it; its
            `sparsity` thins the parameters, which saves time in weight streaming alone.
        release: of the vendor's software; None: the last that the machine had in the mode.

    Raises:
        ValueError: a batch that is not positive or not divided, a model that does not fit, a
            machine that the mode does not know, or a release that it never had.

    >>> from wse.workload import dense
    >>> from wse import CS2
    >>> resident = inference(dense(width=512), 1, machine=CS2(mode="pipelined"))
    >>> f"{1e6 * resident.latency_s:.1f} us"
    '4.7 us'
    """
    if callable(workload):
        raise ValueError(
            f"workload is {short(workload)}, a function; answers are timed of a model whose layers "
            "are known: pass wse.trace(loss, params, batch)"
        )
    given_to = specification.chosen(machine)
    asked = as_workload(workload, None, None, given_to.sparsity)
    goal = aimed(asked.workload, machine, release)
    found = _answered(asked.workload, goal, batch)
    return replace(found, cautions=doubts(asked, goal, given_to.mode))


def _answered(workload: Workload, goal: Target, batch: int) -> Inference:
    cluster = goal.cluster
    batch = positive("batch", batch, f"pass batch={cluster.systems}")
    if batch % cluster.systems:
        raise ValueError(
            f"batch is {batch} on {cluster.systems} systems; they must divide it: "
            f"pass batch={cluster.systems}"
        )
    if cluster.mode == "pipelined":
        return _resident(workload, goal, batch)
    seconds = [
        _streamed(workload, cluster, batch, goal.release, fast) for fast in (None, True, False)
    ]
    parts, micro = seconds[0]
    totals = [found["total"] for found, _ in seconds]
    binding = max(("compute", "weights", "input"), key=lambda name: parts[name])
    return _made(workload, goal, batch, totals, micro=micro, binding=binding)


def _made(
    workload: Workload, goal: Target, batch: int, times_s: list[float], *, micro: int, binding: str
) -> Inference:
    """The answer, no time of it below what links and arithmetic allow."""
    least = limits.least_s(workload, goal.cluster, batch, training=False)
    first, *rest = (max(time_s, *least.values()) for time_s in times_s)
    ends = min(first, *rest), max(first, *rest)
    return Inference(
        workload, goal.cluster, batch, first, ends, micro, binding, goal.release, goal.why
    )


def _streamed(
    workload: Workload, cluster: Cluster, batch: int, release: str, fast: bool | None
) -> tuple[dict[str, float], int]:
    per_system = batch / cluster.systems
    layers, made, _ = given(workload, cluster, release, fast, Given(), per_system)
    # Forward only, what one layer reads and writes is all that waits.
    most = max(layer.inputs + layer.outputs for layer in workload.layers)
    plan = Plan("forward", 1, 0, float(made.constants.activation_bytes.value * most))
    cases = np.array([float(batch)]), np.array([float(cluster.systems)])
    micro = streamed.micro_batches(plan, made, cases[0] / cases[1])
    if np.isnan(micro[0]):
        raise ValueError(
            f"activations of one sample of {workload.name} need {plan.bytes_per_sample / 1e9:.3g} "
            f"GB in one layer, of the {made.sram_bytes / 1e9:.3g} GB of {cluster.machine.wafer} "
            "that they may use, and more systems do not help, for a sample stays on one: "
            f"{smaller(workload, made.sram_bytes / plan.bytes_per_sample)}make the model narrower"
        )
    t = streamed.times(layers, made, plan, *cases, layers.density[None], micro)
    m = float(micro[0])
    forward_s = m * float(t.weights_s[0, 0] + t.slots_s[0][0].sum())
    parts = {
        "compute": m * float(t.forward_s.sum()),
        "weights": m * float(t.weights_s.sum()),
        "input": float(t.input_s[0]),
        "total": forward_s + float(t.input_s[0]),
    }
    return parts, int(m)


def _resident(workload: Workload, goal: Target, batch: int) -> Inference:
    cluster, machine = goal.cluster, goal.cluster.machine
    if cluster.systems != 1:
        raise ValueError(
            f"machine is {cluster.systems} x {machine.name}; the rate of input in pipelined mode "
            f"was calibrated on one system: pass machine=wse.{machine.name.replace('-', '')}"
            "(mode='pipelined')"
        )
    constants = resident.known(machine)
    slot_s = packing.fewest_cycles(workload, machine.cores_on_grid) / machine.clock_hz.value
    limits.check_resident(workload, cluster)
    enters = resident.input_s(workload, constants)
    filling_s = (len(workload.layers) - 1) * slot_s
    times_s = [batch * max(one, slot_s) + filling_s for one in enters]
    binding = "input" if enters[0] > slot_s else "compute"
    return _made(workload, goal, batch, times_s, micro=1, binding=binding)
