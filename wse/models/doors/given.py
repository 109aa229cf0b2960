"""What a stranger's file says: a workload, and how it is to be trained."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from wse.models.shapes.workload import Workload

# Names that the vendor gives to the weights of a block, by the ends of our layers' names.
THEIRS = {
    "qkv": ("layers.0.self_attn.proj_q_dense_layer.weight",),
    "attended": ("layers.0.self_attn.proj_output_dense_layer.weight",),
    "up": ("layers.0.ffn.ffn.0.linear_layer.weight",),
    "down": ("layers.0.ffn.ffn.1.linear_layer.weight",),
}


@dataclass(frozen=True)
class Sparse:
    """Zeros among the weights that a file asks for.

    Attributes:
        share: of the weights that are zero, at the end of training.
        kind: static, set, rigl, gmp, ...
        patterns: names of the weights that may be zero; none: all of the blocks.
    """

    share: float
    kind: str = "static"
    patterns: tuple[str, ...] = ()

    def thinned(self, workload: Workload) -> Workload:
        """The same layers, those that the patterns choose with fewer weights."""
        thin = workload.sparse(1 - self.share)
        if not self.patterns:
            return thin
        chosen = {end for end, names in THEIRS.items() if self._among(names)}
        layers = tuple(
            new if new.name.rpartition(".")[2] in chosen else old
            for old, new in zip(workload.layers, thin.layers, strict=True)
        )
        return replace(workload, layers=layers)

    def _among(self, names: tuple[str, ...]) -> bool:
        # Older files have patterns of regular expressions; `.*` is all that they use of these.
        globs = ["*" + pattern.replace(".*", "*").lstrip("*") for pattern in self.patterns]
        return any(fnmatchcase(name, glob) for name in names for glob in globs)


@dataclass(frozen=True)
class ReadModel:
    """A model of a stranger's file.

    Attributes:
        workload: its layers; thinned where the file asks for sparsity.
        family: which reader took it, as "decoder" or "unet".
        net: what the layers were counted from: what `wse check` builds.
        batch: samples of a step, on all systems together; None: not said.
        micro_batch: samples at once on one system; None: not said.
        systems: how many; None: not said.
        steps: of training; None: not said.
        precision: "float32", "float16", "bfloat16" or "cbfloat16"; None: not said.
        sparsity: zeros among the weights; None: there are none.
        optimizer: its name and settings, as in the file.
        harmless: keys that change no count and no shape.
        cautions: what is in doubt.
    """

    workload: Workload
    family: str
    net: Any
    batch: int | None = None
    micro_batch: int | None = None
    systems: int | None = None
    steps: int | None = None
    precision: str | None = None
    sparsity: Sparse | None = None
    optimizer: Mapping[str, Any] = field(default_factory=dict[str, Any])
    harmless: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """One line: the workload, and what of training is said."""
        told = {
            "batch": self.batch,
            "systems": self.systems,
            "precision": self.precision,
            "optimizer": self.optimizer.get("optimizer_type"),
            "sparsity": self.sparsity and self.sparsity.share,
        }
        words = ", ".join(f"{key} {value}" for key, value in told.items() if value)
        return f"{self.workload!r}{words and f'; {words}'}"

    def document(self) -> dict[str, Any]:
        """The same for JSON, without the layers."""
        sparse = self.sparsity
        return {
            "name": self.workload.name,
            "family": self.family,
            "parameters": self.workload.parameters,
            "forward_flops": self.workload.forward_flops,
            "batch": self.batch,
            "micro_batch": self.micro_batch,
            "systems": self.systems,
            "steps": self.steps,
            "precision": self.precision,
            "sparsity": sparse and {"share": sparse.share, "type": sparse.kind},
            "optimizer": self.optimizer.get("optimizer_type"),
            "harmless": [*self.harmless],
            "cautions": [*self.cautions],
        }
