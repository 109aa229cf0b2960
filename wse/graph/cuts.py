"""Where to cut: which equations run while which weights are resident.

A stage holds the weights of one layer. An equation that reads weights runs in the first stage that
holds them and comes no earlier than what else it reads; where there is none, a new stage is opened,
so that weights used again later are visited again. What needs no weights runs as soon as the layer
that made its inputs; what needs only the batch, as late as it can. Arithmetic on weights alone (a
cast, a transpose) is done anew at each visit: its result is as large as the weights. A bias comes
with the weights of the product that it is added to, wherever it lies in the tree of parameters.
"""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from jax.extend import core

from wse.graph.equations import Atom, Flat, Weight, variables
from wse.graph.flops import CONVOLUTION, LAID_OUT

Group = tuple[str, tuple[int, ...]]

PRODUCTS = {"dot_general", CONVOLUTION}
SUMS = {"add", "sub"}

TINY = 1 / 16  # stages below this share of the largest one's bytes share a visit, up to that share


@dataclass
class Stage:
    """Equations that run in one visit of some layers' weights.

    Attributes:
        groups: the layers whose weights are resident.
        weights: those of them that are read.
        places: its equations, by their place in the program.
    """

    groups: frozenset[Group]
    weights: set[Weight] = field(default_factory=set[Weight])
    places: set[int] = field(default_factory=set[int])


@dataclass(frozen=True)
class Deferred:
    """A value that is computed where it is read: it comes from weights or the batch alone."""

    place: int
    weights: frozenset[Weight] = frozenset()
    free: bool = False  # of weights or nothing at all: cheap to hold, so made at every visit


class Cutter:
    """The assignment of a flat program's equations to stages.

    Attributes:
        stages: in the order in which they run.
        home: for each value that is made once, the stage that makes it.
    """

    def __init__(self, flat: Flat, outputs: Sequence[Atom]) -> None:
        self.flat = flat
        self.variable = {weight: var for var, weight in flat.weights.items()}
        self.stages: list[Stage] = []
        self.home: dict[core.Var, int] = {}
        self.deferred: dict[core.Var, Deferred] = {}
        self.products: set[core.Var] = set()  # by weights, laid out anew and with biases added
        for place, eqn in enumerate(flat.equations):
            self._assign(place, eqn)
        for var in variables(outputs):
            if (late := self.deferred.get(var)) is not None and late.weights:
                self._place(late.place, {*late.weights}, -1)
        if self.stages:
            self._join_tiny()
            self._settle(outputs)

    def equations(self, stage: Stage) -> list[core.JaxprEqn]:
        """The equations of a stage in the order of the program."""
        return [self.flat.equations[place] for place in sorted(stage.places)]

    def _assign(self, place: int, eqn: core.JaxprEqn) -> None:
        inputs = variables(eqn.invars)
        weights = {self.flat.weights[x] for x in inputs if x in self.flat.weights}
        late = [self.deferred[x] for x in inputs if x in self.deferred]
        weights.update(*(d.weights for d in late))
        moving = [x for x in inputs if x in self.home]
        after = max((self.home[x] for x in moving), default=-1)
        is_product = self._is_product(eqn, moving, weights)
        if is_product:
            self.products.update(eqn.outvars)
        if after >= 0:
            shapes: list[Any] = [self.variable[w].aval for w in weights]
            vectors = all(len(aval.shape) < 2 for aval in shapes)
            biased = is_product and eqn.primitive.name in SUMS and vectors
            self._place(place, weights, after, stays=biased)
            return
        given = any(x not in self.deferred and x not in self.flat.weights for x in inputs)
        free = not given and all(d.free for d in late)
        if not weights or (free and 2 * total_bytes(eqn.outvars) > self._weight_bytes(weights)):
            value = Deferred(place, frozenset(weights), free)
            self.deferred.update(dict.fromkeys(eqn.outvars, value))
        else:
            self._place(place, weights, after)

    def _is_product(
        self, eqn: core.JaxprEqn, moving: Sequence[core.Var], weights: set[Weight]
    ) -> bool:
        if eqn.primitive.name in PRODUCTS:
            return bool(weights)
        again = eqn.primitive.name in LAID_OUT | SUMS and bool(moving)
        return again and self.products.issuperset(moving)

    def _place(self, place: int, weights: set[Weight], after: int, *, stays: bool = False) -> None:
        groups = frozenset((self.flat.groups[w.leaf], w.index) for w in weights)
        found = max(after, 0)
        if (groups and not stays) or not self.stages:
            later = range(found, len(self.stages))
            found = next((i for i in later if groups <= self.stages[i].groups), len(self.stages))
        if found == len(self.stages):
            self.stages.append(Stage(groups))
        self.stages[found].weights |= weights
        self.stages[found].places.add(place)
        self.home.update(dict.fromkeys(self.flat.equations[place].outvars, found))

    def _join_tiny(self) -> None:
        """Give norms and biases the visit of the layer that follows them."""
        sizes = [self._weight_bytes(stage.weights) for stage in self.stages]
        least = TINY * max(sizes, default=0)
        joined: list[Stage] = []
        moved: list[int] = []
        held = least  # bytes of the last joined stage: it takes in others while it is tiny itself
        for stage, size in zip(self.stages, sizes, strict=True):
            last = stage is self.stages[-1]
            if joined and (held < least or (last and size < least)):
                joined[-1] = _union(joined[-1], stage)
                held += size
            else:
                joined.append(stage)
                held = size
            moved.append(len(joined) - 1)
        self.stages = joined
        self.home = {var: moved[stage] for var, stage in self.home.items()}

    def _settle(self, outputs: Sequence[Atom]) -> None:
        """Put what was deferred where it is read."""
        readers: dict[core.Var, set[int]] = {}
        for i, stage in enumerate(self.stages):
            for place in stage.places:
                for var in variables(self.flat.equations[place].invars):
                    readers.setdefault(var, set()).add(i)
        last = len(self.stages) - 1
        asked = {var for var in variables(outputs) if var in self.deferred}
        for place in range(len(self.flat.equations) - 1, -1, -1):
            made = self.flat.equations[place].outvars
            value = self.deferred.get(made[0]) if made else None
            if value is None or made[0] in self.home:
                continue
            stages = set().union(*(readers.get(var, set()) for var in made))
            stages |= {last} if not stages and asked.intersection(made) else set()
            if not stages:
                continue
            # Made once, early enough for all who read it, unless making it again costs nothing.
            stages = stages if value.free and not asked.intersection(made) else {min(stages)}
            for i in stages:
                self.stages[i].places.add(place)
            if (len(stages) == 1 and not value.free) or asked.intersection(made):
                self.home.update(dict.fromkeys(made, min(stages)))
            for var in variables(self.flat.equations[place].invars):
                readers.setdefault(var, set()).update(stages)

    def _weight_bytes(self, weights: set[Weight]) -> int:
        return total_bytes([self.variable[w] for w in weights])


def _union(a: Stage, b: Stage) -> Stage:
    return Stage(a.groups | b.groups, a.weights | b.weights, a.places | b.places)


def total_bytes(values: Iterable[Atom]) -> int:
    """Bytes of all values."""
    return sum(nbytes(value.aval) for value in values)


def nbytes(aval: Any) -> int:
    """Bytes of an array of this shape and type."""
    return prod(aval.shape) * aval.dtype.itemsize
