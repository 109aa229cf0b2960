"""ATen's operations one by one as JAX: arithmetic, reductions, and what builds arrays.

Names are ATen's without their overloads. Source: "Core ATen IR", the documentation of PyTorch.
"""

# What a graph holds has no static type.
# The arguments are ATen's, whether JAX needs them or not.
# ruff: noqa: ARG005
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from wse.models.pytorch.extremes import largest, least

Table = dict[str, Callable[..., Any]]
SAME = "clone alias lift_fresh_copy _to_copy contiguous to type_as lift_fresh"
# Export has made these checks already.
CHECKED = "_assert_async _assert_tensor_metadata _assert_scalar sym_constrain_range_for_size"


def add(x: Any, y: Any, alpha: Any = 1) -> Any:
    """X + alpha y."""
    return x + (y if alpha == 1 else y * alpha)


def sub(x: Any, y: Any, alpha: Any = 1) -> Any:
    """X - alpha y."""
    return x - (y if alpha == 1 else y * alpha)


def div(x: Any, y: Any, rounding_mode: str | None = None) -> Any:
    """X / y, rounded down or toward zero where asked."""
    if rounding_mode == "floor":
        return jnp.floor_divide(x, y)
    return jnp.trunc(jnp.true_divide(x, y)) if rounding_mode else jnp.true_divide(x, y)


def gelu(x: Any, approximate: str = "none") -> Any:
    """GELU, by the error function or by tanh."""
    if approximate == "tanh":
        return jax.nn.gelu(x, approximate=True)
    return 0.5 * x * (1 + jax.lax.erf(x * 0.7071067811865476))


def clamp(x: Any, least: Any = None, most: Any = None) -> Any:
    """X between two bounds; on a bound the gradient is x's."""
    x = x if least is None else jnp.where(x < least, least, x)
    return x if most is None else jnp.where(x > most, most, x)


def hardtanh(x: Any, low: Any = -1.0, high: Any = 1.0) -> Any:
    """X between two bounds; on a bound the gradient is zero."""
    return jnp.where(x <= low, low, jnp.where(x >= high, high, x))


def elu(x: Any, alpha: Any = 1.0, scale: Any = 1.0, input_scale: Any = 1.0) -> Any:
    """ELU, and SELU by its constants."""
    low = alpha * jnp.expm1(jnp.where(x > 0, 0, x) * input_scale)
    return jnp.where(x > 0, x, low) * scale


def softplus(x: Any, beta: Any = 1, threshold: Any = 20) -> Any:
    """log(1 + exp(beta x)) / beta; x beyond the threshold."""
    far = x * beta > threshold
    return jnp.where(far, x, jnp.log1p(jnp.exp(jnp.where(far, 0, x * beta))) / beta)


def over(name: str) -> Callable[..., Any]:
    """A reduction over some axes, or all."""

    def reduce(x: Any, dim: Any = None, keepdim: bool = False, **_: Any) -> Any:
        axes = tuple(dim) if isinstance(dim, list | tuple) else dim
        return getattr(jnp, name)(x, axis=None if axes == () else axes, keepdims=keepdim)

    return reduce


def variance(x: Any, dim: Any = None, correction: Any = 1, keepdim: bool = False) -> Any:
    """The variance; the count less `correction`, or, in place of an axis, whether less one."""
    dim, correction = (None, int(dim)) if isinstance(dim, bool) else (dim, correction)
    axes = tuple(dim) if isinstance(dim, list | tuple) and dim else None
    return jnp.var(x, axis=axes, ddof=1 if correction is None else correction, keepdims=keepdim)


def spread(x: Any, dim: Any = None, correction: Any = 1, keepdim: bool = False) -> Any:
    """The root of the variance; where it is zero, so is its gradient."""
    square = variance(x, dim, correction, keepdim)
    none = square == 0
    return jnp.where(none, 0, jnp.sqrt(jnp.where(none, 1, square)))


