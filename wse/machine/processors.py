"""GPUs, TPUs and CPUs beside the wafers: numbers with source and status, and how many work together.

Operations and bandwidths are the vendors'; what a training reaches of them is fitted to published
runs by `wse.predict.roofline`.
"""

import re
from dataclasses import dataclass, replace

from wse._numbers import check_kinds, positive
from wse.machine.machine import Sourced, check_numbers, numbers

UNITS = {
    "flops_per_s": "FLOP/s",
    "memory_bytes": "B",
    "memory_bytes_per_s": "B/s",
    "link_bytes_per_s": "B/s",
    "network_bytes_per_s": "B/s",
    "latency_s": "s",
    "host_bytes_per_s": "B/s",
    "launch_s": "s",
    "setup_s": "s",
    "power_w": "W",
}


@dataclass(frozen=True)
class Processor:
    """One device that trains by itself.

    Attributes:
        name: as "H100".
        wafer: its chip.
        flops_per_s: dense peak of products, in half precision; of a CPU in single precision.
        memory_bytes: of the device.
        memory_bytes_per_s: of that memory.
        link_bytes_per_s: to the other devices of a node, one way.
        network_bytes_per_s: of one device to other nodes, one way.
        latency_s: of one message between devices.
        host_bytes_per_s: on which samples come.
        launch_s: from the host's call of a kernel to the next one's.
        setup_s: before the first step: start, compilation, first batch.
        power_w: drawn by the device, its host left out.
        node: devices that `link_bytes_per_s` joins.

    Raises:
        ValueError: a number that is not positive, or in another unit than its name promises.
    """

    name: str
    wafer: str
    flops_per_s: Sourced
    memory_bytes: Sourced
    memory_bytes_per_s: Sourced
    link_bytes_per_s: Sourced
    network_bytes_per_s: Sourced
    latency_s: Sourced
    host_bytes_per_s: Sourced
    launch_s: Sourced
    setup_s: Sourced
    power_w: Sourced
    node: int = 8

    def __post_init__(self) -> None:
        check_kinds(self)
        check_numbers(self.name, numbers(self), UNITS)
        positive(f"node of {self.name}", self.node, "pass 1 device or more")

    def __repr__(self) -> str:
        """One line: the device, its peak and its memory."""
        return (
            f"Processor({self.name}: {self.flops_per_s.value / 1e12:,g} TFLOP/s, "
            f"{self.memory_bytes.value / 1e9:,.3g} GB)"
        )


@dataclass(frozen=True)
class Processors:
    """Devices of one kind that share a batch: data-parallel, gradients summed by all-reduce.

    Attributes:
        machine: one of them.
        systems: how many.

    Raises:
        ValueError: a number that is not a positive integer.

    >>> Processors(H100, 8)
    8 x H100
    """

    machine: Processor
    systems: int = 1

    def __post_init__(self) -> None:
        positive("systems", self.systems, "pass systems=8")

    def __repr__(self) -> str:
        """As "8 x H100"."""
        return f"{self.systems} x {self.machine.name}"

    @property
    def mode(self) -> str:
        """What `Cluster.mode` is of wafers."""
        return "data-parallel"

    @property
    def sparsity(self) -> None:
        """None: zeros are multiplied like other numbers."""
        return None

    @property
    def reduce_bytes_per_s(self) -> float:
        """Of the slowest link that an all-reduce crosses."""
        one = self.machine
        link = one.link_bytes_per_s if self.systems <= one.node else one.network_bytes_per_s
        return float(link.value)


@dataclass(frozen=True)
class Here:
    """This computer, whose rates `wse.local` measures; its power is not known.

    Attributes:
        name: what it is called where a machine is named.
        wafer: where its numbers come from.
        systems: one.
        mode: how it trains.
    """

    name: str = "here"
    wafer: str = "measured rates"
    systems: int = 1
    mode: str = "one program"

    def __post_init__(self) -> None:
        if self.systems != 1:
            raise ValueError(
                f"systems of {self.name} is {self.systems}; this computer is one: leave it out"
            )

    @property
    def machine(self) -> "Here":
        """Itself, as `Cluster.machine` is a wafer."""
        return self

    @property
    def sparsity(self) -> None:
        """None: zeros are multiplied like other numbers."""
        return None


# A number, its status and its source stand on one line, however long.
# ruff: noqa: E501
# fmt: off
_CALCULON = "calculon-ai/calculon, systems/a100_80g.json"
_KLOCKWOOD = "glennklockwood.com/garden/processors/h100"
_MLPERF = "mlcommons/inference_results_v4.1, H200-SXM-141GBx8_TRT_MaxQ.json"
_H200 = "lzwjava.github.io/nvidia-h200-gpu-specs-en"
_TPU = "docs.cloud.google.com/tpu/docs/v5e"
_TPU4 = "docs.cloud.google.com/tpu/docs/v4"
_NERSC = "docs.nersc.gov/systems/perlmutter/architecture"
_LAUNCH = "devbytes.co.in, reducing-cuda-kernel-launch-overhead: 5 to 20 us"
_FOUNDRY = "mosaicml/llm-foundry, scripts/train/benchmarking: 1600 Gb/s a node of 8"
_STARTED = "start of a framework and compilation of the step"
_TABLE4 = "Table 4 of the OSTI brief: its total is samples over rate"

