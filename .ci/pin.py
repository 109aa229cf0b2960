"""Remake the constraints file: every distribution that the extras resolve to, name==version."""

import json
import subprocess
import sys
from pathlib import Path

EXTRAS = "test,docs,lab,browser,bench,genes,torch"
HEADER = """\
# Versions this project is tested with: Python 3.11, Linux, processor only. Plain pins, so that any
# index serves them. Remade by `make constraints` (Python 3.11), from the extras {extras}.
"""


def resolve(extras: str) -> dict[str, str]:
    """Ask pip what it would install into an empty environment; nothing is installed."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed"]
    command += ["--quiet", "--report", "-", "-e", f".[{extras}]"]
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    found = [item["metadata"] for item in report["install"] if not item["is_direct"]]
    # A local tag such as +cpu names one index's build, not a version.
    return {meta["name"].lower(): meta["version"].split("+")[0] for meta in found}


if __name__ == "__main__":
    pins = resolve(EXTRAS)
    lines = [f"{name}=={version}\n" for name, version in sorted(pins.items())]
    Path(sys.argv[1]).write_text(HEADER.format(extras=EXTRAS) + "".join(lines))
