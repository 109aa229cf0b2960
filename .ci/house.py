"""The plan of the two packages in figures, and what in it breaks a law of docs/architecture.md.

    python .ci/house.py           # files per folder, floors, circles, twins, public names, lines
    python .ci/house.py --time    # and the minutes of `make test`

Imports inside functions and for types count: they tie two files as fast as any other.
"""

import ast
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import combinations
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("sciml", "wse")
MODULES_PER_FOLDER = 16
FLOORS = 8
WITH_VALUE = 0.95  # of the errors
# Names that users had before a room was given its present one: thin files over it.
PUBLIC_NAMES = {"wse.workload", "wse.workloads", "wse.zoo", "wse.support", "sciml.estimator"}
ENDINGS = ("s", "es", "d", "ed", "ing", "r", "er", "or", "al", "ion", "ive", "ment")

Graph = dict[str, set[str]]


def sources(root: Path = ROOT) -> dict[str, str]:
    """Return the text of every module by its dotted name."""
    return {
        ".".join(path.relative_to(root).with_suffix("").parts): path.read_text(encoding="utf-8")
        for package in PACKAGES
        for path in sorted((root / package).rglob("*.py"))
    }


def imports(source: str, modules: Iterable[str]) -> set[str]:
    """Return those of `modules` that a file imports, early or late, in earnest or for a type."""
    known, found = set(modules), set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found |= {alias.name for alias in names}
            case ast.ImportFrom(module=str(base), names=names):
                below = {f"{base}.{alias.name}" for alias in names}
                found |= {name if is_in(name, known) else base for name in below}
    return {f"{name}.__init__" if f"{name}.__init__" in known else name for name in found} & known


def is_in(name: str, known: set[str]) -> bool:
    """Whether a dotted name is a module or a package of `known`."""
    return name in known or f"{name}.__init__" in known


def graph_of(texts: Mapping[str, str]) -> Graph:
    """Return what each module imports of the others.

    A package's `__init__` that hands names on is no tie between what asks for them and its rooms.
    """
    return {name: imports(text, texts) - {name} for name, text in texts.items()}