_MEASURED = "measured on one H100: 1.4 to 15 us of JAX programs, 21 of torch.compile"
_GPU_LAUNCH = Sourced(10e-6, "s", "assumed", _LAUNCH, interval=(1.3e-6, 22e-6), note=_MEASURED)
_GPU_SETUP = Sourced(60, "s", "assumed", _STARTED, interval=(10, 600))
_PCIE4 = Sourced(32e9, "B/s", "sourced", _CALCULON, "mem2, the host's memory over PCIe 4")
_HOP = Sourced(10e-6, "s", "sourced", _CALCULON, "its networks' latency")
_NETWORK = Sourced(25e9, "B/s", "sourced", _FOUNDRY)

A100 = Processor(
    name="A100",
    wafer="GA100",
    flops_per_s=Sourced(312e12, "FLOP/s", "sourced", _CALCULON),
    memory_bytes=Sourced(80e9, "B", "sourced", _CALCULON, "SXM, 80 GB"),
    memory_bytes_per_s=Sourced(2.048e12, "B/s", "sourced", _CALCULON),
    link_bytes_per_s=Sourced(300e9, "B/s", "sourced", _CALCULON, "NVLink, one way"),
    network_bytes_per_s=_NETWORK,
    latency_s=_HOP,
    host_bytes_per_s=_PCIE4,
    launch_s=_GPU_LAUNCH,
    setup_s=_GPU_SETUP,
    power_w=Sourced(400, "W", "sourced", "huggingface.co/hardware/a100", interval=(300, 815), note="the upper end with an eighth of a server of 6.5 kW, recalled"),
)

H100 = Processor(
    name="H100",
    wafer="GH100",
    flops_per_s=Sourced(989.4e12, "FLOP/s", "sourced", _KLOCKWOOD, "SXM5, dense"),
    memory_bytes=Sourced(80e9, "B", "sourced", _KLOCKWOOD),
    memory_bytes_per_s=Sourced(3.35e12, "B/s", "sourced", _KLOCKWOOD),
    link_bytes_per_s=Sourced(450e9, "B/s", "derived", _KLOCKWOOD, "half of 900 GB/s both ways"),
    network_bytes_per_s=Sourced(50e9, "B/s", "sourced", "mlcommons/inference_results_v3.1, XE9680_H100_SXM_80GBx8: 8 x 400 Gb/s"),
    latency_s=_HOP,
    host_bytes_per_s=Sourced(64e9, "B/s", "derived", _KLOCKWOOD, "half of 128 GB/s both ways"),
    launch_s=_GPU_LAUNCH,
    setup_s=_GPU_SETUP,
    power_w=Sourced(700, "W", "sourced", _KLOCKWOOD, interval=(500, 1275), note="the upper end with an eighth of a server of 10.2 kW, recalled"),
)

H200 = replace(
    H100,
    name="H200",
    wafer="GH100 with HBM3e",
    flops_per_s=Sourced(989.4e12, "FLOP/s", "sourced", _KLOCKWOOD, "as H100"),
    memory_bytes=Sourced(141e9, "B", "sourced", _MLPERF),
    memory_bytes_per_s=Sourced(4.8e12, "B/s", "sourced", _H200),
    link_bytes_per_s=Sourced(450e9, "B/s", "derived", _MLPERF, "half of 900 GB/s both ways"),
    network_bytes_per_s=Sourced(50e9, "B/s", "sourced", _MLPERF, "400 Gb/s a device"),
    power_w=Sourced(700, "W", "sourced", _MLPERF, interval=(500, 1275), note="as H100"),
)

TPU_V4 = Processor(
    name="TPU v4",
    wafer="TPU v4",
    flops_per_s=Sourced(275e12, "FLOP/s", "sourced", _TPU4),
    memory_bytes=Sourced(32 * 2**30, "B", "sourced", _TPU4),
    memory_bytes_per_s=Sourced(1.2e12, "B/s", "sourced", _TPU4),
    link_bytes_per_s=Sourced(134e9, "B/s", "derived", _TPU4, "all-reduce of a pod, 1.1 PB/s, by 4096 chips and both ways"),
    network_bytes_per_s=Sourced(134e9, "B/s", "derived", _TPU4, "one network to 4096 chips"),
    latency_s=Sourced(10e-6, "s", "assumed", "as a GPU's"),
    host_bytes_per_s=Sourced(16e9, "B/s", "assumed", "PCIe 3"),
    launch_s=Sourced(2e-6, "s", "assumed", "a step is one program", interval=(0.5e-6, 10e-6)),
    setup_s=_GPU_SETUP,
    power_w=Sourced(170, "W", "sourced", _TPU4, "measured mean", interval=(90, 192)),
    node=4096,
)

