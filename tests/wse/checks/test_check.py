"""The operator check: verdicts follow from rules with sources, and nothing is invented."""

import importlib
import re
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st

import wse
from wse.checks import RULES, Constraint, Rule, Use, Where
from wse.machine.support.rules import VERDICTS, version, worst

W, X = jnp.ones((4, 4)), jnp.ones((3, 4))


def mean(function):
    return lambda w, x: jnp.mean(function(x @ w))


def convolution(axes: int, dilation: int = 1):
    def loss(w, x):
        return jnp.mean(
            jax.lax.conv_general_dilated(x, w, (1,) * axes, "SAME", rhs_dilation=(dilation,) * axes)
        )

    return loss, jnp.ones((2, 1, *(3,) * axes)), jnp.ones((1, 1, *(5,) * axes))


def recurrence(w, x):
    def step(state, row):
        state = jnp.tanh(state @ w + row)
        return state, state

    return jnp.mean(jax.lax.scan(step, jnp.zeros(4), x)[1])


def verdicts(report, operation):
    return {f.verdict for f in report.findings if f.use.operation == operation}


def test_a_dense_net_ports_forward_and_backward():
    report = wse.check(mean(jnp.tanh), W, X)
    assert report.portable
    assert report.verdict == "native"
    passes = {(f.use.operation, f.use.backward) for f in report.findings}
    assert {("dot_general", False), ("dot_general", True)} <= passes
    assert all(f.source for f in report.findings)


def test_findings_name_the_layer_and_the_users_own_line():
    def loss(params, x):
        hidden = jnp.tanh(x @ params["first"])
        hidden = jnp.sort(hidden @ params["second"])
        return jnp.mean(hidden)

    code = loss.__code__
    report = wse.check(loss, {"first": W, "second": W}, X)
    (finding,) = [f for f in report.of("unknown") if f.use.operation == "sort"][:1]
    assert finding.layer == "second"
    assert finding.line == f"test_check.py:{code.co_firstlineno + 2}"
    assert finding.remedy


SOLVER = """
import jax
import jax.numpy as jnp

@jax.jit
def scored(x):
    @jax.custom_vjp
    def ordered(x):
        return jnp.sort(x)
    ordered.defvjp(lambda x: (jnp.sort(x), x), lambda x, g: (g * jnp.sin(x),))
    return ordered(x)

def model(params, x):
    return jnp.mean(scored(x @ params))
"""
MINE = """
from solver_of_others import model, scored
import jax.numpy as jnp

def mine(params, x):
    return jnp.mean(scored(x @ params)
                    + scored(jnp.tanh(x @ params)))
"""


def test_where_a_library_is_called_the_line_is_the_users(tmp_path, monkeypatch):
    """Also of what the library keeps traced, and of its backward pass; its own where it is all."""
    (tmp_path / "site-packages/solver_of_others").mkdir(parents=True)
    (tmp_path / "site-packages/solver_of_others/__init__.py").write_text(SOLVER)
    (tmp_path / "who_calls.py").write_text(MINE)
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("who_calls")
    lines = {f.line for f in wse.check(module.model, W, X).findings}
    assert "solver_of_others/__init__.py:9" in lines
    assert all(line.startswith("solver_of_others/") for line in lines if line)
    lines = {f.line for f in wse.check(module.mine, W, X).findings}
    assert lines - {""} == {"who_calls.py:6", "who_calls.py:7"}


def test_what_nobody_knows_has_advice_and_fits_a_column():
    def loss(w, x):
        y = x @ w
        y = y + jax.ops.segment_max(y, jnp.argmin(y, axis=1), len(y)) + jnp.expm1(jnp.sin(y))
        y = jnp.where(jnp.any(y > 0, axis=0), jnp.min(y), jnp.flip(y, 1))
        y = jax.lax.cummax(y).at[0].set(0.0)
        turns = x[0, 0].astype(int)
        many = jax.lax.fori_loop(0, turns, lambda _, y: [z @ w.T @ w for z in y], [y] * 5)
        return jnp.mean(many[0] + many[4])

    report = wse.check(loss, W, X)
    unknown = {f.use.operation: f.remedy for f in report.of("unknown") if not f.use.backward}
    assert {"scatter-max", "argmin", "expm1", "sin", "cummax", "rev", "scatter"} <= {*unknown}
    assert all(unknown.values())
    assert "tanh" in unknown["sin"]
    assert all(f.operands.count("-d") <= 4 for f in report.findings)
    assert any(re.search(r", \d+ more", f.operands) for f in report.findings)


