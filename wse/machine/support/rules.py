"""What a rule of operator support says, and when it speaks. Nothing here needs JAX."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from wse._numbers import one_of
from wse.machine.machine import STATUSES, Status

Verdict: TypeAlias = Literal["native", "decomposed", "unknown", "unsupported"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)  # from the best to the worst


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of some verdicts; of none, "native".

    >>> worst(["native", "unknown", "decomposed"])
    'unknown'
    """
    best: Verdict = "native"
    return max((best, *verdicts), key=VERDICTS.index)


def version(release: str) -> tuple[int, ...]:
    """A release as numbers that compare: "R2.0.3" after "1.9.1".

    Raises:
        ValueError: not digits and dots, with or without a leading R.

    >>> version("R2.10") > version("2.9.4")
    True
    """
    parts = release.removeprefix("R").removeprefix("_").split(".")
    if not all(part.isdecimal() for part in parts):
        raise ValueError(
            f"release is {release!r}; it must be numbers and dots: pass release='2.0.3'"
        )
    return tuple(int(part) for part in parts)


@dataclass(frozen=True)
class Where:
    """For which machines, modes and releases a rule speaks.

    Attributes:
        wafer: "WSE-1", "WSE-2" or "WSE-3"; None: all.
        mode: "pipelined" or "streaming"; None: both.
        since: the first release; None: from the beginning.
        until: the last release, its patches included; None: no last one is known.

    >>> from wse.support import Where
    >>> Where("WSE-2", "streaming", since="2.10").since
    '2.10'
    """

    wafer: str | None = None
    mode: str | None = None
    since: str | None = None
    until: str | None = None

    def holds(self, wafer: str, mode: str, release: str) -> bool:
        """Whether a rule speaks for this machine, mode and release."""
        number = version(release)
        last = version(self.until) if self.until else number
        return (
            self.wafer in (None, wafer)
            and self.mode in (None, mode)
            and (self.since is None or version(self.since) <= number)
            and number[: len(last)] <= last
        )


@dataclass(frozen=True)
class Use:
    """One way in which a function uses an operation.

    Attributes:
        operation: the JAX primitive, as "conv_general_dilated".
        dtypes: of the operands, then of the results.
        ranks: of the operands.
        traits: what else rules ask about: "dilated", "transposed", "grouped", "carries", "filter".
        backward: whether it runs in the backward pass.

    >>> from wse.checks import Constraint, Use
    >>> halves = Constraint(dtypes=frozenset({"float16"}))
    >>> halves.holds(Use("dot_general", ("float16", "float32"), (2, 2)))
    True
    """

    operation: str
    dtypes: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    traits: frozenset[str] = frozenset()
    backward: bool = False


@dataclass(frozen=True)
class Constraint:
    """What an operation's operands must be for a rule to speak of it.

    Attributes:
        dtypes: one of the operands or results has one of these types; empty: any.
        first_rank: number of axes of the first operand; None: any.
        traits: all of them hold.
        without: none of them holds.
        backward: in the backward pass only (True), forward only (False), or in both (None).

    >>> from wse.checks import Constraint
    >>> str(Constraint(dtypes=frozenset({"float16"}), first_rank=4, backward=False))
    'type float16, 4 axes, forward pass'
    """

    dtypes: frozenset[str] = frozenset()
    first_rank: int | None = None
    traits: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    backward: bool | None = None

    def holds(self, use: Use) -> bool:
        """Whether a use is of this kind."""
        return (
            (not self.dtypes or bool(self.dtypes.intersection(use.dtypes)))
            and (self.first_rank is None or use.ranks[:1] == (self.first_rank,))
            and self.traits <= use.traits
            and not self.without & use.traits
            and self.backward in (None, use.backward)
        )

    def __str__(self) -> str:
        """The constraint in words; empty if there is none."""
        words = [
            f"type {' or '.join(sorted(self.dtypes))}" if self.dtypes else "",
            f"{self.first_rank} axes" if self.first_rank is not None else "",
            " and ".join(sorted(self.traits)),
            f"not {' or '.join(sorted(self.without))}" if self.without else "",
            {None: "", True: "backward pass", False: "forward pass"}[self.backward],
        ]
        return ", ".join(word for word in words if word)


@dataclass(frozen=True)
class Rule:
    """What is known of some operations, from where.

    Attributes:
        operations: JAX primitives; ("*",) for every one.
        verdict: "native", "decomposed" (into native ones) or "unsupported". What no rule speaks
            of is "unknown".
        where: machines, modes and releases; any of them is enough.
        reason: why, in one sentence.
        source: where it was read, or what it was derived from.
        status: "sourced" if the source names the operation, "derived" if it follows from one.
        remedy: what to write instead; needed for "unsupported".
        constraint: which uses of these operations are meant.

    Raises:
        ValueError: an unknown verdict or status, no operation or source, or no remedy where one
            is needed.

    >>> from wse.support import Rule, Where
    >>> where = (Where("WSE-2", "streaming", since="2.10"),)
    >>> Rule(("sort",), "native", where, "it ran", "our log of 3 May", "sourced").operations
    ('sort',)
    """

    operations: tuple[str, ...]
    verdict: Verdict
    where: tuple[Where, ...]
    reason: str
    source: str
    status: Status
    remedy: str = ""
    constraint: Constraint = field(default_factory=Constraint)

    def __repr__(self) -> str:
        """One line: of how many operations, which verdict, and where it was read."""
        first, *more = self.operations
        also = f" and {len(more)} more" if more else ""
        return f"Rule({first}{also}: {self.verdict}, {self.status})"

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS or self.verdict == "unknown":
            raise ValueError(
                f"verdict is {self.verdict!r}; a rule says native, decomposed or unsupported: "
                "leave out what is not known"
            )
        one_of("status", self.status, STATUSES)
        if not (self.operations and self.where and self.reason and self.source):
            raise ValueError(
                f"rule for {self.operations} lacks operations, where, reason or source; a rule "
                "from the world needs them all"
            )
        if self.verdict == "unsupported" and not self.remedy:
            raise ValueError(
                f"rule for {self.operations} has no remedy; what is unsupported needs one: "
                "say what to write instead"
            )

    def speaks(self, use: Use, wafer: str, mode: str, release: str) -> bool:
        """Whether this rule says something about a use on a machine."""
        return (
            (self.operations == ("*",) or use.operation in self.operations)
            and any(place.holds(wafer, mode, release) for place in self.where)
            and self.constraint.holds(use)
        )
