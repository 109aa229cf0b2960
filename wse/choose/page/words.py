"""The four answers in a sentence each, and numbers as they are read."""

from math import isfinite

from wse.choose.page.answer import Facts
from wse.choose.table import time as briefly
from wse.predict.result import Estimate

PHASES = {
    "setup_front": "reading the model",
    "setup_search": "searching a micro-batch",
    "setup_codegen": "making the programs",
    "setup_job": "starting the job",
    "setup_prepare": "preparing the systems",
    "setup_weights": "sending the first weights",
    "setup_program": "programming the wafers",
    "setup_prime": "filling the input queues",
    "setup_place": "placing the layers",
    "setup_rest": "the rest of set-up",
    "compute": "arithmetic",
    "weights": "waiting for weights",
    "gradients": "waiting for gradients",
    "update": "updating the weights",
    "input": "bringing samples in",
    "units": "passing through the units",
    "step": "what each step costs anyway",
}


def answers(facts: Facts) -> list[tuple[str, str]]:
    """Question and answer: does it port, what does it take, what does it gain, what of the loss."""
    return [
        ("Does it port?", _ports(facts)),
        ("What would it take?", _takes(facts)),
        ("Is another machine faster?", _gains(facts)),
        ("What of the loss?", _loss(facts)),
    ]


def time(seconds: int | float) -> str:
    """A time to be read: minutes between two of these and two hours.

    >>> time(90), time(1221), time(7300)
    ('90 s', '20.4 min', '2.03 h')
    """
    return f"{seconds / 60:.3g} min" if 120 <= seconds < 7200 else briefly(seconds)


def size(count: int | float) -> str:
    """Bytes to be read.

    >>> size(32), size(1.64e4), size(2.4e15)
    ('32 B', '16.4 kB', '2.4 PB')
    """
    words = many(count)
    return f"{words}B" if words[-1:].isalpha() else f"{words} B"


def percent(factor: int | float) -> str:
    """By how much a factor is more or less than one.

    >>> percent(1.0123), percent(2.7), percent(0.99)
    ('+1.2 %', '+170 %', '-1 %')
    """
    if not isfinite(factor):
        return "no number"
    change = 100 * (factor - 1)
    return f"{change:+.0f} %" if abs(change) >= 10 else f"{change:+.2g} %"


def between(value: int | float, ends: tuple[int | float, int | float]) -> str:
    """A time with its interval."""
    return f"{time(value)} ({time(ends[0])} to {time(ends[1])})"


def many(count: int | float) -> str:
    """A count or a size to be read: three digits and a word.

    >>> many(1_234_567), many(2.5e9), many(12)
    ('1.23 M', '2.5 G', '12')
    """
    for size, word in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g} {word}"
    return f"{count:.3g}"


def clustered(estimate: Estimate) -> str:
    """The machine of an estimate, as "4 x CS-2"."""
    cluster = estimate.cluster
    return f"{cluster.systems} x {cluster.machine.name}"


def _ports(facts: Facts) -> str:
    if facts.check is None:
        return f"Not seen: {facts.subject.mute}."
    if facts.check.faults:
        return f"No: {facts.check.faults[0]}."
    if facts.portable:
        return f"Yes: every operation is known to run on {facts.check.machine}."
    worst = [x for x in facts.operations if x.verdict == facts.verdict]
    shown = ", ".join(f"{x.operation}{f' ({x.line})' if x.line else ''}" for x in worst[:3])
    more = f" and {len(worst) - 3} more" if len(worst) > 3 else ""
    if facts.verdict == "unsupported":
        return f"No: {shown}{more} {'does' if len(worst) == 1 else 'do'} not run there."
    return f"Not known: no public source says whether {shown}{more} would run."


def _takes(facts: Facts) -> str:
    one = facts.estimate
    last = facts.estimates[-1]
    more = (
        f" On {clustered(last)}: {between(last.total_s, last.interval_s)}."
        if last is not one
        else ""
    )
    return (
        f"On {clustered(one)}: {between(one.total_s, one.interval_s)} for {one.samples:,} samples, "
        f"{time(one.setup_s)} of it set-up.{more}"
    )


def _gains(facts: Facts) -> str:
    found = facts.comparison
    wafer, best = found.candidates[0], found.able[0]
    n = found.samples
    if best.name == wafer.name:
        others = found.able[1:]
        if not others:
            return f"{wafer.name} is the only one here that can train it."
        second = others[0]
        factor = second.total_s(n)[1] / wafer.total_s(n)[1]
        return (
            f"{wafer.name} is the fastest here, {factor:.2g} times as fast as {second.name}"
            f"{_overlap(wafer.total_s(n), second.total_s(n))}."
        )
    factor = wafer.total_s(n)[1] / best.total_s(n)[1]
    since = wafer.beats_from(best)
    later = "" if since == float("inf") else f"; {wafer.name} wins from {many(since)} samples on"
    overlap = _overlap(wafer.total_s(n), best.total_s(n))
    return f"Yes: {best.name} is {factor:.2g} times as fast as {wafer.name}{overlap}{later}."


def _overlap(one: tuple[int | float, ...], other: tuple[int | float, ...]) -> str:
    meets = one[0] <= other[2] and other[0] <= one[2]
    return ", but their intervals overlap" if meets else ""


def _loss(facts: Facts) -> str:
    if facts.trials is None:
        return f"Not measured: {facts.unmeasured.partition(':')[0]}."
    trials = facts.trials
    if trials.diverged:
        return "Not told: the training in single precision itself ends in no number."
    wide = [x for x in trials.trials[1:] if trials.told_apart(x)]
    names = ", ".join(f"{x.what} ({percent(trials.change(x))})" for x in wide)
    kept = [x.what for x in trials.trials[1:] if x not in wide]
    rest = (
        f"{', '.join(kept)} {'changes' if len(kept) == 1 else 'change'} it by no more than chance"
    )
    told = "; ".join((*([f"changed by {names}"] if wide else []), *([rest] if kept else [])))
    return f"Measured in {trials.steps} steps on data that were given: {told}."
