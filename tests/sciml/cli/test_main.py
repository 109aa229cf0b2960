import pytest
from typer.testing import CliRunner

from sciml.cli.main import app
from sciml.notebook import scale

run = CliRunner().invoke


def test_help_names_what_there_is():
    result = run(app, ["--help"])
    assert result.exit_code == 0
    assert "reproduce" in result.output
    assert "sciml reproduce figure3" in run(app, ["reproduce", "--help"]).output


@pytest.mark.parametrize("arguments", [["reproduce", "figure9"], ["reproduce", "--scale", "huge"]])
def test_unknown_names_are_refused(arguments):
    result = run(app, arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_a_folder_that_cannot_be_made_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    result = run(app, ["reproduce", "table4", "--out", str(tmp_path / "file" / "results")])
    assert result.exit_code == 2
    assert "name a folder" in result.output
    assert "Traceback" not in result.output


def test_an_interrupted_run_says_how_to_go_on(tmp_path, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("sciml.studies.reproduce.reproduce", interrupted)
    result = run(app, ["reproduce", "table4", "--out", str(tmp_path)])
    assert result.exit_code == 130
    assert "goes on" in result.output


def test_scale_of_notebooks(monkeypatch):
    monkeypatch.setenv("SCIML_SCALE", "full")
    assert scale(10, 1) == 10
    monkeypatch.delenv("SCIML_SCALE")
    assert scale(10, 1) == 1
    monkeypatch.setenv("SCIML_SCALE", "huge")
    with pytest.raises(ValueError, match="'fast' or 'full'"):
        scale(10, 1)
