"""What made a result: code, versions, machine."""

import functools
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from wse._processor import processor, usable_cores

ROOT = Path(__file__).parent.parent
PACKAGES = ("sciml-wse", "jax", "jaxlib", "flax", "optax", "diffrax", "numpy", "xarray")


@functools.cache
def provenance() -> dict[str, str]:
    """Return versions, code revision and machine as attributes of a result."""
    return {
        "versions": ", ".join(f"{name} {installed(name)}" for name in PACKAGES),
        "python": platform.python_version(),
        "revision": revision(),
        "machine": machine(),
    }


def show_versions() -> None:
    """Write versions, code revision and machine, as a report of a fault needs them.

    >>> show_versions()  # doctest: +ELLIPSIS
    sciml-wse...jax...
    """
    rows = {name: installed(name) for name in PACKAGES} | provenance()
    del rows["versions"]
    width = max(map(len, rows))
    sys.stdout.writelines(f"{name:<{width}}  {value}\n" for name, value in rows.items())


def installed(name: str) -> str:
    """Return the version of an installed distribution, or 'absent'."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def revision() -> str:
    """Return the commit of a checkout, marked '+' when files differ from it, else the version."""
    if not (ROOT / ".git").exists():
        return installed("sciml-wse")
    try:
        head = git("rev-parse", "--short=12", "HEAD")
        changed = git("status", "--porcelain", "--", "sciml", "wse")
    except (OSError, subprocess.CalledProcessError):
        return installed("sciml-wse")
    return f"{head}+" if changed else head


def git(*words: str) -> str:
    """Return what git says of the checkout."""
    command = ["git", "-C", str(ROOT), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def machine() -> str:
    """Return the processor's name, its usable cores and the system."""
    return f"{processor()}, {usable_cores()} cores, {platform.system()} {platform.machine()}"
