"""What the page says, as data."""

from dataclasses import dataclass, replace

from wse.checks.verdicts import Report
from wse.choose.page.levers import Lever, Unsure
from wse.choose.page.memory import Memory
from wse.choose.page.subject import Subject
from wse.choose.page.trials import Trials
from wse.choose.table import Comparison
from wse.machine.support.rules import VERDICTS
from wse.predict.result import Estimate


@dataclass(frozen=True)
class Operation:
    """What is said of one operation at one line.

    Attributes:
        verdict: "native", "decomposed", "unknown" or "unsupported".
        operation: its name in JAX.
        line: of the user's program, "model.py:7"; empty where it is not known.
        layers: that have it there.
        reason: why.
        remedy: what to write instead.
        source: where that is written.
    """

    verdict: str
    operation: str
    line: str
    layers: tuple[str, ...]
    reason: str
    remedy: str
    source: str


@dataclass(frozen=True)
class Facts:
    """All that the page says of one model.

    Attributes:
        subject: what it is about.
        check: verdicts on its operations; None where it is known by its shapes alone.
        estimates: of one system first, then of more.
        refused: numbers of systems that cannot train it, with the reason.
        memory: what fits where.
        comparison: beside other machines.
        unsure: what the time hangs on, and is not known well.
        levers: what may be changed.
        trials: of precision and sparsity; None: not measured.
        unmeasured: why they were not measured; empty: they were.
    """

    subject: Subject
    check: Report | None
    estimates: tuple[Estimate, ...]
    refused: tuple[tuple[int, str], ...]
    memory: Memory
    comparison: Comparison
    unsure: tuple[Unsure, ...]
    levers: tuple[Lever, ...]
    trials: Trials | None = None
    unmeasured: str = ""

    @property
    def verdict(self) -> str:
        """The worst of all operations; "unknown" where they are not seen."""
        return self.check.verdict if self.check else "unknown"

    @property
    def portable(self) -> bool:
        """Whether every operation is known to be supported."""
        return bool(self.check and self.check.portable)

    @property
    def estimate(self) -> Estimate:
        """On the fewest systems."""
        return self.estimates[0]

    @property
    def operations(self) -> tuple[Operation, ...]:
        """What is said of each operation at each line, the worst first; not of native ones."""
        found: dict[Operation, dict[str, None]] = {}
        for one in self.check.findings if self.check else ():
            if one.verdict != "native":
                why = (one.reason, one.remedy, one.source)
                alike = Operation(one.verdict, one.use.operation, one.line, (), *why)
                found.setdefault(alike, {})[one.layer] = None
        rows = [replace(x, layers=tuple(filter(None, layers))) for x, layers in found.items()]
        rows.sort(key=lambda x: VERDICTS.index(x.verdict), reverse=True)  # type: ignore[arg-type]
        return tuple(rows)

    @property
    def unknowns(self) -> tuple[str, ...]:
        """What this page does not know."""
        return (*self._unseen(), *dict.fromkeys(self._cautions()))

    def _unseen(self) -> list[str]:
        found: list[str] = []
        if self.check is None:
            found.append(f"which operations port: {self.subject.mute}")
        elif named := [x for x in self.operations if x.verdict == "unknown"]:
            names = ", ".join(sorted({x.operation for x in named}))
            found.append(f"whether these run: {names}; no public source says")
        if self.trials is None:
            why = self.unmeasured.partition(":")[0]
            found.append(f"what precision and zeros do to the loss: {why}")
        if all(x.price_per_h != x.price_per_h for x in self.comparison.candidates):
            found.append("the cost: no price was given, as beside={'cs2': 60, '8 x h100': 2.5}")
        found.append(
            "whether the vendor's compiler places the whole: operations that run one by one may "
            "still fail together"
        )
        return found

    def _cautions(self) -> list[str]:
        name = self.estimate.cluster.machine.name
        own = [*self.subject.cautions, *self.estimate.cautions]
        others = [
            f"{one.name}: {caution}"
            for one in self.comparison.able
            if name not in one.name
            for caution in one.cautions
        ]
        return [*own, *others]
