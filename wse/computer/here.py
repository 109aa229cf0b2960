"""A step's time on the computer at hand, layer by layer, before it is run."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import optax

from wse import _render
from wse._files import cache_folder
from wse.computer.compiled import Kernel, kernels
from wse.computer.measure import computer, convolution_seconds, measure, together
from wse.computer.rates import Rates, read
from wse.computer.timings import LARGEST_FLOPS, Convolutions
from wse.graph import derivatives
from wse.graph.equations import structs
from wse.graph.layers import Graph, Layer
from wse.graph.trace import trace
from wse.models.shapes.workload import Workload

if TYPE_CHECKING:
    import xarray as xr

HEADER = ("layer", "forward", "backward", "bound by")


@dataclass(frozen=True)
class LocalEstimate:
    """Seconds of one training step, as one compiled program, on a computer that was measured.

    Attributes:
        computer: which.
        batch: samples of the step.
        layers: names.
        forward_s: seconds of each layer.
        backward_s: seconds of each layer.
        binding: of each layer, what it waits for most: "product", "convolution" or "pass".
        optimizer_s: seconds of the update.
        call_s: seconds of the call itself.

    >>> from wse.computer import LocalEstimate
    >>> times = {"forward_s": (2e-3,), "backward_s": (4e-3,), "optimizer_s": 1e-3, "call_s": 1e-3}
    >>> step = LocalEstimate("a laptop", 100, ("dense",), binding=("product",), **times)
    >>> round(step.samples_per_s)
    12500
    """

    computer: str
    batch: int
    layers: tuple[str, ...]
    forward_s: tuple[float, ...]
    backward_s: tuple[float, ...]
    binding: tuple[str, ...]
    optimizer_s: float
    call_s: float

    @property
    def step_s(self) -> float:
        """All of it: costs add."""
        return sum(self.forward_s) + sum(self.backward_s) + self.optimizer_s + self.call_s

    @property
    def samples_per_s(self) -> float:
        """Samples of a second of training."""
        return self.batch / self.step_s

    @property
    def dataset(self) -> "xr.Dataset":
        """Seconds by layer and phase, with the totals as attributes."""
        import xarray as xr

        return xr.Dataset(
            {
                "time_s": (
                    ("phase", "layer"), [self.forward_s, self.backward_s], {"units": "s"},
                ),
                "binding": ("layer", list(self.binding)),
            },
            coords={"phase": ["forward", "backward"], "layer": list(self.layers)},
            attrs={
                "computer": self.computer,
                "batch": self.batch,
                "optimizer_s": self.optimizer_s,
                "call_s": self.call_s,
                "step_s": self.step_s,
                "samples_per_s": self.samples_per_s,
                "status": "derived from rates and convolutions measured on this computer",
            },
        )  # fmt: skip

    def __str__(self) -> str:
        """The layers as a table for a terminal."""
        return "\n".join((self._caption(), "", _render.text(HEADER, self._rows())))

    def _repr_html_(self) -> str:
        """The layers as a table for a notebook."""
        return _render.html(self._caption(), HEADER, self._rows())

    def _caption(self) -> str:
        return (
            f"{1e3 * self.step_s:.3g} ms a step of {self.batch} samples "
            f"({self.samples_per_s:,.0f} samples/s) on {self.computer}"
        )

    def _rows(self) -> list[tuple[str, ...]]:
        each = zip(self.layers, self.forward_s, self.backward_s, self.binding, strict=True)
        rows = [(name, _ms(forward), _ms(back), bound) for name, forward, back, bound in each]
        return [*rows, ("optimizer", _ms(self.optimizer_s), "", "pass")]


@dataclass(frozen=True)
class Local:
    """The computer at hand, with what was measured on it.

    Attributes:
        rates: of products, convolutions and memory.
        convolutions: seconds of single ones, timed when a graph first has them; None: all are
            taken from `rates`, as for a computer that is not at hand.

    >>> from wse.computer import Local, Rates
    >>> from wse.workload import dense
    >>> even = Rates("a laptop", "jax", (1e10,) * 216, (1e10,) * 24, (1e10,) * 4, 1e9, 1e-6, 1e-5)
    >>> round(1 / Local(even).sample_s(dense(width=32)))  # samples a second
    58007
    """

    rates: Rates
    convolutions: Convolutions | None = field(default=None, compare=False, repr=False)

    def estimate(
        self, model: Any, params: Any = None, batch: Any = None, optimizer: Any = None
    ) -> LocalEstimate:
        """Predict one training step: forward, backward, update, as one compiled program.

        Every layer's program is taken apart into products, convolutions and passes over memory
        (`wse.computer.compiled`); a kernel takes

            t = t_kernel + max(FLOP / rate(shape), bytes / bandwidth(bytes), slow / slow_per_s)

        with rates between those measured. Convolutions up to 2 GFLOP are timed themselves, each
        kind once, in place of FLOP / rate: their rates depend on strides, dilations and channels
        too much. Layers add.

        Args:
            model: a `wse.Graph`, or `loss(params, batch)` as for `wse.trace`.
            params: of a loss function: parameters, or their shapes.
            batch: of a loss function: a batch, or its shapes.
            optimizer: an optax optimizer; None: no update.

        Raises:
            ValueError: what `wse.trace` refuses.
        """
        graph = model if isinstance(model, Graph) else trace(model, params, batch, has_aux=None)
        alike = {(layer.program, layer.recomputed): layer for layer in graph.layers}
        made = {which: of_layer(layer) for which, layer in alike.items()}
        pairs = [made[layer.program, layer.recomputed] for layer in graph.layers]
        update = [] if optimizer is None else of_update(optimizer, graph.shapes)
        return LocalEstimate(
            computer=self.rates.computer,
            batch=graph.batch_size,
            layers=tuple(layer.name for layer in graph.layers),
            forward_s=tuple(self.seconds(forward) for forward, _ in pairs),
            backward_s=tuple(self.seconds(backward) for _, backward in pairs),
            binding=tuple(self.binding([*forward, *backward]) for forward, backward in pairs),
            optimizer_s=self.seconds(update, sum(kernel.nbytes for kernel in update)),
            call_s=self.rates.call_s,
        )

    def sample_s(self, model: Any, params: Any = None, batch: Any = None) -> float:
        """Seconds of training on one sample, of what `estimate` takes or of a dense net's shapes.

        Raises:
            ValueError: another workload than a dense net: its shapes alone do not tell.
        """
        if not isinstance(model, Workload):
            return 1 / self.estimate(model, params, batch).samples_per_s
        if not model.is_dense_chain:
            raise ValueError(
                f"{model.name} is known by its shapes alone: pass its loss function with params "
                "and batch"
            )
        size = batch or 100
        return self.dense_step_s([(x.inputs, x.outputs) for x in model.layers], size) / size

    def dense_step_s(self, sizes: Sequence[tuple[int, int]], batch: int) -> float:
        """Seconds of a step of dense layers by inputs and outputs alone: three products of each.

        The first layer's inputs have no gradient. Activation functions and the update are left
        out: pass `estimate` a loss function to count them.
        """
        products = [
            (3 if i else 2) * (2 * batch * n * m / self.rates.product((batch, n, m)))
            for i, (n, m) in enumerate(sizes)
        ]
        return self.rates.call_s + sum(products)

    def seconds(self, found: Sequence[Kernel], among: int = 1) -> float:
        """Seconds of kernels one after the other."""
        return sum((self.one(kernel, among) for kernel in found), 0.0)

    def one(self, kernel: Kernel, among: int = 1) -> float:
        """Seconds of a kernel, all its turns.

        Args:
            kernel: which.
            among: bytes that pass before the same ones come again, as an optimizer's state does
                once a step: they come from where so many lie.
        """
        rates = self.rates
        if kernel.copies > 1:
            return self.copied(kernel, among)
        memory_s = kernel.nbytes / rates.bytes_per_s(max(among, kernel.nbytes))
        slow_s = kernel.slow / rates.slow_per_s
        if kernel.kind == "product":
            busy_s = max(kernel.flops / rates.product(kernel.shape), memory_s)
        elif kernel.kind == "convolution":
            busy_s = self.convolution_s(kernel, memory_s)
        else:
            busy_s = max(memory_s, slow_s)
        return kernel.turns * (rates.kernel_s + busy_s)

    def copied(self, kernel: Kernel, among: int) -> float:
        """Seconds of products that are alike: in turn, or on a card as one that has all rows."""
        m, *rest = kernel.shape
        n = kernel.copies
        if not self.rates.together:
            return n * self.one(replace(kernel, copies=1), among)
        size = {"flops": n * kernel.flops, "nbytes": n * kernel.nbytes, "shape": (n * m, *rest)}
        return self.one(replace(kernel, copies=1, **size), among)

    def convolution_s(self, kernel: Kernel, memory_s: float) -> float:
        """Seconds that a convolution is busy."""
        timed, which = self.convolutions, kernel.convolution
        if timed is not None and which is not None and kernel.flops <= LARGEST_FLOPS:
            return timed(which)
        return max(kernel.flops / self.rates.convolution(kernel.shape, kernel.result), memory_s)

    def binding(self, found: Sequence[Kernel]) -> str:
        """The kind of kernel in which most of the time goes."""
        totals = defaultdict[str, float](float)
        for kernel in found:
            totals[kernel.kind] += self.one(kernel)
        return max(totals, key=lambda kind: totals[kind], default="pass")


def local(*, again: bool = False) -> Local:
    """The computer at hand as a machine: measured once for about fifteen seconds, then remembered.

    The table lies in the cache folder (`SCIML_CACHE`, else `XDG_CACHE_HOME`, else `~/.cache`) and
    holds for one processor, number of cores and version of JAX. So do the seconds of convolutions,
    which are timed as models bring them. Measure while nothing else runs.

    Args:
        again: measure anew.

    >>> import wse
    >>> here = wse.local()  # doctest: +SKIP
    >>> 1 / here.sample_s(wse.workload.dense(width=512))  # doctest: +SKIP
    """
    path, timed = cache_file(), cache_folder("wse", "convolutions.json")
    found = None if again else read(path)
    wanted = computer(), f"jax {jax.__version__}", together()
    if found is None or (found.computer, found.versions, found.together) != wanted:
        found = measure()
        found.write(path)
        timed.unlink(missing_ok=True)
    clock = partial(convolution_seconds, rates=found)
    return Local(found, Convolutions(clock, path=timed, of=(found.computer, found.versions)))


def cache_file() -> Path:
    """Where the measured rates are kept."""
    return cache_folder("wse", "rates.json")


def of_layer(layer: Layer) -> tuple[list[Kernel], list[Kernel]]:
    """The kernels of a layer's forward pass, and of its backward pass.

    That one starts from what was kept; under the user's remat, from what the layer reads.
    """
    closed, asked = layer.jaxpr, layer.demand
    if not asked.any:
        return kernels(closed), []
    if layer.recomputed:
        return kernels(closed), kernels(
            derivatives.backward_jaxpr(closed, asked, derivatives.recompute(closed, asked))
        )
    kept = derivatives.keep(closed, asked)
    shapes = structs(closed.jaxpr.invars)
    weights, reads = shapes[: len(asked.weights)], shapes[len(asked.weights) :]
    forward = jax.make_jaxpr(kept.forward)(weights, reads)
    return kernels(forward), kernels(derivatives.backward_jaxpr(closed, asked, kept))


def of_update(optimizer: Any, shapes: Sequence[Any]) -> list[Kernel]:
    """The kernels of an optimizer's update."""
    params = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in shapes]
    state = jax.eval_shape(optimizer.init, params)

    def update(gradient: Any, state: Any, params: Any) -> Any:
        change, after = optimizer.update(gradient, state, params)
        return optax.apply_updates(params, change), after

    return kernels(jax.make_jaxpr(update)(params, state, params))


def _ms(time_s: float) -> str:
    return f"{1e3 * time_s:.3g} ms"
