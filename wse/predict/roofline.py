"""Seconds of training on GPUs, TPUs and CPUs: arithmetic, memory and launches, fitted to runs.

N devices share B samples, b = B / N each; a sample has F_p operations in products, F_c in
convolutions, forward, backward and what is computed again, and A bytes of activations that layers
read and write once; L layers; P trained parameters::

    t      = k_p F_p / R + k_c F_c / R + k_a A / M + s          device, per sample
    launch = 12 L m launch_s                                    host, per step of m micro-batches
    reduce = 2 (N - 1) / N 4 P / link + 2 (N - 1) latency       gradients, ring all-reduce
    step   = max(b t, launch, b input) + max(0, reduce - 2/3 max(b t, launch))

k_p, k_c, k_a and, of the CPU of Table 4, s are fitted to `wse.predict.trainings` by least squares
of relative residuals, none below zero; R and M are the peak and the memory's bandwidth.
Launches are assumed: 12 kernels of a layer, forward, backward and update. What norms, activations
and the like read and write is in k_a A, as far as the published nets have such; of a traced net
that moves more, `beside` says how much.
"""

# SciPy has no annotations.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections import Counter
from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Float

from wse.machine.machine import Status
from wse.machine.processors import CPU_NODE, CPU_TABLE4, PROCESSORS, Processor, Processors
from wse.machine.share import SMALL
from wse.models.shapes.workload import Workload
from wse.predict.arrays import Reals
from wse.predict.phase import Phase, Resource, spanned
from wse.predict.trainings import Run, runs

KERNELS = 12  # assumed: launched for a layer, forward, backward and update
STATE_BYTES = 16  # of a parameter: weight, gradient and Adam's moments in single precision
FROZEN_BYTES = 4  # of one that is not trained
VALUE_BYTES = 2  # of an activation
PASSES = 3  # assumed: of loops, backward as many turns again twice
SINGLE_BYTES = 4  # of one in single precision, as CPUs compute
SLOW_FLOPS = 64  # of the peak, that an exponential takes; derived: 1.7e9/s of 0.12e12, two cores
PASSED = 16.6  # derived: of ResNet-50's convolutions, numbers moved beside for each they move
ON_CPUS = ", and 2 to 14 times that of small nets on a CPU"  # derived: docs/results/beside.csv
ON_CARDS = ", less where a compiler fuses them"
UNCOUNTED = 0.2  # of an answer; a caution says what is more
KEPT = 0.85  # calibrated: of what layers read and write, so that the published micro-batches fit
USABLE = 0.95  # of the memory; assumed: 3 to 13 billion parameters at the published micro-batches
STAND_INS = {"H200": "H100", "TPU v4": "TPU v5e", "CPU node": "A100"}  # where nothing is published
KINDS: tuple[str, ...] = ("product", "convolution")
RESOURCES: dict[str, Resource] = {  # phase of training -> what the step waits for in it
    "compute": "processor",
    "memory": "memory",
    "launch": "host",
    "input": "host link",
    "reduce": "network",
}


@dataclass(frozen=True)
class Fit:
    """What a device reaches, from its published runs or, lacking those, another's.

    Attributes:
        source: the device whose runs were fitted.
        factors: k_p, k_c, k_a and s, of the module's words.
        spread: of each of `KINDS`, the least and the most of published over fitted time, each model
            left out of the fit once, and one unless nothing beyond it was seen.
        status: "calibrated" on its own runs of this kind, else "assumed".
    """

    source: str
    factors: tuple[float, float, float, float]
    spread: dict[str, tuple[float, float]]
    status: dict[str, Status]


def demand(work: Workload, device: Processor, again: float = 0.0) -> tuple[float, ...]:
    """Seconds of a sample at the peak: of products, of convolutions, of memory; and one sample."""
    flops: dict[str, float] = dict.fromkeys(KINDS, 0.0)
    for layer in work.layers:
        every = layer.forward_flops * (1 + again) + layer.backward_flops
        flops["convolution"] += layer.convolved * every
        flops["product"] += (1 - layer.convolved) * every
    moved = VALUE_BYTES * sum(x.traffic for x in work.layers)
    peak = device.flops_per_s.value
    return (
        *(flops[kind] / peak for kind in KINDS),
        moved / device.memory_bytes_per_s.value,
        1.0,
    )


