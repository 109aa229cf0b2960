"""The model of a run: a Flax module, and the loss that its output gives."""

# JAX and Flax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from pydantic import Field

from wse._document import check_keys, typed
from wse.job.data import Samples
from wse.models.built import first_line
from wse.models.own import named as own
from wse.models.trainable.module import Module
from wse.models.trainable.weights import rates
from wse.models.trainable.which import Named

WIDEST = 10**6  # units of a layer; assumed: wider ones fill any memory
ACTIVATIONS = {"relu": nnx.relu, "swish": nnx.swish, "gelu": nnx.gelu, "tanh": jnp.tanh}
UNITS = Field(gt=0, le=WIDEST, description="a positive integer up to 10^6: write one such as 128")


@dataclass(frozen=True)
class Measured:
    """What `model` says of every net: the loss, "mse" or "cross_entropy"."""

    loss: Literal["mse", "cross_entropy"] = "mse"


@dataclass(frozen=True)
class Dense(Measured):
    """What `model` says of the perceptron."""

    hidden_sizes: tuple[Annotated[int, UNITS], ...] = (128, 128)
    activation_fn: Literal["relu", "swish", "gelu", "tanh"] = "relu"


@dataclass(frozen=True)
class Model:
    """A module taken apart.

    Attributes:
        params: its parameters.
        predict: (params, features) → outputs; of a model by name, statistics of norms after them.
        loss: (params, batch) → the mean over the batch.
        rates: of a model by name, factors of the learning rate, a tree as of the parameters; 0: of
            no product of a block.
        statistics: (params, batch) → mean and variance of every norm over the batch; None: there
            is no such norm.
        compared: how outputs are with labels, "mse" or "cross_entropy", and the shape of one
            sample's; None: by the module's own loss.
    """

    params: Any
    predict: Callable[[Any, Any], Any]
    loss: Callable[[Any, Any], Any]
    rates: Any = None
    statistics: Callable[[Any, Any], Any] | None = None
    compared: tuple[str, tuple[int, ...]] | None = None


