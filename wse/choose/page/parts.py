"""The sections of the page, from what blocks a port to what is uncertain."""

from collections.abc import Sequence

from wse.choose.page.answer import Facts, Operation
from wse.choose.page.citations import Sources, of_phase
from wse.choose.page.tags import (
    Html,
    bar,
    cited,
    interval,
    listed,
    more,
    paragraph,
    section,
    span,
    table,
    text,
)
from wse.choose.page.trials import Trial, Trials
from wse.choose.page.words import PHASES, clustered, many, percent, size, time
from wse.choose.table import Candidate
from wse.machine.constants import STREAMING
from wse.machine.processors import PROCESSORS
from wse.predict.result import Estimate

SHOWN = 8  # rows of a table that are read; the rest is folded away


def operations(facts: Facts, sources: Sources) -> str:
    """Which operations run, by the user's own line."""
    if facts.check is None:
        return section("Which operations run", paragraph(f"Not seen: {facts.subject.mute}"))
    rows = [_operation(x, sources) for x in facts.operations]
    head = ("verdict", "operation", "line", "in", "why", "what to do")
    native = ", ".join(sorted({x.use.operation for x in facts.check.of("native")}))
    found = _folded(head, rows) if rows else [paragraph("All of them, as they are.")]
    faults = [f"not traced: {fault}" for fault in facts.check.faults]
    found += [listed(faults), paragraph(f"Native: {native or 'none'}.")]
    return section("Which operations run", *found)


def _folded(
    head: Sequence[str], rows: Sequence[Sequence[str]], right: str = "", what: str = ""
) -> list[str]:
    """A table of which the first rows are seen."""
    rest = table(head, rows[SHOWN:], right)
    folded = [more(f"{len(rows) - SHOWN} more{what}", rest)] if rows[SHOWN:] else []
    return [table(head, rows[:SHOWN], right), *folded]


def _operation(one: Operation, sources: Sources) -> list[str]:
    cite = [sources.number(one.source)] if one.source else []
    others = f" and {len(one.layers) - 1} more" if len(one.layers) > 1 else ""
    places = f"{one.layers[0]}{others}" if one.layers else ""
    line = Html(f"<code>{text(one.line)}</code>") if one.line else ""
    verdict = Html(f"<span class='{one.verdict}'>{one.verdict}</span>")
    remedy = one.remedy or ("" if one.verdict == "decomposed" else "write it in other operations")
    return [verdict, one.operation, line, places, cited(one.reason, cite), remedy]


def time_taken(facts: Facts, sources: Sources) -> str:
    """Set-up, a step and the run, on one system and on more, and where the time goes."""
    one = facts.estimate
    setup = [y for x in one.setup for y in sources.of(*of_phase(x.name, one))]
    train = [y for x in one.training for y in sources.of(*of_phase(x.name, one))]
    head = ("on", "samples a step", "set-up", "a step", "the run", "samples/s")
    rows = [
        [
            clustered(x),
            f"{x.batch:,}",
            interval(time(x.setup_s), *map(time, x.setup_interval_s)),
            time(x.step_s),
            interval(time(x.total_s), *map(time, x.interval_s)),
            f"{x.samples_per_s:,.4g}",
        ]
        for x in facts.estimates
    ]
    refused = [f"{n} systems: {why}" for n, why in facts.refused]
    return section(
        "How long it takes",
        paragraph(f"{one.samples:,} samples, every epoch counted; for {one.why}."),
        table(head, rows, "bcdef"),
        paragraph(Html(f"{cited('Sources: of set-up', setup)} {cited('of a step', train)}")),
        listed(refused),
        more("Where the time goes, phase by phase", _phases(one, sources)),
    )


