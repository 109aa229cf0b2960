"""Every public function and class of the reference shows how it is used; doctests run that."""

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "api" / "index.md").read_text(encoding="utf-8")
ROOMS = re.findall(r"^   ((?:sciml|wse)[\w.]*)$", PAGE, re.MULTILINE)
STUDIES = (
    "table4 figure2 figure3 figure4 noise width samples joint covariance posteriors sparsity "
    "precision"
)
NOT_RUN = {  # examples of which doctests leave out a line, and why
    "sciml.population": "chains compile for seconds; `validation` runs docs/populations.md",
    "sciml.refine": "trains a spline flow; `validation` runs docs/refine.md",
    "sciml.ode.read_petab": "reads a folder of files; tests/sciml/ode/sbml runs it",
    "sciml.ode.read_sbml": "reads a file; tests/sciml/ode/sbml runs it",
    "sciml.reference.compute": "samples twice, for minutes",
    "sciml.reference.nuts": "chains compile for seconds",
    "sciml.reference.sbibm_posterior": "reads files of another package",
    "sciml.baselines.least_squares": "compiles for seconds; tests/sciml/baselines runs it",
    "sciml.figure.draw_fields": "draws what a study trains for a minute",
    **{f"sciml.studies.{name}": "trains for minutes" for name in STUDIES.split()},
    "sciml.wind.fetch": "needs a network",
    "sciml.estimator.load_between": "the example of fit_between runs it",
    "wse.from_torch": "needs PyTorch, which `make torch` installs",
    "wse.local": "measures for fifteen seconds",
    "wse.job.evaluate": "the example of wse.job.train runs it",
    "wse.job.infer": "the example of wse.job.train runs it",
}


def room(name: str) -> Any:
    """Return a module by its public name, which may not be that of a file."""
    package, _, rest = name.partition(".")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return getattr(importlib.import_module(package), rest)


def offered(module: Any) -> list[str]:
    """Return the names that a page of the reference describes."""
    own = [
        name
        for name, found in vars(module).items()
        if getattr(found, "__module__", "") == module.__name__ and not name.startswith("_")
    ]
    return getattr(module, "__all__", own)


def callables() -> Iterator[tuple[str, Any]]:
    """Yield functions and classes by name, each once; exceptions are raised, not called."""
    seen = set()
    for name in ROOMS:
        module = room(name)
        for each in offered(module):
            found = getattr(module, each)
            raised = inspect.isclass(found) and issubclass(found, BaseException)
            if callable(found) and not raised and id(found) not in seen:
                seen.add(id(found))
                yield f"{name}.{each}", found


CALLABLES = dict(callables())


def shown(found: Any) -> str:
    """Return the text with its examples: of a class also its methods', and of what returns it."""
    texts = [found.__doc__]
    if inspect.isclass(found):
        texts += [getattr(method, "__doc__", None) for method in vars(found).values()]
        makers = CALLABLES.values()
        texts += [
            one.__doc__
            for one in makers
            if getattr(one, "__annotations__", {}).get("return") is found
        ]
    return "\n".join(text or "" for text in texts)


def test_each_shows_how_it_is_used():
    assert len(CALLABLES) > 400
    assert [name for name, found in CALLABLES.items() if ">>> " not in shown(found)] == []


def test_what_doctests_leave_out_is_named_with_a_reason():
    left = {name for name, found in CALLABLES.items() if "+SKIP" in (found.__doc__ or "")}
    assert left == {*NOT_RUN}