class Perceptron(nnx.Module):
    """The model where none is named: dense layers over the flattened features.

    Args:
        inputs: numbers of a sample.
        outputs: numbers of an answer; one for each class of a cross entropy.
        hidden_sizes: units of the hidden layers.
        activation_fn: relu, swish, gelu or tanh.
        rngs: of the first weights.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        hidden_sizes: Sequence[int] = (128, 128),
        activation_fn: str = "relu",
        *,
        rngs: nnx.Rngs,
    ) -> None:
        self.activation = nnx.static(ACTIVATIONS[activation_fn])
        sizes = [inputs, *hidden_sizes, outputs]
        self.layers = nnx.List(nnx.Linear(n, m, rngs=rngs) for n, m in pairwise(sizes))

    def __call__(self, features: Any) -> Any:
        """Outputs of the last layer, as they are."""
        x = features.reshape(len(features), -1)
        for layer in [*self.layers][:-1]:
            x = self.activation(layer(x))
        return [*self.layers][-1](x)


def build(
    path: str | None,
    settings: Mapping[str, Any],
    samples: Samples,
    seed: int = 0,
    named: Named | None = None,
) -> Model:
    """Make the module and take it apart.

    Args:
        path: "package.module:Class" of a Flax NNX module, which is called with `settings` and
            `rngs`; None: a perceptron. It comes from the command line, never from a file.
        settings: the params file's `model`; `loss` in it is "mse" or "cross_entropy", for modules
            without a method `loss(batch)` of their own.
        samples: what it will see.
        seed: of the first weights.
        named: the model that the settings name; None: they name none.

    Raises:
        ValueError: no such class, settings that it does not take, another loss, or a module whose
            state is more than parameters, that raises, or that returns several arrays.
    """
    if named is not None:
        made = _taken_apart(Module(named, rngs=nnx.Rngs(seed)), "mse")
        return replace(
            made,
            rates=rates(named, made.params),
            statistics=made.statistics if named.normed else None,
        )
    said = {"loss": "mse", **settings}
    measure = typed.made(Measured, {"loss": said["loss"]}, "model").loss
    kind: Any = Perceptron if path is None else _class(path)
    if path is None:
        dense = typed.made(Dense, said, "model")
        said = {**vars(dense), **_sizes(samples, measure)}
    del said["loss"]
    check_keys(said, _arguments(kind), "model")
    try:
        made = _taken_apart(kind(**said, rngs=nnx.Rngs(seed)), measure)
        if path is not None:
            jax.eval_shape(made.loss, made.params, samples.batch(0))
    except ValueError:
        raise
    except Exception as error:  # whatever the user's class raises
        raise ValueError(
            f"{path} raised {type(error).__name__}: {first_line(error)}; it is made with the "
            "file's `model` and called with features, or its loss(batch) with a batch: correct it"
        ) from error
    made = replace(made, statistics=None)
    if path is not None and getattr(kind, "loss", None) is not None:
        return made
    outputs = jax.eval_shape(made.predict, made.params, samples.batch(0)["features"])
    made = replace(made, compared=(measure, outputs.shape[1:]))
    check_labels(made, samples.labels, "train_input")
    return made


def check_labels(model: Model, labels: Any, place: str) -> None:
    """Refuse labels that a model's outputs cannot be compared with.

    Raises:
        ValueError: another number of them for each sample, or in a cross entropy other numbers
            than those of the classes.
    """
    if model.compared is None or labels is None:
        return
    measure, shape = model.compared
    classes = measure == "cross_entropy"
    wanted, each = prod(shape[:-1] if classes else shape), prod(labels.shape[1:])
    known = labels.dtype.kind in "iu" and labels.min() >= 0 and labels.max() < shape[-1]
    if each != wanted or (classes and not known):
        rule = f"whole numbers from 0 to {shape[-1] - 1}, " if classes else ""
        raise ValueError(
            f"labels of {place} are {labels.dtype}, {each} for each sample, from {labels.min()} to "
            f"{labels.max()}; loss: {measure} compares {rule}{wanted} for each sample: correct the "
            "labels, or the loss"
        )


def compared(named: str, outputs: Any, labels: Any) -> Any:
    """The mean loss of outputs: squared error, or the cross entropy of whole-number classes."""
    if named == "mse":
        return jnp.mean((outputs - labels.reshape(outputs.shape)) ** 2)
    losses = optax.softmax_cross_entropy_with_integer_labels(outputs, labels.reshape(-1))
    return losses.mean()


def _taken_apart(module: Any, measure: str) -> Model:
    graph, params, other = nnx.split(module, nnx.Param, ...)
    if leaves := [str(key) for key in nnx.to_flat_state(other).paths]:
        raise ValueError(
            f"{type(module).__name__} has state that is no parameter: {', '.join(leaves)}; a step "
            "keeps parameters alone: use group norm in place of batch norm, and no dropout"
        )

    def predict(params: Any, features: Any, *more: Any) -> Any:
        return nnx.merge(graph, params)(features, *more)

    def statistics(params: Any, batch: Any) -> Any:
        return nnx.merge(graph, params).statistics(batch)

    def loss(params: Any, batch: Any) -> Any:
        own = getattr(nnx.merge(graph, params), "loss", None)
        if own is not None:
            found = own(batch)
            return found[0] if isinstance(found, tuple) else found
        said = predict(params, batch["features"])
        if len(jax.tree.leaves(said)) != 1:
            raise ValueError(
                f"{type(module).__name__} returns {jax.tree.structure(said)}; what is compared "
                "with labels is one array: return that, or write a method loss(batch)"
            )
        return compared(measure, said, batch["labels"])

    return Model(params, predict, loss, None, statistics)


def _class(path: str) -> Any:
    rule = "it must name a Flax NNX module as package.module:Class"
    found = own(path, rule)
    if not (inspect.isclass(found) and issubclass(found, nnx.Module)):
        raise ValueError(f"model is {path!r}; {rule}")
    return found


def _arguments(kind: Any) -> list[str]:
    names = [*inspect.signature(kind.__init__).parameters][1:]
    if "rngs" not in names:
        raise ValueError(f"{kind.__name__} takes no rngs; a module needs them for first weights")
    return [name for name in names if name != "rngs"]


def _sizes(samples: Samples, loss: str) -> dict[str, int]:
    labels = samples.labels
    if labels is None:
        shape = samples.features.shape
        raise ValueError(
            f"the perceptron's outputs are as many as labels; the input, of {shape}, has no labels"
        )
    outputs = prod(labels.shape[1:]) if loss == "mse" else max(0, int(labels.max())) + 1
    if outputs > WIDEST:
        raise ValueError(
            f"labels are up to {labels.max()}, and each number is a class; there may be {WIDEST:,}"
            ": number the classes from 0, or write loss: mse"
        )
    return {"inputs": prod(samples.features.shape[1:]), "outputs": outputs}
