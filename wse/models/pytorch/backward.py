"""Backward passes of one's own, which a graph does not have: refused where they differ."""

# torch is an extra, and its classes have no static type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUntypedFunctionDecorator=false, reportPrivateUsage=false

from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import product
from math import isfinite
from typing import Any
from unittest.mock import patch

NEAR = 1e-4  # assumed: of the largest gradient; a derivative written by hand is as near
DRAWS: tuple[Callable[[Any], Any], ...] = (  # of normal numbers, until a function is defined there
    lambda x: x,
    lambda x: 0.05 * x,
    lambda x: x.abs(),
    lambda x: 0.05 * x.abs() + 0.01,
)
STEP = 1e-6  # of differences in float64
WHOLE = (1, 0)  # masks that let all pass; then what is also the number of a row


@contextmanager
def refuse_own_backward(module: Any) -> Generator[None]:
    """Export within this, and a gradient that is not the function's own is refused.

    What a graph holds is the way forward alone: of a straight-through estimator it has the
    rounding, whose derivative is zero. Both are compared at random numbers where the function is
    defined; where the backward pass is the derivative, only written by hand, nothing is lost.

    Raises:
        ValueError: a `torch.autograd.Function` with another gradient, or a hook on one.
    """
    import torch
    from torch.utils.checkpoint import CheckpointFunction as again

    hooks = _hooks(module)
    met: dict[Any, list[Any]] = {}
    function: Any = torch.autograd.Function
    apply, hook = function.apply.__func__, torch.Tensor.register_hook

    def applied(cls: Any, *args: Any, **named: Any) -> Any:
        moves = any(x.requires_grad for x in args if isinstance(x, torch.Tensor))
        if torch.is_grad_enabled() and moves:
            if cls is again:  # goes forward without gradients, and once more for them
                return args[0](*args[2:])
            if not cls.__module__.startswith("torch."):
                met.setdefault(cls, [_kind(x) for x in args])
        out = apply(cls, *args, **named)
        # Within, gradients are off, which export does not see; no_grad there leaves it at that.
        torch.set_grad_enabled(torch.is_grad_enabled())
        return out

    def hooked(tensor: Any, *args: Any) -> Any:
        hooks.append("a tensor's register_hook")
        return hook(tensor, *args)

    with (
        patch.object(function, "apply", classmethod(applied)),
        patch.object(torch.Tensor, "register_hook", hooked),
    ):
        yield
    others = (f"the torch.autograd.Function {x.__qualname__}" for x in met if _differs(x, met[x]))
    if found := hooks[0] if hooks else next(others, ""):
        raise ValueError(
            f"{type(module).__name__} has {found}; its own backward pass is not carried over, so "
            "that gradients would be others: write a plain function, as y + (z - y).detach(), or "
            "take the hook away"
        )


def _hooks(module: Any) -> list[str]:
    found = [f"a hook on {name!r}" for name, x in module.named_parameters() if x._backward_hooks]
    for name, part in module.named_modules():
        if part._backward_hooks or part._backward_pre_hooks:
            found.append(f"a backward hook on {name or type(part).__name__!r}")
    return found


def _kind(x: Any) -> Any:
    """What enters a function, without its numbers: shape, kind and whether it has a gradient."""
    import torch

    held = isinstance(x, torch.Tensor)
    return (tuple(x.shape), x.dtype, x.requires_grad) if held else x


