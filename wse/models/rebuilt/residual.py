"""ResNet-50, and RetinaNet on it."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from wse.models.rebuilt.filters import Norms, convolved, filter_shapes, normed, pooled
from wse.models.rebuilt.parts import Tree, linear, linear_shapes
from wse.models.rebuilt.text import crossed
from wse.models.shapes.convolution import ANCHORS, STAGES, STRIDES, Stages, stages_of
from wse.models.zoo import Traceable


def resnet50(shape: dict[str, Any], batch: int) -> Traceable:
    """The mean cross entropy of the classes of images."""
    size, classes = shape["size"], shape["classes"]
    stages = stages_of(shape["width"], shape["repeats"])
    wide = 4 * stages[-1][0]
    params: Tree = {**_backbone_shapes(stages, True), "head": linear_shapes(wide, classes)}

    def loss(params: Tree, batch: Any) -> Any:
        images, labels = batch
        return crossed(classified(params, images, Norms()), labels)

    images = jax.ShapeDtypeStruct((batch, size, size, 3), jnp.float32)
    return Traceable(loss, params, (images, jax.ShapeDtypeStruct((batch,), jnp.int32)))


def classified(params: Tree, images: Array, norms: Norms) -> Array:
    """The logits of the classes of images.

    Args:
        params: of a ResNet.
        images: of a batch, channels last.
        norms: means and variances, of this batch or of a trained model.
    """
    *_, last = _levels(params, images, norms)
    return linear(params["head"], jnp.mean(last, axis=(1, 2)))


def retinanet(shape: dict[str, Any], batch: int) -> Traceable:
    """The loss of classes and boxes; the backbone's norms are frozen.

    A frozen norm is a scale and a shift that the compiler folds into the filters: it is left out.
    """
    size, classes, c = shape["size"], shape["classes"], shape["channels"]
    stages = stages_of(shape["width"], shape["repeats"])
    params: Tree = {
        **_backbone_shapes(stages, False),
        "lateral": [filter_shapes(1, 4 * width, c, bias=True) for width, *_ in stages[1:]],
        "smooth": [filter_shapes(3, c, c, bias=True) for _ in range(3)],
        "pyramid": [filter_shapes(3, c, c, bias=True) for _ in range(2)],
        **{
            name: {
                "inner": [filter_shapes(3, c, c, bias=True) for _ in range(4)],
                "last": filter_shapes(3, c, ANCHORS * leaving, bias=True),
            }
            for name, leaving in (("classes", classes), ("boxes", 4))
        },
    }

    def loss(params: Tree, batch: Any) -> Any:
        images, wanted, boxes = batch
        return sought(detected(shape, params, images), wanted, boxes)

    places = ANCHORS * sum((size // n) ** 2 for n in STRIDES)
    images, boxes = (
        jax.ShapeDtypeStruct((batch, *one), jnp.float32) for one in ((size, size, 3), (places, 4))
    )
    return Traceable(
        loss, params, (images, jax.ShapeDtypeStruct(boxes.shape[:2], jnp.int32), boxes)
    )


def detected(shape: dict[str, Any], params: Tree, images: Array) -> Array:
    """The logits of the classes of every anchor, and behind them where its box lies.

    Anchors stand level by level, in each by rows, columns and shapes.
    """
    levels = _pyramid(params, _levels(params, images, Norms())[1:])
    said = [
        _answers(params[x], levels, n) for x, n in (("classes", shape["classes"]), ("boxes", 4))
    ]
    return jnp.concatenate(said, axis=-1)


def sought(
    said: Float[Array, "b place n"], wanted: Int[Array, "b place"], boxes: Float[Array, "b place 4"]
) -> Any:
    """The focal loss of the classes and the absolute error of the boxes, of each image's objects.

    With p the chance that is given to what is there, FL = -a (1 - p)^2 log p, a = 1/4 of a class
    that is there and 3/4 of one that is not; either sum over an image is divided by the anchors
    that have an object. Sources: Lin et al., arXiv 1708.02002, equation 5; torchvision, retinanet.

    Args:
        said: as of `detected`.
        wanted: the class of each anchor; -1: there is nothing, -2: it is not compared.
        boxes: of those that have a class.
    """
    logits, off = said[..., :-4], said[..., -4:] - boxes
    there = jax.nn.one_hot(wanted, logits.shape[-1])  # of what is below 0 it has no one
    signs = 2 * there - 1
    chances, off_by = jax.nn.sigmoid(signs * logits), -signs * logits
    # -log p, finite where p is 0, of operations that the machine has: it has no log1p.
    unlikely = jax.nn.relu(off_by) + jnp.log(1 + jnp.exp(-jnp.abs(off_by)))
    lost = (0.75 - 0.5 * there) * (1 - chances) ** 2 * unlikely
    of_classes = jnp.sum(jnp.where(wanted[..., None] > -2, lost, 0.0), axis=(1, 2))
    matched = wanted >= 0
    of_boxes = jnp.sum(jnp.where(matched[..., None], jnp.abs(off), 0.0), axis=(1, 2))
    return jnp.mean((of_classes + of_boxes) / jnp.maximum(1, jnp.sum(matched, axis=1)))


def _backbone_shapes(said: Stages, norms: bool) -> Tree:
    stages: list[list[Tree]] = []
    c = said[0][0]
    for width, repeats, _ in said:
        stages.append([])
        for _ in range(repeats):
            rows = {"a": (1, c, width), "b": (3, width, width), "c": (1, width, 4 * width)}
            if c != 4 * width:
                rows["short"] = (1, c, 4 * width)
            stages[-1].append({x: filter_shapes(*row, normed=norms) for x, row in rows.items()})
            c = 4 * width
    return {"stem": filter_shapes(7, 3, said[0][0], normed=norms), "stages": stages}


def _levels(params: Tree, x: Float[Array, "b y x c"], norms: Norms) -> list[Array]:
    """What leaves each of the four stages."""
    x = pooled(jax.nn.relu(normed(params["stem"], convolved(params["stem"], x, 2), norms)), 3)
    found: list[Array] = []
    for (_, _, stride), stage in zip(STAGES, params["stages"], strict=True):
        for i, p in enumerate(stage):
            x = _bottleneck(p, x, stride if i == 0 else 1, norms)
        found.append(x)
    return found


def _bottleneck(p: Tree, x: Float[Array, "b y x c"], stride: int, norms: Norms) -> Array:
    y = jax.nn.relu(normed(p["a"], convolved(p["a"], x), norms))
    y = jax.nn.relu(normed(p["b"], convolved(p["b"], y, stride), norms))
    y = normed(p["c"], convolved(p["c"], y), norms)
    short = normed(p["short"], convolved(p["short"], x, stride), norms) if "short" in p else x
    return jax.nn.relu(y + short)


def _pyramid(params: Tree, levels: list[Array]) -> list[Array]:
    sides = [convolved(p, x) for p, x in zip(params["lateral"], levels, strict=True)]
    for i in (1, 0):
        sides[i] = sides[i] + _doubled(sides[i + 1])
    made = [convolved(p, x) for p, x in zip(params["smooth"], sides, strict=True)]
    for p in params["pyramid"]:
        made.append(convolved(p, made[-1], 2))
    return made


def _doubled(x: Float[Array, "b y x c"]) -> Array:
    b, h, w, c = x.shape
    wide = jnp.broadcast_to(x[:, :, None, :, None], (b, h, 2, w, 2, c))
    return wide.reshape(b, 2 * h, 2 * w, c)


def _answers(head: Tree, levels: list[Array], numbers: int) -> Array:
    """The same filters on every level; so many numbers of each box."""
    found: list[Array] = []
    for x in levels:
        for p in head["inner"]:
            x = jax.nn.relu(convolved(p, x))
        found.append(convolved(head["last"], x).reshape(x.shape[0], -1, numbers))
    return jnp.concatenate(found, axis=1)
