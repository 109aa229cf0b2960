"""A table of training functions: every executor must give on them what plain JAX gives."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx


@dataclass(frozen=True)
class Case:
    """One training function, its parameters and a batch of 8 samples, all in float64."""

    loss: Callable[..., Any]
    params: Any
    batch: Any
    has_aux: bool = False
    zero: tuple[str, ...] = ()  # parameters whose true gradient is zero: the rest is rounding


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def doubled(tree: Any) -> Any:
    return jax.tree.map(lambda x: np.asarray(x, np.float64), tree)


def mean_square(x):
    return jnp.mean(x**2)


def of_module(
    module: nnx.Module, batch: Any, loss=lambda y, batch: mean_square(y - batch[1])
) -> Case:
    graph, params = nnx.split(module)
    return Case(lambda p, b: loss(nnx.merge(graph, p)(b[0]), b), doubled(params), batch)


class Dense(nnx.Module):
    def __init__(self, sizes, rngs):
        self.layers = nnx.List(nnx.Linear(n, m, rngs=rngs) for n, m in pairwise(sizes))

    def __call__(self, x):
        for layer in self.layers[:-1]:
            x = nnx.swish(layer(x))
        return nnx.sigmoid(self.layers[-1](x))


def dense() -> Case:
    module = Dense([20, 12, 12, 12, 2], nnx.Rngs(0))
    return of_module(module, (normal(1, 8, 20), normal(2, 8, 2)))


class Convolutional(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Conv(1, 4, (5,), rngs=rngs)
        self.second = nnx.Conv(4, 8, (3,), strides=2, feature_group_count=2, rngs=rngs)
        self.norm = nnx.LayerNorm(8, rngs=rngs)
        self.end = nnx.Linear(8 * 8, 2, rngs=rngs)

    def __call__(self, x):
        x = nnx.relu(self.first(x))
        x = nnx.gelu(self.norm(self.second(x)))
        return self.end(x.reshape(len(x), -1))


def convolutional() -> Case:
    return of_module(Convolutional(nnx.Rngs(0)), (normal(1, 8, 16, 1), normal(2, 8, 2)))


class Block(nnx.Module):
    def __init__(self, n, m, rngs):
        self.conv = nnx.Conv(n, m, (3, 3), rngs=rngs)
        self.norm = nnx.BatchNorm(m, rngs=rngs)

    def __call__(self, x):
        return nnx.relu(self.norm(self.conv(x)))


class UNet(nnx.Module):
    def __init__(self, rngs):
        self.down = nnx.List([Block(2, 4, rngs), Block(4, 6, rngs)])
        self.middle = Block(6, 8, rngs)
        self.widen = nnx.List([nnx.ConvTranspose(6, 4, (2, 2), strides=2, rngs=rngs)])
        self.widen.append(nnx.ConvTranspose(8, 6, (2, 2), strides=2, rngs=rngs))
        self.up = nnx.List([Block(8, 4, rngs), Block(12, 6, rngs)])
        self.end = nnx.Conv(4, 2, (1, 1), rngs=rngs)

    def __call__(self, x):
        skips = []
        for block in self.down:
            x = block(x)
            skips.append(x)
            x = nnx.avg_pool(x, (2, 2), (2, 2))
        x = self.middle(x)
        for i in (1, 0):
            x = self.up[i](jnp.concatenate([self.widen[i](x), skips[i]], axis=-1))
        return self.end(x)


def unet() -> Case:
    """Batch statistics travel in the batch and come back as auxiliary outputs."""
    graph, params, rest = nnx.split(UNet(nnx.Rngs(0)), nnx.Param, ...)

    def loss(params, batch):
        statistics, x, y = batch
        module = nnx.merge(graph, params, statistics, copy=True)
        value = mean_square(module(x) - y)
        return value, nnx.state(module, nnx.BatchStat)

    batch = (doubled(rest), normal(1, 8, 8, 8, 2), normal(2, 8, 8, 8, 2))
    before_norm = ("conv.bias",)
    return Case(loss, doubled(params), batch, has_aux=True, zero=before_norm)


def _block(p, x):
    def norm(x, p):
        x = x - x.mean(-1, keepdims=True)
        return x * jax.lax.rsqrt((x**2).mean(-1, keepdims=True) + 1e-6) * p["scale"]

    y = norm(x, p["norm1"])
    q, k, v = (
        (y @ p["attention"][n]).reshape(*y.shape[:2], 2, -1) for n in ("query", "key", "value")
    )
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
    mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    scores = jax.nn.softmax(jnp.where(mask, scores, -1e30))
    y = jnp.einsum("bhqk,bkhd->bqhd", scores, v).reshape(x.shape)
    x = x + y @ p["attention"]["out"]
    y = jax.nn.gelu(norm(x, p["norm2"]) @ p["wide"]["kernel"] + p["wide"]["bias"])
    return x + y @ p["narrow"]["kernel"]


def _block_params(seed, width, *stack):
    attention = {n: normal(seed + i, *stack, width, width) / 4 for i, n in enumerate("qkvo")}
    names = dict(zip("qkvo", ("query", "key", "value", "out"), strict=True))
    return {
        "norm1": {"scale": np.ones((*stack, width))},
        "attention": {names[n]: x for n, x in attention.items()},
        "norm2": {"scale": np.ones((*stack, width))},
        "wide": {
            "kernel": normal(seed + 5, *stack, width, 4 * width) / 4,
            "bias": np.zeros((*stack, 4 * width)),
        },
        "narrow": {"kernel": normal(seed + 6, *stack, 4 * width, width) / 8},
    }


def _tokens():
    return np.random.default_rng(3).integers(0, 11, (8, 7))


def _text_loss(logits, tokens):
    chosen = jax.nn.log_softmax(logits[:, :-1])
    return -jnp.mean(jnp.take_along_axis(chosen, tokens[:, 1:, None], -1))


def gpt() -> Case:
    """Tied embeddings, dropout with a key per sample, remat around each block."""
    params = {
        "embedding": {"token": normal(1, 11, 8), "place": normal(2, 7, 8)},
        "blocks": [_block_params(10 * i, 8) for i in range(2)],
    }

    def loss(p, batch):
        tokens, keys = batch
        x = p["embedding"]["token"][tokens] + p["embedding"]["place"]
        drop = jax.vmap(lambda key: jax.random.bernoulli(key, 0.9, x.shape[1:]))(keys)
        x = x * drop / 0.9
        for block in p["blocks"]:
            x = jax.checkpoint(_block)(block, x)
        return _text_loss(x @ p["embedding"]["token"].T, tokens)

    return Case(loss, params, (_tokens(), jax.random.split(jax.random.key(0), 8)))


def scanned() -> Case:
    """A transformer whose blocks are stacked, scanned over under remat, in reverse for once."""
    params = {
        "embedding": normal(1, 11, 8),
        "blocks": _block_params(0, 8, 3),
        "end": {"kernel": normal(2, 8, 11)},
    }

    def loss(p, tokens):
        def turn(x, block):
            return _block(block, x), mean_square(x)

        x, sizes = jax.lax.scan(
            jax.checkpoint(turn), p["embedding"][tokens], p["blocks"], reverse=True
        )
        return _text_loss(x @ p["end"]["kernel"], tokens) + 1e-3 * sizes.sum()

    return Case(loss, params, _tokens())


class Scanned(nnx.Module):
    def __init__(self, rngs):
        @nnx.split_rngs(splits=3)
        @nnx.vmap(in_axes=(0,), out_axes=0)
        def make(rngs):
            return nnx.Linear(6, 6, rngs=rngs)

        self.layers = make(rngs)
        self.end = nnx.Linear(6, 2, rngs=rngs)

    def __call__(self, x):
        @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
        def run(x, layer):
            return nnx.tanh(layer(x))

        return self.end(run(x, self.layers))


def nnx_scanned() -> Case:
    return of_module(Scanned(nnx.Rngs(0)), (normal(1, 8, 6), normal(2, 8, 2)))


class Linen(nn.Module):
    @nn.compact
    def __call__(self, x):
        for width in (12, 12):
            x = x + nn.Dense(width)(nn.LayerNorm()(nn.swish(nn.Dense(width)(x))))
        return nn.Dense(2)(x)


def linen() -> Case:
    module, x = Linen(), normal(1, 8, 12)
    params = doubled(module.init(jax.random.key(0), x))
    return Case(
        lambda p, b: mean_square(module.apply(p, b[0]) - b[1]), params, (x, normal(2, 8, 2))
    )


@jax.custom_vjp
def clipped(x, w):
    return jnp.tanh(x @ w)


def _clipped_forward(x, w):
    y = clipped(x, w)
    return y, (x, w, y)


def _clipped_backward(kept, cotangent):
    x, w, y = kept
    cotangent = jnp.clip(cotangent, -0.01, 0.01) * (1 - y**2)  # not the true derivative
    return cotangent @ w.T, x.T @ cotangent


clipped.defvjp(_clipped_forward, _clipped_backward)


def plain() -> Case:
    """A function of a flat dictionary: custom derivatives, a weight used thrice, weight decay, a
    recurrence, a parameter that nothing reads, weights cast before use."""
    sizes = {"a": (6, 6), "b": (6,), "c": (6, 6), "d": (6, 6), "unused": (3,)}
    params = {n: normal(i, *shape) / 2 for i, (n, shape) in enumerate(sizes.items())}

    def loss(p, x):
        decay = sum(jnp.sum(w**2) for w in p.values())
        low = jax.tree.map(lambda w: w.astype(jnp.float32).astype(w.dtype), p)
        h = clipped(x @ low["a"] + low["b"], low["c"])
        h, _ = jax.lax.scan(lambda h, _: (jnp.sin(h @ p["d"]), None), h, None, length=3)
        h = jax.nn.relu(h @ p["a"] + h) @ (p["a"] / jnp.linalg.norm(p["a"]))
        h = jax.lax.cond(x[0, 0] > 0, lambda h, w: h @ w, lambda h, w: h - w[0], h, p["c"])
        return mean_square(h) + 1e-3 * decay - 1e-3 * jnp.sum(p["unused"] ** 2)

    return Case(loss, params, normal(9, 8, 6))


MODELS: dict[str, Callable[[], Case]] = {
    "dense": dense,
    "convolutional": convolutional,
    "unet": unet,
    "gpt": gpt,
    "scanned": scanned,
    "nnx_scanned": nnx_scanned,
    "linen": linen,
    "plain": plain,
}
