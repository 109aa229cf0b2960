"""The data sets that are known: where they come from, under which licence, with which checksum."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wse import _document

NAME = re.compile(r"[a-z0-9_]+")
FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
SHA256 = re.compile(r"[0-9a-f]{64}")
KEYS = {"title", "institution", "licence", "citation", "spacing_m", "variables", "files"}


@dataclass(frozen=True)
class RemoteFile:
    """One file of a data set: its name, its checksum and its public address.

    Without an address, it is part of something larger that `Registered.obtain` names.
    """

    name: str
    sha256: str
    url: str | None

    def __post_init__(self):
        """Check every value; a name must not lead out of its folder."""
        rules = {
            "name": (FILE_NAME.fullmatch(self.name), "a plain file name without a folder"),
            "sha256": (SHA256.fullmatch(self.sha256), "64 hexadecimal digits"),
            "url": (self.url is None or self.url.startswith("https://"), "an https address"),
        }
        for key, (holds, rule) in rules.items():
            if not holds:
                raise ValueError(
                    f"the {key} of a file is {getattr(self, key)!r}; it must be {rule}"
                )


@dataclass(frozen=True)
class Registered:
    """A data set: the file of each split, and what a result must say about its source."""

    name: str
    title: str
    institution: str
    licence: str
    citation: str
    spacing_m: float
    variables: dict[str, str]
    files: dict[str, RemoteFile]
    obtain: str = ""


def registered(name: str, folder: Path | None = None) -> Registered:
    """Read `name`.yaml of the registry `folder` (default: the one that comes with the package).

    Raises:
        ValueError: there is no such data set, or its file is malformed.

    >>> registered('metcoop').licence
    'MET Norway data policy: NLOD 2.0 or CC BY 4.0, credit MET Norway'
    """
    folder = registry_folder() if folder is None else folder
    known = sorted(path.stem for path in folder.glob("*.yaml"))
    if not NAME.fullmatch(name) or name not in known:
        raise ValueError(f"data set {name!r} is unknown; name one of {', '.join(known)}")
    path = folder / f"{name}.yaml"
    try:
        return parsed(name, _document.read(path))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path} is malformed: {error}; compare it with metcoop.yaml") from error


def parsed(name: str, content: Any) -> Registered:
    """Return the data set that the content of a registry file describes."""
    missing = KEYS - set(content)
    if missing:
        raise ValueError(f"it lacks {', '.join(sorted(missing))}")
    files = {
        split: RemoteFile(name=file["name"], sha256=file["sha256"], url=file.get("url"))
        for split, file in content["files"].items()
    }
    rest = {key: content[key] for key in KEYS - {"files", "spacing_m"}}
    lost = [file.name for file in files.values() if file.url is None]
    if lost and "obtain" not in content:
        raise ValueError(f"{lost[0]} has no url, so obtain must say where it comes from")
    return Registered(
        name=name,
        spacing_m=float(content["spacing_m"]),
        files=files,
        obtain=str(content.get("obtain", "")),
        **rest,
    )


def registry_folder() -> Path:
    """Return `sciml/datasets` of an installed wheel, or `datasets` beside the package's source."""
    package = Path(__file__).parents[2]
    inside = package / "datasets"
    return inside if inside.is_dir() else package.parent / "datasets"
