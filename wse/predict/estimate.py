"""What a training run would take on the real machine."""

from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple, cast

from wse._numbers import is_whole, of_loss, positive, short
from wse.machine import processors
from wse.machine.cluster import Cluster
from wse.machine.machine import Machine, Sourced
from wse.machine.processors import Here, Processor, Processors
from wse.machine.specification import chosen
from wse.machine.support import judge
from wse.machine.support.rules import Use
from wse.machine.target import Needs, Target, target
from wse.models import shapes
from wse.models.shapes.workload import Workload
from wse.predict import limits, packing, resident, roofline, step
from wse.predict.phase import setup_of, spanned, streamed_cautions, streamed_phases, streaming_setup
from wse.predict.result import Estimate

UNNAMED = (
    "the rule of the sparsity names parameters, and a workload has none: all its sparsifiable "
    "layers are thinned alike; pass a loss function with its params"
)
# calibrated: the most that 15 nets without batched products were off, docs/results/h100_here.csv
HERE_ERROR_ON_A_CARD = 1.9
HERE_ERROR = 1.3  # derived: 90th percentile of |predicted / measured - 1|, docs/results/local.csv
HERE_SETUP_S = Sourced(10, "s", "assumed", "compilation of a step", interval=(1, 60))
NOT_COMPARED = "on a card, times of attention were not compared with a clock"
NOT_KNOWN_HERE = "its power is not measured, and whether the model fits is not checked"
NOT_AGAIN = (
    "what jax.checkpoint computes again is not counted: up to a third more arithmetic, where it is "
    "the whole forward pass"
)
SAMPLES_PER_SYSTEM = 100  # samples of a step on each system, where no batch is given
WAFER = "a wafer-scale machine, as machine='cs2'"
OF_MODE = {mode: f"machine=wse.CS2(mode={mode!r})" for mode in ("streaming", "pipelined")}


def estimate(
    model: Any,
    params: Any = None,
    batch: Any = None,
    *,
    machine: Cluster | Machine | Processors | Processor | Here | str | None = None,
    samples: int = 1_000_000,
    release: str | None = None,
    micro_batch: int | None = None,
    replicas: int = 1,
    **said: Any,
) -> Estimate:
    """Seconds that training would take: set-up, then steps.

    Mode and release are chosen as `wse.check` chooses them: the pipelined mode for a chain of dense
    layers that fits on one WSE-2 and for all models on a CS-1, weight streaming for all else, and
    the last release that had it; `why` of the answer says what was chosen.
    `wse.predict.resident` and `wse.predict.seconds` have the equations, `wse.calibrate` the fits;
    outside the range of these, `cautions` says what is stretched.

    Args:
        model: a `wse.workload.Workload`, a name as "GPT-J-6B" or a file, as `wse.workloads.get`
            takes it, a `wse.Graph`, or `loss(params, batch)` as for `wse.trace`, with auxiliary
            outputs beside the loss or without.
        params: of a loss function: its parameters, or their shapes.
        batch: samples per step, on all systems together (default: 100 for each system); of a loss
            function: its batch, or its shapes, the samples along the leading axis.
        machine: what it runs on, a cluster or a name as "cs2"; one CS-2 if left out; a GPU, TPU or
            CPU of `wse.processors` by name, as "8 x h100"; or "here": this computer, of a loss
            function, a graph or a dense net. Where a wafer does not run an operation, of the
            precision of the cluster, a caution says so. Its `sparsity`, as of `wse.sparsity`, thins
            the parameters that its rule chooses, of a workload all sparsifiable layers; a gradual
            one to the share at the end.
        samples: samples processed, every epoch counted.
        release: of the vendor's software; the last that the machine had in the mode if left out.
        micro_batch: samples of one on one system, in weight streaming alone; None: as many as fit.
        replicas: copies of the model on one wafer, in pipelined mode alone.
        **said: of a loss function, as for `wse.trace`: `batch_size`, where its arrays differ along
            the leading axis; `has_aux`, if not every pair that it returns has auxiliary outputs.

    Raises:
        ValueError: counts that are not positive, a batch beyond the samples or one that systems do
            not divide, a model that the wafer or the store cannot hold, a release that is unknown
            or that the machine never had, or a machine that the mode does not know.

    >>> from wse.workload import dense
    >>> result = estimate(dense(width=2048))
    >>> print(f"{result.setup_s:.1f} + {result.train_s:.1f} = {result.total_s:.1f} s")
    801.3 + 8.9 = 810.2 s
    >>> from wse import CS2, workloads
    >>> f"{estimate(workloads.get('GPT-J-6B'), batch=120, machine=CS2(2)).samples_per_s:.1f}"
    '43.7'
    """
    devices = processors.chosen(machine)
    cluster = devices or chosen(machine)
    asked = as_workload(model, params, batch, cluster.sparsity, **said)
    workload = asked.workload
    batch = SAMPLES_PER_SYSTEM * cluster.systems if asked.batch is None else asked.batch
    samples = positive("samples", samples, "pass samples=100")
    batch = positive("batch", batch, "pass batch=100")
    if micro_batch is not None:
        positive("micro_batch", micro_batch, "pass micro_batch=100")
    if batch > samples:
        raise ValueError(
            f"batch is {batch} with {samples} samples; a batch holds at most all samples: "
            f"pass batch={samples} or fewer"
        )
    if devices:
        given = {"release": release, "micro_batch": micro_batch, "replicas": replicas}
        _refuse_options(devices.machine.name, WAFER, **given)
        found = _processed(asked, devices, samples, batch)
        return replace(found, cautions=(*asked.doubts, *found.cautions))
    goal = aimed(workload, machine, release)
    if goal.cluster.mode == "pipelined":
        _refuse_options("the pipelined mode", OF_MODE["streaming"], micro_batch=micro_batch)
        found = _pipelined(workload, goal, samples, batch, replicas)
    else:
        _refuse_options("weight streaming", OF_MODE["pipelined"], replicas=replicas)
        found = _streamed(workload, goal, samples, batch, micro_batch)
    return replace(found, cautions=(*doubts(asked, goal, cluster.mode), *found.cautions))


