"""The command `wse`: parses, calls, prints."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from wse.machine import Sourced

app = typer.Typer(
    help="What it would take to train on a wafer-scale machine.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

EXAMPLES = """Examples:

  wse estimate --width 2048

  wse estimate --width 512 --samples 5000000 --json

  wse machines"""


@app.callback(epilog=EXAMPLES)
def main() -> None:
    """What it would take to train on a wafer-scale machine."""


@app.command(epilog=EXAMPLES)
def estimate(
    width: Annotated[int, typer.Option(help="Units per hidden layer.")] = 2048,
    depth: Annotated[int, typer.Option(help="Hidden layers.")] = 8,
    inputs: Annotated[int, typer.Option(help="Numbers per sample that enter.")] = 1000,
    outputs: Annotated[int, typer.Option(help="Numbers per sample that leave.")] = 2,
    samples: Annotated[int, typer.Option(help="Samples processed, all epochs.")] = 1_000_000,
    batch: Annotated[int, typer.Option(help="Samples per step; recorded only.")] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Seconds that one CS-2 takes to train a dense net: set-up, input, units."""
    from wse import workload
    from wse.estimate import estimate as run

    try:
        net = workload.dense(inputs=inputs, width=width, depth=depth, outputs=outputs)
        result = run(net, samples=samples, batch=batch)
    except ValueError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from error
    typer.echo(_json(result.document()) if as_json else str(result))


@app.command(epilog=EXAMPLES)
def machines() -> None:
    """The catalogue: every number with its status and source."""
    from wse import catalog, render

    for machine in catalog.MACHINES:
        rows = [
            (name, f"{number.value:g}", number.unit, number.status, _source(number))
            for name, number in machine.numbers().items()
        ]
        table = render.text(("number", "value", "unit", "status", "source"), rows)
        typer.echo(f"{machine.name} ({machine.wafer})\n{table}\n")


def _source(number: "Sourced") -> str:
    return f"{number.source} ({number.note})" if number.note else number.source


def _json(document: dict[str, object]) -> str:
    import json

    return json.dumps(document, indent=2)