@pytest.mark.parametrize(
    ("release", "mode", "verdict"),
    [
        ("1.6", "pipelined", "unsupported"),
        ("1.7.1", "streaming", "unsupported"),
        ("1.9", "streaming", "unknown"),
        ("2.0.3", "streaming", "native"),
        ("2.10", "streaming", "unknown"),
    ],
)
def test_convolution_in_three_dimensions_depends_on_the_release(release, mode, verdict):
    report = wse.check(*convolution(3), release=release, mode=mode)
    found = [f for f in report.findings if f.use.operation == "conv_general_dilated"]
    assert {f.verdict for f in found if not f.use.backward} == {verdict}
    assert all(f.remedy for f in found if f.verdict == "unsupported")


def test_convolution_in_two_dimensions_ports_and_others_are_unknown():
    flat = wse.check(*convolution(2), release="2.0")
    assert verdicts(flat, "conv_general_dilated") == {"native"}
    for net in (convolution(1), convolution(2, dilation=2)):
        report = wse.check(*net, release="2.0")
        assert "unknown" in verdicts(report, "conv_general_dilated")
        assert "height 1" in report.of("unknown")[0].remedy


def test_the_flipped_filter_of_a_gradient_is_no_operation_of_the_users():
    loss, w, x = convolution(2)
    deep = wse.check(lambda w, x: loss(w, jnp.tanh(x * w[0, 0, 0, 0])), w, x, release="2.0")
    assert verdicts(deep, "rev") == {"native"}
    assert deep.portable
    own = wse.check(lambda w, x: loss(w, jnp.flip(x, 2)), w, x, release="2.0")
    assert verdicts(own, "rev") == {"unknown"}


def test_a_strided_convolutions_own_gradient_is_not_taken_for_a_dilated_one():
    def loss(w, x):
        return jnp.mean(jax.lax.conv_general_dilated(x, w, (2, 2), "SAME"))

    assert wse.check(loss, jnp.ones((2, 1, 3, 3)), jnp.ones((1, 1, 8, 8))).portable


def test_a_recurrent_net_is_unsupported_since_the_vendor_dropped_it():
    report = wse.check(recurrence, W, X)
    assert verdicts(report, "scan") == {"unsupported"}
    assert "1.5" in report.of("unsupported")[0].reason
    assert verdicts(wse.check(recurrence, W, X, release="1.4"), "scan") == {"unknown"}


def test_a_scan_over_stacked_layers_is_no_loop():
    def loss(w, x):
        return jnp.mean(jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, w)[0])

    report = wse.check(loss, jnp.ones((5, 4, 4)), X)
    assert report.portable
    assert not verdicts(report, "scan")


def test_a_loop_that_depends_on_data_is_reported_although_it_has_no_derivative():
    def loss(w, x):
        return jnp.sum(jax.lax.while_loop(lambda v: jnp.sum(v) < 9.0, lambda v: v @ w, x))

    report = wse.check(loss, W, X)
    assert report.faults
    assert report.verdict == "unsupported"
    assert verdicts(report, "while") == {"unsupported"}
    assert "static" in report.of("unsupported")[0].reason
    assert "not traced" in str(report)


def test_branches_on_data_are_unsupported():
    report = wse.check(mean(lambda y: jax.lax.cond(y[0, 0] > 0, jnp.tanh, jnp.negative, y)), W, X)
    assert verdicts(report, "cond") == {"unsupported"}
    assert "jnp.where" in report.of("unsupported")[0].remedy