@cache
def fit(name: str) -> Fit:
    """The factors of a device and how far they hold, by leaving one model out.

    >>> round(1 / fit("A100").factors[0], 2)       # of the peak, in products
    0.66
    """
    own = runs(name)
    if not own:
        base = fit(STAND_INS[name])
        low, high = _transfer()
        if name == CPU_NODE.name:  # a CPU was seen to reach less of its peak than a GPU
            high = max(high, fit(CPU_TABLE4.name).factors[0] / base.factors[0])
        spread = {kind: (a * low, b * high) for kind, (a, b) in base.spread.items()}
        return Fit(base.source, base.factors, spread, dict.fromkeys(KINDS, "assumed"))
    seen, factors = {_kind_of(run) for run in own}, _factors(name, own)
    status: dict[str, Status] = {x: "calibrated" if x in seen else "assumed" for x in KINDS}
    spread: dict[str, tuple[float, float]] = {}
    for kind in KINDS:
        if status[kind] == "assumed":  # of another device: what a move between devices costs on top
            (a, b), (low, high) = fit("A100").spread[kind], _transfer()
            spread[kind] = (a * low, b * high)
        else:
            ratios = [ratio for run, ratio in left_out(name) if _kind_of(run) == kind]
            spread[kind] = (min([1.0, *ratios]), max([1.0, *ratios]))
    return Fit(name, factors, spread, status)


def left_out(name: str) -> list[tuple[Run, float]]:
    """Published over fitted time of every run of a device, its model left out of the fit."""
    own = runs(name)
    rest = {run: tuple(other for other in own if other.group != run.group) for run in own}
    return [(run, 1 / float(np.dot(_factors(name, rest[run]), _row(run)))) for run in own]


def phases(work: Workload, cluster: Processors, samples: int, batch: int) -> tuple[Phase, ...]:
    """The time of a training on processors by what it waits for: start, then the steps.

    Of what goes on at once only what lasts longest is waited for: launches beyond the device's
    own work, input beyond both, and of the reduction what two thirds of that work do not hide.

    Raises:
        ValueError: a batch that the devices do not divide, or a model that does not fit.

    >>> from wse.machine.processors import H100
    >>> from wse.models.shapes.workload import dense
    >>> found = phases(dense(), Processors(H100), 1_000_000, 100)
    >>> max(found[1:], key=lambda one: one.time_s).name
    'launch'
    """
    device, n = cluster.machine, cluster.systems
    if batch % n:
        raise ValueError(
            f"batch is {batch} on {n} x {device.name}; they must divide it: "
            f"pass batch={-(-batch // n) * n}"
        )
    again, micro = _memory(work, cluster, batch)
    found, needs = fit(device.name), demand(work, device, again)
    steps, own = samples / batch, batch / n
    parts = own * np.multiply(found.factors, needs)
    launches = KERNELS * sum(layer.products for layer in work.layers) * micro
    input_s = own * work.inputs * 4 / device.host_bytes_per_s.value
    reduce_s = 0.0
    if n > 1:
        sent = 2 * (n - 1) / n * 4 * work.trained / cluster.reduce_bytes_per_s
        reduce_s = sent + 2 * (n - 1) * device.latency_s.value

    def waits(ratio: float, launch_s: float, overlap: float) -> dict[str, float]:
        compute_s, memory_s = ratio * float(parts[:2].sum()), ratio * float(parts[2:].sum())
        device_s, launching_s = compute_s + memory_s, launches * launch_s
        return {
            "compute": compute_s,
            "memory": memory_s,
            "launch": max(0.0, launching_s - device_s),
            "input": max(0.0, input_s - max(device_s, launching_s)),
            "reduce": max(0.0, reduce_s - overlap * max(device_s, launching_s)),
        }

    kinds = _much(work, device)
    least, most = (_spread(found, parts, end) for end in (0, 1))
    usual_s, low_s, high_s = device.launch_s.ends
    ends = waits(1.0, usual_s, 2 / 3), waits(least, low_s, 2 / 3), waits(most, high_s, 0.0)
    known = {found.status[kind] for kind in kinds} == {"calibrated"}
    at_peak_s = steps * own * sum(demand(work, device)[:2])
    return (
        spanned("setup_start", "host compiler", device.setup_s.ends, device.setup_s.status),
        *(
            spanned(
                name,
                resource,
                [steps * one[name] for one in ends],
                "calibrated" if known and name in ("compute", "memory") else "assumed",
                at_peak_s if name == "compute" else 0.0,
            )
            for name, resource in RESOURCES.items()
        ),
    )


