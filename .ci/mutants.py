"""Mutants: small faults put into the packages, to see whether the tests notice.

    python .ci/mutants.py record --out .ci/mutants.json
    python .ci/mutants.py reach --out reach tests sciml wse validation
    python .ci/mutants.py run --reach reach --out after.json
    python .ci/mutants.py compare .ci/mutants_before.json after.json

`reach` runs all tests once in a copy of the tree, with a probe at every recorded mutant; `run`
tries each mutant against the tests that came by, cheapest first. All runs may share a cache of
compiled programs (JAX_COMPILATION_CACHE_DIR): what a mutant changes is compiled anew.
`mutants_before.json` is a run on commit 1551785, before the code was laid out anew (--cap-s 60; the
tests of types, style, pages and notebooks left out): 224 of 298 killed.
On commit ee334ca, after it, by `tests`, `sciml` and `wse` alone, without what moved to validation:
57 are gone with the code that was merged; of the 241 that both runs judged 177 were killed before,
181 after.
A mutant is known by function, operator and snippet, so it is found again after files were moved.
By hand, because mutmut names a mutant by module and a number, and cosmic-ray by file, position and
a count over the file: neither finds one again in a function that was moved.
"""

import argparse
import ast
import json
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PACKAGES = ("sciml", "wse")
MUTANTS = Path(__file__).with_name("mutants.json")
LEFT_BEHIND = (".git", ".venv", ".cache", ".hypothesis", ".coverage*", "__pycache__")
TIMED_OUT = -9  # of SIGKILL
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is},
    **{ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult},
    **{ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.LShift: ast.RShift},
}
# The suite begins with its longest tests; here the cheapest come first. Files are asked for, not
# tests: one that is named after a mutated number would stop pytest by not being found.
# A server imports what the packages stand on, which takes ten seconds, and forks for every run.
SERVER = """
import json, os, sys, tempfile, traceback
import dask.array, diffrax, flax.linen, flax.nnx, h5netcdf, hypothesis.configuration, jax, jinja2
import matplotlib.pyplot, numpyro, optax, optimistix, pandas, pooch, pytest, scipy.stats, typer
import sklearn.ensemble, sklearn.neural_network, xarray, yaml, zarr

class Cheapest:
    def __init__(self, tests):
        self.place = {test: i for i, test in enumerate(tests)}
    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        found = [item for item in items if item.nodeid in self.place]
        items[:] = sorted(found, key=lambda item: self.place[item.nodeid])

def run(tree, environment, output, tests, flags):
    os.setsid()
    os.chdir(tree)
    sys.path.insert(0, tree)
    os.environ.update(environment)
    tempfile.tempdir = None
    hypothesis.configuration.set_hypothesis_home_dir(environment["HYPOTHESIS_STORAGE_DIRECTORY"])
    for number in (1, 2):
        os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    files = dict.fromkeys(test.split("::")[0] for test in tests)
    call = ["-x", "-v", "-p", "no:cacheprovider", *flags, *files]
    call += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return pytest.main(call, plugins=[Cheapest(tests)])

sys.stdout.write("ready\\n")
sys.stdout.flush()
for line in sys.stdin:
    if not (child := os.fork()):
        code = 70
        try:
            code = int(run(*json.loads(line)))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    sys.stdout.write(f"{child}\\n")
    sys.stdout.flush()
    _, status = os.waitpid(child, 0)
    sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\\n")
    sys.stdout.flush()
"""
PROBE = """
import os
seen = set()
def hit(number):
    test = os.environ.get("PYTEST_CURRENT_TEST")
    if test and (number, test) not in seen:
        seen.add((number, test))
        file = os.open({path!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, f"{{number:03}} {{test}}\\n".encode())
        os.close(file)
"""
QUALIFIER = re.compile(r"\b(?:[A-Za-z_]\w*\.)+(?=[A-Za-z_])")  # of a module that may be renamed
PASSED, NO_TESTS = 0, 5  # of pytest

Change = tuple[str, Any, ast.AST]  # the operator, what it takes away, what it puts there
Scope = tuple[str, ...]


