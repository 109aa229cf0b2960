"""Models by name, from the YAML file beside this one, or from a user's own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from wse import _document
from wse._files import as_path
from wse.models.shapes.convolution import resnet50, retinanet
from wse.models.shapes.foreign import check_kind
from wse.models.shapes.perceptron import perceptron
from wse.models.shapes.segmentation import unet
from wse.models.shapes.transformer import Transformer, transformer
from wse.models.shapes.vision import dit
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

    >>> import wse
    >>> known = wse.workloads.entries()["GPT-J-6B"]
    >>> known.family, known.build().name
    ('transformer', 'GPT-J-6B')
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
        from wse._document import typed

        make = FAMILIES[self.family]
        made = typed.made(make, {**self.shape, **changes}, "shape", self.name)
        if isinstance(made, Transformer):
            return transformer(self.name, made)
        return made if make is dense else replace(made, name=self.name)


FAMILIES: dict[str, Callable[..., Workload | Transformer]] = {
    "transformer": Transformer,
    "perceptron": perceptron,
    "dense": dense,
    "dit": dit,
    "unet": unet,
    "resnet50": resnet50,
    "retinanet": retinanet,
}


@cache
def entries() -> dict[str, Entry]:
    """Every model of the catalogue by name.

    >>> from wse import workloads
    >>> len(workloads.entries()) > 30
    True
    """
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
    found = entry(name)
    usual = not changes and entries().get(found.name) is found
    return _as_listed(found.name) if usual else found.build(**changes)


@cache
def _as_listed(name: str) -> Workload:
    # Nothing in it can be changed, so that all who ask share one.
    return entries()[name].build()


def entry(name: str) -> Entry:
    """What is known of a model, by name or from a YAML file as of `read`.

    Raises:
        TypeError: a name that is no text.
        ValueError: an unknown name, or what `read` refuses.

    >>> from wse import workloads
    >>> workloads.entry("ResNet-50").name
    'ResNet-50'
    """
    given: Any = name
    if not isinstance(given, str | Path):
        raise TypeError(f"name is {given!r:.80}; it must be text: pass a name, as 'GPT-J-6B'")
    name, known = str(given), {_plain(key): key for key in entries()}
    if _plain(name) in known:
        return entries()[known[_plain(name)]]
    if Path(name).suffix in (".yaml", ".yml"):
        return _entry(Path(name).stem, _document.read(name))
    check_kind(name)
    if Path(name).suffix == ".json" or Path(name).is_dir():
        raise ValueError(
            f"model is {_document.short(name)}, which is no name and no YAML file: pass what "
            f"wse.read_model(path).workload gives; of a command, --params {_document.short(name)}"
        )
    near = _document.nearest(_plain(name), known)
    for plain, proper in known.items():
        near = near.replace(f"'{plain}'", f"'{proper}'")
    if near.startswith("known"):
        near = f"known are {', '.join(known.values())}"
    raise ValueError(f"model is {_document.short(name)}, which is not in the catalogue: {near}")


def read(path: Path | str, **changes: Any) -> Workload:
    """A model from a YAML file with `family` and `shape`, or with the Model Zoo's `model`.

    Args:
        path: the file.
        **changes: of its shape.

    Raises:
        ValueError: what `wse._document.read` refuses, an unknown key, or a shape that does not fit.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from wse.models import shapes
    >>> path = Path(tempfile.mkdtemp(), "net.yaml")
    >>> _ = path.write_text("{family: dense, shape: {inputs: 3, width: 8, depth: 2, outputs: 2}}")
    >>> shapes.read(path).parameters, shapes.read(path, width=9).parameters
    (122, 146)
    """
    path = as_path("path", path, "pass model.yaml")
    return _entry(path.stem, _document.read(path)).build(**changes)


def _entry(name: str, found: Any) -> Entry:
    from wse._document import typed

    given = _document.mapping(found, name)
    _document.check_keys(given, KEYS, name)
    usual = {"name": name, "family": "transformer", "source": name, "parameters": None}
    said = {**usual, "shape": given.get("model", {}), **given}
    said.pop("model", None)  # the Model Zoo's word for the shape
    made = typed.made(Entry, said, place=name)
    if made.family not in FAMILIES:
        near = _document.nearest(made.family, FAMILIES)
        raise ValueError(f"family of {name} is {_document.short(made.family)}: {near}")
    return made


def _plain(name: str) -> str:
    # Points stay: 1.3B is not 13B.
    return "".join(letter for letter in name.lower() if letter.isalnum() or letter == ".")
