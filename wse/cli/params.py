"""What several commands ask for, and do with a stranger's model file."""

from collections.abc import Callable, Container
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wse._numbers import positive, short
from wse.machine.target import HALVES

if TYPE_CHECKING:
    from wse.machine.cluster import Cluster
    from wse.models.doors.given import ReadModel
    from wse.predict.result import Estimate

Example = Annotated[
    str, typer.Option(help="What enters a module of yours, as 8x3x224x224 or 8x128:int.")
]
BatchSize = Annotated[
    int | None,
    typer.Option(help="Samples in the batch of your program; left out: by its largest array."),
]
HasAux = Annotated[
    bool | None,
    typer.Option(help="Your loss returns more than its value, or not; left out: it is seen."),
]
TRACED = "traced"  # the family of a program of the user's, whose net is a graph
SAMPLES = 1_000_000  # processed where neither file nor command says how many


def refuse_beside(other: str, **given: Any) -> None:
    """Refuse options that nothing would read beside another; None: not given.

    >>> refuse_beside("model 'GPT-J-6B', which has its own", width=64)
    Traceback (most recent call last):
    ...
    ValueError: width is 64 beside model 'GPT-J-6B', which has its own: leave it out
    """
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} is {short(value)} beside {other}: leave it out")


def refuse_twice(option: str, name: str, found: Container[str]) -> None:
    """Refuse a machine that an option names again: one of both values would be lost."""
    if name in found:
        raise ValueError(f"{option} names {name!r} twice; name each machine once: drop one")


def said_of(name: str, batch_size: int | None, has_aux: bool | None) -> dict[str, Any]:
    """What is said of a loss beside it, as for `wse.trace`; only of a program of the user's.

    Raises:
        ValueError: it is said of another model.
    """
    from wse.models import own

    given: dict[str, Any] = {"batch_size": batch_size, "has_aux": has_aux}
    given = {word: value for word, value in given.items() if value is not None}
    if given and not own.is_own(name):
        word, value = next(iter(given.items()))
        raise ValueError(
            f"{word} is {value} beside model {name!r}; it is of the loss of a program of your own, "
            "as model.py:step: leave it out"
        )
    return given


def graph_of(name: str, example: str, said: dict[str, Any]) -> Any:
    """A program of the user's, traced."""
    from wse.graph.trace import trace
    from wse.models import own

    made = own.traceable(name, example)
    return trace(made.loss, made.params, made.batch, **{"has_aux": None, **said})


def estimated(
    found: "ReadModel",
    cluster: "Cluster",
    *,
    batch: int | None = None,
    samples: int | None = None,
    micro_batch: int | None = None,
    release: str = "",
) -> "Estimate":
    """An estimate of a model that was read; what is None or empty is as its file says.

    A micro-batch of the file that our model of the memory has no room for is left out, with a
    caution.
    """
    from wse.predict.estimate import estimate

    size = found.batch if batch is None else positive("batch", batch, "pass --batch 100")
    step = size or 100 * cluster.systems
    steps = found.steps and positive("steps", found.steps, "pass 1 or more")
    usual = steps * step if steps else max(SAMPLES, step) if found.batch else SAMPLES
    total = usual if samples is None else samples
    said: dict[str, Any] = {"batch": size, "machine": cluster, "samples": total}
    said["release"] = release or None
    # A program of the user's, unless it is thinned: its operations have cautions of their own.
    asked: Any = found.net if found.family == TRACED else found.workload
    single = "the file asks for float32; the machine trains in mixed precision alone"
    cautions = (*found.cautions, *((single,) * (found.precision == "float32")))
    parts = found.micro_batch if micro_batch is None else micro_batch
    try:
        made = estimate(asked, micro_batch=parts, **said)
    except ValueError as error:
        if micro_batch is not None or not parts or "micro_batch" not in str(error):
            raise
        made = estimate(asked, **said)
        cautions = (*cautions, f"the file's micro-batch is left out: {error}")
    named = replace(made.workload, name=found.workload.name)
    return replace(made, workload=named, cautions=(*cautions, *made.cautions))


def cluster_of(found: "ReadModel", cluster: Any, systems: int | None) -> Any:
    """The cluster with the file's systems where the command names none, and its precision."""
    from wse.machine import cluster as wafers

    count = (found.systems or cluster.systems) if systems is None else systems
    if not isinstance(cluster, wafers.Cluster):  # of GPUs, TPUs and CPUs
        return replace(cluster, systems=count)
    half = found.precision if found.precision in HALVES else None
    return replace(cluster, systems=count, precision=cluster.precision or half)


def numbers(name: str, text: str, kind: Callable[[str], Any]) -> list[Any]:
    """Numbers with commas between, as an option has them.

    Raises:
        ValueError: something else.
    """
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(
            f"{name} is {text!r}; it must be numbers with commas between: pass --{name} 1,2,4"
        ) from None
