"""Constants of weight streaming and of set-up, each with source, status and interval on its line."""

from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from wse.machine.machine import Sourced, numbers
from wse.machine.release import version
from wse.machine.share import Anchor, Shares

__all__ = [
    "LLAMA_PARAMETERS",
    "SETUP",
    "SETUPS",
    "SHARES",
    "STREAMING",
    "Setup",
    "Streaming",
    "at_end",
    "efficiency",
    "end",
    "version",
]
SLOWER_WHEN_LARGER = ("s", "B", "extra")  # units; of others, more is faster
Specification = TypeVar("Specification")

_FCMNIST = "FC-MNIST streamed on R2.0.3, batch 2, 395.69 samples/s: argonne-lcf/user-guides"
_LLAMA = "log of Llama-7B on CS-2, R2.1.1: argonne-lcf/user-guides, example-programs.md"
_LOGS = "log of FC-MNIST: pscedu/psc-wpdocs"


@dataclass(frozen=True)
class Streaming:
    """What equations of `wse.predict.seconds` need besides machine, store and tree.

    Attributes:
        weight_bytes: of a streamed weight in a dense layer.
        sparse_weight_bytes: of a streamed weight with its index.
        gradient_bytes: of a gradient on its way back.
        activation_bytes: of a number that waits on the wafer.
        input_value_bytes: of a number of a sample on its way in.
        input_bytes_per_s: at which samples enter one system.
        usable_sram: share of the wafer's memory for activations.
        pass_s: seconds that one pass over one layer costs whatever it computes.
        step_s: seconds that one step costs whatever it computes.
        sparse_overhead: work per weight group that stays when weights are left out.
        harvest: share of the zeros among activations that cost no time.

    >>> from wse import constants
    >>> str(constants.STREAMING.step_s)
    '0.00505 s (calibrated)'
    """

    weight_bytes: Sourced
    sparse_weight_bytes: Sourced
    gradient_bytes: Sourced
    activation_bytes: Sourced
    input_value_bytes: Sourced
    input_bytes_per_s: Sourced
    usable_sram: Sourced
    pass_s: Sourced
    step_s: Sourced
    sparse_overhead: Sourced
    harvest: Sourced


# ruff: noqa: E501
# fmt: off
STREAMING = Streaming(
    weight_bytes=Sourced(2, "B", "assumed", "half precision on the wire; the store keeps 32 bits"),
    sparse_weight_bytes=Sourced(4, "B", "sourced", "Cerebras SDK technical white paper", "16-bit index and 16-bit value"),
    gradient_bytes=Sourced(4, "B", "assumed", "32-bit sums", interval=(2, 4)),
    activation_bytes=Sourced(2, "B", "assumed", "half precision"),
    input_value_bytes=Sourced(4, "B", "assumed", "32-bit token numbers and pixels", interval=(1, 4)),
    input_bytes_per_s=Sourced(0.5e9, "B/s", "assumed", "ViT was bound by its input, 4.5 times slower than its arithmetic: argonne-lcf/user-guides", "pipelined runs took in 0.46 to 1.5 GB/s", interval=(0.125e9, 2e9)),
    usable_sram=Sourced(0.92, "fraction", "derived", "Cerebras/modelzoo, params_gpt3_xl.yaml", "its batch of 121 on one CS-2 takes 0.914 of the memory if what enters each block waits", interval=(0.75, 0.95)),
    pass_s=Sourced(0.0, "s", "assumed", "all of FC-MNIST's time per step is charged to the step", "at the slow end a tenth of what 33 passes over 11 layers would take", interval=(0.0, 0.0153e-3)),
    step_s=Sourced(5.05e-3, "s", "calibrated", _FCMNIST, "one run: a factor of two either way", interval=(2.5e-3, 10.1e-3)),
    sparse_overhead=Sourced(0.0, "extra", "assumed", "zeros are never sent", interval=(0.0, 0.05)),
    harvest=Sourced(0.0, "fraction", "assumed", "weights are what is streamed: zeros among activations wait on the wafer", interval=(0.0, 1.0)),
)


