"""What moved and what ran when, in one step."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr

KINDS = ("batch", "broadcast", "forward", "backward", "gradient", "update")


@dataclass(frozen=True)
class Event:
    """Something that moved or ran.

    Attributes:
        kind: one of `KINDS`: samples in, weights in, computed forward or backward, a gradient
            out, weights updated in the store.
        layer: the layer's name; of an update, the parameters'.
        start_s: when, in seconds after the step began.
        seconds: how long, as the host sees it: until it waited for the result.
        bytes: what moved to or from each system, or was updated.
    """

    kind: str
    layer: str
    start_s: float
    seconds: float
    bytes: int = 0


@dataclass(frozen=True)
class Resident:
    """Bytes that the executor held on the devices at one moment; of a system, if they are several.

    Attributes:
        time_s: when, in seconds after the step began.
        weights: of layers.
        gradients: of weights, not yet sent out.
        activations: everything else: samples, activations, what is kept, their cotangents.
    """

    time_s: float
    weights: int
    gradients: int
    activations: int


@dataclass(frozen=True)
class Run:
    """The record of one step.

    Attributes:
        events: in the order in which they ended.
        resident: bytes on the devices after each change.
        systems: how many took part; each saw the same events.
    """

    events: tuple[Event, ...]
    resident: tuple[Resident, ...]
    systems: int = 1

    def total_bytes(self, kind: str) -> int:
        """Bytes that moved to or from one system in all events of a kind."""
        return sum(event.bytes for event in self.events if event.kind == kind)

    @property
    def peak_weight_bytes(self) -> int:
        """The most bytes of weights on a device at one time."""
        return max((sample.weights for sample in self.resident), default=0)

    @property
    def peak_bytes(self) -> int:
        """The most bytes of weights, gradients and activations at one time."""
        totals = (x.weights + x.gradients + x.activations for x in self.resident)
        return max(totals, default=0)

    @property
    def dataset(self) -> "xr.Dataset":
        """The events of every system as a labelled table."""
        import xarray as xr

        rows = [(event, system) for event in self.events for system in range(self.systems)]
        table: dict[str, Any] = {
            "kind": ("event", [event.kind for event, _ in rows]),
            "layer": ("event", [event.layer for event, _ in rows]),
            "system": ("event", [system for _, system in rows]),
            "start_s": ("event", [event.start_s for event, _ in rows], {"units": "s"}),
            "duration_s": ("event", [event.seconds for event, _ in rows], {"units": "s"}),
            "bytes": ("event", [event.bytes for event, _ in rows], {"units": "B"}),
        }
        peaks = {"peak_weight_bytes": self.peak_weight_bytes, "peak_bytes": self.peak_bytes}
        return xr.Dataset(table, attrs={"systems": self.systems, **peaks})

    def document(self) -> dict[str, Any]:
        """The step in the trace-event format that Perfetto and chrome://tracing read."""
        events: list[dict[str, Any]] = []
        for system in range(self.systems):
            name = {"name": f"system {system}"}
            events.append(
                {"ph": "M", "pid": system, "tid": 0, "name": "process_name", "args": name}
            )
            for lane, kind in enumerate(KINDS):
                head = {"ph": "M", "pid": system, "tid": lane, "name": "thread_name"}
                events.append({**head, "args": {"name": kind}})
            events += [_slice(event, system) for event in self.events]
            events += [_counter(sample, system) for sample in self.resident]
        return {"displayTimeUnit": "ms", "traceEvents": events}

    def save(self, path: Path | str) -> Path:
        """Write the step as JSON for Perfetto (ui.perfetto.dev) and return the path."""
        path = Path(path)
        path.write_text(json.dumps(self.document()), encoding="utf-8")
        return path

    def figure(self, ax: Any = None) -> Any:
        """Draw when what ran: one row per kind, time in ms; returns the axes."""
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots(figsize=(8, 3), layout="constrained")
        for row, kind in enumerate(KINDS):
            spans = [(1e3 * e.start_s, 1e3 * e.seconds) for e in self.events if e.kind == kind]
            ax.broken_barh(spans, (row - 0.4, 0.8), color=f"C{row}")
        ax.set_yticks(range(len(KINDS)), KINDS)
        ax.invert_yaxis()
        ax.set_xlabel("time (ms)")
        return ax


def faults(document: Any) -> list[str]:
    """Return what in a document breaks the trace-event format; nothing if all is well."""
    if not isinstance(document, dict) or not isinstance(document.get("traceEvents"), list):
        return ["no list under 'traceEvents'"]
    return [
        f"event {i}: {fault}"
        for i, event in enumerate(document["traceEvents"])
        for fault in _event_faults(event)
    ]


def _event_faults(event: Any) -> list[str]:
    needed: dict[str, tuple[str, ...]] = {
        "M": ("name", "pid", "args"),
        "X": ("name", "pid", "tid", "ts", "dur"),
        "C": ("name", "pid", "ts", "args"),
    }
    if not isinstance(event, dict) or event.get("ph") not in needed:
        return ["no known phase under 'ph'"]
    found = [f"no {key!r}" for key in needed[event["ph"]] if key not in event]
    for key in ("ts", "dur"):
        value = event.get(key, 0)
        if not isinstance(value, (int, float)) or not value >= 0:
            found.append(f"{key} is {value!r}; it must be a number of µs, not negative")
    return found


def _slice(event: Event, system: int) -> dict[str, Any]:
    return {
        "ph": "X",
        "pid": system,
        "tid": KINDS.index(event.kind),
        "name": event.layer or event.kind,
        "cat": event.kind,
        "ts": 1e6 * event.start_s,
        "dur": 1e6 * event.seconds,
        "args": {"bytes": event.bytes},
    }


def _counter(sample: Resident, system: int) -> dict[str, Any]:
    counts = {
        "weights": sample.weights,
        "gradients": sample.gradients,
        "activations": sample.activations,
    }
    head = {"ph": "C", "pid": system, "name": "bytes on the device"}
    return {**head, "ts": 1e6 * sample.time_s, "args": counts}


def covered_s(events: Sequence[Event]) -> float:
    """Seconds during which at least one of the events ran."""
    total, end = 0.0, 0.0
    for event in sorted(events, key=lambda event: event.start_s):
        stop = event.start_s + event.seconds
        total += max(0.0, stop - max(end, event.start_s))
        end = max(end, stop)
    return total
