"""The page: its numbers are those of check, estimate and compare, and trainings are really run."""

import html.parser
import json
import re
from pathlib import Path
from textwrap import dedent

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from typer.testing import CliRunner

import wse
from wse.choose.page import Data
from wse.choose.page.levers import levers
from wse.cli.main import app
from wse.models import own
from wse.models.shapes.workload import Layer, Workload

run = CliRunner()
BESIDE = {"cs2": 60, "8 x h100": 2.5, "cpu node": None}


def loss(params, batch):
    x, y = batch
    hidden = jnp.tanh(x @ params["first"])
    hidden = jnp.sort(hidden)
    return jnp.mean((hidden @ params["second"] - y) ** 2)


def smooth(params, batch):
    x, y = batch
    return jnp.mean((jnp.tanh(x @ params["first"]) @ params["second"] - y) ** 2)


def weights(width: int = 16):
    draw = np.random.default_rng(0)
    sizes = {"first": (8, width), "second": (width, 1)}
    return {k: draw.normal(size=n).astype("f4") / np.sqrt(n[0]) for k, n in sizes.items()}


def samples(count: int):
    x = np.random.default_rng(1).normal(size=(count, 8)).astype("f4")
    return x, np.sin(x.sum(1, keepdims=True)).astype("f4")


@pytest.fixture(scope="module")
def page():
    return wse.port(loss, weights(), samples(40), beside=BESIDE, samples=50_000)


class Reader(html.parser.HTMLParser):
    """Collects links, their targets, and whether every tag is closed."""

    def __init__(self, text: str) -> None:
        html.parser.HTMLParser.__init__(self)
        self.links, self.targets, self.open, self.words = [], set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.links += [found["href"]] if "href" in found else []
        self.targets |= {found["id"]} if "id" in found else set()
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


@pytest.mark.slow
def test_the_page_is_whole_and_every_link_leads_to_a_source(page) -> None:
    read = Reader(page.html)
    assert not read.open
    assert read.links
    assert {x.removeprefix("#") for x in read.links} == read.targets
    assert "://" not in page.html  # nothing is fetched
    assert "<script" not in page.html
    heads = ["Which operations run", "How long it takes", "Beside other machines"]
    heads += ["What fits where", "What would change the answer most", "What is not known"]
    assert all(x in read.words for x in heads)
    # Folded away are phases, sources and what cannot be taken; the rest is read in two minutes.
    folded = r"<details>.*?</details>|<ol.*?</ol>|<style>.*?</style>|<sup>.*?</sup>"
    seen = re.sub(folded, "", page.html, flags=re.DOTALL)
    assert 200 < len(re.sub("<[^>]*>", " ", seen).split()) < 600


def test_columns_of_numbers_fit_half_a_window(page) -> None:
    cells = re.findall(r"<td class='n'>(.*?)</td>", page.html)
    lines = [line for cell in cells for line in re.split("<[^>]*>", cell)]
    assert max(map(len, lines)) <= 24


def test_its_numbers_are_those_of_the_other_answers(page) -> None:
    facts = page.facts
    report = wse.check(loss, weights(), samples(40))
    assert page.verdict == report.verdict == "unknown"
    (row,) = [x for x in facts.operations if x.operation == "sort"]
    assert re.fullmatch(r"test_port.py:\d+", row.line)
    for n, made in zip((1, 4), facts.estimates, strict=True):
        machine = wse.CS2(n, mode="streaming" if n > 1 else None)
        wanted = wse.estimate(loss, weights(), samples(40), machine=machine, samples=50_000)
        assert made.total_s == pytest.approx(wanted.total_s)
        assert made.interval_s == pytest.approx(wanted.interval_s)
    asked = [wse.CS2(), "8 x h100", "cpu node"]
    both = wse.compare(loss, weights(), samples(40), machines=asked, samples=50_000)
    for mine, other in zip(facts.comparison.candidates, both.candidates, strict=True):
        assert mine.name.partition(" (")[0] == other.name.partition(" (")[0]
        assert mine.sample_s == pytest.approx(other.sample_s)
        assert mine.power_w == pytest.approx(other.power_w, nan_ok=True)
    assert [x.price_per_h for x in facts.comparison.candidates][:2] == [60, 20]


def test_the_document_is_json_and_says_the_same(page) -> None:
    found = json.loads(json.dumps(page.document(), allow_nan=False))
    assert found["verdict"] == "unknown"
    assert found["parameters"] == 8 * 16 + 16
    assert found["estimates"][0]["total_s"] == page.facts.estimate.total_s
    assert found["trials"] is None
    assert any("no data was given" in x for x in found["unknown"])
    numbers = {n for one in found["estimates"] for of in one["sources"].values() for n in of}
    assert max(numbers) <= len(found["sources"])
    assert all(found["estimates"][0]["sources"].values())


