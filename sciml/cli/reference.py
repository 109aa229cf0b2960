"""The command `sciml reference`."""

from pathlib import Path
from typing import Annotated

import typer

from wse._command import told


def reference(
    names: Annotated[list[str], typer.Argument(help="Problems of the catalogue.")],
    out: Annotated[Path, typer.Option(help="The folder of NetCDF files.")] = Path("reference"),
    seed: Annotated[int, typer.Option(help="Of the observation and of all draws.")] = 0,
) -> None:
    """Compute reference posteriors of the catalogue, by two samplers.

    Example: sciml reference lotka_volterra sir --out reference
    """
    from sciml.reference.compute import check_name, compute, write
    from wse._files import ensure_folder

    with told():
        for name in names:  # before minutes are spent on the first of them
            check_name(name)
        ensure_folder(out)
        for name in dict.fromkeys(names):
            typer.echo(f"{write(compute(name, seed=seed), out)}")
