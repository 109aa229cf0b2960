"""Primitive by primitive: where the samples of its inputs are in its outputs.

A rule is asked about an equation of the whole batch and the same one of a part, with the axes along
which inputs and outputs lie in parts. It says yes only where the parts of the outputs are, for
certain, what the primitive makes of the parts of the inputs.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from jax.extend import core

UNCUT = -1  # the shapes differ in another way than by parts of one axis

Axis = int | None
Rule = Callable[[core.JaxprEqn, core.JaxprEqn, list[Axis], list[Axis]], bool]

_ELEMENTWISE = """
abs acos acosh add add_any and asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt ceil clamp
complex conj convert_element_type copy copy_p cos cosh digamma div eq erf erf_inv erfc exp exp2
expm1 floor ge gt igamma igammac imag integer_pow is_finite le lgamma log log1p logistic lt max min
mul ne neg nextafter not or population_count pow real reduce_precision regularized_incomplete_beta
rem round rsqrt select_n shift_left shift_right_arithmetic shift_right_logical sign sin sinh sqrt
square stop_gradient sub tan tanh threefry2x32 xor
bitcast_convert_type random_bits random_fold_in random_split random_unwrap random_wrap
"""
_REDUCTIONS = "argmax argmin reduce_and reduce_max reduce_min reduce_or reduce_prod reduce_sum"
_CUMULATIVE = "cumlogsumexp cummax cummin cumprod cumsum"
_WINDOWS = "reduce_window_max reduce_window_min reduce_window_sum"


def _elementwise(whole: Any, part: Any, inputs: list[Axis], outputs: list[Axis]) -> bool:
    (axis,) = set(outputs) if len(set(outputs)) == 1 else (UNCUT,)
    ranks = {var.aval.ndim for var in whole.outvars}
    scalars = [var.aval.ndim == 0 for var in whole.invars]
    if whole.primitive.name.startswith("random_") or whole.primitive.name == "bitcast_convert_type":
        # Trailing axes come or go; the leading ones stay.
        same = whole.params.get("shape") == part.params.get("shape")
        return same and axis != UNCUT and inputs == [axis] * len(inputs)
    return all(
        scalar or (at in (None, axis) and var.aval.ndim in ranks)
        for scalar, at, var in zip(scalars, inputs, whole.invars, strict=True)
    )


def _reshape(whole: Any, _part: Any, inputs: list[Axis], outputs: list[Axis]) -> bool:
    a, b = inputs[0], outputs[0]
    if a is None or b is None or whole.params.get("dimensions") is not None:
        return False
    return prod(whole.invars[0].aval.shape[:a]) == prod(whole.outvars[0].aval.shape[:b])


def _without(name: str) -> Rule:
    """Of what takes axes away."""

    def rule(whole: Any, _part: Any, inputs: list[Axis], outputs: list[Axis]) -> bool:
        return len(inputs) == 1 and _left(inputs[0], whole.params[name]) == outputs[0]

    return rule


def _left(axis: Axis, gone: Sequence[Any]) -> Axis:
    """Where an axis is when others are gone; `UNCUT` if it is itself."""
    if axis is None or axis in gone:
        return UNCUT
    return axis - sum(int(other < axis) for other in gone)  # JAX mixes in integers of NumPy


def _slice(whole: Any, part: Any, inputs: list[Axis], outputs: list[Axis]) -> bool:
    axis = outputs[0]
    assert axis is not None
    ends = ("start_indices", "limit_indices")
    spans = [list(zip(*(eqn.params[name] for name in ends), strict=True)) for eqn in (whole, part)]
    strides = whole.params["strides"]
    return (
        inputs[0] == axis
        and spans[0].pop(axis) == (0, whole.invars[0].aval.shape[axis])
        and spans[1].pop(axis) == (0, part.invars[0].aval.shape[axis])
        and spans[0] == spans[1]
        and (strides is None or bool(strides[axis] == 1))
    )


def _dynamic_slice(whole: Any, _part: Any, inputs: list[Axis], outputs: list[Axis]) -> bool:
    # Along the cut axis the slice is all of it: `outputs` says so, for the parts fill it too.
    axis = outputs[0]
    full = whole.params["slice_sizes"][axis] == whole.invars[0].aval.shape[axis]
    return bool(full) and inputs[0] == axis and all(at is None for at in inputs[1:])


def _pad(whole: Any, _part: Any, inputs: list[Axis], outputs: list[Axis]) -> bool:
    still = whole.params["padding_config"][outputs[0]] == (0, 0, 0)
    return still and inputs == [outputs[0], None]


def _along(name: str) -> Rule:
    def rule(whole: Any, _part: Any, inputs: list[Axis], outputs: list[Axis]) -> bool:
        axis = outputs[0]
        own = whole.params[name]
        return bool(own != axis) and set(inputs) == {axis} and set(outputs) == {axis}

    return rule


def _stack(whole: Any, _part: Any, inputs: list[Axis], outputs: list[Axis]) -> bool:
    axis = inputs[0]
    moved = None if axis is None else axis + (axis >= whole.params["axis"])
    return len(set(inputs)) == 1 and bool(moved == outputs[0])


def _window(whole: Any, _part: Any, inputs: list[Axis], outputs: list[Axis]) -> bool:
    p, axis = whole.params, outputs[0]
    lengths = ("window_dimensions", "window_strides", "base_dilation", "window_dilation")
    ones = all(p[name][axis] == 1 for name in lengths)
    return ones and tuple(p["padding"][axis]) == (0, 0) and inputs == [axis]


def _dot(whole: Any, _part: Any, inputs: list[Axis], outputs: list[Axis]) -> bool:
    (contracted, batched) = whole.params["dimension_numbers"]
    ranks = [var.aval.ndim for var in whole.invars]
    free = [
        [i for i in range(rank) if i not in c and i not in b]
        for rank, c, b in zip(ranks, contracted, batched, strict=True)
    ]
    left, right = inputs
    if left is not None and right is not None:
        return left in batched[0] and outputs[0] == batched[0].index(left) == (
            batched[1].index(right) if right in batched[1] else UNCUT
        )
    before = len(batched[0])
    if left is not None:
        return left in free[0] and outputs[0] == before + free[0].index(left)
    return right in free[1] and outputs[0] == before + len(free[0]) + free[1].index(right)


def _convolution(whole: Any, _part: Any, inputs: list[Axis], outputs: list[Axis]) -> bool:
    numbers = whole.params["dimension_numbers"]
    expected = [numbers.lhs_spec[0], None]
    plain = whole.params["batch_group_count"] == 1
    return plain and inputs == expected and outputs == [numbers.out_spec[0]]


def _gather(whole: Any, part: Any, inputs: list[Axis], outputs: list[Axis]) -> bool:
    numbers, sizes = whole.params["dimension_numbers"], whole.params["slice_sizes"]
    operand, indices = inputs
    rank = whole.outvars[0].aval.ndim
    if indices is not None:
        batch = [i for i in range(rank) if i not in numbers.offset_dims]
        if indices >= len(batch) or batch[indices] != outputs[0]:
            return False
        if operand is None:
            return sizes == part.params["slice_sizes"]
        pairs = zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
        return (operand, indices) in pairs and sizes == part.params["slice_sizes"]
    gone = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    if operand is None or operand in gone or operand in numbers.start_index_map:
        return False
    kept = [i for i in range(whole.invars[0].aval.ndim) if i not in gone]
    full = sizes[operand] == whole.invars[0].aval.shape[operand]
    return bool(full and numbers.offset_dims[kept.index(operand)] == outputs[0])


def _sum_contracted(whole: core.JaxprEqn, inputs: list[Axis]) -> bool:
    left, right = whole.params["dimension_numbers"][0]
    return (inputs[0], inputs[1]) in zip(left, right, strict=True)


SUMS: dict[str, Callable[[core.JaxprEqn, list[Axis]], bool]] = {
    "dot_general": _sum_contracted,
    "reduce_sum": lambda whole, inputs: inputs[0] in whole.params["axes"],
}
RULES: dict[str, Rule] = {
    **dict.fromkeys(_ELEMENTWISE.split(), _elementwise),
    **dict.fromkeys(_REDUCTIONS.split(), _without("axes")),
    **dict.fromkeys(_CUMULATIVE.split(), _along("axis")),
    **dict.fromkeys(_WINDOWS.split(), _window),
    "broadcast_in_dim": lambda whole, _, i, o: (
        i[0] is None or bool(whole.params["broadcast_dimensions"][i[0]] == o[0])
    ),
    "concatenate": _along("dimension"),
    "conv_general_dilated": _convolution,
    "dot_general": _dot,
    "dynamic_slice": _dynamic_slice,
    "gather": _gather,
    "pad": _pad,
    "reshape": _reshape,
    "rev": lambda whole, _, i, o: i == o and o[0] not in whole.params["dimensions"],
    "slice": _slice,
    "sort": _along("dimension"),
    "split": _along("axis"),
    "squeeze": _without("dimensions"),
    "stack": _stack,
    "top_k": _along("axis"),
    "transpose": lambda whole, _, i, o: bool(whole.params["permutation"][o[0]] == i[0]),
}
