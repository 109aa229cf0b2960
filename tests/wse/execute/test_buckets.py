"""Sums over systems in buckets: every array in one, and the numbers of one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wse.devices import run_on_8_devices
from wse.execute.buckets import buckets

arrays = st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["f4", "f8", "i4"])), max_size=12)


@settings(deadline=None)
@given(arrays, st.integers(0, 200))
def test_every_array_is_in_one_bucket_of_its_type_and_size(made, bucket_bytes):
    held = [np.zeros(size, dtype) for size, dtype in made]
    found = buckets(held, bucket_bytes)
    assert sorted(i for bucket in found for i in bucket) == list(range(len(held)))
    for bucket in found:
        assert len({held[i].dtype for i in bucket}) == 1
        assert len(bucket) == 1 or sum(held[i].nbytes for i in bucket) <= bucket_bytes


def test_small_arrays_share_a_bucket_though_a_large_one_lies_between():
    held = [np.zeros(2), np.zeros(100), np.zeros(3)]
    assert sorted(buckets(held, 100)) == [[0, 2], [1]]


def test_a_visit_of_the_streaming_executor_reduces_all_its_gradients_at_once():
    """XLA combines what one program reduces; small neighbours share a visit, and so its sum."""
    printed = run_on_8_devices(
        """
        import jax, numpy as np, wse
        from tests.wse.chain import chain, loss, pairs
        from wse.execute.streaming import passes as streaming

        compiled = streaming.jax.jit
        texts = []

        def jit(function, **options):
            program = compiled(function, **options)
            def run(*args):
                if function.__name__ == "back":
                    texts.append(program.lower(*args).compile().as_text())
                return program(*args)
            return run

        wide, narrow = chain(64, 1, np.float32)[0], chain(16, 3, np.float32)
        def narrowing(params, batch):
            x, y = batch
            x = jax.numpy.tanh(x @ params[0]["w"] + params[0]["b"])
            return loss(params[1:], (x[:, :16], y[:, :16]))

        streaming.jax.jit, params = jit, [wide, *narrow]
        batch = pairs(64, 16, dtype=np.float32)
        executor = wse.CS2(8).executor(narrowing, params, batch)
        value, gradients = executor.value_and_grad(params, batch)
        plain = jax.grad(narrowing)(params, batch)
        for a, b in zip(jax.tree.leaves(gradients), jax.tree.leaves(plain), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6)
        trained = [layer.name for layer in executor.graph.layers if layer.demand.any]
        sums = [sum(" all-reduce(" in line for line in text.splitlines()) for text in texts]
        print(len(wse.trace(narrowing, params, batch).layers), len(trained), *sums)
        """
    )
    assert printed.split() == ["4", "2", "1", "1"]


@pytest.mark.slow
def test_systems_keep_their_gradients_until_the_whole_net_is_added_up():
    printed = run_on_8_devices(
        """
        import runpy, jax, numpy as np, optax, wse
        from jax.sharding import PartitionSpec
        from wse.execute.buckets import reducer
        from wse.execute.swarmx import SwarmX
        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_disable_most_optimizations", True)
        swarm, draw = SwarmX(8), np.random.default_rng(0)
        stacks = [draw.normal(size=(8, *s)).astype(t) for s, t in
                  (((3, 5), "f8"), ((70,), "f8"), ((4,), "f4"), ((), "f8"))]
        for size in (0, 64, 10**6):
            totals = reducer(swarm.mesh, size)(swarm.deal(stacks, 8))
            for total, stack in zip(totals, stacks):
                np.testing.assert_allclose(total, stack.sum(0), rtol=1e-5)
                assert total.dtype == stack.dtype and total.sharding.is_fully_replicated

        def far(a, b):
            return max(float(np.max(np.abs(np.asarray(x) - y), initial=0))
                       for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))

        MODELS = runpy.run_path("validation/contract/models.py")["MODELS"]
        for name, systems, keep in (("dense", 4, False), ("linen", 2, True)):
            case = MODELS[name]()
            value, gradients = jax.jit(jax.value_and_grad(case.loss))(case.params, case.batch)
            executor = wse.CS2(systems, "pipelined").executor(
                case.loss, case.params, case.batch, optax.sgd(0.1),
                micro_batches=2, keep_residuals=keep)
            found, ours = executor.value_and_grad(case.params, case.batch)
            assert abs(found - value) < 1e-12 and far(ours, gradients) < 1e-12
            state, _ = executor.train_step(executor.init(case.params), case.batch)
            plain = jax.tree.map(lambda p, g: p - 0.1 * g, case.params, gradients)
            assert far(state.params, plain) < 1e-12
            run = executor.run
            print(executor.flow.lanes, sum(e.kind == "gradient" for e in run.events))

        case = MODELS["linen"]()
        plain = wse.precision.mixed(
            case.loss, case.params, case.batch, wse.precision.CBFLOAT16)
        gradients = jax.jit(jax.grad(plain))(case.params, case.batch)
        executor = wse.CS2(2, "pipelined", precision="cbfloat16").executor(
            case.loss, case.params, case.batch, micro_batches=2)
        _, ours = executor.value_and_grad(case.params, case.batch)
        print(far(ours, gradients) < 1e-12)
        """
    )
    assert printed.split() == ["4", "1", "2", "1", "True"]
