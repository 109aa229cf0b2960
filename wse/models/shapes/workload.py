"""What a model asks of a machine, from shapes alone."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from wse import _render
from wse._numbers import MOST, check_depth, check_kinds, positive, short
from wse.layout.pieces import Shape

if TYPE_CHECKING:
    import xarray as xr


HEADER = ("layer", "kind", "inputs", "outputs", "parameters")
SHAPES = "pass what the model's shapes say"
FUSED = {  # by kind of layer
    "attention": "attention fused, as in the published trainings: its matrix is never kept",
    "states": "state spaces fused, as in the published trainings: states are never kept",
}
WRITTEN_OUT = (
    "products of activations, as of attention or states, are traced: their matrices are written "
    "and kept, which by name are not"
)


@dataclass(frozen=True)
class Part:
    """What waits for the backward pass of the part of a layer that lies in one block.

    Attributes:
        block: that is computed again together.
        enters: numbers of a sample that enter the block, of the first part of it.
        kept: numbers of a sample that wait within.
        moved: numbers of a sample that products read and write.
    """

    block: str
    enters: int
    kept: int
    moved: int


@dataclass(frozen=True)
class Layer:
    """One layer that has parameters, as a machine sees it.

    Attributes:
        name: unique in its workload.
        inputs: numbers per sample that enter.
        outputs: numbers per sample that leave; of a dense layer, its units.
        parameters: numbers that training learns or reads.
        kind: what the layer computes: "dense", "convolution", "attention", "states", ...
        multiplies: multiply-adds per sample forward; None: a dense layer's inputs x outputs.
        kept: numbers per sample that wait for the backward pass; None: the layer's inputs.
        features: numbers that lie along the rows of cores at once, as a transformer's hidden size;
            None: the layer's inputs.
        block: layers of the same block are computed again together, where memory asks for it;
            empty: the layer is its own block.
        shared: its weights are another layer's: streamed again, counted once.
        sparsifiable: whether zeros among its weights may be left out.
        density: share of its weights that are not zero.
        zeros: share of zeros among the activations that enter.
        grid: of a convolution of one sample, its loops, as `wse.layout` lays them out; several
            where its filters meet several images.
        normed: whether a norm over the batch follows.
        moved: numbers per sample that products read and write; None: inputs and outputs.
        products: how many it runs.
        units: of a traced visit, the most that one product by weights makes of one token or pixel;
            None: its outputs, by how often its weights meet a sample.
        backward: multiply-adds per sample backward; None: twice those forward, and in the first
            layer of a workload once, for nobody asks for the gradient of the model's inputs.
        visit: of a traced model, the layer of the graph that it belongs to; empty: its own name.
        parts: what waits of it, block by block; empty: its inputs enter, all in its own block.
        frozen: of the parameters, those without gradient: read, never sent out nor updated.
        convolving: of the multiply-adds, those of windows that overlap; None: as the kind says.

    Raises:
        ValueError: a size that is not positive, negative parameters or multiplies, a part that is
            more than the whole, or a share outside 0 to 1.

    >>> Layer("first", inputs=1000, outputs=32, parameters=32_032).forward_flops
    64000
    """

    name: str
    inputs: int
    outputs: int
    parameters: int
    kind: str = "dense"
    multiplies: int | None = None
    kept: int | None = None
    features: int | None = None
    block: str = ""
    shared: bool = False
    sparsifiable: bool = True
    density: float = 1.0
    zeros: float = 0.0
    grid: tuple[Shape, ...] = ()
    normed: bool = False
    moved: int | None = None
    products: int = 1
    units: int | None = None
    backward: int | None = None
    visit: str = ""
    parts: tuple[Part, ...] = ()
    frozen: int = 0
    convolving: int | None = None

    def __post_init__(self) -> None:
        check_kinds(self)
        for what in ("inputs", "outputs"):
            positive(f"{what} of layer {self.name!r}", getattr(self, what), SHAPES)
        names = ("parameters", "multiplies", "kept", "moved", "backward")
        counts = {name: getattr(self, name) or 0 for name in names}
        for what, count in counts.items():
            if not 0 <= count <= MOST**2:
                rule = "not be negative" if count < 0 else "be at most 10^36"
                raise ValueError(
                    f"{what} of layer {self.name!r} is {short(count)}; it must {rule}: "
                    "count again from the shapes"
                )
        for what, part, whole, of in (
            ("frozen", self.frozen, self.parameters, "parameters"),
            ("convolving", self.convolving or 0, self.forward_flops // 2, "multiply-adds"),
        ):
            if not 0 <= part <= whole:
                raise ValueError(
                    f"{what} of layer {self.name!r} is {short(part)} of {whole} {of}; it must be a "
                    f"part of them: pass {what}=0, or count again"
                )
        for what, share in (("density", self.density), ("zeros", self.zeros)):
            if not 0 <= share <= 1:
                raise ValueError(
                    f"{what} of layer {self.name!r} is {short(share)}; it must lie between 0 and "
                    f"1: pass {what}=0.25"
                )

    @property
    def trained(self) -> int:
        """The parameters that gradients are sent out for."""
        return self.parameters - self.frozen

    @property
    def along_rows(self) -> int:
        """The features, or what stands for them where they are left out."""
        return self.features or self.inputs

    @property
    def forward_flops(self) -> int:
        """Operations per sample forward: two per multiply-add; biases and activations left out."""
        count = self.inputs * self.outputs if self.multiplies is None else self.multiplies
        return 2 * count

    @property
    def backward_flops(self) -> int:
        """Operations per sample backward: gradients of the weights and of the inputs."""
        return 2 * self.forward_flops if self.backward is None else 2 * self.backward

    @property
    def traffic(self) -> int:
        """Numbers per sample that products read and write."""
        return self.inputs + self.outputs if self.moved is None else self.moved

    @property
    def convolved(self) -> float:
        """The share of its operations that convolutions take, whose windows overlap."""
        if self.convolving is None:
            return float(self.kind == "convolution")
        return 2 * self.convolving / max(1, self.forward_flops)

    @property
    def waiting(self) -> tuple[Part, ...]:
        """What waits of it for the backward pass, block by block."""
        kept = self.inputs if self.kept is None else self.kept
        own = Part(self.block or f"layer {self.name}", self.inputs, kept, self.traffic)
        return self.parts or (own,)

    @property
    def of_inputs_flops(self) -> int:
        """Those among them that a workload's first layer is not asked for."""
        return self.forward_flops if self.backward is None else 0