_UNET = "vendor's estimate of U-Net in pipelined mode, 49,168 cycles: argonne-lcf/ai-testbed-userdocs"
SHARES = Shares(
    anchors=(
        Anchor("WSE-2", 480, 0.0283, "ESM-2 35M"),  # calibrated, as all here: wse.calibrate.shares
        Anchor("WSE-2", 2048, 0.1689, "DiT-2B/2"),
        Anchor("WSE-2", 4096, 0.2976, "GPT-J 6B"),
        Anchor("WSE-3", 480, 0.0219, "ESM-2 35M"),
        Anchor("WSE-3", 2048, 0.1709, "DiT-2B/2"),
        Anchor("WSE-3", 4096, 0.2799, "GPT-J 6B"),
    ),
    releases=(("R1.7.1", 0.6263), ("R1.8", 0.7747), ("R2.0.3", 1.0)),
    narrow_since="R2.3",
    convolution=Sourced(0.1647, "fraction", "assumed", _UNET, "no run of convolutions was published in weight streaming: a factor of four either way", (0.0412, 0.6588)),
    # of 8 and 60 sequences at once, 64 and 550 images: validation/wse/predict/test_grid.py
    kernels=Sourced(0.43, "fraction", "assumed", "rates of GPT-J 6B and DiT-2B/2 on CS-2 over what layouts leave their products: 0.48 to 0.57 and 0.33 to 0.40", "a factor of two either way: no run of convolutions was published", (0.215, 0.86)),
)


@dataclass(frozen=True)
class Setup:
    """Seconds before the first sample, phase by phase, of P parameters; in streaming for one wafer.

    Attributes:
        front_s: reading the model.
        search_s: trying micro-batch sizes, of Llama-7B; left out where the size is given.
        search_power: by which this grows as a power of P.
        codegen_s: making the programs, of Llama-7B.
        codegen_power: by which this grows as a power of P.
        job_s: starting the job.
        prepare_s: preparing the systems.
        weights_s: sending the first weights, whatever their number.
        weights_s_per_parameter: what each adds.
        program_s: programming the wafers.
        prime_s: filling the input queues with tokens.
        prime_other_s: the same with samples of another kind.
        pipelined_job_s: starting the job, in pipelined mode.
        pipelined_program_s: programming the wafer, in pipelined mode.
        checkpoint_s_per_parameter: writing one checkpoint, per parameter.

    >>> from wse import constants
    >>> str(constants.SETUP.front_s)
    '25 s (sourced)'
    """

    front_s: Sourced
    search_s: Sourced
    search_power: Sourced
    codegen_s: Sourced
    codegen_power: Sourced
    job_s: Sourced
    prepare_s: Sourced
    weights_s: Sourced
    weights_s_per_parameter: Sourced
    program_s: Sourced
    prime_s: Sourced
    prime_other_s: Sourced
    pipelined_job_s: Sourced
    pipelined_program_s: Sourced
    checkpoint_s_per_parameter: Sourced


