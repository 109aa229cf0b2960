"""Kernels that users wrote for the wafer by hand, and the bound that each ran under.

A core does at most one single-precision multiply-add per cycle, so on n cores at f Hz

    FLOP/s <= 2 n f     and, where each multiply-add reads one new number of 4 bytes,     B/s <= 4 n f

Half-precision work has the half-precision peak as its bound.
"""

from dataclasses import dataclass

from wse.machine.machine import Sourced


@dataclass(frozen=True)
class Kernel:
    """One published kernel.

    Attributes:
        name: what tables call it.
        cores: that took part.
        clock_hz: of the cores.
        per_cycle: what one core does at most in one cycle, in FLOP or B.
        published: what was measured, in FLOP/s or B/s.
    """

    name: str
    cores: Sourced
    clock_hz: Sourced
    per_cycle: Sourced
    published: Sourced

    @property
    def bound(self) -> float:
        """Cores x clock x what one does per cycle; in the unit of `published`."""
        return self.cores.value * self.clock_hz.value * self.per_cycle.value

    @property
    def share(self) -> float:
        """Published over bound.

        >>> [f"{kernel.share:.2f}" for kernel in KERNELS]
        ['0.76', '0.35', '0.40']
        """
        return self.published.value / self.bound


# ruff: noqa: E501
# fmt: off
_CLOCK = Sourced(850e6, "Hz", "sourced", "the clock of the vendor's tools")
KERNELS: tuple[Kernel, ...] = (
    Kernel(
        "TLR-MVM on 48 CS-2",
        Sourced(35_784_000, "count", "sourced", "SC23, gb109"),
        _CLOCK,
        Sourced(4, "B/cycle", "derived", "one single-precision multiply-add, which reads one number of a matrix"),
        Sourced(92.58e15, "B/s", "sourced", "Zhang, Cerebras, 12 Nov 2023"),
    ),
    Kernel(
        "BiCGStab, 7-point, on CS-1",
        Sourced(600 * 595, "count", "sourced", "arXiv 2010.03660", "one column of 1536 points to a core"),
        Sourced(850e6, "Hz", "assumed", "the clock of WSE-2's tools"),
        Sourced(8, "FLOP/cycle", "assumed", "half precision, as WSE-2"),
        Sourced(0.86e15, "FLOP/s", "sourced", "arXiv 2010.03660", "about a third of peak, say its authors"),
    ),
    Kernel(
        "25-point stencil on CS-2",
        Sourced(745_500, "count", "assumed", "the grid that TLR-MVM used on each system"),
        _CLOCK,
        Sourced(2, "FLOP/cycle", "derived", "one single-precision multiply-add"),
        Sourced(503e12, "FLOP/s", "sourced", "arXiv 2204.03775"),
    ),
)


@dataclass(frozen=True)
class Product:
    """A product of matrices written for the wafer: cycles on the busiest core.

        cycles = fixed + per_flop x FLOP on that core

    Attributes:
        name: of the storage format.
        fixed: cycles that do not depend on the size.
        per_flop: cycles per FLOP.
    """

    name: str
    fixed: Sourced
    per_flop: Sourced

    def cycles(self, flops_per_core: float) -> float:
        """Cycles for so many FLOP on the busiest core.

        >>> round(PRODUCTS["COO"].cycles(10_000.0))
        13235
        """
        return self.fixed.value + self.per_flop.value * flops_per_core


# fmt: off
_SPMM = "least squares on pr0f3ss/SpMM_Cerebras, benchmarks"
PRODUCTS: dict[str, Product] = {  # of a matrix with zeros and a dense one, on WSE-2
    "GEMM": Product(
        "GEMM, zeros multiplied",
        Sourced(0.0, "cycle", "calibrated", _SPMM, "mean error 2.7 % in sample, 3.2 % left out, 6 points"),
        Sourced(1.1818, "cycle/FLOP", "calibrated", _SPMM),
    ),
    "COO": Product(
        "COO, zeros left out",
        Sourced(7414.65, "cycle", "calibrated", _SPMM, "mean error 3.5 % in sample, 3.7 % left out, 24 points"),
        Sourced(0.582, "cycle/FLOP", "calibrated", _SPMM),
    ),
}
# fmt: on
