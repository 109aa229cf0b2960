"""Modules of PyTorch as JAX: outputs and gradients are PyTorch's own; refusals are one line.

`make torch` runs this in an environment that has PyTorch.
"""

from typing import Any

import jax
import numpy as np
import pytest

import wse
from wse.models import own

torch = pytest.importorskip("torch", reason="the extra torch is not installed: make torch runs it")
from validation.wse.as_pytorch import assert_as_pytorch  # noqa: E402

nn, functional = torch.nn, torch.nn.functional
pytestmark = [pytest.mark.validation, pytest.mark.filterwarnings("ignore")]


class Attends(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.own = nn.MultiheadAttention(8, 2, batch_first=True)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)

    def forward(self, x):
        return self.layer(self.own(x, x, x, need_weights=False)[0])


class Remembers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.LSTM(8, 6, 2, bidirectional=True, batch_first=True)
        self.second = nn.GRU(12, 4, batch_first=True)

    def forward(self, x):
        return self.second(self.first(x)[0])[0]


class Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(11, 8), nn.Linear(8, 11, bias=False)
        self.head.weight = self.words.weight

    def forward(self, at):
        return self.head(torch.tanh(self.words(at)))


class Neighbours(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 6), nn.Linear(6, 3)

    def forward(self, x, edges):
        h = torch.relu(self.first(x))
        total = torch.zeros(len(x), 6, dtype=h.dtype).index_add(0, edges[1], h[edges[0]])
        return self.second(total)


class First(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 8)


