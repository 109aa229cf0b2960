"""Calls inside a module that no graph carries: refused with the user's line."""

# torch is an extra, and its classes have no static type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportPrivateUsage=false

import os
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from traceback import StackSummary, extract_stack, extract_tb
from typing import Any
from unittest.mock import patch

# What is called, as the reader writes it, and what to write instead.
PACKED = (
    "packs sequences, whose number at each step depends on values",
    "run it over the padded ones, and take or mask what it gives by their lengths, as with "
    "torch.gather and torch.where",
)
INSIDE = (
    "takes a gradient inside, which is not part of a graph",
    "write the derivative out, or the loss in JAX, where jax.grad may stand inside",
)
LEAST = (
    "calls torch.linalg.lstsq, whose shapes depend on values",
    "write q, r = torch.linalg.qr(a) and torch.linalg.solve_triangular(r, q.mT @ b, upper=True)",
)


# What export says, or where it fails, and what to write instead.
REMEDIES = (
    ("fake tensor in the exported program", "write .detach() for .data"),
    ("ScriptModule", "pass the module that was scripted or traced"),
    ("Couldn't swap", "bring its parameters to their kind or device before, not in forward"),
    (f"torch{os.sep}distributions", "pass validate_args=False to the distribution"),
)


class Refused(ValueError):
    """A call that no graph carries."""


@contextmanager
def refuse_calls(name: str) -> Generator[None]:
    """Export within this: packed sequences, gradients inside and least squares are refused.

    Raises:
        Refused: one is called; with its line.
    """
    import torch
    from torch._functorch import eager_transforms

    # All of torch.func that differentiates begins with one of these two.
    calls = [
        (torch._VF, "_pack_padded_sequence", PACKED),
        (torch.autograd, "grad", INSIDE),
        (torch.autograd, "backward", INSIDE),
        (eager_transforms, "grad_increment_nesting", INSIDE),
        (eager_transforms, "jvp_increment_nesting", INSIDE),
        (torch.linalg, "lstsq", LEAST),
    ]
    with ExitStack() as stack:
        for owner, call, told in calls:
            stack.enter_context(patch.object(owner, call, _refusal(name, *told)))
        yield


def _refusal(name: str, what: str, remedy: str) -> Callable[..., Any]:
    return lambda *_, **__: _refuse(f"{name} {what}{_own(extract_stack())}: {remedy}")


def _refuse(told: str) -> None:
    raise Refused(told)


def remedy(error: BaseException) -> str:
    """Return what to write in place of what export does not take."""
    said = f"{error} {[x.filename for x in extract_tb(error.__traceback__)]}"
    found = (told for word, told in REMEDIES if word in said)
    return next(found, "write what depends on values with torch.where")


def at(error: BaseException) -> str:
    """Return where in the user's source an error came up, or nothing."""
    return _own(extract_tb(error.__traceback__))


def _own(frames: StackSummary) -> str:
    """The innermost line that is neither PyTorch's nor of this package."""
    ours = os.sep + os.path.join("wse", "models", "pytorch") + os.sep
    own = [x for x in frames if f"{os.sep}torch{os.sep}" not in x.filename]
    own = [x for x in own if ours not in x.filename]
    return f' (File "{own[-1].filename}", line {own[-1].lineno})' if own else ""
