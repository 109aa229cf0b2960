"""Factorizations, equations, unpooling and branches of PyTorch as JAX: PyTorch's own numbers."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest

import wse

torch = pytest.importorskip("torch", reason="the extra torch is not installed: make torch runs it")
if find_spec("timm") is None:
    pytest.skip("the extra torch is not installed: make torch", allow_module_level=True)
from torch import linalg, nn  # noqa: E402

from validation.wse.as_pytorch import assert_as_pytorch  # noqa: E402

pytestmark = [pytest.mark.validation, pytest.mark.filterwarnings("ignore")]


class Of(nn.Module):
    """A function of a square of numbers, and of what enters."""

    def __init__(self, way: Callable[..., Any], *size: int) -> None:
        super().__init__()
        self.w, self.way = nn.Parameter(torch.randn(*(size or (5, 5)))), way

    def forward(self, x):
        return self.way(self.w, x)


def good(w: Any) -> Any:
    """Symmetric, with positive eigenvalues."""
    return w @ w.mT + 3 * torch.eye(w.shape[-1], dtype=w.dtype)


def far(w: Any) -> Any:
    """A matrix whose triangles are no near zero."""
    return w + 5 * torch.eye(w.shape[-1], dtype=w.dtype)


WAYS: dict[str, Callable[..., Any]] = {
    "QR": lambda w, x: (linalg.qr(w @ x)[0] ** 3, linalg.qr(w @ x)[1]),
    "wide QR": lambda w, x: linalg.qr((w @ x).mT),
    "Cholesky": lambda w, x: linalg.cholesky(good(w)) @ x,
    "upper Cholesky": lambda w, x: linalg.cholesky(good(w), upper=True) @ x,
    "one triangle": lambda w, x: linalg.cholesky(w.tril(-1) / 9 + 3 * torch.eye(5, dtype=w.dtype)),
    "Cholesky's equations": lambda w, x: torch.cholesky_solve(x, linalg.cholesky(good(w))),
    "Cholesky's inverse": lambda w, x: torch.cholesky_inverse(linalg.cholesky(good(w))),
    "lower triangle": lambda w, x: linalg.solve_triangular(far(w), x, upper=False),
    "from the right": lambda w, x: linalg.solve_triangular(far(w), x.mT, upper=True, left=False),
    "unit": lambda w, x: linalg.solve_triangular(w / 9, x, upper=True, unitriangular=True),
    "several": lambda w, x: linalg.solve_triangular(torch.stack([far(w), good(w)]), x, upper=True),
    "older triangle": lambda w, x: torch.triangular_solve(x, far(w), transpose=True)[0],
    "equations": lambda w, x: (linalg.solve(far(w), x), linalg.solve(far(w), x[:, 0])),
    "equations from the right": lambda w, x: linalg.solve(far(w), x.mT, left=False),
    "inverse": lambda w, x: linalg.inv(far(w)) @ x,
    "pseudo-inverse": lambda w, x: linalg.pinv(w[:, :3]) @ x,
    "determinants": lambda w, x: (linalg.det(w), linalg.slogdet(w)[1], torch.logdet(good(w))),
    "factors": lambda w, x: linalg.lu_solve(*linalg.lu_factor(far(w)), x),
    "eigenvalues": lambda w, x: (linalg.eigvalsh(good(w)), linalg.eigh(good(w))[1] ** 2),
    "singular values": lambda w, x: (linalg.svdvals(w), linalg.svd(w[:, :3], False)[0] ** 2),
    "exponential": lambda w, x: linalg.matrix_exp(w) @ x,
    "sums of exponentials": lambda w, x: torch.logcumsumexp(w, 0),
    "Bessel": lambda w, x: (torch.i0(w), torch.special.i1e(w), torch.special.ndtri(w.sigmoid())),
}


class Unpooled(nn.Module):
    def __init__(self, axes: int, taps: int = 2, stride: int = 2, border: int = 0) -> None:
        super().__init__()
        kinds = [getattr(nn, f"{kind}{axes}d") for kind in ("Conv", "MaxPool", "MaxUnpool")]
        self.first = kinds[0](2, 3, 3, padding=1)
        self.pool = kinds[1](taps, stride, border, return_indices=True)
        self.back = kinds[2](taps, stride, border)

    def forward(self, x):
        h = self.first(x)
        y, places = self.pool(h)
        return self.back(y * 2, places, output_size=h.shape), places


class Chooses(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.yes, self.no = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        first, second = torch.cond(
            x.sum() > 0,
            lambda x: (self.yes(x).sin(), x * 2),
            lambda x: (self.no(x) ** 2, x - 1),
            (x,),
        )
        return first * second


def counting(*parts: Any) -> Any:
    """In training, with a norm that counts its batches."""
    return nn.Sequential(*parts).train()


CASES: dict[str, Callable[[], Any]] = {
    "line": lambda: (Unpooled(1), torch.randn(2, 2, 8)),
    "plane": lambda: (Unpooled(2), torch.randn(2, 2, 9, 7)),
    "border": lambda: (Unpooled(2, 3, 3, 1), torch.randn(2, 2, 9, 8)),
    "shared places": lambda: (Unpooled(2, 3, 2), torch.randn(1, 2, 7, 7)),
    "volume": lambda: (Unpooled(3), torch.randn(1, 2, 4, 4, 6)),
    "yes": lambda: (Chooses(), torch.rand(3, 4)),
    "no": lambda: (Chooses(), -torch.rand(3, 4)),
    "counts": lambda: (
        counting(nn.Linear(4, 6), nn.BatchNorm1d(6, momentum=None)),
        torch.randn(8, 4),
    ),
    "counts of images": lambda: (
        counting(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3, momentum=None, affine=False)),
        torch.randn(2, 2, 5, 5),
    ),
}


@pytest.mark.parametrize("name", WAYS)
def test_matrices_are_those_of_pytorch(name: str) -> None:
    torch.manual_seed(0)
    assert_as_pytorch(Of(WAYS[name]), (torch.randn(5, 4),), double=True)


@pytest.mark.parametrize("name", CASES)
def test_modules_are_those_of_pytorch(name: str) -> None:
    torch.manual_seed(0)
    module, x = CASES[name]()
    assert_as_pytorch(module, (x,), double=True)


def test_a_norm_that_counts_goes_on_counting() -> None:
    module = CASES["counts"]()[0]
    wse.from_torch(module, torch.ones(8, 4))
    assert module[1].momentum is None
    assert int(module[1].num_batches_tracked) == 0


def test_a_matrix_without_a_root_gives_no_numbers() -> None:
    made = wse.from_torch(Of(lambda w, x: linalg.cholesky(-good(w)) @ x), torch.ones(5, 4))
    assert bool((made.apply(made.params, torch.ones(5, 4).numpy()) != 0).all())
    assert not bool((abs(made.apply(made.params, torch.ones(5, 4).numpy())) >= 0).any())


class Packs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.memory = nn.LSTM(3, 4, batch_first=True)

    def forward(self, x):
        rows = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 3]), batch_first=True)
        return nn.utils.rnn.pad_packed_sequence(self.memory(rows)[0], batch_first=True)[0]


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "packed": (lambda: (Packs(), torch.ones(2, 5, 3)), "Packs packs sequences.*gather"),
    "places of cells": (
        lambda: (nn.AdaptiveMaxPool2d(3, return_indices=True), torch.ones(1, 2, 9, 8)),
        "adaptive_max_pool2d.default gives its values alone",
    ),
    "function": (
        lambda: (Of(lambda w, x: torch.special.erfcx(w)), torch.ones(5, 4)),
        "aten.special_erfcx.default is not mapped.*test_torch_matrices.py",
    ),
    "in a branch": (
        lambda: (
            Of(
                lambda w, x: torch.cond(
                    x.sum() > 0, lambda x: torch.special.erfcx(x), lambda x: x.sin(), (x,)
                )
            ),
            torch.ones(5, 4),
        ),
        "aten.special_erfcx.default is not mapped",
    ),
    "values": (
        lambda: (Of(lambda w, x: torch.linalg.lstsq(w, x)[0]), torch.ones(5, 4)),
        "Of calls torch.linalg.lstsq.*test_torch_matrices.py.*qr",
    ),
    "a branch of values": (
        lambda: (Of(lambda w, x: x if w.sum() > 0 else -x), torch.ones(5, 4)),
        "Of does not export .*test_torch_matrices.py.*torch.where",
    ),
    **{
        f"gradient inside, {name}": (
            lambda take=take: (Of(take), torch.ones(5, 4)),
            "Of takes a gradient inside.*test_torch_matrices.py.*jax.grad",
        )
        for name, take in {
            "func": lambda w, x: torch.func.grad(lambda y: (w @ y.mT).sum())(x),
            "forwards": lambda w, x: torch.func.jvp(torch.sin, (x,), (x,))[1],
            "autograd": lambda w, x: torch.autograd.grad((w.sum() * x).sum(), w)[0],
        }.items()
    },
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_carried_over_is_one_line(name: str) -> None:
    make, rule = REFUSED[name]
    module, x = make()
    with pytest.raises(ValueError, match=rule) as found:
        wse.from_torch(module, x)
    assert "\n" not in str(found.value)
