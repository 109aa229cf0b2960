"""What if: an estimate under sliders, redrawn as they move.

Without ipywidgets, or outside a notebook, the same figure stands still.
"""

# Matplotlib, xarray and ipywidgets annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false

from dataclasses import dataclass, field
from functools import lru_cache
from textwrap import fill
from typing import Any

import numpy as np

from wse import _render
from wse._numbers import check_kinds, positive
from wse.machine import catalog
from wse.machine.cluster import Cluster
from wse.models.shapes.workload import Workload
from wse.predict.estimate import Estimate, aimed, as_workload, estimate
from wse.predict.sweep import sweep
from wse.show import controls

SYSTEMS = (1, 2, 4, 8, 16, 32, 64, 128, 192)
BATCHES = tuple(2**i for i in range(15))
DENSITIES = (1.0, 0.5, 0.25, 0.2, 0.1, 0.05)
COLOURS = {"set-up": "#7F7F7F", "training": "#0072B2", "here": "#D55E00"}
SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "days": 86_400.0}


@dataclass(frozen=True)
class Choice:
    """What the sliders say.

    Attributes:
        machine: a name of `wse.catalog`.
        systems: how many.
        batch: samples of a step, on all systems together.
        density: share of the sparsifiable weights that are not zero.
        mode: "streaming" or "pipelined".
    """

    machine: str = "CS-2"
    systems: int = 1
    batch: int = 64
    density: float = 1.0
    mode: str = "streaming"

    def __post_init__(self) -> None:
        check_kinds(self)
        for name in ("systems", "batch"):
            positive(name, getattr(self, name))


