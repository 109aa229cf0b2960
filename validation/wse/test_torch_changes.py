"""What a module of PyTorch changes in place, keeps, or computes again: PyTorch's own numbers.

`make torch` runs this in an environment that has PyTorch.
"""

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wse

torch = pytest.importorskip("torch", reason="the extra torch is not installed: make torch runs it")
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from validation.wse.as_pytorch import assert_as_pytorch  # noqa: E402

pytestmark = [pytest.mark.validation, pytest.mark.filterwarnings("ignore")]


class Of(nn.Module):
    """A function of itself, with two layers and a row of numbers that is kept, and what enters."""

    def __init__(self, way: Callable[..., Any]) -> None:
        super().__init__()
        self.first, self.second, self.way = nn.Linear(4, 4), nn.Linear(4, 4), way
        self.register_buffer("kept", torch.ones(4))

    def forward(self, *x):
        return self.way(self, *x)


class Doubled(torch.autograd.Function):
    """Whose way forward turns gradients off itself."""

    @staticmethod
    def forward(ctx, x):
        with torch.no_grad():
            return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


class Masked(torch.autograd.Function):
    """A softmax that changes in place what its derivative needs."""

    @staticmethod
    def forward(ctx, x, mask):
        out = torch.softmax(x.masked_fill(mask == 0, -1e9), -1)
        out.masked_fill_(mask == 0, 0)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, g):
        (out,) = ctx.saved_tensors
        return out * (g - (g * out).sum(-1, keepdim=True)), None


def averaged(s: Any, x: Any) -> Any:
    """Averages that move and are read, in place and behind the gradient's back."""
    h = s.first(x)
    with torch.no_grad():
        s.kept.mul_(0.9).add_(h.mean(0), alpha=0.1)
        own = s.second(x)
        own[0] = 0
    copy = h.detach().clone()
    copy[:, 1] = 3
    drawn = torch.zeros_like(h)
    drawn[:2] = h[:2]
    return h * s.kept + own * copy + drawn


def ranked(s: Any, x: Any) -> Any:
    h = s.first(x)
    total = h.median(1)[0] + h.median() + h.kthvalue(3, 0)[0].sum() + torch.fmax(h, x).sum(1)
    h = torch.ldexp(h, torch.tensor(2)).clone().fill_diagonal_(0.5)
    h = h.diagonal_scatter(x[0, :3], 1).masked_scatter(x > 0, x.flip(0))
    counts = torch.tensor([1, 0, 2])
    h = h.repeat_interleave(counts, 0, output_size=3)
    whole = torch.arange(3)
    sides = torch.gcd(whole * 6, whole + 3) + ((whole << 3) >> 1) + torch.lcm(whole, whole + 1)
    return nn.functional.rrelu(h) * (total + sides)[:, None]


def sizes(s: Any, x: Any) -> Any:
    """Norms of complex numbers, which are real."""
    z = torch.complex(s.first(x), x)
    over = torch.linalg.vector_norm(z, 1, dim=1), torch.linalg.matrix_norm(z), z.norm()
    return [*over, z.mean().imag, z.prod(0).real, z.var()]


def twice(s: Any, x: Any) -> Any:
    """The first gives no gradient: nothing that enters it has one."""
    first = checkpoint(s.second, x, use_reentrant=True)
    h = torch.tanh(s.first(x)) + first
    return checkpoint(s.second, h, use_reentrant=True) * s.first(x)


def unmasked(s: Any, x: Any) -> Any:
    """A softmax of a row that is masked out, which is zero and has no gradient."""
    mask = torch.tensor([[True, False, True, True], [False] * 4, [True] * 4])
    scores = torch.where(mask, s.first(x), -torch.inf)
    return torch.ops.aten._safe_softmax.default(scores, 1) * s.second(x)


