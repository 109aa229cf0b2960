"""The computer at hand: kernels counted exactly, rates read off exactly, costs that add."""

import json
import math
from dataclasses import replace
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wse
from wse.computer import Local, Rates, compiled, rates
from wse.computer.here import cache_file
from wse.computer.timings import LARGEST_FLOPS, Convolution, Convolutions
from wse.graph.flops import flops
from wse.machine.processors import Here


def table(**changes) -> Rates:
    """Rates that grow with each size, so that no two places are alike."""
    count = len(rates.SIZES) ** 3
    convolutions = 2 * len(rates.PIXELS) * len(rates.CHANNELS)
    made = Rates(
        computer="none",
        versions="none",
        products=tuple(1e9 * 1.1**i for i in range(count)),
        convolutions=tuple(1e9 * 1.2**i for i in range(convolutions)),
        bandwidth=(4e10, 2e10, 1e10, 5e9),
        slow_per_s=1e9,
        kernel_s=1e-6,
        call_s=1e-5,
    )
    return replace(made, **changes)


def of(f, *args):
    return compiled.kernels(jax.make_jaxpr(f)(*args))


def test_rates_are_read_off_where_they_were_measured():
    found = table()
    grid = np.reshape(found.products, (len(rates.SIZES),) * 3)
    for i, j, k in np.ndindex(grid.shape):
        shape = tuple(rates.SIZES[n] for n in (i, j, k))
        assert found.product(shape) == pytest.approx(grid[i, j, k])
    images = np.reshape(found.convolutions, (2, len(rates.PIXELS), len(rates.CHANNELS)))[0]
    for i, j in np.ndindex(images.shape):
        shape = (rates.PIXELS[i], rates.CHANNELS[j], rates.CHANNELS[j])
        assert found.convolution(shape) == pytest.approx(images[i, j])
    for nbytes, rate in zip(rates.WORKING_BYTES, found.bandwidth, strict=True):
        assert found.bytes_per_s(nbytes) == pytest.approx(rate)


def test_typical_rates_are_the_medians_of_each():
    slow, middle, odd = (table(kernel_s=s, bandwidth=(b, 2e10, 1e10, 5e9)) for s, b in TABLES)
    found = rates.typical([slow, middle, odd])
    assert found == table(kernel_s=2e-6, bandwidth=(3e10, 2e10, 1e10, 5e9))


TABLES = ((1e-6, 4e10), (2e-6, 3e10), (9e-6, 1e9))


@settings(deadline=None)
@given(st.lists(st.integers(1, 10**6), min_size=3, max_size=3))
def test_a_rate_between_lies_between_those_around_it(shape):
    found = table()
    assert min(found.products) <= found.product(shape) * (1 + 1e-9)
    assert found.product(shape) <= max(found.products) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("numbers", "left", "right"),
    [
        (((1,), (0,)), (3, 5), (5, 7)),
        (((1,), (1,)), (3, 5), (7, 5)),
        (((0,), (0,)), (5, 3), (5, 7)),
    ],
)
def test_products_keep_their_sizes_whatever_is_summed(numbers, left, right):
    (found,) = of(
        lambda a, b: jax.lax.dot_general(a, b, (numbers, ((), ()))),
        jnp.ones(left),
        jnp.ones(right),
    )
    assert (found.kind, found.shape) == ("product", (3, 7, 5))
    assert found.flops == 2 * 3 * 5 * 7
    assert found.nbytes == 4 * (15 + 35 + 21)


def test_a_batch_of_products_is_as_many():
    (found,) = of(lambda a, b: a @ b, jnp.ones((6, 3, 5)), jnp.ones((6, 5, 7)))
    assert (found.turns, found.copies, found.shape) == (1, 6, (3, 7, 5))


def test_on_a_card_a_batch_of_products_is_one_with_more_rows():
    (batch,) = of(lambda a, b: a @ b, jnp.ones((6, 3, 5)), jnp.ones((6, 5, 7)))
    (alone,) = of(lambda a, b: a @ b, jnp.ones((3, 5)), jnp.ones((5, 7)))
    (rows,) = of(lambda a, b: a @ b, jnp.ones((18, 5)), jnp.ones((5, 7)))
    processor, card = Local(table()), Local(table(together=True))
    assert processor.one(batch) == pytest.approx(6 * processor.one(alone))
    assert card.one(rows) <= card.one(batch) < 2 * card.one(rows) < processor.one(batch)