@dataclass(frozen=True)
class Workload:
    """A model as a row of layers. A traced model gives the same view.

    Attributes:
        name: what tables call it.
        layers: in the order of the forward pass; the last one makes the outputs.
        inputs: numbers per sample that enter the model.
        outputs: numbers per sample that it is compared with.
        tokens: positions per sample, as of a sequence; 1 of a sample that is one vector.
        origin: the family and the shape that the layers were counted from, which `wse.check`
            builds; None: layers put together by hand or traced.
        in_row: whether each layer works on nothing but what the one before it wrote. False: there
            are residual connections, norms, loops or the like between its products.
        comes_in: numbers per sample that come in to train on; None: those that enter and those that
            these are compared with.
        by_number: whether all that enters are whole numbers, by which a table is read, as words.
        doubt: why a chain of dense layers may be none, or the other way round; empty: plain.
        writes_matrices: whether products read activations alone, as attention's do, and what they
            make is counted as written, read and kept.

    Raises:
        ValueError: no layers, a name used twice, or a size that is not positive.

    >>> import wse
    >>> wse.workload.dense(width=64)
    Workload(dense 8 x 64: 9 layers, 93,314 parameters, 1.86e+05 FLOP forward per sample)
    """

    name: str
    layers: tuple[Layer, ...]
    inputs: int
    outputs: int
    tokens: int = 1
    origin: tuple[str, Any] | None = field(default=None, repr=False, compare=False)
    in_row: bool = True
    comes_in: int | None = None
    by_number: bool = False
    doubt: str = field(default="", repr=False, compare=False)
    writes_matrices: bool = field(default=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_kinds(self)
        for what in ("tokens", "inputs", "outputs"):
            positive(f"{what} of workload {self.name!r}", getattr(self, what), SHAPES)
        if not self.layers:
            raise ValueError(
                f"workload {self.name!r} has no layers; it needs at least one: "
                "build it with wse.workload.dense()"
            )
        names = [layer.name for layer in self.layers]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(
                f"layers {twice} of workload {self.name!r} share a name; names must differ: "
                "number them"
            )

    def __repr__(self) -> str:
        """One line: the name, layers, parameters, and operations per sample."""
        return (
            f"Workload({self.name}: {len(self.layers)} layers, {self.parameters:,} parameters, "
            f"{self.forward_flops:.3g} FLOP forward per sample)"
        )

    def _repr_html_(self) -> str:
        """The layers as a table for a notebook: the first and the last of many."""
        rows = [
            (x.name, x.kind, f"{x.inputs:,}", f"{x.outputs:,}", f"{x.parameters:,}")
            for x in self.layers
        ]
        return _render.html(repr(self), HEADER, _render.few(rows))

    @property
    def parameters(self) -> int:
        """All numbers learned or read; those that layers share count once."""
        return sum(layer.parameters for layer in self.layers if not layer.shared)

    @property
    def trained(self) -> int:
        """Those among them that are updated: all that are not frozen."""
        return sum(layer.trained for layer in self.layers if not layer.shared)

    @property
    def looks_up(self) -> bool:
        """Whether words enter, or other whole numbers by which a table is read."""
        return self.by_number or self.layers[0].kind == "lookup"

    @property
    def attention(self) -> str:
        """Which attention is meant, as `why` of every answer says it; empty: there is none."""
        if self.writes_matrices:
            return WRITTEN_OUT
        kinds = {layer.kind for layer in self.layers}
        return "; ".join(said for kind, said in FUSED.items() if kind in kinds)

    @property
    def entering(self) -> int:
        """Numbers of a sample that come in to train on: its inputs, and what it is compared with.

        What is compared with a map of classes is one number to a place, so no more than enter.
        """
        return self.comes_in or self.inputs + min(self.inputs, self.outputs)

    @property
    def depth(self) -> int:
        """Hidden layers: all but the last."""
        return len(self.layers) - 1

    @property
    def width(self) -> int:
        """Units of the widest hidden layer; 0 where there is none."""
        return max((layer.outputs for layer in self.layers[:-1]), default=0)

    @property
    def forward_flops(self) -> int:
        """Operations per sample forward."""
        return sum(layer.forward_flops for layer in self.layers)

    @property
    def backward_flops(self) -> int:
        """Operations per sample backward; nobody asks for the gradient of the model's inputs."""
        every = sum(layer.backward_flops for layer in self.layers)
        return every - self.layers[0].of_inputs_flops

    @property
    def sparsifiable_share(self) -> float:
        """Share of the forward operations in layers whose zero weights may be left out."""
        thin = sum(x.forward_flops for x in self.layers if x.sparsifiable and x.parameters)
        return thin / max(1, self.forward_flops)

    def sparse(self, density: float, zeros: float | None = None) -> "Workload":
        """The same model with zeros among the weights of its sparsifiable layers.

        Args:
            density: share of those weights that are not zero.
            zeros: share of zeros among the activations that enter those layers; None: as before.

        Raises:
            ValueError: a share outside 0 to 1.

        >>> dense(width=32).sparse(0.25).layers[0].density
        0.25
        """
        layers = tuple(
            replace(x, density=density, zeros=x.zeros if zeros is None else zeros)
            if x.sparsifiable and x.parameters
            else x
            for x in self.layers
        )
        return replace(self, layers=layers)

    def harvested(self, zeros: "xr.Dataset") -> "Workload":
        """The same model with the zeros that were counted among its activations, layer by layer.

        Args:
            zeros: from `wse.sparsity.activation_zeros`, its `share` along `layer`. A share is that
                of one visit, so of each of the matrices of that visit; other layers have no zeros.

        Raises:
            ValueError: zeros of a layer that this model does not have.
        """
        shares = {
            str(x): float(y) for x, y in zip(zeros.layer.values, zeros.share.values, strict=True)
        }
        visits = [layer.visit or layer.name for layer in self.layers]
        unknown = sorted(set(shares) - set(visits))
        if unknown:
            raise ValueError(
                f"zeros are of the layers {unknown}; workload {self.name!r} has none of that name: "
                "trace one training function for both"
            )
        layers = zip(self.layers, visits, strict=True)
        return replace(
            self, layers=tuple(replace(x, zeros=shares.get(visit, 0.0)) for x, visit in layers)
        )

    @property
    def is_dense_chain(self) -> bool:
        """Whether every layer is dense and reads exactly what the one before it wrote."""
        sizes = [self.inputs, *(layer.outputs for layer in self.layers)]
        fits = all(layer.inputs == n for layer, n in zip(self.layers, sizes, strict=False))
        dense = {x.kind for x in self.layers} == {"dense"}
        return self.in_row and fits and sizes[-1] == self.outputs and dense


def dense(inputs: int = 1000, width: int = 2048, depth: int = 8, outputs: int = 2) -> Workload:
    """A dense net: `depth` hidden layers of `width` units, then the outputs; all with biases.

    Parameters number I W + W + (D - 1)(W^2 + W) + W O + O for I inputs, O outputs, width W and
    depth D. The defaults are the widest net of Table 4 of the OSTI brief.

    Args:
        inputs: I, numbers per sample that enter.
        width: W, units per hidden layer.
        depth: D, hidden layers.
        outputs: O, numbers per sample that leave.

    Raises:
        ValueError: a size that is not a positive integer.

    >>> dense(width=2048).parameters
    31428610
    """
    asked = {"inputs": inputs, "width": width, "depth": depth, "outputs": outputs}
    for name, size in asked.items():
        positive(name, size, SHAPES)
    check_depth("depth", depth)
    sizes = [inputs, *[width] * depth, outputs]
    names = [*(f"hidden_{i}" for i in range(1, depth + 1)), "output"]
    layers = tuple(
        Layer(name, n, m, parameters=n * m + m)
        for name, n, m in zip(names, sizes[:-1], sizes[1:], strict=True)
    )
    return Workload(
        f"dense {depth} x {width}", layers, inputs, outputs, origin=("chain", tuple(sizes))
    )