class Held(First):
    """Gradients that PyTorch stops: what is detached, made under no_grad, frozen, or padding."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(5, 8, padding_idx=1)
        self.frozen = nn.Linear(8, 8).requires_grad_(False)
        self.plain = torch.ones(8).double()  # neither parameter nor buffer

    def forward(self, x):
        h = self.first(x)
        with torch.no_grad():
            scale = torch.tanh(self.first(x))
        h = self.frozen(h * scale + self.words(torch.tensor([0, 1, 1])))
        return h + (torch.round(h) - h).detach() + self.plain.detach().to(h.dtype)


class Edges(First):
    """Bounds that are met, a norm of zero, a row that is masked out, extremes shared by several."""

    def forward(self, x):
        h = torch.relu(self.first(x)) * torch.tensor([0, 1, 1, 0, 1, 1, 1, 1], dtype=x.dtype)
        h = h.clamp(min=0) + functional.relu6(h) + functional.normalize(h[:, :1] * 0)
        mask = torch.tensor([[True, True, False], [False] * 3, [False, True, True]])
        h = h + functional.scaled_dot_product_attention(h[None], h[None], h[None], mask)[0]
        to = torch.tensor([[0, 0, 0, 1, 1, 5, 5, 5]]).expand(3, 8)
        return h.scatter_reduce(1, to, h.round(decimals=0) + h - h.detach(), "amax")


class Spectrum(First):
    def forward(self, x):
        return torch.fft.irfft(torch.fft.rfft(self.first(x)) ** 2, norm="ortho")


class Places(First):
    def forward(self, x):
        h = self.first(x)[None, None]
        h = functional.interpolate(h, (5, 9), mode="bicubic", antialias=True)
        grid = torch.linspace(-1.2, 1.2, 24, dtype=x.dtype).reshape(1, 3, 4, 2)
        h = functional.grid_sample(h, grid, align_corners=False)
        for mode, beyond, corners in (
            ("bicubic", "zeros", True),
            ("bicubic", "reflection", False),
            ("bilinear", "reflection", True),
            ("nearest", "reflection", False),
        ):
            h = h + functional.grid_sample(h, 1.7 * grid, mode, beyond, align_corners=corners)
        h = functional.adaptive_max_pool2d(h, (2, 3)) + h[:, :, 1:].amax((2, 3), keepdim=True)
        h[h > 1] = 0
        return h


class Kinds(First):
    """Sums of what could not hold them, in the kind of number that is asked for."""

    def forward(self, x):
        h = self.first(x)
        small = (x * 0 + 40000).half()
        small_ints = (x * 0 + 100).to(torch.int8)
        h = h + 1e-6 * small.sum(1, keepdim=True, dtype=torch.float32)
        h = h + 1e-6 * small.cumsum(1, dtype=torch.float32) + small_ints.cumsum(1)
        mask = torch.arange(8) % 3 == 0
        h[:, mask] = 2.0
        return h.to(x.dtype) + small.mean(1, keepdim=True, dtype=torch.float32).to(x.dtype)


class Far(First):
    """Activations far from zero and at it, where a branch that is not taken is infinite."""

    def forward(self, x):
        h = self.first(x) * torch.tensor([0, 1, 30, 3000, -1, -30, -3000, 0], dtype=x.dtype)
        h = h.clamp(-2000, 2000)
        total = functional.softplus(h) + functional.softplus(h, 2.0, 5.0) + functional.mish(h)
        total = total + functional.elu(h, 0.5) + functional.celu(h, 2.0) + functional.selu(h)
        least = torch.arange(8).to(torch.uint8).topk(3, largest=False)[0].sum()
        return (
            total
            + functional.logsigmoid(h)
            + (h[:, :1] * 0 + 1).expand(3, 2).std(1)[:, None]
            + least
        )


class Straight(First):
    """An estimator whose backward pass is its own."""

    class Signs(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.sign()

        @staticmethod
        def backward(ctx, g):
            return g

    def forward(self, x):
        return self.Signs.apply(self.first(x))


class ByHand(First):
    """A backward pass that is the derivative."""

    class Cubed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.save_for_backward(x)
            ctx.factor = factor
            return factor * x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * ctx.factor * x**2, None

    def forward(self, x):
        return self.Cubed.apply(self.first(x), 0.5)


class Rooted(First):
    """By hand too, and defined above zero alone, as at no normal numbers."""

    class Root(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x.sqrt())
            return x.sqrt()

        @staticmethod
        def backward(ctx, g):
            return g / (2 * ctx.saved_tensors[0])

    def forward(self, x):
        return self.Root.apply(self.first(x) ** 2 + 1)


class Angled(First):
    """Another backward pass, of a function that is defined near zero alone."""

    class Angle(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, mask):
            return x.acos() * mask

        @staticmethod
        def backward(ctx, g):
            return g, None

    def forward(self, x):
        h = self.first(x)
        return self.Angle.apply(torch.tanh(h), torch.ones(h.shape, dtype=torch.int32))


class Turned(First):
    def forward(self, x):
        h = self.first(x)
        h.register_hook(lambda g: -g)
        return h


class Hashed(First):
    def forward(self, x):
        return self.first(x) + (torch.arange(8) * 2654435761) % 97


class Middle(First):
    def forward(self, x):
        return torch.nanmedian(self.first(x), dim=1)[0]


class Draws(First):
    def forward(self, x):
        return self.first(x) * torch.rand_like(x)


class Ranks(First):
    """Places that are read, and those that are returned."""

    def forward(self, x):
        h = self.first(x)[0]
        return h[torch.cummax(h, 0)[1]]


class Counts(First):
    def forward(self, x):
        return [y.sum() for y in self.first(x) if (y > 0).nonzero().shape[0] > 2]


class Strided(nn.Module):
    def forward(self, x):
        return torch.as_strided(x.T, (2, 2), (1, 2))


class Branches(First):
    def forward(self, x):
        return self.first(x) if x.sum() > 0 else -self.first(x)


def image(*size: int):
    return torch.randn(2, *size)


class Placed(nn.Module):
    def __init__(self):
        super().__init__()
        self.places = nn.Parameter(torch.ones(8, 4))
        self.dense = nn.Linear(4, 4)

    def forward(self, x):
        return self.dense(x + self.places)


class Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.EmbeddingBag(11, 4, mode="mean", padding_idx=2)
        self.sum = nn.EmbeddingBag(11, 4, mode="sum", include_last_offset=True)
        self.most = nn.EmbeddingBag(11, 4, mode="max", padding_idx=2)

    def forward(self, at, starts):
        weights = torch.sin(at.to(self.sum.weight.dtype))
        ends = torch.cat([starts, starts.new_tensor([at.shape[0]])])
        rows = self.sum(at.reshape(-1), ends, per_sample_weights=weights)
        rows = rows + torch.sin(self.most(at, starts))
        return self.mean(at, starts) + rows + self.mean(at.reshape(3, 3)).sum()


CASES = {
    "dense": lambda: (
        nn.Sequential(nn.Linear(8, 5), nn.GELU(), nn.Linear(5, 4), nn.SiLU(), nn.LayerNorm(4)),
        (torch.randn(3, 8),),
    ),
    "functions": lambda: (
        nn.Sequential(nn.Linear(8, 8), nn.RMSNorm(8), nn.Mish(), nn.PReLU(), nn.Softplus()),
        (torch.randn(3, 8),),
    ),
    "convolutions": lambda: (
        nn.Sequential(
            nn.Conv2d(4, 8, 3, stride=2, padding=1, groups=2),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Conv2d(8, 8, 3, dilation=2, padding=2),
            nn.GroupNorm(4, 8),
            nn.ConvTranspose2d(8, 6, 3, stride=2, padding=1, output_padding=1, groups=2),
            nn.LeakyReLU(),
            nn.ConvTranspose2d(6, 3, (3, 2), dilation=2),
        ).eval(),
        (image(4, 13, 12),),
    ),
    "pools": lambda: (
        nn.Sequential(
            nn.Conv2d(4, 4, 1),
            nn.MaxPool2d(3, 2, 1, ceil_mode=True),
            nn.AvgPool2d(2, 2, padding=1, ceil_mode=True),
            nn.AdaptiveAvgPool2d((2, 3)),
        ),
        (image(4, 13, 12),),
    ),
    "apart": lambda: (
        nn.Sequential(nn.Conv2d(4, 4, 1), nn.MaxPool2d(3, 2, 1, dilation=2, ceil_mode=True)),
        (image(4, 13, 12),),
    ),
    "factors": lambda: (
        nn.Sequential(
            nn.Conv2d(4, 4, 1), nn.Upsample(scale_factor=1.7), nn.Upsample(scale_factor=(0.6, 2))
        ),
        (image(4, 7, 9),),
    ),
    "by hand": lambda: (ByHand(), (torch.randn(3, 8),)),
    "by hand, above zero": lambda: (Rooted(), (torch.randn(3, 8),)),
    "far": lambda: (Far(), (torch.randn(3, 8),)),
    "kinds": lambda: (Kinds(), (torch.randn(3, 8),)),
    "sizes": lambda: (
        nn.Sequential(
            nn.Conv2d(4, 4, 1),
            nn.Upsample(scale_factor=2, mode="bilinear"),
            nn.Upsample(scale_factor=2, mode="nearest"),
            nn.Upsample(size=(9, 11), mode="bicubic"),
            nn.ReflectionPad2d(2),
            nn.PixelShuffle(2),
        ),
        (image(4, 5, 6),),
    ),
    "volumes": lambda: (
        nn.Sequential(nn.Conv3d(2, 3, 3), nn.MaxPool3d(2), nn.ConvTranspose3d(3, 2, 2, 2)),
        (image(2, 7, 8, 9),),
    ),
    "attention": lambda: (Attends(), (torch.randn(2, 5, 8),)),
    "shared": lambda: (Shared(), (torch.randint(0, 11, (2, 5)),)),
    "memory": lambda: (Remembers(), (torch.randn(2, 5, 8),)),
    "held": lambda: (Held(), (torch.randn(3, 8),)),
    "edges": lambda: (Edges(), (torch.randn(3, 8),)),
    "bags": lambda: (Bags(), (torch.randint(0, 11, (9,)), torch.tensor([0, 2, 2, 7]))),
    "spectrum": lambda: (Spectrum(), (torch.randn(3, 8),)),
    "places": lambda: (Places(), (torch.randn(3, 8),)),
    "graph": lambda: (Neighbours(), (torch.randn(5, 8), torch.randint(0, 5, (2, 9)))),
}


@pytest.mark.parametrize("double", [True, False], ids=["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_outputs_and_gradients_are_those_of_pytorch(name: str, double: bool) -> None:
    torch.manual_seed(0)
    module, inputs = CASES[name]()
    assert_as_pytorch(module, inputs, double)


def test_a_mapping_names_the_inputs() -> None:
    given = {"target": torch.randn(2, 4, 8), "input": torch.randn(2, 4, 8)}
    made = wse.from_torch(nn.MSELoss(reduction="none"), given | {"input": 2 * given["target"]})
    arrays = {name: x.numpy() for name, x in given.items()}
    wanted = nn.MSELoss(reduction="none")(**given)
    np.testing.assert_allclose(made.apply(made.params, **arrays), wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("given", "named", "rule"),
    [
        ((np.ones((1, 4)),), {}, "inputs are 1x4; the module was read with 8x4"),
        ((2.0,), {}, "inputs are one number"),
        ((np.ones((8, 4)), np.ones(3)), {}, "inputs are 8x4, 3"),
        ((), {}, "inputs are none"),
        ((), {"z": np.ones((8, 4))}, "inputs are z of 8x4"),
    ],
)
def test_what_would_be_spread_over_the_example_is_refused(given, named, rule) -> None:
    made = wse.from_torch(Placed(), torch.ones(8, 4))
    with pytest.raises(ValueError, match=rule):
        made.apply(made.params, *given, **named)
    with pytest.raises(ValueError, match=r"params lack 'dense\.bias'"):
        made.apply({k: x for k, x in made.params.items() if k != "dense.bias"}, np.ones((8, 4)))


def test_integers_of_64_bits_are_not_cut_in_silence() -> None:
    made = wse.from_torch(Shared(), torch.zeros(2, 5, dtype=torch.long))
    with pytest.raises(ValueError, match="input 0 holds 4294967296; JAX has integers of 32 bits"):
        made.apply(made.params, np.full((2, 5), 2**32))
    module = First()
    module.register_buffer("far", torch.tensor([2**40]))
    module.forward = lambda x: module.first(x) + module.far % 97
    with pytest.raises(ValueError, match="buffer 'far' holds 1099511627776; JAX has integers"):
        wse.from_torch(module, torch.ones(2, 8))


def test_one_input_needs_no_tuple_and_a_target_has_the_shape_of_what_is_given() -> None:
    module, x, y = Placed(), torch.randn(8, 4), torch.randn(8, 4)
    made = wse.from_torch(module, x)
    wanted = nn.functional.mse_loss(module(x), y).item()
    for given in (x.numpy(), (x.numpy(),), [x.numpy()]):
        assert float(made.loss(made.params, (given, y.numpy()))) == pytest.approx(wanted, rel=1e-5)
    with pytest.raises(ValueError, match=r"gives \(8, 4\), and is compared with \(4,\)"):
        made.loss(made.params, (x.numpy(), y.numpy()[0]))


def test_a_module_without_numbers_gives_shapes(tmp_path) -> None:
    with torch.device("meta"):
        module, x = Placed(), torch.ones(8, 4)
        normed = nn.BatchNorm1d(4).eval()
    made = wse.from_torch(module, x)
    assert wse.check(made.loss, made.params, made.batch).verdict == "native"
    assert made.params["dense.weight"].shape == (4, 4)
    with pytest.raises(ValueError, match="buffer 'running_mean' is on the device meta"):
        wse.from_torch(normed, x)
    safetensors = pytest.importorskip("safetensors.torch", reason="safetensors writes the file")
    safetensors.save_file(Placed().state_dict(), str(tmp_path / "w.safetensors"))
    with pytest.raises(ValueError, match="is on the device meta, which holds no numbers"):
        wse.from_torch(module, x, weights=tmp_path / "w.safetensors")


@pytest.mark.parametrize("example", [[torch.ones(2, 8)], 3, (torch.ones(2, 8), None)])
def test_an_example_that_is_no_tensor_is_one_line(example) -> None:
    with pytest.raises(ValueError, match=r"example holds a .*; it must be a tensor"):
        wse.from_torch(nn.Linear(8, 2), example)


def test_no_grad_around_it_changes_nothing() -> None:
    with torch.no_grad():
        made = wse.from_torch(nn.Linear(8, 2), image(8))
    batch = ((np.ones((2, 8), "f4"),), np.zeros((2, 2), "f4"))
    assert np.abs(jax.grad(made.loss)(made.params, batch)["weight"]).min() > 0


def test_a_module_is_checked_and_estimated() -> None:
    made = wse.from_torch(nn.Sequential(nn.Linear(8, 5), nn.Tanh(), nn.Linear(5, 2)), image(8))
    assert wse.check(made.loss, made.params, made.batch).verdict == "native"
    assert wse.estimate(made.loss, made.params, made.batch).workload.parameters == 57


PROGRAM = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.first, self.last = nn.Conv2d(3, width, 3), nn.Linear(width, 2)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        x = torch.sort(self.first(x).mean((2, 3)))[0]
        return self.last(self.drop(x))


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(11, 4)

    def forward(self, tokens):
        return self.words(tokens) if tokens.ndim == 2 else None


class Branches(Net):
    def forward(self, x):
        return super().forward(x if x.sum() > 0 else -x)


class Needs(Net):
    def __init__(self, width):
        super().__init__(width)


def made():
    return Needs(6)


ready = Net(5)
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "model.py").write_text(PROGRAM)
    return f"{tmp_path}/model.py"


@pytest.mark.parametrize(
    ("name", "example", "parameters"),
    [
        ("Net", "2x3x8x8", 4 * 28 + 10),
        ("ready", "2x3x8x8", 5 * 28 + 12),
        ("made", "2x3x8x8", 6 * 28 + 14),
        ("Words", "2x5:int", 44),
    ],
)
def test_a_file_with_a_module_is_checked_by_its_own_lines(program, name, example, parameters):
    made = own.traceable(f"{program}:{name}", example)
    report = wse.check(made.loss, made.params, made.batch)
    found = {(x.use.operation, x.line) for x in report.findings}
    assert ("sort", "model.py:13") in found or name == "Words"
    assert {x.line.partition(":")[0] for x in report.of("unknown")} <= {"model.py"}
    assert wse.estimate(made.loss, made.params, made.batch).workload.parameters == parameters


@pytest.mark.parametrize(
    ("name", "example", "rule"),
    [
        ("Net", "2x4x8x8", "Net does not take an example of 2x4x8x8 .*channels"),
        ("Branches", "2x3x8x8", "Branches does not export .*torch.where"),
        ("Needs", "2x3x8x8", "Needs needs width"),
        ("Nett", "2x3x8x8", "did you mean 'Net'"),
    ],
)
def test_a_file_that_is_wrong_is_one_line(program, name, example, rule, capfd):
    with pytest.raises(ValueError, match=rule) as found:
        own.traceable(f"{program}:{name}", example)
    assert "\n" not in str(found.value)
    assert "".join(capfd.readouterr()) == ""


def test_a_named_module_has_batch_norm_as_it_trains_and_no_dropout(tmp_path) -> None:
    (tmp_path / "normed.py").write_text(
        "from torch import nn\n"
        "made = nn.Sequential(nn.Linear(8, 5), nn.BatchNorm1d(5), nn.Dropout(0.5))\n"
    )
    made = own.traceable(f"{tmp_path / 'normed.py'}:made", "64x8")
    draw = np.random.default_rng(0)
    x, y = draw.normal(3, 2, size=(64, 8)).astype("f4"), np.zeros((64, 5), "f4")
    # Without its mean and over its spread: the mean square is one.
    np.testing.assert_allclose(made.loss(made.params, ((x,), y)), 1.0, rtol=1e-3)
    shown = wse.from_torch(nn.Linear(8, 2), image(8))
    assert repr(shown) == "FromTorch(18 parameters; of 2x8)"


def test_weights_of_a_file_are_those_of_the_module(program, tmp_path) -> None:
    safetensors = pytest.importorskip("safetensors.torch", reason="safetensors writes the file")
    torch.manual_seed(1)
    trained, fresh = Shared(), Shared()
    path = tmp_path / "weights.safetensors"
    safetensors.save_model(trained, str(path))  # of two names of one tensor it keeps one
    tokens = torch.randint(0, 11, (2, 5))
    made = wse.from_torch(fresh, tokens, weights=path)
    wanted = trained(tokens).detach().numpy()
    np.testing.assert_allclose(made.apply(made.params, tokens.numpy()), wanted, rtol=1e-5)
    net = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4)).eval()
    net[1].running_mean += 3
    safetensors.save_file(net.bfloat16().state_dict(), str(path))
    other = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4)).eval()
    made = wse.from_torch(other, image(8), weights=path)
    np.testing.assert_allclose(
        made.apply(made.params, np.ones((2, 8), "f4")),
        net.float()(torch.ones(2, 8)).detach().numpy(),
        rtol=1e-5,
    )


@pytest.mark.parametrize(
    ("state", "rule"),
    [
        ({"wieght": (2, 8)}, "has 'wieght', which the model has not; .* 'weight'"),
        ({"weight": (2, 9)}, r"has 'weight' of \(2, 9\); the model has \(2, 8\)"),
        ({"weight": (2, 8)}, "lacks 'bias' and 0 more of 2"),
    ],
)
def test_weights_of_another_model_are_one_line(tmp_path, state, rule: str) -> None:
    safetensors = pytest.importorskip("safetensors.torch", reason="safetensors writes the file")
    path = tmp_path / "weights.safetensors"
    safetensors.save_file({key: torch.zeros(size) for key, size in state.items()}, str(path))
    with pytest.raises(ValueError, match=rule):
        wse.from_torch(nn.Linear(8, 2), image(8), weights=path)


@pytest.mark.parametrize(
    ("module", "rule"),
    [
        (Middle(), r"aten.nanmedian.dim is not mapped .*test_from_torch.py"),
        (Draws(), r"draws random numbers .*test_from_torch.py"),
        (Strided(), "as_strided.default counts in the memory .*test_from_torch.py.*contiguous"),
        (Ranks(), r"aten.cummax.default gives its values alone .*test_from_torch.py.*: use the"),
        (Straight(), r"Function Straight.Signs; its own backward pass is not .*detach"),
        (Angled(), r"Function Angled.Angle; its own backward pass is not .*detach"),
        (Turned(), "register_hook; its own backward pass is not .*take the hook away"),
        (Hashed(), r"an integer beyond 32 bits .*test_from_torch.py.*jax_enable_x64"),
        (Counts(), "Counts does not export .*torch.where"),
        (Branches(), "Branches does not export .*torch.where"),
        (nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5)).train(), "module.eval()"),
        ("weights.pt", "a .pt is not opened, since a pickle"),
        (3, "it must be a torch.nn.Module"),
    ],
    ids=[
        *("unmapped", "draws", "strided", "ranks"),
        *("straight", "angled", "hook", "hash", "counts"),
        *("branch", "chance", "pickle", "number"),
    ],
)
def test_what_cannot_be_carried_over_is_one_line(module, rule: str) -> None:
    with pytest.raises(ValueError, match=rule) as found:
        wse.from_torch(module, torch.ones(2, 8))
    assert "\n" not in str(found.value)


class Resized(nn.Module):
    """A filter, whose result is resized."""

    def __init__(self, *size: int, **how: Any):
        super().__init__()
        self.first, self.size, self.how = nn.Conv2d(4, 6, 1), size, how

    def forward(self, x):
        return functional.interpolate(self.first(x), self.size, **self.how)


def smooth(*size: int, mode: str = "bilinear") -> Resized:
    return Resized(*size, mode=mode, antialias=True)


def covered(*size: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(4, 6, 1), nn.AdaptiveAvgPool2d(size))


CHANGES = [
    *(Resized(32, 32, mode=mode) for mode in ("nearest", "bilinear", "bicubic")),
    *(smooth(*size) for size in ((3, 5), (8, 9), (1, 1), (20, 4))),
    *(smooth(*size, mode="bicubic") for size in ((3, 5), (1, 2), (11, 8))),
    *(covered(*size) for size in ((3, 5), (8, 9), (1, 1), (8, 2), (11, 4))),
]


@pytest.mark.parametrize("number", range(len(CHANGES)))
def test_a_resize_has_no_products(number: int) -> None:
    module, x = CHANGES[number], torch.randn(2, 4, 8, 9)
    made = wse.from_torch(module, x)
    flops = wse.estimate(made.loss, made.params, made.batch).workload.forward_flops
    assert flops == 2 * 4 * 6 * 8 * 9
    assert_as_pytorch(module, (x,), True)