def circle(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """Return one circle of a graph, or nothing."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def rooms(graph: Graph, folder: str) -> Graph:
    """Return the ties between what lies directly in a folder, files and folders alike."""
    depth = folder.count(".") + 1

    def child(name: str) -> str:
        return name.split(".")[depth] if name.startswith(f"{folder}.") else ""

    found: Graph = {}
    for name, used in graph.items():
        if (room := child(name)) and room != "__init__":
            ties = {child(other) for other in used} - {"", "__init__", room}
            found.setdefault(room, set()).update(ties)
    return found


def levels(ties: Graph) -> dict[str, int]:
    """Return the floor of each room: one above the highest that it stands on."""
    height: dict[str, int] = {}
    for room in TopologicalSorter(ties).static_order():
        height[room] = 1 + max((height[below] for below in ties.get(room, ())), default=0)
    return height


def floors(ties: Graph) -> int:
    """Return the length of the longest chain of rooms that stand on one another."""
    return max(levels(ties).values(), default=0)


def folders(texts: Iterable[str]) -> dict[str, list[str]]:
    """Return the modules of each folder, without `__init__`."""
    found: dict[str, list[str]] = {}
    for name in texts:
        folder, _, module = name.rpartition(".")
        found.setdefault(folder, [])
        if module != "__init__":
            found[folder].append(module)
    return found


def twins(texts: Iterable[str]) -> list[tuple[str, str]]:
    """Return pairs of modules of one package whose names differ by an ending."""
    names = [name for name in texts if not name.endswith("__init__") and name not in PUBLIC_NAMES]
    return [
        (a, b)
        for a, b in combinations(names, 2)
        if a.split(".")[0] == b.split(".")[0]
        and differ_by_an_ending(a.rpartition(".")[2], b.rpartition(".")[2])
    ]


def differ_by_an_ending(a: str, b: str) -> bool:
    """Whether two names have one stem: `workload` and `workloads`, `traced` and `tracing`."""
    return a != b and bool(stems(a) & stems(b))


def stems(name: str) -> set[str]:
    """Return a name as it is and without each ending, a silent e left out."""
    cut = {name.removesuffix(end) for end in ENDINGS if len(name) - len(end) >= 3}
    return {stem.removesuffix("e") for stem in cut | {name}}


def public_names(texts: Mapping[str, str]) -> dict[str, int]:
    """Return how many names the `__all__` of each package and room offers."""
    found = {}
    for name, text in texts.items():
        for node in ast.parse(text).body:
            match node:
                case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List(elts=names)):
                    found[name.removesuffix(".__init__")] = len(names)
    return found


def raised(texts: Mapping[str, str]) -> Iterator[tuple[str, bool]]:
    """Yield the place of each error that is raised with a message, and whether that has a value.

    A value is what is put into an f-string, or made by a call or read from a name, which is looked
    up in its file. A message of fixed words counts as one without, whatever it says.
    """
    for name, text in texts.items():
        tree = ast.parse(text)
        made: dict[str, list[ast.expr]] = {}
        for node in ast.walk(tree):
            match node:
                case ast.Assign(targets=[ast.Name(id=str(target))], value=value):
                    made.setdefault(target, []).append(value)
        for node in ast.walk(tree):
            match node:
                case ast.Raise(exc=ast.Call(args=[_, *_] as args), lineno=line):
                    yield f"{name}:{line}", any(has_value(each, made) for each in args)


def has_value(message: ast.expr, made: Mapping[str, list[ast.expr]]) -> bool:
    """Whether a message says more than fixed words."""
    match message:
        case ast.Name(id=name) if name in made:
            return any(has_value(each, {}) for each in made[name])
        case ast.Constant():
            return False
        case ast.BinOp(left=left, right=right):
            return has_value(left, made) or has_value(right, made)
        case ast.JoinedStr(values=parts):
            return any(isinstance(each, ast.FormattedValue) for each in parts)
    return True


def faults(texts: Mapping[str, str]) -> Iterator[str]:
    """Yield what breaks a law: circles, too many floors, too full a folder, twins."""
    graph = graph_of(texts)
    if found := circle(graph):
        yield f"files import in a circle: {' -> '.join(found)}"
    for folder, modules in folders(texts).items():
        ties = rooms(graph, folder)
        if found := circle(ties):
            yield f"rooms of {folder} import in a circle: {' -> '.join(found)}"
        elif folder in PACKAGES and (height := floors(ties)) > FLOORS:
            yield f"{folder} has {height} floors of imports; at most {FLOORS}"
        if len(modules) > MODULES_PER_FOLDER:
            yield f"{folder} has {len(modules)} modules; at most {MODULES_PER_FOLDER}"
    for a, b in twins(texts):
        yield f"{a} and {b} differ by an ending only"
    mute = [place for place, told in raised(texts) if not told]
    if mute and len(mute) > (1 - WITH_VALUE) * sum(1 for _ in raised(texts)):
        yield f"{len(mute)} errors carry no value, as {mute[0]}; at most {1 - WITH_VALUE:.0%} may"


def report(texts: Mapping[str, str]) -> Iterator[str]:
    """Yield the figures, line by line."""
    graph, names = graph_of(texts), public_names(texts)
    for package in PACKAGES:
        inside = {name: text for name, text in texts.items() if name.startswith(f"{package}.")}
        lines = sum(text.count("\n") for text in inside.values())
        statements = sum(
            isinstance(node, ast.stmt)
            for text in inside.values()
            for node in ast.walk(ast.parse(text))
        )
        yield f"{package}: {len(inside)} files, {lines} lines, {statements} statements"
        ties = rooms(graph, package)
        yield f"  floors of imports: {floors(ties) if not circle(ties) else 'a circle'}"
        offered = {name: count for name, count in names.items() if name.startswith(package)}
        yield f"  public names: {offered.pop(package)}; rooms: {offered}"
        yield "  modules per folder:"
        for folder, modules in folders(inside).items():
            yield f"    {folder:<28}{len(modules):>3}  {' '.join(modules)}"
    errors = [told for _, told in raised(texts)]
    share = sum(errors) / len(errors)
    yield f"errors with a message: {len(errors)}, {100 * share:.1f} % of them with a value"
    found = list(faults(texts))
    yield f"circles, floors, full folders, twins: {len(found)}"
    yield from (f"  {fault}" for fault in found)


def main(arguments: list[str]) -> int:
    """Print the figures, with `--time` the minutes of the tests; return 1 if a law is broken."""
    texts = sources()
    sys.stdout.write("\n".join(report(texts)) + "\n")
    if "--time" in arguments:
        start = time.monotonic()
        code = subprocess.run(["make", "test"], cwd=ROOT).returncode
        sys.stdout.write(f"make test: {(time.monotonic() - start) / 60:.1f} minutes, exit {code}\n")
    return bool(list(faults(texts)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
