"""Nets of the published kind, in NNX: real depths, few channels."""

import jax.numpy as jnp
from flax import nnx


class Residual(nnx.Module):
    """Two 3 × 3 convolutions with batch norm around a skip (He et al. 2016, arXiv 1512.03385)."""

    def __init__(self, n, m, stride, rngs):
        self.first = nnx.Conv(n, m, (3, 3), strides=stride, use_bias=False, rngs=rngs)
        self.norm1 = nnx.BatchNorm(m, rngs=rngs)
        self.second = nnx.Conv(m, m, (3, 3), use_bias=False, rngs=rngs)
        self.norm2 = nnx.BatchNorm(m, rngs=rngs)
        self.project = nnx.data(None)
        if stride > 1:
            self.project = nnx.Conv(n, m, (1, 1), strides=stride, use_bias=False, rngs=rngs)
            self.norm3 = nnx.BatchNorm(m, rngs=rngs)

    def __call__(self, x):
        y = nnx.relu(self.norm1(self.first(x)))
        y = self.norm2(self.second(y))
        return nnx.relu(y + (x if self.project is None else self.norm3(self.project(x))))


class ResNet18(nnx.Module):
    """A 7 × 7 convolution, four stages of two residual blocks, a mean and a dense layer."""

    def __init__(self, channels, classes, rngs):
        self.stem = nnx.Conv(3, channels, (7, 7), strides=2, use_bias=False, rngs=rngs)
        self.norm = nnx.BatchNorm(channels, rngs=rngs)
        self.blocks = nnx.List()
        before = channels
        for stage in range(4):
            width = channels * 2**stage
            for stride in (2 if stage else 1, 1):
                self.blocks.append(Residual(before, width, stride, rngs))
                before = width
        self.end = nnx.Linear(before, classes, rngs=rngs)

    def __call__(self, x):
        x = nnx.relu(self.norm(self.stem(x)))
        x = nnx.max_pool(x, (3, 3), (2, 2), "SAME")
        for block in self.blocks:
            x = block(x)
        return self.end(x.mean((1, 2)))


class Block(nnx.Module):
    """Convolution, batch norm, relu."""

    def __init__(self, n, m, dims, rngs):
        self.conv = nnx.Conv(n, m, (3,) * dims, rngs=rngs)
        self.norm = nnx.BatchNorm(m, rngs=rngs)

    def __call__(self, x):
        return nnx.relu(self.norm(self.conv(x)))


class UNet(nnx.Module):
    """Two levels down and up, in any number of dimensions, with skips and transposed steps."""

    def __init__(self, channels, dims, rngs):
        two, (first, second, third) = (2,) * dims, channels

        def widen(n, m):
            return nnx.ConvTranspose(n, m, two, strides=two, rngs=rngs)

        self.window = two
        self.down = nnx.List([Block(2, first, dims, rngs), Block(first, second, dims, rngs)])
        self.middle = Block(second, third, dims, rngs)
        self.widen = nnx.List([widen(second, first), widen(third, second)])
        self.up = nnx.List(
            [Block(2 * first, first, dims, rngs), Block(2 * second, second, dims, rngs)]
        )
        self.end = nnx.Conv(first, 2, (1,) * dims, rngs=rngs)

    def __call__(self, x):
        skips = []
        for block in self.down:
            x = block(x)
            skips.append(x)
            x = nnx.avg_pool(x, self.window, self.window)
        x = self.middle(x)
        for i in (1, 0):
            x = self.up[i](jnp.concatenate([self.widen[i](x), skips[i]], axis=-1))
        return self.end(x)