TPU_V5E = Processor(
    name="TPU v5e",
    wafer="TPU v5e",
    flops_per_s=Sourced(197e12, "FLOP/s", "sourced", _TPU),
    memory_bytes=Sourced(16e9, "B", "sourced", _TPU),
    memory_bytes_per_s=Sourced(819e9, "B/s", "sourced", _TPU),
    link_bytes_per_s=Sourced(100e9, "B/s", "derived", _TPU, "all-reduce of a pod, 51.2 TB/s, by 256 chips and both ways"),
    network_bytes_per_s=Sourced(3.1e9, "B/s", "derived", _TPU, "6.4 Tb/s of a pod, by 256 chips"),
    latency_s=Sourced(10e-6, "s", "assumed", "as a GPU's"),
    host_bytes_per_s=Sourced(16e9, "B/s", "assumed", "PCIe 3"),
    launch_s=Sourced(2e-6, "s", "assumed", "a step is one program", interval=(0.5e-6, 10e-6)),
    setup_s=_GPU_SETUP,
    power_w=Sourced(170, "W", "assumed", "as TPU v4; none was published", interval=(90, 250)),
    node=256,
)

CPU_NODE = Processor(
    name="CPU node",
    wafer="2 x EPYC 7763",
    flops_per_s=Sourced(10e12, "FLOP/s", "derived", _NERSC, "15.4 PFLOP/s in double precision, by 3072 nodes, twice that in single"),
    memory_bytes=Sourced(512e9, "B", "sourced", _NERSC, "1536 TB by 3072 nodes"),
    memory_bytes_per_s=Sourced(409.6e9, "B/s", "assumed", "recalled: 2 x 8 channels of 25.6 GB/s"),
    link_bytes_per_s=Sourced(25e9, "B/s", "assumed", "recalled: one Slingshot 11 of 200 Gb/s"),
    network_bytes_per_s=Sourced(25e9, "B/s", "assumed", "recalled: one Slingshot 11 of 200 Gb/s"),
    latency_s=Sourced(2e-6, "s", "assumed", "a message of MPI"),
    host_bytes_per_s=Sourced(409.6e9, "B/s", "assumed", "samples lie in its memory"),
    launch_s=Sourced(5e-6, "s", "assumed", "threads start and meet", interval=(1e-6, 20e-6)),
    setup_s=Sourced(10, "s", "assumed", _STARTED, interval=(1, 60)),
    power_w=Sourced(700, "W", "assumed", "recalled: 2 x 280 W and memory", interval=(300, 900)),
    node=1,
)

CPU_TABLE4 = Processor(
    name="Table 4 CPU",
    wafer="4 cores",
    flops_per_s=Sourced(384e9, "FLOP/s", "assumed", "4 cores of 32 operations a cycle at 3 GHz; the brief says 4 cores"),
    memory_bytes=Sourced(64e9, "B", "assumed", "the brief does not say"),
    memory_bytes_per_s=Sourced(40e9, "B/s", "assumed", "two channels"),
    link_bytes_per_s=Sourced(1.25e9, "B/s", "assumed", "10 Gb/s"),
    network_bytes_per_s=Sourced(1.25e9, "B/s", "assumed", "10 Gb/s"),
    latency_s=Sourced(50e-6, "s", "assumed", "Ethernet"),
    host_bytes_per_s=Sourced(40e9, "B/s", "assumed", "samples lie in its memory"),
    launch_s=Sourced(1e-9, "s", "assumed", "contained in what is fitted to each sample"),
    setup_s=Sourced(0.5, "s", "derived", _TABLE4, interval=(0.1, 1)),
    power_w=Sourced(100, "W", "assumed", "a desktop computer", interval=(50, 150)),
    node=1,
)
# fmt: on

PROCESSORS = (A100, H100, H200, TPU_V4, TPU_V5E, CPU_NODE, CPU_TABLE4)


def named(name: str) -> Processors | None:
    """The devices that a name means, as "h100" or "8 x h100"; None: none of these.

    >>> named("8 x H100").systems
    8
    """
    count, plain = counted(name)
    found = {_plain(one.name): one for one in PROCESSORS}.get(_plain(plain))
    return None if found is None else Processors(found, count)


def chosen(machine: object) -> Processors | Here | None:
    """The devices that an argument `machine` means; None: something else, as a wafer.

    >>> chosen("h100"), chosen("here"), chosen("cs2")
    (1 x H100, Here(name='here', wafer='measured rates', systems=1, mode='one program'), None)
    """
    if isinstance(machine, Processor):
        return Processors(machine)
    if isinstance(machine, str):
        return Here() if machine.strip().lower() == Here.name else named(machine)
    return machine if isinstance(machine, Processors | Here) else None


def counted(name: str) -> tuple[int, str]:
    """How many, and of what: "4 x cs2" is four.

    >>> counted("4 x cs2"), counted("8xH100"), counted("cs2")
    ((4, 'cs2'), (8, 'H100'), (1, 'cs2'))
    """
    found = re.fullmatch(r"\s*(\d{1,9})\s*[xX×*]\s*(.+)", name)
    return (int(found[1]), found[2]) if found else (1, name)


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
