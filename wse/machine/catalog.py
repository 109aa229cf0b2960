"""The machines and constants that are known, each number with its source and status on its line.

Sources that are cited by title: Hock, ATPESC 2020; Freund, Cambrian-AI 2021; Zhang, Cerebras,
12 Nov 2023; the OSTI brief.
"""

from dataclasses import dataclass, replace

from wse.machine.installation import Installation, Store, Tree
from wse.machine.machine import Machine, Sourced

_HOCK = "Hock, ATPESC 2020"
_ZHANG = "Zhang, Cerebras, 12 Nov 2023"
_FREUND = "Freund, Cambrian-AI 2021"
_TOM = "tomshardware.com, CS-3"
_SC24 = "argonne-lcf/AIaccelerators-SC24-tutorial, Cerebras README"
_ALCF = "argonne-lcf/ai-testbed-userdocs, System-Overview.md"
_PSC_LOG = "pscedu/psc-wpdocs, neocortex/running-neo-monitor.md"
_PSC_BUILD = "pscedu/psc-wpdocs, neocortex/software-compile.md"
_CSL_DOCS = "argonne-lcf/user-guides, docs/ai-testbed/cerebras/csl.md"
_CHANNEL = "Cerebras/csl-examples, benchmarks/bandwidth-test/run.py"
_HC34 = "summary of the vendor's Hot Chips 34 talk, besthub.dev"
_SDK = "Cerebras SDK technical white paper"
_RECALLED = "recalled, not read in a source"
_KIB = "48 KB taken as 8 banks of 6 KiB"
_TABLE4 = "least squares on Table 4 of the OSTI brief: wse.calibrate"

# A number, its status and its source stand on one line, however long.
# ruff: noqa: E501
# fmt: off
CS1 = Machine(
    name="CS-1",
    wafer="WSE-1",
    cores=Sourced(400_000, "count", "sourced", _HOCK),
    fabric_columns=Sourced(633, "count", "sourced", "cerebras.net/ispd-2020-contest"),
    fabric_rows=Sourced(633, "count", "sourced", "cerebras.net/ispd-2020-contest"),
    sram_bytes=Sourced(18e9, "B", "sourced", _HOCK),
    sram_per_core_bytes=Sourced(49_152, "B", "assumed", _RECALLED, _KIB),
    memory_bytes_per_s=Sourced(9e15, "B/s", "sourced", _HOCK),
    fabric_bits_per_s=Sourced(100e15, "bit/s", "sourced", _HOCK),
    host_bits_per_s=Sourced(1.2e12, "bit/s", "sourced", _HOCK, "12 ports of 100 Gb/s"),
    host_channel_bits_per_s=Sourced(7e9, "bit/s", "assumed", _CHANNEL, "read for CS-2"),
    clock_hz=Sourced(0.85e9, "Hz", "assumed", "the clock of WSE-2's tools", "no clock of WSE-1 was read"),
    fp16_flops_per_cycle=Sourced(8, "FLOP/cycle", "assumed", "as WSE-2", "gives 2.7 PFLOP/s; about 2.5 is implied by BiCGStab on CS-1"),
    power_w=Sourced(20e3, "W", "sourced", _HOCK),
)

CS2 = Machine(
    name="CS-2",
    wafer="WSE-2",
    cores=Sourced(850_000, "count", "sourced", _ZHANG),
    fabric_columns=Sourced(757, "count", "sourced", _PSC_BUILD, "the grid that the SDK addresses"),
    fabric_rows=Sourced(996, "count", "sourced", _PSC_BUILD, "the grid that the SDK addresses"),
    sram_bytes=Sourced(40e9, "B", "sourced", _ZHANG),
    sram_per_core_bytes=Sourced(49_152, "B", "sourced", _ALCF, _KIB),
    memory_bytes_per_s=Sourced(20e15, "B/s", "sourced", _ZHANG),
    fabric_bits_per_s=Sourced(220e15, "bit/s", "sourced", _ZHANG),
    host_bits_per_s=Sourced(1.2e12, "bit/s", "sourced", "pscedu/psc-wpdocs, system-specifications.md", "12 ports of 100 Gb/s"),
    host_channel_bits_per_s=Sourced(7e9, "bit/s", "sourced", _CHANNEL),
    clock_hz=Sourced(850e6, "Hz", "sourced", _PSC_LOG, "the clock of the vendor's tools"),
    other_clock_hz=Sourced(1.1e9, "Hz", "sourced", _HC34, "the clock of the talk"),
    fp16_flops_per_cycle=Sourced(8, "FLOP/cycle", "sourced", _SDK),
    power_w=Sourced(23e3, "W", "assumed", _RECALLED),
)

