"""The user's own line behind an equation of a traced function."""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import re
import sysconfig
from functools import cache
from pathlib import Path
from typing import Any

from jax.extend import core

NAMED = re.compile(r"[^\s/()]+\.py:\d+")
LIBRARIES = ("jax", "jaxlib", "flax", "optax")
INSTALLED = ("site-packages", "dist-packages")
TRACING = str(Path(__file__).parent)
OURS = str(Path(__file__).parents[1])
STANDARD = sysconfig.get_path("stdlib")


def user_line(eqn: core.JaxprEqn) -> str:
    """The line of the user's code that made an equation, as "model.py:7"; empty if unknown.

    It is the innermost line of the program that the loss is of: where that calls a library, as a
    solver of equations, the line that calls it; of a model that is installed, one of its own, as
    "package/model.py:7".

    A line in the name that an equation was given comes first: of a module that was read, as of
    PyTorch, JAX has seen the reader's lines alone. A cell of a notebook has no name: "line 7 of a
    cell".
    """
    if named := NAMED.findall(str(eqn.source_info.name_stack)):
        return named[-1]
    traceback: Any = eqn.source_info.traceback
    lines: list[tuple[str, Any]] = []
    ours = False  # a function of this package, which may stand between the user's and JAX
    for frame in traceback.frames if traceback else ():
        if frame.file_name.startswith(TRACING) or (ours and lines):
            break  # whoever asks for the trace has no part in the loss
        package = _package(frame.file_name)
        ours = ours or frame.file_name.startswith(OURS)
        if package is not None and not (ours and package):
            lines.append((package, frame))
    if not lines:
        return ""
    frame = next(frame for package, frame in lines if package == lines[-1][0])
    path = Path(frame.file_name)
    cell = path.parent.name.startswith("ipykernel_")  # whose file's name is a number
    if cell:
        return f"line {frame.line_num} of a cell"
    return f"{lines[-1][0]}/{path.name}:{frame.line_num}".removeprefix("/")


def nearer(eqn: core.JaxprEqn, call: str) -> str:
    """The line of an equation of a called function; the call's where it has none of the user's.

    A library that keeps functions of its own traced knows not who called them.
    """
    line = user_line(eqn)
    return line if line and ("/" not in line or "/" in call or not call) else call


def within(inner: core.JaxprEqn, call: core.JaxprEqn) -> core.JaxprEqn:
    """An equation of a called function, with the line of `nearer`."""
    found, outer = user_line(inner), user_line(call)
    same = nearer(inner, outer) == found
    return inner if same else inner.replace(source_info=call.source_info)


@cache
def _package(file: str) -> str | None:
    """The installed package of a file, empty of the user's own; None: nobody's line."""
    path = Path(file)
    if path.suffix != ".py" or file.startswith(OURS):  # as <string>, or the command itself
        return None
    for folder in INSTALLED:
        if folder in path.parts:
            package = path.parts[path.parts.index(folder) + 1]
            return None if package in LIBRARIES else package
    return None if path.is_relative_to(STANDARD) else ""
