"""What the page is about, whatever door it came through."""

# What a user's program holds has no type; torch is an extra.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportMissingImports=false

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wse._numbers import of_loss, positive
from wse.graph.layers import Graph
from wse.graph.trace import trace
from wse.models import from_graph, shapes
from wse.models.doors.given import ReadModel
from wse.models.doors.read import read_model
from wse.models.pytorch.module import FromTorch, from_torch
from wse.models.rebuilt.build import rebuilt, traceable
from wse.models.shapes.workload import Workload
from wse.models.zoo import Traceable
from wse.precision import FORMATS


@dataclass(frozen=True)
class Subject:
    """A model: its numbers, and where there is one its training function.

    Attributes:
        name: what the page calls it.
        door: through which it came, in words.
        workload: its layers.
        made: its loss with params and batch; None: it is known by its shapes alone.
        graph: the same, traced; None where it is not, or by a door that gives the numbers itself.
        mute: why there is no training function; empty: there is one.
        batch: samples of a step; None: not said.
        systems: how many the file asks for; None: not said.
        precision: the half precision that the file asks for; None: not said.
        samples: of the training that the file asks for; None: not said.
        cautions: what is in doubt.
        harmless: keys of a file that change no count and no shape.
    """

    name: str
    door: str
    workload: Workload
    made: Traceable | None = None
    graph: Graph | None = None
    mute: str = ""
    batch: int | None = None
    systems: int | None = None
    precision: str | None = None
    samples: int | None = None
    cautions: tuple[str, ...] = ()
    harmless: tuple[str, ...] = ()


def subject(
    model: Any, params: Any = None, batch: Any = None, name: str = "", **said: Any
) -> Subject:
    """What is asked about, from whatever `wse.port` takes.

    Raises:
        ValueError: something else, or what the door refuses.
    """
    said = of_loss(model, said)
    if isinstance(model, FromTorch | Traceable):
        found = _function(model.loss, model.params, model.batch, "a training function", said)
    elif _is_torch(model):
        found = _torch(model, params, said)
    elif isinstance(model, str | Path):
        found = _named(str(model))
    elif isinstance(model, ReadModel):
        found = _read(model, "a file that was read")
    elif isinstance(model, Workload):
        found = _seen(model, model, "a workload")
    elif isinstance(model, Graph):
        found = Subject("traced model", "a graph", from_graph.workload(model), graph=model)
        found = replace(found, batch=model.batch_size)
    elif callable(model) and params is not None:
        found = _function(model, params, batch, "a training function in JAX", said)
    else:
        raise ValueError(
            f"model is a {type(model).__name__}; it must be a name, a file, a module of PyTorch "
            "with an example, or a loss with params and batch: wse.port(loss, params, batch)"
        )
    if found.made is None or found.graph is None:
        found = _with_batch(found, params, batch)
    return replace(found, name=name or found.name)


def _with_batch(found: Subject, params: Any, batch: Any) -> Subject:
    """Of a model that is known by its shapes: the samples of a step, where they are given."""
    if params is not None:
        raise ValueError(
            f"params is a {type(params).__name__} beside {found.name}, which has its own; pass "
            "the samples of a step as batch=..."
        )
    size = found.batch if batch is None else positive("batch", batch, "pass batch=100")
    return replace(found, batch=size)


def _function(loss: Any, params: Any, batch: Any, door: str, said: Mapping[str, Any]) -> Subject:
    made = Traceable(loss, params, batch)
    graph = trace(loss, params, batch, **said)
    name = getattr(loss, "__name__", "") or "your model"
    work = from_graph.workload(graph, "your model" if name in ("loss", "measured") else name)
    size, cautions = graph.batch_size, graph.cautions
    return Subject(work.name, door, work, made, graph, batch=size, cautions=cautions)


def _is_torch(model: Any) -> bool:
    torch: Any = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def _torch(model: Any, example: Any, said: Mapping[str, Any]) -> Subject:
    if example is None:
        raise ValueError(
            f"{type(model).__name__} is a module of PyTorch; its example is {example}: pass "
            "wse.port(module, example) with a tensor of the shape of a batch"
        )
    made = from_torch(model, example)
    found = _function(made.loss, made.params, made.batch, "a module of PyTorch", said)
    return replace(found, name=type(model).__name__)


def _named(name: str) -> Subject:
    path = Path(name)
    if path.is_dir() or path.suffix == ".json":
        return _read(read_model(path), "a configuration of Hugging Face")
    if path.suffix in (".yaml", ".yml"):
        try:
            return _read(read_model(path), "a params file of the Model Zoo")
        except ValueError as error:
            if "no params file" not in str(error):
                raise
    return _seen(name, shapes.get(name), "a model by name")


def _seen(model: str | Workload, work: Workload, door: str) -> Subject:
    """With the model's operations, where it can be built here."""
    try:
        made, mute = traceable(model), ""
    except ValueError as error:
        made, mute = None, str(error)
    return Subject(work.name, door, work, made, mute=mute)


def _read(found: ReadModel, door: str) -> Subject:
    samples = found.steps * found.batch if found.steps and found.batch else None
    return Subject(
        found.workload.name,
        door,
        found.workload,
        rebuilt(found),
        batch=found.batch,
        systems=found.systems,
        precision=found.precision if found.precision in FORMATS else None,
        samples=samples,
        cautions=found.cautions,
        harmless=found.harmless,
    )
