"""Texts with parts hidden, and the parts as their answers: what a T5 learns from text alone."""

from typing import Any

import numpy as np

Array = Any
HIDDEN, LONG = 0.15, 3  # sourced: Raffel et al., arXiv 1910.10683: share of the tokens, of a part
END = 1  # sourced: the same: the word that ends a text and an answer
NOTHING = -1  # labels behind the end of an answer


def parts(tokens: int) -> tuple[int, int]:
    """How many of so many tokens are hidden, and in how many parts.

    >>> parts(568)
    (85, 28)
    """
    hidden = min(tokens - 1, max(1, round(HIDDEN * tokens)))
    return hidden, max(1, min(tokens - hidden, round(hidden / LONG)))


def lengths(tokens: int) -> tuple[int, int]:
    """Words that are left of so many tokens, with a mark for each part, and words of the answer."""
    hidden, count = parts(tokens)
    return tokens - hidden + count + 1, hidden + count + 1


def longest(source: int, target: int) -> int:
    """The most tokens of which text and answer are no longer than this; 0: there are none.

    >>> longest(512, 114)
    568
    """
    fine = [n for n in range(2, 2 * source) if lengths(n)[0] <= source and lengths(n)[1] <= target]
    return max(fine, default=0)


def hidden(
    tokens: Array, source: int, target: int, words: int, draw: np.random.Generator
) -> dict[str, Array]:
    """Samples whose parts are hidden behind marks, and the answers: each mark and its part.

    The marks are the last words of all, counted down. Text and hidden parts alternate, text first;
    all ways to cut are equally likely.

    Args:
        tokens: of the samples, (samples, tokens).
        source: words of a text, filled up with 0.
        target: words of an answer, filled up with -1.
        words: that there are.
        draw: chance.
    """
    pairs = [_one(row, words, draw) for row in tokens]
    texts = np.zeros((len(tokens), source), np.int32)
    answers = np.full((len(tokens), target), NOTHING, np.int32)
    for i, (text, answer) in enumerate(pairs):
        texts[i, : len(text)], answers[i, : len(answer)] = text, answer
    return {"features": texts, "labels": answers}


def _one(row: Array, words: int, draw: np.random.Generator) -> tuple[Array, Array]:
    gone, count = parts(len(row))
    sizes = np.stack([_cut(len(row) - gone, count, draw), _cut(gone, count, draw)], axis=1)
    pieces = np.split(row, np.cumsum(sizes.ravel())[:-1])
    marks = [np.array([words - 1 - i]) for i in range(count)]
    text = [x for pair in zip(pieces[::2], marks, strict=True) for x in pair]
    answer = [x for pair in zip(marks, pieces[1::2], strict=True) for x in pair]
    return np.concatenate([*text, [END]]), np.concatenate([*answer, [END]])


def _cut(total: int, count: int, draw: np.random.Generator) -> Array:
    """Sizes of so many pieces, none of them empty."""
    ends = np.sort(draw.choice(total - 1, count - 1, replace=False)) + 1
    return np.diff(np.concatenate([[0], ends, [total]]))
