"""Near facts: what runs of similar models miss each other by, under every law that a source gives.

A run is near where another model of half to double its width ran on the same wafer. Each law takes
the share of the peak from the other models' runs alone; none has a number that is fitted here.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import wse
from wse import layout
from wse.layout.plan import fitting
from wse.machine import published
from wse.machine.published import Streamed
from wse.machine.specification import find
from wse.models import shapes as workloads
from wse.models.shapes.workload import Workload
from wse.predict import calibrate, step
from wse.predict.grid import RATIO


@dataclass(frozen=True)
class Near:
    """One run and its share of the peak, as published and as each law has it.

    Attributes:
        run: as published.
        width: its hidden size.
        share: of the dense peak, from its rate.
        attention: part of its operations that are products of activations alone.
        left: of the peak, what layouts of its products leave.
        laws: by name, the law's share over the published one.
    """

    run: Streamed
    width: int
    share: float
    attention: float
    left: float
    laws: dict[str, float]


LAWS = {
    "line": "the line through all other models, as built",
    "flat": "the nearest model's share",
    "width": "that share times the ratio of widths",
    "layout": "that share times the ratio of what layouts leave",
}


def rows() -> Iterator[Near]:
    """Transformers of which a near one ran, the last run on each machine."""
    last = {(run.model, run.machine): run for run in published.STREAMED}
    for run in (
        last[model, name] for model in ("GPT-J-6B", "DiT-2B-2") for name in ("CS-2", "CS-3")
    ):
        other = last["DiT-2B-2" if run.model == "GPT-J-6B" else "GPT-J-6B", run.machine]
        rest = [one for one in published.STREAMED if one.model != run.model]
        wafer = find(run.machine).machine.wafer
        share, near = calibrate.share(run), calibrate.share(other)
        width, its = (_width(workloads.get(one.model)) for one in (run, other))
        left, theirs = _left(run), _left(other)
        found = {
            "line": calibrate.shares(rest).of(wafer, run.release, width).value,
            "flat": near,
            "width": near * width / its,
            "layout": near * left / theirs,
        }
        laws = {name: value / share for name, value in found.items()}
        yield Near(run, width, share, _attention(workloads.get(run.model)), left, laws)


def table() -> str:
    """What is known of each run, then the errors of the laws, as two Markdown tables."""
    known = ["| run | width | share of the peak | in attention's products | layouts leave |"]
    errors = [f"| run | {' | '.join(LAWS)} |"]
    known.append(f"|{'---|' * 5}")
    errors.append(f"|{'---|' * (1 + len(LAWS))}")
    for x in rows():
        run = f"{x.run.model} on {x.run.systems} {x.run.machine}, {x.run.release}"
        shares = (f"{100 * number:.1f} %" for number in (x.share, x.attention, x.left))
        misses = (f"{100 * (ratio - 1):+.0f} %" for ratio in x.laws.values())
        known.append(f"| {' | '.join((run, f'{x.width}', *shares))} |")
        errors.append(f"| {' | '.join((run, *misses))} |")
    return "\n".join([*known, "", *errors, ""])


def _width(work: Workload) -> int:
    return max(layer.features or 0 for layer in work.layers)


def _attention(work: Workload) -> float:
    """Products that meet no parameters, of all forward operations."""
    alone = sum(x.forward_flops for x in work.layers if not x.parameters)
    return alone / work.forward_flops


def _left(run: Streamed) -> float:
    """What layouts leave of the peak to the products of a block, for all samples held at once."""
    work, cluster = workloads.get(run.model), find(run.machine)
    made = step.step(work, wse.Cluster(cluster.machine, run.systems), run.batch, run.release)
    h, grid = _width(work), layout.Wafer.of(cluster.machine)
    at_once = run.batch / run.systems / made.micro_batches
    tokens = max(1, round(at_once)) * work.tokens
    sizes = ((h, 3 * h), (h, h), (h, 4 * h), (4 * h, h))
    shapes = [layout.dense("x", tokens, n, m) for n, m in sizes]
    cycles = sum(layout.cost(s, fitting(s, grid, 1, RATIO)[0], grid).cycles for s in shapes)
    done, machine = 3 * sum(s.multiplies for s in shapes), cluster.machine
    return 2 * done * machine.clock_hz.value / (machine.peak_fp16_flops_per_s * cycles)