def _differs(function: Any, kinds: list[Any]) -> bool:
    """Whether a backward pass is another than the derivative of the way forward."""
    import torch

    base: Any = torch.autograd.Function
    parted = function.setup_context is not base.setup_context  # forward has no context then

    def plain(*args: Any) -> Any:
        return function.forward(*args) if parted else function.forward(_Context(), *args)

    compared = False
    for draw in product(DRAWS, WHOLE):
        try:
            own = _gradients(function.apply, kinds, *draw)
        except Exception:  # whatever the user's function raises where it is asked alone
            continue
        try:
            derived = _gradients(plain, kinds, *draw)
        except Exception:  # as where it changes in place what a derivative needs
            try:
                along, slope = _along(own, plain, kinds, *draw)
            except Exception:  # whatever it raises
                continue
            if isfinite(slope) and (compared := True) and float(along.abs().sum()):
                return abs(float(along.sum()) - slope) > NEAR * float(along.abs().sum())
            continue
        largest, other = (max(float(x.abs().sum()) for x in some) for some in (own, derived))
        if not isfinite(largest + other):
            continue
        compared = True
        if largest or other:  # behind a mask that is zero all is
            largest = max(float(x.abs().max()) for x in own if x.numel())
            pairs = zip(own, derived, strict=True)
            return any(float((x - y).abs().max()) > NEAR * largest for x, y in pairs if x.numel())
    return not compared


def _gradients(
    way: Callable[..., Any], kinds: list[Any], numbers: Callable[[Any], Any], whole: int
) -> list[Any]:
    import torch

    args, leaves = _arguments(kinds, numbers, whole)
    moving = [x for x in _weighed(way(*args)) if x.requires_grad]
    if not moving:
        return [torch.zeros_like(x) for x in leaves]
    found = torch.autograd.grad(moving, leaves, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(leaves, found, strict=True)]


def _along(
    own: list[Any],
    way: Callable[..., Any],
    kinds: list[Any],
    numbers: Callable[[Any], Any],
    whole: int,
) -> tuple[Any, float]:
    """Gradients times a direction, and the slope along it by differences."""
    import torch

    turn, ways, ends = torch.Generator().manual_seed(1), list[Any](), list[float]()
    for x in own:
        ways.append(torch.randn(x.shape, generator=turn, dtype=x.dtype))
    for step in (STEP, -STEP):
        args, leaves = _arguments(kinds, numbers, whole)
        with torch.no_grad():
            moved = [x + step * way for x, way in zip(leaves, ways, strict=True)]
            following = iter(moved)
            held = [isinstance(x, torch.Tensor) and x.requires_grad for x in args]
            args = [next(following) if moves else x for x, moves in zip(args, held, strict=True)]
            ends.append(float(sum(_weighed(way(*args)))))
    along = torch.cat([(x * y).flatten() for x, y in zip(own, ways, strict=True)])
    return along, (ends[0] - ends[1]) / (2 * STEP)


def _arguments(
    kinds: list[Any], numbers: Callable[[Any], Any], whole: int
) -> tuple[list[Any], list[Any]]:
    """Random arguments of such kinds, and those of them that have a gradient."""
    import torch

    draw, leaves, args = torch.Generator().manual_seed(0), list[Any](), list[Any]()
    for kind in kinds:
        if not isinstance(kind, tuple) or len(kind) != 3 or not isinstance(kind[1], torch.dtype):
            args.append(kind)
            continue
        shape, dtype, moves = kind
        made = numbers(torch.randn(shape, generator=draw, dtype=torch.float64))
        args.append(made if dtype.is_floating_point else torch.full(shape, whole, dtype=dtype))
        if moves:
            leaves.append(made.requires_grad_())
            args[-1] = made * 1  # a leaf may not be changed in place
    return args, leaves


def _weighed(outputs: Any) -> list[Any]:
    import torch

    draw = torch.Generator().manual_seed(2)
    some = [outputs] if isinstance(outputs, torch.Tensor) else [*outputs]
    some = [x for x in some if isinstance(x, torch.Tensor) and x.is_floating_point()]
    return [(x * torch.randn(x.shape, generator=draw, dtype=x.dtype)).sum() for x in some]


class _Context:
    """What the way forward asks of a context, and what it leaves there."""

    needs_input_grad = (True,) * 64

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def mark_dirty(self, *_: Any) -> None: ...

    def mark_non_differentiable(self, *_: Any) -> None: ...

    def set_materialize_grads(self, value: bool) -> None: ...
