"""Traced functions as workloads, and the catalogue's models on shapes."""

from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import wse
from wse import zoo
from wse.models import from_graph
from wse.models import shapes as workloads
from wse.models.blocks import numbered

SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_heads": 4, "vocab_size": 100}
SMALL |= {"max_sequence_length": 16}


def dense_net(sizes: list[int], batch: int):
    shapes = [jax.ShapeDtypeStruct((n, m), jnp.float32) for n, m in zip(sizes, sizes[1:])]  # noqa: B905, RUF007
    biases = [jax.ShapeDtypeStruct((m,), jnp.float32) for m in sizes[1:]]
    params = [{"w": w, "b": b} for w, b in zip(shapes, biases, strict=True)]

    def loss(params, samples):
        x, y = samples
        for layer in params[:-1]:
            x = jnp.tanh(x @ layer["w"] + layer["b"])
        return jnp.mean((x @ params[-1]["w"] + params[-1]["b"] - y) ** 2)

    ends = [jax.ShapeDtypeStruct((batch, n), jnp.float32) for n in (sizes[0], sizes[-1])]
    return loss, params, tuple(ends)


def test_a_traced_dense_net_is_the_builder_s() -> None:
    loss, params, batch = dense_net([1000, *[512] * 8, 2], batch=100)
    found = from_graph.workload(wse.trace(loss, params, batch))
    known = wse.workload.dense(width=512)
    assert found.is_dense_chain
    assert (found.parameters, found.width, found.depth) == (known.parameters, 512, 8)
    assert found.forward_flops == known.forward_flops
    assert found.backward_flops == known.backward_flops


def test_estimate_takes_a_function_a_graph_and_a_workload() -> None:
    loss, params, batch = dense_net([1000, *[512] * 8, 2], batch=100)
    graph = wse.trace(loss, params, batch)
    known = wse.estimate(wse.workload.dense(width=512), batch=100)
    for found in (wse.estimate(loss, params, batch), wse.estimate(graph)):
        assert found.batch == 100
        assert found.phases == known.phases
    streamed = wse.estimate(graph, batch=400, machine=wse.CS2(4))
    assert streamed.cluster.mode == "streaming"


@jax.tree_util.register_dataclass
@dataclass
class Linear:
    weight: Any
    bias: Any


SIZES = [20, *[16] * 3, 2]
PAIRS = [
    (jax.ShapeDtypeStruct((n, m), jnp.float32), jax.ShapeDtypeStruct((m,), jnp.float32))
    for n, m in pairwise(SIZES)
]
KEYED = list(enumerate(PAIRS))
TREES = {  # name: parameters, how a loss finds the pairs, and what the layers are called
    "nested": (
        {f"l{i}": {"w": w, "b": b} for i, (w, b) in KEYED},
        lambda p: [(x["w"], x["b"]) for x in p.values()],
        "l0 l1 l2 l3",
    ),
    "flat": (
        {f"w{i}": w for i, (w, _) in KEYED} | {f"b{i}": b for i, (_, b) in KEYED},
        lambda p: [(p[f"w{i}"], p[f"b{i}"]) for i in range(4)],
        "w0 w1 w2 w3",
    ),
    "one parent": (
        {"net": {f"w{i}": w for i, (w, _) in KEYED} | {f"b{i}": b for i, (_, b) in KEYED}},
        lambda p: [(p["net"][f"w{i}"], p["net"][f"b{i}"]) for i in range(4)],
        "net.w0 net.w1 net.w2 net.w3",
    ),
    "against the alphabet": (
        {"net": {f"w{9 - i}": w for i, (w, _) in KEYED} | {f"b{i}": b for i, (_, b) in KEYED}},
        lambda p: [(p["net"][f"w{9 - i}"], p["net"][f"b{i}"]) for i in range(4)],
        "net.w9 net.w8 net.w7 net.w6",
    ),
    "pairs": (PAIRS, lambda p: p, "0 1 2 3"),
    "one list": ([x for pair in PAIRS for x in pair], lambda p: [*zip(p[::2], p[1::2])], "0 2 4 6"),  # noqa: B905
    "two lists": (
        [[w for w, _ in PAIRS], [b for _, b in PAIRS]],
        lambda p: [*zip(*p, strict=True)],
        "0.0 0.1 0.2 0.3",
    ),
    "two dictionaries": (
        {"W": {str(i): w for i, (w, _) in KEYED}, "B": {str(i): b for i, (_, b) in KEYED}},
        lambda p: [*zip(p["W"].values(), p["B"].values(), strict=True)],
        "W.0 W.1 W.2 W.3",
    ),
    "dataclasses": (
        {"layers": [Linear(w, b) for w, b in PAIRS]},
        lambda p: [(x.weight, x.bias) for x in p["layers"]],
        "layers.0 layers.1 layers.2 layers.3",
    ),
}