@dataclass(frozen=True)
class Site:
    """A place where an operator applies, and what it does there."""

    module: str
    function: str  # with its classes; <module>.NAME for what a module binds
    operator: str
    original: str
    mutated: str
    ordinal: int  # among those of this function, operator and snippet
    span: tuple[int, int, int, int] = (0, 0, 0, 0)  # line and byte, of start and end
    text: str = ""
    statement: int = 0  # line of the innermost statement
    early: str = ""  # outside of functions: the name that is bound as the module is imported
    of_statement: bool = False

    def key(self) -> tuple[str, str, str, str, str, int]:
        """Return what stays the same when a function is moved, or made private."""
        package, name = self.module.split(".")[0], bare(self.function)
        before, after = (bare(QUALIFIER.sub("", text)) for text in (self.original, self.mutated))
        return package, name, self.operator, before, after, self.ordinal


def bare(text: str) -> str:
    """Return a text with no underscore before a name."""
    return re.sub(r"\b_+(?=\w)", "", text)


def but(node: Any, **fields: Any) -> Any:
    """Return a node with some fields replaced."""
    return type(node)(**{**dict(ast.iter_fields(node)), **fields})


def changes(node: ast.AST) -> Iterator[Change]:
    """Yield the mutations of one node, not those of its children."""
    tests: list[ast.expr] = []
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            tests = [test]
        case ast.comprehension(ifs=ifs):
            tests = ifs
        case ast.Compare(ops=ops):
            for i, op in enumerate(ops):
                yield "compare", node, but(node, ops=[*ops[:i], SWAPS[type(op)](), *ops[i + 1 :]])
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in SWAPS:
            if not any(is_text(child) for child in ast.iter_child_nodes(node)):
                yield "arithmetic", node, but(node, op=SWAPS[type(op)]())
        case ast.BoolOp(op=op):
            yield "boolean", node, but(node, op=SWAPS[type(op)]())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "not", node, operand
        case ast.Constant(value=bool(value)):
            yield "truth", node, ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield "number", node, ast.Constant(value + 1)
        case ast.Constant(value=float(value)):
            yield "number", node, ast.Constant(2 * value or 1.0)
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield "return", node, ast.Return(ast.Constant(None))
        case ast.Raise() | ast.Expr(value=ast.Call()):
            yield "statement", node, ast.Pass()
        case ast.Call(keywords=given):
            for one in given:
                if one.arg and one.arg != "help":
                    yield "keyword", node, but(node, keywords=[k for k in given if k is not one])
    yield from (("condition", test, ast.UnaryOp(ast.Not(), test)) for test in tests)


def is_text(node: ast.AST) -> bool:
    """Whether a node is a string: arithmetic on it is no mistake that anyone makes."""
    return isinstance(getattr(node, "value", None), str) or isinstance(node, ast.JoinedStr)


def walk(
    node: ast.AST, scope: Scope, early: str, statement: ast.AST
) -> Iterator[tuple[Scope, str, ast.AST, ast.AST, Change]]:
    """Yield the mutations in a node and where they stand, but not what is only for readers."""
    children: Iterable[ast.AST | None] = ast.iter_child_nodes(node)
    match node:
        case ast.JoinedStr() | ast.pattern() | ast.FunctionDef(name="__repr__"):
            return  # Python 3.11 does not know where the parts of an f-string are
        case ast.If(test=test) if "TYPE_CHECKING" in ast.unparse(test):
            return
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            scope = (*scope, name)
            yield from walk(node.args, scope, early, node)
            children, early = node.body, ""
        case ast.ClassDef(name=name):
            scope, children = (*scope, name), node.body
        case ast.arguments(defaults=defaults, kw_defaults=more):
            children = [*defaults, *more]
        case ast.AnnAssign(value=value):
            children = [value]
    for child in filter(None, children):
        inner = child if isinstance(child, ast.stmt) else statement
        yield from ((scope, early, inner, node, change) for change in changes(child))
        yield from walk(child, scope, early, inner)


def bound(top: ast.stmt) -> list[str]:
    """Return the names that a statement of a module binds."""
    match top:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


def snippets(parent: ast.AST, node: Any, new: Any) -> tuple[str, str]:
    """Return a node before and after; a constant with what it stands in, if that is short."""
    whole = ast.unparse(parent)
    if not isinstance(node, ast.Constant) or len(whole) > 80:
        return ast.unparse(node), ast.unparse(new)
    old, node.value = node.value, new.value
    after, node.value = ast.unparse(parent), old
    return whole, after


