"""What a training run would take on the real machine."""

from dataclasses import replace
from importlib import import_module
from typing import Any

from wse.machine.catalog import PIPELINED
from wse.machine.cluster import Cluster
from wse.machine.constants import RELEASE, SETUP, at_end
from wse.machine.machine import Machine
from wse.machine.specification import chosen
from wse.models.shapes.workload import Workload
from wse.predict import resident, step
from wse.predict.phase import Phase, streamed_cautions, streamed_phases, streaming_setup
from wse.predict.result import Estimate

UNNAMED = (
    "the rule of the sparsity names parameters, and a workload has none: all its sparsifiable "
    "layers are thinned alike; pass a loss function with its params"
)
SAMPLES_PER_SYSTEM = 100  # samples of a step on each system, where no batch is given


def estimate(
    model: Any,
    params: Any = None,
    batch: Any = None,
    *,
    machine: Cluster | Machine | str | None = None,
    samples: int = 1_000_000,
    release: str | None = None,
    micro_batch: int | None = None,
    replicas: int = 1,
) -> Estimate:
    """Seconds that training would take: set-up, then steps.

    A cluster without a mode takes the pipelined one for a chain of dense layers that fits on one
    WSE-2, and weight streaming for all else. `wse.predict.resident` and `wse.predict.seconds` have
    the equations, `wse.calibrate` the fits; outside the range of these,
    `cautions` says what is stretched.

    Args:
        model: a `wse.workload.Workload`, a `wse.Graph`, or `loss(params, batch)` as for
            `wse.trace`, with auxiliary outputs beside the loss or without.
        params: of a loss function: its parameters, or their shapes.
        batch: samples per step, on all systems together (default: 100 for each system); of a loss
            function: its batch, or its shapes, the samples along the leading axis; where arrays of
            a batch differ in it, pass `wse.trace(loss, params, batch, batch_size=...)` as model.
        machine: what it runs on, a cluster or a name as "cs2"; one CS-2 if left out. Its
            `sparsity`, as of `wse.sparsity`, thins the parameters that its rule chooses, of a
            workload all sparsifiable layers; a gradual one to the share at the end.
        samples: samples processed, every epoch counted.
        release: of the vendor's software, for weight streaming; the latest known if left out.
        micro_batch: samples of one micro-batch on one system, in weight streaming; as many as fit,
            and found by a search that set-up contains, if left out.
        replicas: copies of the model on one wafer, in pipelined mode.

    Raises:
        ValueError: counts that are not positive, a batch beyond the samples or one that systems do
            not divide, a model that the wafer or the store cannot hold, an unknown release, or a
            machine that the mode does not know.

    >>> from wse.workload import dense
    >>> result = estimate(dense(width=2048))
    >>> print(f"{result.setup_s:.1f} + {result.train_s:.1f} = {result.total_s:.1f} s")
    801.3 + 8.9 = 810.2 s
    >>> from wse import CS2, workloads
    >>> f"{estimate(workloads.get('GPT-J-6B'), batch=120, machine=CS2(2)).samples_per_s:.1f}"
    '43.7'
    """
    cluster = chosen(machine)
    workload, batch, doubts = as_workload(model, params, batch, cluster.sparsity)
    cluster = _with_mode(workload, cluster)
    batch = SAMPLES_PER_SYSTEM * cluster.systems if batch is None else batch
    sizes = {"samples": samples, "batch": batch}
    if micro_batch is not None:
        sizes["micro_batch"] = micro_batch
    for name, count in sizes.items():
        if not isinstance(count, int) or count < 1:
            raise ValueError(f"{name} is {count}; it must be a positive integer: pass {name}=100")
    if batch > samples:
        raise ValueError(
            f"batch is {batch} with {samples} samples; a batch holds at most all samples: "
            f"pass batch={samples} or fewer"
        )
    if cluster.mode == "pipelined":
        found = _pipelined(workload, cluster, samples, batch, replicas)
    else:
        found = _streamed(workload, cluster, samples, batch, release or RELEASE, micro_batch)
    return replace(found, cautions=(*doubts, *found.cautions))


def as_workload(
    model: Any, params: Any, batch: Any, sparsity: Any = None
) -> tuple[Workload, Any, tuple[str, ...]]:
    """A workload from what `estimate` takes, thinned by a method of `wse.sparsity`.

    Returns:
        The workload, the samples of a step (None: not said), and what is in doubt about both.

    Raises:
        ValueError: parameters beside a workload, or what `wse.trace` refuses.
    """
    if isinstance(model, Workload):
        if params is not None:
            raise ValueError(
                f"params is {params!r}; a workload has its own: pass the cluster as machine=..., "
                "the samples per step as batch=..."
            )
        if sparsity is None:
            return model, batch, ()
        thin = model.sparse(1 - sparsity.sparsity)
        rule = sparsity.rule
        return thin, batch, (UNNAMED,) if rule != type(rule)() else ()
    # By name: this module computes without JAX.
    return import_module("wse.models.from_graph").traced(model, params, batch, sparsity)


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
        return resident.phases(workload, machine, samples, replicas=replicas, constants=constants)

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
        resident.cautions(workload, machine, batch, replicas),
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
    made, fast, slow = (
        step.step(workload, cluster, batch, release, micro_batch=micro_batch, fast=end)
        for end in (None, True, False)
    )
    steps = samples / batch
    setup, fast_setup, slow_setup = (
        streaming_setup(workload, micro_batch is None, constants)
        for constants in (SETUP, at_end(SETUP, fast=True), at_end(SETUP, fast=False))
    )
    phases = (*setup, *streamed_phases(workload, cluster, made, release, (samples, batch)))
    return Estimate(
        workload,
        cluster,
        samples,
        batch,
        phases,
        (steps * made.lower_s, steps * made.lockstep_s, steps * made.upper_s),
        (_halves(fast_setup)[0], _halves(slow_setup)[0]),
        (steps * fast.lockstep_s, steps * slow.lockstep_s),
        streamed_cautions(workload, cluster, release),
        release,
        made,
    )
