"""GPUs, TPUs and CPUs: what was fitted, and what must hold of any of them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wse.machine.processors import A100, PROCESSORS, Processors
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
    found = roofline.train(net, cluster, 10**6, 64 * count)
    flops = 10**6 * (net.forward_flops + net.backward_flops)
    fastest, slowest = found.training_interval_s
    assert flops / fastest <= count * device.flops_per_s.value * 1.01
    assert fastest <= found.train_s <= slowest
    low_s, high_s = found.setup_interval_s
    assert low_s <= found.setup_s <= high_s
    assert max(found.parts_s.values()) <= found.train_s * 1.01 + found.parts_s["reduce"]
    twice = roofline.train(net, cluster, 2 * 10**6, 64 * count)
    assert twice.train_s == pytest.approx(2 * found.train_s)


def test_devices_share_a_large_batch():
    net = trainings.language(trainings.MPT["1b"], 2048)
    one = roofline.train(net, Processors(A100), 10**5, 1024)
    eight = roofline.train(net, Processors(A100, 8), 10**5, 1024)
    assert 1.0 <= 8 * eight.train_s / one.train_s < 1.05
    assert roofline.train(net.sparse(0.5), Processors(A100), 100, 64).cautions
