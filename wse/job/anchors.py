"""Boxes that a detector starts from, and which objects of an image each of them is to find."""

from typing import Any

import numpy as np

from wse.models.shapes.convolution import STRIDES

Array = Any
# Sourced: Lin et al., arXiv 1708.02002, section 4: sides, heights to widths, and what of an object
# and an anchor covers both, from where on it is there and up to where it is not.
SIDES = tuple(4 * 2 ** (third / 3) for third in range(3))  # of a level's stride
RATIOS = (0.5, 1.0, 2.0)
THERE, ABSENT = 0.5, 0.4
NOTHING, IGNORED = -1, -2  # labels of anchors


def anchors(size: int) -> Array:
    """The anchors of an image, (places, 4): middle, height and width in pixels.

    They stand as the outputs of `wse.models.rebuilt.residual.detected` do.

    >>> anchors(128).shape
    (3069, 4)
    """
    found: list[Array] = []
    for stride in STRIDES:
        middles = (np.arange(size // stride) + 0.5) * stride
        shapes = [
            (stride * side * ratio**0.5, stride * side / ratio**0.5)
            for side in SIDES
            for ratio in RATIOS
        ]
        y, x, which = np.meshgrid(middles, middles, np.arange(len(shapes)), indexing="ij")
        found.append(np.stack([y, x, *np.moveaxis(np.array(shapes)[which], -1, 0)], axis=-1))
    return np.concatenate([one.reshape(-1, 4) for one in found])


def matched(batch: dict[str, Array], size: int) -> dict[str, Array]:
    """Labels and boxes of the anchors in place of those of the objects.

    An anchor finds the object that it shares most with, from a half of what both cover on; below
    0.4 nothing; between it is not compared. Every object has the anchor that shares most with it,
    or the next best where another object has that one. A box is told by the move of its middle in
    sides of the anchor, and by the logarithms of its sides over the anchor's.

    Args:
        batch: `labels` of (samples, objects), below 0 where there is none, and `boxes` of (samples,
            objects, 4): top, left, bottom, right in pixels.
        size: side of the images.
    """
    known = anchors(size)
    pairs = [_one(known, *x) for x in zip(batch["labels"], batch["boxes"], strict=True)]
    labels, boxes = zip(*pairs, strict=True)
    return {**batch, "labels": np.stack(labels), "boxes": np.stack(boxes)}


def _one(known: Array, labels: Array, boxes: Array) -> tuple[Array, Array]:
    labels, boxes = labels[labels >= 0], boxes[labels >= 0]
    found = np.full(len(known), NOTHING, np.int32)
    if not len(labels):
        return found, np.zeros((len(known), 4), np.float32)
    shared = _shared(known, boxes)
    best, most = shared.argmax(axis=1), shared.max(axis=1)
    there = most >= THERE
    free = shared.copy()
    for one in shared.max(axis=0).argsort()[::-1]:  # two objects may want the same anchor
        place = free[:, one].argmax()
        best[place], there[place], free[place] = one, True, -1
    found[(most >= ABSENT) & ~there] = IGNORED
    found[there] = labels[best[there]]
    sides = boxes[:, 2:] - boxes[:, :2]
    middles = boxes[:, :2] + sides / 2
    moved = (middles[best] - known[:, :2]) / known[:, 2:]
    return found, np.concatenate([moved, np.log(sides[best] / known[:, 2:])], 1).astype(np.float32)


def _shared(known: Array, boxes: Array) -> Array:
    """What an anchor and an object share of what both cover, (places, objects)."""
    low, high = known[:, :2] - known[:, 2:] / 2, known[:, :2] + known[:, 2:] / 2
    top = np.maximum(low[:, None], boxes[:, :2])
    common = np.maximum(0, np.minimum(high[:, None], boxes[:, 2:]) - top).prod(axis=-1)
    areas = known[:, 2:].prod(axis=-1)[:, None] + (boxes[:, 2:] - boxes[:, :2]).prod(axis=-1)
    return common / (areas - common)
