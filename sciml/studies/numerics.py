"""What sparse weights, and half precision, do to an inverse map."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from sciml.estimator import Fit, fit
from sciml.models import Dense
from sciml.studies.plain import PlainJax
from sciml.studies.recovery_runs import clean_set
from sciml.studies.recovery_study import Cases, study_of
from wse.precision import Dynamic, Precision
from wse.sparsity import RigL, Static

BATCH = 100
JUDGED = (
    "FitzHugh-Nagumo without noise, dense nets of eight layers, {}. Judged on 2000 held-out "
    "parameters, in float32; means over parameters and seeds with Student's 95 % intervals of "
    "three seeds. Steps are plain JAX with the masks and the rounding of the emulated machine."
)


@dataclass(frozen=True)
class SparseRun:
    """One training with a share of weights at zero, by a method."""

    method: str
    sparsity: float
    width: int = 128
    samples: int = 1000
    epochs: int = 300
    seed: int = 0
    noise: ClassVar[None] = None

    def labels(self) -> dict[str, Any]:
        """Return what tells this run from others, but for its seed."""
        return {"method": self.method, "sparsity": self.sparsity, **sizes(self)}

    def identity(self) -> dict[str, Any]:
        """Return everything that decides its numbers."""
        return {"run": f"sparse-{self.method}-seed{self.seed}", **described(self)}

    def trained(self, checkpoint: Path) -> Fit:
        """Train; an interrupted training goes on from the checkpoint."""
        steps = self.epochs * (self.samples // BATCH)
        methods = {
            "dense": lambda: None,
            "static": lambda: Static(self.sparsity, seed=self.seed),
            "RigL": lambda: RigL(self.sparsity, steps=steps, seed=self.seed),
        }
        return trained_with(PlainJax(sparsity=methods[self.method]()), self, checkpoint)


@dataclass(frozen=True)
class HalfRun:
    """One training in half precision, with or without scaling of the loss."""

    precision: str
    scaling: str = "none"
    width: int = 128
    samples: int = 1000
    epochs: int = 300
    seed: int = 0
    noise: ClassVar[None] = None

    def labels(self) -> dict[str, Any]:
        """Return what tells this run from others, but for its seed."""
        return {"precision": self.precision, "scaling": self.scaling, **sizes(self)}

    def identity(self) -> dict[str, Any]:
        """Return everything that decides its numbers."""
        return {"run": f"half-{self.precision}-seed{self.seed}", **described(self)}

    def trained(self, checkpoint: Path) -> Fit:
        """Train; an interrupted training goes on from the checkpoint."""
        scale = Dynamic() if self.scaling == "dynamic" else 1.0
        half = None if self.precision == "float32" else Precision(self.precision, scale)
        return trained_with(PlainJax(precision=half), self, checkpoint)


def sizes(run: Any) -> dict[str, Any]:
    """Return the sizes that a table shows."""
    return {"units": run.width, "samples": run.samples, "epochs": run.epochs}


def described(run: Any) -> dict[str, Any]:
    """Return what decides the numbers of a run of this module."""
    return {"seed": run.seed, "recipe": f"{Dense(run.width).recipe()}", **run.labels()}


def trained_with(plain: PlainJax, run: Any, checkpoint: Path) -> Fit:
    """Return the dense net of a run, trained in plain JAX with masks or rounding."""
    model = Dense(run.width)
    return fit(
        model,
        clean_set(run.samples, run.seed),
        epochs=run.epochs,
        seed=run.seed,
        recipe=model.recipe().replace(batch=BATCH),
        checkpoint=checkpoint,
        executor=plain,
    )


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


def draw_sparsity(table, ax):
    """Draw errors against sparsity."""
    from sciml.figure.numerics import draw_sparsity as draw

    return draw(table, ax)


def draw_precision(table, ax):
    """Draw errors by precision."""
    from sciml.figure.numerics import draw_precision as draw

    return draw(table, ax)


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
