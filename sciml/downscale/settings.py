"""A training of a wind net as a YAML file says it."""

import reprlib
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_type_hints

from sciml.downscale.pool import Patches
from sciml.downscale.sources import TARGETS, Source
from sciml.models import REFINEMENTS, LocallyScaled
from sciml.models.wind.refinement import Refinement
from sciml.train.recipe import Recipe
from wse._document import check_keys, mapping, nearest, read

TYPES: dict[Any, tuple[Any, str]] = {
    int: (int, "a whole number"),
    float: (int | float, "a number"),
    bool: (bool, "true or false"),
    str: (str, "a word"),
}
RECIPE = Recipe(batch=16, learning_rate=2e-3, weight_decay=1e-4)


@dataclass(frozen=True)
class Settings:
    """What `sciml wind train` does.

    Args:
        sources: files and how they are divided.
        model: the net's configuration; `wind` and `statics` follow from target and statics.
        target: "speed"; "components", each a field of its own; "vector", both together.
        statics: names of what is known of the ground.
        recipe: batch, step size, decay.
        patches: what is cut from the fields.
        epochs: at most so many.
        seed: of weights and patches.
        out: the file of the trained net.
    """

    sources: list[Source]
    model: Refinement
    target: str = "speed"
    statics: tuple[str, ...] = ()
    recipe: Recipe = RECIPE
    patches: Patches = field(default_factory=Patches)
    epochs: int = 60
    seed: int = 0
    out: str = "net.wind"


def settings(path: Path | str) -> Settings:
    """Read a YAML file, whose relative paths are relative to it.

    Raises:
        ValueError: an unknown key (with the nearest known), a missing one, or a value that a
            configuration refuses.
    """
    path = Path(path)
    given = read(path)
    known = ("data", "model", "target", "statics", "recipe", "patches", "epochs", "seed", "out")
    check_keys(given, known, str(path))
    for name in ("data", "model"):
        if name not in given:
            raise ValueError(f"{path} has no {name!r}; it must say what to learn, and by which net")
    target = given.get("target", "speed")
    if not isinstance(target, str) or target not in TARGETS:
        raise ValueError(f"target is {reprlib.repr(target)}; {nearest(str(target)[:80], TARGETS)}")
    statics = given.get("statics") or ()
    if not isinstance(statics, list | tuple) or not all(isinstance(x, str) for x in statics):
        raise ValueError(f"statics is {reprlib.repr(statics)}; it must be a list of names")
    model = model_of(mapping(given["model"], "model"), 2 if target == "vector" else 1, len(statics))
    entries = given["data"]
    if not isinstance(entries, list) or not entries:
        raise ValueError(f"data is {entries!r}; it must be a list of files, each with '- path: …'")
    plain = {k: given[k] for k in ("epochs", "seed", "out") if k in given}
    for name in ("epochs", "seed"):
        if name in plain and (isinstance(plain[name], bool) or not isinstance(plain[name], int)):
            raise ValueError(f"{name} is {reprlib.repr(plain[name])}; it must be a whole number")
    return Settings(
        sources=[source_of(entry, path.parent) for entry in entries],
        model=model,
        target=target,
        statics=tuple(statics),
        recipe=made(Recipe, mapping(given.get("recipe") or {}, "recipe"), RECIPE),
        patches=made(Patches, mapping(given.get("patches") or {}, "patches"), Patches()),
        **plain,
    )


def made(kind: Any, given: dict[str, Any], default: Any) -> Any:
    """Return a configuration with some values in place of those of `default`."""
    names = [one.name for one in fields(kind)]
    check_keys(given, names, kind.__name__.lower())
    return kind(**{name: getattr(default, name) for name in names} | typed(kind, given))


def typed(kind: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a configuration, each of the type that its field has.

    Raises:
        ValueError: one is of another type.
    """
    hints = get_type_hints(kind)
    return {name: as_type(value, hints[name], name) for name, value in given.items()}


def as_type(value: Any, kind: Any, name: str) -> Any:
    """Return a value of YAML as a plain type; what has a richer one is left to its configuration.

    Text such as 1e-3, which YAML does not read as a number, is one.
    """
    if kind not in TYPES:
        return value
    allowed, said = TYPES[kind]
    if isinstance(value, str) and kind is float:
        with suppress(ValueError):
            return float(value)
    if not isinstance(value, allowed) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{name} is {reprlib.repr(value)}; it must be {said}")
    return value


def model_of(given: dict[str, Any], wind: int, statics: int) -> Any:
    """Return the configuration of a net; `local` puts `LocallyScaled` around it.

    Raises:
        ValueError: an unknown net or an unknown value of it.
    """
    own = dict(given)
    name = own.pop("name", "SuperResolution")
    window = own.pop("local", None)
    choices = [known for known in REFINEMENTS if known != LocallyScaled.__name__]
    if name not in choices:
        raise ValueError(f"the model is {name!r}; {nearest(str(name), choices)}")
    kind: Any = REFINEMENTS[name]
    names = [one.name for one in fields(kind) if one.name not in ("wind", "statics")]
    check_keys(own, [*names, "name", "local"], f"model {name}")
    try:
        net = kind(**typed(kind, own), wind=wind, statics=statics)
        return LocallyScaled(net, window) if window else net
    except TypeError as error:
        raise ValueError(f"the model {name} cannot be made of these values: {error}") from error


def source_of(given: Any, folder: Path) -> Source:
    """Return one entry of `data`."""
    entry = mapping(given, "an entry of data")
    check_keys(entry, [one.name for one in fields(Source)], "an entry of data")
    if "path" not in entry:
        raise ValueError(f"an entry of data is {entry}; it must have a path")

    def placed(name: str) -> str:
        return str(folder / name)

    where = entry["path"]
    paths = [placed(str(p)) for p in where] if isinstance(where, list) else placed(str(where))
    changed: dict[str, Any] = {"path": paths}
    if entry.get("statics"):
        changed["statics"] = placed(str(entry["statics"]))
    return Source(**(entry | changed))
