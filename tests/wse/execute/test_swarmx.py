"""Several systems: `wse.pmap` means what `jax.pmap` means, and nothing hangs."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wse
from tests.wse.devices import run_on_8_devices
from wse.execute.swarmx import SwarmX


def test_pmap_equals_jax_pmap_over_its_arguments():
    run_on_8_devices(
        """
        import jax, jax.numpy as jnp, numpy as np, wse
        from jax import lax

        def everything(a, b, power, *, c=0.0):
            ring = [(i, (i + 1) % 4) for i in range(4)]
            return {
                "sum": lax.psum(a * b["w"], "i") ** power + c,
                "mean": lax.pmean(a, "i"),
                "most": lax.pmax(a, "i"),
                "index": lax.axis_index("i"),
                "all": lax.all_gather(a, "i"),
                "ring": lax.ppermute(a, "i", ring),
            }

        a, w = np.arange(8.0).reshape(4, 2), np.arange(3.0, 5.0)
        cases = [
            dict(in_axes=(0, None, None), out_axes=0),
            dict(in_axes=(0, None, None), out_axes=0, backend="cpu"),
            dict(in_axes=(0, None, None), out_axes=0, donate_argnums=(0,)),
            dict(in_axes=(0, {"w": None}, None), out_axes={
                "sum": None, "mean": None, "most": 0, "index": 0, "all": None, "ring": 1}),
            dict(in_axes=(1, None, None), out_axes=0, axis_size=4),
            dict(in_axes=(0, None, None), devices=jax.devices()[2:6]),
        ]
        for options in cases:
            given = a.T if options["in_axes"][0] == 1 else a
            ours, theirs = (
                wse.pmap(everything, "i", static_broadcasted_argnums=2, engine=e, **options)(
                    given, {"w": w}, 2)
                for e in ("mesh", "pmap")
            )
            jax.tree.map(np.testing.assert_array_equal, ours, theirs)

        def both(call):
            return [call(engine) for engine in ("mesh", "pmap")]

        jax.tree.map(np.testing.assert_array_equal, *both(lambda e: wse.pmap(
            everything, "i", (0, None, None), static_broadcasted_argnums=2, engine=e
        )(a, {"w": w}, 1, c=np.arange(4.0))))
        np.testing.assert_allclose(*both(lambda e: jax.grad(lambda x: wse.pmap(
            lambda x: lax.psum(jnp.sin(x), "i"), "i", engine=e)(x).sum())(a)), rtol=1e-6)
        donated = jnp.ones((4, 3))
        assert wse.pmap(lambda x: x + 1, donate_argnums=0)(donated).sum() == 24
        laid = wse.pmap(lambda x: 2 * x)(np.ones((8, 2)))
        assert len(laid.sharding.device_set) == 8
        folded = wse.pmap(lambda x: x - lax.pmean(x, "i"), "i")(np.arange(24.0))
        np.testing.assert_allclose(folded, np.arange(24.0) - 11.5)
        nested = wse.pmap(wse.pmap(lambda x: lax.psum(x, ("i", "j")), "j"), "i")(np.ones((4, 2)))
        assert (nested == 8).all()
        """
    )


def test_pmap_on_a_mesh_holds_shardings_within_a_system():
    run_on_8_devices(
        """
        import jax, jax.numpy as jnp, numpy as np, wse
        from jax import lax
        from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
        jax.config.update("jax_disable_most_optimizations", True)

        mesh = Mesh(np.array(jax.devices()).reshape(2, 2, 2), ("system", "row", "column"))
        inside = P("row", "column")

        def total(y):
            return jax.shard_map(lambda y: lax.psum(y.sum(), ("row", "column")),
                                 mesh=mesh, in_specs=inside, out_specs=P())(y)

        def laid(w, x):
            y = lax.with_sharding_constraint(jnp.sin(x @ w), NamedSharding(mesh, inside))
            return y - lax.pmean(y, "system"), total(y ** 2)

        def whole(w, x):
            y = jnp.sin(x @ w)
            return y - lax.pmean(y, "system"), (y ** 2).sum()

        draw = np.random.default_rng(0)
        w = draw.normal(size=(4, 4)).astype("f4")
        for systems in (2, 4):
            x = draw.normal(size=(systems, 8, 4)).astype("f4")
            maps = [wse.pmap(laid, "system", (None, 0), devices=mesh),
                    jax.vmap(whole, (None, 0), axis_name="system")]

            def loss(w, mapped):
                apart, square = mapped(w, x)
                return (apart ** 3).sum() + square.mean()

            def both(w, mapped):
                return mapped(w, x), jax.grad(loss)(w, mapped)

            ours, plain = (jax.jit(both, static_argnums=1)(w, mapped) for mapped in maps)
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-4), ours, plain)
            assert maps[0](w, x)[0].sharding.spec == P("system", *inside)
        """
    )


def test_a_loss_over_a_mesh_of_its_own_runs_on_these_devices_and_is_refused_on_others():
    run_on_8_devices(
        """
        import jax, jax.numpy as jnp, numpy as np, pytest, wse
        from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

        def mapped(mesh):
            return jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("i"), out_specs=P("i"))

        def laid(mesh):
            return lambda y: jax.lax.with_sharding_constraint(y, NamedSharding(mesh, P("i")))

        def looped(mesh):
            return lambda y: jax.lax.fori_loop(0, 2, lambda _, y: mapped(mesh)(y), y)

        devices = np.array(jax.devices())
        w, x = np.ones((3, 2), "f4"), np.arange(24, dtype="f4").reshape(8, 3)
        for within in (mapped, laid, looped):
            def loss(over):
                return lambda w, x: jnp.sum(within(Mesh(over, "i"))(x @ w))

            wanted = jax.value_and_grad(loss(devices))(w, x)
            for mode in ("streaming", "pipelined"):
                found = wse.CS2(systems=8, mode=mode).executor(loss(devices), w, x)
                jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5),
                             found.value_and_grad(w, x), wanted)
                for systems, over in ((2, devices), (8, devices[:2]), (8, devices[::-1])):
                    with pytest.raises(ValueError, match="over a mesh of .* leave it out") as told:
                        wse.CS2(systems=systems, mode=mode).executor(loss(over), w, x)
                    assert "\\n" not in str(told.value)
        """
    )


def test_300_calls_of_pmap_that_nobody_awaits_do_not_hang():
    run_on_8_devices(
        """
        import jax, jax.numpy as jnp, numpy as np, wse
        from jax import lax

        step = wse.pmap(lambda w: w - lax.pmean(jnp.sin(w), "system"), "system")
        w = jnp.arange(8.0)
        for _ in range(300):
            w = step(w)
        assert len(w.sharding.device_set) == 8 and np.isfinite(w).all()
        """
    )


def test_streaming_on_many_systems_gives_the_numbers_of_one():
    printed = run_on_8_devices(
        """
        import runpy, jax, numpy as np, optax, wse
        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_disable_most_optimizations", True)
        MODELS = runpy.run_path("validation/contract/models.py")["MODELS"]

        def far(a, b):
            squares = jax.tree.map(lambda x, y: float(np.sum((np.asarray(x) - y) ** 2)), a, b)
            return sum(jax.tree.leaves(squares)) ** 0.5

        for name, systems in (("dense", (2, 8)), ("nnx_scanned", (4,))):
            case = MODELS[name]()
            value, gradients = jax.jit(jax.value_and_grad(case.loss))(case.params, case.batch)
            for n in systems:
                executor = wse.CS2(n).executor(case.loss, case.params, case.batch, optax.sgd(0.1))
                streamed, found = executor.value_and_grad(case.params, case.batch)
                nothing = jax.tree.map(np.zeros_like, gradients)
                assert far(found, gradients) <= 1e-9 * far(gradients, nothing)
                assert abs(streamed - value) < 1e-12
                state, _ = executor.train_step(executor.init(case.params), case.batch)
                plain = jax.tree.map(lambda p, g: p - 0.1 * g, case.params, gradients)
                assert far(state.params, plain) < 1e-9
                print(name, n, executor.run.systems)
        """
    )
    assert printed.split() == ["dense", "2", "2", "dense", "8", "8", "nnx_scanned", "4", "4"]


def test_systems_fold_onto_the_devices_present():
    assert len(SwarmX(6).devices) == 1
    eight = tuple(range(8))
    folded = [len(SwarmX(n, eight).devices) for n in (1, 2, 6, 7, 9, 11, 16)]
    assert folded == [1, 2, 6, 7, 3, 1, 8]


def test_a_share_is_of_the_largest_array():
    swarm = SwarmX(2)
    with pytest.raises(ValueError, match="the batch has 7 samples for 2 systems"):
        swarm.check(7)


@pytest.mark.parametrize("engine", ["mesh", "pmap"])
def test_pmap_takes_every_argument_of_jax_pmap(engine):
    known = inspect.signature(jax.pmap).parameters
    ours = inspect.signature(wse.pmap).parameters
    assert set(ours) - set(known) == {"engine"}
    assert set(known) <= set(ours)
    mapped = wse.pmap(
        lambda a, b, power: {"sum": jax.lax.psum(a * b["w"], "i") ** power, "own": a},
        "i",
        in_axes=(1, {"w": None}, None),
        out_axes={"sum": None, "own": 1},
        static_broadcasted_argnums=2,
        devices=None if engine == "mesh" else jax.devices("cpu")[:1],
        axis_size=1,
        donate_argnums=0,
        backend="cpu" if engine == "mesh" else None,
        engine=engine,
    )
    found = mapped(np.arange(3.0)[:, None], {"w": np.float32(2)}, 2)
    np.testing.assert_array_equal(found["sum"], [0, 4, 16])
    np.testing.assert_array_equal(found["own"], [[0], [1], [2]])


def test_pmap_refuses_what_it_cannot_map():
    with pytest.raises(ValueError, match="engine is 'rings'"):
        wse.pmap(lambda x: x, engine="rings")
    with pytest.raises(ValueError, match="pass axis_size=2"):
        wse.pmap(lambda x: x, in_axes=None)(jnp.ones(3))
    with pytest.raises(ValueError, match="inconsistent sizes"):
        wse.pmap(lambda x, y: x + y)(jnp.ones(3), jnp.ones(2))

    for call in (lambda: wse.pmap(jnp.sin)(3.0), lambda: wse.pmap(jnp.sin, in_axes=2)(jnp.ones(3))):
        with pytest.raises(
            ValueError, match=r"argument 0 is mapped along axis \d and has shape \("
        ):
            call()

    def pair(x, y):
        return x + y

    assert wse.pmap(pair).__name__ == "pair"
    with pytest.raises(ValueError, match=r"in_axes is \(0,\) for 2 .* pass in_axes=\(0, None\)"):
        wse.pmap(pair, in_axes=(0,))(jnp.ones(3), jnp.ones(3))
    with pytest.raises(NotImplementedError, match="axis_index_groups"):
        wse.pmap(lambda x: jax.lax.psum(x, "i", axis_index_groups=[[0], [1]]), "i")(jnp.ones(2))


def test_pmap_refuses_a_mesh_that_its_systems_do_not_fold_onto():
    def mesh(axis):
        return jax.sharding.Mesh(np.array(jax.devices()[:1]), (axis,))

    assert wse.pmap(lambda x: -x, devices=mesh("system"))(jnp.ones(3)).tolist() == [-1] * 3
    with pytest.raises(ValueError, match=r"a mesh of {'row': 1} for 3 systems.*pass one of size 3"):
        wse.pmap(lambda x: -x, devices=mesh("row"))(jnp.ones(3))
    with pytest.raises(ValueError, match=r"devices is a mesh; .* pass engine='mesh'"):
        wse.pmap(lambda x: x, devices=mesh("system"), engine="pmap")


def test_pmap_needs_no_device_per_system():
    assert jax.device_count() < 12
    np.testing.assert_allclose(wse.pmap(lambda x: jax.lax.psum(x, "i"), "i")(jnp.ones(12)), 12)


def test_what_is_mapped_may_close_over_what_is_traced():
    x = np.arange(12, dtype="f4").reshape(4, 3)

    def total(w):
        return wse.pmap(lambda row: row * w)(x).sum()

    assert jax.jit(total)(2.0) == 132
    assert jax.grad(total)(2.0) == jax.grad(jax.jit(total))(2.0) == 66
    np.testing.assert_array_equal(jax.vmap(total)(np.arange(3.0)), [0, 66, 132])


def test_one_sample_in_a_part_is_followed_through_reshapes():
    run_on_8_devices(
        """
        import jax, jax.numpy as jnp, numpy as np, wse

        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_disable_most_optimizations", True)

        def loss(weights, x):
            first, second, third = weights
            x = jnp.tanh(x @ first).reshape(-1, 2, 2).transpose(1, 0, 2).reshape(-1, 4)
            x = jnp.roll(jnp.tanh(x @ second), 3, axis=0)
            x = jax.vmap(lambda c: jnp.sort(c[1:]), in_axes=1, out_axes=1)(jnp.tanh(x @ third))
            return jnp.mean(x**2)

        draw = np.random.default_rng(0)
        weights, x = [draw.normal(size=(4, 4)) for _ in range(3)], draw.normal(size=(9, 4))
        ours = wse.CS2(3, "pipelined").executor(loss, weights, x).value_and_grad(weights, x)
        plain = jax.value_and_grad(loss)(weights, x)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9), ours, plain)
        """
    )
