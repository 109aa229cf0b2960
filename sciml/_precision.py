"""What single precision holds of the numbers that a user gives."""

from typing import Any

import numpy as np

FEW = 8  # assumed: draws that may lie near each other by chance
STEPS = 20  # assumed: steps of float32 that a spread must have to be told from rounding
FAR = 1e15  # of a number whose square float32 does not hold well
SMALL, LARGE = 1e-35, 1e35  # of float32, with room for what is computed with numbers
FLOAT64 = 1e-14  # assumed: spread that is rounding of float64, as part of the largest value


def as_float32(values: Any, what: str, *, each: bool = True) -> np.ndarray:
    """Return numbers in the precision of nets; refuse those that would overflow, or all vanish.

    With `each`, each entry of the last axis is a kind of its own, as channels and features are.
    """
    array = np.asarray(values)
    if array.dtype not in (np.float64, np.float32) or not array.size:
        return np.asarray(array, np.float32)
    kinds = array.reshape(-1, array.shape[-1] if each else 1)
    there: Any = {"axis": 0, "where": np.isfinite(kinds), "initial": 0.0}
    most = np.maximum(kinds.max(**there), -kinds.min(**there))
    wrong = (most > LARGE) | ((most > 0) & (most < SMALL))
    if wrong.any():
        kind = int(wrong.argmax())
        raise ValueError(
            f"{what}{f'[..., {kind}]' if each else ''} reaches {most[kind]:.3g}; float32, in which "
            f"nets count, serves from {SMALL:g} to {LARGE:g}: give it in another unit"
        )
    return np.asarray(array, np.float32)


def with_room(values: np.ndarray) -> np.ndarray:
    """Return numbers in double precision where float32 does not hold their squares."""
    most = np.abs(values).reshape(-1, values.shape[-1]).max(axis=0, initial=0)
    far = (most > FAR) | ((most > 0) & (most < 1 / FAR))
    return values.astype(np.float64) if far.any() else values


def told_apart(values: Any, what: str, *, each: bool = True) -> np.ndarray:
    """Return numbers (sample, ...) as `as_float32`; refuse those whose differences it rounds away.

    Of one kind, a single place that is resolved is enough: initial values often hardly vary.

    >>> told_apart(np.array([[1e9], [1e9 + 1]]), "theta")
    Traceback (most recent call last):
    ...
    ValueError: theta[..., 0] differs by 1 about 1e+09, where float32 counts in steps of 64: \
subtract 1e+09 from all of it
    """
    array, found = np.asarray(values), as_float32(values, what, each=each)
    if found is array or not array.size:
        return found  # nothing is rounded
    if lost := rounded_away(array, each=each):
        kind, spread, low, step = lost
        raise ValueError(
            f"{what}{f'[..., {kind}]' if each else ''} differs by {spread:.3g} about {low:.6g}, "
            f"where float32 counts in steps of {step:.3g}: subtract {low:.6g} from all of it"
        )
    return found


def rounded_away(array: np.ndarray, *, each: bool) -> tuple[int, float, float, float] | None:
    """Return a kind of numbers (sample, ...) that differ by a few steps of float32 alone.

    With it come by how much, about which number, and the step; None where there is no such kind.
    """
    places = np.where(np.isfinite(array), array, np.nan)
    places = places.reshape(len(array), -1, array.shape[-1] if each else 1)
    low, high = np.fmin.reduce(places), np.fmax.reduce(places)
    largest = np.nan_to_num(np.fmax(np.abs(low), np.abs(high)))
    step, spread = np.spacing(largest.astype(np.float32)), np.nan_to_num(high - low)
    varies = spread > FLOAT64 * largest
    lost = varies.any(axis=0) & ~(varies & (spread >= STEPS * step)).any(axis=0)
    if not lost.any():
        return None
    kind = int(lost.argmax())
    at = int(spread[:, kind].argmax()), kind
    return kind, float(spread[at]), float(low[at]), float(step[at])


def unresolved(drawn: np.ndarray) -> np.ndarray:
    """Tell of which parameters most draws (draw, param) differ by a few steps of float32 alone."""
    low, high = np.quantile(drawn, (0.01, 0.99), axis=0)
    return high - low < STEPS * np.spacing(np.abs(drawn).max(axis=0).astype(np.float32))


def check_fine(drawn: np.ndarray, name: str) -> None:
    """Refuse many draws that differ by a few steps of float32 alone."""
    most, spread = np.abs(drawn).max(), np.ptp(drawn)
    if drawn.size > FEW and spread < STEPS * (step := np.spacing(np.float32(most))):
        raise ValueError(
            f"{drawn.size} draws of {name} lie within {spread:.3g} about {most:.6g}, where float32 "
            f"counts in steps of {step:.3g}: write the parameter as what is added to {most:.6g}"
        )


def same_places(found: Any, like: Any) -> np.ndarray:
    """Tell which places along an axis are the same but for rounding to float32.

    Never more than a hundredth of the way to the next: of Julian dates, rounding is hours.

    >>> same_places([2459000.5, 2459001.0], [2459000.5, 2459001.5])
    array([ True, False])
    """
    own, other = (np.asarray(each, np.float64) for each in (found, like))
    apart = np.diff(np.unique(other), prepend=-np.inf, append=np.inf)
    at = np.searchsorted(np.unique(other), other)
    rounding = 1e-6 * np.abs(other) + 1e-9 * np.abs(other).max(initial=0.0)
    return np.abs(own - other) <= np.minimum(rounding, 0.01 * np.minimum(apart[at], apart[at + 1]))
