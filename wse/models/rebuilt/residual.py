"""ResNet-50, and RetinaNet on it."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from wse.models.rebuilt.blocks import Tree, linear, linear_shapes
from wse.models.rebuilt.filters import Norms, convolved, filter_shapes, normed, pooled
from wse.models.rebuilt.text import crossed
from wse.models.shapes.convolution import ANCHORS, STAGES, Stages, stages_of
from wse.models.zoo import Traceable

PYRAMID = 256  # sourced: Lin et al., arXiv 1708.02002: channels of every level


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
    """The focal loss of classes and the absolute error of boxes; the backbone's norms are frozen.

    A frozen norm is a scale and a shift that the compiler folds into the filters: it is left out.
    """
    size, classes, c = shape["size"], shape["classes"], PYRAMID
    heads = {"classes": ANCHORS * classes, "boxes": ANCHORS * 4}
    params: Tree = {
        **_backbone_shapes(STAGES, False),
        "lateral": [filter_shapes(1, k, c, bias=True) for k in (512, 1024, 2048)],
        "smooth": [filter_shapes(3, c, c, bias=True) for _ in range(3)],
        "pyramid": [filter_shapes(3, c, c, bias=True) for _ in range(2)],
        **{
            name: [filter_shapes(3, c, k, bias=True) for k in (*(c,) * 4, leaves)]
            for name, leaves in heads.items()
        },
    }

    def loss(params: Tree, batch: Any) -> Any:
        images, wanted, boxes = batch
        levels = _pyramid(params, _levels(params, images, Norms())[1:])
        said = _answers(params["classes"], levels, classes)
        off = _answers(params["boxes"], levels, 4) - boxes
        return _focal(said, wanted) + jnp.mean(jnp.abs(off))

    places = ANCHORS * sum((size // n) ** 2 for n in (8, 16, 32, 64, 128))
    shapes = ((size, size, 3), (places, classes), (places, 4))
    answers = tuple(jax.ShapeDtypeStruct((batch, *one), jnp.float32) for one in shapes)
    return Traceable(loss, params, answers)


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


def _answers(head: list[Tree], levels: list[Array], numbers: int) -> Array:
    """The same filters on every level; so many numbers of each box."""
    found: list[Array] = []
    for x in levels:
        for p in head[:-1]:
            x = jax.nn.relu(convolved(p, x))
        found.append(convolved(head[-1], x).reshape(x.shape[0], -1, numbers))
    return jnp.concatenate(found, axis=1)


def _focal(said: Float[Array, "b place class"], wanted: Array) -> Any:
    p = jax.nn.sigmoid(said)
    missed = wanted * (1 - p) ** 2 * jnp.log(p + 1e-6)
    return -jnp.mean(missed + (1 - wanted) * p**2 * jnp.log(1 - p + 1e-6))
