"""What a training run would take on the real machine."""

from dataclasses import asdict, dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from wse import pipelined, render
from wse.catalog import PIPELINED
from wse.cluster import CS2, Cluster
from wse.constants import RELEASE, SETUP, at_end
from wse.phase import Phase, streaming_setup
from wse.workload import Workload

if TYPE_CHECKING:
    import xarray as xr

    from wse.step import Step

HEADER = ("phase", "time", "at best", "resource", "status")
SAMPLES_PER_SYSTEM = 100  # samples of a step on each system, where no batch is given


@dataclass(frozen=True)
class Estimate:
    """Seconds of a training run, phase by phase. Phases add up to `upper_s`.

    Attributes:
        workload: the model.
        cluster: the machine, how many, and the mode.
        samples: samples processed, every epoch counted.
        batch: samples per step; in pipelined mode recorded, and no part of the calibrated rate.
        phases: the parts, set-up first, in the order in which they are spent.
        training_s: seconds of training: of the busiest resource alone, with the mode's overlaps,
            and one after another.
        setup_interval_s: the least and the most that set-up may take.
        training_interval_s: the same of training with the mode's overlaps.
        cautions: what lies outside the range calibrated on; empty inside it.
        release: of the vendor's software; of weight streaming.
        step: one step, layer by layer; None in pipelined mode.
    """

    workload: Workload
    cluster: Cluster
    samples: int
    batch: int
    phases: tuple[Phase, ...]
    training_s: tuple[float, float, float]
    setup_interval_s: tuple[float, float]
    training_interval_s: tuple[float, float]
    cautions: tuple[str, ...] = ()
    release: str = ""
    step: "Step | None" = None

    @property
    def setup_s(self) -> float:
        """Seconds before the first sample: compiling, placing, programming."""
        return sum(phase.time_s for phase in self.setup)

    @property
    def train_s(self) -> float:
        """Seconds of training, with the overlaps of the mode."""
        return self.training_s[1]

    @property
    def total_s(self) -> float:
        """Set-up and training, in seconds."""
        return self.setup_s + self.train_s

    @property
    def lower_s(self) -> float:
        """Set-up and the busiest training resource alone: all else overlaps with it."""
        return self.setup_s + self.training_s[0]

    @property
    def upper_s(self) -> float:
        """Set-up and every part of training, one after another."""
        return self.setup_s + self.training_s[2]

    @property
    def samples_per_s(self) -> float:
        """Samples per second of training; set-up is left out, as in the published table."""
        return self.samples / self.train_s

    @property
    def step_s(self) -> float:
        """Seconds of one step."""
        return self.batch / self.samples_per_s

    @property
    def checkpoint_s(self) -> float:
        """Seconds to write one checkpoint; in no total."""
        return SETUP.checkpoint_s_per_parameter.value * self.workload.parameters

    @property
    def binding(self) -> str:
        """The longest training phase."""
        return max(self.training, key=lambda phase: phase.time_s).name

    @property
    def setup(self) -> tuple[Phase, ...]:
        """The phases of set-up."""
        return tuple(phase for phase in self.phases if phase.name.startswith("setup_"))

    @property
    def training(self) -> tuple[Phase, ...]:
        """The phases of training."""
        return self.phases[len(self.setup) :]

    @property
    def dataset(self) -> "xr.Dataset":
        """The phases, and in weight streaming the layers, as a labelled table.

        By phase, for the whole run: `time_s`, `limit_s`, `resource`, `status`. By layer and part,
        for one step: `layer_time_s`; by layer and direction: `binding`; by layer: `parameters`,
        `forward_flops`. Attributes say what was asked, the totals and the cautions.
        """
        from wse import report

        return report.dataset(self)

    def summary(self) -> dict[str, str | int | float]:
        """What was asked and the totals, by name; times in s."""
        found: dict[str, str | int | float] = {
            "workload": self.workload.name,
            "parameters": self.workload.parameters,
            "machine": self.cluster.machine.name,
            "systems": self.cluster.systems,
            "mode": self.cluster.mode or "pipelined",
            "samples": self.samples,
            "batch": self.batch,
            "setup_s": self.setup_s,
            "train_s": self.train_s,
            "total_s": self.total_s,
            "lower_s": self.lower_s,
            "upper_s": self.upper_s,
            "samples_per_s": self.samples_per_s,
            "slowest_samples_per_s": self.samples / self.training_interval_s[1],
            "fastest_samples_per_s": self.samples / self.training_interval_s[0],
            "step_s": self.step_s,
            "checkpoint_s": self.checkpoint_s,
            "binding": self.binding,
        }
        if self.workload.tokens > 1:
            found["tokens_per_s"] = self.samples_per_s * self.workload.tokens
        if self.step:
            found |= {"release": self.release, "plan": self.step.plan.name}
            found |= {"micro_batches": self.step.micro_batches}
            found |= {"activation_memory_share": self.step.sram_share}
        return found

    def document(self) -> dict[str, object]:
        """All of it in types that JSON knows: the summary, phases, calibration errors, cautions."""
        from wse.calibrate import errors_percent

        rest: dict[str, object] = {
            "phases": [asdict(phase) for phase in self.phases],
            "setup_interval_s": list(self.setup_interval_s),
            "training_interval_s": list(self.training_interval_s),
            "calibration": errors_percent() if self.step is None else {},
        }
        return {**self.summary(), **rest, "cautions": list(self.cautions)}

    def __str__(self) -> str:
        """The phases as a table for a terminal."""
        from wse import report

        table = render.text(HEADER, report.rows(self))
        return "\n".join((report.caption(self), "", table, "", *report.notes(self)))

    def _repr_html_(self) -> str:
        """The phases as a table for a notebook."""
        from wse import report

        return render.html(report.caption(self), HEADER, report.rows(self), report.notes(self))


