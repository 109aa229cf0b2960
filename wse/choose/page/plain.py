"""The page in types that JSON knows."""

# What a document holds has no static type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from dataclasses import asdict
from typing import Any

from wse import _render
from wse.choose.page.answer import Facts
from wse.choose.page.citations import Sources, of_phase
from wse.choose.page.memory import Memory
from wse.choose.page.words import answers


def document(facts: Facts) -> dict[str, Any]:
    """All that the page says; what is not known is None."""
    sources = Sources()
    subject, found = facts.subject, facts.trials
    written = {
        "model": subject.name,
        "door": subject.door,
        "parameters": subject.workload.parameters,
        "portable": facts.portable,
        "verdict": facts.verdict,
        "answers": [{"question": x, "answer": y} for x, y in answers(facts)],
        "operations": [
            {**asdict(x), "source": sources.number(x.source) if x.source else None}
            for x in facts.operations
        ],
        "native": sorted({x.use.operation for x in facts.check.of("native")})
        if facts.check
        else None,
        "memory": _memory(facts.memory),
        "estimates": [
            {
                **one.document(),
                "sources": {x.name: sources.of(*of_phase(x.name, one)) for x in one.phases},
            }
            for one in facts.estimates
        ],
        "refused": [{"systems": n, "reason": why} for n, why in facts.refused],
        "comparison": facts.comparison.document(),
        "unsure": [asdict(x) for x in facts.unsure],
        "levers": [asdict(x) for x in facts.levers],
        "trials": found
        and {
            **asdict(found),
            "trials": [
                {**asdict(x), "loss": x.loss, "spread": x.spread, "change": found.change(x)}
                for x in found.trials
            ],
        },
        "unknown": [*facts.unknowns],
        "sources": sources.listed,
    }
    return _render.finite(written)


def _memory(found: Memory) -> dict[str, Any]:
    layout = found.layout
    rest = {k: v for k, v in vars(found).items() if k not in ("rows", "layout")}
    return {
        **rest,
        "rows": [asdict(x) for x in found.rows],
        "layout": layout
        and {
            "fits": layout.fits,
            "cycles": layout.cycles,
            "utilisation": layout.utilisation,
            "misfits": [str(x) for x in layout.misfits],
            "layers": [
                {"name": x.shape.name, "layout": str(x.layout), "bytes_per_pe": x.cost.memory_bytes}
                for x in layout.layers
            ],
        },
    }
