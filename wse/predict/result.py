"""What an estimate says: seconds by phase, bounds, words, tables, labelled data."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from wse import _render
from wse.machine.catalog import PIPELINED
from wse.machine.cluster import Cluster
from wse.machine.constants import SETUP
from wse.models.shapes.workload import Workload
from wse.predict import grid
from wse.predict.calibrate import errors_percent
from wse.predict.packing import Promise
from wse.predict.phase import Phase
from wse.predict.step import PARTS, Step

if TYPE_CHECKING:
    import xarray as xr

HEADER = ("phase", "time", "at least", "at most", "resource", "status")
NARROW = ("phase", "time", "between", "resource, status")


@dataclass(frozen=True)
class Estimate:
    """Seconds of a training run, phase by phase. Phases add up to `total_s`, as do their ends.

    Attributes:
        workload: the model.
        cluster: the machine, how many, and the mode: a `wse.Cluster`; of GPUs, TPUs and CPUs
            `Processors`; of this computer `Here`.
        samples: samples processed, every epoch counted.
        batch: samples per step; in pipelined mode recorded, and no part of the calibrated rate.
        phases: the parts, set-up first, in the order in which they are spent.
        training_s: seconds of training: of the busiest resource alone, with the mode's overlaps,
            and one after another.
        cautions: what lies outside the range calibrated on; empty inside it.
        release: of the vendor's software.
        why: who or what chose machine, mode and release.
        step: one step, layer by layer; None in pipelined mode.
        placement: the vendor's own estimate of the placement; None in weight streaming.

    >>> import wse
    >>> wse.estimate(wse.workload.dense(width=64), machine="cs2").longest
    'setup_program'
    """

    workload: Workload
    cluster: Any  # of three types, of which callers know theirs by what they passed
    samples: int
    batch: int
    phases: tuple[Phase, ...]
    training_s: tuple[float, float, float]
    cautions: tuple[str, ...] = ()
    release: str = ""
    why: str = ""
    step: Step | None = None
    placement: Promise | None = None

    @property
    def setup_interval_s(self) -> tuple[float, float]:
        """The least and the most seconds of set-up: sums of those of its phases."""
        return _together(self.setup)

    @property
    def training_interval_s(self) -> tuple[float, float]:
        """The same of training, with the mode's overlaps."""
        return _together(self.training)

    @property
    def interval_s(self) -> tuple[float, float]:
        """The same of all."""
        return _together(self.phases)

    @property
    def setup_s(self) -> float:
        """Seconds before the first sample: compiling, placing, programming."""
        return sum(phase.time_s for phase in self.setup)

    @property
    def train_s(self) -> float:
        """Seconds of training, with the overlaps of the mode: the sum of its phases."""
        return sum(phase.time_s for phase in self.training)

    @property
    def total_s(self) -> float:
        """Set-up and training, in seconds."""
        return self.setup_s + self.train_s

    @property
    def lower_s(self) -> float:
        """Set-up and the busiest training resource alone: all else overlaps with it."""
        return self.setup_s + self.training_s[0]

    @property
    def upper_s(self) -> float:
        """Set-up and every part of training, one after another."""
        return self.setup_s + self.training_s[2]

    @property
    def samples_per_s(self) -> float:
        """Samples per second of training; set-up is left out, as in the published table."""
        return self.samples / self.train_s

    @property
    def step_s(self) -> float:
        """Seconds of one step."""
        return self.batch / self.samples_per_s

    @property
    def checkpoint_s(self) -> float:
        """Seconds to write one checkpoint of a wafer; in no total; NaN of other machines."""
        if not isinstance(self.cluster, Cluster):
            return float("nan")
        return SETUP.checkpoint_s_per_parameter.value * self.workload.parameters

    @property
    def binding(self) -> str:
        """The longest phase of training: what its steps or samples wait for."""
        return max(self.training, key=lambda phase: phase.time_s).name

    @property
    def longest(self) -> str:
        """The longest phase of all."""
        return max(self.phases, key=lambda phase: phase.time_s).name

    @property
    def setup(self) -> tuple[Phase, ...]:
        """The phases of set-up."""
        return tuple(phase for phase in self.phases if phase.name.startswith("setup_"))

    @property
    def training(self) -> tuple[Phase, ...]:
        """The phases of training."""
        return self.phases[len(self.setup) :]

    @property
    def dataset(self) -> "xr.Dataset":
        """The phases, and in weight streaming the layers, as a labelled table.

        By phase, for the whole run: `time_s`, `least_s` and `most_s`, `limit_s`, `resource`,
        `status`. By layer and part,
        for one step: `layer_time_s`; by layer and direction: `binding`; by layer: `parameters`,
        `forward_flops`. Attributes say what was asked, the totals and the cautions.
        """
        import xarray as xr

        phases = self.phases
        unit = {"units": "s", "long_name": "time, phases add"}
        limit = {"units": "s", "long_name": "least time that the machine's numbers allow"}
        table: dict[str, Any] = {
            "time_s": ("phase", [x.time_s for x in phases], unit),
            "least_s": ("phase", [x.interval_s[0] for x in phases], unit),
            "most_s": ("phase", [x.interval_s[1] for x in phases], unit),
            "limit_s": ("phase", [x.limit_s for x in phases], limit),
            "resource": ("phase", [x.resource for x in phases]),
            "status": ("phase", [x.status for x in phases]),
        }
        coords: dict[str, Any] = {"phase": [x.name for x in phases]}
        attrs = {**self.summary(), "cautions": list(self.cautions)}
        if self.step is None:
            return xr.Dataset(table, coords, attrs | _calibration(self))
        layers = self.workload.layers
        per_step = {"units": "s", "long_name": "time of one step"}
        table |= {
            "layer_time_s": (("layer", "part"), self.step.layer_times_s(), per_step),
            "binding": (("direction", "layer"), [*self.step.binding()]),
            "parameters": ("layer", [x.parameters for x in layers], {"units": "1"}),
            "forward_flops": ("layer", [float(x.forward_flops) for x in layers], {"units": "FLOP"}),
        }
        coords |= {"layer": [x.name for x in layers], "part": [*PARTS]}
        return xr.Dataset(table, coords | {"direction": ["forward", "backward"]}, attrs)

    def summary(self) -> dict[str, str | int | float]:
        """What was asked and the totals, by name; times in s."""
        found: dict[str, str | int | float] = {
            "workload": self.workload.name,
            "parameters": self.workload.parameters,
            "machine": self.cluster.machine.name,
            "systems": self.cluster.systems,
            "mode": self.cluster.mode or "pipelined",
            "samples": self.samples,
            "batch": self.batch,
            "setup_s": self.setup_s,
            "train_s": self.train_s,
            "total_s": self.total_s,
            "least_total_s": self.interval_s[0],
            "most_total_s": self.interval_s[1],
            "lower_s": self.lower_s,
            "upper_s": self.upper_s,
            "samples_per_s": self.samples_per_s,
            "slowest_samples_per_s": self.samples / self.training_interval_s[1],
            "fastest_samples_per_s": self.samples / self.training_interval_s[0],
            "step_s": self.step_s,
            **({"checkpoint_s": self.checkpoint_s} if self.release else {}),
            "binding": self.binding,
            "longest": self.longest,
            "release": self.release,
            "why": self.why,
        }
        if self.placement:
            found |= self.placement.summary()
        if self.workload.tokens > 1:
            found["tokens_per_s"] = self.samples_per_s * self.workload.tokens
        if self.step:
            found |= {
                "plan": self.step.plan.name,
                "micro_batches": self.step.micro_batches,
                "activation_memory_share": self.step.sram_share,
            }
        return found

    def document(self) -> dict[str, object]:
        """All of it in types that JSON knows: the summary, phases, calibration errors, cautions."""
        return {
            **self.summary(),
            "phases": [
                {**asdict(phase), "interval_s": list(phase.interval_s)} for phase in self.phases
            ],
            "setup_interval_s": list(self.setup_interval_s),
            "training_interval_s": list(self.training_interval_s),
            "calibration": _calibration(self),
            "cautions": list(self.cautions),
        }

    def __repr__(self) -> str:
        """One line: what was asked, and the time that it takes; `print` shows the phases."""
        return f"Estimate({_caption(self)}: {_seconds(self.total_s)})"

    def __str__(self) -> str:
        """The phases as a table for a terminal."""
        table = _render.text(HEADER, _rows(self))
        return "\n".join((_caption(self), "", table, "", *_notes(self)))

    def _repr_html_(self) -> str:
        """The phases as a table for a notebook, in four columns that fit half a window."""
        rows = [
            (name.replace("_", " "), time, f"{low} to {high}", ", ".join(filter(None, why)))
            for name, time, low, high, *why in _rows(self)
        ]
        return _render.html(_caption(self), NARROW, rows, _notes(self))


