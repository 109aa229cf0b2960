"""Traces that travel: read back by the format's own library, equal to graph and run."""

import os
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wse
from wse import _protobuf
from wse.execute.timeline import KINDS, Event, Resident

SCHEMA = Path(os.environ.get("SCIML_SHARED", "../shared")) / "data" / "chakra" / "et_def.proto"


def loss(params, x):
    h = jnp.tanh(x @ params["a"])
    g = jnp.tanh(h @ params["b"])
    return jnp.mean(((g @ params["c"]) + h) ** 2)


@pytest.fixture(scope="module")
def asked():
    draw = np.random.default_rng(0)
    params = {k: draw.normal(size=(4, 4)).astype("f4") for k in "abc"}
    return loss, params, draw.normal(size=(6, 4)).astype("f4")


@pytest.fixture(scope="module")
def schema():
    """Messages of `et_def.proto`, made of its text: no compiler of protocol buffers is needed."""
    pytest.importorskip("google.protobuf", reason="protobuf reads traces back")
    if not SCHEMA.exists():
        pytest.skip(f"the schema is in the shared data: {SCHEMA}")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    text = re.sub(r"//.*", "", SCHEMA.read_text())
    file = descriptor_pb2.FileDescriptorProto(name="et", package="ChakraProtoMsg", syntax="proto3")
    for name, body in re.findall(r"enum (\w+) \{(.*?)\}", text, re.DOTALL):
        kind = file.enum_type.add(name=name)
        for value, number in re.findall(r"(\w+) = (\d+);", body):
            kind.value.add(name=value, number=int(number))
    enums = {x.name for x in file.enum_type}
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, body in re.findall(r"message (\w+) \{((?:[^{}]|\{[^{}]*\})*)\}", text):
        message = file.message_type.add(name=name)
        union = re.search(r"oneof (\w+) \{(.*?)\}", body, re.DOTALL)
        if union:
            message.oneof_decl.add(name=union[1])
        for many, type_, field, number in re.findall(r"(repeated )?(\w+) (\w+) = (\d+);", body):
            made = message.field.add(name=field, number=int(number))
            made.label = kinds.LABEL_REPEATED if many else kinds.LABEL_OPTIONAL
            if union and f" {field} =" in union[2]:
                made.oneof_index = 0
            if plain := getattr(kinds, f"TYPE_{type_.upper()}", None):
                made.type = plain
            else:
                made.type = kinds.TYPE_ENUM if type_ in enums else kinds.TYPE_MESSAGE
                made.type_name = f".ChakraProtoMsg.{type_}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"ChakraProtoMsg.{name}"))
        for name in ("GlobalMetadata", "Node")
    }


def read(path: Path, schema) -> list:
    """The nodes of a file: the messages after the first."""
    from google.protobuf.internal.decoder import _DecodeVarint32

    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        size, at = _DecodeVarint32(data, at)
        kind = schema["Node" if found else "GlobalMetadata"]
        found.append(kind.FromString(data[at : at + size]))
        at += size
    assert found[0].version
    return found[1:]


def said(node) -> dict:
    return {x.name: getattr(x, x.WhichOneof("value")) for x in node.attr}


def test_a_graph_is_read_back_with_its_bytes_and_dependencies(asked, schema, tmp_path) -> None:
    graph = wse.trace(*asked)
    nodes = wse.chakra.nodes(graph)
    paths = wse.chakra.save(nodes, tmp_path / "step.et", systems=2)
    assert [x.name for x in paths] == ["step.0.et", "step.1.et"]
    first, second = (read(path, schema) for path in paths)
    assert first == second
    assert [(x.id, x.name, tuple(x.data_deps)) for x in first] == [
        (x.id, x.name, x.needs) for x in nodes
    ]
    kinds = {"broadcast": (7, 5), "gradient": (7, 1), "forward": (4, None), "backward": (4, None)}
    for one, node in zip(first, nodes, strict=True):
        assert (one.type, said(one).get("comm_type")) == kinds[node.kind]
        assert said(one)["is_cpu_op"] is False
    sent = [said(x)["comm_size"] for x in first if x.name.startswith("broadcast")]
    assert sum(sent) == 2 * graph.weight_bytes
    back = [said(x)["comm_size"] for x in first if x.name.startswith("gradient")]
    assert sum(back) == graph.weight_bytes
    work = [said(x)["num_ops"] for x in first if x.type == 4]
    assert sum(work) == graph.forward_flops + graph.backward_flops
    by_name = {x.name: x for x in first}
    # The loss reads what the first layer wrote, past the second: a skip connection.
    skips = {f"forward {graph.layers[i].name}" for i in (0, 1)}
    reads = {first[i].name for i in by_name[f"forward {graph.layers[2].name}"].data_deps}
    assert skips <= reads
    back = {first[i].name for i in by_name[f"backward {graph.layers[0].name}"].data_deps}
    assert {f"backward {graph.layers[i].name}" for i in (1, 2)} <= back
    assert all(need < x.id for x in first for need in x.data_deps)


