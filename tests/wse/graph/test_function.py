"""Training functions as strangers write them: answered rightly, or refused in one line."""

import inspect
import re
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen, nnx
from flax.training.train_state import TrainState

import wse
from wse import computer
from wse.show.explorer import explore

X, W = np.ones((8, 6), "f4"), {"w": np.ones((6, 4), "f4"), "v": np.ones((4, 2), "f4")}
FAMILY = (wse.check, wse.estimate, wse.compare, wse.port)


class Normed(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(6, 16, rngs=rngs)
        self.norm = nnx.BatchNorm(16, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x):
        return self.drop(self.norm(self.first(x)))


class Linen(linen.Module):
    @linen.compact
    def __call__(self, x):
        x = linen.BatchNorm(use_running_average=False)(linen.Dense(16)(x))
        return linen.Dropout(0.5, deterministic=False)(x)


def said(w, x):
    return jnp.mean((x @ w["w"] @ w["v"]) ** 2)


def in_linen():
    model = Linen()
    held = model.init({"params": jax.random.key(0), "dropout": jax.random.key(1)}, X)

    def loss(params, batch):
        x, statistics, key = batch
        variables = {"params": params, "batch_stats": statistics}
        out, new = model.apply(variables, x, mutable=["batch_stats"], rngs={"dropout": key})
        return jnp.mean(out**2), new

    return loss, held["params"], (X, held["batch_stats"], jax.random.key(2))


def in_nnx():
    graph, params, rest = nnx.split(Normed(nnx.Rngs(0)), nnx.Param, ...)

    def loss(params, batch):
        model = nnx.merge(graph, params, batch["rest"])
        return jnp.mean(model(batch["x"]) ** 2), nnx.state(model, nnx.BatchStat)

    return loss, params, {"x": X, "rest": rest}


@pytest.mark.parametrize("made", [in_linen, in_nnx])
def test_batch_norm_and_dropout_beside_a_loss_are_checked_and_estimated(made):
    asked = made()
    for found in (wse.estimate(*asked), wse.compare(*asked, machines=["cs2"])):
        assert found
    assert wse.estimate(*asked).workload.parameters == 6 * 16 + 16 + 2 * 16
    report = wse.check(*asked)
    chance = [x for x in report.findings if x.use.operation == "random_bits"]
    assert [x.verdict for x in chance] == ["decomposed"]
    assert report.portable


def test_a_loss_with_more_than_a_scalar_is_measured_here(monkeypatch):
    monkeypatch.setattr(computer, "local", lambda: Ready())
    found = wse.estimate(lambda w, x: (said(w, x), x), W, X, machine="here", samples=1000)
    assert found.train_s == pytest.approx(1000 * 0.5)
    assert not any("card" in caution for caution in found.cautions)
    low, high = found.training_interval_s
    monkeypatch.setattr(Ready, "rates", SimpleNamespace(together=True))
    card = wse.estimate(said, W, X, machine="here", samples=1000)
    assert card.training_interval_s[0] < low < high < card.training_interval_s[1]
    assert any("attention" in caution for caution in card.cautions)


class Ready:
    """A computer that takes half a second for any sample of a graph."""

    rates = SimpleNamespace(together=False)

    def sample_s(self, model, params=None, batch=None):
        assert isinstance(model, wse.Graph)
        return 0.5


def variables():
    model = Linen()
    held = model.init({"params": jax.random.key(0), "dropout": jax.random.key(1)}, X)
    return lambda v, x: jnp.mean(v["params"]["Dense_0"]["kernel"] ** 2), held, X


def state():
    made = TrainState.create(apply_fn=None, params=W, tx=optax.adam(1e-3))
    return lambda s, x: said(s.params, x), made, X


def closed_over():
    graph, params, rest = nnx.split(nnx.BatchNorm(6, rngs=nnx.Rngs(0)), nnx.Param, ...)
    return lambda p, x: jnp.mean(nnx.merge(graph, p, rest)(x)), params, X


def averaged(w, x):
    return jax.lax.pmean(said(w, x), "devices")


class Tensor:
    """As of PyTorch, which this environment has not."""

    __module__ = "torch"


def in_torch(w, x):
    raise TypeError(f"linear(): argument 'input' must be Tensor, not {type(x).__name__}")


def mlp():
    return eqx.nn.MLP(6, 4, 8, 1, key=jax.random.key(0))


def outputs(model, x):
    return jnp.mean(jax.vmap(model)(x))


KEYS = nnx.Rngs(0)
REFUSED = [
    (lambda: (lambda w, x, key: said(w, x), W, X), r"loss takes \(w, x, key\); .* in the batch"),
    (lambda: (jax.value_and_grad(said), W, X), "as jax.value_and_grad does; .* the loss itself"),
    (lambda: (averaged, W, X), "loss sums over devices by a name .*take psum or pmean out"),
    (lambda: (lambda w, x: (said(w, x), {"a": "b"}), W, X), "loss returns what is no array"),
    (lambda: (lambda w, x: {"loss": said(w, x)}, W, X), "must return one scalar: return .scalar"),
    (lambda: (lambda w, x: (said(w, x), x, x), W, X), "must return one scalar: return .scalar"),
    (variables, "collections .*batch_stats.*pass variables..params.."),
    (lambda: (lambda m, x: jnp.mean(m(x)), Normed(nnx.Rngs(0)), X), "BatchStat.*nnx.split"),
    (lambda: (lambda s, x: 0.0, nnx.state(Normed(nnx.Rngs(0))), X), "BatchStat.*nnx.split"),
    (lambda: (nnx.Linear(6, 4, rngs=nnx.Rngs(0)), W, X), "loss is a Linear, a module .*pass loss"),
    (lambda: (linen.Dense(4), W, X), "loss is a Dense, a module .*pass loss.params, batch"),
    (lambda: (lambda w, x: said(w, x) if x.sum() > 0 else 0.0, W, X), "decides by .*jnp.where"),
    (lambda: (lambda w, x: said(w, np.asarray(x)), W, X), "calls NumPy .*jax.numpy"),
    (lambda: (lambda w, x: said(w, x) * float(x[0, 0]), W, X), "a Python number of a value"),
    (lambda: (lambda w, x: jnp.mean(x[x > 0]) * said(w, x), W, X), "picks entries by a condition"),
    (
        lambda: (said, W, X[:0]),
        r"the batch has 0 samples, its arrays the shapes .0, 6.; it must have some",
    ),
    (state, "params is a TrainState, whose step is no parameter: pass its params"),
    (closed_over, r"changes a state of Flax .*BatchStat.* rest in the batch"),
    (lambda: (said, {}, X), "params has no arrays; .*that has none cannot be trained"),
    (lambda: (in_torch, W, X), "loss calls PyTorch .*jax.numpy, or use wse.from_torch"),
    (lambda: (said, {"w": Tensor()}, X), r"of type Tensor; .* pass x.numpy\(force=True\)"),
    (lambda: (outputs, mlp(), X), "'activation' is .* eqx.partition.* eqx.combine"),
    (lambda: (mlp(), W, X), "loss is a MLP, a module .*eqx.partition.* eqx.combine"),
    (
        lambda: (nnx.value_and_grad(lambda m, x: jnp.mean(m(x))), nnx.Linear(6, 4, rngs=KEYS), X),
        "as jax.value_and_grad does",
    ),
]


@pytest.mark.parametrize(("made", "rule"), REFUSED)
@pytest.mark.parametrize("ask", FAMILY)
def test_what_is_no_training_function_is_refused_in_one_line(ask, made, rule):
    with pytest.raises(ValueError, match=rule) as found:
        ask(*made())
    assert "\n" not in str(found.value)


def scored(w, x):
    return said(w, x), {"mean": said(w, x), "far": jnp.max(x @ w["w"])}


def guarded(w, x):
    return jnp.where(jnp.isnan(said(w, x)), 0.0, said(w, x))


@pytest.mark.parametrize("loss", [scored, guarded])
def test_a_net_that_is_asked_twice_is_counted_once(loss):
    one, two = (wse.estimate(made, W, X).workload for made in (said, loss))
    assert two.forward_flops == one.forward_flops == 2 * (6 * 4 + 4 * 2)
    assert two.backward_flops == one.backward_flops
    executor = wse.CS2().executor(loss, W, X, has_aux=loss is scored)
    found, gradients = executor.value_and_grad(W, X)
    wanted, expected = jax.value_and_grad(loss, has_aux=loss is scored)(W, X)
    for made, plain in zip(
        *map(jax.tree.leaves, ((found, gradients), (wanted, expected))), strict=True
    ):
        np.testing.assert_allclose(made, plain, rtol=1e-6)


def test_what_a_remat_makes_again_is_no_repeat():
    def loss(w, x):
        y = jnp.tanh(x @ w["w"])
        return jnp.mean(y) + jax.checkpoint(lambda w, x: jnp.mean(jnp.tanh(x @ w["w"]) @ w["v"]))(
            w, x
        )

    graph = wse.trace(loss, W, X)
    assert sum(layer.work.forward_flops for layer in graph.layers) == 8 * 2 * (2 * 6 * 4 + 4 * 2)


def filtered(layout):
    def loss(w, x):
        y = jax.lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=(layout, "HWIO", layout)
        )
        return jnp.mean(y**2)

    return loss


