"""Every public fact beside the answer of a fit that has not seen its model: value and interval.

`validation/published.py` writes docs/lab/published.md, `validation/test_published.py` holds the
aims. Widths of intervals were set once, with all these facts in sight: what is left out is the
model's own runs, not the choice of a factor of two.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import exp, log

import numpy as np

from wse.machine import published
from wse.machine.catalog import CS2, PIPELINED, Pipelined
from wse.machine.constants import STREAMING
from wse.machine.machine import Sourced
from wse.machine.specification import find
from wse.models import shapes as workloads
from wse.models.shapes.workload import Workload, dense
from wse.predict import calibrate, packing, resident
from wse.predict.phase import Phase, streamed_phases, streaming_setup
from wse.predict.step import Given, step

CLASSES = ("streaming", "pipelined", "set-up", "convolutions")
# What a small step costs where its one log is left out: from one to a hundred TCP transactions.
UNKNOWN_STEP = Sourced(2e-3, "s", "assumed", "no run of small steps", interval=(0.2e-3, 20e-3))
OTHER_KIND = 3.0  # factor either way where no run of a kind of layer is left


@dataclass(frozen=True)
class Left:
    """One fact and the answer without it.

    Attributes:
        what: the fact.
        kind: one of `CLASSES`.
        unit: of the numbers.
        truth: as published.
        answer: of a fit without the model.
        low: the least that this may be.
        high: the most.
        near: whether a run of the same kind, of a width within a factor of two, was left in.
    """

    what: str
    kind: str
    unit: str
    truth: float
    answer: float
    low: float
    high: float
    near: bool = False

    @property
    def held(self) -> bool:
        """Whether the interval holds the truth."""
        return self.low <= self.truth <= self.high

    @property
    def ratio(self) -> float:
        """The interval's high end over its low."""
        return self.high / self.low if self.low > 0 else float("inf")

    @property
    def error_percent(self) -> float:
        """The answer over the truth, minus one."""
        return 100 * (self.answer / self.truth - 1)


@cache
def rows() -> tuple[Left, ...]:
    """Every fact, in the order of the page."""
    return (*streaming(), *table4(), *other_residents(), *setups(), *placements())


def streaming() -> Iterator[Left]:
    """Rates in weight streaming."""
    for run in published.STREAMED:
        others = [one for one in published.STREAMED if one.model != run.model]
        small = run.model == "FC-MNIST"
        constants = replace(STREAMING, step_s=UNKNOWN_STEP) if small else STREAMING
        known = Given(constants, calibrate.shares(others))
        work, machine = workloads.get(run.model), find(run.machine)
        cluster = replace(machine, systems=run.systems, mode="streaming")
        steps = tuple(
            step(work, cluster, run.batch, run.release, fast=end, known=known)
            for end in (None, True, False)
        )
        phases = streamed_phases((1.0, steps), 0.0)
        width = _width(work)
        near = any(
            abs(log(width / _width(workloads.get(one.model)))) <= log(2) * 1.001 for one in others
        )
        what = f"{run.model} on {run.systems} {run.machine}, {run.release}"
        yield _rate(what, "streaming", run.samples_per_s, phases, run.batch, near and not small)


def table4() -> Iterator[Left]:
    """Rates and set-up of the pipelined nets of Table 4."""
    for row in published.TABLE4:
        others = [one for one in published.TABLE4 if one is not row]
        (a, b), (floor, c) = calibrate.train(others).constants, calibrate.setup(others).constants
        named = floor - PIPELINED_FLOOR_S + PIPELINED.setup_rest_s.value
        constants = replace(
            PIPELINED,
            input_s_per_sample=calibrate.scaled(PIPELINED.input_s_per_sample, a),
            unit_s_per_sample=calibrate.scaled(PIPELINED.unit_s_per_sample, b),
            setup_rest_s=calibrate.scaled(PIPELINED.setup_rest_s, named),
            setup_s_per_mparam_1p5=calibrate.scaled(PIPELINED.setup_s_per_mparam_1p5, c),
            most_parameters=replace(
                PIPELINED.most_parameters, value=max(one.parameters for one in others)
            ),
        )
        phases = resident.phases(dense(width=row.units), CS2, 1, constants=constants)
        what = f"dense 8 x {row.units}, Table 4"
        yield _rate(what, "pipelined", row.cs2_samples_per_s, phases[-2:], 1, near=False)
        yield _seconds(f"{what}, all of it", row.cs2_setup_s, phases[:-2])


PIPELINED_FLOOR_S = calibrate.setup().constants[0]


def other_residents() -> Iterator[Left]:
    """Other rates in pipelined mode, measured or promised by the vendor's compiler."""
    for run in published.PIPELINED:
        changes = {"max_sequence_length": run.tokens} if run.tokens else {}
        work = workloads.get(run.model, **changes)
        machine = find(run.machine).machine
        # Without its one run nothing is known of a CS-1, and it is taken for a CS-2.
        without = PIPELINED if run.machine == "CS-1" else _without(run.model)
        phases = resident.phases(work, machine, 1, constants=without)
        kind = "convolutions" if run.model == "U-Net-Severstal" else "pipelined"
        promised = ", the vendor's estimate" if run.promised else ""
        yield _rate(
            f"{run.model} on 1 {run.machine}, {run.source.rpartition('/')[2]}{promised}",
            kind,
            run.samples_per_s,
            phases[-2:],
            1,
            near=False,
        )


