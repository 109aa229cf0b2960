"""Sphinx settings. Nothing here needs a network, and nothing executes: see `copy_notebooks`."""

import builtins
import re
import shutil
from importlib.metadata import version as installed_version
from pathlib import Path

import nbformat
from docutils import nodes
from latex2mathml.converter import convert
from sphinx import addnodes

from sciml import citations

HERE = Path(__file__).parent
ROOT = HERE.parent
FOREIGN = {*dir(builtins), "Any", "Array", "Callable", "Float", "Int", "Literal", "Mapping", "Path"}
FOREIGN |= {"Iterable", "Iterator", "None", "PyTree", "Self", "Sequence"}
NAME = re.compile(r"(?:sciml|wse)(?:\.\w+)+")
UNDRAWN = re.compile(r">(\\[A-Za-z]+)<")  # a command that the converter does not know
GLUED = re.compile(r"(<mi>(?:log|ln|exp|det)</mi>)(?=<m[ins])")
WHERE = ("journal", "booktitle", "school", "howpublished", "volume", "pages", "link")

project = "sciml-wse"
author = copyright = "The sciml-wse developers"
version = release = installed_version("sciml-wse")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "sphinx_book_theme"
html_title = "sciml-wse"
html_theme_options = {"show_toc_level": 2, "home_page_in_toc": True}
html_copy_source = False
# Thousands of functions in the tree of contents took half the time of a build.
toc_object_entries = False
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["formulas.css"]

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"
nb_merge_streams = True
# A page has no kernel: of a widget it shows the figure that stands still, and loads no script.
nb_ipywidgets_js = {}
WIDGET = "application/vnd.jupyter.widget-view+json"
nb_mime_priority_overrides = [("html", WIDGET, None)]

autodoc_member_order = "bysource"
autodoc_default_options = {"undoc-members": True}
# A room's page describes what its `__all__` offers, under the name that a user types.
autosummary_ignore_module_all = False
autosummary_imported_members = True
templates_path = ["_templates"]
autodoc_preserve_defaults = True
default_role = "code"  # docstrings write `name`, as Markdown does
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

suppress_warnings = ["ref.python"]  # one class may be reached by two public names


def write_bibliography() -> None:
    """Write the page of all sources from the file that `sciml.cite` reads."""
    lines = []
    for key, entry in citations.entries().items():
        given = {name: plain(text) for name, text in citations.fields(entry).items()}
        if "eprint" in given:
            number = given["eprint"]
            given["link"] = f"[arXiv {number}](https://arxiv.org/abs/{number})"
        authors = given["author"].replace(" and ", "; ")
        where = ", ".join(given[k] for k in WHERE if k in given)
        lines.append(f"- {authors} ({given['year']}). *{given['title']}*. {where}. `{key}`")
    intro = "# Bibliography\n\n`sciml.cite(thing)` gives the BibTeX of what a thing builds on.\n\n"
    (HERE / "bibliography.md").write_text(intro + "\n".join(sorted(lines)) + "\n")


def plain(text: str) -> str:
    """Return the text of a BibTeX field without its braces and accents' commands."""
    accents = {'\\"a': "ä", '\\"o': "ö", '\\"u': "ü", "\\'a": "á", "\\c{c}": "ç"}
    for command, letter in accents.items():
        text = text.replace("{" + command + "}", letter).replace(command, letter)
    return (
        text.replace("``", "“")
        .replace("''", "”")
        .replace("{", "")
        .replace("}", "")
        .replace("--", "–")
    )


SOUGHT = {  # what readers type into the search -> the page that comes first
    "own-simulator": "own data",
    "how-sure": "uncertainty",
    "cerebras": "cerebras",
    "quickstart": "quickstart",
    "gpu": "gpu",
    "priors": "prior",
    "conditions": "dose",
    "noise": "missing values",
    "solving": "stiff",
    "many-simulations": "zarr",
    "sbml": "petab",
}


def add_index_entry(app, page: str, source: list[str]) -> None:
    """Make a page the first that a search for its word finds."""
    del app
    if page in SOUGHT:
        source[0] += f"\n```{{index}} ! {SOUGHT[page]}\n```\n"


NOTEBOOKS = """\
# Notebooks

One notebook a study, with the outputs of its fast scale, as the tests executed it. `make lab` opens
them all; set `SCIML_SCALE=full` before it to run the published sizes.

```{{toctree}}
:maxdepth: 1

{names}
```
"""


