"""The command `wse compare`: one training on several machines."""

from typing import Annotated, Any

import typer

from wse._command import told, written
from wse._files import write_aside
from wse.cli.params import (
    BatchSize,
    Example,
    HasAux,
    graph_of,
    refuse_beside,
    refuse_twice,
    said_of,
)

EXAMPLE = """Examples:

  wse compare --machines "cs2,8 x h100,cpu node,here" --width 2048

  wse compare --model GPT-J-6B --machines "cs3,8 x h100" --batch 256 --price "cs3=60,h100=2.5"

  wse compare --model ResNet-50 --samples 115000000 --figure which.png"""
MODEL = "A name of `wse workloads` or your program, as model.py:Net; empty: a dense net."
MACHINES = (
    "With commas between: cs1, cs2, cs3, cg1, a100, h100, h200, tpu v4, tpu v5e, cpu node, here."
)


def compare(
    model: Annotated[str, typer.Option(help=MODEL)] = "",
    example: Example = "",
    batch_size: BatchSize = None,
    has_aux: HasAux = None,
    machines: Annotated[str, typer.Option(help=f"{MACHINES} '8 x h100' is eight.")] = "",
    samples: Annotated[int, typer.Option(help="Samples processed, all epochs.")] = 1_000_000,
    batch: Annotated[
        int | None, typer.Option(help="Samples per step; left out: 100 for each device.")
    ] = None,
    width: Annotated[int | None, typer.Option(help="Dense net: units per layer, or 2048.")] = None,
    price: Annotated[str, typer.Option(help="Per device and hour: cs2=60,h100=2.5.")] = "",
    figure: Annotated[str, typer.Option(help="File for the figure, as which.png.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Time, energy and cost of several machines, and which wins."""
    from wse.choose.compare import USUAL
    from wse.choose.compare import compare as run
    from wse.models.shapes.workload import dense

    with told():
        said = said_of(model, batch_size, has_aux)
        if model:
            refuse_beside(f"model {model!r}, which has its own", width=width)
        found = run(
            _model(model, example, said) if model else dense(**_sizes(width)),
            None,
            batch,
            machines=[name.strip() for name in machines.split(",")] if machines else USUAL,
            samples=samples,
            price=_prices(price),
        )
        if figure:
            _draw(found, figure)
        typer.echo(written(found.document()) if as_json else str(found))


def _sizes(width: int | None) -> dict[str, int]:
    return {} if width is None else {"width": width}


def _model(name: str, example: str, said: dict[str, Any]) -> Any:
    from wse.models import own

    own.check_example(name, example)
    return graph_of(name, example, said) if own.is_own(name) else name


def _prices(text: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        refuse_twice("price", name.strip(), found)
        try:
            found[name.strip()] = float(value)
        except ValueError:
            raise ValueError(
                f"price is {part!r}; it must be a machine and a number: pass --price h100=2.5"
            ) from None
    return found


def _draw(found: Any, path: str) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    ax = found.draw()
    try:
        with write_aside(path) as aside:
            ax.figure.savefig(aside, dpi=150)
    except OSError as failure:
        raise ValueError(f"figure is {path!r}: {failure}; pass a file in a folder") from None
