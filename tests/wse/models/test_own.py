"""A user's own file as a model: modules of Flax, functions, and what is refused in one line."""

from collections import namedtuple
from pathlib import Path
from textwrap import dedent

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

import wse
from wse import zoo
from wse.cli.main import app
from wse.models import built, own

run = CliRunner()

PROGRAM = """
    import sys
    from dataclasses import dataclass

    import jax
    import jax.numpy as jnp
    from flax import linen, nnx

    import beside


    class Net(nnx.Module):
        def __init__(self, width=5, *, rngs):
            self.first = nnx.Linear(8, width, rngs=rngs)
            self.last = nnx.Linear(width, 2, rngs=rngs)

        def __call__(self, x):
            return self.last(jnp.sort(self.first(x)))


    class Normed(linen.Module):
        width: int = 5

        @linen.compact
        def __call__(self, x):
            x = linen.BatchNorm(use_running_average=False)(linen.Dense(self.width)(x))
            return linen.Dense(2)(x)


    class Dropping(linen.Module):
        @linen.compact
        def __call__(self, x, train):
            x = linen.BatchNorm(use_running_average=not train)(linen.Dense(5)(linen.Dense(6)(x)))
            return linen.Dropout(0.5, deterministic=not train)(x)


    class Chance(nnx.Module):
        def __init__(self, rngs):
            self.first = nnx.Linear(8, 6, rngs=rngs)
            self.second = nnx.Linear(6, 5, rngs=rngs)
            self.norm = nnx.BatchNorm(5, rngs=rngs)
            self.drop = nnx.Dropout(0.5, rngs=rngs)

        def __call__(self, x, deterministic=True):
            return self.drop(self.norm(self.second(self.first(x))), deterministic=deterministic)


    class Needs(linen.Module):
        width: int

        @linen.compact
        def __call__(self, x):
            return linen.Dense(self.width)(x)


    def loss(params, batch):
        return ((batch @ params) ** 2).mean()


    class Words(nnx.Module):
        def __init__(self, rngs):
            self.words = nnx.Embed(11, 4, rngs=rngs)

        def __call__(self, tokens, more):
            return self.words(tokens) * more


    def made():
        return Needs(beside.WIDTH)


    def step():
        shape = jax.ShapeDtypeStruct
        loss = lambda w, x: jnp.mean((x @ w) ** 2)
        return loss, {"w": shape((3, 2), "f4")}["w"], shape((4, 3), "f4")


    def raises():
        raise KeyError("width")


    def wrong():
        def loss(w, x):
            return jnp.mean(x @ w["nothing"])

        return loss, {"w": jnp.ones((3, 2))}, jnp.ones((4, 3))


    def noted():
        def loss(w, x):
            return jnp.mean((x @ w) ** 2), {"x": x}

        return loss, jnp.ones((3, 2)), jnp.ones((4, 3))


    ready = Normed(7)
    triple = step()
    number = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "model.py").write_text(dedent(PROGRAM))
    (tmp_path / "beside.py").write_text("WIDTH = 6\n")
    (tmp_path / "broken.py").write_text("import jax\n\nWIDTH = jax.nothing\n")
    (tmp_path / "ends.py").write_text("raise SystemExit(3)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "example", "parameters"),
    [
        ("Net", "4x8", 8 * 5 + 5 + 5 * 2 + 2),
        ("Normed", "4x8", 8 * 5 + 5 + 10 + 5 * 2 + 2),
        ("ready", "4x8", 8 * 7 + 7 + 14 + 7 * 2 + 2),
        ("made", "4x8", 8 * 6 + 6),
        ("Words", "4x3:int,4x3x4", 44),
        ("Dropping", "4x8", 8 * 6 + 6 + 6 * 5 + 5 + 10),
        ("Chance", "4x8", 8 * 6 + 6 + 6 * 5 + 5 + 10),
        ("noted", "", 6),
        ("step", "", 6),
        ("triple", "", 6),
    ],
)
def test_a_name_in_a_file_is_checked_and_estimated(
    folder: Path, name: str, example: str, parameters: int
) -> None:
    made = own.traceable(f"model.py:{name}", example)
    asked = (made.loss, made.params, made.batch)
    assert wse.estimate(*asked).workload.parameters == parameters
    assert wse.check(*asked).findings
    assert own.traceable(f"{folder}/model.py:{name}", example).params is not None


def test_the_loss_is_the_mean_squared_error_of_the_module(folder: Path) -> None:
    made = own.traceable("model.py:ready", "4x8")
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(4, 8)).astype("f4"), draw.normal(size=(4, 2)).astype("f4")
    found = made.loss(made.params, ((x,), y, *made.batch[2:]))
    h = x @ made.params["Dense_0"]["kernel"] + made.params["Dense_0"]["bias"]
    h = (h - h.mean(0)) / np.sqrt(h.var(0) + 1e-5)
    out = h @ made.params["Dense_1"]["kernel"] + made.params["Dense_1"]["bias"]
    np.testing.assert_allclose(found, np.mean((out - y) ** 2), rtol=1e-5)


@pytest.mark.parametrize("name", ["Dropping", "Chance"])
def test_a_module_is_asked_about_as_it_trains(folder: Path, name: str) -> None:
    made = own.traceable(f"model.py:{name}", "64x8")
    draw = np.random.default_rng(0)
    params = jax.tree.map(lambda x: draw.normal(size=x.shape).astype("f4"), made.params)
    x = draw.normal(size=(64, 8)).astype("f4")
    # Without its mean and over its spread, then half of all, doubled: 2 (s² + b²) on average.
    found = float(made.loss(params, ((x,), np.zeros((64, 5), "f4"), *made.batch[2:])))
    scale, bias = (np.asarray(a) for a in normed(params))
    assert found == pytest.approx(2 * np.mean(scale**2 + bias**2), rel=0.25)
    report = wse.check(made.loss, made.params, made.batch)
    assert {x.verdict for x in report.findings if x.use.operation == "random_bits"} == {
        "decomposed"
    }


def normed(params):
    """Scale and bias of the norm."""
    flat = {jax.tree_util.keystr(path): x for path, x in jax.tree.leaves_with_path(params)}
    own = {path: x for path, x in flat.items() if "orm" in path}
    return [next(x for path, x in own.items() if name in path) for name in ("scale", "bias")]


@pytest.mark.slow
def test_keys_of_chance_need_no_array_of_a_file(folder: Path) -> None:
    draw = np.random.default_rng(0)
    np.savez("data.npz", x=draw.normal(size=(16, 8)), y=draw.normal(size=(16, 5)))
    for name in ("Dropping", "Chance"):
        asked = ["port", f"model.py:{name}", "--example", "4x8", "--data", "data.npz"]
        found = run.invoke(app, [*asked, "--steps", "2", "--beside", "h100"])
        assert found.exit_code == 0, found.output
        assert "Measured in 2 steps" in found.stdout


def test_a_loss_that_raises_is_one_line_of_each_command(folder: Path) -> None:
    for command in (["check"], ["port"], ["estimate", "--model"], ["compare", "--model"]):
        found = run.invoke(app, [*command, "model.py:wrong"])
        assert found.exit_code == 2
        assert "loss of model.py:wrong raised KeyError: 'nothing', model.py:" in found.stderr
        assert found.stderr.count("\n") == 1


def test_outputs_beside_a_loss_are_taken_by_each_command(folder: Path) -> None:
    for command in (
        ["check", "model.py:noted"],
        ["estimate", "--model", "model.py:noted"],
        ["compare", "--model", "model.py:noted", "--machines", "cs2", "--batch", "8"],
        ["port", "model.py:noted", "--beside", "h100"],
    ):
        found = run.invoke(app, command)
        assert found.exit_code == 0, found.output


def test_a_module_of_many_weights_has_shapes_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(built, "SMALL", 10)
    for name in ("Net", "Normed"):
        made = own.traceable(f"model.py:{name}", "4x8")
        leaves = jax.tree.leaves((made.params, made.batch))
        assert all(isinstance(x, jax.ShapeDtypeStruct) for x in leaves)
        assert wse.check(made.loss, made.params, made.batch).findings


@pytest.mark.parametrize(
    ("asked", "example", "rule"),
    [
        ("model.py:Nett", "4x8", "model.py has no 'Nett'; .* did you mean 'Net'"),
        ("model.py:", "4x8", "model.py has no ''; .* it has"),
        ("nowhere.py:Net", "4x8", "'nowhere.py', which is no file"),
        ("broken.py:Net", "", r"broken.py cannot be imported \(AttributeError: .*, line 3\)"),
        ("ends.py:Net", "", "ends.py cannot be imported .SystemExit: 3, line 1"),
        ("model.py:Needs", "4x8", "Needs needs width; .*def ready... return Needs"),
        ("model.py:loss", "", "loss needs params, batch; .* return loss, params, batch`"),
        ("model.py:raises", "4x8", "raises was called and raised KeyError: 'width'"),
        (
            "model.py:number",
            "",
            "number is or returned a int; it must return .loss, params, batch.",
        ),
        ("model.py:step", "4x8", "example is '4x8' beside model.py:step, which brings a batch"),
        ("model.py:Net", "", "what enters it is not said; .* --example 8x3x224x224"),
        ("model.py:Net", "4x", "example is '4x'; it must be positive sizes"),
        ("model.py:Net", "4x0", "example is '4x0'; it must be positive sizes"),
        ("model.py:Net", "4x8:double", "example is '4x8:double'"),
        ("model.py:Net", "4x9", r"Net does not take an example of 4x9 \(TypeError"),
        ("model.py:made", "4x8,4x8", "made does not take an example of 4x8, 4x8"),
        (
            "model:absent",
            "",
            "model is 'model:absent'; it must name a function as package.module:function",
        ),
        ("absent:Net", "", "model is 'absent:Net': No module named 'absent'"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    folder: Path, asked: str, example: str, rule: str
) -> None:
    with pytest.raises(ValueError, match=rule) as found:
        own.traceable(asked, example)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    "kind", [list, lambda x: zoo.Traceable(*x), namedtuple("Step", "loss params batch")._make]
)
def test_a_step_is_any_three_that_a_function_returns(kind) -> None:
    asked = (max, 3.0, 2.0)
    made = built.as_traceable(lambda: kind(asked), "mine")
    assert (made.loss, made.params, made.batch) == asked


def test_the_commands_take_a_file_and_an_example(folder: Path) -> None:
    asked = ["model.py:Net", "--example", "4x8"]
    checked = run.invoke(app, ["check", *asked])
    assert checked.exit_code == 1  # a sort is unknown
    assert "model.py:18" in checked.stdout
    for command in (["estimate"], ["compare", "--machines", "cs2,h100"]):
        found = run.invoke(app, [*command, "--model", *asked])
        assert found.exit_code == 0, found.output
    (folder / "mine.yaml").write_text("model: {name: fc_mnist, hidden_sizes: [50]}")
    for command in (
        ["check", "GPT-2-small"],
        ["check", "--params", "mine.yaml"],
        ["estimate", "--model", "GPT-2-small"],
        ["estimate", "--params", "mine.yaml"],
        ["compare", "--model", "GPT-2-small"],
    ):
        found = run.invoke(app, [*command, "--example", "4x8"])
        assert found.exit_code == 2
        assert "only a module of your own program" in found.stderr
        assert found.stderr.count("\n") == 1
