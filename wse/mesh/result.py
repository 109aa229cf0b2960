"""What a run of the mesh left behind."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from wse._render import few, html
from wse.mesh.code import Port
from wse.mesh.program import Program


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        program: what ran.
        cycles: from the start to the end of the last turn of an instruction.
        memory: words of every element, over (row, column, word).
        busy: turns that each element did, over (row, column).
        traffic: wavelets that each router sent, over (row, column, output port).

    >>> import numpy as np
    >>> from wse import mesh
    >>> run = mesh.simulate(mesh.reduce(mesh.Grid(columns=4, rows=1), np.ones((1, 4, 2)), "chain"))
    >>> run.cycles, run.memory[0, 0, :2].tolist(), run.busy.tolist()
    (20, [4.0, 4.0], [[2, 2, 2, 2]])
    """

    program: Program
    cycles: int
    memory: np.ndarray
    busy: np.ndarray
    traffic: np.ndarray

    def __repr__(self) -> str:
        rows, columns = self.busy.shape
        return f"Run({self.cycles} cycles on {columns} x {rows} elements, {self.hops} hops)"

    def _repr_html_(self) -> str:
        """A table of the elements under that line, for a notebook."""
        rows = [
            (f"{x}, {y}", str(turns), f"{100 * self.busy_share[y, x]:.0f}", str(sent))
            for y, turns_of in enumerate(self.busy.tolist())
            for x, turns in enumerate(turns_of)
            for sent in [int(self.traffic[y, x, : Port.RAMP].sum())]
        ]
        header = ("column, row", "turns", "of the cycles (%)", "wavelets sent on")
        return html(repr(self), header, few(rows))

    @property
    def busy_share(self) -> np.ndarray:
        """The share of cycles in which each element worked, over (row, column)."""
        return self.busy / max(self.cycles, 1)

    @property
    def hops(self) -> int:
        """Links crossed by all wavelets: the energy of the collective's model."""
        return int(self.traffic[..., : Port.RAMP].sum())

    def figure(self, ax: Any = None) -> Any:
        """Draw which elements and links were busy.

        Squares are elements, coloured by the share of cycles in which they worked. Lines are links,
        as wide as the share of cycles in which they carried a wavelet, either way.

        Args:
            ax: where to draw; None: on a new figure.

        Returns:
            The axes.
        """
        from matplotlib.collections import LineCollection
        from matplotlib.figure import Figure

        if ax is None:
            ax = Figure(figsize=(6, 4.5), layout="constrained").subplots()
        rows, columns = self.busy.shape
        image = ax.imshow(100 * self.busy_share, cmap="cividis", vmin=0)
        ax.figure.colorbar(image, ax=ax, label="cycles in which the element worked (%)")
        lines, widths = self._links()
        busiest = 100 * max(widths, default=0)
        ax.add_collection(
            LineCollection(
                lines, linewidths=[0.5 + 8 * w for w in widths], colors="#D55E00", alpha=0.8
            )
        )
        ax.set(
            xlabel="column",
            ylabel="row",
            title=f"{self.cycles} cycles; the busiest link works in {busiest:.0f} % of them",
            xlim=(-0.5, columns - 0.5),
            ylim=(rows - 0.5, -0.5),
        )
        return ax

    def _links(self) -> tuple[list[Any], list[float]]:
        """Both ends of every link in use, and the share of cycles in which it is."""
        lines: list[Any] = []
        widths: list[float] = []
        for y, x, port in np.argwhere(self.traffic[..., : Port.RAMP] > 0).tolist():
            dx, dy = Port(port).step
            lines.append([(x, y), (x + dx, y + dy)])
            widths.append(float(self.traffic[y, x, port]) / max(self.cycles, 1))
        return lines, widths
