"""Where a truth stands among draws."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int


class Rank(NamedTuple):
    """Where truths stand.

    Attributes:
        rank: how many of S draws are smaller; ties are split at random; 0 … S.
        pit: (rank + u) / (S + 1) with u uniform on [0, 1): uniform exactly, for any S, where truth
            and draws come from one distribution.
    """

    rank: Int[np.ndarray, "..."]
    pit: Float[np.ndarray, "..."]


def rank(
    draws: Float[np.ndarray, "..."],
    truth: Float[np.ndarray, "..."],
    uniform: Float[np.ndarray, "..."],
) -> Rank:
    """Return the rank of each truth among its draws, the first axis; `uniform` breaks ties."""
    smaller = (draws < truth).sum(axis=0)
    position = uniform * ((draws == truth).sum(axis=0) + 1)
    return Rank(smaller + position.astype(int), (smaller + position) / (len(draws) + 1))


def join(parts: list[Rank]) -> Rank:
    """Return the ranks of consecutive chunks of samples as one."""
    return Rank(*(np.concatenate(values) for values in zip(*parts, strict=True)))