@pytest.mark.parametrize("tree", TREES)
def test_a_net_is_the_same_however_its_parameters_are_held(tree: str) -> None:
    """A bias belongs to the product that it is added to, and a layer has its user's name."""
    params, pairs, names = TREES[tree]

    def loss(params, samples):
        x, y = samples
        for w, b in pairs(params)[:-1]:
            x = jnp.tanh(x @ w + b)
        w, b = pairs(params)[-1]
        return jnp.mean((x @ w + b - y) ** 2)

    batch = tuple(jax.ShapeDtypeStruct((100, n), jnp.float32) for n in (20, 2))
    built = wse.workloads.perceptron(SIZES)
    found = wse.estimate(loss, params, batch)
    assert [x.name for x in found.workload.layers] == names.split()
    assert found.cluster.mode == "pipelined"
    assert found.phases == wse.estimate(built, batch=100).phases
    streamed = [wse.estimate(x, batch=100, machine=wse.CS2(4)) for x in (found.workload, built)]
    assert streamed[0].phases == streamed[1].phases


@pytest.mark.parametrize("alone", [False, True])
def test_matrices_whose_rows_are_outputs_are_read_as_such(alone: bool) -> None:
    """As those of PyTorch and Equinox, whose modules take one sample and are mapped."""
    params = [(jax.ShapeDtypeStruct(w.shape[::-1], w.dtype), b) for w, b in PAIRS]

    def loss(params, samples):
        x, y = samples
        for i, (w, b) in enumerate(params):
            x = jax.vmap(lambda one, w=w, b=b: w @ one + b)(x) if alone else x @ w.T + b
            x = x if i == len(params) - 1 else jnp.tanh(x)
        return jnp.mean((x - y) ** 2)

    batch = tuple(jax.ShapeDtypeStruct((100, n), jnp.float32) for n in (20, 2))
    built = wse.workloads.perceptron(SIZES)
    found = wse.estimate(loss, params, batch)
    assert [(x.inputs, x.outputs) for x in found.workload.layers] == [*pairwise(SIZES)]
    assert found.phases == wse.estimate(built, batch=100).phases
    streamed = [wse.estimate(x, batch=100, machine=wse.CS2(4)) for x in (found.workload, built)]
    assert streamed[0].phases == streamed[1].phases


def test_matrices_made_of_one_vector_are_said_not_to_be_told_apart() -> None:
    def loss(vector, x):
        return jnp.mean(jnp.tanh(x @ vector.reshape(20, 3)))

    x, vector = jnp.ones((4, 20)), jnp.ones(60)
    found = wse.estimate(loss, vector, x)
    assert any("of which the loss makes matrices" in caution for caution in found.cautions)
    scaled = wse.estimate(lambda v, x: jnp.mean((x * v) @ jnp.ones((20, 3))), jnp.ones(20), x)
    assert not any("makes matrices" in caution for caution in scaled.cautions)


@pytest.mark.parametrize("tree", ["nested", "flat", "two lists"])
def test_a_layer_that_is_computed_again_is_in_the_row(tree: str) -> None:
    params, pairs, names = TREES[tree]
    again = jax.checkpoint(lambda x, w, b: jnp.tanh(x @ w + b))

    def loss(params, x):
        for w, b in pairs(params):
            x = again(x, w, b)
        return jnp.mean(x)

    batch = jax.ShapeDtypeStruct((100, 20), jnp.float32)
    found = wse.estimate(loss, params, batch)
    assert [x.name for x in found.workload.layers] == names.split()
    assert found.cluster.mode == "pipelined"


@pytest.mark.parametrize("loops", [False, True])
def test_what_a_gpu_computes_again_is_said(loops: bool) -> None:
    def once(x, w):
        return jnp.tanh(x @ w), None

    def loss(w, x, once):
        return jnp.mean((jax.lax.scan(once, x, w) if loops else once(x, w[0]))[0])

    w, x = jnp.ones((3, 8, 8)), jnp.ones((4, 8))
    for cell, said in ((once, False), (jax.checkpoint(once), True)):
        found = wse.estimate(partial(loss, once=cell), w, x, machine="h100", samples=100)
        assert any("jax.checkpoint" in caution for caution in found.cautions) is said


def recurrent(p, x):
    def cell(h, x):
        h = jnp.tanh(x @ p["x"] + h @ p["h"])
        return h, None

    return jnp.mean(jax.lax.scan(cell, jnp.zeros((8, 16)), x.swapaxes(0, 1))[0] @ p["o"])


def tuned(p, x):
    frozen = jnp.ones((64, 32), jnp.float32)
    return jnp.mean(jnp.tanh(x @ frozen + x @ p["x"] @ p["h"]) @ p["o"])


def towers(p, x):
    return jnp.mean(jax.nn.softmax((x[0] @ p["x"]) @ (x[1] @ p["h"]).T))


def again(p, x):
    return jnp.mean(jax.checkpoint(lambda p, x: jnp.tanh(x @ p["x"]) @ p["h"])(p, x))