def test_a_chain_between_products_is_one_pass_over_what_it_reads():
    def f(a, b):
        return jnp.tanh(a @ b + 1.0) * 2.0

    product, chain = of(f, jnp.ones((3, 5)), jnp.ones((5, 7)))
    assert product.kind == "product"
    assert (chain.kind, chain.nbytes, chain.slow) == ("pass", 4 * 2 * 21, 21)


def test_a_product_takes_a_matrix_in_either_order():
    def f(a, b):
        return (a.T @ b).T

    assert [k.kind for k in of(f, jnp.ones((3, 5)), jnp.ones((3, 7)))] == ["product"]
    back = jax.vjp(jnp.matmul, jnp.ones((2, 3)), jnp.ones((3, 4)))[1]
    assert [k.kind for k in of(back, jnp.ones((2, 4)))] == ["product", "product"]


def test_other_transposes_are_passes_over_memory():
    (turned,) = of(lambda x: x.transpose(0, 2, 1), jnp.ones((2, 3, 4)))
    assert (turned.kind, turned.nbytes) == ("pass", 2 * 4 * 24)


def test_outputs_that_share_what_they_read_are_one_pass():
    (both,) = of(lambda x, y: (x + y, x / y), jnp.ones((8, 8)), jnp.ones((8, 8)))
    assert (both.kind, both.nbytes, both.slow) == ("pass", 4 * 4 * 64, round(0.2 * 64))


def test_a_reduction_ends_a_pass():
    found = of(lambda x: (x**2).sum() * jnp.ones(4), jnp.ones((8, 8)))
    assert [k.nbytes for k in found] == [4 * (64 + 1), 4 * (1 + 4)]


def test_what_several_results_share_is_computed_once():
    def doubled(x):
        x = jnp.tanh(x)
        for _ in range(12):
            x = x + 2 * x
        return x

    (one,) = of(doubled, jnp.ones(5))
    assert (one.slow, one.numbers, one.nbytes) == (5, 10, 40)


def test_a_scan_counts_its_body_once_per_turn():
    def f(x, weights):
        return jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, weights)[0]

    found = of(f, jnp.ones((2, 4)), jnp.ones((5, 4, 4)))
    assert {k.turns for k in found if k.kind == "product"} == {5}


@pytest.mark.parametrize("gradient", [False, True])
def test_convolutions_know_pixels_and_channels(gradient):
    image, kernel = jnp.ones((2, 8, 8, 3)), jnp.ones((3, 3, 3, 5))

    def forward(image, kernel):
        spec = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=spec)

    def back(image, cotangent):
        return jax.vjp(lambda k: forward(image, k), kernel)[1](cotangent)

    found = of(back, image, jnp.ones((2, 8, 8, 5))) if gradient else of(forward, image, kernel)
    (one,) = [k for k in found if k.kind == "convolution"]
    assert one.shape == (2 * 64, 3, 5)
    assert one.result == ("kernel" if gradient else "image")
    assert one.flops == 2 * 9 * 3 * 5 * 2 * 64


def net(widths):
    rng = np.random.default_rng(0)
    params = [jnp.asarray(rng.normal(size=pair), jnp.float32) for pair in pairwise(widths)]

    def loss(params, batch):
        h = batch
        for w in params:
            h = jnp.tanh(h @ w)
        return jnp.mean(h**2)

    return loss, params, jnp.ones((16, widths[0]))


def test_the_products_of_an_estimate_are_those_of_the_graph():
    loss, params, batch = net([10, 20, 30, 5])
    graph = wse.trace(loss, params, batch)
    closed = jax.make_jaxpr(jax.value_and_grad(loss))(params, batch)
    whole = sum(k.turns * k.copies * k.flops for k in compiled.kernels(closed))
    assert whole == flops(closed.jaxpr) == graph.forward_flops + graph.backward_flops
    parts = [k for layer in graph.layers for ks in _pairs(layer) for k in ks]
    assert sum(k.turns * k.copies * k.flops for k in parts) == whole


