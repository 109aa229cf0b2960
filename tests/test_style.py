"""The house rules that a linter does not know, over every file of the two packages."""

import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): text
    for package in ("sciml", "wse")
    for path in sorted((ROOT / package).rglob("*.py"))
    if (text := path.read_text())
}
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


def length(function: FUNCTION) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def functions(source: str) -> list[FUNCTION]:
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, FUNCTION)]


def faults(source: str) -> Iterator[str]:
    """Yield what in one file breaks a rule."""
    if (lines := len(source.splitlines())) > 400:
        yield f"{lines} lines; at most 400: which noun hides in them?"
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if length(node) > 80:
                yield f"{node.name}, line {node.lineno}: {length(node)} lines; at most 80"
            case ast.FunctionDef(args=args) if len(args.kwonlyargs) > 5:
                yield f"{node.name}, line {node.lineno}: more than 5 options; make a config"
            case ast.Call(func=ast.Name(id="print" | "super" | "hasattr" as name)):
                yield f"{name}(, line {node.lineno}"
            case ast.ImportFrom(names=[ast.alias(name="*")]):
                yield f"star import, line {node.lineno}"
            case ast.ImportFrom(level=level) if level > 0:
                yield f"relative import, line {node.lineno}"


@pytest.mark.parametrize("module", SOURCES)
def test_file_keeps_the_rules(module: str):
    assert not list(faults(SOURCES[module]))


def test_files_and_functions_are_short_in_the_median():
    assert median(len(source.splitlines()) for source in SOURCES.values()) <= 120
    assert median(length(f) for source in SOURCES.values() for f in functions(source)) <= 12


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("x = 1\n" * 401, "401 lines"),
        ("def f():\n" + "    x = 1\n" * 80, "81 lines"),
        ("def f(*, a, b, c, d, e, g): ...", "more than 5 options"),
        ("print('x')", "print("),
        ("class A:\n    def f(self): super().f()", "super("),
        ("hasattr(x, 'y')", "hasattr("),
        ("from x import *", "star import"),
        ("from ..x import y", "relative import"),
        ("from . import y", "relative import"),
    ],
)
def test_a_planted_fault_is_found(source: str, fault: str):
    assert fault in " ".join(faults(source))