def doubts(asked: "Asked", goal: Target, mode: str | None) -> tuple[str, ...]:
    """What is in doubt about what is asked, and what the machine does not run of it.

    Args:
        asked: the model.
        goal: machine, mode and release.
        mode: as asked for; None: chosen by what the model is.
    """
    chain = (asked.workload.doubt,) * bool(asked.workload.doubt and mode is None)
    return (*asked.doubts, *chain, *judge.cautions(asked.uses, goal))


def aimed(workload: Workload, machine: Any = None, release: str | None = None) -> Target:
    """The machine, mode and release of an answer about a workload, as `wse.machine.target` has it.

    Raises:
        ValueError: what `target` refuses.
    """
    needs = Needs(workload.parameters, workload.is_dense_chain, attention=workload.attention)
    return target(machine, release=release, needs=needs)


class Asked(NamedTuple):
    """What is asked about.

    Attributes:
        workload: the model.
        batch: samples of a step; None: not said.
        doubts: what is in doubt about both.
        uses: operations, each as it is used; of a workload what its kinds of layers tell.
        graph: of a loss function or a graph; None: of a workload.
    """

    workload: Workload
    batch: Any
    doubts: tuple[str, ...]
    uses: tuple[Use, ...]
    graph: Any = None


def as_workload(model: Any, params: Any, batch: Any, sparsity: Any = None, **said: Any) -> Asked:
    """What `estimate` takes, as a workload that is thinned by a method of `wse.sparsity`.

    Raises:
        ValueError: parameters beside a workload, or what `wse.trace` refuses.
    """
    if isinstance(model, str):
        model = shapes.get(model)
    if not isinstance(model, Workload):
        # By name: this module computes without JAX.
        traced = import_module("wse.models.from_graph").traced
        return Asked(*traced(model, params, batch, sparsity, **said))
    of_loss(model, said)
    if params is not None:
        raise ValueError(
            f"params is {short(params)}; a workload has its own: pass the cluster as machine=..., "
            "the samples per step as batch=..."
        )
    uses = _uses(model)
    if sparsity is None:
        return Asked(model, batch, (), uses)
    rule = sparsity.rule
    doubts = (UNNAMED,) if rule != type(rule)() else ()
    return Asked(model.sparse(1 - sparsity.sparsity), batch, doubts, uses)


def _uses(workload: Workload) -> tuple[Use, ...]:
    """The products and convolutions of a workload; a volume is told by the shape it is made of."""
    shape: Any = (workload.origin or ("", None))[1]
    known = cast("dict[str, Any]", shape) if isinstance(shape, dict) else {}
    size = known.get("size") or getattr(cast("Any", shape), "size", None)
    axes = len(cast("tuple[int, ...]", size)) if isinstance(size, tuple | list) else 2
    kinds = {x.kind == "convolution" for x in workload.layers if x.forward_flops}
    names = {True: ("conv_general_dilated", axes + 2), False: ("dot_general", 2)}
    return tuple(
        Use(name, ("float32",) * 3, (rank,) * 2)
        for kind, (name, rank) in names.items()
        if kind in kinds
    )


