"""Backward passes of one's own, which an exported graph does not have: they are refused by name."""

# torch is an extra, and its classes have no static type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUntypedFunctionDecorator=false, reportPrivateUsage=false

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch


@contextmanager
def refuse_own_backward(module: Any) -> Generator[None]:
    """Export within this, and a gradient that is not the function's own is refused.

    What a graph holds is the way forward alone: of a straight-through estimator it has the
    rounding, whose derivative is zero. PyTorch's own functions, as `checkpoint`, are as they seem.

    Raises:
        ValueError: a `torch.autograd.Function`, or a hook that changes a gradient.
    """
    import torch

    met = _hooks(module)
    function: Any = torch.autograd.Function
    apply, hook = function.apply.__func__, torch.Tensor.register_hook

    def applied(cls: Any, *args: Any, **named: Any) -> Any:
        own = torch.is_grad_enabled() and not cls.__module__.startswith("torch.")
        if own and any(x.requires_grad for x in args if isinstance(x, torch.Tensor)):
            met.append(f"the torch.autograd.Function {cls.__qualname__}")
        return apply(cls, *args, **named)

    def hooked(tensor: Any, *args: Any) -> Any:
        met.append("a tensor's register_hook")
        return hook(tensor, *args)

    with (
        patch.object(function, "apply", classmethod(applied)),
        patch.object(torch.Tensor, "register_hook", hooked),
    ):
        yield
    if met:
        raise ValueError(
            f"{type(module).__name__} has {met[0]}; its own backward pass is not carried over, so "
            "that gradients would be others: write a plain function, as y + (z - y).detach(), or "
            "take the hook away"
        )


def _hooks(module: Any) -> list[str]:
    found = [f"a hook on {name!r}" for name, x in module.named_parameters() if x._backward_hooks]
    for name, part in module.named_modules():
        if part._backward_hooks or part._backward_pre_hooks:
            found.append(f"a backward hook on {name or type(part).__name__!r}")
    return found