@pytest.mark.parametrize("function", [jnp.fft.fft, lambda y: y * 1j], ids=["fft", "complex"])
def test_complex_numbers_are_unsupported(function):
    report = wse.check(mean(lambda y: jnp.abs(function(y))), W, X)
    assert report.verdict == "unsupported"
    assert any("complex" in f.reason for f in report.of("unsupported"))


def test_float64_is_unsupported_whatever_the_operation():
    with jax.enable_x64(True):
        report = wse.check(mean(jnp.tanh), W.astype(jnp.float64), X.astype(jnp.float64))
    assert report.verdict == "unsupported"
    assert verdicts(report, "dot_general") == {"unsupported"}
    assert "float32" in report.of("unsupported")[0].remedy


def test_bfloat16_needs_release_17():
    half = (mean(jnp.tanh), W.astype(jnp.bfloat16), X.astype(jnp.bfloat16))
    assert wse.check(*half, release="1.6").verdict == "unsupported"
    assert wse.check(*half, release="1.7", mode="pipelined").verdict == "unsupported"
    assert wse.check(*half, release="1.7", mode="streaming").portable


@pytest.mark.parametrize("function", [jnp.sort, jnp.cumsum, jnp.sin], ids=lambda f: f.__name__)
def test_what_no_source_names_is_unknown_and_not_portable(function):
    report = wse.check(mean(function), W, X)
    assert report.verdict == "unknown"
    assert not report.portable
    assert report.of("unknown")[0].rules == ()


def test_a_stack_is_what_it_was_before_it_had_a_name_of_its_own():
    """A concatenation of arrays with a new axis; its gradient is their slices."""
    stacked = wse.check(mean(lambda x: jnp.stack([jnp.tanh(x), x])), W, X)
    joined = wse.check(mean(lambda x: jnp.concatenate([jnp.tanh(x)[None], x[None]])), W, X)
    assert stacked.verdict == joined.verdict == "native"


def test_machines_and_modes_differ():
    assert wse.check(mean(jnp.tanh), W, X, machine=wse.catalog.CS3).portable
    early = wse.check(mean(jnp.tanh), W, X, machine=wse.catalog.CS3, release="2.3")
    assert early.verdict == "unknown"
    first = wse.catalog.CS1
    assert wse.check(mean(jnp.tanh), W, X, machine=first).mode == "pipelined"
    streamed = wse.check(mean(jnp.tanh), W, X, machine=first, mode="streaming")
    assert streamed.verdict == "unsupported"
    small = wse.Cluster(wse.catalog.CS2, mode="pipelined")
    assert wse.check(mean(jnp.tanh), W, X, machine=small, release="1.6").mode == "pipelined"
    with pytest.raises(ValueError, match="WSE-2 never had in pipelined mode; it had R1"):
        wse.check(mean(jnp.tanh), W, X, machine=small, release="2.10")
    with pytest.raises(ValueError, match="WSE-3 never had in streaming mode; it had R2"):
        wse.check(mean(jnp.tanh), W, X, machine=wse.catalog.CS3, release="2.0")


def test_a_graph_gives_the_report_of_its_function():
    graph = wse.trace(mean(jnp.sort), W, X)
    assert wse.check(graph) == wse.check(mean(jnp.sort), W, X)


def test_dropout_is_decomposed():
    def loss(w, batch):
        x, key = batch
        return jnp.mean(jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x @ w, 0.0))

    report = wse.check(loss, W, (X, jax.random.PRNGKey(0)))
    assert verdicts(report, "random_bits") | verdicts(report, "threefry2x32") == {"decomposed"}


def test_a_norm_and_a_custom_derivative_are_looked_into():
    module = nnx.Sequential(nnx.Linear(4, 4, rngs=nnx.Rngs(0)), nnx.LayerNorm(4, rngs=nnx.Rngs(0)))
    structure, params = nnx.split(module)

    def loss(p, x):
        return jnp.mean(jax.nn.relu(nnx.merge(structure, p)(x)))

    report = wse.check(loss, params, X)
    assert verdicts(report, "max") == {"native"}
    assert verdicts(report, "rsqrt") == {"native"}