def _pipelined(
    workload: Workload, goal: Target, samples: int, batch: int, replicas: int
) -> Estimate:
    cluster, machine = goal.cluster, goal.cluster.machine
    if cluster.systems != 1:
        raise ValueError(
            f"systems is {cluster.systems}; the pipelined estimate holds for one system, "
            "because its constants were measured on one: pass systems=1 or "
            f"{limits.streamed(machine)}"
        )
    phases = resident.phases(workload, machine, samples, replicas=replicas)
    first_s, second_s = (phase.time_s for phase in phases[-2:])
    together_s = first_s + second_s
    return Estimate(
        workload,
        cluster,
        samples,
        batch,
        phases,
        (max(first_s, second_s), together_s, together_s),
        resident.cautions(workload, machine, batch, replicas),
        goal.release,
        goal.why,
        placement=packing.promised(workload, machine, resident.known(machine)),
    )


def _refuse_options(place: str, other: str, **options: Any) -> None:
    """Refuse what another machine or mode takes; one replica is none."""
    for name, value in options.items():
        single = name == "replicas" and is_whole(value) and value == 1
        if value is not None and not single:
            raise ValueError(
                f"{name} is {short(value)}, which {place} has not: leave it out, or pass {other}"
            )


def _processed(asked: Asked, devices: Processors | Here, samples: int, batch: int) -> Estimate:
    """On GPUs, TPUs and CPUs, or of what was given as it is on this computer."""
    workload = asked.workload
    if isinstance(devices, Here):
        # By name: rates are measured with JAX, and this module computes without.
        local, known = import_module("wse.computer").local(), asked.graph or workload
        all_s = samples * local.sample_s(known, batch=asked.batch)
        error = HERE_ERROR_ON_A_CARD if local.rates.together else HERE_ERROR
        times_s = [all_s * ratio for ratio in (1.0, 1 / error, error)]
        phases = (
            spanned("setup_start", "host compiler", HERE_SETUP_S.ends, HERE_SETUP_S.status),
            spanned("compute", "processor", times_s),
        )
        cautions, why = (NOT_KNOWN_HERE,), "this computer, by its measured rates"
        if local.rates.together:
            cautions = (*cautions, NOT_COMPARED)
    else:
        phases = roofline.phases(workload, devices, samples, batch)
        cautions = roofline.cautions(workload, devices)
        if asked.graph is not None:
            found = import_module("wse.computer.beside").of_graph(asked.graph)
            counts = found.moved, found.slow, found.turns
            more = roofline.aside(counts, workload, devices, phases, (samples, batch))
            cautions = (
                *cautions,
                *roofline.beside(more, devices),
                *(NOT_AGAIN,) * asked.graph.asks_again,
            )
        how = "single precision" if "CPU" in devices.machine.name else "half precision"
        why = (
            f"{devices!r}, as asked; products in {how}, batches shared out, gradients summed by "
            "all-reduce"
        )
    why = "; ".join(filter(None, (why, workload.attention)))
    times_s = [phase.time_s for phase in phases[1:]]
    bounds = max(times_s), sum(times_s), sum(times_s)
    return Estimate(workload, devices, samples, batch, phases, bounds, cautions, why=why)


def _streamed(
    workload: Workload, goal: Target, samples: int, batch: int, micro_batch: int | None
) -> Estimate:
    cluster, release = goal.cluster, goal.release
    made = tuple(
        step.step(workload, cluster, batch, release, micro_batch=micro_batch, fast=end)
        for end in (None, True, False)
    )
    steps, one = samples / batch, made[0]
    least_s = limits.least_s(workload, cluster, samples)["fabric"]
    return Estimate(
        workload,
        cluster,
        samples,
        batch,
        (
            *streaming_setup(workload, micro_batch is None, setup_of(cluster)),
            *streamed_phases((steps, made), least_s),
        ),
        (steps * one.lower_s, steps * one.lockstep_s, steps * one.upper_s),
        (
            *streamed_cautions(workload, cluster, one.share),
            *step.crowded(workload, cluster, batch, release, micro_batch, one.lockstep_s),
        ),
        release,
        goal.why,
        one,
    )
