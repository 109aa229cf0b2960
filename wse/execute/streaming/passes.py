"""The weight-streaming executor: a step in which weights come and go layer by layer.

Forward, then backward, each layer is visited. While one computes, the weights of the next are
brought in; when it is done, its own leave. Activations stay. A gradient leaves at once, and the
store updates weights with it. The mathematics is that of `jax.value_and_grad` on the whole model.
"""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, compress
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wse.execute.ledger import Counts, Ledger
from wse.execute.memoryx.pinned import Pinned
from wse.execute.memoryx.store import MemoryX, Receiving
from wse.execute.swarmx import SwarmX
from wse.execute.timeline import Run
from wse.execute.uneven import Axes, axes_of_programs
from wse.execute.wire import Link
from wse.graph import derivatives
from wse.graph.cuts import nbytes
from wse.graph.derivatives import Programs
from wse.graph.equations import Weight
from wse.graph.layers import Graph, Layer

LARGE_BYTES = 2**22  # of a visit: computing takes long enough that starting the next may wait


@dataclass(frozen=True)
class Visit:
    """One layer on its way forward or backward.

    Attributes:
        place: the layer's place in the graph.
        back: whether this is the backward pass.
        drops: values that no later visit reads.
    """

    place: int
    back: bool
    drops: tuple[int, ...] = ()


class Plan:
    """A graph made ready to run: compiled programs and the order of visits.

    With `keep`, what the backward pass needs is kept, not computed again.
    """

    def __init__(self, graph: Graph, swarm: SwarmX, keep: bool, size: int) -> None:
        self.graph, self.swarm, self.keep, self.size = graph, swarm, keep, size
        self.counts: Counts = []
        self._compiled: dict[int, Programs] = {}
        dealt = dict.fromkeys(graph.inputs, frozenset({0}))
        axes = axes_of_programs(graph.layers, dealt, lambda layer: layer.jaxpr)
        for layer in graph.layers:
            if layer.program not in self._compiled:
                self._compiled[layer.program] = self._compile(layer, axes[layer.program])

    def compiled(self, layer: Layer) -> Programs:
        """The programs of a layer; backward takes the sums so far, and says when it is done."""
        return self._compiled[layer.program]

    def needed(self, layer: Layer) -> tuple[int, ...]:
        """The values that the backward pass of a layer reads again."""
        return tuple(compress(layer.reads, self.compiled(layer).reads))

    @cached_property
    def constants(self) -> dict[int, jax.Array]:
        """The arrays that the training function closes over, on every system."""
        return {v: self.swarm.broadcast([x])[0] for v, x in self.graph.constants}

    @cached_property
    def expected(self) -> dict[int, int]:
        """For each parameter, how many gradients come out of one step."""
        return dict(Counter(weight.leaf for weight in self.last))

    @cached_property
    def last(self) -> dict[Weight, int]:
        """For each weight with a gradient, the layer whose backward pass completes it."""
        found: dict[Weight, int] = {}
        for i, layer in enumerate(self.graph.layers):
            for weight in _asked(layer):
                found.setdefault(weight, i)
        return found

    @cached_property
    def read(self) -> dict[int, list[Weight]]:
        """For each parameter that is read, itself or the slices of it, in the order of visits."""
        found: dict[int, list[Weight]] = {}
        for weight in dict.fromkeys(w for layer in self.graph.layers for w in layer.weights):
            found.setdefault(weight.leaf, []).append(weight)
        return found

    @cached_property
    def arrivals(self) -> dict[int, int]:
        """For each parameter with a gradient, the layer whose backward pass completes it."""
        found: dict[int, int] = {}
        for weight, place in self.last.items():
            found[weight.leaf] = min(place, found.get(weight.leaf, place))
        return found

    @cached_property
    def sizes(self) -> list[int]:
        """The bytes of each parameter."""
        return [nbytes(like) for like in self.graph.shapes]

    @cached_property
    def leaving(self) -> list[tuple[list[Weight], int]]:
        """For each layer, the weights whose gradients its backward pass completes; their bytes."""
        found: list[tuple[list[Weight], int]] = []
        for i, layer in enumerate(self.graph.layers):
            sizes = dict(zip(layer.weights, layer.jaxpr.in_avals, strict=False))
            done = [weight for weight in _asked(layer) if self.last[weight] == i]
            found.append((done, sum(nbytes(sizes[weight]) for weight in done)))
        return found

    @cached_property
    def visits(self) -> tuple[Visit, ...]:
        """All visits of a step, and what can be dropped after each."""
        layers = self.graph.layers
        bare = [Visit(i, back=False) for i in range(len(layers))]
        bare += [Visit(i, back=True) for i in range(len(layers))[::-1] if layers[i].demand.any]
        held = {x for x in self.graph.outputs if isinstance(x, int)}
        found: list[Visit] = []
        for visit in reversed(bare):
            layer = layers[visit.place]
            used = self.needed(layer) if visit.back else (*layer.reads, *layer.writes)
            drops = tuple(v for v in dict.fromkeys(used) if v not in held)
            held.update(drops)
            found.append(Visit(visit.place, visit.back, drops))
        return tuple(reversed(found))

    def _compile(self, layer: Layer, axes: Sequence[Axes]) -> Programs:
        closed = self.swarm.laid(layer.jaxpr, axes)
        program = derivatives.keep if self.keep and layer.demand.any else derivatives.recompute
        made = program(closed, layer.demand)
        adding = derivatives.adding(made.backward, self.swarm.reduce)

        def back(*args: Any) -> Any:
            # What this visit gives may be donated to the next one before this one is waited for.
            done = jnp.zeros(())
            return *adding(*args), done

        return replace(
            made, forward=jax.jit(made.forward), backward=jax.jit(back, donate_argnums=4)
        )