def test_a_run_brings_its_times(asked, schema, tmp_path) -> None:
    graph, made = wse.trace(*asked), wse.CS2().executor(*asked)
    made.value_and_grad(*asked[1:])
    nodes = wse.chakra.timed(wse.chakra.nodes(graph), made.run.events)
    (path,) = wse.chakra.save(nodes, tmp_path / "step.et")
    seen = {(x.kind, x.layer, x.start_s): x for x in made.run.events}
    for one, node in zip(read(path, schema), nodes, strict=True):
        event = seen[node.kind, node.layer, node.start_s]
        assert one.start_time_micros == round(1e6 * event.start_s)
        assert one.duration_micros == round(1e6 * event.seconds)
        if node.kind in ("broadcast", "gradient"):
            assert said(one)["comm_size"] == event.bytes
    other = wse.trace(lambda p, x: jnp.mean(x @ p["z"]), {"z": jnp.ones((4, 1))}, jnp.ones((6, 4)))
    with pytest.raises(ValueError, match="that the graph has not"):
        wse.chakra.timed(wse.chakra.nodes(other), made.run.events)


@pytest.mark.parametrize(
    ("path", "systems", "rule"), [("step.json", 1, "ends in .et"), ("step.et", 0, "systems is 0")]
)
def test_a_trace_without_a_place_is_refused(asked, path, systems, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        wse.chakra.save(wse.chakra.nodes(wse.trace(*asked)), path, systems)


@pytest.mark.slow
@given(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(), st.binary())
def test_fields_are_those_of_the_library(whole: int, real: float, text: str, raw: bytes) -> None:
    pytest.importorskip("google.protobuf", reason="protobuf reads fields back")
    from google.protobuf import struct_pb2, wrappers_pb2

    for kind, value in (
        (wrappers_pb2.Int64Value, whole),
        (wrappers_pb2.DoubleValue, real),
        (wrappers_pb2.StringValue, text),
        (wrappers_pb2.BytesValue, raw),
    ):
        assert kind.FromString(_protobuf.field(1, value)).value == value
    assert struct_pb2.Value.FromString(_protobuf.field(3, text)).string_value == text


def test_a_run_is_read_back_by_perfetto(tmp_path) -> None:
    pb2 = pytest.importorskip(
        "perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="perfetto reads its traces"
    )
    events = tuple(Event(k, "a", 1e-3 * i, 1e-3 * (i % 2), 7 * i) for i, k in enumerate(KINDS))
    run = wse.Run(events, (Resident(0.0, 1, 2, 3), Resident(2e-3, 4, 5, 6)), systems=2)
    found = pb2.Trace.FromString(run.save(tmp_path / "step.pftrace").read_bytes())
    tracks = {x.track_descriptor.uuid: x.track_descriptor for x in found.packet}
    slices, counts, open_ = [], [], {}
    for packet in found.packet:
        event = packet.track_event
        if event.type == event.TYPE_SLICE_BEGIN:
            open_[event.track_uuid] = (event.name, packet.timestamp, event)
        elif event.type == event.TYPE_SLICE_END:
            name, start, begun = open_.pop(event.track_uuid)
            lane = tracks[event.track_uuid].thread
            kind = (lane.thread_name, *begun.categories)
            size = begun.debug_annotations[0].uint_value
            slices.append((lane.pid, *kind, name, start, packet.timestamp - start, size))
        elif event.type == event.TYPE_COUNTER:
            counts.append((packet.timestamp, event.counter_value))
    assert not open_
    assert sorted(slices) == sorted(
        (n + 1, k, k, "a", 10**6 * i, 10**6 if i % 2 else 1, 7 * i)
        for n in range(2)
        for i, k in enumerate(KINDS)
    )
    assert counts == 2 * [(0, 6), (2 * 10**6, 15)]


def test_leaves_of_jax_are_taken() -> None:
    graph = wse.trace(loss, {k: jax.ShapeDtypeStruct((4, 4), "f4") for k in "abc"}, np.ones((6, 4)))
    assert [x.kind for x in wse.chakra.nodes(graph)][:2] == ["broadcast", "forward"]
