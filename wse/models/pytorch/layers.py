"""ATen's products, convolutions, pools, norms and attention as JAX."""

# The arguments are ATen's, whether JAX needs them or not.
# ruff: noqa: ARG001
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wse.models.pytorch.table import Table, named


def several(value: Any, n: int) -> tuple[Any, ...]:
    """One value for each of n axes."""
    values = [*value] if isinstance(value, list | tuple) else [value]
    return tuple(values * n if len(values) == 1 else values)


def convolution(
    x: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Any:
    """A convolution with groups and dilation, or its transpose; channels first."""
    n = x.ndim - 2
    steps, borders = several(stride, n), several(padding, n)
    gaps, more = several(dilation, n), several(output_padding or 0, n)
    pads = [(side, side) for side in borders]
    before = (1,) * n
    if transposed:  # inputs apart by the stride, the kernel turned round, channels exchanged
        taps = weight.shape[2:]
        reach = [gap * (tap - 1) for gap, tap in zip(gaps, taps, strict=True)]
        pads = [(r - b, r - b + m) for r, b, m in zip(reach, borders, more, strict=True)]
        c, k = weight.shape[:2]
        weight = weight.reshape(groups, c // groups, k, *taps)
        weight = jnp.swapaxes(weight, 1, 2).reshape(groups * k, c // groups, *taps)
        weight = jnp.flip(weight, range(2, n + 2))
        before, steps = steps, (1,) * n
    sides = "DHW"[-n:]
    y = jax.lax.conv_general_dilated(
        x,
        weight,
        steps,
        pads,
        lhs_dilation=before,
        rhs_dilation=gaps,
        dimension_numbers=(f"NC{sides}", f"OI{sides}", f"NC{sides}"),
        feature_group_count=groups,
    )
    return y if bias is None else y + bias.reshape(-1, *(1,) * n)


def windows(x: Any, taps: Any, stride: Any, padding: Any, ceil_mode: bool, dilation: Any) -> Any:
    """Sides, steps, borders and gaps of a pool, over all axes of x."""
    n = len(taps)
    steps = several(stride or taps, n)
    borders, gaps = several(padding, n), several(dilation, n)
    pads = [(0, 0)] * (x.ndim - n)
    for side, tap, step, low, gap in zip(x.shape[-n:], taps, steps, borders, gaps, strict=True):
        reach = gap * (tap - 1) + 1
        room = side + 2 * low - reach
        count = -(-room // step) + 1 if ceil_mode else room // step + 1
        if ceil_mode and (count - 1) * step >= side + low:  # none begins in the far border
            count -= 1
        pads.append((low, max(low, (count - 1) * step + reach - side - low)))
    lead = (1,) * (x.ndim - n)
    return (*lead, *taps), (*lead, *steps), pads, (*lead, *gaps)


def max_pool(
    x: Any,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Any:
    """The largest of each window; its place is not given."""
    sides, steps, pads, gaps = windows(x, kernel, stride, padding, ceil_mode, dilation)
    low = -np.inf if jnp.issubdtype(x.dtype, jnp.floating) else jnp.iinfo(x.dtype).min
    first = np.asarray(low, x.dtype)  # no traced number: JAX knows a maximum by it
    y = jax.lax.reduce_window(x, first, jax.lax.max, sides, steps, pads, window_dilation=gaps)
    return y, None


def avg_pool(
    x: Any,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: Any = None,
) -> Any:
    """The mean of each window."""
    sides, steps, pads, _ = windows(x, kernel, stride, padding, ceil_mode, 1)
    zero = np.zeros((), x.dtype)
    total = jax.lax.reduce_window(x, zero, jax.lax.add, sides, steps, pads)
    if divisor_override:
        return total / divisor_override
    n = len(kernel)
    inside = jnp.ones_like(x)
    border = several(padding, n)
    if count_include_pad:  # the border counts, what ceil_mode adds beyond does not
        grown = [(0, 0)] * (x.ndim - n) + [(b, b) for b in border]
        inside = jnp.pad(inside, grown, constant_values=1)
        rest = [(low - b, high - b) for (low, high), b in zip(pads[-n:], border, strict=True)]
        pads = [(0, 0)] * (x.ndim - n) + rest
    return total / jax.lax.reduce_window(inside, zero, jax.lax.add, sides, steps, pads)


def adaptive_avg_pool(x: Any, size: Any) -> Any:
    """Means of so many windows, which cover x."""
    for i, count in enumerate(size):
        axis = x.ndim - len(size) + i
        side = x.shape[axis]
        at = jnp.arange(count)
        first, last = at * side // count, -(-(at + 1) * side // count)
        places = jnp.arange(side)
        inside = (places >= first[:, None]) & (places < last[:, None])
        shares = (inside / inside.sum(1, keepdims=True)).astype(x.dtype)
        x = jnp.moveaxis(jnp.moveaxis(x, axis, -1) @ shares.T, -1, axis)
    return x


def scaled(x: Any, weight: Any, bias: Any, shape: Any) -> Any:
    """X times a weight and with a bias, where there are such, each brought to a shape."""
    x = x if weight is None else x * weight.reshape(shape)
    return x if bias is None else x + bias.reshape(shape)


def layer_norm(x: Any, shape: Any, weight: Any = None, bias: Any = None, eps: Any = 1e-5) -> Any:
    """X without mean and spread over the last axes, with mean and 1 / spread."""
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    mean = jnp.mean(x, axis=axes, keepdims=True)
    rstd = jax.lax.rsqrt(jnp.var(x, axis=axes, keepdims=True) + eps)
    return scaled((x - mean) * rstd, weight, bias, shape), mean, rstd


def rms_norm(x: Any, shape: Any, weight: Any = None, eps: Any = None) -> Any:
    """X without spread over the last axes, and 1 / spread."""
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    tiny = jnp.finfo(x.dtype).eps if eps is None else eps
    rstd = jax.lax.rsqrt(jnp.mean(x * x, axis=axes, keepdims=True) + tiny)
    return scaled(x * rstd, weight, None, shape), rstd


def group_norm(
    x: Any, weight: Any, bias: Any, n: int, c: int, places: int, groups: int, eps: Any
) -> Any:
    """X without mean and spread of each group of channels."""
    y, mean, rstd = layer_norm(x.reshape(n, groups, -1), (c // groups * places,), eps=eps)
    y = scaled(y.reshape(x.shape), weight, bias, (1, c, *(1,) * (x.ndim - 2)))
    return y, mean.squeeze(-1), rstd.squeeze(-1)


def batch_norm(
    x: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: Any, eps: Any
) -> Any:
    """X without mean and spread of each channel: those kept, or in training the batch's."""
    axes = (0, *range(2, x.ndim))
    shape = (1, -1, *(1,) * (x.ndim - 2))
    if training or mean is None:
        mean, var = jnp.mean(x, axis=axes), jnp.var(x, axis=axes)
    y = (x - mean.reshape(shape)) * jax.lax.rsqrt(var.reshape(shape) + eps)
    return scaled(y, weight, bias, shape), mean, jax.lax.rsqrt(var + eps), mean, var


def kept_norm(x: Any, weight: Any, bias: Any, mean: Any, var: Any, momentum: Any, eps: Any) -> Any:
    """The same by the mean and spread that were kept; neither is given."""
    return batch_norm(x, weight, bias, mean, var, False, momentum, eps)[0], None, None


def attention(
    q: Any,
    k: Any,
    v: Any,
    mask: Any = None,
    dropped: Any = 0.0,
    causal: bool = False,
    scale: Any = None,
    grouped: bool = False,
) -> Any:
    """softmax(q k^T scale + mask) v.

    Raises:
        ValueError: something would be dropped.
    """
    if dropped:
        raise ValueError(
            f"attention drops a share of {dropped}: call module.eval() before, or set it to 0"
        )
    if q.shape[-3:-2] != k.shape[-3:-2] and grouped:
        times = q.shape[-3] // k.shape[-3]
        k, v = jnp.repeat(k, times, axis=-3), jnp.repeat(v, times, axis=-3)
    scores = q @ jnp.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if causal:
        mask = jnp.tril(jnp.ones(scores.shape[-2:], dtype=bool))
    if mask is not None:
        low = jnp.finfo(scores.dtype).min
        scores = jnp.where(mask, scores, low) if mask.dtype == bool else scores + mask
    return jax.nn.softmax(scores, axis=-1) @ v


def flash(q: Any, k: Any, v: Any, dropped: Any = 0.0, causal: bool = False, **more: Any) -> Any:
    """The same by the words of PyTorch's kernel for processors; its sums are not given."""
    return attention(q, k, v, more.get("attn_mask"), dropped, causal, more.get("scale")), None


def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """X W^T + b."""
    return x @ weight.T if bias is None else x @ weight.T + bias


def nearest(x: Any, size: Any, factors: Any) -> Any:
    """X in another size, or by factors, each place from the one that it falls into."""
    for i in range(x.ndim - 2):
        side = x.shape[i + 2]
        count = size[i] if size else int(side * factors[i])
        x = jnp.take(x, jnp.arange(count) * side // count, axis=i + 2)
    return x


def resized(cubic: bool, x: Any, size: Any, corners: bool, factors: Any = None) -> Any:
    """X in another size, each place from its two or four neighbours, axis by axis."""
    n = x.ndim - 2
    for i in range(n):
        axis, side = i + 2, x.shape[i + 2]
        count = size[i] if size else int(side * factors[i])
        at = jnp.arange(count, dtype=x.dtype)
        if corners:
            place = at * ((side - 1) / max(count - 1, 1))
        else:
            place = (at + 0.5) * (1 / factors[i] if factors else side / count) - 0.5
            place = place if cubic else jnp.maximum(place, 0)
        first = jnp.floor(place)
        weights = jnp.zeros((count, side), x.dtype)
        for near in (-1, 0, 1, 2) if cubic else (0, 1):
            away = jnp.abs(place - first - near)
            share = _cubic(away) if cubic else 1 - away
            columns = jnp.clip(first + near, 0, side - 1).astype(int)
            weights = weights.at[jnp.arange(count), columns].add(share)
        x = jnp.moveaxis(jnp.moveaxis(x, axis, -1) @ weights.T, -1, axis)
    return x


def _cubic(away: Any, a: float = -0.75) -> Any:
    """Keys' kernel, with the constant of PyTorch."""
    inner = ((a + 2) * away - (a + 3)) * away * away + 1
    outer = ((away - 5) * away + 8) * away * a - 4 * a
    return jnp.where(away <= 1, inner, outer)


def cdist(x: Any, y: Any, power: Any = 2.0, *_: Any) -> Any:
    """Distances of all pairs."""
    away = jnp.abs(x[..., :, None, :] - y[..., None, :, :])
    return jnp.sum(away**power, axis=-1) ** (1 / power)


LAYERS: Table = {
    **named(linear, convolution),
    **dict.fromkeys(("mm", "bmm", "matmul", "mv", "dot"), lambda a, b: a @ b),
    **dict.fromkeys(
        ("addmm", "baddbmm", "addmv"),
        lambda x, a, b, beta=1, alpha=1: x * beta + alpha * (a @ b),
    ),
    "einsum": lambda form, xs, **_: jnp.einsum(form, *xs),
    **{f"max_pool{n}d_with_indices": max_pool for n in (1, 2, 3)},
    **{f"max_pool{n}d": lambda *x, **y: max_pool(*x, **y)[0] for n in (1, 2, 3)},
    **{f"avg_pool{n}d": avg_pool for n in (1, 2, 3)},
    **{f"_adaptive_avg_pool{n}d": adaptive_avg_pool for n in (2, 3)},
    **{f"adaptive_avg_pool{n}d": adaptive_avg_pool for n in (1, 2, 3)},
    "native_layer_norm": layer_norm,
    "layer_norm": lambda x, shape, w=None, b=None, eps=1e-5, *_: layer_norm(x, shape, w, b, eps)[0],
    "_fused_rms_norm": rms_norm,
    "rms_norm": lambda *x: rms_norm(*x)[0],
    "native_group_norm": group_norm,
    "_native_batch_norm_legit_no_training": kept_norm,
    "_native_batch_norm_legit_functional": batch_norm,
    "_native_batch_norm_legit": lambda x, w, b, *rest: (
        batch_norm(x, w, b, None, None, *rest) if len(rest) == 3 else batch_norm(x, w, b, *rest)
    ),
    "scaled_dot_product_attention": lambda q, k, v, mask=None, p=0.0, causal=False, **more: (
        attention(q, k, v, mask, p, causal, more.get("scale"), more.get("enable_gqa", False))
    ),
    "_scaled_dot_product_flash_attention_for_cpu": flash,
    **{f"upsample_nearest{n}d": nearest for n in (1, 2, 3)},
    **{
        f"upsample_{name}": partial(resized, False)
        for name in ("linear1d", "bilinear2d", "trilinear3d")
    },
    "upsample_bicubic2d": partial(resized, True),
    "_cdist_forward": cdist,
}
