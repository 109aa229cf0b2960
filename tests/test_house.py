"""The plan of the packages keeps its laws; rooms show public names; names in words exist."""

import importlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = {
    "sciml": (
        "baselines diagnose downscale estimator figure inverse models notebook ode reference "
        "studies train wind"
    ),
    "wse": (
        "checks computer job layout mesh models.shapes precision sparsity support workload "
        "workloads zoo"
    ),
}


@pytest.fixture(scope="module")
def house() -> ModuleType:
    spec = importlib.util.spec_from_file_location("house", ROOT / ".ci" / "house.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_plan_keeps_its_laws(house: ModuleType):
    assert list(house.faults(house.sources())) == []


@pytest.mark.slow
def test_the_drawing_in_the_docs_is_of_this_code():
    folder = ROOT / ".ci"
    done = subprocess.run(
        [sys.executable, folder / "draw_house.py", "/dev/stdout"], capture_output=True, text=True
    )
    assert done.stdout == (ROOT / "docs" / "figures" / "plan.svg").read_text()


def planted(**files: str) -> dict[str, str]:
    """Return a package of the given files, `a__b` for a/b, over an empty `__init__`."""
    named = {f"wse.{name.replace('__', '.')}": text for name, text in files.items()}
    folders = {name.rpartition(".")[0] for name in named} | {"wse"}
    return {f"{folder}.__init__": "" for folder in folders} | named


@pytest.mark.parametrize(
    "line",
    [
        "import wse.c",
        "from wse import c",
        "from wse.c import x",
        "def f():\n    import wse.c",
        "if TYPE_CHECKING:\n    from wse.c import X",
    ],
)
def test_a_planted_circle_is_found(house: ModuleType, line: str):
    found = " ".join(house.faults(planted(b=line, c="from wse.b import y")))
    assert "files import in a circle" in found


def test_a_planted_circle_of_rooms_is_found(house: ModuleType):
    files = planted(
        a__one="import wse.b.two", b__two="", b__three="from wse.a.four import f", a__four=""
    )
    assert "rooms of wse import in a circle" in " ".join(house.faults(files))


def test_too_many_floors_are_found(house: ModuleType):
    chain = {f"m{i}": f"import wse.m{i + 1}" for i in range(9)} | {"m9": ""}
    assert "wse has 10 floors" in " ".join(house.faults(planted(**chain)))


def test_a_folder_that_is_too_full_is_found(house: ModuleType):
    files = planted(**{f"room__{chr(97 + i) * 3}": "" for i in range(17)})
    assert "wse.room has 17 modules" in " ".join(house.faults(files))


@pytest.mark.parametrize("names", [("stream", "streaming"), ("traced", "tracing"), ("key", "keys")])
def test_planted_twins_are_found(house: ModuleType, names: tuple[str, str]):
    files = planted(**dict.fromkeys(names, ""))
    assert "differ by an ending only" in " ".join(house.faults(files))


@pytest.mark.parametrize(
    "name",
    ["sciml", "wse", *(f"{p}.{room}" for p, rooms in ROOMS.items() for room in rooms.split())],
)
def test_a_room_shows_its_public_names_alone(name: str):
    room = importlib.import_module(name)
    assert {*dir(room)} - {"__version__"} == {*room.__all__}
    assert all(getattr(room, public) is not None for public in room.__all__)


WORDS = [
    *(path for package in ("sciml", "wse") for path in sorted((ROOT / package).rglob("*.py"))),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "lab").glob("*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
]


def found(name: str) -> bool:
    """Whether a dotted name leads to something: a module, what it holds, a field of a class."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            if part in getattr(thing, "__dataclass_fields__", ()):
                return True
            if not (thing := getattr(thing, part, None)):
                return False
        return True
    return False


def test_names_in_docs_and_docstrings_exist():
    names = re.compile(r"[`#]((?:sciml|wse)(?:\.[A-Za-z_]\w*)+)")
    written = {(path.name, name) for path in WORDS for name in names.findall(path.read_text())}
    ours = {one for one in written if not one[1].endswith((".md", ".whl"))}
    assert len(ours) > 100
    assert [one for one in sorted(ours) if not found(one[1])] == []


def test_files_named_in_docs_exist():
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "lab").glob("*.md")]
    pages += [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    paths = re.compile(r"`((?:tests|validation|benchmarks|sciml|wse|\.ci)/[\w./]*\w)/?`")
    named = {(page.name, path) for page in pages for path in paths.findall(page.read_text())}
    assert len(named) > 30
    assert [one for one in sorted(named) if not (ROOT / one[1]).exists()] == []


def test_errors_without_a_value_are_found(house: ModuleType):
    mute = 'text = "wrong"\ndef f(x):\n    raise ValueError(text)\n'
    told = 'def f(x):\n    said = f"x is {x}"\n    raise ValueError(said)\n'
    assert "errors carry no value, as wse.a:3" in " ".join(house.faults(planted(a=mute)))
    assert not any("carry no value" in fault for fault in house.faults(planted(a=told)))