def cautions(work: Workload, cluster: Processors) -> tuple[str, ...]:
    """What the published runs do not hold for."""
    found, name = fit(cluster.machine.name), cluster.machine.name
    narrow = max(layer.along_rows for layer in work.layers) < 768
    said = {
        f"nothing was published for {kind}s on {name}: taken from other devices, "
        f"{found.spread[kind][0]:.2g} to {found.spread[kind][1]:.2g} times as long": (
            found.status[kind] == "assumed"
        )
        for kind in _much(work, cluster.machine)
    }
    said["zeros among the weights are multiplied like other numbers"] = any(
        layer.density < 1 for layer in work.layers
    )
    said["layers narrower than the published runs': launches are assumed"] = (
        narrow and name != CPU_TABLE4.name
    )
    return tuple(text for text, holds in said.items() if holds)


@dataclass(frozen=True)
class Aside:
    """What operations beside products take in all steps, and how much of it an answer counts.

    Attributes:
        bytes_moved: of a sample.
        moving_s: seconds of reading, writing and of exponentials.
        counted_s: seconds that the answer has for these.
        turns: of loops forward, in a step.
        turning_s: seconds of starting the kernels of loops anew.
        times: as long as the answer says, with what it does not count.
    """

    bytes_moved: int
    moving_s: float
    counted_s: float
    turns: int
    turning_s: float
    times: float


def aside(
    counts: tuple[int, int, int],
    work: Workload,
    cluster: Processors,
    made: tuple[Phase, ...],
    run: tuple[int, int],
) -> Aside:
    """What operations beside products take.

    Args:
        counts: numbers of a sample that they read and write, exponentials of a sample, and turns of
            their loops forward.
        work: the model.
        cluster: the devices.
        made: phases of the answer.
        run: samples of all steps, and of one.
    """
    (moved, slow, turns), (samples, batch) = counts, run
    device, own = cluster.machine, samples / cluster.systems
    size = SINGLE_BYTES if _is_cpu(device) else VALUE_BYTES
    moving_s = own * size * moved / device.memory_bytes_per_s.value
    if _is_cpu(device):
        moving_s += own * slow * SLOW_FLOPS / device.flops_per_s.value
    images = sum(x.convolved * x.traffic for x in work.layers)
    times_s = {one.name: one.time_s for one in made}
    fitted_s = own * size * PASSED * images / device.memory_bytes_per_s.value
    counted_s = times_s["memory"] + fitted_s
    turning_s = PASSES * turns * samples / batch * device.launch_s.value
    # Launches and input are waited for only beyond the device's own work.
    waited_s = times_s["launch"] + times_s["input"]
    more_s = max(0.0, moving_s - counted_s - waited_s) + turning_s
    times = 1 + more_s / sum(one.time_s for one in made[1:])
    return Aside(size * moved, moving_s, min(moving_s, counted_s), turns, turning_s, times)


def beside(found: Aside, cluster: Processors) -> tuple[str, ...]:
    """What is said of operations beside products, where they are much of the answer.

    >>> from wse.machine.processors import H100
    >>> from wse.models.shapes.workload import dense
    >>> made = phases(dense(), Processors(H100), 1_000_000, 100)
    >>> beside(aside((1000, 0, 0), dense(), Processors(H100), made, (10**6, 100)), Processors(H100))
    ()
    """
    if found.times <= 1 + UNCOUNTED:
        return ()
    loops = f"; {found.turns:,} turns of loops start their kernels anew, {_few(found.turning_s)} s"
    loops *= found.turns > 0
    clock = ON_CPUS if _is_cpu(cluster.machine) else ON_CARDS
    return (
        "operations beside products, as scans, norms and activations, read and write about "
        f"{_few(found.bytes_moved / 1e9)} GB a sample, {_few(found.moving_s)} s of the memory, of "
        f"which {_few(found.counted_s)} s are counted{loops}: training may take "
        f"{_few(found.times)} times as long as said{clock}",
    )