@pytest.mark.parametrize(
    ("loss", "sizes", "batch", "forward", "backward"),
    [
        # Multiply-adds of a sample, by hand: a gradient of each side that weights move.
        (recurrent, "5,16 16,16 16,3", (8, 7, 5), 7 * 336 + 48, 7 * 5 * 16 + 7 * 2 * 256 + 2 * 48),
        (tuned, "64,4 4,32 32,2", (8, 64), 2048 + 256 + 128 + 64, 256 + 2 * 128 + 2 * 64),
        (towers, "5,16 5,16", (2, 8, 5), 2 * 80 + 128, 2 * 80 + 2 * 128),
        (again, "5,16 16,16", (8, 5), 80 + 256, 80 + 2 * 256),
    ],
)
def test_a_traced_model_counts_the_gradients_that_are_asked_for(
    loss, sizes, batch, forward, backward
) -> None:
    """Not twice the forward pass: of frozen weights and of the samples there is no gradient."""
    pairs = zip("xho", sizes.split(), strict=False)
    params = {name: np.ones([int(n) for n in size.split(",")], "f4") for name, size in pairs}
    graph = wse.trace(loss, params, np.ones(batch, "f4"), batch_size=8 if loss != towers else 1)
    found, times = from_graph.workload(graph), 8 if loss == towers else 1
    assert found.forward_flops == 2 * times * forward
    assert found.backward_flops == pytest.approx(2 * times * backward, abs=6)


SIDES = {"q": (64, 64), "k": (64, 64), "v": (64, 64), "o": (64, 64), "u": (64, 256), "d": (256, 64)}
HELD = {  # where the matrices of two blocks lie, and how they are found
    "nested": (lambda x: [{n: {"w": w} for n, w in x.items()}] * 2, lambda p, i, n: p[i][n]["w"]),
    "block": (lambda x: [x] * 2, lambda p, i, n: p[i][n]),
    "flat": (
        lambda x: {n + i: w for n, w in x.items() for i in "01"},
        lambda p, i, n: p[f"{n}{i}"],
    ),
    "one": (
        lambda x: {"net": {n + i: w for n, w in x.items() for i in "01"}},
        lambda p, i, n: p["net"][f"{n}{i}"],
    ),
    "stack": (
        lambda x: jax.tree.map(lambda w: jax.ShapeDtypeStruct((2, *w.shape), w.dtype), x),
        lambda p, i, n: p[n][i],
    ),
}


def test_a_block_waits_for_as_much_however_its_parameters_are_held() -> None:
    """What a visit makes and multiplies itself is kept too: one visit of a net kept its input."""
    matrices = {n: jax.ShapeDtypeStruct(size, jnp.float32) for n, size in SIDES.items()}
    found: dict[str, tuple[float, float]] = {}
    for name, (held, get) in HELD.items():

        def loss(p, x, get=get):
            for i in range(2):
                q, k, v = (x @ get(p, i, n) for n in "qkv")
                x = x + jax.nn.softmax(q @ k.mT) @ v @ get(p, i, "o")
                x = x + jnp.tanh(x @ get(p, i, "u")) @ get(p, i, "d")
            return x.mean()

        graph = wse.trace(loss, held(matrices), jax.ShapeDtypeStruct((16, 64, 64), jnp.float32))
        step = wse.estimate(graph, machine=wse.CS2(mode="streaming")).step
        assert step is not None
        rate = wse.estimate(graph, machine="h100").samples_per_s
        found[name] = step.plan.bytes_per_sample, rate
    stored, rates = zip(*found.values(), strict=True)
    # Of a sample: x of both halves, q, k, v, scores, what attention made, tanh; in bytes.
    least = 2 * 2 * 64 * (64 * 6 + 64 + 256)
    assert least <= min(stored)
    assert max(stored) < 1.3 * min(stored)  # visits that are joined are computed again together
    assert max(rates) == pytest.approx(min(rates))


def test_a_loop_waits_for_what_it_carries() -> None:
    """By hand: 7 inputs of 5 numbers, 16 of each turn, and 16 at the end."""
    sizes = {"x": (5, 16), "h": (16, 16), "o": (16, 3)}
    params = {name: np.ones(size, "f4") for name, size in sizes.items()}
    batch = np.ones((8, 7, 5), "f4")
    graph = wse.trace(lambda p, x: recurrent(p["net"], x), {"net": params}, batch)
    (layer,) = from_graph.workload(graph).layers
    assert layer.kept == 7 * 5 + 7 * 16 + 16
    assert layer.products == 7 * 2 + 1


def test_what_enters_is_told_from_what_it_is_compared_with() -> None:
    known = workloads.get("U-Net-Severstal")
    made = zoo.traceable(known, batch=2)
    found = from_graph.workload(wse.trace(made.loss, made.params, made.batch))
    assert (found.inputs, found.entering) == (known.inputs, known.entering)
    rates = [wse.estimate(x, batch=64, machine="cs3").samples_per_s for x in (known, found)]
    assert rates[1] == pytest.approx(rates[0], rel=0.02)


