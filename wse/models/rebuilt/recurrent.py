"""State spaces as a loss and shapes: Mamba 1 and 2."""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from wse.models.rebuilt.blocks import between
from wse.models.rebuilt.parts import Tree, leaf, linear, linear_shapes, norm
from wse.models.rebuilt.text import crossed, words
from wse.models.shapes.recurrent import Recurrent
from wse.models.zoo import Traceable


def recurrent(net: Recurrent, batch: int) -> Traceable:
    """The mean cross entropy of words."""
    h, v = net.hidden_size, net.vocab_size
    params: Tree = {
        "words": leaf(v, h),
        "blocks": [_block_shapes(net)] * net.num_hidden_layers,
        "norm": {"scale": leaf(h)},
        **({} if net.shared else {"head": leaf(h, v)}),
    }

    def loss(params: Tree, tokens: Any) -> Any:
        x = params["words"][tokens]
        for p in params["blocks"]:
            x = x + _block(net, p, norm(p["norm"], x))
        x = norm(params["norm"], x)
        return crossed(x @ (params["words"].T if net.shared else params["head"]), tokens)

    return Traceable(loss, params, words(batch, net.max_sequence_length))


def _block_shapes(net: Recurrent) -> Tree:
    h, d, n, wide = net.hidden_size, net.inner, net.states, net.filtered
    common = {
        "norm": {"scale": leaf(h)},
        "in": linear_shapes(h, d + wide + net.heads, net.bias),
        "filter": {
            "kernel": leaf(net.taps, 1, wide),
            **({"bias": leaf(wide)} if net.taps_bias else {}),
        },
        "out": linear_shapes(d, h, net.bias),
    }
    if net.heads:
        each = {name: leaf(net.heads) for name in ("step", "decay", "past")}
        return {**common, **each, "evened": {"scale": leaf(d)}}
    return {
        **common,
        "read": linear_shapes(d, net.rank + 2 * n, False),
        "step": linear_shapes(net.rank, d),
        "decay": leaf(d, n),
        "past": leaf(d),
    }


def _block(net: Recurrent, p: Tree, x: Array) -> Array:
    d, wide = net.inner, net.filtered
    every = linear(p["in"], x)
    gate = jax.nn.silu(every[..., wide : wide + d] if not net.heads else every[..., :d])
    first = 0 if not net.heads else d
    x = between(net.nonlinearity)(_filtered(p["filter"], every[..., first : first + wide]))
    if net.heads:
        y = _chunked(net, p, x, every[..., d + wide :])
        return linear(p["out"], norm(p["evened"], y * gate))
    return linear(p["out"], _token_by_token(net, p, x) * gate)


def _filtered(p: Tree, x: Array) -> Array:
    """Each feature along the tokens, of which none sees those behind it."""
    before, numbers = p["kernel"].shape[0] - 1, ("NWC", "WIO", "NWC")
    y = jax.lax.conv_general_dilated(
        x,
        p["kernel"],
        (1,),
        [(before, 0)],
        dimension_numbers=numbers,
        feature_group_count=x.shape[-1],
    )
    return y + p["bias"] if "bias" in p else y


def _token_by_token(net: Recurrent, p: Tree, x: Array) -> Array:
    """Mamba 1: every state decays and takes in its token's share, and is read."""
    r, n = net.rank, net.states
    told = linear(p["read"], x)
    parts = told[..., :r], told[..., r : r + n], told[..., r + n :]
    made, enters, leaves = (norm({"scale": 1.0}, y) for y in parts) if net.evened else parts
    step = jax.nn.softplus(linear(p["step"], made))
    decay = -jnp.exp(p["decay"])

    def one(state: Array, given: Any) -> tuple[Array, Array]:
        step, x, enters, leaves = given
        state = jnp.exp(step[..., None] * decay) * state + (step * x)[..., None] * enters[:, None]
        return state, jnp.einsum("bdn,bn->bd", state, leaves)

    first = jnp.zeros((x.shape[0], net.inner, n), x.dtype)
    along = tuple(jnp.moveaxis(y, 1, 0) for y in (step, x, enters, leaves))
    _, y = jax.lax.scan(one, first, along)
    return jnp.moveaxis(y, 0, 1) + x * p["past"]


def _chunked(net: Recurrent, p: Tree, x: Array, steps: Array) -> Array:
    """Mamba 2: products within chunks of tokens, and the states from chunk to chunk."""
    b, s, d, g, n = *x.shape[:2], net.inner, net.groups, net.states
    heads, long = net.heads, net.chunk
    count = -(-s // long)

    def chunks(y: Array) -> Array:
        y = jnp.pad(y, ((0, 0), (0, count * long - s), *((0, 0),) * (y.ndim - 2)))
        return y.reshape(b, count, long, *y.shape[2:])

    inner, enters, leaves = x[..., :d], x[..., d : d + g * n], x[..., d + g * n :]
    step = jax.nn.softplus(steps + p["step"])
    each = inner.reshape(b, s, heads, -1)
    enters, leaves = (
        chunks(jnp.repeat(y.reshape(b, s, g, n), heads // g, axis=2)) for y in (enters, leaves)
    )
    taken, decay = chunks(each * step[..., None]), chunks(-jnp.exp(p["decay"]) * step)
    sums = jnp.cumsum(decay, axis=2)
    weights = jnp.einsum("bclhn,bcshn->bclsh", leaves, enters) * _since(sums)
    within = jnp.einsum("bclsh,bcshp->bclhp", weights, taken)
    left = enters * jnp.exp(sums[:, :, -1:] - sums)[..., None]
    states = jnp.einsum("bclhn,bclhp->bchpn", left, taken)
    states = jnp.pad(states, ((0, 0), (1, 0), (0, 0), (0, 0), (0, 0)))
    whole = jnp.cumsum(jnp.pad(sums[:, :, -1], ((0, 0), (1, 0), (0, 0))), axis=1)
    passed = jnp.einsum("bczh,bzhpn->bchpn", _since(whole[:, None])[:, 0], states)[:, :-1]
    across = jnp.einsum("bclhn,bchpn->bclhp", leaves, passed) * jnp.exp(sums)[..., None]
    y = (within + across).reshape(b, count * long, heads, -1)[:, :s]
    return (y + each * p["past"][:, None]).reshape(b, s, d)


def _since(sums: Array) -> Array:
    """What is left of each token at those behind it, of sums of decays; nothing before it."""
    seen = jnp.tri(sums.shape[2], dtype=bool)[None, None, :, :, None]
    return jnp.exp(jnp.where(seen, sums[:, :, :, None] - sums[:, :, None], -jnp.inf))
