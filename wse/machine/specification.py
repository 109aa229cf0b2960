"""A user's own machine, from a YAML file: what it says, on top of a machine that is known.

All keys are optional::

    based_on: CS-2            # every number that is not given is that machine's
    name: mine
    clock_hz: 1.1e9           # a plain number is "assumed", with the file as its source
    host_bits_per_s: {value: 1.0e9, status: sourced, source: our network}
    systems: 4
    mode: streaming
    store: {name: shelf, capacity_bytes: 8.0e12}
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from wse import _document
from wse._files import as_path
from wse._numbers import short
from wse.machine import catalog, installation, machine, processors
from wse.machine.cluster import Cluster
from wse.machine.machine import Machine, Sourced

Part = TypeVar("Part")


@dataclass(frozen=True)
class Document:
    """What a file says beside the numbers of the machine; None: what is known of `based_on`.

    >>> from wse.machine.specification import Document
    >>> Document(name="mine", systems=4).based_on
    'CS-2'
    """

    based_on: str = "CS-2"
    systems: int | None = None
    mode: Literal["streaming", "pipelined"] | None = None
    store: dict[str, Any] | None = None
    tree: dict[str, Any] | None = None
    name: str | None = None
    wafer: str | None = None


def find(name: str) -> Cluster:
    """The cluster that a name or a file means.

    Args:
        name: "cs1", "CS-2", "cs3", "cg1" (case and hyphens do not matter), "4 x cs2", or a YAML
            file's path.

    Returns:
        One system; all 64 for CG-1; what the file says.

    Raises:
        ValueError: an unknown name, or what `read` refuses.

    >>> find("cs2").machine.name
    'CS-2'
    """
    return _meant(name, Path(), ())


def _meant(name: str, folder: Path, above: tuple[Path, ...]) -> Cluster:
    """The cluster that a name means, or a file of a folder, above which others build on it."""
    known = _known()
    count, one = processors.counted(name)
    if (key := _plain(one)) in known:
        return known[key] if count == 1 else replace(known[key], systems=count)
    if Path(name).suffix in (".yaml", ".yml") or (folder / name).is_file():
        return _read(folder / name, above)
    if processors.chosen(name):
        raise ValueError(
            f"machine is {name!r}, no wafer; wse.estimate and wse.compare take it: here pass 'cs2'"
        )
    others = [one.name for one in processors.PROCESSORS]
    names = [cluster.machine.name for cluster in known.values()][:3]
    near = _document.nearest(key, [*known, *(_plain(other) for other in others)])
    raise ValueError(
        f"machine is {name!r}; known are {', '.join(names)} and CG-1, or a file, and of "
        f"wse.estimate and wse.compare {', '.join(others)}: {near}"
    )


def chosen(machine: Any) -> Cluster:
    """The cluster that an argument `machine` means.

    Args:
        machine: a cluster; a machine, of which it is one; a name or a file, as `find` takes them;
            None: one CS-2.

    Raises:
        TypeError: something else, such as `wse.CS2` without brackets.
        ValueError: what `find` refuses.

    >>> from wse import catalog
    >>> from wse.machine.specification import chosen
    >>> chosen("2 x cs2").systems, chosen(catalog.CS3).machine.name
    (2, 'CS-3')
    """
    if isinstance(machine, Cluster):
        return machine
    if isinstance(machine, Machine):
        return Cluster(machine)
    if other := processors.chosen(machine):
        machine = other.machine.name  # which `find` refuses
    if isinstance(machine, str | Path | None):
        return find("cs2" if machine is None else str(machine))
    said = f"the function {machine.__name__}" if callable(machine) else short(machine)
    raise TypeError(f"machine is {said}; pass a cluster, as wse.CS2(systems=4), or a name: 'cs2'")


def read(path: Path | str) -> Cluster:
    """A cluster from a YAML file, checked as `wse.Machine` and `wse.Cluster` check.

    Args:
        path: the file; the module's words show one. The name of another file in `based_on` is
            looked for beside it.

    Returns:
        The cluster, frozen.

    Raises:
        ValueError: text that is not YAML, an unknown key (with the nearest known), text where a
            number belongs, a wrong unit, a number that is not positive.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import wse
    >>> path = Path(tempfile.mkdtemp(), "mine.yaml")
    >>> _ = path.write_text("{based_on: CS-2, name: mine, systems: 4}")
    >>> wse.specification.read(path).systems
    4
    """
    return _read(as_path("path", path, "pass machine.yaml"), ())


def _read(path: Path, above: tuple[Path, ...]) -> Cluster:
    from wse._document import typed

    if path.resolve() in above:
        raise ValueError(
            f"{path} is based on itself, by {above[-1].name}; say based_on: CS-2, or another name"
        )
    found, words = _document.read(path), [one.name for one in fields(Document)]
    _document.check_keys(found, (*words, *machine.UNITS), str(path))
    said = typed.made(
        Document, {name: found[name] for name in words if name in found}, place=str(path)
    )
    base = _meant(said.based_on, path.parent, (*above, path.resolve()))
    names = {name: given for name in ("name", "wafer") if (given := getattr(said, name))}
    made = replace(base.machine, **names, **_changes(found, machine.UNITS, str(path)))
    stores, trees = catalog.STORES[base.machine.wafer], catalog.TREES.get(base.machine.wafer)
    store = _part(said.store, "store", stores[0] if stores else None, str(path)) or base.store
    tree = _part(said.tree, "tree", trees, str(path))
    systems = base.systems if said.systems is None else said.systems
    return Cluster(made, systems, said.mode or base.mode, store=store, tree=tree)


def _part(given: Mapping[str, Any] | None, key: str, base: Part | None, path: str) -> Part | None:
    if given is None:
        return None
    if base is None:
        raise ValueError(
            f"{path} gives {key!r}, but weights are not streamed to that wafer: leave it out"
        )
    _document.check_keys(given, ("name", *machine.numbers(base)), f"{key} of {path}")
    changes = _changes(given, installation.UNITS, path)
    part: Any = base
    return replace(part, name=str(given.get("name", "mine")), **changes)


def _changes(given: Mapping[str, Any], units: Mapping[str, str], path: str) -> dict[str, Sourced]:
    names = [name for name in units if name in given]
    return {name: _number(given[name], name, units[name], path) for name in names}


def _number(value: Any, name: str, unit: str, path: str) -> Sourced:
    from wse._document import typed

    said = _document.mapping(value, name) if isinstance(value, dict) else {"value": value}
    if "value" in said:  # here, as its rule names the unit
        said = {**said, "value": _document.number(said["value"], name, unit)}
    assumed = {"unit": unit, "status": "assumed", "source": path}
    return typed.made(Sourced, {**assumed, **said}, name, path)


def _known() -> dict[str, Cluster]:
    systems = {_plain(one.name): Cluster(one) for one in catalog.MACHINES}
    site = catalog.CG1
    whole = Cluster(site.machine, int(site.systems.value), store=catalog.CG1_STORE)
    return {**systems, _plain(site.name): whole}


def _plain(name: str) -> str:
    return name.lower().replace("-", "")
