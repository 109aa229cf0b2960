"""ConvNeXt as a loss and shapes."""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from wse.models.rebuilt.blocks import between
from wse.models.rebuilt.filters import convolved, filter_shapes
from wse.models.rebuilt.images import cut
from wse.models.rebuilt.parts import Tree, leaf, linear, linear_shapes, norm, scale_and_shift
from wse.models.rebuilt.text import crossed
from wse.models.shapes.stages import TAPS, Stages
from wse.models.zoo import Traceable


def convnext(net: Stages, batch: int) -> Traceable:
    """The mean cross entropy of the classes of images."""
    first, last = net.widths[0], net.widths[-1]
    stages: list[Tree] = []
    for i, (d, depth) in enumerate(zip(net.widths, net.depths, strict=True)):
        before = net.widths[i - 1]
        shrink = (
            {"norm": scale_and_shift(before), "product": linear_shapes(4 * before, d)} if i else {}
        )
        stages.append({**shrink, "blocks": [_block_shapes(net, d)] * depth})
    params: Tree = {
        "stem": linear_shapes(net.channels * prod(net.patch), first),
        "norm_in": scale_and_shift(first),
        "stages": stages,
        "norm_out": scale_and_shift(last),
        "head": linear_shapes(last, net.classes),
    }

    def loss(params: Tree, batch: Any) -> Any:
        images, labels = batch
        x = norm(params["norm_in"], _shrunk(params["stem"], images, net.patch))
        for one in params["stages"]:
            if "product" in one:
                x = _shrunk(one["product"], norm(one["norm"], x), (2, 2))
            for p in one["blocks"]:
                x = x + _block(net, p, x)
        x = norm(params["norm_out"], jnp.mean(x, axis=(1, 2)))
        return crossed(linear(params["head"], x), labels)

    images = jax.ShapeDtypeStruct((batch, *net.size, net.channels), jnp.float32)
    return Traceable(loss, params, (images, jax.ShapeDtypeStruct((batch,), jnp.int32)))


def _block_shapes(net: Stages, d: int) -> Tree:
    return {
        "filter": filter_shapes(TAPS, 1, d, bias=True),
        "norm": scale_and_shift(d),
        "up": linear_shapes(d, 4 * d),
        **({"evened": scale_and_shift(4 * d)} if net.evened else {}),
        "down": linear_shapes(4 * d, d),
        **({"scale": leaf(d)} if net.scaled else {}),
    }


def _block(net: Stages, p: Tree, x: Array) -> Array:
    x = linear(p["up"], norm(p["norm"], convolved(p["filter"], x)))
    x = between(net.nonlinearity)(x)
    if "evened" in p:
        size = jnp.sqrt(jnp.sum(x * x, axis=(1, 2), keepdims=True))
        share = size / (jnp.mean(size, axis=-1, keepdims=True) + 1e-6)
        x = p["evened"]["scale"] * (x * share) + p["evened"]["shift"] + x
    x = linear(p["down"], x)
    return x * p["scale"] if "scale" in p else x


def _shrunk(p: Tree, x: Array, patch: tuple[int, int]) -> Array:
    """A product of each patch; what fills none is left out."""
    rows, columns = (n // side for n, side in zip(x.shape[1:3], patch, strict=True))
    parts = cut(x[:, : rows * patch[0], : columns * patch[1]], patch)
    return linear(p, parts).reshape(x.shape[0], rows, columns, -1)
