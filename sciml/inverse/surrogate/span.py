"""The conditions that a likelihood was learned under, and those that it was not."""

import numpy as np
from jaxtyping import Float

from sciml._numbers import short
from sciml.inverse.surrogate.known import Inputs

BEYOND = 0.01  # assumed: part of its span that a condition may lie outside
FEW = 32  # assumed: values of a condition up to which no value between them is taken


def levels_of(values: Inputs) -> tuple[tuple[float, ...], ...]:
    """Return of each condition its values where these are few; else nothing."""
    every = [np.unique(column) for column in np.concatenate(values).T]
    return tuple(tuple(each.tolist()) if len(each) <= FEW else () for each in every)


def check_known(
    names: tuple[str, ...],
    values: Float[np.ndarray, "part n"],
    trained: tuple[tuple[float, ...], ...],
    ends: tuple[tuple[float, ...], tuple[float, ...]],
) -> None:
    """Refuse conditions that the training did not have: beyond its ends, or between few values."""
    for i, name in enumerate(names):
        column, few = values[:, i], np.array(trained[i])
        low, high = (end[i - len(names)] for end in ends)  # which stand behind the parameters
        near = np.abs(column[:, None] - few).min(axis=1, initial=np.inf)
        slack = BEYOND * (high - low)  # draws hardly reach the ends of what they are from
        outside = (column < low - slack) | (column > high + slack)
        wrong = near > 1e-6 * max(abs(low), abs(high)) if len(few) else outside
        if wrong.any():
            raise ValueError(
                f"the condition {name} is {column[wrong][0]:g} in part {int(wrong.argmax())}, and "
                + (f"one of {short(few.tolist())}" if len(few) else f"from {low:g} to {high:g}")
                + " in the training: there the likelihood was not learned; simulate there too"
            )


def check_possible(
    each: Float[np.ndarray, "part feature"], whole: tuple[bool, ...], positive: tuple[bool, ...]
) -> None:
    """Refuse parts that no draw of the law can be: not whole, below zero, or zero."""
    for i, column in enumerate(each.T):
        seen = column[np.isfinite(column)]
        wrong = (seen != np.round(seen)) & whole[i] | (seen <= 0) & positive[i]
        if wrong.any():
            kind = "whole" if whole[i] else "positive"
            raise ValueError(
                f"feature {i} of an observed part is {seen[wrong][0]:g}, and {kind} in all of the "
                "training: its probability is zero; mark the part as NaN, which leaves it out"
            )