def sites(module: str, source: str) -> Iterator[Site]:
    """Yield all mutations of a module."""
    seen = Counter[tuple[str, str, str]]()
    for top in ast.parse(source).body:
        if not (names := bound(top)) or names == ["__all__"]:
            continue
        scope = () if hasattr(top, "body") else ("<module>", names[0])
        for inner, early, statement, parent, change in walk(
            ast.Module([top], []), scope, names[0], top
        ):
            operator, node, new = change
            name = ".".join(inner)
            before, after = snippets(parent, node, new)
            ordinal = seen[name, operator, before]
            seen[name, operator, before] += 1
            whole = isinstance(node, ast.stmt)
            text = ast.unparse(new) if whole else f"({ast.unparse(new)})"
            span = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
            where = (span, text, statement.lineno, early, whole)
            yield Site(module, name, operator, before, after, ordinal, *where)


def edited(source: bytes, site: Site) -> bytes:
    """Return a module with one mutation; all other text stays as it is."""
    line, column, end_line, end_column = site.span
    lengths = [len(text) for text in source.splitlines(keepends=True)]
    start, end = sum(lengths[: line - 1]) + column, sum(lengths[: end_line - 1]) + end_column
    return source[:start] + site.text.encode() + source[end:]


@contextmanager
def mutation(path: Path, site: Site) -> Iterator[None]:
    """Mutate a file for a while."""
    source = path.read_bytes()

    def put(text: bytes) -> None:
        path.write_bytes(text)
        # Stale bytecode is told by seconds and size, and `<` is as long as `>`.
        for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            stale.unlink()

    put(edited(source, site))
    try:
        yield
    finally:
        put(source)


class House:
    """The modules under a root, and where they can be mutated."""

    def __init__(self, root: Path):
        self.root = root.resolve()
        paths = [path for name in PACKAGES for path in sorted((root / name).rglob("*.py"))]
        inside = [path.relative_to(root) for path in paths]
        self.files = {".".join(path.with_suffix("").parts): path for path in inside}
        texts = {name: (root / path).read_text("utf-8") for name, path in self.files.items()}
        self.sites = [site for name, text in texts.items() for site in sites(name, text)]
        self.sizes = Counter((site.module, site.function) for site in self.sites)

    def find(self, mutant: dict[str, Any]) -> Site | None:
        """Return the place of a recorded mutant; nothing if it is gone or in doubt."""
        old = Site(**{name: value for name, value in mutant.items() if name not in ("id", "sites")})
        found = [site for site in self.sites if site.key() == old.key()]
        for strange in (
            lambda site: site.original != old.original,
            lambda site: site.function != old.function,
            lambda site: site.module != old.module,
            lambda site: abs(self.sizes[site.module, site.function] - mutant["sites"]),
        ):
            least = min(map(strange, found), default=0)
            found = [site for site in found if strange(site) == least]
        return found[0] if len(found) == 1 else None

    def draw(self, count: int, seed: int) -> list[dict[str, Any]]:
        """Return mutants of every n-th statement that can be mutated.

        So each package and module has its share, and a table of numbers no more than that.
        """
        statements: defaultdict[tuple[str, int], list[Site]] = defaultdict(list)
        for site in self.sites:
            statements[site.module, site.statement].append(site)
        chance, places = random.Random(seed), sorted(statements)
        count = min(count, len(places))
        step, start = len(places) / count, chance.random()
        drawn = []
        for i in range(count):
            choices = statements[places[int((i + start) * step)]]
            operator = chance.choice(sorted({site.operator for site in choices}))
            drawn.append(chance.choice([site for site in choices if site.operator == operator]))
        chance.shuffle(drawn)  # so that a part of a run is a sample too
        names = ("module", "function", "operator", "ordinal", "original", "mutated")
        return [
            {"id": f"{i:03}"}
            | {name: getattr(site, name) for name in names}
            | {"sites": self.sizes[site.module, site.function]}  # to tell functions of one name
            for i, site in enumerate(drawn)
        ]


def probed(source: bytes, places: list[tuple[int, Site]]) -> bytes:
    """Return a module that tells when it comes by; every line keeps its number."""
    lengths = [len(text) for text in source.splitlines(keepends=True)]
    put: list[tuple[int, bool, str]] = []  # where, whether inside a statement, what
    for number, site in places:
        line, column, end_line, end_column = site.span
        start, end = sum(lengths[: line - 1]) + column, sum(lengths[: end_line - 1]) + end_column
        hit = f'__import__("_probe").hit({number})'
        if site.of_statement:
            put.append((start, False, f"{hit}; "))
        else:
            put += [(start, True, f"({hit} or ("), (end, True, "))")]
    for where, _, text in sorted(put, key=lambda one: (-one[0], not one[1])):
        source = source[:where] + text.encode() + source[where:]
    return source


