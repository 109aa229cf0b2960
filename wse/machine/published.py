"""What was published about the real machine, and constants are fitted to."""

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
    """One column of the published table: a dense net of eight layers, on two machines."""

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


GPTJ_SYSTEMS: Final = 2  # sourced: argonne-lcf/user-guides, docs/ai-testbed/cerebras
GPTJ_BATCH: Final = 120  # assumed: about 2.75 s a step at the latest rate
GPTJ_SAMPLES_PER_S: Final[dict[str, float]] = {  # sourced: the same; sequences of 2048 tokens
    "R1.7.1": 27.53,
    "R1.8": 33.98,
    "R2.0.3": 43.67,
}
FCMNIST_STREAMED_SAMPLES_PER_S: Final = 395.69  # sourced: the same; batch 2, R2.0.3
