"""What was published about the real machine, and constants are fitted to."""

# A row of a table stands on one line.
# ruff: noqa: E501

from dataclasses import dataclass
from typing import Final

SOURCE: Final = "OSTI brief, Table 4"
SAMPLES: Final = 1_000_000  # sourced: OSTI brief, caption of Table 4 (1000 epochs)
DEPTH: Final = 8  # sourced: OSTI brief, caption of Table 4
INPUTS: Final = 1000  # derived: the one size that gives the brief's parameter counts
OUTPUTS: Final = 2  # derived: the two parameters that the brief's nets estimate
# The batch is not published. `wse.estimate` therefore records a batch and calibrates without it.


@dataclass(frozen=True)
class Row:
    """One column of the published table: a dense net of eight layers, on two machines.

    >>> from wse import published
    >>> published.TABLE4[0].units, published.TABLE4[0].cs2_total_s
    (32, 178.6)
    """

    units: int
    parameters: int
    cpu_total_s: float
    cs2_total_s: float
    cs2_setup_s: float
    cs2_train_s: float
    cpu_samples_per_s: float
    cs2_samples_per_s: float


TABLE4: Final[tuple[Row, ...]] = (  # sourced: OSTI brief, Table 4
    Row(32, 39_490, 21.0, 178.6, 173.7, 4.9, 47_577.9, 204_956.5),
    Row(128, 243_970, 47.9, 177.6, 173.0, 4.6, 20_864.8, 217_493.3),
    Row(512, 2_352_130, 221.6, 191.1, 185.4, 5.7, 4_512.1, 174_454.2),
    Row(2048, 31_428_610, 2_576.2, 810.4, 801.5, 8.9, 388.2, 112_483.5),
)


USER_GUIDES: Final = "argonne-lcf/user-guides, docs/ai-testbed/cerebras"
USER_DOCS: Final = "argonne-lcf/ai-testbed-userdocs"
NEOCORTEX: Final = "pscedu/psc-wpdocs, neocortex/running-neo-monitor.md"
CS1_LOG: Final = "pscedu/psc-wpdocs, neocortex/reference-compilation-neocortex.md"


@dataclass(frozen=True)
class Streamed:
    """One run in weight streaming.

    Attributes:
        model: a name of `wse.workloads`.
        machine: "CS-2" or "CS-3".
        systems: how many.
        release: of the vendor's software.
        batch: samples of a step.
        samples_per_s: measured.

    >>> from wse import published
    >>> published.STREAMED[0].model, published.STREAMED[0].samples_per_s
    ('GPT-J-6B', 27.53)
    """

    model: str
    machine: str
    systems: int
    release: str
    batch: int
    samples_per_s: float


STREAMED: Final = (  # sourced: USER_GUIDES and its history. One system where none is named: assumed
    Streamed("GPT-J-6B", "CS-2", 2, "R1.7.1", 130, 27.53),
    Streamed("GPT-J-6B", "CS-2", 2, "R1.8", 130, 33.98),
    Streamed("GPT-J-6B", "CS-2", 2, "R2.0.3", 120, 43.67),
    Streamed("GPT-J-6B", "CS-3", 1, "R2.5", 120, 44.75),
    Streamed("ESM-2-35M", "CS-2", 1, "R2.3.0", 2048, 585.88),
    Streamed("ESM-2-35M", "CS-3", 1, "R2.5", 2048, 989.11),
    Streamed("DiT-2B-2", "CS-2", 1, "R2.4.0", 1100, 405.45),
    Streamed("DiT-2B-2", "CS-3", 1, "R2.5", 1168, 876.45),
    Streamed("FC-MNIST", "CS-2", 1, "R2.0.3", 2, 395.69),
)
GPTJ_SAMPLES_PER_S: Final[dict[str, float]] = {
    run.release: run.samples_per_s
    for run in STREAMED
    if run.model == "GPT-J-6B" and run.systems == 2
}