def test_one_thing_at_a_time_is_an_estimate_with_one_thing_changed(page) -> None:
    first = page.facts.estimate
    by_name = {x.what: x for x in levers(first)}
    twice = wse.estimate(first.workload, batch=80, machine=first.cluster, samples=50_000)
    assert by_name["twice the samples of a step"].total_s == pytest.approx(twice.total_s)
    assert by_name["twice the samples of a step"].factor == twice.total_s / first.total_s
    for one in page.facts.unsure:
        phase = next(x for x in first.phases if x.name == one.what)
        assert one.width_s == pytest.approx(phase.interval_s[1] - phase.interval_s[0])
    widths = [x.width_s for x in page.facts.unsure]
    assert widths == sorted(widths, reverse=True)


@pytest.mark.slow
def test_trainings_are_those_of_plain_jax() -> None:
    data = samples(120)
    given = Data(data, optax.sgd(0.05), steps=15, orders=2)
    found = wse.port(smooth, weights(), samples(20), beside=["cs2"], data=given).facts.trials
    assert found is not None
    assert (found.held_out, found.samples, found.batch) == (20, 100, 20)
    plain, _, half, *_ = found.trials
    held = tuple(x[:20] for x in data)
    assert found.first == pytest.approx(float(smooth(weights(), held)), rel=1e-5)
    for order, expected in enumerate(plain.losses):
        params, draw, left = weights(), np.random.default_rng(order), np.empty(0, int)
        for _ in range(15):
            while len(left) < 20:
                left = np.concatenate([left, 20 + draw.permutation(100)])
            rows, left = left[:20], left[20:]
            gradient = jax.grad(smooth)(params, tuple(x[rows] for x in data))
            params = jax.tree.map(lambda w, g: w - 0.05 * g, params, gradient)
        assert expected == pytest.approx(float(smooth(params, held)), rel=1e-4)
    assert half.what == "float16"
    assert 0 < abs(half.loss / plain.loss - 1) < 0.01
    dense, sparse = found.trials[0], found.trials[-1]
    assert sparse.what.startswith("90 % zeros")
    assert sparse.loss != dense.loss


def test_zeros_are_left_out_where_no_matrix_may_have_them() -> None:
    """The last matrix stays dense, and this net has no other."""

    def line(params, batch):
        return jnp.mean((batch[0] @ params["only"] - batch[1]) ** 2)

    params, given = {"only": weights()["first"][:, :1]}, Data(samples(80), steps=3)
    made = wse.port(line, params, samples(20), beside=["cs2"], data=given)
    assert made.facts.trials is not None
    assert [x.what for x in made.facts.trials.trials][1:] == ["cbfloat16", "float16", "bfloat16"]
    assert "Zeros were not tried" in made.html


@pytest.mark.slow
def test_a_loss_that_is_not_finite_is_beyond_chance() -> None:
    bad = Data(samples(80), optax.sgd(1e6), steps=12)
    made = wse.port(smooth, weights(), samples(20), beside=["cs2"], data=bad)
    found = json.loads(json.dumps(made.document(), allow_nan=False))
    assert found["trials"]["trials"][0]["loss"] is None
    assert "ends in no number" in str(made)
    assert ">nan<" not in made.html


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "portable"),
    [("GPT-2-small", True), ("ResNet-50", True), ("FC-MNIST", True)],
)
def test_a_model_by_name(model: str, portable: bool) -> None:
    made = wse.port(model, beside=["h100"], samples=10_000, batch=64)
    assert made.portable is portable
    assert made.facts.estimate.batch == 64
    assert made.facts.estimate.samples == 10_000


@pytest.mark.slow
def test_files_of_others(tmp_path: Path) -> None:
    zoo = tmp_path / "mnist.yaml"
    words = "model: {name: fc_mnist, hidden_sizes: [50, 50], fp16_type: cbfloat16}"
    zoo.write_text(words + "\ntrain_input: {batch_size: 32}")
    made = wse.port(str(zoo), beside=["h100"]).facts.estimate
    assert (made.batch, made.cluster.precision) == (32, "cbfloat16")
    (tmp_path / "config.json").write_text(
        json.dumps(
            {
                **{"model_type": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 2},
                **{"vocab_size": 100, "n_positions": 16},
            }
        )
    )
    for path in (tmp_path, tmp_path / "config.json"):
        assert wse.port(path, beside=["h100"]).portable
    assert wse.port(wse.trace(loss, weights(), samples(8)), beside=["h100"]).verdict == "unknown"
    assert wse.port(wse.workload.dense(width=64), beside=["h100"]).portable
    alone = Workload("mine", (Layer("mine", 8, 4, 99, "attention"),), 8, 4)
    made = wse.port(alone, beside=["h100"])
    assert made.facts.check is None
    assert not made.portable
    assert "Not seen" in made.html


