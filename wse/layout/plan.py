"""A layout for every layer of a chain: the cheapest in sum, moves between layouts included."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf

from wse import _render
from wse._numbers import each_of_kind, numbers, positive
from wse.layout.cost import Cost, cost, least_cycles
from wse.layout.pieces import Layout, Shape, Wafer, grid_of
from wse.layout.relayout import relayout_cycles
from wse.layout.splits import layouts

HEADER = ("layer", "layout", "PEs", "cycles", "compute", "move", "bytes/PE", "bound by")


@dataclass(frozen=True)
class Placed:
    """A layer in its layout.

    Attributes:
        shape: the layer.
        layout: how it is split.
        cost: what it costs.
        relayout_cycles: moving its inputs from the previous layer's layout, and gradients back.

    >>> from wse import layout
    >>> conv = layout.Shape("conv", batch=4, size=(64, 64), channels=3, filters=8, taps=(3, 3))
    >>> layout.plan([conv], layout.Wafer.of()).layers[0].layout
    Layout(batch=2, across=1, down=3, size=(64, 64))
    """

    shape: Shape
    layout: Layout
    cost: Cost
    relayout_cycles: int = 0


@dataclass(frozen=True)
class Misfit:
    """A layer that fits in no layout.

    Attributes:
        shape: the layer.
        needed_bytes: per PE, in the layout that needs least.
        data_bytes: what a PE has.
        change: the smallest change that fits.

    >>> from wse import layout
    >>> big = layout.Shape("big", batch=64, size=(4096, 4096), channels=32, filters=32, taps=(3, 3))
    >>> misfit = layout.plan([big], layout.Wafer.of()).misfits[0]
    >>> misfit.needed_bytes, misfit.change
    (218232, 'pass batch 14 instead of 64, in more micro-batches')
    """

    shape: Shape
    needed_bytes: int
    data_bytes: int
    change: str

    def __str__(self) -> str:
        """The layer, what it lacks and the remedy."""
        return (
            f"layer {self.shape.name!r} needs {self.needed_bytes} bytes per PE, of "
            f"{self.data_bytes}: {self.change}"
        )


@dataclass(frozen=True)
class Plan:
    """A chain of layers, laid out.

    Attributes:
        wafer: the grid.
        layers: in order; those that fit nowhere are left out.
        misfits: layers that fit nowhere.

    >>> from wse import layout
    >>> conv = layout.Shape("conv", batch=4, size=(64, 64), channels=3, filters=8, taps=(3, 3))
    >>> str(layout.plan([conv], layout.Wafer.of())).splitlines()[0]
    '1 layers on 757 x 996 PEs: 954 cycles a step, 0.4 % of the multiply-adds'
    """

    wafer: Wafer
    layers: tuple[Placed, ...]
    misfits: tuple[Misfit, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether every layer fits, each alone; see `needed_bytes` for all together."""
        return not self.misfits

    @property
    def cycles(self) -> int:
        """Of one step of training, layer after layer, moves between layouts included."""
        return sum(x.cost.cycles + x.relayout_cycles for x in self.layers)

    @property
    def utilisation(self) -> float:
        """Multiply-adds done, of those that all PEs could do in these cycles."""
        done = 3 * sum(x.shape.multiplies for x in self.layers)
        could = self.cycles * self.wafer.pes * self.wafer.multiplies_per_cycle
        return done / could if could else 0.0

    def __repr__(self) -> str:
        """One line; `print` shows the layers."""
        return f"Plan({self._caption()})"

    def __str__(self) -> str:
        """The layers as a table for a terminal."""
        notes = [str(misfit) for misfit in self.misfits]
        return "\n\n".join((self._caption(), _render.text(HEADER, self._rows()), *notes))

    def _repr_html_(self) -> str:
        """The layers as a table for a notebook."""
        return _render.html(self._caption(), HEADER, self._rows(), list(map(str, self.misfits)))

    def _caption(self) -> str:
        return (
            f"{len(self.layers)} layers on {self.wafer.columns} x {self.wafer.rows} PEs: "
            f"{self.cycles:,} cycles a step, {100 * self.utilisation:.1f} % of the multiply-adds"
        )

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (
                x.shape.name,
                str(x.layout),
                str(x.layout.pes),
                str(x.cost.cycles + x.relayout_cycles),
                str(3 * x.cost.compute_cycles),
                str(x.relayout_cycles),
                str(x.cost.memory_bytes),
                _binding(x),
            )
            for x in self.layers
        ]


def plan(
    shapes: Sequence[Shape], wafer: Wafer | None = None, *, keep: int = 6, ratio: float = 1.0
) -> Plan:
    """Choose a layout for every layer of a chain.

    For each layer the `keep` cheapest layouts that fit are candidates, and those of its neighbours:
    staying where the data are may be cheaper than the best layout. Among candidates the sum of
    costs and moves is least, by dynamic programming along the chain.

    Args:
        shapes: the layers; each reads what the one before it wrote, pooled or not.
        wafer: the grid; None: one CS-2.
        keep: candidates per layer.
        ratio: of numbers of parts of samples and channels that are nearer than this only one is
            tried; 1: all are.

    Returns:
        The plan. Layers that fit nowhere are in `misfits`, with the smallest change that fits.

    Raises:
        ValueError: no layers, or no candidates.

    >>> from wse import layout
    >>> conv = layout.Shape("conv", batch=4, size=(64, 64), channels=3, filters=8, taps=(3, 3))
    >>> found = layout.plan([conv], layout.Wafer.of())
    >>> len(found.layers), found.misfits
    (1, ())
    """
    each_of_kind("shapes", shapes, Shape, "pass layers, as [wse.layout.dense('in', 100, 784, 500)]")
    positive("keep", keep)
    if not all(1 <= each < inf for each in numbers("ratio", ratio, "pass ratio=1.0")):
        raise ValueError(f"ratio is {ratio}; it must be a number from 1: pass ratio=1.0")
    grid = grid_of(wafer)
    own = [fitting(shape, grid, keep, ratio) for shape in shapes]
    misfits = tuple(misfit(x, grid) for x, found in zip(shapes, own, strict=True) if not found)
    fit = [(shape, found) for shape, found in zip(shapes, own, strict=True) if found]
    chain = [shape for shape, _ in fit]
    options = candidates(chain, [found for _, found in fit], grid)
    return Plan(grid, shortest(chain, options, grid), misfits)


