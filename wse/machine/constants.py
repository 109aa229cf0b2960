"""Constants of weight streaming and of set-up, each with source, status and interval on its line."""

import re
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from wse._document import nearest
from wse.machine.machine import Sourced, numbers

RELEASE = "R2.0.3"  # the latest that efficiencies were calibrated on
SLOWER_WHEN_LARGER = ("s", "B", "extra")  # units; of others, more is faster
Specification = TypeVar("Specification")

_GPTJ = "GPT-J 6B on two CS-2, sequence 2048, argonne-lcf/user-guides: wse.calibrate"
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
    input_bytes_per_s=Sourced(52.5e9, "B/s", "derived", "60 channels of one edge x 7 Gb/s", "one channel at the slow end, all ports at the fast end", interval=(0.875e9, 150e9)),
    usable_sram=Sourced(0.92, "fraction", "derived", "Cerebras/modelzoo, params_gpt3_xl.yaml", "its batch of 121 on one CS-2 takes 0.914 of the memory if what enters each block waits", interval=(0.75, 0.95)),
    pass_s=Sourced(0.0, "s", "assumed", "all of FC-MNIST's time per step is charged to the step", "at the slow end to 33 passes over 11 layers", interval=(0.0, 0.153e-3)),
    step_s=Sourced(5.05e-3, "s", "calibrated", _FCMNIST, "at the fast end it is all due to passes", interval=(0.0, 5.05e-3)),
    sparse_overhead=Sourced(0.0, "extra", "assumed", "zeros are never sent", interval=(0.0, 0.05)),
    harvest=Sourced(0.0, "fraction", "assumed", "weights are what is streamed: zeros among activations wait on the wafer", interval=(0.0, 1.0)),
)


@dataclass(frozen=True)
class Efficiency:
    """The share of the dense peak that products reach in one band of widths.

    Attributes:
        wafer: the wafer's name.
        release: of the vendor's software.
        features: the least width of the band, a transformer's hidden size.
        share: of the wafer's dense half-precision peak.
    """

    wafer: str
    release: str
    features: int
    share: Sourced


def _band(release: str, features: int, share: float, narrow: float) -> Efficiency:
    if features == 4096:
        value = Sourced(share, "fraction", "calibrated", _GPTJ, "6 % is what other models of this width may miss", (0.94 * share, 1.06 * share))
    else:
        value = Sourced(round(share * narrow, 4), "fraction", "assumed", "k / (k + 1) of k features on each of about 1000 rows of cores, on GPT-J's", "releases move narrow models tenfold", (0.1 * share * narrow, share))
    return Efficiency("WSE-2", release, features, value)


_GPTJ_SHARES = {"R1.7.1": 0.1866, "R1.8": 0.2308, "R2.0.3": 0.2976}
_NARROW = {4096: 1.0, 2048: 0.836, 1024: 0.629, 0: 0.42}
_UNSEEN = Sourced(0.2976, "fraction", "assumed", "as WSE-2 with R2.0.3", "nothing was calibrated on this wafer", (0.1, 0.6))
EFFICIENCIES: tuple[Efficiency, ...] = (  # of each wafer and release, the widest band first
    *(_band(release, features, share, narrow) for release, share in _GPTJ_SHARES.items() for features, narrow in _NARROW.items()),
    Efficiency("WSE-3", RELEASE, 0, _UNSEEN),
)


@dataclass(frozen=True)
class Setup:
    """Seconds before the first sample, phase by phase.

    Attributes:
        search_s: trying micro-batch sizes; left out where the size is given.
        codegen_s: making the programs.
        job_s: starting the job.
        prepare_s: preparing the systems.
        weights_s_per_parameter: sending the first weights, per parameter.
        program_s: programming the wafers.
        prime_s: filling the input queues.
        front_s: reading the model, in pipelined mode.
        pipelined_job_s: starting the job, in pipelined mode.
        pipelined_program_s: programming the wafer, in pipelined mode.
        checkpoint_s_per_parameter: writing one checkpoint, per parameter.
    """

    search_s: Sourced
    codegen_s: Sourced
    job_s: Sourced
    prepare_s: Sourced
    weights_s_per_parameter: Sourced
    program_s: Sourced
    prime_s: Sourced
    front_s: Sourced
    pipelined_job_s: Sourced
    pipelined_program_s: Sourced
    checkpoint_s_per_parameter: Sourced