SQUARE = np.ones((8, 8), "f4")


def groups(w, x):
    return jax.lax.ragged_dot(x, w, jnp.array([2, 4], "int32")).mean()


def own_gradient(w, x):
    made = jax.custom_vjp(lambda x, w: x @ w)
    made.defvjp(lambda x, w: (x @ w, (x, w)), lambda kept, g: (g @ kept[1].T, kept[0].T @ g))
    return made(x, w).mean()


@pytest.mark.parametrize(
    ("loss", "size", "flops"), [(groups, (2, 8, 3), 2 * 48 * 3), (own_gradient, (8, 3), 2 * 48 * 3)]
)
def test_products_of_groups_and_of_own_gradients_are_counted_once(loss, size, flops) -> None:
    graph = wse.trace(loss, np.ones(size, "f4"), np.ones((6, 8), "f4"))
    assert (graph.forward_flops, graph.backward_flops) == (flops, flops)


def experts(w, x):
    # Of 4 experts each has as many rows; what PyTorch holds is turned round before.
    sizes = jnp.full(4, x.size // (4 * x.shape[-1]), "int32")
    return jax.lax.ragged_dot(x.reshape(-1, 48), jnp.swapaxes(w, 1, 2), sizes).mean()


def each(w, x):
    return jnp.einsum("bsd,edf->bsef", x, jnp.swapaxes(w, 1, 2)).mean()


@pytest.mark.parametrize("loss", [experts, each])
def test_experts_are_as_wide_as_the_matrix_of_one(loss) -> None:
    graph = wse.trace(loss, np.ones((4, 96, 48), "f4"), np.ones((8, 16, 48), "f4"))
    (layer,) = from_graph.workload(graph).layers
    assert layer.features == 48  # not the 768 numbers of a sample
    assert layer.units == (96 if loss is experts else 4 * 96)


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (lambda w, x: jnp.linalg.solve(w, x.T).mean(), "operations of lu, triangular_solve are"),
        (lambda w, x: jnp.abs(jnp.fft.rfft(x @ w)).mean(), "operations of fft are not counted"),
        (lambda w, x: (x @ SQUARE @ w).mean(), "closes over arrays of 64 numbers"),
        (lambda w, x: (x @ w + SQUARE[:1, :2].sum()).mean(), ""),
    ],
)
def test_what_is_not_counted_is_said(loss, said) -> None:
    graph = wse.trace(loss, np.ones((8, 8), "f4"), np.ones((6, 8), "f4"))
    for machine in ("cs2", "h100"):
        cautions = wse.estimate(graph, machine=machine).cautions
        told = [x for x in cautions if "not counted" in x or "closes over" in x]
        assert len(told) == bool(said)
        assert said in "".join(told)


def test_a_volume_before_a_dense_layer_is_estimated() -> None:
    def loss(params, x):
        x = jax.lax.conv_general_dilated(x, params["filter"], (1, 1, 1), "SAME")
        return (x.reshape(x.shape[0], -1) @ params["head"]).mean()

    sizes = {"filter": (4, 1, 3, 3, 3), "head": (4 * 6**3, 2)}
    params = {name: np.ones(size, "f4") for name, size in sizes.items()}
    found = wse.estimate(loss, params, np.ones((2, 1, 6, 6, 6), "f4"))
    assert found.total_s > 0


def test_a_layer_that_comes_in_two_visits_has_two_names() -> None:
    def loss(params, x):
        x = jnp.tanh(x @ params["ends"]["first"]) @ params["middle"]["w"]
        return jnp.mean(jnp.tanh(x) @ params["ends"]["last"])

    sizes = {"ends": {"first": (4, 8), "last": (512, 64)}, "middle": {"w": (8, 512)}}
    struct = lambda x: jax.ShapeDtypeStruct(x, jnp.float32)  # noqa: E731
    params = jax.tree.map(struct, sizes, is_leaf=lambda x: isinstance(x, tuple))
    graph = wse.trace(loss, params, struct((8, 4)))
    names = [x.name for x in from_graph.workload(graph).layers]
    assert names == ["ends", "middle", "ends#2"]


def test_something_else_is_refused(untyped) -> None:
    with pytest.raises(ValueError, match="model is a int; it must be a wse"):
        wse.estimate(3)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"share_embedding_weights": True},
        {"position_embedding_type": "rotary", "parallel": True, "use_bias_in_output": True},
        {"gated": True, "norm": "rms", "use_ffn_bias": False, "filter_size": 96},
        {"num_kv_heads": 2, "use_projection_bias_in_attention": False},
    ],
)
def test_models_count_what_the_closed_form_counts(changes) -> None:
    known = workloads.transformer("small", workloads.Transformer(**SMALL, **changes))
    made = zoo.traceable(known, batch=2)
    found = from_graph.workload(wse.trace(made.loss, made.params, made.batch))
    assert found.parameters == known.parameters
    assert found.forward_flops == pytest.approx(known.forward_flops, rel=1e-3)


