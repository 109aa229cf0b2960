"""More systems, samples, zeros or layers change an estimate as physics allows."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import wse
from wse.machine.catalog import TREES
from wse.models.shapes.workload import Layer, Workload, dense
from wse.sparsity import Static

names = st.sampled_from(["cs2", "cs3"])
# Odd sizes, width 1, depth 1 and layers without parameters among them.
layers = st.lists(
    st.builds(
        dict,
        inputs=st.sampled_from([1, 3, 997, 65_536]),
        outputs=st.sampled_from([1, 10, 4096, 5_000_003]),
        parameters=st.sampled_from([0, 1, 10**4, 10**8]),
        multiplies=st.sampled_from([0, 1, 10**6, 10**10]),
        kind=st.sampled_from(["dense", "convolution", "attention", "lookup"]),
    ),
    min_size=1,
    max_size=4,
)
SIZES = [1, 2, 7, 64, 2049, 10**6]


def net(rows: list[dict]) -> Workload:
    made = tuple(Layer(name=f"layer_{i}", **row) for i, row in enumerate(rows))
    return Workload("any", made, made[0].inputs, made[-1].outputs)


def streamed(name: str, systems: int = 1) -> wse.Cluster:
    return {"cs2": wse.CS2, "cs3": wse.CS3}[name](systems, mode="streaming")


def step_s(work: Workload, batch: int, machine: wse.Cluster) -> float:
    return wse.estimate(work, batch=batch, machine=machine, samples=batch).step_s


@settings(deadline=None, max_examples=12)
@given(rows=layers, name=names, batch=st.sampled_from(SIZES))
def test_twice_the_batch_takes_longer_but_at_most_twice_as_long(rows, name, batch) -> None:
    one, two = (step_s(net(rows), n, streamed(name)) for n in (batch, 2 * batch))
    rounding = 1 + 1e-9
    assert one <= two * rounding <= 2 * one * rounding**2


@settings(deadline=None, max_examples=12)
@given(rows=layers, name=names, batch=st.sampled_from(SIZES))
def test_twice_the_systems_cost_at_most_a_level_of_the_tree(rows, name, batch) -> None:
    work = net(rows)
    found = [
        wse.estimate(work, batch=2 * batch, machine=streamed(name, n), samples=2 * batch)
        for n in (1, 2)
    ]
    one, two = (x.step for x in found)
    assert one is not None
    assert two is not None
    # Weights come in once forward and up to thrice on the way back, gradients leave once.
    level_s = TREES[found[0].cluster.machine.wafer].level_latency_s.value
    transfers = two.micro_batches * (2 + two.plan.passes) * len(rows) + 2
    assert found[1].step_s <= found[0].step_s + transfers * level_s + 1e-12
    assert found[1].samples_per_s <= 2 * found[0].samples_per_s * (1 + 1e-9)


@settings(deadline=None, max_examples=12)
@given(rows=layers, name=names, kept=st.tuples(*[st.floats(0, 1)] * 2).map(sorted))
def test_more_zeros_take_no_longer(rows, name, kept) -> None:
    few, many = (step_s(net(rows).sparse(share), 64, streamed(name)) for share in kept)
    assert few <= many * (1 + 1e-9)


@pytest.mark.parametrize("mode", ["streaming", "pipelined"])
@settings(deadline=None, max_examples=12)
@given(
    width=st.integers(1, 9000),
    depth=st.integers(1, 20),
    inputs=st.integers(1, 10**5),
    batch=st.sampled_from(SIZES),
)
@example(width=289, depth=10, inputs=5, batch=2049)
def test_a_larger_dense_net_takes_no_less(mode, width, depth, inputs, batch) -> None:
    machine = wse.CS2(mode=mode)
    sizes = {"width": width, "depth": depth, "inputs": inputs}
    least = wse.estimate(dense(**sizes), batch=batch, machine=machine, samples=batch)
    for name, size in sizes.items():
        larger = dense(**{**sizes, name: size + 1})
        found = wse.estimate(larger, batch=batch, machine=machine, samples=batch)
        assert found.train_s >= least.train_s * (1 - 1e-9)
        assert found.setup_s >= least.setup_s * (1 - 1e-9)


@pytest.mark.parametrize("name", ["GPT-2-small", "BERT-large"])
def test_zeros_count_in_inference_as_in_training(name: str) -> None:
    work = wse.workloads.get(name)
    thin = wse.CS2(sparsity=Static(0.75))
    found = wse.inference(work, 64, machine=thin)
    plain = wse.inference(work, 64, machine="cs2")
    assert found.latency_s == wse.inference(work.sparse(0.25), 64, machine="cs2").latency_s
    assert found.latency_s < plain.latency_s
    with pytest.raises(ValueError, match=r"density=\[0.25\]"):
        wse.sweep(work, [64], machine=thin)