def _pairs(layer):
    from wse.computer.here import of_layer

    return of_layer(layer)


def test_costs_add_and_a_slower_computer_takes_longer():
    loss, params, batch = net([10, 20, 5])
    found = Local(table()).estimate(loss, params, batch, optax.adam(1e-3))
    parts = (*found.forward_s, *found.backward_s, found.optimizer_s, found.call_s)
    assert found.step_s == pytest.approx(sum(parts))
    assert found.samples_per_s == pytest.approx(16 / found.step_s)
    assert float(found.dataset.time_s.sum()) == pytest.approx(sum(parts[:-2]))
    slower = Local(table(kernel_s=2e-6)).estimate(loss, params, batch, optax.adam(1e-3))
    assert slower.step_s > found.step_s
    assert found.optimizer_s > 0
    for shown in (str(found), found._repr_html_()):
        assert "samples/s" in shown
        assert "optimizer" in shown


def test_an_update_reads_from_where_all_of_the_state_lies():
    count = 2**20
    here = Local(table(bandwidth=(4e10, 2e10, 1e10, 5e9), kernel_s=1e-9))
    params = [jnp.ones(count)] * 8

    def loss(params, batch):
        return sum((p * batch).sum() for p in params)

    found = here.estimate(loss, params, jnp.ones((4, 1)), optax.sgd(0.1))
    each = 3 * 4 * count  # gradient and weights read, weights written
    assert found.optimizer_s == pytest.approx(8 * each / here.rates.bytes_per_s(8 * each), rel=1e-3)
    assert here.rates.bytes_per_s(8 * each) < 0.8 * here.rates.bytes_per_s(each)


def test_a_graph_and_its_three_arguments_give_the_same():
    loss, params, batch = net([10, 20, 5])
    here = Local(table())
    assert here.estimate(wse.trace(loss, params, batch)) == here.estimate(loss, params, batch)


def test_what_a_remat_runs_again_is_counted_twice():
    loss, params, batch = net([10, 20, 20, 5])

    def under_remat(params, batch):
        return jax.checkpoint(loss)(params, batch)

    here = Local(table())
    plain, again = (here.estimate(f, params, batch) for f in (loss, under_remat))
    assert again.forward_s == pytest.approx(plain.forward_s, rel=0.2)
    assert sum(again.backward_s) > sum(plain.backward_s) + 0.5 * sum(plain.forward_s)
    graph = wse.trace(under_remat, params, batch)
    assert [layer.recomputed for layer in graph.layers] == [True, True, True]
    (_, backward), *_ = map(_pairs, graph.layers)
    assert len([k for k in backward if k.kind == "product"]) == 2  # forward again, and dw


def convolved(stride, image=(2, 8, 8, 3)):
    def forward(kernel, image):
        spec = ("NHWC", "HWIO", "NHWC")
        strides = (stride, stride)
        out = jax.lax.conv_general_dilated(image, kernel, strides, "SAME", dimension_numbers=spec)
        return (out**2).mean()

    return forward, jnp.ones((3, 3, 3, 5)), jnp.ones(image)


def test_each_kind_of_convolution_is_timed_once():
    met = []

    def clock(convolution):
        met.append(convolution)
        image, kernel = (jnp.ones(x.shape, x.dtype) for x in convolution.operands)
        assert convolution(image, kernel).dtype == jnp.float32  # it can be run as it was traced
        return 0.5

    here = Local(table(), Convolutions(clock))
    one, two = (here.estimate(*convolved(stride)) for stride in (1, 2))
    assert len(met) == len(set(map(str, met))) == 4  # forward and the kernel's gradient, each
    assert one.forward_s[0] == pytest.approx(0.5, rel=1e-3)
    assert two.backward_s[0] == pytest.approx(0.5, rel=1e-3)
    here.estimate(*convolved(1))
    assert len(met) == 4


def test_a_convolution_too_large_to_try_is_taken_from_the_table():
    def clock(_):
        raise AssertionError

    loss, kernel, _ = convolved(1)
    image = jax.ShapeDtypeStruct((64, 512, 512, 3), jnp.float32)
    graph = wse.trace(loss, kernel, image)
    assert graph.layers[0].work.forward_flops > LARGEST_FLOPS
    assert Local(table(), Convolutions(clock)).estimate(graph) == Local(table()).estimate(graph)


