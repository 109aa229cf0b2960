"""The user's own line behind an equation of a traced function."""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import re
from pathlib import Path
from typing import Any

from jax.extend import core

NAMED = re.compile(r"[^\s/()]+\.py:\d+")
LIBRARIES = {"jax", "jaxlib", "flax", "optax"}


def user_line(eqn: core.JaxprEqn) -> str:
    """The line of the user's code that made an equation, as "model.py:7"; empty if unknown.

    A line in the name that an equation was given comes first: of a module that was read, as of
    PyTorch, JAX has seen the reader's lines alone. A cell of a notebook has no name: "line 7 of a
    cell".
    """
    if named := NAMED.findall(str(eqn.source_info.name_stack)):
        return named[-1]
    traceback: Any = eqn.source_info.traceback
    for frame in traceback.frames if traceback else ():
        path = Path(frame.file_name)
        if not _is_library(path) and not frame.file_name.startswith("<"):
            cell = path.parent.name.startswith("ipykernel_")  # whose file's name is a number
            return f"line {frame.line_num} of a cell" if cell else f"{path.name}:{frame.line_num}"
    return ""


def within(inner: core.JaxprEqn, call: core.JaxprEqn) -> core.JaxprEqn:
    """An equation of a called function; the call's line if it has none of its own.

    JAX keeps what it traced of its own functions, without the line that called them.
    """
    return inner if user_line(inner) else inner.replace(source_info=call.source_info)


def _is_library(path: Path) -> bool:
    installed = "site-packages" in path.parts and LIBRARIES.intersection(path.parts)
    return bool(installed) or Path(__file__).parents[1] in path.parents
