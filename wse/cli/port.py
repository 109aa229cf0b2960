"""The command `wse port`: one page on one model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wse._command import told, written
from wse.cli.params import (
    BatchSize,
    Example,
    HasAux,
    numbers,
    refuse_beside,
    refuse_twice,
    said_of,
)

if TYPE_CHECKING:
    from wse.choose.page import Port

EXAMPLE = """Examples:

  wse port model.py:Net --example 8x3x224x224 --out port.html

  wse port --params params_llama2_7b.yaml --systems 1,16 --json

  wse port GPT-J-6B --beside "8 x h100=2.5,cs2=60" --samples 10000000

  wse port model.py:step --data samples.npz --steps 300"""
MODEL = (
    "A name of `wse workloads`, a YAML file or a config.json, or your own program: "
    "package.module:function, model.py:Net."
)
BESIDE = "Machines with commas between, and what a device costs an hour: 8 x h100=2.5,here."
DATA = "An .npz with the arrays of a batch in its order, the samples along the first axis."


def port(
    model: Annotated[str, typer.Argument(help=MODEL)] = "",
    params: Annotated[str, typer.Option(help="A params file, or a config.json.")] = "",
    example: Example = "",
    batch_size: BatchSize = None,
    has_aux: HasAux = None,
    weights: Annotated[str, typer.Option(help="Of a module of PyTorch, a safetensors file.")] = "",
    machine: Annotated[str, typer.Option(help="cs1, cs2, cs3, or a YAML file.")] = "cs2",
    systems: Annotated[
        str | None, typer.Option(help="As 1,4; left out: as the file has it.")
    ] = None,
    batch: Annotated[
        int | None, typer.Option(help="Samples per step; left out: the model's, or 100.")
    ] = None,
    samples: Annotated[
        int | None, typer.Option(help="Processed; left out: the file's, or 10^6.")
    ] = None,
    beside: Annotated[str, typer.Option(help=BESIDE)] = "",
    data: Annotated[str, typer.Option(help=DATA)] = "",
    steps: Annotated[int | None, typer.Option(help="Of each training on --data, or 300.")] = None,
    out: Annotated[Path, typer.Option(help="The page.")] = Path("port.html"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, write no page.")] = False,
) -> None:
    """Whether and how to port a model: one page of HTML, or JSON.

    A program of yours is imported and runs as Python runs it; a module is called with --example.
    """
    with told():
        if bool(model) == bool(params):
            raise ValueError(
                f"model is {model!r} and params is {params!r}; one of them must be given: "
                "wse port MODEL, or wse port --params FILE"
            )
        if out.suffix != ".html" and not as_json:
            raise ValueError(f"out is {str(out)!r}; a page ends in .html: pass --out port.html")
        options = {
            "machine": machine,
            "samples": samples,
            "systems": None if systems is None else numbers("systems", systems, int),
            "beside": _beside(beside),
            **said_of(model or params, batch_size, has_aux),
        }
        found = _ported(model or params, (example, weights), batch, (data, steps), options)
        if as_json:
            typer.echo(written(found.document()))
            return
        found.save(out)
        typer.echo(f"{found}\n\n{out}")


def _ported(
    name: str,
    module: tuple[str, str],
    batch: int | None,
    data: tuple[str, int | None],
    options: dict[str, Any],
) -> "Port":
    from wse.choose.page import Data, port, trials
    from wse.choose.page.port import named
    from wse.models import own
    from wse.models.zoo import Traceable

    example, weights = module
    own.check_example(name, example or weights)
    model: Any = own.traceable(name, example, weights) if own.is_own(name) else name
    path, steps = data
    if not path:
        refuse_beside("no --data, on which alone there is training", steps=steps)
    else:
        from wse._npz import read_npz

        if not isinstance(model, Traceable):
            raise ValueError(
                f"data is {path!r} beside {name!r}, which has no weights here; trainings start "
                "from weights: name a program of yours, as model.py:Net"
            )
        if not Path(path).is_file():
            raise ValueError(f"data is {path!r}, which is no file; it must be an .npz: correct it")
        asked = Data(None) if steps is None else Data(None, steps=steps)
        given = trials.from_arrays(model, read_npz(path), asked)
        options["data"] = given
    if isinstance(model, Traceable):
        if batch is not None:
            raise ValueError(
                f"batch is {batch} beside {name}, which brings its own; change its example or its "
                "batch: leave --batch out"
            )
        own_loss = "" if not example else ", with the mean squared error of its output as loss"
        page = port(model.loss, model.params, model.batch, **options)
        return named(page, name, f"a program of yours{own_loss}")
    return port(model, batch=batch, **options)


def _beside(text: str) -> dict[str, float | None] | None:
    found: dict[str, float | None] = {}
    for part in filter(None, (x.strip() for x in text.split(","))):
        name, priced, value = part.partition("=")
        refuse_twice("beside", name.strip(), found)
        try:
            found[name.strip()] = float(value) if priced else None
        except ValueError:
            raise ValueError(
                f"beside is {part!r}; it must be a machine, and a number if it has a price: pass "
                "--beside 'cs2=60,8 x h100=2.5'"
            ) from None
    return found or None
