"""How sure a skill is: consecutive hours are one storm, so blocks of them are drawn again."""

from typing import NamedTuple

import numpy as np

from sciml.diagnose.wind.alike import Field, alike, first
from sciml.diagnose.wind.errors import difference


class SkillInterval(NamedTuple):
    """A skill with the quantiles of what other weather of the same kind would have given."""

    skill: float
    low: float
    high: float


def skill_interval(
    estimate: Field,
    truth: Field,
    baseline: Field,
    *,
    block: int,
    resamples: int = 1000,
    probability: float = 0.95,
    seed: int = 0,
) -> SkillInterval:
    """Return 1 − MSE(estimate) / MSE(baseline) with its circular block-bootstrap interval.

    It is NaN where the baseline is perfect, as `skill` is; so are limits where one is in what was
    drawn.

    Whole blocks of consecutive times are drawn with replacement, the same for estimate and
    baseline; an interval from single times would be far too narrow, since neighbours are alike.

    Reference: Politis and Romano (1992), in Exploring the Limits of Bootstrap, 263.

    Args:
        estimate: fields, time first.
        truth: fields of the same shape.
        baseline: those to be beaten.
        block: times in a block, at least the decorrelation time (`sciml.wind.decorrelation_h`).
        resamples: how often to draw.
        probability: of the interval.
        seed: of the draws.

    Raises:
        ValueError: shapes differ, or fewer than two blocks fit into the record.

    >>> import numpy as np
    >>> truth, noise = np.random.default_rng(0).normal(size=(2, 60, 8, 8))
    >>> found = skill_interval(truth + 0.5 * noise, truth, truth + noise, block=3)
    >>> round(found.skill, 2), found.low <= found.skill <= found.high
    (0.75, True)
    """
    estimate, baseline, truth = alike(estimate, baseline, first(truth, "time"))
    times = len(truth)
    if not 1 <= block <= times // 2 or resamples < 1 or not 0 < probability < 1:
        raise ValueError(
            f"block is {block} of {times} times, with {resamples} resamples for an interval of "
            f"{probability}; at least two blocks must fit: an interval from one storm says nothing"
        )
    axes = tuple(range(1, truth.ndim))
    ours, theirs = (
        np.mean(np.square(difference(field, truth)), axis=axes) for field in (estimate, baseline)
    )
    rng = np.random.default_rng(seed)
    starts = rng.integers(0, times, (resamples, -(-times // block)))
    drawn = (starts[..., None] + np.arange(block)) % times
    drawn = drawn.reshape(resamples, -1)[:, :times]
    errors = [np.append(one.mean(), one[drawn].mean(axis=1)) for one in (ours, theirs)]
    known = errors[1] > 0
    found, *skills = np.where(known, 1 - errors[0] / np.where(known, errors[1], 1), np.nan)
    tail = (1 - probability) / 2
    low, high = np.quantile(skills, [tail, 1 - tail])
    return SkillInterval(float(found), float(low), float(high))
