"""Held-out samples that are trained on too, on which a score says nothing of others."""

import logging
from collections.abc import Iterable

import numpy as np

log = logging.getLogger(__name__)

MOST = 4096  # assumed: numbers of a sample that are compared
SOME = 0.01  # assumed: of the held-out samples; fewer are not spoken of


def warn_of_repeated(
    trained: Iterable[np.ndarray], held: Iterable[np.ndarray], what: str, remedy: str
) -> None:
    """Say that held-out samples, along the first axis, are the same as some that are trained on."""
    looked_for = [_digest(sample) for part in held for sample in part]
    known = {*looked_for}
    found = known & {_digest(sample) for part in trained for sample in part}
    again = sum(one in found for one in looked_for)
    if again > SOME * len(looked_for):
        log.warning(
            "%d of %d held-out %s are trained on too, so that the score on them says nothing of "
            "others: %s",
            *(again, len(looked_for), what, remedy),
        )


def _digest(sample: np.ndarray) -> int:
    few = np.ravel(sample)[:: max(1, sample.size // MOST)]
    return hash((sample.shape, np.asarray(few, np.float32).tobytes()))
