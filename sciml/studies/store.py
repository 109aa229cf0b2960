"""Runs that a study has made are kept, and interrupted ones go on."""

import hashlib
import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sciml.inverse import Fit, load
from sciml.models.archive import NotAFitError
from wse._files import ensure_folder

log = logging.getLogger(__name__)


def results_folder(out: Path | str | None) -> Path:
    """Return `out`, else the folder named by SCIML_RESULTS, else 'results'; it can be written.

    Raises:
        NotADirectoryError, PermissionError: it cannot be made or written.
    """
    return ensure_folder(out or os.environ.get("SCIML_RESULTS") or "results")


def run_file(out: Path, identity: dict[str, Any], suffix: str) -> Path:
    """Return the file of a run, named by its own content."""
    text = json.dumps(identity, sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return out / "runs" / f"{identity['run']}-{digest}{suffix}"


def stored_fit(out: Path, identity: dict[str, Any], make: Callable[[Path], Fit]) -> Fit:
    """Return the fit of a run: read it if it is there, else make it and keep it.

    Args:
        out: the results folder.
        identity: everything that decides the run's numbers; `identity["run"]` starts its name.
        make: `make(checkpoint)` trains; a checkpoint that is there is gone on from.
    """
    path = run_file(out, identity, ".fit")
    if path.exists():
        try:
            return load(path)
        except NotAFitError as error:
            log.warning("the run is made anew, its file being of no use here: %s", error)
    fit = make(path.with_suffix(".checkpoint"))
    fit.save(path)
    return fit