def copy_notebooks() -> None:
    """Show the notebooks as the tests executed them, or without outputs where none did."""
    folder = HERE / "notebooks"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    paths = sorted((ROOT / "notebooks").glob("*.ipynb"))
    (folder / "index.md").write_text(NOTEBOOKS.format(names="\n".join(p.stem for p in paths)))
    for path in paths:
        executed = ROOT / ".cache" / "notebooks" / path.name
        notebook = nbformat.read(executed if executed.exists() else path, as_version=4)
        for cell in notebook.cells:
            if "assert" in cell.metadata.get("tags", ()):  # for the tests, not for readers
                cell.metadata.tags.append("remove-cell")
            if cell.cell_type == "code":
                cell.outputs = [one for one in cell.outputs if not is_bar(one)]
        nbformat.write(notebook, folder / path.name)


def is_bar(output) -> bool:
    """Tell a bar of progress, which on a page would stand at its beginning for ever."""
    said = output.get("data", {})
    return WIDGET in said and not {"text/html", "image/png"} & {*said}


def keep_signs(app, what, name, obj, options, lines: list[str]) -> None:
    """Keep the signs of formulas in docstrings, such as |x| and a*b, from being read as markup."""
    del app, what, name, obj, options
    literal = None  # the indentation above which lines are shown as they stand
    for i, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if literal is not None and line and indent <= literal:
            literal = None
        if literal is None and not line.lstrip().startswith((">>>", "...")):
            prose = line.split("`")
            prose[::2] = [re.sub(r"([|*])", r"\\\1", part) for part in prose[::2]]
            lines[i] = "`".join(prose)
        if line.endswith("::"):
            literal = indent


def short_types(
    app, what, name, obj, options, signature, returned
) -> tuple[str | None, str | None]:
    """Leave out the module in which JAX keeps its array class."""
    del app, what, name, obj, options
    return tuple(text and text.replace("jaxlib._jax.", "") for text in (signature, returned))


def leave_foreign_types(app, doctree) -> None:
    """Take types that no page here describes for plain text: each would be sought in vain.

    Sphinx compares such a name with every object; that took a seventh of a build.
    """
    del app
    for node in list(doctree.findall(addnodes.pending_xref)):
        target = node.get("reftarget", "")
        own = "." not in target or target.startswith(("sciml.", "wse."))
        if node.get("refdomain") == "py" and (target in FOREIGN or not own):
            node.replace_self(node.children)


def link_names(app, doctree) -> None:
    """Link `sciml.fit` in a page to its description; the page stays plain Markdown."""
    del app
    for node in list(doctree.findall(nodes.literal)):
        name = node.astext()
        if NAME.fullmatch(name) and not isinstance(
            node.parent, nodes.reference | addnodes.pending_xref
        ):
            link = addnodes.pending_xref(
                "", node.deepcopy(), refdomain="py", reftype="obj", reftarget=name, refwarn=False
            )
            node.replace_self(link)


def drawn(formula: str, **options: str) -> str:
    """Return a formula as MathML, with the space between a function's name and what follows."""
    found = convert(formula, **options)
    if unknown := UNDRAWN.findall(found):
        raise ValueError(f"{', '.join(unknown)} of {formula!r} is not drawn: write it otherwise")
    return GLUED.sub(r'\1<mspace width="0.17em"></mspace>', found)


def inline_formula(writer, node) -> None:
    """Write a formula as MathML, which browsers draw by themselves, without any script."""
    writer.body.append(drawn(node.astext()))
    raise nodes.SkipNode


def displayed_formula(writer, node) -> None:
    """Write a formula on a line of its own; one that is too wide scrolls, not the page."""
    # The converter knows `align*` by that name alone.
    formula = drawn(node.astext().replace("{aligned}", "{align*}"), display="block")
    writer.body.append(f'<div style="overflow-x: auto">{formula}</div>')
    raise nodes.SkipNode


def setup(app) -> None:
    """Make the generated pages before Sphinx looks for pages."""
    app.add_html_math_renderer("mathml", (inline_formula, None), (displayed_formula, None))
    write_bibliography()
    copy_notebooks()
    # Before napoleon (priority 500), which writes markup of its own.
    app.connect("autodoc-process-docstring", keep_signs, priority=400)
    app.connect("autodoc-process-signature", short_types)
    app.connect("source-read", add_index_entry)
    app.connect("doctree-read", link_names)
    app.connect("doctree-read", leave_foreign_types)
