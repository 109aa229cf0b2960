"""Whatever is asked: parts make totals, times lie in their intervals and above physics' limits."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wse
from wse.machine.machine import Sourced
from wse.models.shapes.workload import Layer, Workload
from wse.predict import limits, resident
from wse.predict.phase import Phase

sizes = st.integers(1, 20_000)
layers = st.lists(
    st.builds(
        dict,
        inputs=sizes,
        outputs=sizes,
        parameters=st.integers(0, 10**8),
        multiplies=st.integers(0, 10**11),
        kind=st.sampled_from(["dense", "convolution", "attention", "lookup"]),
        density=st.floats(0, 1),
    ),
    min_size=1,
    max_size=5,
)
clusters = st.sampled_from(
    [
        wse.CS2(mode="streaming"),
        wse.CS2(16),
        wse.CS3(),
        wse.CS3(4),
        wse.CG1(),
        wse.CS2(mode="pipelined"),
    ]
)


def net(rows: list[dict]) -> Workload:
    made = tuple(Layer(name=f"layer_{i}", **row) for i, row in enumerate(rows))
    return Workload("any", made, made[0].inputs, made[-1].outputs)


@settings(deadline=None, max_examples=30)
@given(rows=layers, cluster=clusters, samples=st.integers(1, 10**9))
def test_parts_make_totals_and_lie_in_order(rows, cluster: wse.Cluster, samples: int) -> None:
    work, batch = net(rows), 2 * cluster.systems
    samples = max(samples, batch)
    found = wse.estimate(work, batch=batch, machine=cluster, samples=samples)
    for phase in found.phases:
        low, high = phase.interval_s
        assert phase.limit_s <= low * (1 + 1e-9)
        assert low <= phase.time_s <= high
    low, high = found.interval_s
    assert low <= found.total_s <= high
    assert sum(x.time_s for x in found.phases) == pytest.approx(found.total_s)
    assert found.setup_s + found.train_s == pytest.approx(found.total_s)
    for i, total in enumerate(found.interval_s):
        halves = found.setup_interval_s[i] + found.training_interval_s[i]
        assert sum(x.interval_s[i] for x in found.phases) == pytest.approx(total)
        assert halves == pytest.approx(total)
    assert found.lower_s <= found.total_s * (1 + 1e-9)
    assert found.total_s <= found.upper_s * (1 + 1e-9)
    by_name = {x.name: x.time_s for x in found.phases}
    assert by_name[found.longest] == max(by_name.values())
    assert by_name[found.binding] == max(x.time_s for x in found.training)
    assert f"longest phase: {found.longest}" in str(found)
    said = found.dataset
    assert float(said.time_s.sum()) == pytest.approx(said.attrs["total_s"])
    assert float(said.least_s.sum()) == pytest.approx(said.attrs["least_total_s"])
    least = limits.least_s(work, cluster, samples)
    assert found.train_s >= max(least.values()) * (1 - 1e-9)


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(
    inputs=st.integers(1, 10**7),
    width=st.integers(1, 20_000),
    depth=st.integers(1, 40),
    batch=st.integers(1, 10**6),
)
def test_resident_inference_keeps_to_links_memory_and_arithmetic(
    inputs: int, width: int, depth: int, batch: int
) -> None:
    work = wse.workload.dense(inputs=inputs, width=width, depth=depth)
    cluster = wse.CS2(mode="pipelined")
    machine = cluster.machine
    if work.parameters * 2 > machine.sram_bytes.value:
        with pytest.raises(ValueError, match="they must stay within the 40 GB of WSE-2"):
            wse.inference(work, batch, machine=cluster)
        return
    found = wse.inference(work, batch, machine=cluster)
    for time_s in (found.latency_s, *found.interval_s):
        assert batch * inputs * 8 / time_s <= machine.host_bits_per_s.value * (1 + 1e-9)
        assert batch * work.forward_flops / time_s <= machine.peak_fp16_flops_per_s * (1 + 1e-9)
    assert found.interval_s[0] <= found.latency_s <= found.interval_s[1]


def test_streamed_answers_keep_to_a_slow_link() -> None:
    link = Sourced(1e6, "bit/s", "assumed", "a test")
    slow = wse.Cluster(dataclasses.replace(wse.catalog.CS2, host_bits_per_s=link), mode="streaming")
    work = wse.workload.dense(width=64)
    assert wse.inference(work, 100, machine=slow).interval_s[0] >= 100 * 8 * 1000 / 1e6
    assert wse.estimate(work, batch=100, machine=slow).step_s >= 100 * 8 * 1002 / 1e6
    swept = wse.sweep(work, [100, 1000], machine=slow)
    assert (swept.step_s >= swept.batch * 8 * 1002 / 1e6).all()


def test_a_sweep_is_no_faster_than_the_limits_at_any_density() -> None:
    work = wse.workloads.get("Cerebras-GPT-111M")
    found = wse.sweep(work, [64], systems=[1, 4], density=[0.0, 0.3, 1.0], machine="cs3")
    for systems in (1, 4):
        for density in (0.0, 0.3, 1.0):
            least = limits.least_s(work.sparse(density), wse.CS3(systems), 64)
            here = float(found.step_s.sel(batch=64, systems=systems, density=density).squeeze())
            assert here >= max(least.values())


@pytest.mark.parametrize("width", [32, 2048])
def test_check_and_estimate_answer_for_the_same_machine(width: int) -> None:
    jnp = pytest.importorskip("jax.numpy")
    weights = {"a": jnp.ones((8, width)), "b": jnp.ones((width, 2))}

    def loss(p, x):
        return jnp.mean(jnp.tanh(x @ p["a"]) @ p["b"])

    asked = loss, weights, jnp.ones((4, 8))
    for machine in (None, "cs3", wse.CS2(4), wse.CS2(mode="streaming")):
        said = wse.estimate(*asked, machine=machine)
        report = wse.check(*asked, machine=machine)
        assert report.why == said.why
        assert (report.mode, f"R{report.release}") == (said.cluster.mode, said.release)
        for shown in (str(said), said._repr_html_(), str(report), report._repr_html_()):
            assert said.why in shown
        assert said.dataset.attrs["why"] == said.why


@pytest.mark.slow
def test_every_answer_says_which_attention_is_meant() -> None:
    """By name fused, of a trace as it is written; a net without attention says nothing."""
    jnp = pytest.importorskip("jax.numpy")
    weights, batch = jnp.ones((8, 8)), jnp.ones((4, 16, 8))

    def attends(p, x):
        return jnp.mean(jnp.einsum("bst,btd->bsd", jnp.einsum("bsd,btd->bst", x @ p, x), x))

    def plain(p, x):
        return jnp.mean(jnp.tanh(x @ p))

    name = "GPT-2-small"
    few = wse.workloads.get(name, num_hidden_layers=2)
    shown = wse.explore(few, batch=8)
    for said in (
        *(wse.estimate(few, batch=8, machine=machine).why for machine in ("cs2", "cs1", "h100")),
        wse.inference(few, 8).why,
        wse.sweep({"a": few, "b": wse.workload.dense()}, [8]).attrs["why"],
        wse.check(few).why,
        str(wse.compare(few, None, 8, machines=["h100"])),
        shown.table(shown.choice),
        wse.port(few, beside=["h100"]).html,
    ):
        assert said.count("attention fused") == 1
    for loss, written in ((attends, True), (plain, False)):
        graph = wse.trace(loss, weights, batch)
        made = wse.traced.workload(graph)
        for machine in (None, "cs1"):
            estimated = wse.estimate(loss, weights, batch, machine=machine).why
            assert wse.check(loss, weights, batch, machine=machine).why == estimated
            assert wse.check(graph, machine=machine).why == estimated
            assert wse.estimate(made, batch=4, machine=machine).why == estimated
            assert ("matrices are written and kept" in estimated) == written
    for machine in ("cs2", "h100"):
        assert "attention" not in wse.estimate("ResNet-50", machine=machine, batch=8).why


def test_the_vendor_s_own_estimate_is_part_of_the_pipelined_one() -> None:
    found = wse.estimate("FC-MNIST")
    assert found.placement is not None
    low, high = found.placement.cycles_interval
    assert low <= 464 < 669 <= high  # both that were published
    least, usual, most = found.placement.measured
    assert least < usual < most < 1
    assert found.summary()["promised_samples_per_s"] == found.placement.samples_per_s
    assert "cycles of the slowest kernel" in str(found)
    assert wse.estimate("GPT-2-small").placement is None


@settings(deadline=None, max_examples=50)
@given(values=st.integers(2, 10**8))
def test_more_numbers_never_come_in_faster(values: int) -> None:
    one, more = (
        resident.input_s(wse.workload.dense(inputs=n, width=8)) for n in (values, values + 1)
    )
    assert np.all(np.array(more) >= np.array(one) * (1 - 1e-12))
    usual, least, most = one
    assert least < usual < most


def test_a_phase_out_of_order_is_refused() -> None:
    with pytest.raises(ValueError, match="they must be in order"):
        Phase("input", "host link", 2.0, 0.0, "assumed", (3.0, 4.0))