def _caption(estimate: Estimate) -> str:
    """What was asked, in one line."""
    cluster, workload = estimate.cluster, estimate.workload
    release = f", {estimate.release}" if estimate.release else ""
    return (
        f"{workload.name}, {workload.parameters:,} parameters, on {cluster.systems} x "
        f"{cluster.machine.name} ({cluster.mode}{release}): {estimate.samples:,} samples, "
        f"batch {estimate.batch}"
    )


def _rows(estimate: Estimate) -> list[tuple[str, ...]]:
    """The phases and their total as text."""
    return [
        *(
            (x.name, _seconds(x.time_s), *map(_seconds, x.interval_s), x.resource, x.status)
            for x in estimate.phases
        ),
        ("in all", _seconds(estimate.total_s), *map(_seconds, estimate.interval_s), "", ""),
    ]


def _notes(estimate: Estimate) -> list[str]:
    """Totals, bounds, intervals, how it was calibrated, cautions."""
    fast_s, slow_s = estimate.training_interval_s
    rate = f"{_rate(estimate.samples_per_s)} samples/s"
    if estimate.workload.tokens > 1:
        rate += f", {_rate(estimate.samples_per_s * estimate.workload.tokens)} tokens/s"
    return [
        f"set-up {_range(estimate.setup_s, estimate.setup_interval_s)}; training "
        f"{_range(estimate.train_s, estimate.training_interval_s)}, {rate} "
        f"({_rate(estimate.samples / slow_s)} to {_rate(estimate.samples / fast_s)})",
        f"longest phase: {estimate.longest}; of training: {estimate.binding}",
        f"training would take {_seconds(estimate.training_s[0])} if all overlapped and "
        f"{_seconds(estimate.training_s[2])} if nothing did, with the same constants",
        f"for {estimate.why}",
        *(
            _streamed_notes(estimate, estimate.step)
            if estimate.step
            else _pipelined_notes(estimate)
        ),
        *([str(estimate.placement)] if estimate.placement else []),
        *(f"caution: {caution}" for caution in estimate.cautions),
    ]