WAYS: dict[str, Callable[..., Any]] = {
    "averages": averaged,
    "ranks": ranked,
    "complex": sizes,
    "masked out": unmasked,
    "spread": lambda s, x: (s.first(x).std(unbiased=False), s.first(x).std(1, False), x.std(True)),
    "computed again": twice,
    "off within": lambda s, x: s.first(Doubled.apply(x)) * s.second(x),
    "in place within": lambda s, x: Masked.apply(s.first(x), x > 0) * s.second(x),
}


@pytest.mark.parametrize("name", WAYS)
def test_outputs_and_gradients_are_those_of_pytorch(name: str) -> None:
    torch.manual_seed(0)
    assert_as_pytorch(Of(WAYS[name]), (torch.randn(3, 4),), True)


class Normed(nn.Module):
    """Averages of batch norm that are read after they moved, counted or in shares."""

    def __init__(self, share: float | None) -> None:
        super().__init__()
        self.dense, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4, momentum=share)

    def forward(self, x):
        h = self.norm(self.dense(x))
        return h * self.norm.running_var + self.norm.running_mean


@pytest.mark.parametrize("share", [0.3, None])
def test_kept_averages_are_read_as_they_move(share: float | None) -> None:
    torch.manual_seed(0)
    assert_as_pytorch(Normed(share).train(), (torch.randn(6, 4),), True)


def test_what_pytorch_trains_later_changes_nothing() -> None:
    module = Of(lambda s, x: s.first(x) * s.kept)
    made = wse.from_torch(module, torch.ones(3, 4))
    before = made.apply(made.params, torch.ones(3, 4).numpy())
    with torch.no_grad():
        module.first.weight.add_(1)
        module.kept.add_(1)
    np.testing.assert_array_equal(made.apply(made.params, torch.ones(3, 4).numpy()), before)


def clamped(s: Any, x: Any) -> Any:
    with torch.no_grad():
        s.first.weight.clamp_(0)
    return s.first(x)


def through_a_view(s: Any, x: Any) -> Any:
    h = s.first(x)
    with torch.no_grad():
        h.view(-1)[2] = 0
    return h


def behind(s: Any, x: Any) -> Any:
    h = s.first(x)
    h.detach()[0].mul_(2)
    return h


def traced() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.trace(nn.Linear(4, 4), torch.ones(3, 4))


@pytest.mark.parametrize(
    ("module", "rule"),
    [
        (Of(clamped), "clamp_.default changes in place under no_grad .*changes.py.*clone"),
        (Of(through_a_view), "changes in place under no_grad what has a gradient .*changes.py"),
        (Of(behind), "mul_.Tensor changes in place what it detached .*changes.py.*clone"),
        (Of(lambda s, x: s.first(x).data * x), r"does not export .*write .detach\(\) for .data"),
        (nn.Sequential(nn.Embedding(5, 3, max_norm=1.0)), "renorm_.* set max_norm=None"),
        (Of(lambda s, x: s.first(x).to(torch.complex32)), "torch.complex32, which JAX has not"),
        (Of(lambda s, x: s.first(x).sum().cummax(0)[0]), "not mapped .*changes.py.*report it"),
        (traced(), "pass the module that was scripted or traced"),
        (
            Of(
                lambda s, x: torch.distributions.Normal(
                    s.first(x), 1.0, validate_args=True
                ).log_prob(x)
            ),
            "does not export .*validate_args=False",
        ),
    ],
    ids=[
        "clamped",
        "view",
        "behind",
        "data",
        "max_norm",
        "kind",
        "empty",
        "script",
        "distribution",
    ],
)
def test_what_changes_behind_the_gradient_is_one_line(module: Any, rule: str) -> None:
    words = isinstance(module, nn.Sequential)
    x = torch.tensor([[0, 4]]) if words else torch.ones(3, 4)
    with pytest.raises(ValueError, match=rule) as found:
        wse.from_torch(module, x)
    assert not re.search("\n", str(found.value))