TURNED = [
    (lambda w, x: said(w, x.T), W, (6, 8), "(6, 8)"),
    (lambda w, x: jnp.mean(jax.vmap(lambda y: said(w, y), in_axes=1)(x)), W, (6, 8), "(6, 8)"),
    (filtered("HWCN"), np.ones((3, 3, 2, 5), "f4"), (6, 6, 2, 4), "(6, 6, 2, 4)"),
    (filtered("NCHW"), np.ones((3, 3, 2, 5), "f4"), (4, 2, 6, 6), ""),
    (
        lambda w, x: jnp.mean(jax.vmap(jnp.dot)(x, w)),
        np.ones((3, 6, 2), "f4"),
        (3, 8, 6),
        "(3, 8, 6)",
    ),
    (said, W, (8, 6), ""),
    (lambda w, x: said(w, jnp.tanh(x.reshape(8, 6))), W, (8, 2, 3), ""),
]


@pytest.mark.parametrize(("loss", "params", "shape", "named"), TURNED)
def test_features_that_lead_are_no_samples(loss, params, shape, named):
    graph = wse.trace(loss, params, jax.ShapeDtypeStruct(shape, "f4"))
    assert bool(graph.doubt) is bool(named)
    assert named in graph.doubt


def test_numbers_beside_arrays_of_a_batch_have_no_axis():
    batch = [[float(i) for i in range(6)], X]
    assert wse.trace(lambda w, b: said(w, jnp.stack(b[0]) + b[1]), W, batch).batch_size == 8


