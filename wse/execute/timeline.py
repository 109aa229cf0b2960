"""What moved and what ran when, in one step."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wse import _render
from wse._files import as_path, write_aside
from wse.execute.perfetto import encoded

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
        part: which part of the batch, where it flows in parts; None: all of it.
        tick: when in the pipeline's own time; None: there is no pipeline.
    """

    kind: str
    layer: str
    start_s: float
    seconds: float
    bytes: int = 0
    part: int | None = None
    tick: int | None = None


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

    >>> import jax.numpy as jnp
    >>> import wse
    >>> params, batch = {"w": jnp.ones((4, 2))}, jnp.ones((3, 4))
    >>> executor = wse.CS2().executor(lambda params, x: jnp.sum(x @ params["w"]), params, batch)
    >>> value, gradients = executor.value_and_grad(params, batch)
    >>> executor.run.total_bytes("gradient")
    32
    """

    events: tuple[Event, ...]
    resident: tuple[Resident, ...]
    systems: int = 1

    def __repr__(self) -> str:
        """One line: events, systems, and the most bytes on a device."""
        return (
            f"Run({len(self.events)} events on {self.systems} systems, peak "
            f"{self.peak_bytes:,} bytes, {self.peak_weight_bytes:,} of weights)"
        )

    def _repr_html_(self) -> str:
        """Events, bytes and seconds by kind, for a notebook."""
        kinds = dict.fromkeys(event.kind for event in self.events)
        rows = [
            (kind, f"{len(found)}", f"{self.total_bytes(kind):,}", f"{seconds * 1e3:.3g} ms")
            for kind in kinds
            for found in [[event for event in self.events if event.kind == kind]]
            for seconds in [sum(event.seconds for event in found)]
        ]
        return _render.html(repr(self), ("kind", "events", "bytes", "time"), rows)

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
        """The events of every system as a labelled table.

        Of a pipeline with `part` and `tick`; -1: the whole batch, after the last tick.
        """
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
        if any(event.tick is not None for event in self.events):
            for name in ("part", "tick"):
                said = [getattr(event, name) for event, _ in rows]
                table[name] = ("event", [-1 if x is None else x for x in said])
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
        """Write the step for Perfetto (ui.perfetto.dev) and return the path.

        A name that ends in .pftrace is written in Perfetto's own format, all others as JSON.
        `wse.chakra` writes the step for ASTRA-sim.
        """
        path = as_path("path", path, "pass step.json")
        with write_aside(path) as aside:
            if path.suffix == ".pftrace":
                aside.write_bytes(encoded(self, KINDS))
            else:
                aside.write_text(json.dumps(self.document()), encoding="utf-8")
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

    def pipeline(self, ax: Any = None) -> Any:
        """Draw which layer worked on which part in each tick; returns the axes.

        Light is forward, dark is backward; a number is that of the part, "all" a barrier.

        Raises:
            ValueError: the step was streamed, not pipelined.
        """
        import matplotlib.pyplot as plt

        tasks = [e for e in self.events if e.tick is not None and e.kind in ("forward", "backward")]
        if not tasks:
            raise ValueError(
                f"no event has a tick, of {len(self.events)}; only a pipelined step has: pass "
                "mode='pipelined', or draw "
                "figure()"
            )
        forward = sorted((e for e in tasks if e.kind == "forward"), key=lambda e: e.tick or 0)
        layers = list(dict.fromkeys(event.layer for event in forward))
        if ax is None:
            _, ax = plt.subplots(figsize=(9, 1 + 0.3 * len(layers)), layout="constrained")
        # What sees the whole batch is drawn over the parts of the same tick.
        for event in sorted(tasks, key=lambda e: e.part is None):
            _draw(ax, event, layers.index(event.layer))
        ax.set_yticks(range(len(layers)), layers)
        ax.set_ylabel("layer")
        ax.invert_yaxis()
        ax.set_xlabel("tick")
        return ax


def _draw(ax: Any, event: Event, row: int) -> None:
    """One task of a pipeline: forward light, backward dark, with the number of its part."""
    assert event.tick is not None
    colour, ink = ("#1f78b4", "white") if event.kind == "backward" else ("#a6cee3", "black")
    ax.broken_barh([(event.tick, 1)], (row - 0.4, 0.8), facecolors=colour, edgecolor="white")
    label, size = ("all", 6) if event.part is None else (str(event.part), 8)
    ax.text(event.tick + 0.5, row, label, ha="center", va="center", fontsize=size, color=ink)


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
    when = {"part": event.part, "tick": event.tick}
    return {
        "ph": "X",
        "pid": system,
        "tid": KINDS.index(event.kind),
        "name": event.layer or event.kind,
        "cat": event.kind,
        "ts": 1e6 * event.start_s,
        "dur": 1e6 * event.seconds,
        "args": {"bytes": event.bytes, **{k: v for k, v in when.items() if v is not None}},
    }


def _counter(sample: Resident, system: int) -> dict[str, Any]:
    counts = asdict(sample)
    time_s = counts.pop("time_s")
    head = {"ph": "C", "pid": system, "name": "bytes on the device"}
    return {**head, "ts": 1e6 * time_s, "args": counts}
