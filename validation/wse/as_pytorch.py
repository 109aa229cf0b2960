"""Compare a module of PyTorch with what `wse.from_torch` makes of it: outputs and gradients."""

from contextlib import nullcontext
from typing import Any

import jax
import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree

import wse


class AllDouble(TorchFunctionMode):
    """Takes float64 where a module asks for float32, as norms and rotations of language models do.

    Without it both sides round to float32 there, and no error below 1e-7 can be seen.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        func = torch.Tensor.double if func is torch.Tensor.float else func
        given = {key: wide(x) for key, x in (kwargs or {}).items()}
        return func(*map(wide, args), **given)


def wide(x: Any) -> Any:
    return torch.float64 if x is torch.float32 else x


def livened(module: Any) -> Any:
    """Move what begins as zero or one, so that a part that is left out shows."""
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for x in module.parameters():
            if x.ndim < 2 or not x.any():
                x.add_(0.05 * torch.randn(x.shape, generator=draw))
        for name, x in module.named_buffers():
            if name.endswith("running_mean"):
                x.add_(0.1 * torch.randn(x.shape, generator=draw))
    return module


def assert_as_pytorch(module: Any, inputs: tuple[Any, ...], double: bool) -> None:
    """Compare every output, and the gradients of all that a random weighing of them gives."""
    near = 1e-8 if double else 1e-4
    module = livened(module)
    if double:
        module = module.double()
        inputs = tuple(x.double() if x.is_floating_point() else x for x in inputs)
    with jax.enable_x64(double), AllDouble() if double else nullcontext():
        made = wse.from_torch(module, inputs)
        wanted = [x for x in _pytree.tree_leaves(module(*inputs)) if isinstance(x, torch.Tensor)]
        wanted = [x for x in wanted if x.is_floating_point()]
        shares = [torch.randn_like(x) for x in wanted]
        sum((x * share).sum() for x, share in zip(wanted, shares, strict=True)).backward()
        arrays = tuple(x.numpy() for x in inputs)

        def weighed(params: Any) -> tuple[Any, Any]:
            found = [x for x in jax.tree.leaves(made.apply(params, *arrays)) if x.dtype.kind == "f"]
            pairs = zip(found, shares, strict=True)
            return sum((x * share.numpy()).sum() for x, share in pairs), found

        gradients, found = jax.jit(jax.grad(weighed, has_aux=True))(dict(made.params))
    for ours, theirs in zip(found, wanted, strict=True):
        theirs = theirs.detach().numpy()
        assert np.abs(np.asarray(ours) - theirs).max() <= near * np.abs(theirs).max()
    assert_near(gradients, module, near)


def assert_near(gradients: Any, module: Any, near: float) -> None:
    """Each gradient, by its own largest number or a thousandth of the largest of all."""
    theirs = {
        key: np.zeros(tuple(x.shape)) if x.grad is None else x.grad.numpy()
        for key, x in module.named_parameters()
    }
    assert set(gradients) == set(theirs)
    largest = max(np.abs(x).max() for x in theirs.values())
    for key, gradient in gradients.items():
        scale = max(np.abs(theirs[key]).max(), 1e-3 * largest)
        assert np.abs(np.asarray(gradient) - theirs[key]).max() <= near * scale, key
