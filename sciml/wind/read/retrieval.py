"""From a name to files: a local mirror first, the cache and the network after it."""

import hashlib
import logging
import os
from pathlib import Path
from typing import Any

from sciml.wind.read.registry import Registered, RemoteFile, registered
from wse._files import cache_folder

log = logging.getLogger(__name__)

CONNECT_S = 4.0  # an offline machine knows within seconds
READ_S = 30.0  # longest silence of a server that has answered


class DatasetUnavailable(RuntimeError):
    """A data set is neither in the mirror, nor in the cache, nor on a network within reach."""


def fetch(name: str) -> dict[str, Path]:
    """Return the file of each split of a data set, with its checksum verified.

    Looked for, in this order: in the folder that the environment variable SCIML_MIRROR names, at
    any depth, by file name; in the cache (SCIML_CACHE, else XDG_CACHE_HOME, else ~/.cache); at
    the public address in the registry.

    Args:
        name: a data set of the registry, such as "metcoop" (splits train, validation, test).

    Raises:
        ValueError: the data set is unknown, SCIML_MIRROR is not a folder, or a file of the mirror
            has another checksum.
        DatasetUnavailable: a file is nowhere to be had.

    >>> from sciml import wind
    >>> files = wind.fetch("metcoop")  # doctest: +SKIP
    >>> winds = wind.open(files["train"])  # doctest: +SKIP
    """
    source = registered(name)
    mirror = mirror_folder()
    return {
        split: mirrored(mirror, file) or downloaded(source, file)
        for split, file in source.files.items()
    }


def mirror_folder() -> Path | None:
    """Return the folder that SCIML_MIRROR names, if it is set."""
    named = os.environ.get("SCIML_MIRROR")
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise ValueError(f"SCIML_MIRROR is {named!r}; it must name an existing folder, or be unset")
    return folder


def mirrored(mirror: Path | None, file: RemoteFile) -> Path | None:
    """Return the mirror's copy of a file, None if it has none."""
    copies = sorted(mirror.rglob(file.name)) if mirror else []
    for copy in copies:
        if sha256(copy) == file.sha256:
            return copy
    if copies:
        raise ValueError(
            f"{copies[0]} has sha256 {sha256(copies[0])}; the registry says {file.sha256}: "
            f"copy it again{f' from {file.url}' if file.url else ''}, or unset SCIML_MIRROR"
        )
    return None


def sha256(path: Path) -> str:
    """Return the checksum of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def downloaded(source: Registered, file: RemoteFile) -> Path:
    """Return the cached copy of a file, downloaded if need be (aside, then renamed)."""
    folder = cache_folder("sciml", "datasets", source.name)
    if file.url is None:  # the user has put it into the cache
        path = folder / file.name
        if path.is_file() and sha256(path) == file.sha256:
            return path
        raise DatasetUnavailable(
            f"{file.name} of {source.name!r} has no address of its own. {source.obtain} Put it "
            f"into {folder}, or set SCIML_MIRROR to a folder that holds it"
        )
    import pooch

    pooch.get_logger().handlers.clear()  # its own prints; what it says goes to `logging`
    downloader: Any = pooch.HTTPDownloader(timeout=(CONNECT_S, READ_S))
    try:
        path = pooch.retrieve(
            url=file.url,
            known_hash=f"sha256:{file.sha256}",
            fname=file.name,
            path=folder,
            downloader=downloader,
        )
    except (OSError, ValueError) as error:  # no network, no right to write, other bytes than said
        log.info("%s could not be fetched: %s", file.url, error)
        raise DatasetUnavailable(
            f"{file.name} of {source.name!r} cannot be had: {type(error).__name__}: "
            f"{str(error)[:120]}. Set SCIML_MIRROR to a folder that holds it, or put it into "
            f"{folder}; its address is {file.url}"
        ) from error
    return Path(path)