CS3 = Machine(
    name="CS-3",
    wafer="WSE-3",
    cores=Sourced(900_000, "count", "sourced", _SC24),
    fabric_columns=Sourced(762, "count", "sourced", _CSL_DOCS, "the grid that the SDK addresses"),
    fabric_rows=Sourced(1_172, "count", "sourced", _CSL_DOCS, "the grid that the SDK addresses"),
    sram_bytes=Sourced(44e9, "B", "sourced", _SC24),
    sram_per_core_bytes=Sourced(49_152, "B", "sourced", _ALCF, _KIB),
    memory_bytes_per_s=Sourced(21e15, "B/s", "sourced", _SC24),
    fabric_bits_per_s=Sourced(214e15, "bit/s", "sourced", _SC24),
    host_bits_per_s=Sourced(1.2e12, "bit/s", "assumed", "as CS-2"),
    host_channel_bits_per_s=Sourced(7e9, "bit/s", "assumed", _CHANNEL, "read for CS-2"),
    clock_hz=Sourced(875e6, "Hz", "sourced", "Elia-Belli/stencil-cerebras, src/wse/star2d/run.py", "a user's code"),
    fp16_flops_per_cycle=Sourced(16, "FLOP/cycle", "sourced", "nextplatform.com, 14 March 2024"),
    power_w=Sourced(23e3, "W", "sourced", "awesomeagents.ai, cerebras-wse-3"),
)

MACHINES: tuple[Machine, ...] = (CS1, CS2, CS3)


_SEND = Sourced(150e9, "B/s", "assumed", "as fast as one system's network ports, 12 x 100 Gb/s", interval=(75e9, 150e9))
_UPDATE = Sourced(37.5e9, "params/s", "assumed", "as fast as 4-byte gradients arrive at 150 GB/s", interval=(10e9, 100e9))
_STATE = Sourced(12, "B", "derived", "32-bit weight and Adam's two moments; gives 'over 2 TB' for 175e9 parameters (Freund, Cambrian-AI 2021)", interval=(8, 20))


def _store(terabytes: int | float, source: str) -> Store:
    capacity = Sourced(terabytes * 1e12, "B", "sourced", source)
    return Store(f"MemoryX {terabytes:g} TB", capacity, _SEND, _UPDATE, _STATE)


STORES: dict[str, tuple[Store, ...]] = {  # by wafer, the smallest first
    "WSE-1": (),  # weights were not streamed to it
    "WSE-2": (_store(4, "cerebras.net/glossary/memoryx"), _store(2400, _FREUND)),
    "WSE-3": (_store(1.5, _TOM), _store(12, _TOM), _store(1200, _TOM)),
}

_LEVEL = Sourced(10e-6, "s", "assumed", "a switch and its cables; 200 us is one TCP transaction in Cerebras/csl-examples", interval=(1e-6, 200e-6))
TREES: dict[str, Tree] = {
    "WSE-2": Tree("SwarmX", _LEVEL, Sourced(192, "count", "sourced", _FREUND, "the plan of 2021")),
    "WSE-3": Tree("SwarmX for CS-3", _LEVEL, Sourced(2048, "count", "sourced", _TOM)),
}

