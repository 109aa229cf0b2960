"""The record of a step in Perfetto's own format, smaller than JSON and read by its tools.

A process to each system, a thread to each kind of event, and a counter of bytes on the device.
Source: protos/perfetto/trace of google/perfetto.
"""

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from wse._protobuf import field

BEGIN, END, COUNTER = 1, 2, 4  # TrackEvent.Type
Timed: TypeAlias = tuple[tuple[int, bool], bytes]
SEQUENCE = 1  # all packets are of one writer


def encoded(run: Any, kinds: Sequence[str]) -> bytes:
    """A `wse.Run` as a trace of Perfetto, its events in lanes by their kinds."""
    return b"".join(field(1, packet) for packet in _packets(run, kinds))


def _packets(run: Any, kinds: Sequence[str]) -> Iterator[bytes]:
    for system in range(run.systems):
        process = field(1, system + 1) + field(6, f"system {system}")
        yield _track(_uuid(system), field(3, process))
        for lane, kind in enumerate(kinds):
            thread = field(1, system + 1) + field(2, lane + 1) + field(5, kind)
            yield _track(_uuid(system, lane + 1), field(5, _uuid(system)) + field(4, thread))
        counts = _uuid(system, len(kinds) + 1)
        name = field(2, "bytes on the device") + field(8, b"")
        yield _track(counts, field(5, _uuid(system)) + name)
        lanes = {kind: _uuid(system, lane + 1) for lane, kind in enumerate(kinds)}
        timed = [x for event in run.events for x in _slice(event, lanes[event.kind])]
        timed += [_count(sample, counts) for sample in run.resident]
        yield from (packet for _, packet in sorted(timed, key=lambda x: x[0]))


def _uuid(system: int, lane: int = 0) -> int:
    return 1000 * (system + 1) + lane


def _track(uuid: int, said: bytes) -> bytes:
    return field(60, field(1, uuid) + said) + field(10, SEQUENCE)


def _slice(event: Any, uuid: int) -> Iterator[Timed]:
    track = field(11, uuid)
    note = field(4, field(10, "bytes") + field(3, event.bytes))
    name = field(22, event.kind) + field(23, event.layer or event.kind)
    start = round(1e9 * event.start_s)
    # At least 1 ns long: at one time, ends come before what begins.
    end = max(start + 1, round(1e9 * (event.start_s + event.seconds)))
    yield _at(start, field(9, BEGIN) + track + name + note)
    yield _at(end, field(9, END) + track, first=True)


def _count(sample: Any, track: int) -> Timed:
    total = sample.weights + sample.gradients + sample.activations
    return _at(round(1e9 * sample.time_s), field(9, COUNTER) + field(11, track) + field(30, total))


def _at(time_ns: int, event: bytes, *, first: bool = False) -> Timed:
    """A packet of one event, and what it is sorted by."""
    packet = field(8, time_ns) + field(11, event) + field(10, SEQUENCE)
    return (time_ns, not first), packet