def _together(phases: tuple[Phase, ...]) -> tuple[float, float]:
    """Sums of the least and of the most seconds of phases."""
    return sum(x.interval_s[0] for x in phases), sum(x.interval_s[1] for x in phases)


def _range(time_s: float, ends_s: tuple[float, float]) -> str:
    low_s, high_s = ends_s
    return f"{_seconds(time_s)} ({_seconds(low_s)} to {_seconds(high_s)})"


def _seconds(time_s: float) -> str:
    """Seconds to be read: two decimals, or three digits where that is less than 10 ms.

    >>> _seconds(1.234), _seconds(0.00123)
    ('1.23 s', '0.00123 s')
    """
    return f"{time_s:,.2f} s" if time_s >= 0.01 or time_s == 0 else f"{time_s:.3g} s"


def _calibration(estimate: Estimate) -> dict[str, Any]:
    """Errors of the fit to Table 4, where its constants answer."""
    fitted = estimate.step is None and estimate.cluster.machine.wafer == PIPELINED.wafer
    return errors_percent() if fitted else {}


def _pipelined_notes(estimate: Estimate) -> list[str]:
    if not (errors := _calibration(estimate)):
        return []
    return [
        "calibrated on Table 4 of the OSTI brief, no prediction; mean error in sample and of "
        f"a net left out: training {errors['train_in_sample_mape_percent']:.1f} and "
        f"{errors['train_leave_one_out_mape_percent']:.1f} %, set-up "
        f"{errors['setup_in_sample_mape_percent']:.1f} and "
        f"{errors['setup_leave_one_out_mape_percent']:.1f} %"
    ]


def _streamed_notes(estimate: Estimate, step: Step) -> list[str]:
    share = step.share
    kept = {
        "keep": "all activations wait for the backward pass",
        "blocks": "what enters each block waits for the backward pass",
        "segments": "what enters every few blocks waits for the backward pass",
    }
    return [
        f"a step of {estimate.batch} samples takes {_seconds(estimate.step_s)} in "
        f"{step.micro_batches} micro-batches: {kept[step.plan.name]} and fills "
        f"{100 * step.sram_share:.0f} % of the memory that it may use",
        f"products reach {100 * share.value:.3g} % of the dense peak ({share.status}: "
        f"{share.source})",
        *_layouts_note(estimate, step.held),
    ]


def _layouts_note(estimate: Estimate, held: int) -> list[str]:
    """What the cycles of convolutions are spent on, and before which they are laid out anew."""
    laid = grid.laid_out(estimate.workload, estimate.cluster.machine, held)
    if not laid:
        return []
    parts = [one.parts() for one in laid]
    cycles = sum(one.cycles for one in laid)
    said = ", ".join(
        f"{100 * sum(x[name] for x in parts) / cycles:.2g} % {name}" for name in grid.PARTS
    )
    moved = [one.name for one, x in zip(laid, parts, strict=True) if x["move"] > 0.1 * one.cycles]
    where = f"; moving costs most before {', '.join(moved[:6])}" if moved else ""
    return [f"cycles of convolutions: {said}{where}"]


def _rate(per_s: float) -> str:
    return f"{per_s:,.0f}" if per_s >= 1000 else f"{per_s:.4g}"