def estimate(
    model: Any,
    params: Any = None,
    batch: Any = None,
    *,
    machine: Cluster | None = None,
    samples: int = 1_000_000,
    release: str | None = None,
    micro_batch: int | None = None,
    replicas: int = 1,
) -> Estimate:
    """Seconds that training would take: set-up, then steps.

    A cluster without a mode takes the pipelined one for a chain of dense layers that fits on one
    WSE-2, and weight streaming for all else. `wse.pipelined` and `wse.streamed` have the equations,
    `wse.calibrate` the fits; outside the range of these, `cautions` says what is stretched.

    Args:
        model: a `wse.workload.Workload`, a `wse.Graph`, or `loss(params, batch)` as for
            `wse.trace`.
        params: of a loss function: its parameters, or their shapes.
        batch: samples per step, on all systems together (default: 100 for each system); of a loss
            function: its batch, or its shapes, the samples along the leading axis.
        machine: what it runs on; one CS-2 if left out. Its `sparsity`, as of `wse.sparsity`, thins
            the workload's sparsifiable layers, of a gradual one to the share at the end.
        samples: samples processed, every epoch counted.
        release: of the vendor's software, for weight streaming; the latest known if left out.
        micro_batch: samples of one micro-batch on one system, in weight streaming; as many as fit,
            and found by a search that set-up contains, if left out.
        replicas: copies of the model on one wafer, in pipelined mode.

    Returns:
        The estimate, frozen.

    Raises:
        ValueError: counts that are not positive, a batch beyond the samples or one that systems do
            not divide, a model that the wafer or the store cannot hold, an unknown release, or a
            machine that the mode does not know.

    >>> from wse.workload import dense
    >>> result = estimate(dense(width=2048))
    >>> print(f"{result.setup_s:.1f} + {result.train_s:.1f} = {result.total_s:.1f} s")
    801.3 + 8.9 = 810.2 s
    >>> from wse import workloads
    >>> f"{estimate(workloads.get('GPT-J-6B'), batch=120, machine=CS2(2)).samples_per_s:.1f}"
    '43.7'
    """
    workload, batch = as_workload(model, params, batch)
    cluster = _with_mode(workload, CS2() if machine is None else machine)
    if cluster.sparsity is not None:
        workload = workload.sparse(1 - cluster.sparsity.sparsity)
    batch = SAMPLES_PER_SYSTEM * cluster.systems if batch is None else batch
    sizes = {"samples": samples, "batch": batch, "micro_batch": micro_batch}
    for name, count in sizes.items():
        if name == "micro_batch" and count is None:
            continue
        if not isinstance(count, int) or count < 1:
            raise ValueError(f"{name} is {count}; it must be a positive integer: pass {name}=100")
    if batch > samples:
        raise ValueError(
            f"batch is {batch} with {samples} samples; a batch holds at most all samples: "
            f"pass batch={samples} or fewer"
        )
    if cluster.mode == "pipelined":
        return _pipelined(workload, cluster, samples, batch, replicas)
    return _streamed(workload, cluster, samples, batch, release or RELEASE, micro_batch)


