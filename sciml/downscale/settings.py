"""A training of a wind net as a YAML file says it."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from sciml.downscale.pool import Patches
from sciml.downscale.sources import Source
from sciml.models import REFINEMENTS, LocallyScaled
from sciml.models.wind.refinement import Refinement
from sciml.train.recipe import Recipe
from wse._document import nearest, read, typed

RECIPE = Recipe(batch=16, learning_rate=2e-3, weight_decay=1e-4)
SEED = Field(ge=0, lt=2**32, description="an integer from 0 to 4294967295: pick another seed")


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


@dataclass(frozen=True)
class Document:
    """The file as it is written: names and values as of `Settings`."""

    data: tuple[Source, ...]
    model: dict[str, Any]
    target: Literal["speed", "components", "vector"] = "speed"
    statics: tuple[str, ...] | None = ()
    recipe: dict[str, Any] | None = None
    patches: Patches | None = None
    epochs: Annotated[int, Field(ge=1, description="1 or more: write 60")] = Settings.epochs
    seed: Annotated[int, SEED] = Settings.seed
    out: str = Settings.out


def settings(path: Path | str) -> Settings:
    """Read a YAML file, whose relative paths are relative to it.

    Raises:
        ValueError: an unknown key (with the nearest known), a missing one, or a value that a
            configuration refuses.
    """
    path = Path(path)
    said = typed.made(Document, read(path), place=str(path))
    if not said.data:
        raise ValueError(f"data of {path} is empty; it must be a list of files: add '- path: …'")
    statics = said.statics or ()
    wind = 2 if said.target == "vector" else 1
    return Settings(
        sources=[placed(source, path.parent) for source in said.data],
        model=model_of(said.model, wind, len(statics), str(path)),
        target=said.target,
        statics=statics,
        recipe=typed.made(Recipe, vars(RECIPE) | (said.recipe or {}), "recipe", str(path)),
        patches=said.patches or Patches(),
        epochs=said.epochs,
        seed=said.seed,
        out=said.out,
    )


def model_of(given: dict[str, Any], wind: int, statics: int, place: str) -> Any:
    """Return the configuration of a net; `local` puts `LocallyScaled` around it.

    Raises:
        ValueError: an unknown net or an unknown value of it.
    """
    own = {"name": "SuperResolution", "local": None} | given
    name, window = own.pop("name"), own.pop("local")
    choices = [known for known in REFINEMENTS if known != LocallyScaled.__name__]
    if name not in choices:
        raise ValueError(f"the model is {name!r}; {nearest(str(name), choices)}")
    if taken := {"wind", "statics"} & {*own}:
        raise ValueError(f"model of {place} has {', '.join(taken)}; target and statics say it")
    net = typed.made(REFINEMENTS[name], own | {"wind": wind, "statics": statics}, "model", place)
    if window is None:
        return net
    return typed.made(LocallyScaled, {"net": net, "window": window}, "model.local", place)


def placed(source: Source, folder: Path) -> Source:
    """Return an entry of `data` with its paths relative to a folder."""
    paths = source.path
    return replace(
        source,
        path=[str(folder / one) for one in paths]
        if isinstance(paths, list)
        else str(folder / paths),
        statics=str(folder / source.statics) if source.statics else None,
    )
