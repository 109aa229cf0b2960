"""The command `wse check`: which operations of a model would port."""

from typing import Annotated, Any

import typer


def check(
    model: Annotated[
        str, typer.Argument(help="package.module:function, returning (loss, params, batch).")
    ],
    machine: Annotated[str, typer.Option(help="cs1, cs2 or cs3.")] = "cs2",
    release: Annotated[str, typer.Option(help="Release of the vendor's software.")] = "2.10",
    mode: Annotated[str, typer.Option(help="streaming or pipelined.")] = "streaming",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Verdicts on every operation of a model; exit code 1 if it is not known to port."""
    import json

    from wse.support import check as run

    try:
        loss, params, batch = _made(model)
        report = run(loss, params, batch, machine=_machine(machine), release=release, mode=mode)
    except (ImportError, ValueError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from error
    typer.echo(json.dumps(report.document(), indent=2) if as_json else str(report))
    raise typer.Exit(0 if report.portable else 1)


def _made(path: str) -> Any:
    from importlib import import_module

    module, _, name = path.partition(":")
    make = getattr(import_module(module), name, None) if name else None
    if not callable(make):
        raise ValueError(
            f"model is {path!r}; it must name a function as package.module:function that returns "
            "(loss, params, batch): put its folder on PYTHONPATH"
        )
    return make()


def _machine(name: str) -> Any:
    from wse import catalog

    known = {m.name.replace("-", "").lower(): m for m in catalog.MACHINES}
    if name.replace("-", "").lower() not in known:
        raise ValueError(f"machine is {name!r}; it must be one of {', '.join(known)}: pass that")
    return known[name.replace("-", "").lower()]
