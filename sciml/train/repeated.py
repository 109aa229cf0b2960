"""Held-out samples that are trained on too, on which a score says nothing of others."""

import logging
from collections.abc import Iterable

import numpy as np

log = logging.getLogger(__name__)

MOST = 4096  # assumed: numbers of an array of a sample that are compared
SOME = 0.01  # assumed: of the held-out samples; fewer are not spoken of
Samples = Iterable[tuple[np.ndarray, ...]]


def warn_of_repeated(trained: Samples, held: Samples, what: str, remedy: str) -> None:
    """Say that held-out samples, each some arrays, are the same as some that are trained on.

    Samples of one number throughout, as where all is missing, are not compared.
    """
    looked_for = [_digest(sample) for sample in held]
    known = {one for one in looked_for if one is not None}
    found = known & {_digest(sample) for sample in trained}
    again = sum(one in found for one in looked_for)
    if again > SOME * len(looked_for):
        log.warning(
            "%d of %d held-out %s are trained on too, so that the score on them says nothing of "
            "others: %s",
            *(again, len(looked_for), what, remedy),
        )


def _digest(sample: tuple[np.ndarray, ...]) -> int | None:
    few = [np.ravel(part)[:: max(1, part.size // MOST)] for part in sample]
    numbers = np.concatenate(few, dtype=np.float32)
    if (numbers == numbers[0]).all() or np.isnan(numbers).all():
        return None
    return hash((*(part.shape for part in sample), numbers.tobytes()))
