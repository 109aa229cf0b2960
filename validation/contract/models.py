"""A table of training functions: every executor must give on them what plain JAX gives."""

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

import sciml

NETS = SimpleNamespace(**run_path(str(Path(__file__).with_name("nets.py"))))


@dataclass(frozen=True)
class Case:
    """One training function, its parameters and a batch of 8 samples, all in float64."""

    loss: Callable[..., Any]
    params: Any
    batch: Any
    has_aux: bool = False


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def mean_square(x):
    return jnp.mean(x**2)


def drawn(tree: Any) -> Any:
    """Numbers for shapes: kernels scaled by their inputs, factors near 1, the rest near 0."""

    def draw(path, shape):
        name, seed = jax.tree_util.keystr(path), zlib.crc32(jax.tree_util.keystr(path).encode())
        inputs = math.prod(shape.shape[:-1]) if len(shape.shape) > 1 else 100
        near = 1.0 if "scale" in name or "var" in name else 0.0
        return near + normal(seed, *shape.shape) / inputs**0.5

    return jax.tree_util.tree_map_with_path(draw, tree)


def of_module(
    make: Callable[[nnx.Rngs], nnx.Module],
    batch: Any,
    loss=lambda y, batch: mean_square(y - batch[1]),
) -> Case:
    graph, params = nnx.split(nnx.eval_shape(lambda: make(nnx.Rngs(0))))
    return Case(lambda p, b: loss(nnx.merge(graph, p)(b[0]), b), drawn(params), batch)


class Dense(nnx.Module):
    def __init__(self, sizes, rngs):
        self.layers = nnx.List(nnx.Linear(n, m, rngs=rngs) for n, m in pairwise(sizes))

    def __call__(self, x):
        for layer in self.layers[:-1]:
            x = nnx.swish(layer(x))
        return nnx.sigmoid(self.layers[-1](x))


def dense() -> Case:
    sizes = [20, 12, 12, 12, 2]
    return of_module(partial(Dense, sizes), (normal(1, 8, 20), normal(2, 8, 2)))


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
    return of_module(Convolutional, (normal(1, 8, 16, 1), normal(2, 8, 2)))


def of_normed(make: Callable[[nnx.Rngs], nnx.Module], batch: Any) -> Case:
    """Batch statistics travel in the batch and come back as auxiliary outputs."""
    shapes = nnx.eval_shape(lambda: make(nnx.Rngs(0)))
    graph, params, rest = nnx.split(shapes, nnx.Param, ...)

    def loss(params, batch):
        statistics, x, y = batch
        module = nnx.merge(graph, params, statistics, copy=True)
        value = mean_square(module(x) - y)
        return value, nnx.state(module, nnx.BatchStat)

    return Case(loss, drawn(params), (drawn(rest), *batch), has_aux=True)


def unet(dims: int = 2, channels: tuple[int, ...] = (4, 6, 8)) -> Case:
    batch = (normal(1, 8, *(8,) * dims, 2), normal(2, 8, *(8,) * dims, 2))
    return of_normed(partial(NETS.UNet, channels, dims), batch)


def resnet18(channels: int = 2, size: int = 32) -> Case:
    batch = (normal(1, 8, size, size, 3), normal(2, 8, 5))
    return of_normed(partial(NETS.ResNet18, channels, 5), batch)


def published_dense(width: int) -> Case:
    """A net of the published table: 8 layers, 1000 inputs, 2 outputs."""
    model = sciml.models.Dense(width, 8)
    return of_module(
        lambda rngs: model.build(1000, 2, rngs=rngs), (normal(1, 8, 1000), normal(2, 8, 2))
    )


def published_convolutional() -> Case:
    model = sciml.models.Convolutional()
    return of_module(
        lambda rngs: model.build(1000, 2, rngs=rngs), (normal(1, 8, 1000), normal(2, 8, 2))
    )


def super_resolution(channels: int = 4, blocks: int = 1, size: int = 16) -> Case:
    """The net of the Figure 4 study, which the published one could not port to the machine."""
    model = sciml.models.SuperResolution(4, channels, blocks)
    batch = (normal(1, 8, 1, size // 4, size // 4), normal(2, 8, 1, size, size))
    return of_module(model.build, batch)


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


def gpt(tokens: Any = None, vocabulary: int = 11, width: int = 8) -> Case:
    """Tied embeddings, dropout with a key per sample, remat around each block."""
    tokens = _tokens() if tokens is None else tokens
    params = {
        "embedding": {
            "token": normal(1, vocabulary, width),
            "place": normal(2, tokens.shape[1], width),
        },
        "blocks": [_block_params(10 * i, width) for i in range(2)],
    }

    def loss(p, batch):
        tokens, keys = batch
        x = p["embedding"]["token"][tokens] + p["embedding"]["place"]
        drop = jax.vmap(lambda key: jax.random.bernoulli(key, 0.9, x.shape[1:]))(keys)
        x = x * drop / 0.9
        for block in p["blocks"]:
            x = jax.checkpoint(_block)(block, x)
        return _text_loss(x @ p["embedding"]["token"].T, tokens)

    return Case(loss, params, (tokens, jax.random.split(jax.random.key(0), len(tokens))))


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
    return of_module(Scanned, (normal(1, 8, 6), normal(2, 8, 2)))


class Linen(nn.Module):
    @nn.compact
    def __call__(self, x):
        for width in (12, 12):
            x = x + nn.Dense(width)(nn.LayerNorm()(nn.swish(nn.Dense(width)(x))))
        return nn.Dense(2)(x)


def linen() -> Case:
    module, x = Linen(), normal(1, 8, 12)
    params = drawn(jax.eval_shape(module.init, jax.random.key(0), x))
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
    "unet 3-D": partial(unet, 3, (2, 3, 4)),
    "ResNet-18": resnet18,
    "published dense, 32 units": partial(published_dense, 32),
    "published convolutional": published_convolutional,
    "super-resolution": super_resolution,
    "gpt": gpt,
    "scanned": scanned,
    "nnx_scanned": nnx_scanned,
    "linen": linen,
    "plain": plain,
}

# The real sizes, which take minutes.
LARGE: dict[str, Callable[[], Case]] = {
    **{f"published dense, {n} units": partial(published_dense, n) for n in (128, 512, 2048)},
    "ResNet-18, 16 channels": partial(resnet18, 16, 64),
    "super-resolution, 32 channels": partial(super_resolution, 32, 4, 64),
}
