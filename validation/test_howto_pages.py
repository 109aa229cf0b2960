"""The how-to pages: their code runs from the first block to the last, and gives what they say."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sciml import diagnose
from tests.wse.test_pages import claims
from wse.cli.main import app

pytestmark = pytest.mark.usefixtures("quick_compilation")
DOCS = Path(__file__).parents[1] / "docs"


def blocks(page: str, language: str = "python") -> list[str]:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def run(page: str, *, claimed: bool = True) -> dict:
    names: dict = {}
    for block in blocks(page):
        exec(compile(block, page, "exec"), names)
        for code, value in claims(block) if claimed else ():
            assert eval(code, names) == value, code
    assert names
    return names


def test_a_model_of_one_s_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    run("own-model")
    source = blocks("own-model")[0] + "\n\ndef step():\n    return loss, params, batch\n"
    (tmp_path / "mine.py").write_text(source)
    lines = [line for block in blocks("own-model", "sh") for line in block.splitlines()]
    lines = [line for line in lines if line.startswith("wse") and "mine:step" in line]
    for line in lines:
        assert CliRunner().invoke(app, line.split()[1:]).exit_code == 0, line
    assert len(lines) == 2


def test_a_simulator_of_one_s_own():
    run("own-simulator")


def test_posteriors():
    run("posteriors", claimed=False)


@pytest.mark.filterwarnings("ignore::sciml.ode.StepWarning")
def test_how_sure():
    run("how-sure", claimed=False)


def test_the_quickstart():
    names = run("quickstart", claimed=False)
    truth = names["mine"].parameters.values
    low, high = names["found"].posterior.quantile([0.01, 0.99], "draw").values
    assert (low < truth).all()
    assert (truth < high).all()
    assert not names["found"].flagged.any()


def test_would_it_run_and_how_long():
    names = run("cerebras", claimed=False)
    assert names["report"].verdict == "native"
    assert names["result"].total_s > 0


@pytest.mark.filterwarnings("ignore::sciml.ode.StepWarning")
def test_diagnostics():
    names = run("diagnostics", claimed=False)
    assert set(names["tree"].checks.adjusted.dims) == {"check"}
    assert float(diagnose.judge(names["known"], names["fresh"]).flagged.mean()) < 0.2


@pytest.mark.filterwarnings("ignore::sciml.ode.StepWarning")
def test_refining():
    run("refine", claimed=False)


@pytest.mark.filterwarnings("ignore::sciml.estimator.CollapseWarning")
def test_going_on_and_files_with_names_that_windows_takes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("resume")
    written = [path.name for path in tmp_path.rglob("*")]
    assert len(written) > 10
    assert [name for name in written if re.search(r'[<>:"|?*\\]|[ .]$', name)] == []


@pytest.mark.filterwarnings("ignore::sciml.estimator.CollapseWarning")
def test_speed():
    run("speed", claimed=False)


@pytest.mark.parametrize("page", ["weight-streaming", "layer-pipelined", "graph", "which-machine"])
def test_the_machine(page):
    run(page, claimed=False)


def test_a_graphics_card():
    run("gpu", claimed=False)  # here there may be none
