"""The check: which operations of a training function would port to a machine."""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from wse._numbers import of_loss, short
from wse.checks.verdicts import Finding, Report
from wse.graph.function import program_of
from wse.graph.layers import Graph
from wse.graph.trace import trace
from wse.machine.cluster import Cluster
from wse.machine.machine import Machine
from wse.machine.support.judge import judged
from wse.machine.support.rules import VERDICTS, Rule, Use
from wse.machine.support.table import HINTS, RULES
from wse.machine.target import Needs, Target, target
from wse.models import from_graph, operators, shapes
from wse.models.doors.given import ReadModel
from wse.models.rebuilt.build import rebuilt, traceable
from wse.models.shapes.workload import Workload
from wse.models.zoo import Traceable


def check(
    graph_or_loss: Graph | Callable[..., Any] | Workload | ReadModel | str,
    params: Any = None,
    batch: Any = None,
    *,
    machine: Cluster | Machine | str | None = None,
    release: str | None = None,
    mode: str | None = None,
    rules: tuple[Rule, ...] | None = None,
    **said: Any,
) -> Report:
    """Verdicts on every operation of a training function, forward and backward.

    Nothing is computed: the function is traced on shapes. An operation is "native", "decomposed"
    into native ones, "unsupported", or "unknown" where no public source says.

    Args:
        graph_or_loss: a `Graph` from `wse.trace`, or `loss(params, batch)` itself, with
            auxiliary outputs beside the loss or without; or a model that `wse.estimate` takes: a
            name, or a workload, but none that was put together from layers by hand; or what
            `wse.read_model` gives.
        params: as for `wse.trace`; not with a graph.
        batch: as for `wse.trace`; not with a graph.
        machine: a cluster as `wse.CS2()`, whose precision counts too, a machine of `wse.catalog`,
            or a name as "cs2"; None: one CS-2.
        release: of the vendor's software, as "1.6" or "R2.10"; None: the last that the machine had
            in the mode.
        mode: "streaming" or "pipelined"; None: the cluster's, and if it has none, the one that
            `wse.estimate` chooses for the same model.
        rules: what is known; None: `wse.support.RULES`, in front of which your own rules go.
        **said: of a loss function, as for `wse.trace`: `batch_size`, where its arrays differ along
            the leading axis; `has_aux`, if not every pair that it returns has auxiliary outputs.

    Returns:
        The report: `print` it, or look at `.verdict`, `.portable`, `.findings`, `.dataset`.

    Raises:
        ValueError: an unknown mode, a release that is unknown or that the machine never had, or a
            loss whose parameters, batch or result `wse.trace` refuses.

    >>> import jax.numpy as jnp
    >>> def loss(w, x):
    ...     return jnp.mean(jnp.sort(jnp.tanh(x @ w)))
    >>> report = check(loss, jnp.ones((3, 2)), jnp.ones((4, 3)))
    >>> report.verdict, [f.use.operation for f in report.of("unknown") if not f.use.backward]
    ('unknown', ['sort'])
    """
    said = of_loss(graph_or_loss, said)
    attention = ""
    if isinstance(graph_or_loss, str | Workload | ReadModel) and params is None:
        made, known = _built(graph_or_loss)
        graph_or_loss, params, batch = made.loss, made.params, made.batch
        attention = known.attention and f"{known.attention}, its operations judged one by one"
    if isinstance(graph_or_loss, Graph) and params is not None:
        raise ValueError(
            f"params is {short(params)} beside a graph, which has its own: pass the graph alone"
        )
    if not isinstance(graph_or_loss, Graph) and (params is None or not callable(graph_or_loss)):
        raise TypeError(
            f"what is checked is a {type(graph_or_loss).__name__} alone; it must be a loss with "
            "its parameters and a batch, or a graph: wse.check(loss, params, batch)"
        )
    target(machine, mode, release)  # refused before the work of tracing
    uses, needs, faults = _uses(graph_or_loss, params, batch, said)
    needs = replace(needs, attention=attention) if needs and attention else needs
    goal = target(machine, mode, release, needs)
    machine, asked = goal.cluster.machine, goal.cluster.mode or "streaming"
    findings = [
        _finding(use, layer, line, count, goal, RULES if rules is None else rules)
        for (layer, line, use), count in uses.items()
    ]
    # The order of the program within a verdict: sorting is stable.
    findings.sort(key=lambda f: VERDICTS.index(f.verdict), reverse=True)
    release = goal.release.removeprefix("R")
    return Report(machine.name, asked, release, tuple(findings), faults, goal.why)


def _built(model: Workload | ReadModel | str) -> tuple[Traceable, Workload]:
    """A model that is known by its shapes, as what is traced and as what is estimated."""
    if isinstance(model, ReadModel):
        return rebuilt(model), model.workload
    known = shapes.get(model) if isinstance(model, str) else model
    return traceable(known), known


def _uses(
    source: Graph | Callable[..., Any], params: Any, batch: Any, said: dict[str, Any]
) -> tuple[operators.Uses, Needs | None, tuple[str, ...]]:
    if isinstance(source, Graph):
        return operators.of_graph(source), _needs(source), ()
    # What cannot be differentiated or cut into layers still has operations to report.
    whole = program_of(source, params, batch, **said).closed
    try:
        graph = trace(source, params, batch, **said)
    except ValueError as error:
        return operators.of_function(whole), None, (str(error).partition("\n")[0],)
    return operators.of_graph(graph), _needs(graph), ()


def _needs(graph: Graph) -> Needs:
    """What the choice of a mode asks of the model, from the workload that an estimate is of."""
    work = from_graph.workload(graph)
    return Needs(work.parameters, work.is_dense_chain, work.doubt, work.attention)


def _finding(
    use: Use, layer: str, line: str, count: int, goal: Target, rules: tuple[Rule, ...]
) -> Finding:
    verdict, deciding = judged(use, goal, rules)
    remedy = "; ".join(dict.fromkeys(rule.remedy for rule in deciding if rule.remedy))
    if verdict == "unknown":
        # A filter is flipped by the gradient of a convolution: what helps that helps here.
        flipped = use.operation == "rev" and "filter" in use.traits
        remedy = HINTS.get("conv_general_dilated" if flipped else use.operation, "")
    return Finding(use, layer, line, count, verdict, deciding, remedy)
