"""Cycles of reduce, broadcast and all-reduce on the mesh of processing elements (PEs).

The model is that of Luczynski et al., Near-Optimal Wafer-Scale Reduce (arXiv 2404.15888): with

- E, the energy: wavelets times hops,
- N, the links that carry them, and L, the longest way in hops,
- C, the contention: the most wavelets that one PE receives,
- D, the depth: the longest chain of messages that wait for each other,
- T_R, the cycles between a processor and its router,

a pattern takes max(C, E / N + L) + (2 T_R + 1) D cycles. That is `Phase.model_cycles`. Some
of it overlaps: `Phase.cycles` follows the critical path of each pattern, as `wse.mesh` steps it
cycle by cycle. One word is one wavelet: 32 bits.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, isqrt, log2

from wse._numbers import one_of, positive
from wse.machine.machine import Sourced

RAMP_CYCLES = Sourced(2, "cycle", "assumed", "arXiv 2404.15888", "recalled; its equation was read")

MESSAGE_CYCLES = 2 * int(RAMP_CYCLES.value) + 1  # both ramps, and the addition

PATTERNS = ("star", "chain", "tree", "two-phase")


@dataclass(frozen=True)
class Phase:
    """One pattern along one axis of the mesh, all rows (or columns) at once.

    Attributes:
        pattern: "star", "chain", "tree", "two-phase" or "flood".
        pes: P, in a row.
        words: B, wavelets per PE.
        contention: C.
        energy: E, of one row.
        links: N, of one row.
        distance: L.
        depth: D.
        cycles: predicted, along the critical path.

    >>> from wse import collective
    >>> along, _ = collective.reduce((8, 8), words=4, pattern="chain").phases
    >>> along.pattern, along.depth
    ('chain', 7)
    """

    pattern: str
    pes: int
    words: int
    contention: int
    energy: int
    links: int
    distance: int
    depth: int
    cycles: int

    @property
    def model_cycles(self) -> int:
        """The same by the published form, rounded up."""
        moved = max(self.contention, self.energy / self.links + self.distance)
        return ceil(moved) + MESSAGE_CYCLES * self.depth


@dataclass(frozen=True)
class Collective:
    """A collective operation as phases that follow each other.

    Attributes:
        operation: "reduce", "broadcast" or "all-reduce".
        shape: (columns, rows) of PEs that take part.
        words: wavelets per PE.
        phases: in order.

    >>> from wse import collective
    >>> found = collective.reduce((8, 8), words=4)
    >>> found.operation, len(found.phases)
    ('reduce', 2)
    """

    operation: str
    shape: tuple[int, int]
    words: int
    phases: tuple[Phase, ...]

    @property
    def cycles(self) -> int:
        """Predicted cycles of all phases."""
        return sum(phase.cycles for phase in self.phases)

    @property
    def model_cycles(self) -> int:
        """The same by the published form."""
        return sum(phase.model_cycles for phase in self.phases)

    @property
    def patterns(self) -> tuple[str, ...]:
        """The pattern of each phase."""
        return tuple(phase.pattern for phase in self.phases)

    def seconds(self, clock_hz: float) -> float:
        """The time at a clock, in s."""
        return self.cycles / clock_hz


def reduce(
    shape: tuple[int, int], words: int = 1, pattern: str | None = None, *, spacing: int = 1
) -> Collective:
    """Sum `words` numbers over a rectangle of PEs: along rows, then down the first column.

    Args:
        shape: (columns, rows); a row of P is (P, 1).
        words: wavelets per PE.
        pattern: one of `PATTERNS` for both axes; None: the one with the fewest cycles on each.
        spacing: hops between neighbours along a row, where PEs in between do not take part.

    Raises:
        ValueError: a size that is not positive, or another pattern.

    >>> reduce((757, 1), pattern="chain").cycles
    4537
    >>> reduce((757, 1)).patterns
    ('star',)
    """
    _check(shape, words, pattern, spacing)
    columns, rows = shape
    axes = [(columns, spacing), (rows, 1)]
    phases = tuple(_best(pes, words, gap, pattern) for pes, gap in axes if pes > 1)
    return Collective("reduce", shape, words, phases)


def broadcast(shape: tuple[int, int], words: int = 1, *, spacing: int = 1) -> Collective:
    """Send `words` numbers from the first PE to all of a rectangle, forked by the routers.

    Cycles are words + (hops to the far corner) + 2 T_R + 1.

    Args:
        shape: (columns, rows).
        words: wavelets.
        spacing: hops between neighbours along a row.

    Raises:
        ValueError: a size that is not positive.

    >>> broadcast((757, 996)).cycles
    1757
    """
    _check(shape, words, None, spacing)
    columns, rows = shape
    hops = (columns - 1) * spacing + rows - 1
    if hops == 0:
        return Collective("broadcast", shape, words, ())
    # The far end waits for the first word over every hop, then takes one word a cycle.
    cycles = words + hops + MESSAGE_CYCLES
    flood = Phase("flood", columns * rows, words, words, words * hops, hops, hops, 1, cycles)
    return Collective("broadcast", shape, words, (flood,))


def all_reduce(
    shape: tuple[int, int], words: int = 1, pattern: str | None = None, *, spacing: int = 1
) -> Collective:
    """Sum over a rectangle of PEs and send the sums back to all: `reduce`, then `broadcast`.

    Args:
        shape: (columns, rows).
        words: wavelets per PE.
        pattern: of the reduction, as for `reduce`.
        spacing: hops between neighbours along a row.

    Raises:
        ValueError: a size that is not positive, or another pattern.

    >>> from wse import collective
    >>> round(1e6 * collective.all_reduce((757, 996)).seconds(850e6), 2)
    4.14
    """
    summed = reduce(shape, words, pattern, spacing=spacing)
    sent = broadcast(shape, words, spacing=spacing)
    return Collective("all-reduce", shape, words, (*summed.phases, *sent.phases))


def hop_bound_cycles(shape: tuple[int, int], *, centre: bool = False) -> int:
    """Cycles that no all-reduce can undercut: hops to one PE and back.

    Args:
        shape: (columns, rows).
        centre: whether that PE is in the middle, which halves the way, or in a corner.

    >>> hop_bound_cycles((757, 996))
    3502
    """
    columns, rows = shape
    ways = (columns // 2, rows // 2) if centre else (columns - 1, rows - 1)
    return 2 * sum(ways)


def group(pes: int) -> int:
    """PEs per group of the two-phase pattern: the root of P, so that both phases are as deep.

    >>> group(64)
    8
    """
    return max(2, isqrt(pes - 1) + 1) if pes > 1 else 1


@lru_cache(maxsize=65_536)
def _best(pes: int, words: int, spacing: int, pattern: str | None) -> Phase:
    tried = [_MAKE[name](pes, words, spacing) for name in ([pattern] if pattern else PATTERNS)]
    return min(tried, key=lambda phase: phase.cycles)


def _star(pes: int, words: int, spacing: int) -> Phase:
    """All send to the first: words queue up, or the farthest come last where vectors are short."""
    hops = (pes - 1) * spacing
    contention = words * (pes - 1)
    energy = words * spacing * pes * (pes - 1) // 2
    cycles = max(contention + spacing, words + hops) + MESSAGE_CYCLES
    return Phase("star", pes, words, contention, energy, hops, hops, 1, cycles)


def _chain(pes: int, words: int, spacing: int) -> Phase:
    """Sums travel from neighbour to neighbour, one word behind the other."""
    hops, depth = (pes - 1) * spacing, pes - 1
    cycles = words + hops + MESSAGE_CYCLES * depth
    return Phase("chain", pes, words, words, words * hops, hops, hops, depth, cycles)


def _tree(pes: int, words: int, spacing: int) -> Phase:
    """Binary: in round r the PEs at odd multiples of 2^r send 2^r PEs back.

    A PE adds the vectors that it receives one after another, and sends while it adds the last one.
    """
    rounds, hops = ceil(log2(pes)), (pes - 1) * spacing
    sent = sum(2**r * len(range(2**r, pes, 2 ** (r + 1))) for r in range(rounds))
    energy, cycles = words * spacing * sent, _tree_start(pes, words, spacing) + words
    return Phase("tree", pes, words, words * rounds, energy, hops, hops, rounds, cycles)


@lru_cache(maxsize=65_536)
def _tree_start(pes: int, words: int, spacing: int) -> int:
    """When the root of a tree adds the first word of the last vector that it receives."""
    start, gap = 0, 1
    while gap < pes:
        # In each round the root hears from the root of the next PEs, as many as it has heard of.
        sender = _tree_start(min(gap, pes - gap), words, spacing)
        arrival = sender + gap * spacing + MESSAGE_CYCLES
        start = max(arrival, start + words if gap > 1 else 0)
        gap *= 2
    return start


def _two_phase(pes: int, words: int, spacing: int) -> Phase:
    """Chains within groups of about the root of P, then a chain of the groups' first PEs."""
    size = group(pes)
    groups, hops = ceil(pes / size), (pes - 1) * spacing
    energy = words * spacing * (pes - groups + size * (groups - 1))
    # The last group may be small. A first PE adds up its group, then what the next one sends.
    members = [min(size, pes - size * g) for g in range(groups)]
    chains = [_chain(n, words, spacing).cycles if n > 1 else 0 for n in members]
    start = chains[-1]
    for own in chains[-2::-1]:
        start = max(own, start + size * spacing + MESSAGE_CYCLES)
    phases = 2 if size > 1 and groups > 1 else 1
    cycles = start + words if groups > 1 else start
    depth = size - 1 + groups - 1
    return Phase("two-phase", pes, words, phases * words, energy, hops, hops, depth, cycles)


_MAKE = {"star": _star, "chain": _chain, "tree": _tree, "two-phase": _two_phase}


def _check(shape: tuple[int, int], words: int, pattern: str | None, spacing: int) -> None:
    sizes = {"columns": shape[0], "rows": shape[1], "words": words, "spacing": spacing}
    for name, size in sizes.items():
        positive(name, size)
    if pattern is not None:
        one_of("pattern", pattern, PATTERNS, "pass that, or None for the best")