def _asked(layer: Layer) -> list[Weight]:
    return list(compress(layer.weights, layer.demand.weights))


class Step:
    """One step being run: weights come from the store, gradients go to `receiving`."""

    def __init__(
        self,
        plan: Plan,
        store: MemoryX,
        receiving: Receiving,
        link: Link,
        pinned: Pinned | None = None,
    ) -> None:
        self._plan, self._store, self._receiving, self._link = plan, store, receiving, link
        self._pinned = pinned
        self._ledger = Ledger(plan.counts)
        self._now, self._log = self._ledger.now, self._ledger.log
        self._values: dict[int, jax.Array] = {}
        self._kept: dict[int, list[jax.Array]] = {}
        self._cotangents: dict[int, jax.Array] = {}
        self._sums: dict[Weight, jax.Array] = {}
        self._weights: dict[int, list[jax.Array]] = {}  # by visit
        self._free_s = 0.0  # when the device had finished what was waited for last

    def run(self, batch: Sequence[Any]) -> tuple[list[Any], Run]:
        """Visit every layer; return the outputs and the record."""
        graph, visits = self._plan.graph, self._plan.visits
        start = self._now()
        dealt = self._plan.swarm.deal(batch, self._plan.size)
        self._values.update(zip(graph.inputs, dealt, strict=True))
        self._values.update(self._plan.constants)
        self._log("batch", "", start, _bytes(dealt))
        if self._pinned is not None:
            for weight in chain.from_iterable(self._plan.read.values()):
                self._pinned.ahead(weight, self._store.held[weight.leaf])
        self._send(0)
        running: tuple[int, float, Any] | None = None
        for i in range(len(visits)):
            # The next program waits in the device's queue while the one before it finishes; only
            # then the weights after next may come: two layers' weights at a time.
            if running is not None and self._alone(running[0]):
                self._finish(*running)
                running = None
            launched = (i, self._now(), self._launch(i))
            if running is not None:
                self._finish(*running)
            running = launched
            if i + 1 < len(visits):
                self._send(i + 1)
        if running is not None:
            self._finish(*running)
        outputs = [self._output(x) for x in graph.outputs]
        return outputs, self._ledger.run(self._plan.swarm.systems)

    def _alone(self, i: int) -> bool:
        """Whether the gradients of a visit go before the next one starts: to hold them but once."""
        large = self._layer(i).work.weight_bytes > LARGE_BYTES
        return self._plan.visits[i].back and not self._plan.keep and large

    def _send(self, i: int) -> None:
        layer = self._layer(i)
        start = self._now()
        arrays, size = [self._taken(w) for w in layer.weights], layer.work.weight_bytes
        if not self._link.plain:
            sent = [self._link.down(*pair) for pair in zip(layer.weights, arrays, strict=True)]
            arrays, size = [array for array, _ in sent], sum(size for _, size in sent)
        self._weights[i] = self._plan.swarm.broadcast(arrays)
        self._log("broadcast", layer.name, start, size)
        self._count()

    def _taken(self, weight: Weight) -> Any:
        """A weight on its way out of the store."""
        if self._pinned is not None:
            copy = self._pinned.of(weight, self._store.held[weight.leaf])
            if copy is not None:
                return copy
        return (self._store.read if self._plan.swarm.parallel else self._store.sent)(weight)

    def _launch(self, i: int) -> Any:
        """Start a visit's program; return what is ready when it has finished."""
        visit, layer = self._plan.visits[i], self._layer(i)
        result = self._backward(i, layer) if visit.back else self._forward(i, layer)
        for value in visit.drops:
            self._values.pop(value, None)
        self._count()
        if self._plan.swarm.parallel:
            # Programs with collectives that wait in the queue can starve each other of threads.
            jax.block_until_ready(result)
        return result

    def _forward(self, i: int, layer: Layer) -> Any:
        reads = [self._values[v] for v in layer.reads]
        writes, kept = self._plan.compiled(layer).forward(self._weights[i], reads)
        self._values.update(zip(layer.writes, writes, strict=True))
        self._kept[self._plan.visits[i].place] = kept
        return writes

    def _backward(self, i: int, layer: Layer) -> Any:
        place, asked = self._plan.visits[i].place, layer.demand
        moved = list(compress(layer.reads, asked.reads))
        sums = [self._sums.pop(w, None) for w in _asked(layer)]
        before = [self._cotangents.pop(v, None) for v in moved]
        gradients, cotangents, done = self._plan.compiled(layer).backward(
            self._weights[i],
            self._kept.pop(place),
            [self._values[v] for v in self._plan.needed(layer)],
            [self._cotangent(v) for v in compress(layer.writes, asked.writes)],
            (sums, before),
        )
        self._sums.update(zip(_asked(layer), gradients, strict=True))
        self._cotangents.update(zip(moved, cotangents, strict=True))
        return done

    def _cotangent(self, value: int) -> Any:
        """What the loss feels of a value; of the loss itself, one, or the scale that it has."""
        graph = self._plan.graph
        if value != graph.outputs[0]:
            return self._cotangents.pop(value)
        one = np.asarray(self._link.scale, graph.values[value].dtype)
        return derivatives.add(one, self._cotangents.pop(value, None))

    def _finish(self, i: int, start: float, result: Any) -> None:
        """Wait for a visit; its weights leave, its gradients go to the store."""
        visit, layer = self._plan.visits[i], self._layer(i)
        jax.block_until_ready(result)
        start = max(start, self._free_s)
        self._log("backward" if visit.back else "forward", layer.name, start)
        self._free_s = self._now()
        del self._weights[i]
        if visit.back:
            self._send_out(visit.place, layer)
        self._count()

    def _send_out(self, place: int, layer: Layer) -> None:
        done, moved = self._plan.leaving[place]
        start = self._now()
        gradients = [self._sums.pop(weight) for weight in done]
        if self._pinned is not None:
            gradients = self._pinned.fetched(gradients)
        elif not self._plan.swarm.at_host:
            gradients = [np.asarray(gradient) for gradient in gradients]
        if not self._link.plain:
            sent = [self._link.up(*pair) for pair in zip(done, gradients, strict=True)]
            gradients, moved = [array for array, _ in sent], sum(size for _, size in sent)
        for weight, gradient in zip(done, gradients, strict=True):
            self._receiving.give(weight, gradient)
        if done:
            self._log("gradient", layer.name, start, moved)
        start = self._now()
        if updated := self._receiving.advance():
            names = [self._plan.graph.parameters[leaf] for leaf in updated]
            name = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
            size = sum(self._plan.sizes[leaf] for leaf in updated)
            self._log("update", name, start, size)

    def _output(self, found: Any) -> Any:
        if isinstance(found, Weight):
            return self._store.read(found)
        return self._plan.swarm.collect(self._values[found]) if isinstance(found, int) else found

    def _layer(self, i: int) -> Layer:
        return self._plan.graph.layers[self._plan.visits[i].place]

    def _count(self) -> None:
        self._ledger.count(self._held)

    def _held(self) -> Any:
        kept = chain.from_iterable(self._kept.values())
        weights = chain.from_iterable(self._weights.values())
        activations = chain(self._values.values(), kept, self._cotangents.values())
        return weights, self._sums.values(), activations


def _bytes(arrays: Any) -> int:
    return sum(nbytes(jax.typeof(array)) for array in arrays)
