"""Objects in images: which anchors find them, what is compared, and what is refused."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wse.job import fitting
from wse.job.anchors import IGNORED, NOTHING, anchors, matched
from wse.models.rebuilt.residual import sought
from wse.models.trainable.which import by_name

SIZE = 128
NET = {"name": "RetinaNet", "size": SIZE, "classes": 10, "width": 4, "repeats": [1, 1, 1, 1],
       "channels": 8}  # fmt: skip
KNOWN = anchors(SIZE)


def corners(rows):
    return np.concatenate([rows[:, :2] - rows[:, 2:] / 2, rows[:, :2] + rows[:, 2:] / 2], axis=1)


def test_anchors_are_those_of_the_paper():
    """Areas of 32^2 to 512^2 and their thirds of an octave, as high as wide, half and twice."""
    areas = np.unique((KNOWN[:, 2] * KNOWN[:, 3]).round(3))
    thirds = (32.0 * 2.0 ** np.arange(5))[:, None] * 2.0 ** (np.arange(3) / 3)
    assert np.allclose(areas, np.sort(thirds.ravel()) ** 2, rtol=1e-4)
    assert np.allclose(np.unique((KNOWN[:, 2] / KNOWN[:, 3]).round(6)), [0.5, 1, 2])
    assert np.allclose(KNOWN[:9, :2], 4)  # one place has nine


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 3))
def test_every_object_is_found_and_its_box_can_be_told(seed, count):
    """What an anchor is to say is undone to the box of one of the objects, and its class."""
    draw = np.random.default_rng(seed)
    low = 64 * np.array([[0, 0], [0, 1], [1, 0], [1, 1]]) + draw.uniform(0, 20, (4, 2))
    boxes = np.concatenate([low, low + draw.uniform(8, 44, low.shape)], axis=1)
    labels = np.where(np.arange(4) < count, draw.integers(10, size=4), -1)
    found = {
        k: x[0] for k, x in matched({"labels": labels[None], "boxes": boxes[None]}, SIZE).items()
    }
    there = found["labels"] >= 0
    told, own = found["boxes"][there], KNOWN[there]
    middles, sides = own[:, :2] + told[:, :2] * own[:, 2:], own[:, 2:] * np.exp(told[:, 2:])
    off = np.abs(corners(np.concatenate([middles, sides], axis=1))[:, None] - boxes[None, :count])
    same = off.max(axis=2, initial=0) < 1e-3
    assert (same.sum(axis=1) == 1).all()
    assert same.any(axis=0).all()
    assert found["labels"][there].tolist() == (same @ labels[:count]).tolist()
    assert set(found["labels"][~there].tolist()) <= {NOTHING, IGNORED}


def test_objects_that_want_one_anchor_have_one_each():
    boxes = np.array([[20.0, 20, 28, 28], [20, 20, 28, 28], [21, 21, 29, 29]])  # small: no halves
    found = matched({"labels": np.array([[3, 5, 7]]), "boxes": boxes[None]}, SIZE)
    assert {3, 5, 7} <= {*found["labels"][0].tolist()}


def test_the_loss_is_the_closed_form_and_each_image_s_own():
    draw = np.random.default_rng(0)
    said = draw.normal(size=(2, 5, 3 + 4)).astype("f4")
    wanted = np.array([[0, -1, 2, -2, -1], [-1, -1, -1, -2, 1]])
    boxes = draw.normal(size=(2, 5, 4)).astype("f4")
    total = []
    for i in range(2):
        lost = 0.0
        for j, label in enumerate(wanted[i]):
            p = 1 / (1 + np.exp(-said[i, j, :3]))
            for k in range(3) if label > -2 else ():
                chance, weight = (p[k], 0.25) if k == label else (1 - p[k], 0.75)
                lost -= weight * (1 - chance) ** 2 * np.log(chance)
            lost += np.abs(said[i, j, 3:] - boxes[i, j]).sum() * (label >= 0)
        total.append(lost / max(1, (wanted[i] >= 0).sum()))
    for i, known in enumerate(total):
        twice = (jnp.asarray(x[[i, i]]) for x in (said, wanted, boxes))
        assert float(sought(*twice)) == pytest.approx(known, rel=1e-5)
    both = float(sought(*map(jnp.asarray, (said, wanted, boxes))))
    assert both == pytest.approx(np.mean(total), rel=1e-5)
    far = sought(*map(jnp.asarray, (1e4 * said, wanted, boxes)))
    assert np.isfinite(float(far))


def changed(**how):
    boxes = np.tile([8.0, 8, 40, 40], (2, 3, 1))
    usual = {"features": np.zeros((2, SIZE, SIZE, 3)), "labels": np.ones((2, 3), int)}
    return {**usual, "boxes": boxes, **how}


@pytest.mark.parametrize(
    ("how", "rule"),
    [
        ({"boxes": None}, "boxes of None; RetinaNet takes a class, or -1, for each object"),
        ({"boxes": np.zeros((2, 3, 4))}, "must lie within 0 and 128 pixels"),
        ({"boxes": np.array([[[60, 0, 30, 9.0]] * 3] * 2)}, r"a box is \[60.0, 0.0, 30.0, 9.0\]"),
        ({"boxes": changed()["boxes"] * np.nan}, r"a box is \[nan"),
        ({"boxes": changed()["boxes"] / SIZE}, "must be in pixels: multiply them by 128"),
        ({"labels": np.full((2, 3), 10)}, "labels are int64 from 10 to 10"),
        ({"labels": np.zeros(2, int)}, r"labels are of \(2,\)"),
        ({"features": np.zeros((2, 64, 64, 3))}, r"takes images of \(samples, 128, 128, 3\)"),
    ],
)
def test_objects_that_are_none_are_refused(how, rule):
    named, part = by_name(NET, {}), changed(**how)
    usual = changed()
    fitting.fitted(named, usual["features"], usual["labels"], {"boxes": usual["boxes"]}, True)
    with pytest.raises(ValueError, match=rule):
        fitting.fitted(named, part["features"], part["labels"], {"boxes": part["boxes"]}, True)