def var_mean(x: Any, dim: Any = None, correction: Any = 1, keepdim: bool = False) -> Any:
    """The variance and the mean."""
    axes = tuple(dim) if isinstance(dim, list | tuple) and dim else None
    return variance(x, dim, correction, keepdim), jnp.mean(x, axis=axes, keepdims=keepdim)


def extreme(name: str) -> Callable[..., Any]:
    """The largest or the least, with its place where an axis is given."""

    def reduce(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if dim is None:
            return largest(x) if name == "max" else least(x)
        if isinstance(dim, jax.Array):
            return getattr(jnp, f"{name}imum")(x, dim)
        at = getattr(jnp, f"arg{name}")(x, axis=dim, keepdims=True)
        value = jnp.take_along_axis(x, at, axis=dim)
        return (value, at) if keepdim else (value.squeeze(dim), at.squeeze(dim))

    return reduce


def topk(x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The k largest and their places."""
    del sorted
    y = jnp.moveaxis(x, dim, -1)
    whole = jnp.issubdtype(x.dtype, jnp.integer)  # of which the least has no negative
    at = jax.lax.top_k(y if largest else ~y if whole else -y, k)[1]
    values = jnp.take_along_axis(y, at, axis=-1)
    return jnp.moveaxis(values, -1, dim), jnp.moveaxis(at, -1, dim)


def ranked(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The number that has a rank from below along an axis, and its place."""
    at = jnp.take(jnp.argsort(x, dim), jnp.asarray([k - 1]), axis=dim)
    value = jnp.take_along_axis(x, at, axis=dim)
    return (value, at) if keepdim else (value.squeeze(dim), at.squeeze(dim))


def median(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The number in the middle, the lower of two, with its place where an axis is given."""
    y, axis = (x.reshape(-1), 0) if dim is None else (x, dim)
    count = y.shape[axis]
    # What is no number is sorted behind all, and is the median here.
    none = jnp.isnan(y).any(axis, keepdims=True)
    at = jnp.where(none, count - 1, (count - 1) // 2).astype(int)
    at = jnp.take_along_axis(jnp.argsort(y, axis), at, axis=axis)
    value = jnp.take_along_axis(y, at, axis=axis)
    if dim is None:
        return value.reshape(())
    return (value, at) if keepdim else (value.squeeze(dim), at.squeeze(dim))


def running(name: str) -> Callable[..., Any]:
    """The largest or least so far along an axis; its place is not given."""
    return lambda x, dim: (getattr(jax.lax, f"cum{name}")(x, axis=dim % x.ndim), None)


def searchsorted(ends: Any, x: Any, right: bool = False, side: Any = None, **_: Any) -> Any:
    """Where numbers belong in a rising row, or each in the row of its own."""
    place = partial(jnp.searchsorted, side="right" if right or side == "right" else "left")
    for _axis in range(ends.ndim - 1):
        place = jax.vmap(place)
    return place(ends, x)


def vector_norm(x: Any, power: Any = 2, dim: Any = None, keepdim: bool = False, **_: Any) -> Any:
    """The p-norm over some axes; where it is zero, so is its gradient."""
    axes = tuple(dim) if dim else None
    size = jnp.abs(x)
    if abs(power) == math.inf:
        extreme = jnp.max if power > 0 else jnp.min
        return extreme(size, axis=axes, keepdims=keepdim)
    if power == 0:
        return jnp.sum(size != 0, axis=axes, keepdims=keepdim)
    total = jnp.sum(size**power, axis=axes, keepdims=keepdim)
    none = total == 0
    return jnp.where(none, 0, jnp.where(none, 1, total) ** (1 / power))


def histc(x: Any, bins: int = 100, low: Any = 0, high: Any = 0) -> Any:
    """How many numbers fall into each of some equal parts of a range; the end is in the last.

    Raises:
        ValueError: no range is given, so that it would depend on values.
    """
    if low == high:
        raise ValueError("histc is called without a range; it must not depend on values: give one")
    at = jnp.floor((x.reshape(-1) - low) * (bins / (high - low))).astype(int)
    inside = (x.reshape(-1) >= low) & (x.reshape(-1) <= high)
    return jnp.zeros(bins, int).at[jnp.clip(at, 0, bins - 1)].add(inside)


def filled(value: Any) -> Callable[..., Any]:
    """Zeros or ones of a size."""
    return lambda size, *_, **__: jnp.full(tuple(size), value)


def like(value: Any) -> Callable[..., Any]:
    """Zeros or ones of another's size."""
    return lambda x, *_, **__: jnp.full_like(x, value)


def dropout(x: Any, p: Any = 0.0, train: Any = True) -> Any:
    """What enters, where nothing is dropped.

    Raises:
        ValueError: something would be dropped.
    """
    if train and p:
        raise ValueError(
            f"the module drops a share of {p}; a function of parameters and batch has no chance: "
            "call module.eval() before, or set the share to 0"
        )
    return x, jnp.ones_like(x, dtype=bool)


def rrelu(
    x: Any, _: Any, low: Any = 1 / 8, high: Any = 1 / 3, train: bool = False, *__: Any
) -> Any:
    """X, below zero times the middle of two slopes.

    Raises:
        ValueError: the slope would be drawn.
    """
    if train:
        raise ValueError("a slope of RReLU is drawn; there is no chance: call module.eval() before")
    return jnp.where(x > 0, x, x * ((low + high) / 2)), None


def named(*operations: Any) -> Table:
    """Operations that are called here as they are in PyTorch."""
    return {operation.__name__: operation for operation in operations}


def _unary() -> Table:
    names = """
    abs exp exp2 expm1 log log1p log2 log10 sqrt sin cos tan sinh cosh tanh floor ceil round trunc
    sign isnan isinf isfinite logical_not bitwise_not square positive
    """
    made: Table = {name: getattr(jnp, name) for name in names.split()}
    made |= {name: getattr(jax.lax, name) for name in ("lgamma", "digamma", "real", "imag")}
    for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh"):
        made[name] = getattr(jnp, name.replace("a", "arc", 1))
    return made | {
        "neg": jnp.negative,
        **named(jax.lax.rsqrt, jax.lax.erf, jax.lax.erfc),
        **named(jax.nn.sigmoid, jax.nn.silu, gelu, elu, softplus, hardtanh),
        "erfinv": jax.lax.erf_inv,
        "sgn": jnp.sign,
        "reciprocal": lambda x: 1 / x,
        "relu": lambda x: jnp.where(x <= 0, 0, x),  # what is no number stays so
        "relu6": lambda x: hardtanh(x, 0, 6),
        "celu": lambda x, alpha=1.0: elu(x, alpha, 1.0, 1 / alpha),
        "selu": lambda x: elu(x, 1.6732632423543772, 1.0507009873554805),  # sourced: PyTorch
        "mish": lambda x: x * jnp.tanh(softplus(x)),
        "leaky_relu": lambda x, slope=0.01: jnp.where(x > 0, x, x * slope),
        "log_sigmoid_forward": lambda x: (jax.nn.log_sigmoid(x), x),
        "hardsigmoid": lambda x: hardtanh(x + 3, 0, 6) / 6,
        "hardswish": lambda x: x * hardtanh(x + 3, 0, 6) / 6,
    }


def _binary() -> Table:
    names = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal"}
    names |= {"gt": "greater", "ge": "greater_equal", "pow": "power", "atan2": "arctan2"}
    same = "floor_divide remainder fmod maximum minimum logical_and logical_or logical_xor"
    same += " bitwise_and bitwise_or bitwise_xor hypot copysign logaddexp fmax fmin gcd lcm"
    names |= {name: name for name in same.split()}
    for side in ("left", "right"):
        names |= dict.fromkeys((f"bitwise_{side}_shift", f"__{side[0]}shift__"), f"{side}_shift")
    made: Table = {name: getattr(jnp, ours) for name, ours in names.items()}
    return made | {
        **named(add, sub, div, clamp, jnp.where),
        "ldexp": lambda x, y: x * 2.0**y,
        "rsub": lambda x, y, alpha=1: sub(y, x, alpha),
        "mul": lambda x, y: x * y,
        "clamp_min": clamp,
        "clamp_max": lambda x, most: clamp(x, None, most),
        "masked_fill": lambda x, mask, value: jnp.where(mask, value, x),
        "lerp": lambda x, y, weight: x + weight * (y - x),
        "addcmul": lambda x, a, b, value=1: x + value * a * b,
        "addcdiv": lambda x, a, b, value=1: x + value * a / b,
    }


def _reductions() -> Table:
    return {
        **{name: over(name) for name in ("sum", "mean", "prod", "any", "all")},
        **named(var_mean, topk, histc, median),
        "kthvalue": ranked,
        "amax": largest,
        "amin": least,
        "argmax": lambda x, dim=None, keepdim=False: jnp.argmax(x, dim, keepdims=keepdim),
        "argmin": lambda x, dim=None, keepdim=False: jnp.argmin(x, dim, keepdims=keepdim),
        "var": variance,
        "std": spread,
        "max": extreme("max"),
        "min": extreme("min"),
        "sort": lambda x, dim=-1, descending=False, stable=None: (
            jnp.sort(x, dim, descending=descending),
            jnp.argsort(x, dim, descending=descending),
        ),
        **{f"cum{x}": running(x) for x in ("max", "min")},
        "bucketize": lambda x, ends, right=False, **_: searchsorted(ends, x, right=right),
        **named(searchsorted),
        "cumsum": lambda x, dim, **_: jnp.cumsum(x, axis=dim),
        "cumprod": lambda x, dim, **_: jnp.cumprod(x, axis=dim),
        "logsumexp": lambda x, dim, keepdim=False: jax.nn.logsumexp(
            x, tuple(dim), keepdims=keepdim
        ),
        "_softmax": lambda x, dim, half=False: jax.nn.softmax(x, axis=dim),
        "_log_softmax": lambda x, dim, half=False: jax.nn.log_softmax(x, axis=dim),
        "softmax": lambda x, dim, dtype=None: jax.nn.softmax(x, axis=dim),
        "linalg_vector_norm": vector_norm,
    }


def _made() -> Table:
    return {
        "arange": lambda *ends, **_: jnp.arange(*ends),
        "full": lambda size, value, **_: jnp.full(tuple(size), value),
        "full_like": lambda x, value, **_: jnp.full_like(x, value),
        "scalar_tensor": lambda value, **_: jnp.asarray(value),
        **dict.fromkeys(("zeros", "empty", "empty_permuted"), filled(0)),
        **dict.fromkeys(("zeros_like", "empty_like"), like(0)),
        "ones": filled(1),
        "ones_like": like(1),
        "new_zeros": lambda x, size, **_: jnp.zeros(tuple(size)),
        "new_ones": lambda x, size, **_: jnp.ones(tuple(size)),
        "new_full": lambda x, size, value, **_: jnp.full(tuple(size), value),
        **dict.fromkeys(SAME.split(), lambda x, *_, **__: x),
        "detached": jax.lax.stop_gradient,
        "copy": lambda x, y, *_: jnp.broadcast_to(y, x.shape),
        "native_dropout": dropout,
        "dropout": lambda *x: dropout(*x)[0],
        "rrelu_with_noise_functional": rrelu,
        **dict.fromkeys(CHECKED.split(), lambda *_, **__: None),
    }


ARITHMETIC: Table = {**_unary(), **_binary(), **_reductions(), **_made()}