def test_your_own_rule_comes_first():
    mine = Rule(("sort",), "native", (Where(),), "I saw it run", "my own log", "sourced")
    assert verdicts(wse.check(mean(jnp.sort), W, X), "sort") == {"unknown"}
    report = wse.check(mean(jnp.sort), W, X, rules=(mine, *RULES))
    assert verdicts(report, "sort") == {"native"}


def test_the_report_is_a_table_html_data_and_json():
    report = wse.check(mean(jnp.sort), W, X)
    assert "unknown" in str(report)
    assert "<table>" in report._repr_html_()
    assert report.dataset.sizes["finding"] == len(report.findings)
    assert report.dataset.attrs["verdict"] == "unknown"
    assert {f["operation"] for f in report.document()["findings"]} >= {"sort", "dot_general"}


def test_every_rule_has_a_source_and_names_no_operation_twice_for_one_use():
    for rule in RULES:
        assert rule.source
        assert rule.status in ("sourced", "derived")
    plain = [r for r in RULES if r.constraint == Constraint() and r.operations != ("*",)]
    names = [name for rule in plain for name in rule.operations]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"verdict": "unknown"}, "leave out"),
        ({"status": "guessed"}, "must be one of"),
        ({"source": ""}, "needs them all"),
        ({"verdict": "unsupported"}, "no remedy"),
    ],
)
@pytest.mark.usefixtures("untyped")
def test_a_rule_that_says_too_little_is_refused(change, match):
    fields = {
        "operations": ("sort",),
        "verdict": "native",
        "where": (Where(),),
        "reason": "r",
        "source": "s",
        "status": "sourced",
    }
    with pytest.raises(ValueError, match=match):
        Rule(**{**fields, **change})


def test_wrong_releases_and_modes_are_refused():
    with pytest.raises(ValueError, match="release is 'new'"):
        wse.check(mean(jnp.tanh), W, X, release="new")
    with pytest.raises(ValueError, match="mode is 'fast'"):
        wse.check(mean(jnp.tanh), W, X, mode="fast")


@settings(deadline=None)
@given(st.lists(st.sampled_from(VERDICTS)), st.sampled_from(VERDICTS))
def test_one_more_verdict_never_makes_it_better(found, more):
    assert VERDICTS.index(worst([*found, more])) >= VERDICTS.index(worst(found))


@settings(deadline=None)
@given(st.tuples(*(st.integers(0, 12),) * 3), st.tuples(*(st.integers(0, 12),) * 2))
def test_a_release_with_its_patches_lies_up_to_itself(release, last):
    name = ".".join(map(str, release))
    where = Where(until=".".join(map(str, last)))
    assert version(name) == release
    assert where.holds("WSE-2", "streaming", name) == (release[:2] <= last)
    assert Rule(("a",), "native", (where,), "r", "s", "sourced").speaks(
        Use("a"), "WSE-2", "streaming", name
    ) == (release[:2] <= last)


def test_auxiliary_outputs_are_no_obstacle():
    """A loss with a pair, as of batch statistics or a variational net, is judged as without."""

    def loss(w, x):
        return jnp.mean(jnp.tanh(x @ w) ** 2)

    def pair(w, x):
        return loss(w, x), {"outputs": x @ w}

    asked = (jnp.ones((3, 2)), jnp.ones((4, 3)))
    assert wse.check(pair, *asked).verdict == wse.check(loss, *asked).verdict == "native"
    with_aux, without = (
        wse.estimate(one, *asked, machine=wse.CS2(mode="streaming")) for one in (pair, loss)
    )
    assert with_aux.samples_per_s == without.samples_per_s


