"""The line of the user's source that a node of an exported graph comes from."""

# What a graph holds has no static type.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import os
import re
from pathlib import Path
from typing import Any


def line(node: Any) -> str:
    """Where in the user's source a node comes from."""
    found = _frame(node)
    return f" ({found})" if found else ""


def place(node: Any) -> str:
    """The same as "model.py:7", where `wse.check` looks for it; else PyTorch's own name."""
    found = re.match(r'File "(.*?)", line (\d+)', _frame(node))
    return f"{Path(found[1]).name}:{found[2]}" if found else str(node.target)


def _frame(node: Any) -> str:
    """The innermost line outside of PyTorch; its own where there is no other."""
    trace = [x.strip() for x in str(node.meta.get("stack_trace") or "").splitlines()]
    files = [x for x in trace if x.startswith("File ")]
    files = [x for x in files if "<eval_with_key>" not in x]  # the text of a graph, not the user's
    own = [x for x in files if f"{os.sep}torch{os.sep}" not in x]
    return (own or files or [""])[-1]