def test_models_run() -> None:
    """They are no mere shapes: the loss of small random weights is about log V."""
    small = workloads.Transformer(**SMALL | {"num_hidden_layers": 1})
    made = zoo.traceable(workloads.transformer("small", small), batch=2)
    draw = np.random.default_rng(0)
    params = jax.tree.map(lambda x: 0.02 * draw.normal(size=x.shape).astype("f4"), made.params)
    tokens = draw.integers(0, 100, size=made.batch.shape).astype("i4")
    assert float(jax.jit(made.loss)(params, tokens)) == pytest.approx(4.6, abs=0.3)


SHAPES = {  # of which tracing takes long: smaller, by the same function
    "ResNet-50": {"size": 32},
    "RetinaNet": {"size": 128},
    "U-Net-3D": {"size": [16, 16, 16]},
    "GPT-120T": {"num_hidden_layers": 2},
}


@pytest.mark.parametrize("name", [*workloads.entries()])
def test_every_model_by_name_is_built_with_its_parameters_and_operations(name: str) -> None:
    """The borders of images are counted as if all taps met a pixel: of small images by far more."""
    changes = SHAPES.get(name, {})
    if workloads.entry(name).family in ("transformer", "dit"):
        changes = {"num_hidden_layers": 2}
    known, made = workloads.get(name, **changes), zoo.traceable(name, **changes)
    found = from_graph.workload(wse.trace(made.loss, made.params, made.batch))
    assert found.parameters == known.parameters
    assert found.forward_flops == pytest.approx(known.forward_flops, rel=0.02)


def test_layers_of_unknown_origin_are_refused() -> None:
    bert = workloads.get("BERT-large")
    with pytest.raises(ValueError, match="layers were changed"):
        zoo.traceable(replace(bert, layers=bert.layers[:-4]))
    with pytest.raises(ValueError, match="alone, not by what they compute"):
        wse.check(replace(bert, origin=None))


def test_a_perceptron_by_name() -> None:
    made = zoo.traceable("FC-MNIST", batch=4)
    found = from_graph.workload(wse.trace(made.loss, made.params, made.batch))
    assert found.parameters == workloads.get("FC-MNIST").parameters
    assert found.is_dense_chain


@pytest.mark.parametrize(
    ("name", "block"),
    [
        ("blocks.3.up", "blocks.3"),
        ("blocks[12]", "blocks[12]"),
        ("Block_0.Dense_1", "Block_0"),
        ("0", "0"),
        ("conv2d.kernel", ""),
        ("embedding#2", ""),
    ],
)
def test_blocks_are_read_off_the_paths(name: str, block: str) -> None:
    assert numbered(name) == block


def late(params, batch):
    """A net of branch and trunk: 8 functions, each at the same 101 places."""
    branch, trunk = jnp.tanh(batch["u"] @ params["u"]), jnp.tanh(batch["grid"] @ params["grid"])
    return jnp.mean((branch @ trunk.T) ** 2)


LATE = {"u": np.ones((3, 16), np.float32), "grid": np.ones((2, 16), np.float32)}
FUNCTIONS = {"u": np.ones((8, 3), np.float32), "grid": np.ones((101, 2), np.float32)}


def test_a_batch_whose_arrays_disagree_is_read_as_said_or_in_doubt() -> None:
    guessed = wse.estimate(late, LATE, FUNCTIONS)
    assert guessed.batch == 101
    assert "read as 101 samples" in guessed.cautions[0]
    assert "8 long" in guessed.cautions[0]
    said = wse.estimate(wse.trace(late, LATE, FUNCTIONS, batch_size=8))
    assert said.batch == 8
    assert not any("samples, by its largest" in caution for caution in said.cautions)
    with pytest.raises(ValueError, match=r"batch_size is 7, .* 101, 8 long: samples lead"):
        wse.trace(late, LATE, FUNCTIONS, batch_size=7)


@pytest.mark.parametrize("mode", ["streaming", "pipelined"])
def test_an_executor_deals_out_the_samples_that_it_is_told_of(mode: str) -> None:
    cluster = wse.CS2(systems=2, mode=mode)
    with pytest.raises(ValueError, match=r"101 samples for 2 systems.*batch_size"):
        cluster.executor(late, LATE, FUNCTIONS)
    told = cluster.executor(late, LATE, FUNCTIONS, batch_size=8)
    more = {**FUNCTIONS, "u": np.full((12, 3), 0.5, np.float32)}
    for batch in (FUNCTIONS, more):
        value, gradient = jax.value_and_grad(late)(LATE, batch)
        found, own = told.value_and_grad(LATE, batch)
        assert found == pytest.approx(float(value), rel=1e-5)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4), own, gradient)