def _phases(one: Estimate, sources: Sources) -> str:
    shown = [x for x in one.phases if x.interval_s[1] > 0]
    ends = (
        max(min(x.interval_s[0] or x.time_s or x.interval_s[1] for x in shown), 1e-6),
        max(x.interval_s[1] for x in shown),
    )
    rows = [
        [
            cited(PHASES.get(x.name, x.name), sources.of(*of_phase(x.name, one))),
            time(x.time_s),
            f"{time(x.interval_s[0])} to {time(x.interval_s[1])}",
            span(x.interval_s[0], x.time_s, x.interval_s[1], ends),
            x.resource,
            x.status,
        ]
        for x in shown
    ]
    head = ("phase", "time", "may be", "on a logarithmic line", "waits for", "is")
    return table(head, rows, "bc")


def machines(facts: Facts, sources: Sources) -> str:
    """Beside other machines, with energy and cost."""
    found, n = facts.comparison, facts.comparison.samples
    able = found.able
    times = [x.total_s(n) for x in able]
    ends = (min(x[0] for x in times), max(x[2] for x in times))
    head = ("machine", "set-up", "a sample", "the run", "may be", "energy", "at your price")
    rows = [
        [
            cited(x.name, _of_machine(x, facts, sources)),
            time(x.setup_s[1]),
            time(x.sample_s[1]),
            time(total[1]),
            span(*total, ends),
            _or_not(x.energy_kwh(n)[1], " kWh"),
            _or_not(x.price_per_h * total[1] / 3600, ""),
        ]
        for x, total in zip(able, times, strict=True)
    ]
    changes = "; ".join(f"{name} from {many(at)} samples on" for at, name in found.wins[1:])
    fastest = f"Fastest for few samples: {found.wins[0][1]}{f'; {changes}' if changes else ''}."
    return section(
        "Beside other machines",
        table(head, rows, "bcdfg"),
        paragraph(fastest),
        listed([f"{x.name} cannot: {x.refused}" for x in found.candidates if x.refused]),
    )


def _of_machine(one: Candidate, facts: Facts, sources: Sources) -> list[int]:
    """Where the numbers of a machine come from: its peak or its memory, and its power."""
    own = facts.estimate.cluster.machine
    for machine in PROCESSORS:
        if one.name.endswith(machine.name):
            return sources.of(machine.flops_per_s, machine.memory_bytes_per_s, machine.power_w)
    if own.name in one.name:
        return sources.of(own.fp16_flops_per_cycle, own.power_w)
    if one.name == "here":
        return [sources.number("measured on this computer: wse.local()")]
    return [sources.number(f"numbers of {one.name}: `wse machines`")]


def fits(facts: Facts, sources: Sources) -> str:
    """What lies where."""
    found, machine = facts.memory, facts.estimate.cluster.machine
    wafer = cited(f"{size(found.wafer_bytes)} of {machine.wafer}", sources.of(machine.sram_bytes))
    said: list[str] = []
    if found.share is not None:
        held = f"{100 * found.share:.0f} %" if found.share >= 0.01 else "less than 1 %"
        said.append(Html(f"{text(found.kept)}, and {held} of the {wafer} that it may use is full"))
        least = f"the store holds {size(found.store_bytes)}: weights, gradients, two moments"
        most = f", of {size(found.holds_bytes)}" if found.holds_bytes else ""
        said.append(least + most)
    else:
        said.append(Html(f"{text(found.kept)}: {wafer}"))
    most = max((x.streamed_bytes + x.kept_bytes for x in found.rows), default=0.0)
    rows = [
        [
            f"{x.name}{f' ({x.count})' if x.count > 1 else ''}",
            many(x.parameters),
            size(x.streamed_bytes),
            size(x.kept_bytes),
            bar(x.streamed_bytes + x.kept_bytes, most),
        ]
        for x in sorted(found.rows, key=lambda x: -(x.streamed_bytes + x.kept_bytes))
    ]
    head = (
        *("layer", "parameters", cited("weights", sources.of(STREAMING.weight_bytes))),
        *(cited("activations of a sample", sources.of(STREAMING.activation_bytes)), "both"),
    )
    inside = [listed(said), *_folded(head, rows, "bcd", " layers")]
    if found.layout is not None:
        words = "every layer fits by itself" if found.layout.fits else "not every layer fits"
        told = (
            f"Convolutions on the grid, all samples of a step at once: {words}; "
            f"{100 * found.layout.utilisation:.0f} % of the multiply-adds are used."
        )
        inside += [paragraph(told), listed([*map(str, found.layout.misfits)])]
    return section("What fits where", *inside)