class Reach:
    """Which tests came by at which mutants, and how long each test took."""

    def __init__(self, folder: Path, root: Path):
        self.seconds = passed(folder / "junit.xml", root)
        files: defaultdict[str, set[str]] = defaultdict(set)
        for test in self.seconds:
            files[file_of(test)].add(test)
        self.first: defaultdict[str, set[str]] = defaultdict(set)  # those that set fixtures up
        self.tests: defaultdict[str, set[str]] = defaultdict(set)  # by mutant
        for line in (folder / "reached.txt").read_text("utf-8").splitlines():
            number, _, named = line.partition(" ")
            test, _, phase = named.rpartition(" (")
            self.tests[number].add(test)
            if phase == "setup)":  # it may serve the whole file, but only the first test is named
                self.first[file_of(test)].add(test)
                self.tests[number] |= files[file_of(test)]
        self.texts = {file: (root / file).read_text("utf-8") for file in files}

    def covering(self, number: str, site: Site) -> set[str]:
        """Return the tests that run a mutated line.

        What runs as a module is imported runs in no test: there, the tests of all files that
        mention the bound name or the module count.
        """
        if not site.early:
            return self.tests[number] & set(self.seconds)
        last = site.module.rpartition(".")[2]
        words = re.compile(rf"\b({re.escape(site.early.strip('_'))}|{last})\b")
        files = {file for file, text in self.texts.items() if words.search(text)}
        return {test for test in self.seconds if file_of(test) in files}


def file_of(test: str) -> str:
    """Return the file of a test."""
    return test.split("::")[0]


def passed(junit: Path, root: Path) -> dict[str, float]:
    """Return the tests that passed, each with its seconds."""
    found = {}
    for case in ElementTree.parse(junit).iter("testcase"):
        parts = case.get("classname", "").split(".")
        files = ("/".join(parts[:i]) + ".py" for i in range(1, len(parts) + 1))
        file = next((file for file in files if (root / file).is_file()), "")
        test = "::".join([file, *parts[file.count("/") + 1 :], case.get("name", "")])
        if not {child.tag for child in case} & {"failure", "error", "skipped"}:
            found[test] = float(case.get("time", 0))
    return found


