"""ATen's products, convolutions, pools, norms and attention as JAX."""

# The arguments are ATen's, whether JAX needs them or not.
# ruff: noqa: ARG001
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wse.models.pytorch.table import Table, named, vector_norm


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
    if max(gaps) > 1:
        return _apart(jnp.pad(x, pads, constant_values=low), sides, steps, gaps), None
    first = np.asarray(low, x.dtype)  # no traced number: JAX knows a maximum by it
    y = jax.lax.reduce_window(x, first, jax.lax.max, sides, steps, pads)
    return y, None


def _apart(x: Any, sides: Any, steps: Any, gaps: Any) -> Any:
    """The largest of windows with gaps, the first of several: JAX has no gradient of its own."""
    every = _slid(x, sides, steps, gaps)
    best = jnp.argmax(every, axis=0, keepdims=True)
    return jnp.take_along_axis(every, best, axis=0)[0]


def _slid(x: Any, sides: Any, steps: Any, gaps: Any) -> Any:
    """What stands at each place of all windows, one place after another."""
    reach = [gap * (side - 1) for gap, side in zip(gaps, sides, strict=True)]
    parts = [
        jax.lax.slice(
            x, first, [f + n - r for f, n, r in zip(first, x.shape, reach, strict=True)], steps
        )
        for first in product(*(range(0, r + 1, gap) for r, gap in zip(reach, gaps, strict=True)))
    ]
    return jnp.stack(parts)


def placed_pool(
    x: Any,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Any:
    """The largest of each window and where it stands among all places, the first of several."""
    sides, steps, pads, gaps = windows(x, kernel, stride, padding, ceil_mode, dilation)
    n = len(kernel)
    low = -np.inf if jnp.issubdtype(x.dtype, jnp.floating) else jnp.iinfo(x.dtype).min
    every = _slid(jnp.pad(x, pads, constant_values=low), sides, steps, gaps)
    own, away, over = x.shape[-n:], pads[-n:], (sides[-n:], steps[-n:], gaps[-n:])
    places = _slid(jnp.pad(jnp.arange(math.prod(own)).reshape(own), away), *over)
    best = jnp.argmax(every, axis=0, keepdims=True)
    at = jnp.broadcast_to(places.reshape(-1, *(1,) * (x.ndim - n), *places.shape[1:]), every.shape)
    return tuple(jnp.take_along_axis(y, best, axis=0)[0] for y in (every, at))


def max_unpool(x: Any, places: Any, size: Any, *_: Any) -> Any:
    """Numbers at the places that they were pooled from, and zeros; each has a gradient."""
    lead = x.shape[: x.ndim - len(size)]
    rows = math.prod(lead)
    at = (jnp.arange(rows)[:, None], places.reshape(rows, -1))
    empty = jnp.zeros((rows, math.prod(size)), x.dtype)
    added = empty.at[at].add(x.reshape(rows, -1))
    # A place that two windows share is written by the last of them.
    written = empty.at[at].set(x.reshape(rows, -1))
    return (added + jax.lax.stop_gradient(written - added)).reshape(*lead, *size)


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
    for axis, cuts in _covering(x, size):
        parts = [jax.lax.slice_in_dim(x, *cut, axis=axis) for cut in cuts]
        x = jnp.concatenate([part.mean(axis, keepdims=True) for part in parts], axis)
    return x


def adaptive_max_pool(x: Any, size: Any) -> Any:
    """The largest of so many windows, which cover x; its place is not given."""
    for axis, cuts in _covering(x, size):
        parts = [jax.lax.slice_in_dim(x, *cut, axis=axis) for cut in cuts]
        # By their places: the gradient of a maximum was NaN here once compiled.
        best = [jnp.argmax(part, axis, keepdims=True) for part in parts]
        parts = [jnp.take_along_axis(*pair, axis) for pair in zip(parts, best, strict=True)]
        x = jnp.concatenate(parts, axis)
    return x, None


def _covering(x: Any, size: Any) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Each of the last axes that windows cover, and where these begin and end."""
    for i, count in enumerate(size):
        axis = x.ndim - len(size) + i
        side = x.shape[axis]
        if count != side:
            yield axis, [(j * side // count, -(-(j + 1) * side // count)) for j in range(count)]


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
    """X without mean and spread of each channel: those kept, or in training the batch's.

    The last two are what is kept afterwards, where the variance is divided by the count less one.
    """
    axes = (0, *range(2, x.ndim))
    shape = (1, -1, *(1,) * (x.ndim - 2))
    kept = mean, var
    if training or mean is None:
        mean, var = jnp.mean(x, axis=axes), jnp.var(x, axis=axes)
    y = (x - mean.reshape(shape)) * jax.lax.rsqrt(var.reshape(shape) + eps)
    if training and kept[0] is not None:
        count = x.size // x.shape[1]
        own = jax.lax.stop_gradient((mean, var * (count / max(count - 1, 1))))
        kept = tuple(old + momentum * (new - old) for old, new in zip(kept, own, strict=True))
    return scaled(y, weight, bias, shape), mean, jax.lax.rsqrt(var + eps), *kept


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
    if mask is None:
        return jax.nn.softmax(scores, axis=-1) @ v
    scores = jnp.where(mask, scores, -jnp.inf) if mask.dtype == bool else scores + mask
    return safe_softmax(scores, -1) @ v


def safe_softmax(x: Any, dim: int, dtype: Any = None) -> Any:
    """Softmax; zero where all is masked out."""
    none = jnp.max(jax.lax.stop_gradient(x), axis=dim, keepdims=True) == -jnp.inf
    return jnp.where(none, 0, jax.nn.softmax(jnp.where(none, 0, x), axis=dim))


def flash(q: Any, k: Any, v: Any, dropped: Any = 0.0, causal: bool = False, **more: Any) -> Any:
    """The same by the words of PyTorch's kernel for processors; its sums are not given."""
    return attention(q, k, v, more.get("attn_mask"), dropped, causal, more.get("scale")), None


def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """X W^T + b."""
    return x @ weight.T if bias is None else x @ weight.T + bias


def cdist(x: Any, y: Any, power: Any = 2.0, *_: Any) -> Any:
    """Distances of all pairs."""
    return vector_norm(x[..., :, None, :] - y[..., None, :, :], power, [-1])


def trilinear(a: Any, b: Any, c: Any, *axes: Any) -> Any:
    """The product of three, each with new axes of one, summed over some."""
    new_a, new_b, new_c, summed = axes[:4]
    wide = [jnp.expand_dims(x, at) for x, at in ((a, new_a), (b, new_b), (c, new_c))]
    return jnp.sum(wide[0] * wide[1] * wide[2], axis=tuple(summed))


def grouped(x: Any, weights: Any, ends: Any) -> Any:
    """Rows of x, up to each end times a matrix of its own, as mixtures of experts have it."""
    return jax.lax.ragged_dot(x, weights, jnp.diff(ends, prepend=0).astype(jnp.int32))


# Where places are read too, which takes a look at every window.
PLACES: Table = {f"max_pool{n}d_with_indices": placed_pool for n in (1, 2, 3)}
LAYERS: Table = {
    **{f"max_unpool{n}d": max_unpool for n in (2, 3)},
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
    **{f"adaptive_max_pool{n}d": adaptive_max_pool for n in (1, 2, 3)},
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
    "_cdist_forward": cdist,
    "_trilinear": trilinear,
    "_safe_softmax": safe_softmax,
    **dict.fromkeys(("_grouped_mm", "grouped_mm_fallback"), grouped),
}