@dataclass(frozen=True)
class Explorer:
    """A workload whose estimate can be asked for under any choice.

    Attributes:
        workload: the model.
        samples: of a whole training, every epoch counted.
        choice: where the sliders stand first.
    """

    workload: Workload
    samples: int = 1_000_000
    choice: Choice = field(default_factory=Choice)

    def __post_init__(self) -> None:
        check_kinds(self)
        positive("samples", self.samples, "pass samples=1_000_000")

    def __repr__(self) -> str:
        """One line; in a notebook it is sliders and a figure."""
        return f"Explorer({self.workload.name}, {self.samples:,} samples)"

    def estimate(self, choice: Choice) -> Estimate:
        """The estimate under a choice.

        Raises:
            ValueError: what `wse.estimate` refuses: systems that do not divide the batch, a model
                that does not fit, a mode that the machine does not know.
        """
        return _estimate(self.workload, choice, max(self.samples, choice.batch))

    def figure(self, choice: Choice) -> Any:
        """Where the time goes, and the rate over systems; or why there is no estimate."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(8.6, 3.4))
        left, right = figure.subplots(1, 2)
        # Fixed places: a layout that is computed takes longer than all else.
        figure.subplots_adjust(left=0.11, right=0.98, bottom=0.16, top=0.9, wspace=0.24)
        try:
            found = self.estimate(choice)
        except ValueError as error:
            left.axis("off")
            right.axis("off")
            figure.text(0.02, 0.5, fill(str(error), 90), va="center")
            return figure
        _phases(found, left)
        self._rates(choice, right)
        return figure

    def table(self, choice: Choice) -> str:
        """The totals under a choice, as HTML."""
        try:
            found = self.estimate(choice)
        except ValueError as error:
            return _render.html("no estimate", ("why",), [(str(error),)])
        said = found.summary()
        low, high = said["slowest_samples_per_s"], said["fastest_samples_per_s"]
        rows = [
            ("samples/s", f"{found.samples_per_s:,.4g} ({low:,.3g} to {high:,.3g})"),
            ("time of a step", _time(found.step_s)),
            ("set-up", _time(found.setup_s)),
            (f"training, {found.samples:,} samples", _time(found.train_s)),
            ("bound by", found.binding),
        ]
        head = ("", f"{choice.systems} x {choice.machine}, {choice.mode}")
        return _render.html(self.workload.name, head, rows, [f"for {found.why}", *found.cautions])

    def png(self, choice: Choice) -> bytes:
        """The figure as a picture."""
        return controls.png(self.figure(choice))

    def widget(self) -> Any:
        """Sliders above the figure and the table.

        Raises:
            ImportError: ipywidgets is not installed.
        """
        import ipywidgets as widgets

        first = self.choice
        menus = {"machine": [m.name for m in catalog.MACHINES], "mode": ["streaming", "pipelined"]}
        sliders = {
            "systems": SYSTEMS,
            "batch": sorted({first.batch, *BATCHES}),
            "density": sorted({first.density, *DENSITIES}, reverse=True),
        }
        parts: dict[str, Any] = {
            name: widgets.Dropdown(options=options, value=getattr(first, name), description=name)
            for name, options in menus.items()
        }
        for name, options in sliders.items():
            parts[name] = widgets.SelectionSlider(
                options=[(f"{value:g}", value) for value in options],
                value=getattr(first, name),
                description=name,
            )

        def draw(**chosen: Any) -> tuple[bytes, str]:
            choice = Choice(**chosen)
            return self.png(choice), self.table(choice)

        return controls.panel(parts, draw)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Sliders for a live notebook, and the figure for whatever cannot show them."""
        del include, exclude
        return controls.bundle(
            self.widget, self.png(self.choice), f"Explorer({self.workload.name})"
        )

    def _rates(self, choice: Choice, ax: Any) -> None:
        """Draw the rate over systems at the batch of each system that is chosen."""
        each = max(1, choice.batch // choice.systems)
        found = _rates(self.workload, each, choice.machine, choice.density)
        known = np.isfinite(found)
        counts = np.array(SYSTEMS, float)
        ax.loglog(counts[known], found[known], "o-", ms=4, color=COLOURS["training"])
        if known.any():
            ideal = found[known][0] / counts[known][0] * counts
            ax.loglog(counts, ideal, color=COLOURS["set-up"], lw=0.8, label="perfect")
        if choice.mode == "streaming" and choice.systems in SYSTEMS:
            here = found[SYSTEMS.index(choice.systems)]
            ax.loglog([choice.systems], [here], "o", ms=9, color=COLOURS["here"], label="chosen")
        ax.set(xlabel="systems, weight streaming", ylabel="samples per second")
        ax.set_xticks(SYSTEMS[::2], SYSTEMS[::2])
        ax.minorticks_off()  # of which drawing would take longer than of all else
        ax.legend(frameon=False, fontsize="small")


def explore(
    model: Any,
    params: Any = None,
    batch: Any = None,
    *,
    samples: int = 1_000_000,
    **said: Any,
) -> Explorer:
    """Sliders for machine, mode, systems, batch and density over the estimate of a model.

    Args:
        model: a `wse.workload.Workload`, a name, a `wse.Graph`, or `loss(params, batch)`.
        params: of a loss function: its parameters, or their shapes.
        batch: of a loss function: its batch, or its shapes; else samples of a step.
        samples: of a whole training, every epoch counted.
        **said: of a loss function, as for `wse.trace`: `batch_size`, where its arrays differ along
            the leading axis; `has_aux`, if not every pair that it returns has auxiliary outputs.

    Returns:
        What shows itself in a notebook; `.estimate(choice)`, `.figure(choice)` for the rest.

    Raises:
        ValueError: a batch or samples that are not positive, or what `wse.trace` refuses.

    >>> from wse import workloads
    >>> shown = explore(workloads.get("GPT-J-6B"), batch=120)
    >>> f"{shown.estimate(Choice(systems=2, batch=120)).samples_per_s:.1f}"
    '43.7'
    """
    workload, size, *_ = as_workload(model, params, batch, **said)
    mode = aimed(workload).cluster.mode or "streaming"
    size = 64 if size is None else positive("batch", size, "pass batch=64")
    choice = Choice(batch=size, mode=mode)
    return Explorer(workload, samples, choice)


@lru_cache(maxsize=8)  # the figure and the table ask for the same
def _estimate(workload: Workload, choice: Choice, samples: int) -> Estimate:
    if choice.density != 1:
        workload = workload.sparse(choice.density)
    return estimate(workload, batch=choice.batch, machine=_cluster(choice), samples=samples)


@lru_cache(maxsize=64)
def _rates(workload: Workload, each: int, machine: str, density: float) -> Any:
    """Samples per second on each number of systems, with a batch that grows with them."""
    cluster = _cluster(Choice(machine))
    batches = [each * n for n in SYSTEMS]
    try:
        found = sweep(workload, batches, machine=cluster, systems=SYSTEMS, density=(density,))
    except ValueError:
        return np.full(len(SYSTEMS), np.nan)
    return np.diagonal(found.samples_per_s.values[0, :, :, 0]).copy()


def _phases(found: Estimate, ax: Any) -> None:
    """Draw the seconds of every phase, set-up first."""
    unit, scale = _unit(max(phase.time_s for phase in found.phases))
    names = [phase.name.removeprefix("setup_") for phase in found.phases]
    times = [phase.time_s / scale for phase in found.phases]
    kinds = ["set-up"] * len(found.setup) + ["training"] * len(found.training)
    ax.barh(range(len(names)), times, color=[COLOURS[kind] for kind in kinds])
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set(xlabel=f"time, set-up grey ({unit})", title=found.workload.name)


def _cluster(choice: Choice) -> Cluster:
    machine = next(m for m in catalog.MACHINES if m.name == choice.machine)
    return Cluster(machine, choice.systems, choice.mode)


def _unit(time_s: float) -> tuple[str, float]:
    return [pair for pair in SECONDS.items() if pair[1] <= max(time_s, 1.0)][-1]


def _time(time_s: float) -> str:
    unit, scale = _unit(time_s)
    return f"{time_s / scale:.3g} {unit}"
