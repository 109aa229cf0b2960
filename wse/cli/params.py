"""What several commands ask for, and do with a stranger's model file."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wse.machine.target import HALVES

if TYPE_CHECKING:
    from wse.machine.cluster import Cluster
    from wse.models.doors.given import ReadModel
    from wse.predict.result import Estimate

Example = Annotated[
    str, typer.Option(help="What enters a module of yours, as 8x3x224x224 or 8x128:int.")
]
SAMPLES = 1_000_000  # processed where neither file nor command says how many


def estimated(
    found: "ReadModel",
    cluster: "Cluster",
    *,
    batch: int = 0,
    samples: int | None = None,
    micro_batch: int = 0,
    release: str = "",
) -> "Estimate":
    """An estimate of a model that was read; what is 0, empty or None is as its file says.

    A micro-batch of the file that our model of the memory has no room for is left out, with a
    caution.
    """
    from wse.predict.estimate import estimate

    size = batch or found.batch
    step = size or 100 * cluster.systems
    usual = found.steps * step if found.steps else max(SAMPLES, step) if found.batch else SAMPLES
    total = usual if samples is None else samples
    said: dict[str, Any] = {"batch": size, "machine": cluster, "samples": total}
    said["release"] = release or None
    single = "the file asks for float32; the machine trains in mixed precision alone"
    cautions = (*found.cautions, *((single,) * (found.precision == "float32")))
    asked = micro_batch or found.micro_batch
    try:
        made = estimate(found.workload, micro_batch=asked, **said)
    except ValueError as error:
        if micro_batch or not asked or "micro_batch" not in str(error):
            raise
        made = estimate(found.workload, **said)
        cautions = (*cautions, f"the file's micro-batch is left out: {error}")
    return replace(made, cautions=(*cautions, *made.cautions))


def cluster_of(found: "ReadModel", cluster: Any, systems: int) -> Any:
    """The cluster with the file's systems where the command names none, and its precision."""
    from wse.machine import cluster as wafers

    if not isinstance(cluster, wafers.Cluster):  # of GPUs, TPUs and CPUs
        return replace(cluster, systems=systems or found.systems or cluster.systems)
    half = found.precision if found.precision in HALVES else None
    return replace(
        cluster,
        systems=systems or found.systems or cluster.systems,
        precision=cluster.precision or half,
    )


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
