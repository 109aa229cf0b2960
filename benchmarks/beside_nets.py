"""Small nets in single precision: of what lies beside products, and of products."""

# ruff: noqa: D103  (each function is a net, named as the table names it)

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

CHANCE = np.random.default_rng(0)
IMAGES = ("NHWC", "HWIO", "NHWC")
Net = tuple[Callable[..., Any], Any, Any]


def drawn(*shape: int) -> Any:
    return jnp.asarray(CHANCE.normal(size=shape), jnp.float32)


def weight(*shape: int) -> Any:
    return drawn(*shape) / np.prod(shape[:-1]) ** 0.5


def norm(x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def row(step: Callable[[Any, Any], Any], weights: Any, batch: Any) -> Net:
    """Return a net that takes a step with each weight."""
    return lambda p, x: jnp.mean(reduce(step, p, x) ** 2), weights, batch


def selective_scan(
    turn_by_turn: bool, samples: int = 2, length: int = 256, width: int = 128
) -> Net:
    """Return a net with h_t = a_t h_(t-1) + b_t, of 16 numbers to each feature, as Mamba has it."""

    def joined(one, other):
        return one[0] * other[0], one[1] * other[0] + other[1]

    def turn(state, given):
        state = given[0] * state + given[1]
        return state, state

    def loss(p, x):
        wide = (x @ p["n"])[..., None, :]
        a, b = (nn.sigmoid((x @ p[name])[..., None] * wide) for name in "ab")
        if turn_by_turn:
            given = a.swapaxes(0, 1), b.swapaxes(0, 1)
            seen = lax.scan(turn, jnp.zeros_like(a[:, 0]), given)[1].swapaxes(0, 1)
        else:
            seen = lax.associative_scan(joined, (a, b), axis=1)[1]
        return jnp.mean((seen.mean(-1) @ p["c"]) ** 2)

    shapes = {"a": (64, width), "b": (64, width), "n": (64, 16), "c": (width, 8)}
    params = {name: weight(*shape) for name, shape in shapes.items()}
    return loss, params, drawn(samples, length, 64)


def norms() -> Net:
    weights = [weight(32, 32) for _ in range(6)]
    return row(lambda x, w: x + nn.gelu(norm(x) @ w), weights, drawn(64, 256, 32))


def linear_attention() -> Net:
    def loss(p, x):
        q, k, v = (x @ p[name] for name in "qkv")
        q, k = nn.elu(q) + 1, nn.elu(k) + 1
        sums = jnp.cumsum(k[..., None] * v[..., None, :16], axis=1)
        share = jnp.einsum("btd,btd->bt", q, jnp.cumsum(k, axis=1))
        return jnp.mean((jnp.einsum("btd,btde->bte", q, sums) / share[..., None]) ** 2)

    return loss, {name: weight(64, 64) for name in "qkv"}, drawn(4, 256, 64)


def convolved(x: Any, w: Any, stride: int = 1) -> Any:
    return nn.relu(lax.conv_general_dilated(x, w, (stride,) * 2, "SAME", dimension_numbers=IMAGES))


def max_pools() -> Net:
    def step(x, w):
        window = (1, 3, 3, 1), (1, 1, 1, 1), "SAME"
        return lax.reduce_window(convolved(x, w), -jnp.inf, lax.max, *window)

    return row(step, [weight(3, 3, 8, 8) for _ in range(3)], drawn(8, 32, 32, 8))


def attended(x: Any, p: Any, heads: int = 8) -> Any:
    q, k, v = jnp.split((x @ p["qkv"]).reshape(*x.shape[:2], heads, -1), 3, -1)
    scores = nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5, -1)
    return jnp.einsum("bhqk,bkhd->bqhd", scores, v).reshape(x.shape) @ p["o"]


def narrow_heads() -> Net:
    params = {"qkv": weight(32, 96), "o": weight(32, 32)}
    return lambda p, x: jnp.mean(attended(x, p) ** 2), params, drawn(8, 256, 32)


def fourier() -> Net:
    def step(x, w):
        x = norm(x + jnp.fft.fft2(x, axes=(1, 2)).real / 100)
        return norm(x + nn.gelu(x @ w))

    return row(step, [weight(64, 64) for _ in range(4)], drawn(16, 256, 64))


def bag_of_words() -> Net:
    words = jnp.asarray(CHANCE.integers(0, 20_000, (256, 64)))
    params = {"e": weight(20_000, 64), "o": weight(64, 8)}
    return lambda p, x: jnp.mean((p["e"][x].mean(1) @ p["o"]) ** 2), params, words


