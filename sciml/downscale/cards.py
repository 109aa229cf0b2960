"""Trained nets to take away: by name, with a card that says what each is and what it is worth."""

import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from sciml.wind.read.registry import RemoteFile, registry_folder
from sciml.wind.read.retrieval import mirror_folder, mirrored
from wse import _document
from wse._files import as_path

NAME = re.compile(r"[a-z0-9_]+")
NEAR = 1.2  # assumed: by how much a spacing may differ from those that were learned from


@dataclass(frozen=True)
class Card:
    """What is said of a trained net that comes with the package.

    `data` names the sets of the registry that it learned from, `held_out` what its scores are of;
    `scores` are MSE skills over conservative bicubic, averaged over the symmetries, by data set.
    `spacing_m` is the least and the largest distance of the fine points that it learned from,
    `height_m` their height, `patch` how many were along the side of a patch.
    """

    name: str
    title: str
    file: RemoteFile
    refines: str
    factor: int
    data: str
    held_out: str
    licence: str
    credit: str
    recipe: str
    scores: dict[str, float]
    limits: str
    spacing_m: list[float]
    height_m: float
    patch: int

    def beyond(self, coarse: xr.Dataset, factor: int) -> list[str]:
        """Return what of coarse wind the net has not learned from, to be refined by `factor`."""
        said = []
        low, high = self.spacing_m
        fine = float(coarse.attrs.get("spacing_m", np.nan)) / factor
        if not np.isnan(fine) and not low / NEAR <= fine <= high * NEAR:
            said.append(
                f"fine points are {fine / 1000:.3g} km apart, those that it learned from "
                f"{low / 1000:g} to {high / 1000:g} km"
            )
        levels = {
            (name, field.attrs[name])
            for field in coarse.data_vars.values()
            for name in ("height_m", "pressure_hpa", "model_level")
            if name in field.attrs
        }
        if other := sorted(levels - {("height_m", self.height_m)}):
            at = ", ".join(f"{name} {value:g}" for name, value in other)
            said.append(f"the wind is of {at}, that of its data of height_m {self.height_m:g}")
        rows, columns = coarse.sizes["y"], coarse.sizes["x"]
        if min(rows, columns) * factor < self.patch:
            said.append(
                f"there are {rows} × {columns} coarse points, fewer than the "
                f"{self.patch // factor} × {self.patch // factor} of its patches"
            )
        return [f"{self.name}: {one}" for one in said]

    def __str__(self) -> str:
        """Return it as lines to read."""
        scores = ", ".join(f"{name} {100 * skill:.1f} %" for name, skill in self.scores.items())
        said = {one.name: getattr(self, one.name) for one in fields(self)}
        said |= {"scores": f"{scores} (MSE skill over conservative bicubic, --folds)"}
        said |= {"file": f"{self.file.name}, sha256 {self.file.sha256[:12]}…"}
        return "\n".join(f"{name}: {value}" for name, value in said.items())


def nets_folder() -> Path:
    """Return the folder of cards and weights that comes with the package."""
    return registry_folder() / "nets"


def net_names() -> list[str]:
    """Return the names of the nets that there are."""
    return sorted(path.stem for path in nets_folder().glob("*.yaml"))


def card(name: str) -> Card:
    """Return the card of a net.

    Raises:
        ValueError: there is no net of that name, or its card is malformed.
    """
    if not NAME.fullmatch(name) or name not in net_names():
        raise ValueError(f"net {name!r} is unknown; name one of {', '.join(net_names())}")
    path = nets_folder() / f"{name}.yaml"
    content: Any = _document.read(path)
    try:
        return Card(**content | {"file": RemoteFile(url=None, **content["file"])})
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is malformed: {error}; compare it with wind4.yaml") from error


def card_name(named: Path | str) -> str | None:
    """Return the name by which a net that comes with the package is asked for; None for a file."""
    return None if net_file(named) == Path(named) else str(named)


def net_file(named: Path | str) -> Path:
    """Return the file of a net: a path as it is, or where the weights of a name lie.

    A name is looked for in the folder that SCIML_MIRROR names, then beside the cards; its checksum
    must be the card's.
    """
    path = as_path("path", named, "pass what Downscaling.save returned, or a name, as 'wind4'")
    if path.exists() or path.suffix or len(path.parts) > 1:
        return path
    file = card(str(named)).file
    found = mirrored(mirror_folder(), file) or mirrored(nets_folder(), file)
    if found is None:
        raise ValueError(
            f"{file.name} of the net {str(named)!r} is not in {nets_folder()}: install the package "
            "again, or set SCIML_MIRROR to a folder that holds it"
        )
    return found
