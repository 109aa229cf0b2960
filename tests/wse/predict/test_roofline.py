"""GPUs, TPUs and CPUs: what was fitted, and what must hold of any of them."""

import functools
import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wse
from wse.machine.processors import A100, H100, PROCESSORS, Processors
from wse.predict import roofline, trainings
from wse.workload import dense

# mosaicml/llm-foundry: micro-batches of 2048 tokens on 8 x A100, without recomputation.
MICRO = {"125m": 40, "350m": 32, "760m": 24, "1b": 14, "3b": 10, "7b": 6, "13b": 2}


@pytest.mark.parametrize("name", ["A100", "H100", "TPU v5e"])
def test_a_model_left_out_is_estimated_within_a_quarter(name: str):
    found = roofline.left_out(name)
    assert found
    for run, ratio in found:
        if run.is_convolutional:  # three nets, two of them with several times the time of the first
            assert 0.4 < ratio < 2.5
        else:
            assert 0.79 < ratio < 1.27
    low, high = roofline.fit(name).spread["product"]
    assert high / low < 1.6


@pytest.mark.parametrize(("name", "micro"), [*MICRO.items()])
def test_the_published_micro_batches_fit(name: str, micro: int):
    work = trainings.language(trainings.MPT[name], 2048)
    again, batches = roofline._memory(work, Processors(A100, 8), 8 * micro)
    assert (again, batches) == (0.0, 1)


def test_the_widest_published_are_computed_again_as_published():
    work = trainings.language(trainings.MPT["30b"], 2048)
    assert roofline._memory(work, Processors(A100, 8), 24)[0] == 1.0


@settings(deadline=None, max_examples=15)
@given(st.sampled_from(PROCESSORS), st.integers(8, 2048), st.integers(1, 8), st.integers(1, 64))
def test_estimates_keep_the_machines_limits(device, width, depth, count):
    net, cluster = dense(width=width, depth=depth), Processors(device, count)
    found = wse.estimate(net, batch=64 * count, machine=cluster, samples=10**6)
    flops = 10**6 * (net.forward_flops + net.backward_flops)
    fastest, slowest = found.training_interval_s
    assert flops / fastest <= count * device.flops_per_s.value * 1.01
    assert fastest <= found.train_s <= slowest
    low_s, high_s = found.setup_interval_s
    assert low_s <= found.setup_s <= high_s
    assert found.total_s == pytest.approx(sum(phase.time_s for phase in found.phases))
    twice = wse.estimate(net, batch=64 * count, machine=cluster, samples=2 * 10**6)
    assert twice.train_s == pytest.approx(2 * found.train_s)


@pytest.mark.parametrize("name", ["8 x a100", "8 x h100", "64 x tpu v4"])
def test_gradients_hide_behind_what_lasts(name: str):
    net, times = dense(width=2), []
    for batch in (128, 1024, 4096, 16384, 65536):
        times.append(wse.estimate(net, batch=batch, machine=name, samples=10**6).step_s)
    assert all(b > (1 - 1e-9) * a for a, b in pairwise(times))


def test_devices_share_a_large_batch():
    net = trainings.language(trainings.MPT["1b"], 2048)
    one, eight = (
        wse.estimate(net, batch=1024, machine=Processors(A100, count), samples=10**5)
        for count in (1, 8)
    )
    assert 1.0 <= 8 * eight.train_s / one.train_s < 1.05
    assert wse.estimate(net.sparse(0.5), batch=64, machine=A100, samples=100).cautions


def test_a_published_rate_is_near_and_names_mean_the_same():
    """MPT-7B at 2048 tokens on 8 x H100: 10,643 tokens/s of one (mosaicml/llm-foundry)."""
    net = trainings.language(trainings.MPT["7b"], 2048)
    found = wse.estimate(net, batch=64, machine="8 x h100")
    assert found.samples_per_s * 2048 == pytest.approx(8 * 10_643, rel=0.15)
    assert found.train_s == wse.estimate(net, batch=64, machine=Processors(H100, 8)).train_s
    compared = wse.compare(net, batch=64, machines=["8 x h100"]).able[0]
    assert compared.total_s(10**6)[1] == pytest.approx(found.total_s)
    json.dumps(found.document(), allow_nan=False)
    assert dict(found.dataset.sizes) == {"phase": 6}


