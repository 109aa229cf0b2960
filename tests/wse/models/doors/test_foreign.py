"""Files of other kinds are refused by their names, wherever a model is asked for."""

import pytest
from typer.testing import CliRunner

import wse
from wse.cli.main import app
from wse.models.shapes.foreign import KINDS

run = CliRunner()


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_another_kind_is_refused_unopened(kind: str) -> None:
    for name in (f"net{kind}", f"NET{kind.upper()}"):
        with pytest.raises(ValueError, match=f"{name}', which is .*pass|say") as found:
            wse.read_model(name)
        assert "\n" not in str(found.value)
    for asked in (["check", f"net{kind}"], ["estimate", "--model", f"net{kind}"]):
        done = run.invoke(app, asked)
        assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
        assert f"'net{kind}', which is" in done.stderr
