"""What sparse weights, and half precision, do to an inverse map."""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from sciml.figure import draw_precision, draw_sparsity
from sciml.inverse import Fit, fit
from sciml.models import Dense
from sciml.studies.inverse.net import clean_set
from sciml.studies.inverse.plain import PlainJax
from sciml.studies.inverse.recovery_study import Cases, study_of
from wse.precision import Dynamic, Precision
from wse.sparsity import RigL, Static

BATCH = 100
JUDGED = (
    "FitzHugh-Nagumo without noise, dense nets of eight layers, {}. Judged on 2000 held-out "
    "parameters, in float32; means over parameters and seeds with Student's 95 % intervals of "
    "three seeds. Steps are plain JAX with the masks and the rounding of the emulated machine."
)


@dataclass(frozen=True, kw_only=True)
class Training(ABC):
    """One training of the dense net; a subclass says what is special about it."""

    width: int = 128
    samples: int = 1000
    epochs: int = 300
    seed: int = 0
    noise: ClassVar[None] = None

    @property
    @abstractmethod
    def name(self) -> str:
        """The first words of the run's file: its method or format."""

    @abstractmethod
    def steps(self) -> PlainJax:
        """Return the training steps, with masks or rounding."""

    def labels(self) -> dict[str, Any]:
        """Return what tells this run from others, but for its seed."""
        own = asdict(self)
        del own["seed"]
        return {"units": own.pop("width"), **own}

    def identity(self) -> dict[str, Any]:
        """Return everything that decides its numbers."""
        described = {"seed": self.seed, "recipe": f"{Dense(self.width).recipe()}"}
        return {"run": f"{self.name}-seed{self.seed}", **described, **self.labels()}

    def trained(self, checkpoint: Path) -> Fit:
        """Train; an interrupted training goes on from the checkpoint."""
        model = Dense(self.width)
        return fit(
            model,
            clean_set(self.samples, self.seed),
            epochs=self.epochs,
            seed=self.seed,
            recipe=model.recipe().replace(batch=BATCH, standardise=False),
            checkpoint=checkpoint,
            executor=self.steps(),
        )


@dataclass(frozen=True)
class SparseRun(Training):
    """One training with a share of weights at zero, by a method."""

    method: str
    sparsity: float

    @property
    def name(self) -> str:
        """The method's."""
        return f"sparse-{self.method}"

    def steps(self) -> PlainJax:
        """Return the training steps with masks."""
        updates = self.epochs * (self.samples // BATCH)
        methods = {
            "dense": lambda: None,
            "static": lambda: Static(self.sparsity, seed=self.seed),
            "RigL": lambda: RigL(self.sparsity, steps=updates, seed=self.seed),
        }
        return PlainJax(sparsity=methods[self.method]())


@dataclass(frozen=True)
class HalfRun(Training):
    """One training in half precision, with or without scaling of the loss."""

    precision: str
    scaling: str = "none"

    @property
    def name(self) -> str:
        """The format's."""
        return f"half-{self.precision}"

    def steps(self) -> PlainJax:
        """Return the training steps with rounding."""
        scale = Dynamic() if self.scaling == "dynamic" else 1.0
        rounds = self.precision != "float32"
        return PlainJax(precision=Precision(self.precision, scale) if rounds else None)


def scaled(scale: str) -> dict[str, int]:
    """Return width and epochs of a scale."""
    return {"width": 128, "epochs": 300} if scale == "full" else {"width": 32, "epochs": 60}


def by_sparsity(scale: str) -> tuple[SparseRun, ...]:
    """Return the dense net, then static masks and RigL at growing sparsity."""
    shares = (0.5, 0.75, 0.9, 0.95) if scale == "full" else (0.75, 0.95)
    sparse = [
        SparseRun(method, share, **scaled(scale))
        for method in ("static", "RigL")
        for share in shares
    ]
    return (SparseRun("dense", 0.0, **scaled(scale)), *sparse)


def by_precision(scale: str) -> tuple[HalfRun, ...]:
    """Return float32, then each format; those of few exponents also with scaling of the loss."""
    cases = [("float32", "none"), ("bfloat16", "none")]
    cases += [(name, how) for name in ("float16", "cbfloat16") for how in ("none", "dynamic")]
    return tuple(HalfRun(name, how, **scaled(scale)) for name, how in cases)


LABELS = ("units", "samples", "epochs")
SPARSITY = study_of(
    Cases(
        name="sparsity",
        title="An inverse map with few weights",
        about=JUDGED.format("biases and the last layer dense"),
        published="No published figures of sparse inverse maps were found.",
        runs=by_sparsity,
        labels=("method", "sparsity", *LABELS),
        draw=draw_sparsity,
    )
)
PRECISION = study_of(
    Cases(
        name="precision",
        title="An inverse map trained in half precision",
        about=JUDGED.format("weights, activations and gradients rounded, the master weights not"),
        published="No published figures of inverse maps in these formats were found.",
        runs=by_precision,
        labels=("precision", "scaling", *LABELS),
        draw=draw_precision,
    )
)