def test_a_module_of_equinox_is_traced_by_its_arrays():
    params, rest = eqx.partition(mlp(), eqx.is_inexact_array)
    for jitted in (lambda loss: loss, eqx.filter_jit):
        graph = wse.trace(jitted(lambda p, x: outputs(eqx.combine(p, rest), x)), params, X)
        assert [layer.name for layer in graph.layers] == ["layers.0", "layers.1"]


def test_outputs_of_the_shapes_of_parameters_are_taken_where_it_is_said():
    def loss(w, x):
        return said(w, x), jax.tree.map(lambda leaf: 0.9 * leaf, w)

    assert wse.check(loss, W, X, has_aux=True).portable
    assert wse.estimate(loss, W, X, has_aux=True).workload.parameters == 32


def test_one_family_has_one_signature():
    for ask in (*FAMILY, explore):
        assert inspect.signature(ask).parameters["said"].kind.name == "VAR_KEYWORD"
        with pytest.raises(TypeError, match="machin is no option; of a loss there are has_aux"):
            ask(said, W, X, machin="cs2")


def test_samples_are_told_from_what_is_longer():
    """Eight functions, each at 101 places: samples are eight, the places are of all of them."""
    params = {"branch": np.ones((3, 5), "f4"), "trunk": np.ones((2, 5), "f4")}
    batch = {"u": np.ones((8, 3), "f4"), "places": np.ones((101, 2), "f4")}

    def loss(w, batch):
        return jnp.mean((batch["u"] @ w["branch"]) @ (batch["places"] @ w["trunk"]).T)

    guessed, told = (wse.estimate(loss, params, batch, batch_size=n) for n in (None, 8))
    assert (guessed.batch, told.batch) == (101, 8)
    assert any("101 samples" in x for x in guessed.cautions)
    assert not any("samples, by its largest" in x for x in told.cautions)
    assert wse.port(loss, params, batch, batch_size=8, beside=["h100"]).facts.subject.batch == 8
    assert explore(loss, params, batch, batch_size=8).choice.batch == 8
    compared = wse.compare(loss, params, batch, machines=["cs2"], batch_size=8)
    assert compared.candidates[0].sample_s[1] == pytest.approx(told.train_s / told.samples)
    assert wse.check(loss, params, batch, batch_size=8).findings
    for ask in FAMILY:
        with pytest.raises(ValueError, match="batch_size is 7, and the leading axes"):
            ask(loss, params, batch, batch_size=7)


def test_a_batch_can_be_one_sample():
    """A graph: what lies along the leading axes are nodes, of which none can be left out."""
    links, nodes = np.eye(6, dtype="f4")[::-1], np.ones((6, 3), "f4")

    def loss(w, batch):
        return jnp.mean((batch[0] @ jnp.tanh(batch[1] @ w)) ** 2)

    weights, batch = np.ones((3, 2), "f4"), (links, nodes)
    six, one = (wse.estimate(loss, weights, batch, batch_size=n) for n in (None, 1))
    assert (six.batch, one.batch) == (6, 1)
    assert one.train_s == pytest.approx(6 * six.train_s, rel=0.02)
    assert wse.check(loss, weights, batch, batch_size=1).portable
    gradient = jax.grad(loss)(weights, batch)
    for mode in ("streaming", "pipelined"):
        executor = wse.CS2(1, mode).executor(loss, weights, batch, optax.sgd(1.0), batch_size=1)
        state, _ = executor.train_step(executor.init(weights), batch)
        np.testing.assert_allclose(state.params, weights - gradient, rtol=1e-6)
    with pytest.raises(ValueError, match="1 samples for 2 systems"):
        wse.CS2(2).executor(loss, weights, batch, batch_size=1)


