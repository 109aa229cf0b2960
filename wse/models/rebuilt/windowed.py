"""Swin 1 and 2 as a loss and shapes."""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from math import log, prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from wse.models.rebuilt.blocks import between
from wse.models.rebuilt.images import cut
from wse.models.rebuilt.parts import Tree, leaf, linear, linear_shapes, norm, scale_and_shift
from wse.models.rebuilt.text import crossed
from wse.models.shapes.windowed import UNITS, Sides, Windowed
from wse.models.zoo import Traceable

MOST = log(100)  # sourced: Liu et al., arXiv 2111.09883: scores are cosines times at most 100


def swin(net: Windowed, batch: int) -> Traceable:
    """The mean cross entropy of the classes of images."""
    stages: list[Tree] = []
    for i, depth in enumerate(net.depths):
        d = net.features(i)
        merge = (
            {
                "norm": scale_and_shift(d if net.cosines else 2 * d),
                "product": linear_shapes(2 * d, d, False),
            }
            if i
            else {}
        )
        stages.append({**merge, "blocks": [_block_shapes(net, i)] * depth})
    last, places = net.features(len(net.depths) - 1), prod(net.sides(0))
    params: Tree = {
        "patches": linear_shapes(net.channels * prod(net.patch), net.width),
        "norm_in": scale_and_shift(net.width),
        **({"places": leaf(places, net.width)} if net.placed else {}),
        "stages": stages,
        "norm_out": scale_and_shift(last),
        "head": linear_shapes(last, net.classes),
    }

    def loss(params: Tree, batch: Any) -> Any:
        images, labels = batch
        x = norm(params["norm_in"], linear(params["patches"], cut(images, net.patch)))
        x = x + params["places"] if net.placed else x
        for i, one in enumerate(params["stages"]):
            if "product" in one:
                x = _halved(net, one, _merged(x, net.sides(i - 1)))
            for k, p in enumerate(one["blocks"]):
                x = _block(net, p, x, i, net.moves(i) * (k % 2))
        x = jnp.mean(norm(params["norm_out"], x), axis=1)
        return crossed(linear(params["head"], x), labels)

    images = jax.ShapeDtypeStruct((batch, *net.size, net.channels), jnp.float32)
    return Traceable(loss, params, (images, jax.ShapeDtypeStruct((batch,), jnp.int32)))


def _block_shapes(net: Windowed, stage: int) -> Tree:
    d, f = net.features(stage), net.filters[stage]
    return {
        "norm_0": scale_and_shift(d),
        **_telling(net, stage),
        "attended": linear_shapes(d, d),
        "norm_1": scale_and_shift(d),
        "up": linear_shapes(d, f),
        "down": linear_shapes(f, d),
    }


def _telling(net: Windowed, stage: int) -> Tree:
    """Shapes of queries, keys and values, and of what tells places within windows apart."""
    d, heads = net.features(stage), net.heads[stage]
    if not net.cosines:
        table = leaf((2 * net.window - 1) ** 2, heads)
        return {"qkv": linear_shapes(d, 3 * d, net.bias), "table": table}
    queries, keys, values = (linear_shapes(d, d, net.bias and i != 1) for i in range(3))
    return {
        **{"q": queries, "k": keys, "v": values, "scale": leaf(heads, 1, 1)},
        "net": {"in": linear_shapes(2, UNITS), "out": linear_shapes(UNITS, heads, False)},
    }


def _block(net: Windowed, p: Tree, x: Array, stage: int, moved: int) -> Array:
    """Attention within windows and what follows it; norms stand behind both in Swin 2."""

    def followed(y: Array) -> Array:
        return linear(p["down"], between(net.nonlinearity)(linear(p["up"], y)))

    if net.cosines:
        x = x + norm(p["norm_0"], _attention(net, p, x, stage, moved))
        return x + norm(p["norm_1"], followed(x))
    x = x + _attention(net, p, norm(p["norm_0"], x), stage, moved)
    return x + followed(norm(p["norm_1"], x))