def test_sums_by_index_are_not_known_to_port_though_their_derivatives_do():
    """A graph network's messages; embeddings have the same operation in the gradient alone."""
    edges = jnp.asarray([[0, 1], [1, 2], [2, 0]])

    def messages(w, x):
        summed = jax.ops.segment_sum((x @ w)[edges[:, 0]], edges[:, 1], num_segments=3)
        return jnp.mean(jnp.tanh(summed) ** 2)

    report = wse.check(messages, W, X)
    assert report.verdict == "unknown"
    (found,) = report.of("unknown")
    assert (found.use.operation, found.use.backward) == ("scatter-add", False)
    assert "adjacency matrix" in found.remedy
    embedding = wse.check(lambda w, x: jnp.mean(w[x] ** 2), W, jnp.asarray([0, 3, 1]))
    assert embedding.verdict == "native"
    assert verdicts(embedding, "scatter-add") == {"native"}


@pytest.mark.parametrize(("groups", "verdict"), [(1, "native"), (2, "unknown"), (4, "unknown")])
def test_convolutions_in_groups_are_in_no_model_that_is_known_to_run(groups, verdict):
    def loss(w, x):
        y = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=groups)
        return jnp.mean(y**2)

    report = wse.check(loss, jnp.ones((4, 4 // groups, 3, 3)), jnp.ones((2, 4, 8, 8)))
    assert verdicts(report, "conv_general_dilated") == {verdict}
    assert groups == 1 or any("groups" in f.remedy for f in report.of("unknown"))


def test_what_depends_on_no_input_is_computed_by_the_compiler():
    def turned(w, x):
        angles = jnp.arange(4.0)
        return jnp.mean(jnp.cos(angles) * (x @ w) + jnp.sin(jnp.cumsum(angles)))

    report = wse.check(turned, W, X)
    assert report.verdict == "native"
    assert not verdicts(report, "cos") | verdicts(report, "sin") | verdicts(report, "cumsum")
    assert verdicts(wse.check(mean(jnp.cos), W, X), "cos") == {"unknown"}


def test_the_filter_of_a_transposed_convolution_is_flipped_and_no_padding():
    def loss(w, x):
        return jnp.mean(jax.lax.conv_transpose(x, w, (2, 2), "SAME", transpose_kernel=True) ** 2)

    def padded(w, x):
        return jnp.mean(jnp.pad(x * w, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="reflect") ** 2)

    x = jnp.ones((2, 4, 4, 3))
    flips = [
        f for f in wse.check(loss, jnp.ones((3, 3, 2, 3)), x).findings if f.use.operation == "rev"
    ]
    assert {f.verdict for f in flips} == {"native"}
    assert any("transposed convolution" in f.reason for f in flips if not f.use.backward)
    mirrored = [f for f in wse.check(padded, x, x).findings if f.use.operation == "rev"]
    assert all("padding" in f.reason for f in mirrored if not f.use.backward)


def test_a_machine_may_be_named_and_what_is_no_loss_is_refused(untyped):
    machines = ("cs-3", wse.CS3(), wse.catalog.CS3)
    found = [wse.check(mean(jnp.tanh), W, X, machine=machine) for machine in machines]
    assert {(report.machine, report.verdict, report.mode) for report in found} == {
        ("CS-3", found[0].verdict, "streaming")
    }
    module = nnx.Linear(4, 4, rngs=nnx.Rngs(0))
    wrongs: tuple[Any, ...] = ((module,), ("CS-2", W, X))
    for wrong in wrongs:
        with pytest.raises(TypeError, match=r"alone; it must be a loss .*wse.check\(loss, params"):
            wse.check(*wrong)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "release", "verdict"),
    [
        ("U-Net", "2.10", "native"),
        ("U-Net", "1.6", "unknown"),
        ("ResNet-50", "2.10", "native"),
        ("BERT-large", "1.6", "unsupported"),
        ("U-Net-3D", "2.1", "unknown"),
        ("U-Net-3D", "1.7", "unsupported"),
    ],
)
def test_models_by_name_and_workloads_get_one_verdict(name, release, verdict):
    """With bfloat16, which release 1.6 did not have, what else would run does not."""
    cluster = wse.CS2(precision="bfloat16" if name == "BERT-large" else None)
    said = [
        wse.check(model, machine=cluster, release=release, mode="streaming").verdict
        for model in (name, wse.workloads.get(name))
    ]
    assert said == [verdict] * 2


def test_an_estimate_says_what_the_check_calls_unsupported():
    def loss(w, x):
        return jnp.mean(jnp.abs(jnp.fft.rfft(x @ w)))

    shapes = jnp.ones((64, 64)), jnp.ones((100, 64))
    report, found = wse.check(loss, *shapes), wse.estimate(loss, *shapes)
    wrong = {finding.use.operation for finding in report.of("unsupported")}
    assert "fft" in wrong
    assert all(any(name in caution for caution in found.cautions) for name in wrong)

    small = wse.workloads.get("U-Net-3D", size=[64, 64, 64])
    for release, warned in (("R1.7", True), ("R2.1", False)):
        cautions = wse.estimate(small, release=release).cautions
        assert any("3-D convolution is not supported" in x for x in cautions) is warned


@pytest.mark.parametrize("release", ["1.6", "1.7"])
def test_the_precision_of_the_cluster_counts_in_an_estimate(release):
    half = wse.precision.Precision("bfloat16")
    found = wse.estimate("GPT-2-small", machine=wse.CS2(precision=half), release=release)
    assert "precision bfloat16, as asked" in found.why
    assert any("bfloat16 came with" in x for x in found.cautions) is (release == "1.6")
    with pytest.raises(ValueError, match="precision is 'fp8'"):
        wse.estimate("GPT-2-small", machine=wse.CS2(precision="fp8"))


def one_by_one(w, x):
    return jax.lax.map(lambda row: jnp.tanh(row @ w), x).mean()


def added_up(w, x):
    def add(total, row):
        return total + jnp.tanh(row @ w).mean() + 1.0, None

    return jax.lax.scan(add, 0.0, x)[0]


def recurrent(w, x):
    return jax.lax.scan(lambda h, row: (jnp.tanh(h @ w + row), None), x[0], x)[0].mean()


def moving_mean(w, x):
    return jax.lax.scan(lambda h, row: (0.9 * h + row, None), x[0], x @ w)[0].mean()


@pytest.mark.parametrize(
    ("loss", "verdict"),
    [
        (one_by_one, "unknown"),
        (added_up, "unknown"),
        (recurrent, "unsupported"),
        (moving_mean, "unsupported"),
    ],
)
def test_sums_over_the_turns_of_a_loop_are_no_recurrence(loss, verdict):
    """The gradients of what a loop only reads are added up on the way back: no LSTM."""
    report = wse.check(loss, W, X)
    assert report.verdict == verdict
    assert ("recurrent" in str(report)) == (verdict == "unsupported")


def test_parameters_beside_a_graph_are_refused():
    w, x = jnp.ones((3, 2)), jnp.ones((4, 3))
    graph = wse.trace(lambda w, x: jnp.mean(x @ w), w, x)
    with pytest.raises(ValueError, match="beside a graph, which has its own"):
        wse.check(graph, w, x)


def test_where_arrays_lie_is_no_operation():
    mesh = jax.sharding.Mesh(jax.devices()[:1], ("d",))
    rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("d"))

    def laid(w, x):
        return jax.lax.with_sharding_constraint(x @ w, rows).mean()

    assert wse.check(laid, W, X).verdict == "native"

    def shared(w, x):
        specs = jax.sharding.PartitionSpec("d"), jax.sharding.PartitionSpec()
        run = jax.shard_map(jnp.matmul, mesh=mesh, in_specs=specs, out_specs=specs[0])
        return run(x, w).mean()

    assert "systems share a batch without being told" in str(wse.check(shared, W, X))
    found = wse.estimate(shared, W, X)
    assert any("shard_map the part of one device is counted" in text for text in found.cautions)
