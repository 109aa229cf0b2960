"""The border of every command: one line for a user's mistake, exit codes, soft ends."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from importlib import metadata
from typing import Annotated, Any

import typer

from wse._stop import TERMINATED, terminable

MISTAKE, INTERRUPTED = 2, 130  # the latter is a shell's exit code: 128 + SIGINT
# The last one is also what samplers and JAX raise that can go no further.
MISTAKES = (ValueError, OSError, ImportError, FloatingPointError, MemoryError, RuntimeError)


def version(asked: bool) -> bool:
    """What `--version` prints: the release of the distribution, and of what the numbers hang on."""
    if asked:
        of = {name: metadata.version(name) for name in ("jax", "flax", "numpy")}
        with_ = ", ".join(f"{name} {number}" for name, number in of.items())
        typer.echo(f"sciml-wse {metadata.version('sciml-wse')} ({with_})")
        raise typer.Exit
    return asked


Version = Annotated[
    bool,
    typer.Option("--version", callback=version, is_eager=True, help="Print the release and end."),
]


def written(document: Any) -> str:
    """A document as a command prints it."""
    return json.dumps(document, indent=2)


@contextmanager
def told(goes_on: str = "the same command goes on from here") -> Generator[None]:
    """Tell a user's mistake in one line with exit code 2, an interruption with 130 or 143.

    Of a reader that has gone, as `head` does, nothing is told: the library ends the command.
    """
    try:
        with terminable():
            yield
    except (typer.Exit, typer.Abort, BrokenPipeError):  # which are RuntimeErrors, and an OSError
        raise
    except MISTAKES as error:
        typer.echo(f"error: {str(error) or type(error).__name__}", err=True)
        raise typer.Exit(MISTAKE) from error
    except KeyboardInterrupt as error:
        typer.echo(f"interrupted; {goes_on}", err=True)
        raise typer.Exit(INTERRUPTED) from error
    except SystemExit as error:
        if error.code == TERMINATED:
            typer.echo(f"terminated; {goes_on}", err=True)
        raise
