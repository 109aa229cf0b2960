"""`python -m wse` is the command `wse`."""

from wse.cli.main import app

app(prog_name="wse")
