"""Whether and how to port a model, on one page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import lcm
from pathlib import Path
from typing import Any

from wse import _files
from wse._numbers import MOST, is_whole, of_loss, positive, short
from wse.checks import Report, check
from wse.choose.compare import USUAL, compare
from wse.choose.page import markup, plain, words
from wse.choose.page.answer import Facts
from wse.choose.page.levers import levers, unsure
from wse.choose.page.memory import memory
from wse.choose.page.subject import Subject, subject
from wse.choose.page.trials import Data, Trials, tried
from wse.choose.table import Comparison
from wse.machine.cluster import Cluster
from wse.machine.processors import Here
from wse.machine.processors import chosen as device
from wse.machine.specification import chosen
from wse.predict.estimate import SAMPLES_PER_SYSTEM, Estimate, estimate

SAMPLES = 1_000_000  # processed, where neither the call nor the model's file says how many
NO_DATA = "no data was given: pass data=(inputs, targets), or --data FILE.npz"


@dataclass(frozen=True)
class Port:
    """The page on one model. It shows itself in a notebook; `save("port.html")` elsewhere.

    Attributes:
        facts: what the page says: `check`, `estimates`, `memory`, `comparison`, `unsure`,
            `levers`, `trials`, `unknowns`.
    """

    facts: Facts

    @property
    def verdict(self) -> str:
        """The worst of all operations: "native", "decomposed", "unknown" or "unsupported"."""
        return self.facts.verdict

    @property
    def portable(self) -> bool:
        """Whether every operation is known to be supported."""
        return self.facts.portable

    @cached_property
    def html(self) -> str:
        """The page, whole: it needs no other file and no network."""
        return markup.page(self.facts)

    def document(self) -> dict[str, Any]:
        """All of it in types that JSON knows."""
        return plain.document(self.facts)

    def save(self, path: Path | str) -> Path:
        """Write the page.

        Raises:
            ValueError: a name that does not end in .html.
            OSError: the file cannot be written.
        """
        path = _files.as_path("path", path, "pass port.html")
        if path.suffix != ".html":
            raise ValueError(f"path is {str(path)!r}; a page ends in .html: pass port.html")
        with _files.write_aside(path) as aside:
            aside.write_text(self.html, encoding="utf-8")
        return path

    def __repr__(self) -> str:
        """One line: the model and the verdict."""
        return f"Port({self.facts.subject.name}: {self.verdict})"

    def __str__(self) -> str:
        """The answers in a few lines."""
        lines = [f"{question} {answer}" for question, answer in words.answers(self.facts)]
        remedies = [
            f"  {x.operation} {x.line}: {x.verdict}{f'; {x.remedy}' if x.remedy else ''}"
            for x in self.facts.operations
            if x.verdict in ("unknown", "unsupported")
        ]
        return "\n".join((self.facts.subject.name, *lines[:1], *remedies, *lines[1:]))

    def _repr_html_(self) -> str:
        """The page, in a frame of its own."""
        return markup.framed(self.html)


def port(
    model: Any,
    params: Any = None,
    batch: Any = None,
    *,
    machine: Any = None,
    samples: int | None = None,
    systems: Sequence[int] | None = None,
    beside: Sequence[Any] | Mapping[Any, int | float | None] | None = None,
    data: Any = None,
    **said: Any,
) -> Port:
    """Whether a model would port, how long it would take and what it would gain, on one page.

    Args:
        model: `loss(params, batch)` as for `wse.check`; a name of `wse workloads`; a params file of
            the Model Zoo, a config.json or its folder; a `torch.nn.Module`, or what
            `wse.from_torch` gave; a graph or a workload.
        params: of a loss; of a module of PyTorch its example.
        batch: of a loss; of other models the samples of a step.
        machine: as for `wse.estimate`; one CS-2 if left out.
        samples: processed, every epoch counted; None: what the file says, or 10^6.
        systems: how many, the first of which the page is about; None: as many as the file says,
            or one, and four times that.
        beside: machines to compare with, as for `wse.compare`, and if it is a mapping the price of
            one device and hour of each; None: GPUs, a TPU, a CPU, and where the model can be
            traced this computer, which is then measured once.
        data: samples as a tree like the batch, or a `wse.choose.page.Data` of these: the model is
            then trained in half precision and with zeros, and its loss measured.
        **said: of a loss function, as for `wse.trace`: `batch_size`, where its arrays differ along
            the leading axis; `has_aux`, if not every pair that it returns has auxiliary outputs.

    Returns:
        The page: `print` it, `.save("port.html")`, `.document()` for JSON.

    Raises:
        ValueError: a model that no door takes, or that the machine cannot train.

    >>> import jax.numpy as jnp
    >>> def loss(w, x):
    ...     return jnp.mean(jnp.sort(jnp.tanh(x @ w)))
    >>> page = port(loss, jnp.ones((3, 2)), jnp.ones((4, 3)), beside=["h100"])
    >>> [(x.operation, x.verdict) for x in page.facts.operations][0]
    ('sort', 'unknown')
    """
    about = subject(model, params, batch, **of_loss(model, said))
    cluster = chosen(machine)
    few = about.systems or cluster.systems
    counts = _counts((few, 4 * few) if systems is None else systems)
    half = cluster.precision or about.precision
    cluster = replace(cluster, systems=counts[0], precision=half)
    total = about.samples or SAMPLES if samples is None else positive("samples", samples)
    estimates, refused = _estimated(about, cluster, counts, total)
    report = _checked(about, cluster)
    measured, why = _measured(about, data)
    first = estimates[0]
    return Port(
        Facts(
            about,
            report,
            estimates,
            refused,
            memory(first, about.graph),
            _compared(about, first, beside),
            unsure(first),
            levers(first),
            measured,
            why,
        )
    )


def named(page: Port, name: str, door: str) -> Port:
    """The same page on a model of another name, which came through another door."""
    return Port(replace(page.facts, subject=replace(page.facts.subject, name=name, door=door)))


def _counts(systems: Any) -> list[int]:
    counts: list[Any] = [*systems] if isinstance(systems, list | tuple) else [systems]
    if not counts or not all(is_whole(x) and x <= MOST for x in counts):
        raise ValueError(
            f"systems is {short(systems)}; it must be positive integers up to 10^18: pass (1, 4)"
        )
    return [*map(int, counts)]


def _estimated(
    about: Subject, cluster: Cluster, counts: list[int], samples: int
) -> tuple[tuple[Estimate, ...], tuple[tuple[int, str], ...]]:
    """On the first number of systems, which must do, and on those others that can."""
    found: list[Estimate] = []
    refused: list[tuple[int, str]] = []
    size = about.batch or SAMPLES_PER_SYSTEM * counts[0]
    for n in counts:
        batch = -(-size // n) * n  # the step as it is; some more where systems do not divide it
        try:
            made = replace(cluster, systems=n)
            # More systems than one work by weight streaming alone.
            made = replace(made, mode="streaming") if n > 1 and not made.mode else made
            found.append(
                estimate(about.workload, batch=batch, machine=made, samples=max(samples, batch))
            )
        except ValueError as error:
            if n == counts[0]:
                raise
            refused.append((n, str(error)))
    return tuple(found), tuple(refused)


def _checked(about: Subject, cluster: Cluster) -> Report | None:
    if about.graph is not None:
        return check(about.graph, machine=cluster)
    if about.made is None:
        return None
    return check(about.made.loss, about.made.params, about.made.batch, machine=cluster)


def _measured(about: Subject, data: Any) -> tuple[Trials | None, str]:
    if data is None:
        return None, NO_DATA
    if about.made is None or about.graph is None:
        raise ValueError(
            f"data is given beside {about.name}, which has no weights here; trainings start from "
            "weights: pass a loss with params and batch, or a module of PyTorch"
        )
    given = data if isinstance(data, Data) else Data(data)
    return tried(about.made, given, about.graph.batch_size), ""


def _listed(beside: Any, usual: tuple[str, ...]) -> Any:
    if beside is None:
        return dict.fromkeys(usual)
    several = isinstance(beside, list | tuple | Mapping)
    return beside if several else [beside]  # pyright: ignore[reportUnknownVariableType]


def _compared(about: Subject, first: Estimate, beside: Any) -> Comparison:
    own = first.cluster
    traced = about.graph is not None
    usual = (*USUAL, Here.name) if traced else USUAL
    others: Any = _listed(beside, usual)
    prices: dict[Any, Any] = {**others} if isinstance(others, Mapping) else {}
    every: list[Any] = [*others]
    mine = [x for x in every if _is(x, own)]
    asked: list[Any] = [own, *(x for x in every if x not in mine)]
    price: dict[str, Any] = {}
    for x, y in prices.items():
        one = own.machine.name if x in mine else (device(x) or chosen(x)).machine.name
        if y is not None and price.setdefault(one, y) != y:
            raise ValueError(
                f"beside has {one} at {price[one]} and at {y} per hour, the second time as "
                f"{str(x)!r}; a device has one price: give the same to both"
            )
    # As many samples of a step on every machine: some more, where devices do not divide them.
    share = lcm(*((device(x) or chosen(x)).systems for x in asked))
    batch = -(-first.batch // share) * share
    return compare(
        about.graph if traced else about.workload,
        None,
        batch,
        machines=asked,
        samples=max(first.samples, batch),
        price=price,
    )


def _is(asked: Any, own: Cluster) -> bool:
    """Whether a machine by name is the one that the page is about."""
    if device(asked) is not None:
        return False
    found = chosen(asked)
    return found.machine.name == own.machine.name and found.systems == own.systems
