"""A user's own function by name, `package.module:function`, from the command line and nowhere else.

A name in a file is never imported: nothing that is loaded from disk executes.
"""

# What a user's function returns has no type.
# pyright: reportUnknownArgumentType=false

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wse.models.zoo import Traceable


def is_own(name: str) -> bool:
    """Whether a name is of a function, not of a model of the catalogue or of a file."""
    return ":" in name and not Path(name).suffix


def named(path: str, rule: str) -> Any:
    """What stands at "package.module:name"; None without a name, or if the module has none such.

    Raises:
        ValueError: there is no such module.
    """
    module, _, name = path.partition(":")
    try:
        return getattr(import_module(module), name, None) if name else None
    except (ImportError, ValueError) as error:
        raise ValueError(f"model is {path!r}: {error}; {rule}, its folder on PYTHONPATH") from error


def traceable(path: str) -> "Traceable":
    """What a user's function gives to be traced.

    Args:
        path: "package.module:function"; the function takes nothing and returns `(loss, params,
            batch)` as `wse.trace` takes them. Shapes do: nothing is computed.

    Raises:
        ValueError: no such function, or it returns something else.
    """
    from wse.models.zoo import Traceable

    rule = "it must name a function as package.module:function"
    make = named(path, rule)
    if not callable(make):
        raise ValueError(f"model is {path!r}; {rule}")
    made: Any = make()
    if type(made) is not tuple or len(made) != 3 or not callable(made[0]):
        raise ValueError(
            f"{path} returned {type(made).__name__}; it must return (loss, params, batch), as "
            "wse.trace takes them"
        )
    return Traceable(*made)