def _much(work: Workload, device: Processor) -> list[str]:
    """The kinds of operations that are more than a small part of all."""
    needs = demand(work, device)[: len(KINDS)]
    return [kind for kind, one in zip(KINDS, needs, strict=True) if one > SMALL * sum(needs)]


def _spread(found: Fit, parts: Float[Reals, " factor"], end: int) -> float:
    """One end of the interval as a factor, of each kind by the time that its operations take."""
    ends = np.array([found.spread[kind][end] for kind in KINDS])
    own = parts[: len(KINDS)]
    return float(own @ ends / own.sum()) if own.sum() else 1.0


def _is_cpu(device: Processor) -> bool:
    return "CPU" in device.name


def _few(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def _memory(work: Workload, cluster: Processors, batch: int) -> tuple[float, int]:
    """Whether the forward pass runs again, and micro-batches; parameters are shared out."""
    device, n = cluster.machine, cluster.systems
    state = STATE_BYTES * work.trained + FROZEN_BYTES * (work.parameters - work.trained)
    free = USABLE * device.memory_bytes.value - state / n
    parts = [part for layer in work.layers for part in layer.waiting]
    entering: dict[str, float] = {}
    within: Counter[str] = Counter()
    for part in parts:
        entering.setdefault(part.block, VALUE_BYTES * part.enters)
        within[part.block] += part.moved
    size = KEPT * VALUE_BYTES
    thrifty = sum(entering.values()) + size * max(within.values())
    for again, one in ((0.0, size * within.total()), (1.0, thrifty)):
        if (held := int(free // max(one, VALUE_BYTES * work.inputs))) >= 1:
            return again, -(-batch // (n * held))
    need = state / n + thrifty
    shared = USABLE * device.memory_bytes.value - thrifty
    more = -(-state // shared) if shared > 0 else 0
    remedy = f"pass '{more:.0f} x {device.name}' or more" if more else "make the sample smaller"
    raise ValueError(
        f"{work.name} needs {need / 1e9:.3g} GB of the {device.memory_bytes.value / 1e9:.3g} GB of "
        f"each of {cluster!r}, parameters and Adam shared out, activations computed again: {remedy}"
    )


def _factors(name: str, own: tuple[Run, ...]) -> tuple[float, float, float, float]:
    """Least squares of relative residuals; what these runs do not show is another device's."""
    from scipy.optimize import nnls

    rows = [_row(run) for run in own]
    if name == CPU_TABLE4.name:  # one number of each sample in place of its activations'
        use = [0, 3]
    else:
        use = [0, 1, 2] if any(_kind_of(run) == "convolution" for run in own) else [0, 2]
    factors = np.zeros(4)
    if len({run.group for run in own}) < 5 and name != CPU_TABLE4.name:  # one width: one factor
        others = fit("A100").factors
        left = [1 - others[2] * row[2] for row in rows]
        factors[:3] = float(np.mean(left) / np.mean([row[0] for row in rows])), *others[1:3]
    else:
        factors[use] = nnls(np.array(rows)[:, use], np.ones(len(rows)))[0]
    if not factors[1] and name != CPU_TABLE4.name:
        factors[1] = fit("A100").factors[1] * factors[0] / fit("A100").factors[0]
    return float(factors[0]), float(factors[1]), float(factors[2]), float(factors[3])


@cache
def _row(run: Run) -> Float[Reals, " factor"]:
    """The demand of a published run, in units of the time that it took."""
    device = next(one for one in PROCESSORS if one.name == run.machine)
    return np.array(demand(run.make(), device, run.again)) * run.samples_per_s


@cache
def _transfer() -> tuple[float, float]:
    """What the A100's factors miss of the H100's runs: the price of a move between devices."""
    factors = fit("A100").factors
    ratios = [1 / float(np.dot(factors, _row(run))) for run in runs("H100")]
    return min([1.0, *ratios]), max([1.0, *ratios])


def _kind_of(run: Run) -> str:
    return "convolution" if run.is_convolutional else "product"