def test_an_estimate_thins_the_parameters_that_the_rule_chooses() -> None:
    loss, params, batch = dense_net([64, 64, 64, 64], 16)
    rule = wse.sparsity.Rule(only=("*0*",), keep_last=False)
    for method, expected in (
        (wse.sparsity.Static(0.75), [0.25, 0.25, 1.0]),
        (wse.sparsity.Static(0.75, rule=rule), [0.25, 1.0, 1.0]),
    ):
        found = wse.estimate(
            loss, params, batch, machine=wse.CS2(mode="streaming", sparsity=method)
        )
        assert [layer.density for layer in found.workload.layers] == expected
    named = wse.estimate(
        wse.workload.dense(width=64), machine=wse.CS2(mode="streaming", sparsity=method)
    )
    assert "names parameters, and a workload has none" in named.cautions[0]


@pytest.mark.parametrize(
    ("axes", "size", "shorter"),
    [
        ("bi,gio->bgo", (4, 16, 8), 16),
        ("bi,igo->bgo", (16, 4, 8), 16),
        ("bi,gij->bgj", (1, 16, 6), 6),
    ],
)
def test_a_product_with_an_array_of_three_axes_is_no_convolution(axes, size, shorter) -> None:
    """By hand: what is added up, and what comes out beside it, are the two sides."""

    def loss(w, x):
        return (jnp.einsum(axes, x, w) ** 2).mean()

    graph = wse.trace(loss, np.ones(size, np.float32), np.ones((32, 16), np.float32))
    (layer,) = from_graph.workload(graph).layers
    assert (layer.kind, layer.features) == ("products", shorter)


def kinds(module: nnx.Module, sample: tuple[int, ...]) -> dict[str, tuple[str, int]]:
    definition, params = nnx.split(module)
    graph = wse.trace(
        lambda p, x: (nnx.merge(definition, p)(x) ** 2).mean(), params, jnp.ones((8, *sample))
    )
    return {x.name: (x.kind, x.features) for x in from_graph.workload(graph).layers}


def test_a_filter_is_a_convolution_and_heads_of_attention_are_not() -> None:
    heads = nnx.MultiHeadAttention(4, 24, 16, decode=False, rngs=nnx.Rngs(0))
    assert set(kinds(heads, (5, 24)).values()) == {("products", 16)}
    filters = nnx.Conv(3, 6, (3, 3), rngs=nnx.Rngs(0))
    assert {kind for kind, _ in kinds(filters, (8, 8, 3)).values()} == {"convolution"}


def test_a_layer_has_one_name_wherever_it_is_asked_for() -> None:
    """Small layers share a visit: `1/2` of a layout was `2` of an estimate."""
    sizes = [(8, 16), (16, 256), (256, 4), (4, 4)]
    params = [{"w": np.ones(size, "f4"), "b": np.ones(size[1], "f4")} for size in sizes]

    def loss(p, x):
        for each in p:
            x = jnp.tanh(x @ each["w"] + each["b"])
        return jnp.mean(x)

    graph = wse.trace(loss, params, np.ones((32, 8), "f4"))
    assert len(graph.layers) < len(sizes)
    names = [shape.name for shape in wse.kernels.of_graph(graph)]
    assert names == [layer.name for layer in from_graph.workload(graph).layers] == [*"0123"]


def test_both_factors_of_a_gated_product_wait() -> None:
    params = {x: jax.ShapeDtypeStruct(y, jnp.float32) for x, y in GATED.items()}
    batch = jax.ShapeDtypeStruct((5, 16), jnp.float32)

    def kept(gate) -> int:
        graph = wse.trace(lambda p, x: jnp.mean(gate(p, x) @ p["down"]), params, batch)
        return sum(
            x.inputs if x.kept is None else x.kept for x in from_graph.workload(graph).layers
        )

    assert kept(lambda p, x: jax.nn.silu(x @ p["gate"]) * (x @ p["up"])) == 16 + 2 * 32
    # The two as halves of one product; and one function of one product, which is made again.
    halves = [slice(32), slice(32, None)]
    assert (
        kept(lambda p, x: jnp.multiply(*((x @ p["both"])[:, half] for half in halves))) == 16 + 64
    )
    assert kept(lambda p, x: jax.nn.gelu(x @ p["up"])) == 16 + 32


GATED = {"gate": (16, 32), "up": (16, 32), "both": (16, 64), "down": (32, 8)}