def as_workload(model: Any, params: Any, batch: Any) -> tuple[Workload, Any]:
    """A workload from what `estimate` takes, and the samples of a step; None: not said.

    Raises:
        ValueError: parameters beside a workload, or what `wse.trace` refuses.
    """
    if isinstance(model, Workload):
        if params is not None:
            raise ValueError(
                f"params is {params!r}; a workload has its own: pass the cluster as machine=..., "
                "the samples per step as batch=..."
            )
        return model, batch
    # By name: this module computes without JAX.
    traced = import_module("wse.traced")
    if callable(model):
        graph = import_module("wse.tracing").trace(model, params, batch)
        return traced.workload(graph), traced.samples(graph)
    return traced.workload(model), traced.samples(model) if batch is None else batch


def _with_mode(workload: Workload, cluster: Cluster) -> Cluster:
    one = cluster.systems == 1 and cluster.machine.wafer == PIPELINED.wafer
    weights_bytes = workload.parameters * PIPELINED.bytes_per_weight.value
    fits = one and weights_bytes <= cluster.machine.sram_bytes.value
    mode = cluster.mode or ("pipelined" if fits and workload.is_dense_chain else "streaming")
    if mode == "pipelined" and cluster.systems != 1:
        raise ValueError(
            f"systems is {cluster.systems}; the pipelined estimate holds for one system, "
            "because its constants were measured on one: pass systems=1 or mode='streaming'"
        )
    return replace(cluster, mode=mode)


def _pipelined(
    workload: Workload, cluster: Cluster, samples: int, batch: int, replicas: int
) -> Estimate:
    machine = cluster.machine

    def run(fast: bool | None) -> tuple[Phase, ...]:
        constants = PIPELINED if fast is None else at_end(PIPELINED, fast)
        return pipelined.phases(workload, machine, samples, replicas=replicas, constants=constants)

    phases = run(None)
    setup_s, train_s = zip(*(_halves(run(fast)) for fast in (True, False)), strict=True)
    *_, first, second = phases
    together_s = first.time_s + second.time_s
    return Estimate(
        workload,
        cluster,
        samples,
        batch,
        phases,
        (max(first.time_s, second.time_s), together_s, together_s),
        setup_s,
        train_s,
        pipelined.cautions(workload, machine, batch, replicas),
    )


def _halves(phases: tuple[Phase, ...]) -> tuple[float, float]:
    setup_s = sum(phase.time_s for phase in phases if phase.name.startswith("setup_"))
    return setup_s, sum(phase.time_s for phase in phases) - setup_s


def _streamed(
    workload: Workload,
    cluster: Cluster,
    samples: int,
    batch: int,
    release: str,
    micro_batch: int | None,
) -> Estimate:
    from wse import report, step

    made, fast, slow = (
        step.step(workload, cluster, batch, release, micro_batch=micro_batch, fast=end)
        for end in (None, True, False)
    )
    steps = samples / batch
    setup = streaming_setup(workload, micro_batch is None)
    ends = [
        streaming_setup(workload, micro_batch is None, at_end(SETUP, end)) for end in (True, False)
    ]
    phases = (*setup, *report.streamed_phases(workload, cluster, made, release, (samples, batch)))
    return Estimate(
        workload,
        cluster,
        samples,
        batch,
        phases,
        (steps * made.lower_s, steps * made.lockstep_s, steps * made.upper_s),
        (_halves(ends[0])[0], _halves(ends[1])[0]),
        (steps * fast.lockstep_s, steps * slow.lockstep_s),
        report.streamed_cautions(workload, cluster, release),
        release,
        made,
    )