LLAMA_PARAMETERS = 6.738e9  # of the first log: what grows with P is told for so many
_TWO = "geometric mean of the logs; a factor of two either way"
_LESS = "geometric mean of the logs; a factor of one and a half either way"
_THREE = "logs of Llama-7B, ESM-2 35M and DiT-2B: argonne-lcf/user-guides, example-programs.md"
SETUP = Setup(
    front_s=Sourced(25, "s", "sourced", _LOGS, "in weight streaming 16 and 37 s are left of two compilations", interval=(12.5, 50)),
    search_s=Sourced(1641, "s", "calibrated", _LLAMA, "a factor of two either way", interval=(820, 3282)),
    search_power=Sourced(0.1105, "1", "calibrated", _THREE, "two logs, two numbers"),
    codegen_s=Sourced(380, "s", "calibrated", _LLAMA, "a factor of two either way", interval=(190, 760)),
    codegen_power=Sourced(0.4725, "1", "calibrated", _THREE, "two logs, two numbers"),
    job_s=Sourced(82.5, "s", "calibrated", _THREE, "52 and 131 s were seen: a factor of 2.6 either way", interval=(31.7, 214.5)),
    prepare_s=Sourced(35.6, "s", "calibrated", _THREE, _LESS, interval=(23.7, 53.4)),
    weights_s=Sourced(4.4, "s", "calibrated", _THREE, _TWO, interval=(2.2, 8.8)),
    weights_s_per_parameter=Sourced(1.226e-8, "s", "calibrated", _LLAMA, "a factor of two either way", interval=(0.613e-8, 2.452e-8)),
    program_s=Sourced(90.3, "s", "calibrated", _THREE, _LESS, interval=(60.2, 135.5)),
    prime_s=Sourced(4.85, "s", "calibrated", _THREE, "2, 3 and 19 s were seen: a factor of ten either way", interval=(0.485, 48.5)),
    prime_other_s=Sourced(72, "s", "assumed", _THREE, "43 min were seen for images of DiT-2B, seconds for tokens", interval=(2, 2604)),
    pipelined_job_s=Sourced(50, "s", "sourced", _LOGS, "about", interval=(33.3, 75)),
    pipelined_program_s=Sourced(85, "s", "sourced", _LOGS, "or more", interval=(56.7, 127.5)),
    checkpoint_s_per_parameter=Sourced(6e-8, "s", "sourced", "argonne-lcf/user-guides, running-a-model-or-program.md", "60 s per 1e9 parameters; 54 and 82 were seen of GPT-J"),
)
SETUPS = {  # by wafer
    "WSE-1": replace(
        SETUP,
        pipelined_job_s=Sourced(50, "s", "assumed", "as CS-2; no log of a CS-1 tells", interval=(16.7, 150)),
        pipelined_program_s=Sourced(85, "s", "assumed", "as CS-2; no log of a CS-1 tells", interval=(28.3, 255)),
    ),
    "WSE-2": SETUP,
    "WSE-3": replace(
        SETUP,
        weights_s_per_parameter=Sourced(7.014e-10, "s", "calibrated", _THREE, "6 s of DiT-2B; a factor of three either way", interval=(2.3e-10, 2.1e-9)),
        program_s=Sourced(252, "s", "calibrated", _THREE, _LESS, interval=(168, 378)),
    ),
}
# fmt: on


def efficiency(wafer: str, release: str, features: int, kind: str = "dense") -> Sourced:
    """The share of the dense peak for layers of so many features, as `wse.machine.share` has it.

    A release that was not calibrated gets the share of the last one before it (of the first one,
    if it is older), as an assumption with a wider interval.

    Args:
        wafer: the wafer's name.
        release: of the vendor's software, as "R2.0.3" or "2.1".
        features: of the layer.
        kind: of the layer.

    Raises:
        ValueError: a wafer without weight streaming, or a release that is no version.

    >>> str(efficiency("WSE-2", "R1.8.0", 5000))
    '0.230551 fraction (calibrated)'
    >>> str(efficiency("WSE-2", "R1.9", 5000))
    '0.230551 fraction (assumed)'
    """
    return SHARES.of(wafer, release, features, kind)


def at_end(specification: Specification, fast: bool) -> Specification:
    """The specification with every number at the fast or the slow end of its interval.

    >>> from wse import constants
    >>> constants.at_end(constants.SETUP, fast=True).front_s.value
    12.5
    """
    changes = {name: end(number, fast) for name, number in numbers(specification).items()}
    return cast("Specification", replace(cast("Any", specification), **changes))


def end(number: Sourced, fast: bool) -> Sourced:
    """A number at the fast or the slow end of its interval; as it is without one.

    >>> end(Sourced(2.0, "s", "assumed", "here", interval=(1.0, 3.0)), fast=True).value
    1.0
    """
    if number.interval is None:
        return number
    least_is_fast = number.unit in SLOWER_WHEN_LARGER
    return replace(number, value=number.interval[0 if fast == least_is_fast else 1])
