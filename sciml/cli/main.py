"""The command `sciml`."""

import logging
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sciml.cli.reference import reference
from sciml.cli.wind import wind
from wse._command import Commands, Version, told

app = typer.Typer(
    cls=Commands,
    help="Inverse maps for ODE parameters and super-resolution of wind.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


EXAMPLES = """Examples:

sciml reproduce

sciml reproduce table4 figure2 --scale full --out results

sciml --install-completion"""


Scale = StrEnum("Scale", "fast full")
Name = StrEnum(  # the studies; kept equal to `sciml.studies.STUDIES` by a test
    "Name",
    "table4 figure2 figure3 figure4 noise width samples joint covariance posteriors sparsity "
    "precision wind_skill wind_size wind_size_generated wind_limits wind_limits_generated "
    "wind_samples wind_draws wind_terrain two_sources",
)


@app.callback(epilog=EXAMPLES)
def main(_version: Version = False) -> None:
    """Inverse maps for ODE parameters and super-resolution of wind."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("sciml").setLevel(logging.INFO)


app.command()(reference)
app.add_typer(wind, name="wind")


@app.command()
def reproduce(
    names: Annotated[list[Name] | None, typer.Argument(help="Which; none: the published")] = None,
    scale: Annotated[Scale, typer.Option(help="full: the published sizes.")] = Scale.fast,
    out: Annotated[Path, typer.Option(help="The folder of results.")] = Path("results"),
) -> None:
    """Make the published tables and figures again. An interrupted run goes on.

    Example: sciml reproduce figure3 --scale fast --out results
    """
    from sciml.studies import PUBLISHED, STUDIES
    from sciml.studies.reproduce import reproduce as run

    chosen = [STUDIES[name.name] for name in names] if names else PUBLISHED
    with told():
        typer.echo(f"{run(chosen, scale.name, out=out)}")
