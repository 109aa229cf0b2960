"""One training on several machines."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from numbers import Real
from typing import Any

from wse._numbers import MOST, as_float, of_kind, of_loss, positive, short
from wse.choose.table import NAN, Candidate, Comparison
from wse.machine.cluster import Cluster
from wse.machine.processors import Here, Processors
from wse.machine.processors import chosen as devices
from wse.machine.specification import chosen
from wse.predict.estimate import as_workload, estimate

USUAL = ("cs2", "cs3", "8 x h100", "tpu v5e", "cpu node")


def compare(
    model: Any,
    params: Any = None,
    batch: Any = None,
    *,
    machines: Sequence[Any] = USUAL,
    samples: int = 1_000_000,
    price: Mapping[str, int | float] | None = None,
    **said: Any,
) -> Comparison:
    """What a training would take on each of several machines, and which one wins from when on.

    Args:
        model: a workload, a graph or a loss function, as for `wse.estimate`; or a name of
            `wse.workloads`.
        params: of a loss function.
        batch: samples per step (default: 100 for each device); of a loss function its batch.
        machines: what `wse.estimate` takes as `machine`; GPUs, TPUs and CPUs of `wse.processors` by
            name, as "8 x h100"; and "here": this computer, measured once
            (`wse.local`), of a loss function, a graph or a dense net.
        samples: processed, every epoch counted.
        price: per device and hour, by the machine's name without its count, as {"h100": 2.5}.
        **said: of a loss function, as for `wse.trace`: `batch_size`, where its arrays differ along
            the leading axis; `has_aux`, if not every pair that it returns has auxiliary outputs.

    Returns:
        The comparison; its `draw()` is the figure. A machine that cannot train the model is
        listed with the reason.

    Raises:
        ValueError: an unknown or repeated machine, no machine, samples or prices that are not
            positive, a batch beyond the samples, or a model that no machine can train.

    >>> from wse.workload import dense
    >>> found = compare(dense(width=2048), machines=["table 4 cpu", "cs2"])
    >>> [name for _, name in found.wins]
    ['Table 4 CPU', 'CS-2']
    """
    # By name: the catalogue of models reads YAML, which not every comparison needs.
    work = import_module("wse.models.shapes").get(model) if isinstance(model, str) else model
    asked = [_asked(machine) for machine in _listed(machines)]
    names = [name for name, _ in asked]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"machines has {twice[0]!r} twice; each is compared once: drop one")
    traced = callable(work)
    if params is not None and not traced:  # else a batch of arrays would be taken for a number
        as_workload(work, params, None)
    _check(samples, None if traced else batch, price)
    prices = _prices(price or {}, asked)
    said = of_loss(work, said)
    if traced:  # cut into layers once; by name: not every comparison needs JAX
        graph = import_module("wse.graph.trace").trace(work, params, batch, **said)
        work, params, batch = graph, None, None
    given = (work, params, batch)
    found = tuple(
        _candidate(name, machine, given, samples, prices[name]) for name, machine in asked
    )
    if all(one.refused for one in found):
        raise ValueError(f"no machine can train the model: {found[0].name}: {found[0].refused}")
    return Comparison(as_workload(*given).workload.name, samples, found)


def _listed(machines: Sequence[Any]) -> list[Any]:
    given: list[Any] = [*machines] if isinstance(machines, list | tuple) else [machines]
    if not given:
        raise ValueError(
            f"machines is {given!r}, empty; pass one or more, as machines=['cs2', '8 x h100']"
        )
    return given


def _asked(machine: Any) -> tuple[str, Cluster | Processors | Here]:
    found = devices(machine) or chosen(machine)
    count = f"{found.systems} x " if found.systems > 1 else ""
    mode = f" ({found.mode})" if isinstance(found, Cluster) and found.mode else ""
    return f"{count}{found.machine.name}{mode}", found


def _check(samples: Any, batch: Any, price: Mapping[str, Any] | None) -> None:
    positive("samples", samples, "pass samples=1_000_000")
    if batch is not None and positive("batch", batch, "pass batch=100") > samples:
        raise ValueError(
            f"batch is {batch} with {samples} samples; pass batch=1 to batch={samples}"
        )
    remedy = "pass a dictionary by machine, as price={'h100': 2.5}"
    of_kind("price", price, Mapping | None, remedy)
    for name, value in (price or {}).items():
        given: Any = value
        real = isinstance(given, Real) and given is not True
        if not real or not 0 < as_float(given) <= MOST:
            raise ValueError(
                f"price of {name!r} is {short(value)}; it must be positive and at most 10^18, "
                f"per device and hour: pass price={{{name!r}: 2.5}}"
            )


def _prices(price: Mapping[str, int | float], asked: Sequence[tuple[str, Any]]) -> dict[str, float]:
    """The price of all devices of each machine together; NaN where none was given."""
    found = {name: NAN for name, _ in asked}
    for key, value in price.items():
        priced = devices(key) or chosen(key)
        meant = priced.machine.name
        if priced.systems > 1:
            raise ValueError(
                f"price names {key!r}, {priced.systems} devices; it is of one device and hour: "
                f"pass price={{{meant!r}: {float(value) / priced.systems:.6g}}} if all have it"
            )
        same = [(name, machine) for name, machine in asked if machine.machine.name == meant]
        if not same:
            raise ValueError(
                f"price names {key!r}, which is not compared; machines are "
                f"{', '.join(name for name, _ in asked)}: name one of these"
            )
        for name, machine in same:
            if found[name] == found[name]:
                raise ValueError(
                    f"price names {meant!r} twice, the second time as {key!r}: drop one"
                )
            found[name] = float(value) * machine.systems
    return found


def _candidate(
    name: str,
    machine: Cluster | Processors | Here,
    given: tuple[Any, Any, Any],
    samples: int,
    price: float,
) -> Candidate:
    try:
        found = estimate(*given, machine=machine, samples=samples)
    except ValueError as refusal:
        return Candidate(name, price_per_h=price, refused=str(refusal))
    low, high = found.setup_interval_s
    fast, slow = found.training_interval_s
    one = machine.machine
    ends_w = (NAN,) * 3 if isinstance(one, Here) else one.power_w.ends
    usual_w, least_w, most_w = (machine.systems * x for x in ends_w)
    return Candidate(
        name,
        (min(low, found.setup_s), found.setup_s, max(high, found.setup_s)),
        (fast / samples, found.train_s / samples, slow / samples),
        (least_w, usual_w, most_w),
        price,
        binding=found.binding,
        cautions=found.cautions,
        why=found.why,
    )