def fitting(shape: Shape, wafer: Wafer, keep: int, ratio: float = 1.0) -> list[Layout]:
    """The cheapest layouts of a layer that fit into a PE's memory."""
    return _fitting(replace(shape, name=""), wafer, keep, ratio)


@lru_cache(maxsize=4096)
def _fitting(shape: Shape, wafer: Wafer, keep: int, ratio: float) -> list[Layout]:
    # Most are worse by their least already, and need not be counted further.
    ways = [*_layouts(shape, wafer, ratio)]
    least = sorted(zip(least_cycles(shape, ways, wafer), range(len(ways)), ways, strict=True))
    found: list[tuple[int, int, Layout]] = []
    for bound, i, layout in least:
        if len(found) == keep and bound > found[-1][0]:
            break
        own = cost(shape, layout, wafer)
        if own.memory_bytes <= wafer.data_bytes:
            found = sorted((*found, (own.cycles, i, layout)), key=lambda row: row[:2])[:keep]
    return [layout for _, _, layout in found]


def candidates(
    shapes: Sequence[Shape], own: Sequence[Sequence[Layout]], wafer: Wafer
) -> list[list[Layout]]:
    """Each layer's own layouts, and those of its neighbours that fit it too."""
    found: list[list[Layout]] = []
    for i, shape in enumerate(shapes):
        near = [x for others in own[max(i - 1, 0) : i + 2] for x in others]
        options = dict.fromkeys((*own[i], *(x for x in near if len(x.size) == len(shape.size))))
        fit = [x for x in options if cost(shape, x, wafer).memory_bytes <= wafer.data_bytes]
        found.append(fit)
    return found


def misfit(shape: Shape, wafer: Wafer) -> Misfit:
    """Say what a layer lacks, and the smallest change that fits: of the batch, else the image."""
    needed = _needed(shape, wafer)
    if batch := _largest(shape.batch - 1, lambda b: _fits(replace(shape, batch=b), wafer)):
        change = f"pass batch {batch} instead of {shape.batch}, in more micro-batches"
        return Misfit(shape, needed, wafer.data_bytes, change)
    edge = max(shape.size)

    def image(n: int) -> tuple[int, ...]:
        return tuple(max(1, m * n // edge) for m in shape.size)

    if n := _largest(edge - 1, lambda n: _fits(replace(shape, batch=1, size=image(n)), wafer)):
        words = " x ".join(map(str, image(n)))
        more = " and batch 1" if shape.batch > 1 else ""
        return Misfit(shape, needed, wafer.data_bytes, f"crop the image to {words}{more}")
    return Misfit(shape, needed, wafer.data_bytes, "use fewer channels or filters")


def shortest(
    shapes: Sequence[Shape],
    options: Sequence[Sequence[Layout]],
    wafer: Wafer,
    before: tuple[Placed, ...] = (),
) -> tuple[Placed, ...]:
    """The cheapest path through the layers' candidates, after those that are laid out before."""
    paths: list[tuple[int, tuple[Placed, ...]]] = [(0, before)]
    for shape, choices in zip(shapes, options, strict=True):
        longer: list[tuple[int, tuple[Placed, ...]]] = []
        for layout in choices:
            own = cost(shape, layout, wafer)
            found = [
                (total + own.cycles + move, path, move)
                for total, path in paths
                for move in [_move(path, shape, layout)]
            ]
            total, path, move = min(found, key=lambda item: item[0])
            longer.append((total, (*path, Placed(shape, layout, own, move))))
        paths = longer
    return min(paths, key=lambda item: item[0])[1]


def _move(path: Sequence[Placed], shape: Shape, layout: Layout) -> int:
    """Moving a layer's inputs into its layout, and their gradients back."""
    if not path or len(path[-1].layout.size) != len(layout.size):
        return 0
    before = path[-1].layout
    return 2 * relayout_cycles(shape.batch, shape.channels, shape.size, before, layout)


def _layouts(shape: Shape, wafer: Wafer, ratio: float = 1.0) -> Iterator[Layout]:
    return layouts(shape.batch, shape.channels, shape.size, wafer, ratio)


def _needed(shape: Shape, wafer: Wafer) -> int:
    return min(cost(shape, x, wafer).memory_bytes for x in _layouts(shape, wafer))


def _fits(shape: Shape, wafer: Wafer) -> bool:
    return _needed(shape, wafer) <= wafer.data_bytes


def _largest(limit: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to a limit that fits, found by halving; 0 if none does."""
    return bisect_left(range(1, limit + 1), True, key=lambda n: not fits(n))


def _binding(placed: Placed) -> str:
    known = placed.cost
    terms = {
        "arithmetic": 3 * known.compute_cycles,
        "weights": 2 * known.weight_cycles,
        "halo": known.halo_cycles,
        "channel sums": known.reduce_cycles,
        "gradient sums": known.gradient_cycles,
        "moves": placed.relayout_cycles,
    }
    return max(terms, key=lambda name: terms[name])