def loss(facts: Facts, sources: Sources) -> str:
    """What precision and zeros do to the loss."""
    title = "What half precision and zeros do to its loss"
    found = facts.trials
    if found is None:
        return section(title, paragraph(f"Not measured: {facts.unmeasured}."))
    rows = [
        [
            cited(x.what, [sources.number(_measured(facts))]),
            "no number" if x.loss != x.loss else f"{x.loss:.4g}",
            "no number" if x.spread != x.spread else f"{x.spread:.2g}",
            "" if i == 0 else percent(found.change(x)),
            _beside_chance(found, x),
        ]
        for i, x in enumerate(found.trials)
    ]
    head = ("training", "loss held out", "spread by order", "change", "which is")
    return section(
        title,
        paragraph(
            f"{found.steps} steps of {found.batch} samples from the same weights, in "
            f"{len(found.trials[0].losses)} orders; {found.first:.4g} before training. Beyond "
            "chance: more than twice the spread. A longer training may tell otherwise."
            + " Zeros were not tried: the last matrix stays dense, and there is no other."
            * (not any("zeros" in x.what for x in found.trials))
        ),
        table(head, rows, "bcd"),
    )


def _beside_chance(found: Trials, one: Trial) -> str:
    if one is found.trials[0] or found.diverged:
        return ""
    return "beyond chance" if found.told_apart(one) else "within chance"


def _measured(facts: Facts) -> str:
    found = facts.trials
    counts = f"{found.samples:,} samples, {found.held_out:,} held out" if found else ""
    return f"measured here by emulation on data that were given: {counts}"


def changes(facts: Facts, sources: Sources) -> str:
    """What would change the answer most: what may be chosen, and what is not known well."""
    total = facts.estimate.total_s
    able = [x for x in facts.levers if not x.refused]
    cite = [sources.number("wse.estimate, with one thing changed")]
    chosen = [[x.what, time(x.total_s), f"{x.factor:.2g} times as long"] for x in able[:5]]
    not_able = [f"{x.what}: {x.refused}" for x in facts.levers if x.refused]
    open_ = [x for x in facts.unsure if x.width_s > 0][:4]
    ends = (
        min((x.least_s for x in open_), default=total),
        max((x.most_s for x in open_), default=total),
    )
    numbers = {x.what: of_phase(x.what, facts.estimate) for x in open_}
    rows = [
        [
            cited(PHASES.get(x.what, x.what), sources.of(*numbers[x.what])),
            x.status,
            f"{time(x.least_s)} to {time(x.most_s)}",
            span(x.least_s, total, x.most_s, ends),
            f"{first[0].value:.3g} {first[0].unit}, {first[0].status}" if first else "",
        ]
        for x in open_
        for first in [numbers[x.what][:1]]
    ]
    head = ("phase", "is", "the run may be", "on a logarithmic line", "hangs on")
    return section(
        "What would change the answer most",
        paragraph(f"One thing at a time; now {time(total)} in all."),
        table((cited("if you take", cite), "the run", "which is"), chosen, "bc"),
        more("What cannot be taken", listed(not_able)) if not_able else "",
        paragraph("And what is not known well enough:"),
        table(head, rows, "c"),
    )


def not_known(facts: Facts) -> str:
    """What this page cannot say; what is in doubt about the machines is folded away."""
    known = list(facts.unknowns)
    inside = [listed(known[:5])]
    if known[5:]:
        inside.append(more(f"{len(known) - 5} more", listed(known[5:])))
    return section("What is not known", *inside)


def _or_not(number: int | float, unit: str) -> str:
    return "not known" if number != number else f"{number:,.3g}{unit}"