@pytest.mark.parametrize("apart", [True, False])
def test_what_waits_is_counted_by_block_whatever_visits_join(apart: bool) -> None:
    batch = jax.ShapeDtypeStruct((2, 16, 16, 4), jnp.float32)

    def loss(p, x):
        for pair in p["blocks"]:
            for w in pair:
                x = jax.nn.relu(
                    jax.lax.conv_general_dilated(
                        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
                    )
                )
        return jnp.mean(x.reshape(2, -1) @ p["head"])

    one = jax.ShapeDtypeStruct((3, 3, 16, 16), jnp.float32)
    first = jax.ShapeDtypeStruct((3, 3, 4, 16), jnp.float32)
    blocks = [[first, one], [one, one], [one, one]]
    # Beside a large head all convolutions are joined in one visit.
    head = jax.ShapeDtypeStruct((4096, 1 if apart else 64), jnp.float32)
    graph = wse.trace(loss, {"blocks": blocks, "head": head}, batch)
    found = [x for layer in from_graph.workload(graph).layers for x in layer.waiting]
    place = 16 * 16
    assert {x.block: x.enters for x in reversed(found) if "blocks" in x.block} == {
        "blocks.0": 4 * place,
        "blocks.1": 16 * place,
        "blocks.2": 16 * place,
    }


def _settled(params, x, *, head: bool, multiplies: bool):
    """A net in equilibrium: turns until its state rests, with a derivative of its own."""

    def turn(w, x, z):
        return jnp.tanh(z @ w + x) if multiplies else 0.5 * z + x

    @jax.custom_vjp
    def rest(w, x):
        far = lambda both: jnp.max(jnp.abs(both[0] - both[1])) > 1e-3  # noqa: E731
        step = lambda both: (turn(w, x, both[0]), both[0])  # noqa: E731
        return jax.lax.while_loop(far, step, (x, x + 1))[0]

    rest.defvjp(lambda w, x: (rest(w, x), w), lambda w, g: (0 * w, g))
    z = rest(params["w"], x)
    return jnp.mean((z @ params["head"] if head else z) ** 2)


def test_products_in_a_loop_that_data_end_are_refused_or_told() -> None:
    params, x = {"w": jnp.ones((4, 4)), "head": jnp.ones((4, 2))}, jnp.ones((3, 4))

    def answer(head: bool, multiplies: bool):
        loss = partial(_settled, head=head, multiplies=multiplies)
        return wse.estimate(loss, params, x, machine="h100", samples=300)

    with pytest.raises(ValueError, match="all products of the loss lie within a loop that ends"):
        answer(head=False, multiplies=True)
    told = "products within a loop that ends when data say so (while) are not counted"
    assert any(told in said for said in answer(head=True, multiplies=True).cautions)
    assert not any("(while)" in said for said in answer(head=True, multiplies=False).cautions)


def test_a_number_written_into_a_loop_costs_nothing_on_a_gpu() -> None:
    """As solvers of equations have: what a branch or a call gives is a plain number."""

    def loss(w, x):
        scale = jax.jit(lambda y: (y, jnp.broadcast_to(jnp.float32(2), ())))(x)[1]
        return jnp.mean((x @ w) * jnp.reshape(scale, ()))

    assert wse.estimate(loss, jnp.ones((4, 2)), jnp.ones((3, 4)), machine="h100").train_s > 0


def test_a_matrix_of_weights_alone_is_made_once() -> None:
    """As low-rank changes are: no product of the forward pass is counted again as backward."""
    params = {"w": jnp.ones((6, 6)), "a": jnp.ones((6, 2)), "b": jnp.ones((2, 6))}

    def loss(p, x):
        w = p["w"] + p["a"] @ p["b"]
        return jnp.mean((jnp.tanh(x @ w) @ p["w"] @ w) ** 2)

    x = jnp.ones((5, 6))
    graph = wse.trace(loss, params, x)
    forward = 2 * (3 * 5 * 6 * 6 + 6 * 2 * 6)
    assert graph.forward_flops == forward
    assert graph.backward_flops == 2 * forward - 2 * 5 * 6 * 6  # nobody asks for that of x


def low_rank(frozen: bool):
    """Dense layers with a change of low rank beside each, as in fine-tuning; one without."""

    def loss(params, x):
        for layer in params["layers"]:
            w = jax.lax.stop_gradient(layer["w"]) if frozen else layer["w"]
            x = jnp.tanh(x @ w + (x @ layer["a"]) @ layer["b"])
        first = params["stack"][0]
        x = jnp.tanh(x @ (jax.lax.stop_gradient(first) if frozen else first))
        return jnp.mean((x @ params["stack"][1]) ** 2)

    d, shape = 512, jax.ShapeDtypeStruct
    sizes = {"w": (d, d), "a": (d, 8), "b": (8, d)}
    layers = [{k: shape(n, jnp.float32) for k, n in sizes.items()}] * 3
    params = {"layers": layers, "stack": shape((2, d, d), jnp.float32)}
    return wse.trace(loss, params, shape((64, d), jnp.float32))