def setups() -> Iterator[Left]:
    """Phases of set-up in weight streaming, and the compilation that is known of a CS-1."""
    first = {x.name: x for x in resident.phases(workloads.get("FC-MNIST"), CS2, 1)}
    compiled = first["setup_front"], first["setup_place"]
    yield _seconds("FC-MNIST on CS-1, compiling", published.CS1_COMPILE_S, compiled)
    for log_ in published.SETUPS:
        others = [one for one in published.SETUPS if one.model != log_.model]
        setup = calibrate.started(others)[find(log_.machine).machine.wafer]
        if log_.model == "DiT-2B-2":  # without it nobody saw a first input take long
            setup = replace(setup, prime_other_s=setup.prime_s)
        work = workloads.get(log_.model)
        found = {x.name.removeprefix("setup_"): x for x in streaming_setup(work, True, setup)}
        for name, seconds in log_.seconds.items():
            what = f"{log_.model} on {log_.machine}, {log_.release}, {name}"
            yield _seconds(what, float(seconds), (found[name],))


def placements() -> Iterator[Left]:
    """Cycles of the slowest kernel, the vendor's own estimate."""
    for one in published.PLACED:
        work = workloads.get(one.model)
        promise = packing.promised(work, CS2, _without(one.model))
        truth = max(one.compute_cycles, one.transmission_cycles or 0.0)
        kind = "convolutions" if one.model == "U-Net-Severstal" else "pipelined"
        low, high = promise.cycles_interval
        what = f"{one.model}, {one.source.rpartition('/')[2]}, slowest kernel"
        yield Left(what, kind, "cycles", truth, promise.cycles, low, high)


def _without(model: str) -> Pipelined:
    """The constants of the pipelined mode as a fit without one model has them."""
    product, image = PIPELINED.product_share, PIPELINED.convolution_share
    if model == "BERT-large":
        return replace(PIPELINED, product_share=_widened(product, float(image.value)))
    passed = {one.model: _passed(one) for one in published.PLACED if one.transmission_cycles}
    passed.pop(model, None)
    sent_s = float(np.exp(np.mean(np.log([*passed.values()]))))
    sent = calibrate.scaled(PIPELINED.transmission_s_per_value, sent_s)
    if model == "FC-MNIST":
        # About one cycle for each unit is known from it alone; two are one word in and one out.
        unit = Sourced(2.0, "extra", "assumed", "one word forward, one back", interval=(0.67, 6))
        return replace(PIPELINED, transmission_s_per_value=sent, cycles_per_unit=unit)
    return replace(PIPELINED, transmission_s_per_value=sent)  # convolutions are placed, not fitted


def _passed(one: published.Placed) -> float:
    work = workloads.get(one.model)
    values = work.inputs + min(work.inputs, work.outputs)
    return (one.transmission_cycles or 0.0) / values / CS2.clock_hz.value


def _widened(share: Sourced, value: float) -> Sourced:
    ends = (value / OTHER_KIND, min(0.95, value * OTHER_KIND))
    return replace(share, value=value, interval=ends, status="assumed")


def _width(work: Workload) -> float:
    return max(float(layer.features or 0) for layer in work.layers) or 1.0


def _rate(
    what: str, kind: str, truth: float, phases: tuple[Phase, ...], samples: int, near: bool
) -> Left:
    low_s, high_s = (sum(x.interval_s[i] for x in phases) for i in (0, 1))
    answer = samples / sum(x.time_s for x in phases)
    return Left(what, kind, "samples/s", truth, answer, samples / high_s, samples / low_s, near)


def _seconds(what: str, truth: float, phases: tuple[Phase, ...]) -> Left:
    low_s, high_s = (sum(x.interval_s[i] for x in phases) for i in (0, 1))
    return Left(what, "set-up", "s", truth, sum(x.time_s for x in phases), low_s, high_s)


@dataclass(frozen=True)
class Score:
    """How one class of facts fares.

    Attributes:
        kind: the class.
        facts: how many.
        held: how many intervals hold the truth.
        ratio: median of high over low.
        factor: median of the factor by which an answer misses.
    """

    kind: str
    facts: int
    held: int
    ratio: float
    factor: float


def scores(found: Sequence[Left]) -> list[Score]:
    """One score to a class."""
    return [
        Score(
            kind,
            len(own),
            sum(x.held for x in own),
            float(np.median([x.ratio for x in own])),
            exp(float(np.median([abs(log(x.answer / x.truth)) for x in own]))),
        )
        for kind in CLASSES
        for own in [[x for x in found if x.kind == kind]]
    ]
