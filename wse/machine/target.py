"""Which machine, mode and release an answer is for, and why: chosen in one place for every call."""

from dataclasses import dataclass, replace
from typing import Any

from wse._numbers import one_of
from wse.machine import release as releases
from wse.machine.catalog import PIPELINED
from wse.machine.cluster import MODES, Cluster
from wse.machine.specification import chosen

HALVES = ("float16", "bfloat16", "cbfloat16")  # what `wse.precision` emulates


@dataclass(frozen=True)
class Needs:
    """What the choice of a mode asks of a model.

    Attributes:
        parameters: trained numbers.
        chain: whether it is a plain chain of dense layers.
        doubt: why it may be one or none, said with the choice; empty: plain, or said elsewhere.
        attention: which attention is meant, said beside the choice; empty: there is none.
    """

    parameters: int
    chain: bool
    doubt: str = ""
    attention: str = ""


@dataclass(frozen=True)
class Target:
    """What an answer is for.

    Attributes:
        cluster: the machine and how many, its mode among them.
        release: of the vendor's software, as "R2.10".
        why: who or what chose machine, mode and release, in one line.
        precision: in which products are computed, as "bfloat16"; None: nobody said.
    """

    cluster: Cluster
    release: str
    why: str
    precision: str | None = None


def target(
    machine: Any = None,
    mode: str | None = None,
    release: str | None = None,
    needs: Needs | None = None,
) -> Target:
    """The machine, mode and release that arguments mean, and why these.

    What is asked for is taken, or refused where the machine never had it. A machine left out is one
    CS-2. A mode left out is the only one that the wafer had; of several it is "pipelined" for a
    plain chain of dense layers whose weights stay on one wafer that had this mode in the release
    asked for, "streaming" for all else. A release left out is the last one that the machine had in
    the mode.

    Args:
        machine: as `wse.specification.chosen` takes it.
        mode: "pipelined" or "streaming", before that of the cluster; None: the cluster's, or else
            by these rules.
        release: of the vendor's software, as "R2.0.3" or "2.1".
        needs: of the model; None: only weight streaming is chosen.

    Raises:
        ValueError: an unknown machine, mode or precision, a release that is unknown or that the
            machine never had in the mode.
        TypeError: what is no machine.

    >>> target("cs3").release, target(needs=Needs(1000, chain=True)).cluster.mode
    ('R2.10', 'pipelined')
    """
    cluster = chosen(machine)
    asked = cluster.mode if mode is None else mode
    if asked is not None:
        one_of("mode", asked, MODES)
    found, because = (asked, "as asked") if asked is not None else _mode(cluster, release, needs)
    if needs and needs.doubt and not asked:
        because = f"{because} ({needs.doubt})"
    wafer = cluster.machine.wafer
    name = releases.latest(wafer, found) if release is None else release
    name = releases.check(name, wafer, found)
    half = _half(cluster.precision)
    system = f"{cluster.systems} x {cluster.machine.name}"
    said = (
        f"{system}, {'where no machine was given' if machine is None else 'as asked'}",
        f"mode {found}, {because}",
        f"release {name}, "
        + ("as asked" if release is not None else "the last that it had in this mode"),
        *((f"precision {half}, as asked: no run tells its speed from other halves'",) * bool(half)),
        *((needs.attention,) if needs and needs.attention else ()),
    )
    return Target(replace(cluster, mode=found), name, "; ".join(said), half)


def _half(precision: Any) -> str | None:
    """The name of a precision, as `wse.precision.Precision` or a cluster has it."""
    plain = isinstance(precision, str | None)  # text has a `format` of its own
    name = precision if plain else getattr(precision, "format", precision)
    if name is not None:
        remedy = "pass that, or leave it out (the machine trains in mixed precision alone)"
        one_of("precision", name, HALVES, remedy)
    return name


def _mode(cluster: Cluster, release: str | None, needs: Needs | None) -> tuple[str, str]:
    """The mode where none is asked for, and the reason."""
    wafer, mode = cluster.machine.wafer, "pipelined"
    if {had for of, had in releases.HAD if of == wafer} == {mode}:
        return mode, f"the only one of {wafer}"
    if needs is None or not needs.chain:
        return "streaming", "for all but plain chains of dense layers"
    if cluster.systems != 1:
        return "streaming", "for more than one system"
    if (wafer, mode) not in releases.HAD:
        return "streaming", f"the only one of {wafer}"
    if release is not None and not releases.had(wafer, mode, release):
        return "streaming", f"for release {release}, which had no other"
    if needs.parameters * PIPELINED.bytes_per_weight.value > cluster.machine.sram_bytes.value:
        return "streaming", "for a model that does not stay on one wafer"
    return mode, "for a plain chain of dense layers that stays on one wafer"