@dataclass(frozen=True)
class Resident:
    """One run in layer-pipelined mode, or what the vendor's compiler promised of it.

    Attributes:
        model: a name of `wse.workloads`.
        samples_per_s: measured, or promised.
        promised: whether it is the vendor's own estimate.
        source: where it was read.
        tokens: of a sample, where that is not the model's own; 0: the model's.
        machine: "CS-2" or "CS-1".

    >>> from wse import published
    >>> published.PIPELINED[0].model, published.PIPELINED[0].promised
    ('FC-MNIST', False)
    """

    model: str
    samples_per_s: float
    promised: bool
    source: str
    tokens: int = 0
    machine: str = "CS-2"


PIPELINED: Final = (
    Resident("FC-MNIST", 146_665.4, False, NEOCORTEX),
    Resident("FC-MNIST", 358_417.08, False, f"{USER_DOCS}, R1.1, commit 684f6e4"),
    Resident("FC-MNIST", 479_188.55, False, f"{USER_DOCS}, May 2022, commit b7c1b30"),
    Resident("FC-MNIST", 25.6e6 / 110.12, False, f"{USER_DOCS}, R1.7.1"),
    Resident("FC-MNIST", 25.6e6 / 109.18, False, f"{USER_DOCS}, R1.8"),
    Resident("BERT-large", 6_493.0, False, f"{USER_DOCS}, R1.8, batch 1024", 128),
    Resident("FC-MNIST", 120_832.56, False, CS1_LOG, machine="CS-1"),
    Resident("U-Net-Severstal", 14_724.2, True, f"{USER_DOCS}, R1.x, compute and transmission"),
)


@dataclass(frozen=True)
class Placed:
    """The vendor's own estimate of a placement on a CS-2: cycles of its slowest kernel.

    Attributes:
        model: a name of `wse.workloads`.
        compute_cycles: per sample.
        transmission_cycles: per sample; None: not told.
        source: where it was read.

    >>> from wse import published
    >>> published.PLACED[0].compute_cycles
    464.0
    """

    model: str
    compute_cycles: float
    transmission_cycles: float | None
    source: str


PLACED: Final = (
    Placed("FC-MNIST", 464.0, None, NEOCORTEX),
    Placed("FC-MNIST", 669.0, 326.0, f"{USER_DOCS}, R1.1"),
    Placed("U-Net-Severstal", 49_168.0, 57_728.0, f"{USER_DOCS}, R1.x"),
)


@dataclass(frozen=True)
class Started:
    """Seconds of the phases of one set-up in weight streaming, as a log shows them.

    Attributes:
        model: a name of `wse.workloads`.
        machine: "CS-2" or "CS-3".
        release: of the vendor's software.
        seconds: by phase; what a log does not show is left out.

    >>> from wse import published
    >>> published.SETUPS[0].seconds["search"]
    1641
    """

    model: str
    machine: str
    release: str
    seconds: dict[str, int]


SETUPS: Final = (  # sourced: USER_GUIDES, example-programs.md and its history
    Started("Llama-7B", "CS-2", "R2.1.1", {"search": 1641, "codegen": 380, "job": 52, "prepare": 47, "weights": 87, "program": 85, "prime": 19}),
    Started("ESM-2-35M", "CS-2", "R2.3.0", {"search": 913, "codegen": 31, "job": 131, "prepare": 33, "weights": 7, "program": 96, "prime": 3}),
    Started("ESM-2-35M", "CS-3", "R2.5", {"prepare": 28, "weights": 3, "program": 255, "prime": 2}),
    Started("DiT-2B-2", "CS-3", "R2.5", {"prepare": 37, "weights": 6, "program": 249, "prime": 2604}),
)  # fmt: skip
CS1_COMPILE_S: Final = 25.0  # sourced: CS1_LOG; of FC-MNIST
# sourced: pr0f3ss/SpMM_Cerebras, benchmarks: cycles of a core, fixed and for each of its FLOP
SPMM_CS3: Final = {"CSC": (6738.7, 0.4497), "CSR": (10545.2, 0.4254), "ELLPACK": (10005.4, 0.6493)}
CHECKPOINT_S: Final = {"CS-2": 328.0, "CS-3": 497.0}  # sourced: USER_GUIDES; of GPT-J 6B