CG1 = Installation(
    name="CG-1",
    machine=CS2,
    systems=Sourced(64, "count", "sourced", _ZHANG),
    cores=Sourced(54e6, "count", "sourced", _ZHANG, "64 x 850,000 rounded"),
    fp16_flops_per_s=Sourced(4e18, "FLOP/s", "sourced", _ZHANG, "62.5 PFLOP/s a system: ten times the dense peak, so zeros are counted"),
    capacity_bytes=Sourced(82e12, "B", "sourced", _ZHANG),
    internal_bits_per_s=Sourced(388e12, "bit/s", "sourced", _ZHANG),
    host_cores=Sourced(72_704, "count", "sourced", _ZHANG),
)
INSTALLATIONS: tuple[Installation, ...] = (CG1,)
CG1_STORE = replace(STORES["WSE-2"][0], name="MemoryX of CG-1", capacity_bytes=CG1.capacity_bytes)


@dataclass(frozen=True)
class Pipelined:
    """The constants of the layer-pipelined model of `wse.predict.resident`, for one wafer.

    Attributes:
        wafer: the one that they hold for.
        input_s_per_sample: a, seconds to bring one sample of `values` numbers in.
        least_input_s: seconds below which no sample's way in is assumed to get.
        transmission_s_per_value: of the vendor's own estimate; the fastest way in.
        unit_s_per_sample: b, seconds per unit of the widest hidden layer and sample.
        product_share: of the peak that products of transformers reach.
        placed: cycles of a net of convolutions over those of its placement by `wse.layout`.
        convolution_share: of the peak that convolutions reach which are not placed.
        setup_rest_s: seconds of set-up that no model avoids, beside those that logs name.
        setup_s_per_mparam_1p5: c, seconds of set-up per (million parameters)^1.5.
        most_parameters: of the nets that c was calibrated on.
        beyond_power: by which placing grows with parameters beyond these.
        values: numbers per sample (inputs and outputs) of the nets calibrated on.
        bytes_per_value: bytes of one such number on the host's link.
        bytes_per_weight: the fewest bytes in which a weight stays resident.
        cycles_per_unit: of the vendor's own estimate of a dense chain, per unit of its widest layer.
        measured_over_promised: rate of real runs over that of the vendor's own estimate.

    >>> from wse import catalog
    >>> str(catalog.PIPELINED.product_share)
    '0.2979 fraction (calibrated)'
    """

    wafer: str
    input_s_per_sample: Sourced
    least_input_s: Sourced
    transmission_s_per_value: Sourced
    unit_s_per_sample: Sourced
    product_share: Sourced
    placed: Sourced
    convolution_share: Sourced
    setup_rest_s: Sourced
    setup_s_per_mparam_1p5: Sourced
    most_parameters: Sourced
    beyond_power: Sourced
    values: Sourced
    bytes_per_value: Sourced
    bytes_per_weight: Sourced
    cycles_per_unit: Sourced
    measured_over_promised: Sourced


