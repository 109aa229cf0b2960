"""What a training run would take on the real machine."""

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from wse import pipelined, render
from wse.cluster import CS2, Cluster
from wse.pipelined import Phase
from wse.workload import Workload

if TYPE_CHECKING:
    import xarray as xr

SETUP = ("setup_floor", "setup_place")
HEADER = ("phase", "time", "at best", "resource", "status")


@dataclass(frozen=True)
class Estimate:
    """Seconds of a training run, phase by phase. Phases add.

    Attributes:
        workload: the model.
        cluster: the machine, how many, and the mode.
        samples: samples processed, every epoch counted.
        batch: samples per step: recorded, and no part of the calibrated rate.
        phases: the parts, in the order in which they are spent.
        cautions: what lies outside the range calibrated on; empty inside it.
    """

    workload: Workload
    cluster: Cluster
    samples: int
    batch: int
    phases: tuple[Phase, ...]
    cautions: tuple[str, ...] = ()

    @property
    def setup_s(self) -> float:
        """Seconds before the first sample: compiling, placing, programming."""
        return sum(phase.time_s for phase in self.phases if phase.name in SETUP)

    @property
    def train_s(self) -> float:
        """Seconds of training: its phases added, as if nothing overlapped."""
        return sum(phase.time_s for phase in self._training)

    @property
    def total_s(self) -> float:
        """Set-up and training, in seconds."""
        return self.setup_s + self.train_s

    @property
    def lower_s(self) -> float:
        """Set-up and the busiest training resource alone: input and fabric overlap wholly."""
        return self.setup_s + max(phase.time_s for phase in self._training)

    @property
    def samples_per_s(self) -> float:
        """Samples per second of training; set-up is left out, as in the published table."""
        return self.samples / self.train_s

    @property
    def binding(self) -> str:
        """The longer training phase: "input" (host link) or "units" (fabric)."""
        return max(self._training, key=lambda phase: phase.time_s).name

    @property
    def dataset(self) -> "xr.Dataset":
        """The phases as a labelled table: times, limits, resources and status.

        Attributes say what was asked, the totals, what the calibration misses in and out of
        sample, and the cautions.
        """
        import xarray as xr

        from wse.calibrate import errors_percent

        seconds = {"units": "s", "long_name": "time, phases add"}
        limit = {"units": "s", "long_name": "least time that the machine's numbers allow"}
        return xr.Dataset(
            {
                "time_s": ("phase", [x.time_s for x in self.phases], seconds),
                "limit_s": ("phase", [x.limit_s for x in self.phases], limit),
                "resource": ("phase", [x.resource for x in self.phases]),
                "status": ("phase", [x.status for x in self.phases]),
            },
            coords={"phase": [x.name for x in self.phases]},
            attrs=self.summary() | errors_percent() | {"cautions": list(self.cautions)},
        )

    def summary(self) -> dict[str, str | int | float]:
        """What was asked and the totals, by name; times in s."""
        return {
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
            "lower_s": self.lower_s,
            "samples_per_s": self.samples_per_s,
            "binding": self.binding,
        }

    def document(self) -> dict[str, object]:
        """All of it in types that JSON knows: the summary, phases, calibration errors, cautions."""
        from wse.calibrate import errors_percent

        phases = [asdict(phase) for phase in self.phases]
        rest: dict[str, object] = {"phases": phases, "calibration": errors_percent()}
        return {**self.summary(), **rest, "cautions": list(self.cautions)}

    def __str__(self) -> str:
        """The phases as a table for a terminal."""
        table = render.text(HEADER, self._rows())
        return "\n".join((self._caption(), "", table, "", *self._notes()))

    def _repr_html_(self) -> str:
        """The phases as a table for a notebook."""
        return render.html(self._caption(), HEADER, self._rows(), self._notes())

    @property
    def _training(self) -> tuple[Phase, ...]:
        return tuple(phase for phase in self.phases if phase.name not in SETUP)

    def _caption(self) -> str:
        return (
            f"{self.workload.name}, {self.workload.parameters:,} parameters, on "
            f"{self.cluster.systems} x {self.cluster.machine.name} ({self.cluster.mode}): "
            f"{self.samples:,} samples, batch {self.batch}"
        )

    def _rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [
            (x.name, _seconds(x.time_s), _seconds(x.limit_s), x.resource, x.status)
            for x in self.phases
        ]
        return [*rows, ("total", _seconds(self.total_s), "", "", "")]

    def _notes(self) -> list[str]:
        from wse.calibrate import errors_percent

        errors = errors_percent()
        return [
            f"set-up {self.setup_s:.1f} s, training {self.train_s:.2f} s "
            f"({self.samples_per_s:,.0f} samples/s), bound by {self.binding}",
            f"at least {self.lower_s:.2f} s in all, if input and units overlapped wholly",
            "calibrated on Table 4 of the OSTI brief, no prediction; mean error in sample and of "
            f"a net left out: training {errors['train_in_sample_mape_percent']:.1f} and "
            f"{errors['train_leave_one_out_mape_percent']:.1f} %, set-up "
            f"{errors['setup_in_sample_mape_percent']:.1f} and "
            f"{errors['setup_leave_one_out_mape_percent']:.1f} %",
            *(f"caution: {caution}" for caution in self.cautions),
        ]


def estimate(
    workload: Workload,
    machine: Cluster | None = None,
    samples: int = 1_000_000,
    batch: int = 100,
) -> Estimate:
    """Seconds that training would take: set-up, and input plus units for every sample.

    The constants are calibrated on the four dense nets of Table 4 of the OSTI brief
    (`wse.pipelined` has the equations, `wse.calibrate` the fit). Inside that range the result
    interpolates published times; outside it `cautions` says what is stretched. That the published
    nets ran layer-pipelined is inferred, not published.

    Args:
        workload: the model, as from `wse.workload.dense`.
        machine: what it runs on; one CS-2 if left out.
        samples: samples processed, every epoch counted.
        batch: samples per step. Recorded only: the published table does not give its batch.

    Returns:
        The estimate, frozen.

    Raises:
        ValueError: samples or batch not positive, a batch beyond the samples, another machine
            than a CS-2, several systems, weight streaming, or a model that the wafer cannot hold.

    >>> from wse.workload import dense
    >>> result = estimate(dense(width=2048))
    >>> print(f"{result.setup_s:.1f} + {result.train_s:.1f} = {result.total_s:.1f} s")
    801.3 + 8.9 = 810.2 s
    """
    cluster = _pipelined(CS2() if machine is None else machine)
    for name, count in (("samples", samples), ("batch", batch)):
        if count < 1:
            raise ValueError(f"{name} is {count}; it must be a positive integer: pass {name}=100")
    if batch > samples:
        raise ValueError(
            f"batch is {batch} with {samples} samples; a batch holds at most all samples: "
            f"pass batch={samples} or fewer"
        )
    return Estimate(
        workload,
        cluster,
        samples,
        batch,
        pipelined.phases(workload, cluster.machine, samples),
        pipelined.cautions(workload, cluster.machine, batch),
    )


def _pipelined(cluster: Cluster) -> Cluster:
    if cluster.mode == "streaming":
        raise ValueError(
            "mode is 'streaming'; only the layer-pipelined estimate is built so far: "
            "pass mode='pipelined'"
        )
    if cluster.systems != 1:
        raise ValueError(
            f"systems is {cluster.systems}; the pipelined estimate holds for one system, "
            "because its constants were measured on one: pass systems=1"
        )
    return replace(cluster, mode="pipelined")


def _seconds(time_s: float) -> str:
    return f"{time_s:.2f} s"