def _halved(net: Windowed, p: Tree, x: Array) -> Array:
    """Four places in one, with twice the features of one."""
    if net.cosines:
        return norm(p["norm"], linear(p["product"], x))
    return linear(p["product"], norm(p["norm"], x))


def _merged(x: Array, sides: Sides) -> Array:
    """Four places in one; an odd side is filled up with zeros."""
    return cut(_filled(x, sides, (sides[0] + sides[0] % 2, sides[1] + sides[1] % 2)), (2, 2))


def _filled(x: Array, sides: Sides, whole: Sides) -> Array:
    """Places along two sides, and zeros behind them up to the whole."""
    square = x.reshape(x.shape[0], *sides, -1)
    more = ((0, 0), *((0, n - m) for n, m in zip(whole, sides, strict=True)), (0, 0))
    return square if whole == sides else jnp.pad(square, more)  # which is an operation, if of none


def _attention(net: Windowed, p: Tree, x: Array, stage: int, moved: int) -> Array:
    """Attention of the places of each window, of which all lie `moved` places further on."""
    heads, sides, filled = net.heads[stage], net.sides(stage), net.filled(stage)
    w = net.windows(stage)
    square = _filled(x, sides, filled)
    parts = cut(jnp.roll(square, (-moved, -moved), (1, 2)), (w, w))  # windows, one after another
    parts = parts.reshape(-1, w * w, x.shape[-1])
    three = (
        [linear(p[name], parts) for name in "qkv"]
        if net.cosines
        else jnp.split(linear(p["qkv"], parts), 3, -1)
    )
    q, k, v = (y.reshape(*y.shape[:2], heads, -1) for y in three)
    table = _made(p["net"], w) if net.cosines else p["table"]
    bias = table[_places(w)].transpose(2, 0, 1)[None]
    if moved:
        bias = bias + jnp.tile(_apart(filled, w, moved), (x.shape[0], 1, 1))[:, None]
    if net.cosines:
        q, k = (z * jax.lax.rsqrt(jnp.sum(z * z, -1, keepdims=True) + 1e-12) for z in (q, k))
        q = q * jnp.exp(jnp.minimum(p["scale"], MOST))[:, :, 0][None, None]
        y = jax.nn.dot_product_attention(q, k, v, bias=bias, scale=1.0)
    else:
        y = jax.nn.dot_product_attention(q, k, v, bias=bias)
    y = linear(p["attended"], y.reshape(parts.shape))
    rows, columns = (side // w for side in filled)
    y = y.reshape(-1, rows, columns, w, w, x.shape[-1]).transpose(0, 1, 3, 2, 4, 5)
    y = jnp.roll(y.reshape(-1, *filled, x.shape[-1]), (moved, moved), (1, 2))
    return y[:, : sides[0], : sides[1]].reshape(x.shape)


def _made(p: Tree, w: int) -> Array:
    """The table of a window, of what a small net says of the way from one place to another."""
    far = jnp.arange(1 - w, w) * (8 / max(w - 1, 1))
    far = jnp.sign(far) * jnp.log2(jnp.abs(far) + 1) / 3
    ways = jnp.stack(jnp.meshgrid(far, far, indexing="ij"), axis=-1).reshape(-1, 2)
    return 16 * jax.nn.sigmoid(linear(p["out"], jax.nn.relu(linear(p["in"], ways))))


def _places(w: int) -> Array:
    """Where in the table the way from one place of a window to another stands."""
    at = jnp.arange(w * w)
    rows, columns = at // w, at % w
    down, along = rows[:, None] - rows[None, :], columns[:, None] - columns[None, :]
    return (down + w - 1) * (2 * w - 1) + along + w - 1


def _apart(filled: Sides, w: int, moved: int) -> Array:
    """What keeps places apart that were far from each other before the windows moved."""
    rows, columns = ((jnp.arange(n) >= n - w) * 1 + (jnp.arange(n) >= n - moved) for n in filled)
    regions = jnp.float32(rows[:, None] * 3 + columns)
    parts = cut(regions[None, :, :, None], (w, w))[0]
    return jnp.where(parts[:, :, None] == parts[:, None, :], 0.0, -100.0)
