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
from sciml.wind.cf.level import Level
from wse._document import nearest, read, typed
from wse._files import as_path

RECIPE = Recipe(batch=16, learning_rate=2e-3, weight_decay=1e-4)
SEED = Field(ge=0, lt=2**32, description="an integer from 0 to 4294967295: pick another seed")


@dataclass(frozen=True)
class Settings:
    """What `sciml wind train` does.

    Args:
        sources: files and how they are divided.
        model: the net's configuration; `wind`, `statics` and `beside` follow from the next three.
        target: "speed"; "components", each a field of its own; "vector", both together.
        statics: names of what is known of the ground.
        beside: names of what the net is shown beside the coarse wind, as of `sciml.wind.open`.
        recipe: batch, step size, decay.
        patches: what is cut from the fields.
        epochs: at most so many.
        seed: of weights and patches.
        out: the file of the trained net.
        correct: whether the mean and spread of a coarse model, where sources have one, are
            corrected to those of the fine training wind.
    """

    sources: list[Source]
    model: Refinement
    target: str = "speed"
    statics: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    recipe: Recipe = RECIPE
    patches: Patches = field(default_factory=Patches)
    epochs: int = 60
    seed: int = 0
    out: str = "net.wind"
    correct: bool = True


@dataclass(frozen=True)
class Document:
    """The file as it is written: names and values as of `Settings`."""

    data: tuple[Source, ...]
    model: dict[str, Any]
    target: Literal["speed", "components", "vector"] = "speed"
    statics: tuple[str, ...] | None = ()
    beside: tuple[str, ...] | None = ()
    recipe: dict[str, Any] | None = None
    patches: Patches | None = None
    epochs: Annotated[int, Field(ge=1, description="1 or more: write 60")] = Settings.epochs
    seed: Annotated[int, SEED] = Settings.seed
    out: str = Settings.out
    correct: bool = Settings.correct


def settings(path: Path | str) -> Settings:
    """Read a YAML file, whose relative paths are relative to it."""
    path = as_path("path", path, "pass wind.yaml")
    said = typed.made(Document, read(path), place=str(path))
    if not said.data:
        raise ValueError(f"data of {path} is empty; it must be a list of files: add '- path: …'")
    statics, beside = said.statics or (), said.beside or ()
    Level(beside=beside)  # which refuses unknown names
    wind = 2 if said.target == "vector" else 1
    paired = any(source.coarse is not None for source in said.data)
    # A coarse model's cells have other means than the truth's blocks.
    given = ({"conservative": False} if paired else {}) | said.model
    model = model_of(given, wind, len(statics), len(beside), str(path))
    patches = said.patches or Patches()
    patches.check_factor(model.factor)  # before large files are read
    return Settings(
        sources=[placed(source, path.parent) for source in said.data],
        model=model,
        target=said.target,
        statics=statics,
        beside=beside,
        recipe=typed.made(Recipe, vars(RECIPE) | (said.recipe or {}), "recipe", str(path)),
        patches=patches,
        epochs=said.epochs,
        seed=said.seed,
        out=said.out,
        correct=said.correct,
    )


def model_of(given: dict[str, Any], wind: int, statics: int, beside: int, place: str) -> Any:
    """Return the configuration of a net; `local` puts `LocallyScaled` around it."""
    own = {"name": "SuperResolution", "local": None} | given
    name, window = own.pop("name"), own.pop("local")
    choices = [known for known in REFINEMENTS if known != LocallyScaled.__name__]
    if name not in choices:
        raise ValueError(f"the model is {name!r}; {nearest(str(name), choices)}")
    told = {"wind": wind, "statics": statics, "beside": beside}
    if taken := {*told} & {*own}:
        says = "beside at the top says it" if taken == {"beside"} else "target and statics say it"
        raise ValueError(f"model of {place} has {', '.join(taken)}; {says}")
    net = typed.made(REFINEMENTS[name], own | told, "model", place)
    if window is None:
        return net
    return typed.made(LocallyScaled, {"net": net, "window": window}, "model.local", place)


def placed(source: Source, folder: Path) -> Source:
    """Return an entry of `data` with its paths relative to a folder."""

    def within(paths: str | list[str]) -> Any:
        listed = isinstance(paths, list)
        return [str(folder / one) for one in paths] if listed else str(folder / paths)

    coarse = source.coarse
    return replace(
        source,
        path=within(source.path),
        statics=str(folder / source.statics) if source.statics else None,
        coarse=coarse and replace(coarse, path=within(coarse.path)),
    )