def graph_of_nodes() -> Net:
    ends = [jnp.asarray(CHANCE.integers(0, 2000, 16_000)) for _ in range(2)]

    def loss(p, batch):
        x, (start, end) = batch
        for w in p:
            x = 0.3 * nn.relu(jax.ops.segment_sum((x @ w)[start], end, 2000))
        return jnp.mean(x**2)

    return loss, [weight(32, 32) for _ in range(4)], (drawn(2000, 32), ends)


def sorts() -> Net:
    def loss(p, x):
        return jnp.mean((jnp.sort(nn.tanh(x @ p[0]), axis=1) @ p[1]) ** 2)

    return loss, [weight(64, 64), weight(64, 64)], drawn(32, 256, 64)


def concatenations() -> Net:
    weights = [weight(16 + 8 * i, 8) for i in range(8)]
    grown = drawn(64, 256, 16)
    return row(lambda x, w: jnp.concatenate([x, nn.relu(norm(x) @ w)], -1), weights, grown)


def dense(width: int, batch: int) -> Net:
    weights = [weight(width, width) for _ in range(4)]
    return row(lambda x, w: nn.relu(x @ w), weights, drawn(batch, width))


def convolutions(channels: int, size: int) -> Net:
    weights = [weight(3, 3, channels, channels) for _ in range(3)]
    return row(convolved, weights, drawn(4, size, size, channels))


def wide_gpt() -> Net:
    def loss(p, x):
        x = x + attended(norm(x), p)
        return jnp.mean((x + nn.gelu(norm(x) @ p["u"]) @ p["d"]) ** 2)

    sizes = {"qkv": (512, 1536), "o": (512, 512), "u": (512, 2048), "d": (2048, 512)}
    return loss, {name: weight(*size) for name, size in sizes.items()}, drawn(8, 64, 512)


def mixer() -> Net:
    def loss(p, x):
        x = x + (nn.gelu(norm(x).swapaxes(1, 2) @ p[0]) @ p[1]).swapaxes(1, 2)
        return jnp.mean((x + nn.gelu(norm(x) @ p[2]) @ p[3]) ** 2)

    sizes = [(64, 256), (256, 64), (512, 1024), (1024, 512)]
    return loss, [weight(*size) for size in sizes], drawn(8, 64, 512)


def gated() -> Net:
    def loss(p, x):
        return jnp.mean(((nn.silu(x @ p[0]) * (x @ p[1])) @ p[2]) ** 2)

    return loss, [weight(512, 1536), weight(512, 1536), weight(1536, 512)], drawn(512, 512)


def lstm() -> Net:
    def turn(p, state, x):
        hidden, cell = state
        i, f, o, new = jnp.split(x @ p[0] + hidden @ p[1], 4, -1)
        cell = nn.sigmoid(f) * cell + nn.sigmoid(i) * jnp.tanh(new)
        hidden = nn.sigmoid(o) * jnp.tanh(cell)
        return (hidden, cell), hidden

    def loss(p, x):
        zeros = jnp.zeros((64, 512))
        return jnp.mean(lax.scan(partial(turn, p), (zeros, zeros), x.swapaxes(0, 1))[1] ** 2)

    return loss, [weight(512, 2048), weight(512, 2048)], drawn(64, 16, 512)


def autoencoder() -> Net:
    sizes = [(1024, 512), (512, 64), (64, 512), (512, 1024)]
    return row(lambda x, w: nn.gelu(x @ w), [weight(*size) for size in sizes], drawn(512, 1024))


def strided() -> Net:
    weights = [weight(4, 4, 32, 64), weight(4, 4, 64, 128)]
    return row(partial(convolved, stride=2), weights, drawn(16, 32, 32, 32))


BESIDE: dict[str, Callable[[], Net]] = {
    "selective scan, in parallel": partial(selective_scan, turn_by_turn=False),
    "selective scan, turn by turn": partial(selective_scan, turn_by_turn=True),
    "norms, 32 wide": norms,
    "linear attention": linear_attention,
    "max pools": max_pools,
    "attention, heads 4 wide": narrow_heads,
    "Fourier mixing": fourier,
    "bag of words": bag_of_words,
    "graph of 2000 nodes": graph_of_nodes,
    "sorting": sorts,
    "concatenations": concatenations,
}
PRODUCTS: dict[str, Callable[[], Net]] = {
    "dense 512, batch 512": partial(dense, 512, 512),
    "dense 1024, batch 256": partial(dense, 1024, 256),
    "dense 256, batch 2048": partial(dense, 256, 2048),
    "convolutions, 64 channels": partial(convolutions, 64, 32),
    "convolutions, 128 channels": partial(convolutions, 128, 16),
    "GPT, 512 wide": wide_gpt,
    "mixer": mixer,
    "gated dense": gated,
    "LSTM, 512 wide": lstm,
    "autoencoder": autoencoder,
    "strided convolutions": strided,
}