@pytest.mark.parametrize(
    ("asked", "options", "rule"),
    [
        ((3,), {}, "model is a int; it must be a name, a file, a module"),
        (("GPT-9",), {}, "'GPT-9', which is not in the catalogue"),
        (("net.onnx",), {}, "'net.onnx', which is ONNX, .* model.py:Net"),
        (("net.mlir",), {}, "which is StableHLO, .* package.module:function"),
        (("net.pt",), {}, "a pickle, which may run anything"),
        (("GPT-2-small", None, 0), {}, "batch is 0; it must be a positive integer"),
        (("GPT-2-small", None, True), {}, "batch is True; it must be a positive integer"),
        (("GPT-2-small",), {"samples": -5}, "samples is -5; it must be a positive integer"),
        (("GPT-2-small", {}), {}, "params is a dict beside GPT-2"),
        (("GPT-2-small",), {"systems": (0,)}, r"systems is \(0,\); it must be positive"),
        (("GPT-2-small",), {"beside": ["hal"]}, "'hal'"),
        (("GPT-2-small",), {"beside": {"h100": 2, "8xh100": 3}}, "H100 at 2 and at 3 per hour"),
        (("GPT-2-small",), {"data": samples(9)}, "which has no weights here"),
        ((smooth, weights(), samples(20)), {"data": samples(30)}, "data has 30 samples"),
        ((smooth, weights(), samples(20)), {"data": samples(90)[0]}, "must be a tree as the batch"),
        (
            (smooth, weights(), samples(20)),
            {"data": (samples(90)[0][:, :3], samples(90)[1])},
            r"data has an array of \(90, 3\); it must be \(samples, 8\)",
        ),
        (
            (smooth, weights(), samples(20)),
            {"data": (samples(90)[0], samples(80)[1])},
            r"arrays of data have \[90, 80\] samples",
        ),
        (
            (smooth, jax.eval_shape(lambda: weights()), samples(20)),
            {"data": samples(90)},
            "params has shapes alone",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(asked, options, rule: str) -> None:
    with pytest.raises((ValueError, TypeError), match=rule) as found:
        wse.port(*asked, **options)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("options", [{"steps": 0}, {"orders": 1}])
def test_data_needs_steps_and_orders(options) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(options))} is .*; pass"):
        Data(samples(9), **options)


def test_a_page_is_saved_whole_or_not_at_all(page, tmp_path: Path) -> None:
    assert page.save(tmp_path / "port.html").read_text() == page.html
    with pytest.raises(ValueError, match=r"'port\.pdf'; a page ends in"):
        page.save("port.pdf")
    assert "iframe" in page._repr_html_()
    assert "sort" in str(page)
    assert "unknown" in repr(page)


PROGRAM = """
    import jax.numpy as jnp
    from flax import nnx


    class Net(nnx.Module):
        def __init__(self, rngs):
            self.first = nnx.Linear(8, 16, rngs=rngs)
            self.last = nnx.Linear(16, 1, rngs=rngs)

        def __call__(self, x):
            return self.last(jnp.tanh(self.first(x)))
"""


@pytest.mark.slow
def test_the_command_writes_a_page_or_json(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "model.py").write_text(dedent(PROGRAM))
    monkeypatch.chdir(tmp_path)
    x, y = samples(60)
    np.savez("samples.npz", x=x, y=y)
    asked = ["port", "model.py:Net", "--example", "20x8", "--beside", "cs2=60,h100=2.5"]
    done = run.invoke(app, [*asked, "--data", "samples.npz", "--steps", "5"])
    assert done.exit_code == 0, done.output
    assert "Measured in 5 steps" in done.stdout
    assert Path("port.html").read_text().startswith("<!doctype html>")
    found = run.invoke(app, [*asked, "--json", "--systems", "1"])
    assert json.loads(found.stdout)["model"] == "model.py:Net"
    traced = own.traceable("model.py:Net", "20x8")
    report = wse.check(traced.loss, traced.params, traced.batch)
    assert json.loads(found.stdout)["verdict"] == report.verdict


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ([], "model is '' and params is ''; one of them"),
        (["GPT-2-small", "--params", "x.yaml"], "one of them must be given"),
        (["GPT-2-small", "--out", "port.pdf"], "a page ends in .html"),
        (["GPT-2-small", "--systems", "one"], "systems is 'one'; it must be numbers"),
        (["GPT-2-small", "--beside", "cs2=much"], "beside is 'cs2=much'"),
        (["GPT-2-small", "--example", "4x8"], "only a module of your own program"),
        (["GPT-2-small", "--data", "x.npz"], "which has no weights here"),
        (["model.py:Net", "--example", "4x8", "--batch", "3"], "which brings its own"),
        (["model.py:Net", "--example", "4x8", "--data", "one.npz"], "the file has 1 arrays"),
    ],
)
def test_the_command_refuses_in_one_line(tmp_path: Path, monkeypatch, options, rule: str) -> None:
    (tmp_path / "model.py").write_text(dedent(PROGRAM))
    monkeypatch.chdir(tmp_path)
    np.savez("one.npz", x=np.ones(3))
    found = run.invoke(app, ["port", *options])
    assert found.exit_code == 2
    assert rule in found.stderr
    assert found.stderr.count("\n") == 1
    assert not Path("port.html").exists()
