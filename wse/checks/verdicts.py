"""What the check found, as verdicts by layer and operation."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from wse import _render
from wse.machine.support.rules import VERDICTS, Rule, Use, Verdict, worst

if TYPE_CHECKING:
    import xarray as xr

SHOWN = 4  # operands of one operation
HEADER = ("verdict", "operation", "layer", "pass", "operands", "line", "reason", "remedy")
COLUMNS = (
    *("verdict", "operation", "layer", "pass", "operands", "line", "count"),
    *("reason", "constraint", "source", "status", "remedy"),
)


@dataclass(frozen=True)
class Finding:
    """One operation, used in one way by one layer.

    Attributes:
        use: the operation and its operands.
        layer: the layer's name in the graph.
        line: the user's own line, "file.py:7"; empty where JAX does not say.
        count: how often the layer's program has it there.
        verdict: "native", "decomposed", "unknown" or "unsupported".
        rules: the rules that decided; none if the verdict is "unknown".
        remedy: what to write instead; a hint where nothing is known.

    >>> import jax.numpy as jnp
    >>> import wse
    >>> def loss(params, batch):
    ...     return jnp.mean(jnp.sort(batch @ params["w"]) ** 2)
    >>> found = wse.check(loss, {"w": jnp.ones((4, 2))}, jnp.ones((8, 4)), mode="streaming")
    >>> worst = found.findings[0]
    >>> worst.use.operation, worst.verdict, worst.remedy
    ('sort', 'unknown', 'sort the batch on the host; mask what the net computes')
    """

    use: Use
    layer: str
    line: str
    count: int
    verdict: Verdict
    rules: tuple[Rule, ...]
    remedy: str = ""

    @property
    def reason(self) -> str:
        """Why, in words."""
        return "; ".join(rule.reason for rule in self.rules) or "no public source says"

    @property
    def source(self) -> str:
        """Where that is written."""
        return "; ".join(dict.fromkeys(rule.source for rule in self.rules))

    @property
    def constraint(self) -> str:
        """For which operands the rule speaks."""
        return "; ".join(str(rule.constraint) for rule in self.rules if str(rule.constraint))

    @property
    def operands(self) -> str:
        """Types and numbers of axes, as "float32 4-d, float32 4-d"; of a loop, of the first."""
        pairs = [*zip(self.use.dtypes, self.use.ranks, strict=False)]
        more = (f"{len(pairs) - SHOWN} more",) * (len(pairs) > SHOWN)
        words = (f"{dtype} {rank}-d" for dtype, rank in pairs[:SHOWN])
        return ", ".join((*words, *more, *sorted(self.use.traits)))


@dataclass(frozen=True)
class Report:
    """Verdicts on a training function for one machine, mode and release.

    Attributes:
        machine: the machine's name, as "CS-2".
        mode: "streaming" or "pipelined".
        release: of the vendor's software, as "2.10".
        findings: the worst first.
        faults: why the function could not be traced whole; empty if it could.
        why: who or what chose machine, mode and release.

    >>> import wse
    >>> report = wse.check("FC-MNIST", mode="streaming", release="2.10")
    >>> report.verdict, report.portable, len(report.of("native"))
    ('native', True, 23)
    """

    machine: str
    mode: str
    release: str
    findings: tuple[Finding, ...]
    faults: tuple[str, ...] = ()
    why: str = ""

    @property
    def verdict(self) -> Verdict:
        """The worst of all operations; "unsupported" if the function could not be traced."""
        return "unsupported" if self.faults else worst(f.verdict for f in self.findings)

    @property
    def portable(self) -> bool:
        """Whether every operation is known to be supported; what is unknown is not portable."""
        return self.verdict in ("native", "decomposed")

    def of(self, verdict: Verdict) -> tuple[Finding, ...]:
        """The findings with one verdict."""
        return tuple(f for f in self.findings if f.verdict == verdict)

    @cached_property
    def dataset(self) -> "xr.Dataset":
        """One entry per finding: verdict, operation, layer, pass, line, reason, source, remedy."""
        import xarray as xr

        about = self.document()
        rows = about.pop("findings")
        columns = {name: [row[name] for row in rows] for name in COLUMNS}
        return xr.Dataset({name: ("finding", x) for name, x in columns.items()}, attrs=about)

    def document(self) -> dict[str, Any]:
        """The report as plain data, for JSON."""
        return {
            "machine": self.machine,
            "mode": self.mode,
            "release": self.release,
            "why": self.why,
            "verdict": self.verdict,
            "faults": list(self.faults),
            "findings": [dict(zip(COLUMNS, _row(f), strict=True)) for f in self.findings],
        }

    def __repr__(self) -> str:
        """One line: the machine and the verdict; `print` shows what needs attention."""
        return f"Report({self._caption()})"

    def __str__(self) -> str:
        """What needs attention as a table, what is native as one line per operation."""
        parts = [self._caption(), *(f"not traced: {fault}" for fault in self.faults)]
        if rows := self._rows():
            parts.append(_render.text(HEADER, rows))
        return "\n\n".join((*parts, self._native(), f"for {self.why}"))

    def _repr_html_(self) -> str:
        """The same for a notebook, with the sources below."""
        sources = dict.fromkeys(f.source for f in self.findings if f.source)
        notes = [
            *self.faults,
            self._native(),
            f"for {self.why}",
            *(f"source: {source}" for source in sources),
        ]
        return _render.html(self._caption(), HEADER, self._rows(), notes)

    def _caption(self) -> str:
        counts = {v: len({f.use.operation for f in self.of(v)}) for v in VERDICTS}
        words = ", ".join(f"{n} {v}" for v, n in counts.items() if n)
        return (
            f"{self.machine}, {self.mode}, release {self.release}: {self.verdict} "
            f"(operations: {words or 'none'})"
        )

    def _rows(self) -> Sequence[tuple[str, ...]]:
        return [
            tuple(dict(zip(COLUMNS, map(str, _row(f)), strict=True))[name] for name in HEADER)
            for f in self.findings
            if f.verdict != "native"
        ]

    def _native(self) -> str:
        names = sorted({f.use.operation for f in self.of("native")})
        return f"native: {', '.join(names) or 'none'}"


def _row(finding: Finding) -> tuple[str | int, ...]:
    return (
        finding.verdict,
        finding.use.operation,
        finding.layer,
        "backward" if finding.use.backward else "forward",
        finding.operands,
        finding.line,
        finding.count,
        finding.reason,
        finding.constraint,
        finding.source,
        " ".join(sorted({rule.status for rule in finding.rules})),
        finding.remedy,
    )