@pytest.mark.parametrize("ask", [*FAMILY, explore])
def test_what_is_of_a_loss_is_refused_beside_another_model(ask):
    graph = wse.trace(said, W, X)
    with pytest.raises(ValueError, match=r"batch_size is 8 beside a Graph; .*wse.trace"):
        ask(graph, batch_size=8)
    with pytest.raises(ValueError, match=r"has_aux is True beside a \w+; .*leave it out"):
        ask(wse.workload.dense(), has_aux=True)


def test_parameters_that_nothing_reads_are_named():
    old = W | {"old": np.ones((50, 2), "f4"), "older": np.ones(3, "f4")}
    caution = "the loss reads 32 of 135 parameters; it does not depend on old, older"
    assert any(x.startswith(caution) for x in wse.estimate(said, old, X).cautions)
    assert not any("depend on" in x for x in wse.estimate(said, W, X).cautions)
    assert caution in wse.port(said, old, X, beside={"cs2": 60}).html


@pytest.mark.parametrize("frozen", ["layer", "checkpointed", "teacher", ""])
def test_parameters_without_a_gradient_are_named(frozen):
    def loss(params, x):
        still = jax.lax.stop_gradient
        stop = {"layer": still, "checkpointed": jax.checkpoint(lambda w: still(w) * 1.0)}
        first = jax.tree.map(stop.get(frozen, lambda w: w), params["first"])
        wanted = jnp.tanh(jnp.tanh(x @ params["teacher"]["a"]) @ params["teacher"]["b"])
        wanted = wanted if frozen != "teacher" else still(wanted)
        rounded = params["last"] + still(jnp.round(params["last"]) - params["last"])
        return jnp.mean((jnp.tanh(x @ first["w"] + first["b"]) @ rounded - wanted) ** 2)

    ones = {"w": np.ones((4, 6), "f4"), "b": np.ones(6, "f4")}
    teacher = {"a": np.ones((4, 3), "f4"), "b": np.ones((3, 2), "f4")}
    params = {"first": ones, "teacher": teacher, "last": np.ones((6, 2), "f4")}
    found = [x for x in wse.trace(loss, params, np.ones((8, 4), "f4")).cautions if "gradient" in x]
    known = {
        "layer": "30 of 60 parameters, first.b, first.w:",
        "teacher": "18 of 60 parameters, te",
    }
    known["checkpointed"] = known["layer"]
    assert len(found) == bool(frozen)
    assert not frozen or known[frozen] in found[0]


def recurrent(params, batch):
    """Time leads: a loop reads it turn by turn, the samples are the second axis."""
    x, y = batch

    def turn(state, now):
        state = jnp.tanh(now @ params["x"] + state @ params["h"])
        return state, state

    last, every = jax.lax.scan(turn, jnp.zeros((x.shape[1], 4)), x.astype(jnp.float32))
    return jnp.mean(((every if y.ndim == 3 else last) - y) ** 2)


def one_by_one(params, batch):
    """Samples one after another, added up: they lead."""
    x, y = batch

    def add(total, each):
        return total + jnp.mean(
            (jnp.tanh(each[0] @ params["x"] @ params["h"]) - each[1]) ** 2
        ), None

    return jax.lax.scan(add, 0.0, (x, y))[0]


@pytest.mark.parametrize(
    ("loss", "shapes", "samples", "said"),
    [
        (recurrent, ((50, 8, 3), (8, 4)), 8, ""),
        (jax.jit(recurrent), ((50, 8, 3), (8, 4)), 8, ""),
        (recurrent, ((50, 8, 3), (50, 8, 4)), 50, r"array 1 of the batch, \(50, 8, 3\), is read"),
        (one_by_one, ((50, 8, 3), (50, 8, 4)), 50, ""),
    ],
)
def test_what_a_loop_reads_in_time_does_not_say_how_many_samples_there_are(
    loss, shapes, samples, said
):
    params = {"x": jnp.ones((3, 4)), "h": jnp.ones((4, 4))}
    batch = tuple(map(jnp.ones, shapes))
    graph = wse.trace(loss, params, batch)
    assert graph.batch_size == samples
    assert re.match(said, graph.doubt) if said else not graph.doubt