def test_parameters_without_gradient_are_neither_sent_out_nor_updated() -> None:
    graphs = {frozen: low_rank(frozen) for frozen in (True, False)}
    found, known = (from_graph.workload(graphs[frozen]) for frozen in (True, False))
    still = 4 * 512 * 512
    assert (found.parameters, found.trained) == (known.parameters, known.parameters - still)
    assert sum(x.frozen for x in found.layers) == still
    said = "no gradient to 1,048,576 of 1,335,296 parameters, layers.0.w, layers.1.w, layers.2.w"
    assert any(said in x for x in wse.estimate(graphs[True]).cautions)
    assert not any("gradient" in x for x in wse.estimate(graphs[False]).cautions)
    # The gradient of a matrix costs what its product costs; that of the samples nobody asks for.
    products = 2 * 64 * still
    assert graphs[False].backward_flops - graphs[True].backward_flops == products
    steps = [wse.estimate(x, machine=wse.CS3(2), batch=64).step for x in (found, known)]
    sent, updated = ([step.layer_times_s()[:, i].sum() for step in steps] for i in (4, 5))
    assert updated[0] / updated[1] == pytest.approx(found.trained / known.trained)
    assert sent[0] < 0.7 * sent[1]
    eight = [wse.estimate(x, machine="8 x H100", batch=64) for x in (found, known)]
    sums = [next(p.interval_s[1] for p in x.phases if p.name == "reduce") for x in eight]
    assert sums[0] < sums[1]


def test_nothing_waits_below_all_that_is_trained() -> None:
    def loss(params, x):
        for w in params["base"]:
            x = jnp.tanh(x @ jax.lax.stop_gradient(w))
        return jnp.mean(jnp.tanh(x @ params["head"]) ** 2)

    shape = jax.ShapeDtypeStruct
    params = {"base": [shape((512, 512), jnp.float32)] * 6, "head": shape((512, 512), jnp.float32)}
    found = from_graph.workload(wse.trace(loss, params, shape((8, 512), jnp.float32)))
    assert found.is_dense_chain
    assert [x.kept for x in found.layers[:-1]] == [0] * 6
    assert [x.backward_flops for x in found.layers[:-1]] == [0] * 6
    waits = [sum(part.kept for part in x.waiting) for x in found.layers]
    assert waits == [0] * 6 + [512]
    assert found.layers[-1].backward_flops == found.layers[-1].forward_flops


def test_as_many_parameters_are_frozen_as_there_are() -> None:
    layer = replace(workloads.workload.dense(width=32).layers[0], frozen=32_032)
    assert layer.trained == 0
    with pytest.raises(
        ValueError, match=r"frozen of layer .* is 32033 of 32032 parameters; it must be"
    ):
        replace(layer, frozen=32_033)


def filtered(window: int, stride: int):
    """Return the workload of a convolution, whose filters are few, and a matrix in one visit."""

    def loss(params, x):
        made = jax.lax.conv_general_dilated(x, params["filters"], (stride,) * 2, "VALID")
        made = jnp.moveaxis(made, 1, -1).mean((1, 2)) @ params["matrix"]
        return jnp.mean(made**2)

    shape = partial(jax.ShapeDtypeStruct, dtype=jnp.float32)
    filters = shape((16, 3, window, window))
    params = {"filters": filters, "matrix": shape((16, 4096))}
    return from_graph.workload(wse.trace(loss, params, shape((8, 3, 24, 24))))


def test_a_visit_of_products_and_convolutions_counts_each_as_what_it_is() -> None:
    """The visit is a convolution by most of its operations; a matrix is a product all the same."""
    work = filtered(5, 1)
    (layer,) = work.layers
    taps, matrix = 20 * 20 * 16 * 3 * 5 * 5, 16 * 4096
    assert (layer.kind, layer.multiplies) == ("convolution", taps + matrix)
    assert layer.convolving == taps
    parts = (("c", "convolution", taps), ("m", "products", matrix))
    shared = layer.backward_flops / layer.forward_flops
    apart = replace(
        work,
        layers=tuple(
            replace(layer, name=x, kind=y, multiplies=n, convolving=None, backward=int(shared * n))
            for x, y, n in parts
        ),
    )
    for machine in ("cpu node", "h100"):
        one, other = (
            next(
                phase
                for phase in wse.estimate(made, machine=machine, batch=8).phases
                if phase.name == "compute"
            )
            for made in (work, apart)
        )
        assert one.time_s == pytest.approx(other.time_s, rel=1e-3), machine
        assert one.interval_s == pytest.approx(other.interval_s, rel=1e-3), machine


@pytest.mark.parametrize(("window", "stride", "share"), [(8, 8, 0.0), (8, 4, 1.0), (1, 1, 1.0)])
def test_patches_side_by_side_are_a_product(window: int, stride: int, share: float) -> None:
    """As by name, where a transformer cuts an image up; windows of one pixel are as before."""
    (layer,) = filtered(window, stride).layers
    taps = ((24 - window) // stride + 1) ** 2 * 16 * 3 * window**2
    assert layer.convolved == pytest.approx(share * taps / (taps + 16 * 4096))


def test_convolutions_are_a_part_of_the_operations() -> None:
    layer = filtered(5, 1).layers[0]
    with pytest.raises(ValueError, match=r"convolving of layer .* it must be a part of them"):
        replace(layer, convolving=layer.multiplies + 1)