class Server:
    """A process that has imported much, and forks for every run of tests."""

    def __init__(self) -> None:
        call = [sys.executable, "-c", SERVER]
        self.process = subprocess.Popen(
            call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._read()

    def _read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def run(self, limit: float, *job: object) -> int:
        """Run tests; return pytest's exit code, or minus the signal that ended them."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        child = int(self._read())
        timer = threading.Timer(limit, os.killpg, (child, signal.SIGKILL))
        timer.start()
        code = int(self._read())
        timer.cancel()
        with suppress(ProcessLookupError):  # what the tests left running
            os.killpg(child, signal.SIGKILL)
        return code


class Bench:
    """Copies of the tree, one for each worker, in which mutants are tried."""

    def __init__(self, house: House, reach: Reach, copies: list[Path], cap: float):
        self.house, self.reach, self.cap, self.seconds = house, reach, cap, reach.seconds
        # A fixture that a file shares is paid by its first test, but here by any that runs alone.
        self.shared = {
            file: max(self.seconds.get(test, 0.0) for test in tests)
            for file, tests in reach.first.items()
        }
        self.free: queue.Queue[tuple[Path, Server]] = queue.Queue()
        self.sound: dict[tuple[str, ...], bool] = {}  # what passes by itself, without a mutant
        for tree in copies:
            copy_tree(house.root, tree)
            self.free.put((tree, Server()))

    def _choose(self, tests: set[str]) -> list[str]:
        """Return the cheapest up to the cap, at least one; file by file, cheapest file first."""
        taken: list[str] = []
        files = defaultdict[str, float](float)
        for test in sorted(tests, key=lambda t: (self._price([t]), t)):
            sound = self.sound.get((test,), True)
            if sound and (not taken or self._price([*taken, test]) <= self.cap):
                taken.append(test)
                files[file_of(test)] += self.seconds[test]
        return sorted(taken, key=lambda t: (files[file_of(t)], file_of(t), self.seconds[t], t))

    def _price(self, tests: list[str]) -> float:
        shared = sum(self.shared.get(file, 0.0) for file in {file_of(test) for test in tests})
        return shared + sum(self.seconds[test] for test in tests)

    def _pytest(
        self, at: tuple[Path, Server], tests: list[str], *flags: str
    ) -> tuple[int, str | None, str]:
        """Run tests until one fails; return the exit code, the last test begun, the output."""
        tree, server = at
        environment, output = emptied(tree), tree / ".scratch" / "output"
        limit = 90 + 3 * self._price(tests)
        code = server.run(limit, str(tree), environment, str(output), tests, flags)
        text, last = output.read_text("utf-8", errors="replace"), None
        for line in text.splitlines():
            last = max((t for t in tests if line.startswith(t)), key=len, default=last)
        return code, last, text

    def _is_sound(self, at: tuple[Path, Server], tests: list[str], *flags: str) -> bool:
        key = (*tests, *flags)
        if key not in self.sound:
            self.sound[key] = self._pytest(at, tests, *flags)[0] == PASSED
        return self.sound[key]

    def judge(self, mutant: dict[str, Any], first: str | None) -> dict[str, Any]:
        """Return what became of a mutant; `first` is a test that may well kill it."""
        result = {name: mutant[name] for name in ("module", "function", "operator")}
        site = self.house.find(mutant)
        if site is None:
            return {**result, "outcome": "gone"}
        covering = self.reach.covering(mutant["id"], site)
        tests = self._choose(covering)
        result |= {"covering": len(covering), "left_out": len(covering) - len(tests)}
        if first and self.sound.get((first,), True):
            tests = [first, *(test for test in tests if test != first)]
        at, start = self.free.get(), time.monotonic()
        try:
            result |= self._outcome(at, site, tests)
        finally:
            self.free.put(at)
        return {**result, "seconds": round(time.monotonic() - start, 1)}

    def _outcome(self, at: tuple[Path, Server], site: Site, tests: list[str]) -> dict[str, Any]:
        code = NO_TESTS
        while tests:
            with mutation(at[0] / self.house.files[site.module], site):
                code, last, output = self._pytest(at, tests)
            if code in (PASSED, NO_TESTS):
                break
            if self._is_sound(at, [last]) if last else self._is_sound(at, tests, "--co"):
                return {"outcome": "timeout" if code == TIMED_OUT else "killed", "by": last}
            if not last:
                return {"outcome": "error", "output": output[-2000:]}
            tests = [test for test in tests if test != last]  # it fails without the mutant too
        return {"outcome": "survived", "run": len(tests) if code == PASSED else 0}


def copy_tree(root: Path, tree: Path) -> None:
    """Copy what is tested, and see to it that Python takes the packages from there."""
    shutil.copytree(root, tree, ignore=shutil.ignore_patterns(*LEFT_BEHIND))
    files = ", ".join(f"{name}.__file__" for name in PACKAGES)
    ask = [sys.executable, "-c", f"import {', '.join(PACKAGES)}; print({files})"]
    found = subprocess.check_output(
        ask, cwd=tree, env={**os.environ, **emptied(tree)}, text=True
    ).split()
    if not all(Path(file).is_relative_to(tree) for file in found):
        raise SystemExit(f"the packages come from {found}, not from {tree}")


def emptied(tree: Path) -> dict[str, str]:
    """Take away what an earlier run computed; return the environment of the next."""
    shutil.rmtree(tree / ".scratch", ignore_errors=True)
    (tree / ".scratch" / "tmp").mkdir(parents=True)
    own = {"SCIML_CACHE": "cache", "SCIML_RESULTS": "results", "TMPDIR": "tmp"}
    own |= {"HYPOTHESIS_STORAGE_DIRECTORY": "hypothesis"}
    rooms = {name: str(tree / ".scratch" / folder) for name, folder in own.items()}
    return {**rooms, "PYTHONPATH": str(tree), "MPLBACKEND": "Agg"}


def write(path: Path, content: object) -> None:
    """Write a JSON file so that a reader finds the old one or the new one."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    new.replace(path)


def record(options: argparse.Namespace) -> None:
    """Draw mutants and write them down."""
    write(options.out, House(options.root).draw(options.count, options.seed))


def reach(options: argparse.Namespace) -> None:
    """Run all tests once and note which come by at which mutant."""
    house, options.out = House(options.root), options.out.resolve()
    options.out.mkdir(parents=True)
    places: defaultdict[str, list[tuple[int, Site]]] = defaultdict(list)
    for mutant in json.loads(options.mutants.read_text()):
        site = house.find(mutant)
        if site and not site.early:
            places[site.module].append((int(mutant["id"]), site))
    with tempfile.TemporaryDirectory(prefix="reach-") as folder:
        tree = Path(folder).resolve() / "tree"
        copy_tree(house.root, tree)
        (tree / "_probe.py").write_text(PROBE.format(path=str(options.out / "reached.txt")))
        for module, some in places.items():
            path = tree / house.files[module]
            path.write_bytes(probed(path.read_bytes(), some))
        call = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadfile", "-q"]
        call += [f"--junitxml={options.out / 'junit.xml'}", *options.tests]
        subprocess.call(call, cwd=tree, env={**os.environ, **emptied(tree)})


def run(options: argparse.Namespace) -> None:
    """Try the mutants that have no result yet."""
    results = json.loads(options.out.read_text()) if options.out.exists() else {}
    done = {name for name, result in results.items() if result["outcome"] != "error"}
    mutants = [m for m in json.loads(options.mutants.read_text()) if m["id"] not in done]
    mutants = [m for m in mutants if not options.ids or m["id"] in options.ids]
    hints = json.loads(options.hints.read_text()) if options.hints else {}
    house, reached = House(options.root), Reach(options.reach, options.root)
    named = {test.split("::", 1)[1]: test for test in sorted(reached.seconds)}
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies = [Path(folder).resolve() / str(i) for i in range(options.workers)]
        bench = Bench(house, reached, copies, options.cap_s)
        pool = ThreadPoolExecutor(options.workers)
        try:
            jobs = {}
            for mutant in mutants:
                killer = hints.get(mutant["id"], {}).get("by") or "::"
                jobs[pool.submit(bench.judge, mutant, named.get(killer.split("::", 1)[1]))] = mutant
            for job in as_completed(jobs):
                name = jobs[job]["id"]
                results[name] = job.result()
                write(options.out, dict(sorted(results.items())))
                sys.stdout.write(f"{name} {results[name]['outcome']} {jobs[job]['function']}\n")
        finally:
            pool.shutdown(cancel_futures=True)


def compare(options: argparse.Namespace) -> None:
    """Print both kill rates and what is no longer killed."""
    before, after = (json.loads(path.read_text()) for path in (options.before, options.after))
    killed = ("killed", "timeout")
    for package in (*PACKAGES, ""):
        for title, results in (("before", before), ("after", after)):
            inside = [r["outcome"] for r in results.values() if r["module"].startswith(package)]
            count = sum(outcome in killed for outcome in inside)
            judged = count + inside.count("survived")
            rate = f"{count} of {judged} killed, {100 * count / max(judged, 1):.1f} %"
            sys.stdout.write(f"{package or 'all':<6}{title:<7}{rate}; {len(inside)} tried\n")
    for name, new in after.items():
        old = before.get(name, {"outcome": "not tried"})["outcome"]
        lost = new["outcome"] == "survived" and old in killed
        if lost or new["outcome"] in ("gone", "error"):
            place = f"{new['module']} {new['function']} {new['operator']}"
            sys.stdout.write(f"{name} {old}, now {new['outcome']}: {place}\n")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Mutants of the packages: record, run, compare.")
    commands = parser.add_subparsers(required=True)
    for work in (record, reach, run, compare):
        command = commands.add_parser(work.__name__, help=work.__doc__)
        command.set_defaults(work=work)
        if work is compare:
            command.add_argument("before", type=Path)
            command.add_argument("after", type=Path)
            continue
        command.add_argument("--root", type=Path, default=Path())
        command.add_argument("--out", type=Path, required=True)
        if work is record:
            command.add_argument("--count", type=int, default=300)
            command.add_argument("--seed", type=int, default=0)
            continue
        command.add_argument("--mutants", type=Path, default=MUTANTS)
        if work is reach:
            command.add_argument("tests", nargs="+", help="what pytest is to run")
            continue
        command.add_argument("--reach", type=Path, required=True, help="a folder of `reach`")
        command.add_argument("--workers", type=int, default=1)
        command.add_argument("--ids", nargs="+", default=[], help="only these mutants")
        command.add_argument("--cap-s", type=float, default=120, help="seconds of tests per mutant")
        command.add_argument("--hints", type=Path, help="earlier results: their killers go first")
    options = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a log is read early
    options.work(options)


if __name__ == "__main__":
    main()
