"""The conditions that a likelihood was learned under, and those that it was not."""

from typing import Any

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


def spans(points: Any) -> dict[str, tuple[tuple[float, ...], float, float]]:
    """Return of each condition its values, where they are few, its least and its largest."""
    first = len(points.least) - len(points.conditions)  # parameters stand before
    ends = zip(points.least[first:], points.most[first:], strict=True)
    rows = zip(points.conditions, points.values, ends, strict=True)
    return {name: (few, *end) for name, few, end in rows}


def ends_of(points: Any) -> dict[str, tuple[float, float]]:
    """Return ends of conditions with some slack: draws hardly reach those they are from."""
    return {
        name: (low - BEYOND * (high - low), high + BEYOND * (high - low))
        for name, (_, low, high) in spans(points).items()
    }


def check_known(
    names: tuple[str, ...], values: Float[np.ndarray, "row n"], points: Any, where: str
) -> None:
    """Refuse conditions that the training did not have: beyond its ends, or between few values."""
    ends = ends_of(points)
    for name, column in zip(names, values.T, strict=True):
        (few, low, high), (least, most) = spans(points)[name], ends[name]
        near = np.abs(column[:, None] - np.array(few)).min(axis=1, initial=np.inf)
        outside = (column < least) | (column > most)
        wrong = near > 1e-6 * max(abs(low), abs(high)) if few else outside
        wrong &= np.isfinite(column)
        if wrong.any():
            had = f"one of {short(list(few))}" if few else f"from {low:g} to {high:g}"
            raise ValueError(
                f"the condition {name} is {column[wrong][0]:g} {where} {int(wrong.argmax())}, and "
                f"{had} in the training: there the likelihood was not learned; simulate there too"
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
