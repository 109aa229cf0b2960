"""The border of every command: one line for a user's mistake, exit codes, soft ends."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from importlib import metadata
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from wse._stop import TERMINATED, terminable

MISTAKE, INTERRUPTED = 2, 130  # the latter is a shell's exit code: 128 + SIGINT
# The last one is also what samplers and JAX raise that can go no further.
MISTAKES = (ValueError, OSError, ImportError, FloatingPointError, MemoryError, RuntimeError)


EMPTY = ("--mode", "--release")  # of these their help says what an empty one means


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


class Commands(TyperGroup):
    """Commands that refuse empty words, as of a shell variable that is not set.

    An option that is empty would count as left out, and what stands in its place be answered.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Look at all words before any is read."""
        with told():
            refuse_empty(args)
        return TyperGroup.parse_args(self, ctx, args)


def refuse_empty(words: list[str]) -> None:
    """Refuse a word of a command line, or the value of an option, that is empty.

    Raises:
        ValueError: it says which.

    >>> refuse_empty(["--x="])
    Traceback (most recent call last):
    ...
    ValueError: --x is empty, as of a shell variable that is not set: write a value, or leave it out
    """
    for before, word in zip(["", *words], words, strict=False):
        name, mark, value = word.partition("=")
        if word and not (mark and not value and name.startswith("--")):
            continue
        named = name if word else before if before.startswith("-") else "a word of the command"
        if named not in EMPTY:
            raise ValueError(
                f"{named} is empty, as of a shell variable that is not set: write a value, or "
                "leave it out"
            )