def test_seconds_of_convolutions_are_remembered_for_this_computer_alone(tmp_path):
    path, of = tmp_path / "convolutions.json", ("here", "jax 1")
    (closed,) = [jax.make_jaxpr(jax.grad(convolved(2)[0]))(*convolved(2)[1:])]
    one = next(Convolution.of(e) for e in closed.eqns if e.primitive.name == "conv_general_dilated")
    assert Convolutions(lambda _: 2.0, path=path, of=of)(one) == 2.0
    assert Convolutions(lambda _: 3.0, path=path, of=of)(one) == 2.0
    assert Convolutions(lambda _: 4.0, path=path, of=("another", "jax 1"))(one) == 4.0
    start = '{"of": ["here", "jax 1"], "seconds": '
    endless = start + json.dumps({str(one): math.inf}) + "}"
    for broken in ("{", "[]", start + '{"a": "b"}}', endless):
        path.write_text(broken)
        assert Convolutions(lambda _: 5.0, path=path, of=of)(one) == 5.0


def test_rates_are_remembered_for_this_computer_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("SCIML_CACHE", str(tmp_path))
    calls = []

    def measured():
        from wse.computer.measure import computer, together

        calls.append(1)
        versions = f"jax {jax.__version__}"
        return table(computer=computer(), versions=versions, together=together())

    monkeypatch.setattr("wse.computer.here.measure", measured)
    assert wse.local() == wse.local()
    assert len(calls) == 1
    said = json.loads(cache_file().read_text())
    cache_file().write_text(json.dumps({**said, "computer": "another"}))
    wse.local()
    assert len(calls) == 2
    other = json.loads(cache_file().read_text())
    cache_file().write_text(json.dumps({**other, "together": not other["together"]}))
    wse.local()
    assert len(calls) == 3
    cache_file().write_text("{")
    wse.local(again=True)
    assert len(calls) == 4
    assert [p.name for p in cache_file().parent.iterdir()] == ["rates.json"]


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"bandwidth": (1.0, 2.0)}, "bandwidth has 2 rates; it must have 4"),
        ({"kernel_s": 0.0}, "kernel_s has a rate that is not positive"),
    ],
)
def test_a_table_that_holds_no_rates_is_refused(changes, rule):
    with pytest.raises(ValueError, match=rule):
        table(**changes)


def test_a_small_measurement_gives_positive_times():
    from wse.computer.measure import computer, convolution_seconds, seconds

    assert seconds(jax.jit(lambda x: x + 1), jnp.ones(4)) > 0
    loss, *shapes = convolved(1)
    met = []
    Local(table(), Convolutions(lambda one: met.append(one) or 1.0)).estimate(loss, *shapes)
    assert 0 < convolution_seconds(met[0], table()) < 1
    assert "cores" in computer()


def test_this_computer_is_a_machine_too(monkeypatch):
    monkeypatch.setattr(wse.computer, "local", lambda: Local(table()))
    found = wse.estimate(wse.workload.dense(width=512), batch=100, machine="here", samples=1000)
    sizes = [(x.inputs, x.outputs) for x in found.workload.layers]
    step_s = Local(table()).dense_step_s(sizes, 100)
    assert found.train_s == pytest.approx(10 * step_s)
    low_s, high_s = found.training_interval_s
    assert low_s < found.train_s < high_s
    params, batch = jnp.ones((6, 2)), (jnp.ones((5, 6)), jnp.ones((5, 2)))

    def asked(p, b):
        return jnp.mean((b[0] @ p - b[1]) ** 2)

    step_s = Local(table()).estimate(asked, params, batch).step_s
    for model in ((asked, params, batch), (wse.trace(asked, params, batch),)):
        found = wse.estimate(*model, machine="here", samples=1000)
        assert found.train_s == pytest.approx(1000 * step_s / 5)
        assert found.batch == 5
    with pytest.raises(ValueError, match="GPT-2-small is known by its shapes alone"):
        wse.estimate("GPT-2-small", machine="here")
    with pytest.raises(ValueError, match="systems of here is 4; this computer is one"):
        replace(Here(), systems=4)
