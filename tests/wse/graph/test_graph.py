"""Any training function becomes ordered layers; what cannot is refused with the reason."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import wse
from wse.graph.flops import flops


def shapes(**sizes: tuple[int, ...]) -> dict[str, jax.ShapeDtypeStruct]:
    return {name: jax.ShapeDtypeStruct(size, jnp.float32) for name, size in sizes.items()}


def chain(params, x):
    for w in params["layers"]:
        x = jnp.tanh(x @ w["w"])
    return jnp.mean(x**2)


def layers(count: int, width: int = 4):
    return {"layers": [shapes(w=(width, width)) for _ in range(count)]}


X = jax.ShapeDtypeStruct((2, 4), jnp.float32)


def test_layers_come_in_order_and_twins_share_a_program():
    graph = wse.trace(chain, layers(5), X)
    assert [layer.name for layer in graph.layers] == [f"layers.{i}" for i in range(5)]
    assert [layer.parameters for layer in graph.layers] == [(f"layers.{i}.w",) for i in range(5)]
    # The first needs no gradient of the samples, the last makes the loss.
    assert [layer.program for layer in graph.layers] == [0, 1, 1, 1, 2]
    assert all(layer.source.startswith("test_graph.py:") for layer in graph.layers)


def test_a_cell_of_a_notebook_is_no_file_with_a_number_for_a_name():
    code = "\ndef loss(params, x):\n    return (x @ params['w']).mean()\n"
    names: dict = {"__name__": "__main__"}
    exec(compile(code, "/tmp/ipykernel_71/2873553356.py", "exec"), names)
    (layer,) = wse.trace(names["loss"], shapes(w=(4, 4)), X).layers
    assert layer.source == "line 3 of a cell"


def test_a_model_of_any_size_costs_nothing_to_trace():
    graph = wse.trace(chain, layers(3, 100_000), jax.ShapeDtypeStruct((8, 100_000), jnp.float32))
    assert graph.weight_bytes == 3 * 4 * 10**10
    assert graph.forward_flops == 3 * 2 * 8 * 10**10
    assert graph.backward_flops == 5 * 2 * 8 * 10**10


def test_a_skip_is_read_by_a_later_layer():
    def loss(p, x):
        first = jnp.tanh(x @ p["a"]["w"])
        return jnp.mean((jnp.tanh(jnp.sin(first @ p["b"]["w"])) + first) @ p["c"]["w"])

    params = {name: shapes(w=(4, 4)) for name in "abc"}
    graph = wse.trace(loss, params, X)
    a, b, c = graph.layers
    assert graph.skips(c) == ()
    assert set(b.reads) == set(a.writes)

    def longer(p, x):
        first = jnp.tanh(x @ p["a"]["w"])
        return jnp.mean(jnp.tanh(first @ p["b"]["w"]) @ p["c"]["w"] * first)

    a, b, c = (graph := wse.trace(longer, params, X)).layers
    assert graph.skips(c) == a.writes


def test_a_shared_weight_is_visited_at_each_use():
    def loss(p, x):
        h = jnp.tanh(x @ p["a"]["w"])
        return jnp.mean(jnp.tanh(h @ p["b"]["w"]) @ p["a"]["w"].T)

    names = [x.name for x in wse.trace(loss, {n: shapes(w=(4, 4)) for n in "ab"}, X).layers]
    assert names == ["a", "b", "a#2"]


def test_a_scan_over_stacked_layers_is_one_layer_per_slice():
    def loss(p, x):
        return jnp.mean(jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, p["stack"])[0])

    graph = wse.trace(loss, shapes(stack=(4, 4, 4)), X)
    assert [layer.name for layer in graph.layers] == [f"stack[{i}]" for i in range(4)]
    assert graph.programs == 3
    assert {layer.work.weight_bytes for layer in graph.layers} == {4 * 16}


def test_weights_are_cast_where_they_are_used():
    def loss(p, x):
        low = jax.tree.map(lambda w: w.astype(jnp.bfloat16), p)
        return chain(low, x.astype(jnp.bfloat16)).astype(jnp.float32)

    graph = wse.trace(loss, layers(3), X)
    assert [len(layer.weights) for layer in graph.layers] == [1, 1, 1]


def test_norms_and_biases_share_the_visit_of_a_large_neighbour():
    module = nnx.eval_shape(
        lambda: nnx.Sequential(
            nnx.Linear(64, 64, rngs=nnx.Rngs(0)),
            nnx.LayerNorm(64, rngs=nnx.Rngs(0)),
            nnx.Linear(64, 64, rngs=nnx.Rngs(0)),
        )
    )
    graph, params = nnx.split(module)
    x = jax.ShapeDtypeStruct((2, 64), jnp.float32)
    traced = wse.trace(lambda p, x: jnp.mean(nnx.merge(graph, p)(x)), params, x)
    assert [len(layer.parameters) for layer in traced.layers] == [2, 4]


def test_it_prints_as_a_table_and_as_html():
    graph = wse.trace(chain, layers(2), X)
    assert str(graph).splitlines()[0] == "2 layers, 2 programs, 32 parameters"
    assert str(graph).splitlines()[2].split()[:3] == ["layer", "weights", "reads"]
    assert "64 FLOP" in str(graph)
    assert ">layers.1</td>" in graph._repr_html_()


PRODUCTS = {
    "product": (lambda x, w: x @ w, (8, 16), (16, 32)),
    "batched": (lambda x, w: jnp.einsum("bij,bjk->bik", x, w), (3, 4, 5), (3, 5, 6)),
    "strided": (
        lambda x, w: jax.lax.conv(x, w, (2, 2), "VALID"),
        (2, 3, 16, 16),
        (5, 3, 2, 2),
    ),
    "grouped": (
        lambda x, w: jax.lax.conv_general_dilated(x, w, (1,), "VALID", feature_group_count=2),
        (2, 4, 33),
        (6, 2, 4),
    ),
    "scanned": (
        lambda x, w: jax.lax.scan(lambda h, _: (h @ w, None), x, None, length=3)[0],
        (8, 16),
        (16, 16),
    ),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_flops_are_those_that_xla_counts(name):
    function, *sizes = PRODUCTS[name]
    args = [jax.ShapeDtypeStruct(size, jnp.float32) for size in sizes]
    gradient = jax.grad(lambda *a: jnp.sum(function(*a)), argnums=(0, 1))
    ours = flops(jax.make_jaxpr(function)(*args).jaxpr)
    turns = 3 if name == "scanned" else 1  # XLA counts the body of a loop once
    assert ours == pytest.approx(
        turns * jax.jit(function).lower(*args).cost_analysis()["flops"], rel=0.02
    )
    if turns == 1:
        both = flops(jax.make_jaxpr(gradient)(*args).jaxpr)
        assert both == 3 * ours


def test_a_complex_product_is_four_and_its_numbers_are_two():
    def mixed(p, x):
        return jnp.mean(jnp.abs(jnp.einsum("bi,io->bo", x + 1j, p["re"] + 1j * p["im"])) ** 2)

    def real(p, x):
        return jnp.mean((x @ p["re"]) ** 2)

    weights = {"re": jnp.ones((3, 5)), "im": jnp.ones((3, 5))}
    one, other = (wse.trace(loss, weights, jnp.ones((7, 3))) for loss in (mixed, real))
    assert one.forward_flops == 4 * other.forward_flops == 4 * 2 * 7 * 3 * 5
    moved = [sum(x.traffic for x in wse.traced.workload(g).layers) for g in (one, other)]
    assert moved == [2 * 8, 8]


def test_flops_of_a_net_agree_with_xla():
    params, x = layers(3, 256), jax.ShapeDtypeStruct((64, 256), jnp.float32)
    graph = wse.trace(chain, params, x)
    forward = jax.jit(chain).lower(params, x).cost_analysis()["flops"]
    assert graph.forward_flops == pytest.approx(forward, rel=0.02)
    step = jax.jit(jax.grad(chain)).lower(params, x).cost_analysis()["flops"]
    assert graph.forward_flops + graph.backward_flops == pytest.approx(step, rel=0.02)


def test_borders_count_and_holes_do_not():
    x = jax.ShapeDtypeStruct((1, 2, 8, 8), jnp.float32)
    w = jax.ShapeDtypeStruct((3, 2, 3, 3), jnp.float32)
    same = jax.make_jaxpr(lambda x, w: jax.lax.conv(x, w, (1, 1), "SAME"))(x, w)
    assert flops(same.jaxpr) == 2 * 3 * 64 * 2 * 9
    up = jax.make_jaxpr(
        lambda x, w: jax.lax.conv_transpose(
            x, w, (2, 2), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW")
        )
    )(x, w)
    assert flops(up.jaxpr) == 2 * 3 * 64 * 2 * 9


@pytest.mark.parametrize("layout", ["NCHW", "HWCN", "HWNC", "CHWN"])
@pytest.mark.parametrize(("stride", "holes"), [(1, 1), (2, 1), (1, 2)])
def test_a_layout_changes_no_count(layout, stride, holes):
    def counted(layout):
        def value(x, w):
            x = jnp.transpose(x, ["NHWC".index(c) for c in layout])
            how = {"lhs_dilation": (holes, holes), "dimension_numbers": (layout, "HWIO", layout)}
            padding = [(1, holes)] * 2
            return jax.lax.conv_general_dilated(x, w, (stride, stride), padding, **how).sum()

        x = jax.ShapeDtypeStruct((5, 8, 8, 3), jnp.float32)
        w = jax.ShapeDtypeStruct((3, 3, 3, 4), jnp.float32)
        return flops(jax.make_jaxpr(jax.value_and_grad(value, (0, 1)))(x, w).jaxpr)

    assert counted(layout) == counted("NHWC") == 3 * 2 * 5 * 3 * 4 * (3 * 8 // stride) ** 2


def bad_loop(p, x):
    return jnp.mean(jax.lax.while_loop(lambda h: h[0, 0] < 1, lambda h: h @ p["w"] + 1, x))


def printing(p, x):
    jax.debug.print("{}", x)
    return jnp.mean(x @ p["w"])


REFUSED = [
    (lambda p, x: x @ p["w"], shapes(w=(4, 4)), "must be a scalar of floating point"),
    (lambda p, x: {"a": 0.0}, shapes(w=(4, 4)), "it must return one scalar"),
    (lambda p, x: (jnp.mean(x @ p["w"]), x), shapes(w=(4, 4)), "pass has_aux=True"),
    (lambda p, x: jnp.mean(x), {}, "params has no arrays"),
    (lambda p, x: jnp.mean(x), shapes(w=(4, 4)), "no parameter reaches the loss"),
    (lambda p, x: jnp.mean(x), {"a": {"count": np.arange(3)}}, "'a.count' is of int"),
    (bad_loop, shapes(w=(4, 4)), "layer 'w' has no derivative"),
    (printing, shapes(w=(4, 4)), "take out jax.debug.print"),
]


@pytest.mark.parametrize(("loss", "params", "rule"), REFUSED)
def test_what_cannot_be_cut_is_refused(loss, params, rule):
    with pytest.raises(ValueError, match=rule):
        wse.trace(loss, params, X)


def test_auxiliary_outputs_must_be_a_pair():
    with pytest.raises(ValueError, match=r"must return \(scalar, auxiliary outputs\)"):
        wse.trace(chain, layers(1), X, has_aux=True)


def test_small_blocks_beside_a_large_embedding_share_visits_but_not_all_one():
    blocks = [{"w": np.ones((8, 8))} for _ in range(40)]
    params = {"embedding": np.ones((1000, 8)), "blocks": blocks}

    def loss(p, tokens):
        x = p["embedding"][tokens]
        for block in p["blocks"]:
            x = jnp.tanh(x @ block["w"])
        return jnp.mean((x @ p["embedding"].T) ** 2)

    sizes = [x.work.weight_bytes for x in wse.trace(loss, params, np.arange(4)).layers]
    largest, small = max(sizes), [size for size in sizes if size < max(sizes)]
    assert len(small) == 5  # of eight blocks each: the first whole number above a sixteenth
    assert max(small) <= largest / 16 + 256
    assert sum(small) == 40 * 256
