"""State spaces in closed form: Mamba 1 and 2.

Of a block with h features, d inner ones, n states of each and k taps, on s tokens,

    Mamba 1  parameters  3 h d + d (k + r + 2 n + r + n), and biases, norms
             multiplies  s (3 h d + d (k + 2 r + 3 n)), r numbers that make the steps of time
    Mamba 2  parameters  h (2 d + 2 g n + H) + (d + 2 g n) k + d h, H heads in g groups
             multiplies  as many for each token, and of c chunks of l tokens
                         c l (H l n + l d + 2 d n) + (c + 1)^2 d n

Mamba 1 reads its states token by token: 5 s d n operations more are done number by number (decay
and what enters, each made and applied, and their sum), which is no product and not counted.
Sources: Gu and Dao, arXiv 2312.00752; Dao and Gu, arXiv 2405.21060; their classes in transformers.
"""

from dataclasses import dataclass
from typing import Any

from wse._numbers import check_depth, positive
from wse.models.shapes.stack import CORRECT
from wse.models.shapes.workload import Layer, Workload

ONE_BY_ONE = 5  # derived: operations of one state of one channel at one token, products left out


@dataclass(frozen=True)
class Recurrent:
    """A stack of state spaces between an embedding and a head.

    Attributes:
        hidden_size: h.
        num_hidden_layers: blocks.
        inner: d.
        states: n, of each inner feature.
        taps: k, of the filter along the tokens.
        vocab_size: words.
        max_sequence_length: s.
        rank: r, numbers per token that make the steps of time; 0: Mamba 2.
        heads: H, of Mamba 2; 0: Mamba 1.
        groups: of heads that share what enters and leaves their states.
        chunk: tokens that are multiplied at once.
        shared: the head's weights are the embedding's.
        bias: of the products that enter and leave.
        taps_bias: of the filter.
        evened: norms without parameters of what the steps are made of (Falcon Mamba).
        nonlinearity: behind the filter.

    Raises:
        ValueError: a size that is not positive, or heads or groups that do not divide.
    """

    hidden_size: int
    num_hidden_layers: int
    inner: int
    states: int
    taps: int
    vocab_size: int
    max_sequence_length: int
    rank: int = 0
    heads: int = 0
    groups: int = 1
    chunk: int = 256
    shared: bool = False
    bias: bool = False
    taps_bias: bool = True
    evened: bool = False
    nonlinearity: str = "silu"

    def __post_init__(self) -> None:
        for name, size in vars(self).items():
            if type(size) is int and name not in ("rank", "heads"):
                positive(name, size, CORRECT)
        check_depth("num_hidden_layers", self.num_hidden_layers)
        for what, many, whole in (("heads", self.heads, self.inner),
            ("groups", self.groups, self.heads), ("groups", self.groups, self.inner)):  # fmt: skip
            if self.heads and whole % many:
                raise ValueError(
                    f"{what} of the state space is {many}; it must divide {whole}: change one"
                )

    @property
    def filtered(self) -> int:
        """Features that the filter reads: of Mamba 2 also what enters and leaves the states."""
        return self.inner + (2 * self.groups * self.states if self.heads else 0)

    @property
    def one_by_one(self) -> int:
        """Operations of a sample that are no products: of Mamba 1's states, token by token."""
        one = self.max_sequence_length * self.inner * self.states
        return 0 if self.heads else ONE_BY_ONE * one * self.num_hidden_layers


def recurrent(name: str, net: Recurrent) -> Workload:
    """The layers of a state space.

    >>> net = Recurrent(768, 24, 1536, 16, 4, 50280, 2048, rank=48, shared=True)
    >>> recurrent("Mamba 130M", net).parameters
    129135360
    """
    s, h, v = net.max_sequence_length, net.hidden_size, net.vocab_size
    still: dict[str, Any] = {"multiplies": 0, "kept": 0, "features": h, "sparsifiable": False}
    blocks = [x for i in range(net.num_hidden_layers) for x in _block(net, f"block_{i}")]
    head: dict[str, Any] = {"multiplies": s * h * v, "kept": s * h, "features": h}
    layers = (
        Layer("embedding", s, s * h, v * h, "lookup", **still),
        *blocks,
        Layer("norm", s * h, s * h, h, "norm", **still),
        Layer("head", s * h, s * v, v * h, sparsifiable=False, shared=net.shared, **head),
    )
    return Workload(name, layers, s, s, tokens=s, origin=("recurrent", net))


def _block(net: Recurrent, where: str) -> list[Layer]:
    s, h, d, n, k, r = (net.max_sequence_length, net.hidden_size, net.inner, net.states, net.taps,
        net.rank)  # fmt: skip
    wide = net.filtered
    entering = d + wide + net.heads

    def layer(
        name: str, sizes: tuple[int, int], count: int, products: int, kept: int, **more: Any
    ) -> Layer:
        common: dict[str, Any] = {"features": h, "block": where, **more}
        inside, leaves = (s * size for size in sizes)
        own: dict[str, Any] = {"multiplies": products, "kept": s * kept, **common}
        return Layer(f"{where}.{name}", inside, leaves, count, **own)

    still: dict[str, Any] = {"sparsifiable": False}
    fused: dict[str, Any] = {**still, "kind": "states"}
    first = [
        layer("in", (h, entering), h * (entering + 1) + entering * net.bias, s * h * entering, h),
        layer("filter", (wide, wide), wide * (k + net.taps_bias), s * wide * k, wide, **still),
    ]
    if net.heads:
        met = 2 * d + wide + net.heads
        states = [layer("states", (met, d), 3 * net.heads + d, _chunked(net), met, **fused)]
    else:
        read = r + 2 * n
        states = [
            layer("read", (d, read), d * read, s * d * read, d),
            layer("step", (r, d), r * d + d, s * r * d, r),
            layer("states", (3 * d + 2 * n, d), d * n + d, s * d * n, 3 * d + 2 * n, **fused),
        ]
    return [*first, *states, layer("out", (d, h), d * h + h * net.bias, s * d * h, d)]


def _chunked(net: Recurrent) -> int:
    """Products of a block of Mamba 2: within chunks, of the states of each, and across them."""
    d, n, long = net.inner, net.states, net.chunk
    chunks = -(-net.max_sequence_length // long)
    within = chunks * long * (long * (net.heads * n + d) + 2 * d * n)
    return within + (chunks + 1) ** 2 * d * n