@pytest.mark.parametrize("name", ["h100", "here"])
def test_what_a_device_has_not_is_refused(name: str):
    net = dense(width=64)
    for option, value in {"release": "2.0", "micro_batch": 4, "replicas": 2}.items():
        with pytest.raises(ValueError, match=rf"{option} is .*has not: leave it out"):
            wse.estimate(net, machine=name, **{option: value})
    for call in (wse.check, wse.inference):
        with pytest.raises(ValueError, match=r"no wafer; wse\.estimate and wse.compare take it"):
            call("FC-MNIST", machine=name)
    with pytest.raises(ValueError, match="batch is 100 on 3 x H100"):
        wse.estimate(net, batch=100, machine="3 x h100")


@pytest.mark.parametrize(
    ("option", "value", "mode"), [("micro_batch", 1, "pipelined"), ("replicas", 4, "streaming")]
)
def test_what_the_other_mode_has_is_refused(option: str, value: int, mode: str):
    with pytest.raises(ValueError, match=rf"{option} is {value}, which .* has not: leave it out"):
        wse.estimate(dense(width=64), machine=wse.CS2(mode=mode), **{option: value})


@functools.cache
def traced(name: str):
    """A model by name as its graph, which all machines are asked about."""
    made = wse.zoo.traceable(name, 1)
    return wse.trace(made.loss, made.params, made.batch)


@pytest.mark.slow
def test_it_says_what_is_meant_of_arithmetic_and_attention():
    for machine in ("h100", "cs2", "cs3"):
        assert "attention fused" in wse.estimate("GPT-2-small", machine=machine, batch=8).why
        assert "attention" not in wse.estimate("ResNet-50", machine=machine, batch=8).why
        for name, keeps in (("GPT-2-small", True), ("ResNet-50", False)):
            found = wse.estimate(traced(name), batch=8, machine=machine).why
            assert ("matrices are written and kept" in found) == keeps
    assert "half precision" in wse.estimate("GPT-2-small", machine="h100", batch=8).why
    assert "single precision," in wse.estimate(wse.workload.dense(), machine="table 4 cpu").why


def recurrence(turn_by_turn: bool):
    pytest.importorskip("jax")
    from benchmarks.beside_nets import selective_scan

    return wse.trace(*selective_scan(turn_by_turn, samples=1, length=1024, width=256))


@pytest.mark.parametrize("machine", ["h100", "tpu v5e"])
def test_it_says_what_scans_read_and_write_beside_products(machine: str):
    found = wse.estimate(recurrence(turn_by_turn=False), machine=machine, batch=64)
    (said,) = [x for x in found.cautions if "beside products" in x]
    assert "GB a sample" in said
    assert "turns" not in said
    assert "e+" not in said
    found = wse.estimate(recurrence(turn_by_turn=True), machine=machine, batch=64)
    assert any("1,024 turns" in x for x in found.cautions)


@pytest.mark.parametrize("machine", ["h100", "cpu node"])
def test_it_says_what_norms_of_narrow_nets_read_and_write_forward_and_backward(machine: str):
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def loss(p, x):
        for w in p:
            y = x - x.mean(-1, keepdims=True)
            x = x + jax.nn.gelu(y * jax.lax.rsqrt((y**2).mean(-1, keepdims=True) + 1e-5) @ w)
        return jnp.mean(x**2)

    for width, speaks in ((32, True), (8192, False)):
        sizes = [jax.ShapeDtypeStruct((width, width), "float32")] * 6
        batch = jax.ShapeDtypeStruct((6400, 256, width), "float32")
        found = wse.estimate(wse.trace(loss, sizes, batch), machine=machine)
        said = [x for x in found.cautions if "beside products" in x]
        assert bool(said) == speaks
        assert all(("on a CPU" in x) == (machine == "cpu node") for x in said)


@pytest.mark.parametrize("machine", ["h100", "a100", "tpu v5e", "cpu node"])
@pytest.mark.parametrize("name", ["GPT-2-small", "ResNet-50", "U-Net-Severstal", "FC-MNIST"])
def test_nets_as_the_published_ones_are_within_what_was_fitted(name: str, machine: str):
    found = wse.estimate(traced(name), machine=machine, batch=64)
    assert not [x for x in found.cautions if "beside products" in x]