SETUP = Setup(
    search_s=Sourced(1641, "s", "calibrated", _LLAMA, "another model: a quarter more or less, or none at all", interval=(0, 2051)),
    codegen_s=Sourced(380, "s", "calibrated", _LLAMA, interval=(285, 475)),
    job_s=Sourced(52, "s", "calibrated", _LLAMA, interval=(39, 65)),
    prepare_s=Sourced(47, "s", "calibrated", _LLAMA, interval=(35, 59)),
    weights_s_per_parameter=Sourced(1.291e-8, "s", "calibrated", _LLAMA, "87 s for 6.74e9 parameters", interval=(0.97e-8, 1.61e-8)),
    program_s=Sourced(85, "s", "calibrated", _LLAMA, interval=(64, 106)),
    prime_s=Sourced(19, "s", "calibrated", _LLAMA, "43 min were seen for DiT-2B on CS-3", interval=(14, 2580)),
    front_s=Sourced(25, "s", "sourced", _LOGS),
    pipelined_job_s=Sourced(50, "s", "sourced", _LOGS, "about"),
    pipelined_program_s=Sourced(85, "s", "sourced", _LOGS, "or more"),
    checkpoint_s_per_parameter=Sourced(6e-8, "s", "sourced", "argonne-lcf/user-guides, running-a-model-or-program.md", "60 s per 1e9 parameters"),
)
# fmt: on


def efficiency(wafer: str, release: str, features: int) -> Sourced:
    """The share of the dense peak for layers of so many features.

    A release that was not calibrated gets the share of the last one before it (of the first one,
    if it is older), as an assumption: up to the share of the next one, or to 1.6 times as much,
    which is what two releases once brought.

    Args:
        wafer: the wafer's name.
        release: of the vendor's software, as "R2.0.3" or "2.1".
        features: of the layer.

    Raises:
        ValueError: a wafer without weight streaming, or a release that is no version.

    >>> str(efficiency("WSE-2", "R1.8.0", 5000))
    '0.2308 fraction (calibrated)'
    >>> str(efficiency("WSE-2", "R1.9", 5000))
    '0.2308 fraction (assumed)'
    """
    of_wafer = [row for row in EFFICIENCIES if row.wafer == wafer and features >= row.features]
    if not of_wafer:
        raise ValueError(
            f"wafer is {wafer}; weights are streamed to WSE-2 and WSE-3 only: "
            "pass machine=wse.CS2()"
        )
    asked = version(release)
    band = max(row.features for row in of_wafer)
    by_release = {version(row.release): row for row in of_wafer if row.features == band}
    known = sorted(by_release)
    near = max((v for v in known if v <= asked), default=known[0])
    share = by_release[near].share
    if near == asked or len(known) == 1:
        return share
    later = next((by_release[v].share.value for v in known if v > asked), 1.6 * share.value)
    low, high = share.interval or (share.value, share.value)
    source = f"as {by_release[near].release}; {release} was not calibrated"
    ends = (min(low, later), max(high, later))
    return replace(share, status="assumed", source=source, interval=ends)


def version(release: str) -> tuple[int, ...]:
    """A release as numbers, without zeros at its end.

    Raises:
        ValueError: text that is no version.

    >>> version("R1.8.0"), version("Release_2.10.0")
    ((1, 8), (2, 10))
    """
    found = re.fullmatch(r"(?:r|release_)?(\d+(?:\.\d+)*)", release.strip().lower())
    if not found:
        names = dict.fromkeys(row.release for row in EFFICIENCIES)
        raise ValueError(f"release is {release!r}, which is no version: {nearest(release, names)}")
    numbers = [int(part) for part in found[1].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def at_end(specification: Specification, fast: bool) -> Specification:
    """The specification with every number at the fast or the slow end of its interval."""
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