_BERT = "BERT-large of 128 tokens, pipelined with R1.8, 6493 samples/s: argonne-lcf/ai-testbed-userdocs"
_PROMISED = "the vendor's own estimates of FC-MNIST and U-Net: argonne-lcf/ai-testbed-userdocs, " + _PSC_LOG
_SITES = "five runs of FC-MNIST at two sites differ by a factor 3.3 (standard deviation of ln 0.45)"
PIPELINED = Pipelined(
    wafer="WSE-2",
    input_s_per_sample=Sourced(4.5815e-6, "s", "calibrated", _TABLE4, _SITES, (2.29e-6, 9.16e-6)),
    least_input_s=Sourced(2.087e-6, "s", "assumed", "the fastest run published, 479,189 samples/s", "a factor of two either way", (1.04e-6, 4.17e-6)),
    transmission_s_per_value=Sourced(5.0e-10, "s", "calibrated", _PROMISED, "0.42 and 0.44 cycles per number", (2.5e-10, 1.0e-9)),
    unit_s_per_sample=Sourced(2.1026e-9, "s", "calibrated", _TABLE4, "1.79 cycles at 850 MHz", (1.05e-9, 4.2e-9)),
    product_share=Sourced(0.2979, "fraction", "calibrated", _BERT, "one run: a factor of two either way", (0.149, 0.596)),
    placed=Sourced(1.0, "extra", "assumed", "the kernel model of the ISPD 2020 contest as it is; the vendor's estimate of U-Net is 1.19 of it, on 62 % of the wafer", "no run of convolutions was published: a factor of two either way", (0.5, 2.0)),
    convolution_share=Sourced(0.1647, "fraction", "assumed", "the vendor's own estimate of U-Net, 49,168 cycles: argonne-lcf/ai-testbed-userdocs", "no run of convolutions was published: a factor of two either way", (0.0824, 0.329)),
    setup_rest_s=Sourced(12.94, "s", "calibrated", _TABLE4, "what 25 s of reading, 50 of the job and 85 of programming leave of the fitted floor, 172.94", (0.0, 25.9)),
    setup_s_per_mparam_1p5=Sourced(3.5665, "s", "calibrated", _TABLE4, "the exponent 1.5 was chosen on the same four points", (2.38, 5.35)),
    most_parameters=Sourced(31_428_610, "count", "sourced", "OSTI brief", "the widest net of Table 4"),
    beyond_power=Sourced(1.0, "extra", "assumed", "no larger net's set-up was published in this mode", "from the root of the parameters to the law below", (0.5, 1.5)),
    values=Sourced(1002, "count", "derived", "1000 inputs and 2 outputs give the brief's parameter counts"),
    bytes_per_value=Sourced(4, "B", "assumed", "32-bit numbers on the host's link"),
    bytes_per_weight=Sourced(2, "B", "assumed", "half precision, the smallest that the wafer trains in"),
    cycles_per_unit=Sourced(1.11, "extra", "calibrated", _PROMISED, "464 and 669 cycles for the 500 units of FC-MNIST", (0.74, 1.67)),
    measured_over_promised=Sourced(0.18, "fraction", "calibrated", "five runs of FC-MNIST over the vendor's estimate of the same site", "for nets bound by their input", (0.08, 0.38)),
)
_CS1 = "FC-MNIST on a CS-1 of Neocortex, 120,833 samples/s: pscedu/psc-wpdocs, reference-compilation-neocortex.md"
_AS_WSE2 = "as WSE-2; of WSE-1 no run tells"
RESIDENT = {  # by wafer; of WSE-1 one run is known, so that its ends lie further apart
    "WSE-2": PIPELINED,
    "WSE-1": replace(
        PIPELINED,
        wafer="WSE-1",
        input_s_per_sample=Sourced(9.1172e-6, "s", "calibrated", _CS1, "what the units of WSE-2 leave of 8.276 us for 794 numbers; " + _SITES, (3.65e-6, 2.28e-5)),
        unit_s_per_sample=Sourced(2.1026e-9, "s", "assumed", _AS_WSE2, "a factor of three either way", (7.0e-10, 6.3e-9)),
        product_share=Sourced(0.2979, "fraction", "assumed", _AS_WSE2, "a factor of three either way", (0.0993, 0.894)),
        placed=Sourced(1.0, "extra", "assumed", _AS_WSE2, "a factor of three either way", (0.333, 3.0)),
        convolution_share=Sourced(0.1647, "fraction", "assumed", _AS_WSE2, "a factor of three either way", (0.0549, 0.494)),
        setup_rest_s=Sourced(12.94, "s", "assumed", _AS_WSE2, "", (0.0, 51.8)),
        setup_s_per_mparam_1p5=Sourced(3.5665, "s", "assumed", _AS_WSE2, "", (1.78, 7.13)),
        measured_over_promised=Sourced(0.079, "fraction", "calibrated", _CS1, "over 555 cycles, by the estimate of WSE-2's runs", (0.03, 0.2)),
    ),
}
