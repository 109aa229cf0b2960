"""A model by name as a Flax module: the functions that are checked and estimated, with weights."""

# JAX and Flax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from wse.models.rebuilt import images, residual, text, translation
from wse.models.rebuilt.build import built
from wse.models.rebuilt.filters import Norms
from wse.models.trainable.losses import classed, placed, worded
from wse.models.trainable.weights import first
from wse.models.trainable.which import Named

Batch = Mapping[str, Any]


class Module(nnx.Module):
    """A model by name. Its parameters number as many as an estimate counts.

    Args:
        found: the model.
        rngs: of the first weights.
    """

    def __init__(self, found: Named, *, rngs: nnx.Rngs) -> None:
        self.found = nnx.static(found)
        shape = found.shape
        blocks = shape.num_hidden_layers if shape else 1
        made = first(
            built(found.family, found.net, 1).params, rngs.params(), shape and shape.manner, blocks
        )
        self.weights = nnx.data(jax.tree.map(nnx.Param, made))

    def __call__(self, features: Any, statistics: Any = None) -> Any:
        """What the model says of features: logits of words, of classes, of places, of anchors."""
        if self.found.family == "pair":
            return translation.answer(self.found.net, self._held(), jnp.asarray(features))
        said = self.said({"features": features, "statistics": statistics})
        return said.get("words", said.get("pooled", next(iter(said.values()))))

    def statistics(self, batch: Batch) -> list[tuple[Any, Any]]:
        """Mean and variance of every norm over this batch; none where there is no such norm."""
        norms = Norms()
        self.said(batch, norms)
        return norms.found

    def said(self, batch: Batch, norms: Norms | None = None) -> Mapping[str, Any]:
        """The outputs of every head; with `keys` in the batch, by chance not of all numbers."""
        norms = norms or Norms(batch.get("statistics"))
        weights = self._held()
        x: Any = jnp.asarray(batch["features"])
        segments, keys = (
            None if batch.get(name) is None else jnp.asarray(batch[name])
            for name in ("segments", "keys")
        )
        if self.found.family == "pair":
            before = translation.before(jnp.asarray(batch["labels"]))
            return {"words": translation.answered(self.found.net, weights, x, before, keys)}
        if self.found.family == "unet":
            return {"places": images.outlined(self.found.net, weights, x, norms)}
        if self.found.family == "resnet50":
            return {"classes": residual.classified(weights, x, norms)}
        if self.found.family == "retinanet":
            return {"anchors": residual.detected(self.found.net, weights, x)}
        if self.found.family == "picture":
            return {"classes": images.seen(self.found.net, weights, x, keys)}
        return text.read(self.found.net, weights, x, segments, keys)

    def _held(self) -> Any:
        """The weights as arrays."""
        return jax.tree.map(
            lambda held: jnp.asarray(held[...]),
            self.weights,
            is_leaf=lambda x: isinstance(x, nnx.Param),
        )

    def loss(self, batch: Batch) -> Any:
        """The mean loss of a batch, of all heads that its labels are for."""
        said: Any = self.said(batch)
        shape: Any = self.found.shape
        total: Any = jnp.float32(0)
        if "places" in said:
            return placed(said["places"], jnp.asarray(batch["labels"]))
        if "anchors" in said:
            labels, boxes = (jnp.asarray(batch[name]) for name in ("labels", "boxes"))
            return residual.sought(said["anchors"], labels, boxes)
        if "classes" in said:
            return classed(said["classes"], jnp.asarray(batch["labels"]))
        if "words" in said:
            total = worded(said["words"], jnp.asarray(batch["labels"]), shape.manner.token_weight)
        if "pooled" in said:
            name = "sentence" if "words" in said else "labels"
            total = total + shape.manner.sentence_weight * classed(
                said["pooled"], jnp.asarray(batch[name])
            )
        return total
