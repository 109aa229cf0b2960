"""A model that is known by its shapes, as a loss and shapes to trace."""

from collections.abc import Callable
from math import prod
from typing import Any

import jax

from wse.models import shapes
from wse.models.doors.given import ReadModel
from wse.models.rebuilt import images, joined, recurrent, residual, stages, text, windowed
from wse.models.rebuilt.translation import translation
from wse.models.shapes.workload import Workload
from wse.models.zoo import Traceable, chain

TEXT = ("decoder", "parallel", "masked", "classes", "tags", "spans", "sentences")


def traceable(model: str | Workload, batch: int = 1, **changes: Any) -> Traceable:
    """A model of `wse.workloads`, by name, file or as a workload, as a loss and shapes.

    Args:
        model: a name or file as of `wse.workloads.get`, or what that gives; not a workload that
            was put together from layers by hand: nobody knows what these compute.
        batch: samples of the batch.
        **changes: of the shape of a model by name.

    Raises:
        ValueError: an unknown name or key, or layers of unknown origin.

    >>> sum(leaf.size for leaf in jax.tree.leaves(traceable("GPT-2-small").params))
    124439808
    """
    found = shapes.get(model, **changes) if isinstance(model, str) else model
    if found.origin is None:
        raise ValueError(
            f"{found.name} is known by its {len(found.layers)} layers alone, not by what they "
            "compute: pass your loss with params and batch"
        )
    made = built(*found.origin, batch)
    count = sum(prod(leaf.shape) for leaf in jax.tree.leaves(made.params))
    if count != found.parameters:
        raise ValueError(
            f"{found.name} has {found.parameters:,} parameters, the {found.origin[0]} that it was "
            f"counted from {count:,}: its layers were changed; pass your loss with params and batch"
        )
    return made


def rebuilt(found: ReadModel, batch: int = 1) -> Traceable:
    """A model from `wse.read_model` as what `wse.trace` and `wse.check` take; no weight is made.

    It has as many parameters as the workload, and the operations of the model that the file
    describes, but for those that are listed as harmless: dropout, scales, caps of logits.

    Args:
        found: what was read.
        batch: samples of the batch.

    >>> import tempfile, pathlib, wse
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "mnist.yaml"
    >>> _ = path.write_text("model: {name: fc_mnist, hidden_sizes: [50, 50]}")
    >>> wse.check(*vars(rebuilt(wse.read_model(path))).values()).verdict
    'native'
    """
    return built(found.family, found.net, batch)


def built(family: str, shape: Any, batch: int) -> Traceable:
    """The model of a family and its shape, as `wse.workload.Workload.origin` has them."""
    return FAMILIES.get(family, chain)(shape, batch)


FAMILIES: dict[str, Callable[[Any, int], Traceable]] = {
    "transformer": text.stack,
    **dict.fromkeys(TEXT, text.stack),
    "pair": translation,
    "picture": images.picture,
    "diffused": images.diffused,
    "captions": joined.captions,
    "heard": joined.heard,
    "seen": joined.pictured,
    "recurrent": recurrent.recurrent,
    "convnext": stages.convnext,
    "swin": windowed.swin,
    "unet": images.segmented,
    "resnet50": residual.resnet50,
    "retinanet": residual.retinanet,
    "chain": chain,
}
