"""A user's own program by name, from the command line and nowhere else.

`package.module:function`, or `model.py:Net`: the file is imported as Python does, since it is the
user's own program. A name in a file is never imported: nothing that is loaded from disk executes.
"""

# What a user's function returns has no type.
# pyright: reportUnknownArgumentType=false

import re
import sys
from difflib import get_close_matches
from functools import wraps
from importlib import import_module, util
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import Any

from wse.models.built import as_traceable, first_line
from wse.models.shapes.foreign import check_kind
from wse.models.zoo import Traceable


def is_own(name: str) -> bool:
    """Whether a name is of a user's program, not of a model of the catalogue or of a file.

    >>> is_own("package.module:function"), is_own("model.py:Net"), is_own("model.yaml")
    (True, True, False)
    """
    return _is_file(name) or bool(re.fullmatch(r"[^/\\]*:\w*", name))


def check_example(name: str, example: str) -> None:
    """Refuse an example beside a model that is no program of the user's."""
    if example and not is_own(name):
        raise ValueError(
            f"example is {example!r} beside model {name!r}; only a module of your own program "
            "takes one, as model.py:Net: leave it out"
        )


def named(path: str, rule: str) -> Any:
    """What stands at "package.module:name"; None without a name, or if the module has none such.

    Raises:
        ValueError: there is no such module.
    """
    module, _, name = path.partition(":")
    try:
        return getattr(import_module(module), name, None) if name else None
    except (ImportError, ValueError, TypeError) as error:  # the last of ".:name"
        check_kind(module)
        raise ValueError(f"model is {path!r}: {error}; {rule}, its folder on PYTHONPATH") from error


def traceable(path: str, example: str = "", weights: str = "") -> Traceable:
    """What a user's program gives to be traced.

    Args:
        path: "package.module:name" or "file.py:name"; a function that takes nothing and returns
            `(loss, params, batch)` as `wse.trace` takes them, or a module of PyTorch or Flax, or
            its class, or a function that returns one. Shapes do: nothing is computed.
        example: of a module, the shape of its input, as "8x3x224x224"; several with commas, and of
            whole numbers as "8x128:int", of masks as "8x128:bool".
        weights: of a module of PyTorch, a safetensors file.

    Raises:
        ValueError: no such name, one that needs arguments, that returns something else or that does
            not take the example.
    """
    rule = "it must name a function as package.module:function, or a module as model.py:Net"
    if _is_file(path):
        found = _in_file(path, rule)
    elif (found := named(path, rule)) is None:
        raise ValueError(f"model is {path!r}; {rule}")
    made = as_traceable(found, path, example, weights)

    @wraps(made.loss)
    def loss(params: Any, batch: Any) -> Any:
        try:
            return made.loss(params, batch)
        except Exception as error:  # whatever the user's lines raise
            if "unbound axis name" in str(error):
                raise  # which the trace answers
            lines = [x for x in extract_tb(error.__traceback__) if _is_users(x.filename)]
            at = f", {Path(lines[-1].filename).name}:{lines[-1].lineno}" if lines else ""
            raise ValueError(
                f"the loss of {path} raised {type(error).__name__}: {first_line(error)}{at}; it is "
                "traced on the shapes of its params and batch: correct it"
            ) from error

    return Traceable(loss, made.params, made.batch)


def _is_users(file: str) -> bool:
    path = Path(file)
    return "site-packages" not in path.parts and Path(__file__).parents[1] not in path.parents


def _is_file(name: str) -> bool:
    return name.rpartition(":")[0].endswith(".py")


def _in_file(path: str, rule: str) -> Any:
    file, _, name = path.rpartition(":")
    module = _module(Path(file))
    if name in vars(module):
        return vars(module)[name]
    own = [x for x, y in vars(module).items() if getattr(y, "__module__", "") == module.__name__]
    near = get_close_matches(name, own, n=1)
    words = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(own[:10]) or 'none'}"
    raise ValueError(f"{file} has no {name!r}; {rule}: {words}")


def _module(path: Path) -> ModuleType:
    """The user's file as a module; what it imports from beside itself is found."""
    if not path.is_file():
        raise ValueError(f"model is in {str(path)!r}, which is no file: correct the path")
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = f"own_{path.stem}"
    spec: Any = util.spec_from_file_location(name, path.resolve())
    module = util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # whatever the user's lines raise
        del sys.modules[name]
        lines = [x for x in extract_tb(error.__traceback__) if Path(x.filename) == path.resolve()]
        at = f", line {lines[-1].lineno}" if lines else ""
        raise ValueError(
            f"{path} cannot be imported ({type(error).__name__}: {first_line(error)}{at}); it runs "
            f"as any program of yours: correct it, until `python {path}` ends well"
        ) from error
    return module
