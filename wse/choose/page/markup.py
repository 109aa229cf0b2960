"""The page in HTML: one file, with no script, that needs no network and prints on two sheets."""

import base64
from html import escape

from wse.choose.page import parts
from wse.choose.page.answer import Facts
from wse.choose.page.citations import Sources
from wse.choose.page.style import STYLE
from wse.choose.page.tags import section
from wse.choose.page.words import answers, clustered

PARTS = (  # in their order
    *(parts.operations, parts.time_taken, parts.machines),
    *(parts.fits, parts.loss, parts.changes),
)


def page(facts: Facts) -> str:
    """The whole page."""
    sources = Sources()
    one, subject = facts.estimate, facts.subject
    head = (
        f"{escape(clustered(one))}, {escape(one.cluster.mode or 'pipelined')}, release "
        f"{escape(one.release)}; {subject.workload.parameters:,} parameters; came as "
        f"{escape(subject.door)}"
    )
    rows = "".join(
        f"<dt>{escape(question)}</dt><dd>{escape(answer)}</dd>"
        for question, answer in answers(facts)
    )
    body = [
        f"<h1>{escape(subject.name)}: would it port?</h1><p class='soft'>{head}</p><dl>{rows}</dl>",
        *(part(facts, sources) for part in PARTS),
        parts.not_known(facts),
        section("Sources", _numbered(sources.listed)),
    ]
    title = escape(f"{subject.name} on {clustered(one)}")
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{title}</title><style>{STYLE}</style></head><body>{''.join(body)}</body></html>\n"
    )


def framed(html: str) -> str:
    """A page within another, which keeps its style to itself."""
    coded = base64.b64encode(html.encode()).decode()
    return (
        f"<iframe src='data:text/html;base64,{coded}' width='100%' height='600' "
        "style='border:1px solid #ccc' title='port'></iframe>"
    )


def _numbered(found: list[str]) -> str:
    items = "".join(f"<li id='s{i}'>{escape(x)}</li>" for i, x in enumerate(found, 1))
    return f"<ol class='soft'>{items}</ol>"
