"""`python -m sciml` is the command `sciml`."""

from sciml.cli.main import app

app(prog_name="sciml")
