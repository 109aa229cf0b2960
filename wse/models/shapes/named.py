"""Models by name, from the YAML file beside this one, or from a user's own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any

from wse import _document
from wse.models.shapes.convolution import resnet50, retinanet, unet
from wse.models.shapes.perceptron import perceptron
from wse.models.shapes.transformer import Transformer, dit, transformer
from wse.models.shapes.workload import Workload, dense

HERE = Path(__file__).with_name("catalogue.yaml")
KEYS = ("family", "name", "shape", "model", "parameters", "source")


@dataclass(frozen=True)
class Entry:
    """One model of the catalogue.

    Attributes:
        name: its name.
        family: which function builds it, a key of `FAMILIES`.
        shape: what that function takes.
        parameters: the published count; None where none was read.
        source: where shape and count were read.
    """

    name: str
    family: str
    shape: Mapping[str, Any]
    parameters: float | None
    source: str

    def build(self, **changes: Any) -> Workload:
        """The model as layers, with some of its shape changed.

        Raises:
            ValueError: an unknown key, or a value that the model does not take.
        """
        shape = {**self.shape, **changes}
        _document.check_keys(shape, known_keys(self.family), f"shape of {self.name}")
        make = FAMILIES[self.family]
        named = {} if make is dense else {"name": self.name}
        try:
            return make(**named, **shape)
        except TypeError as error:
            raise ValueError(
                f"shape of {self.name} does not hold what {self.family} needs: {error}"
            ) from error


def _transformer(name: str, **shape: Any) -> Workload:
    return transformer(name, Transformer(**shape))


FAMILIES: dict[str, Callable[..., Workload]] = {
    "transformer": _transformer,
    "perceptron": perceptron,
    "dense": dense,
    "dit": dit,
    "unet": unet,
    "resnet50": resnet50,
    "retinanet": retinanet,
}


def known_keys(family: str) -> list[str]:
    """What the shape of a family may hold.

    >>> known_keys("perceptron")
    ['sizes']
    """
    if family == "transformer":
        return [field.name for field in fields(Transformer)]
    return [name for name in signature(FAMILIES[family]).parameters if name != "name"]


@cache
def entries() -> dict[str, Entry]:
    """Every model of the catalogue by name."""
    return {name: _entry(name, found) for name, found in _document.read(HERE).items()}


def get(name: str, **changes: Any) -> Workload:
    """A model by name, with some of its shape changed.

    Args:
        name: as in `entries()`; case, hyphens and underscores do not matter.
        **changes: of its shape, as `max_sequence_length=10_240` or `size=(1024, 1024)`.

    Raises:
        ValueError: an unknown name or key, or a shape that does not fit together.

    >>> get("gpt-j-6b").parameters
    6050882784
    """
    return entry(name).build(**changes)


def entry(name: str) -> Entry:
    """What is known of a model, by name or from a YAML file as of `read`.

    Raises:
        ValueError: an unknown name, or what `read` refuses.
    """
    known = {_plain(key): key for key in entries()}
    if _plain(name) in known:
        return entries()[known[_plain(name)]]
    if Path(name).suffix in (".yaml", ".yml"):
        return _entry(Path(name).stem, _document.read(name))
    near = _document.nearest(_plain(name), known)
    for plain, proper in known.items():
        near = near.replace(f"'{plain}'", f"'{proper}'")
    raise ValueError(f"model is {_document.short(name)}, which is not in the catalogue: {near}")


def read(path: Path | str, **changes: Any) -> Workload:
    """A model from a YAML file with `family` and `shape`, or with the Model Zoo's `model`.

    Args:
        path: the file.
        **changes: of its shape.

    Raises:
        ValueError: what `wse._document.read` refuses, an unknown key, or a shape that does not fit.
    """
    return _entry(Path(path).stem, _document.read(path)).build(**changes)


def _entry(name: str, found: Any) -> Entry:
    given = _document.mapping(found, name)
    _document.check_keys(given, KEYS, name)
    family = str(given.get("family", "transformer"))
    if family not in FAMILIES:
        raise ValueError(
            f"family of {name} is {_document.short(family)}: {_document.nearest(family, FAMILIES)}"
        )
    shape = _document.mapping(given.get("shape", given.get("model", {})), f"shape of {name}")
    count = given.get("parameters")
    return Entry(
        str(given.get("name", name)),
        family,
        shape,
        None if count is None else float(_document.number(count, "parameters", "count")),
        str(given.get("source", name)),
    )


def _plain(name: str) -> str:
    # Points stay: 1.3B is not 13B.
    return "".join(letter for letter in name.lower() if letter.isalnum() or letter == ".")
