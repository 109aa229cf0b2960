"""`python -m wse` is the command `wse`."""

from wse.cli import app

app(prog_name="wse")
