"""What a user's program names, as a loss and shapes: a module, its class, or what makes one.

Modules of PyTorch, of Flax (nnx and linen) get the mean squared error of their first output as
loss; a function may return `(loss, params, batch)` of its own instead. What is asked about is a
training: batch norm takes the batch's own mean and spread, and dropout of Flax drops, by keys that
stand behind the example in the batch. PyTorch's dropout is left out.
"""

# What a user's program holds has no type; torch is an extra.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false
# pyright: reportMissingImports=false

import inspect
import re
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen, nnx

from wse.graph.function import EQUINOX, bases
from wse.models.pytorch.module import FromTorch, from_torch
from wse.models.zoo import Traceable

SMALL = 100_000_000  # parameters up to which a module of Flax gets weights, as one of PyTorch does
# What a module is told at a call, so that it trains.
TRAINS = {
    **dict.fromkeys(("train", "training", "is_training"), True),
    **dict.fromkeys(("deterministic", "use_running_average"), False),
}
INPUT = re.compile(r"(\d+(?:x\d+)*)(?::(float|int|bool))?")
KINDS = {"int": jnp.int32, "bool": jnp.bool_}


def as_traceable(found: Any, name: str, example: str = "", weights: str = "") -> Traceable:
    """A user's object as what `wse.trace` and `wse.check` take.

    Args:
        found: `(loss, params, batch)`, a module of PyTorch or Flax, a class of these, or a function
            without arguments that returns one of these.
        name: for errors.
        example: shapes of the inputs of a module, as `inputs` reads them.
        weights: of a module of PyTorch, a safetensors file.

    Raises:
        ValueError: something else, arguments that are lacking, or a module that does not take the
            example.
    """
    made = found
    is_class = isinstance(found, type) and issubclass(found, _kinds())
    is_module = _is_module(found) or EQUINOX in bases(found)
    if is_class or (not is_module and callable(found)):
        made = _called(found, name)
    if weights and not (_torch() and isinstance(made, _torch().nn.Module)):
        raise ValueError(
            f"weights is {weights!r} beside {name}, which is no module of PyTorch; only such takes "
            "a file of weights: leave it out"
        )
    if _is_module(made):
        return _of_module(made, name, example, weights)
    ready = isinstance(made, Traceable | FromTorch)
    three: Any = (made.loss, made.params, made.batch) if ready else made
    if not isinstance(three, tuple | list) or len(three) != 3 or not callable(three[0]):
        raise ValueError(
            f"{name} is or returned a {type(made).__name__}; it must return (loss, params, batch), "
            "as wse.trace takes them, or be a module of PyTorch or Flax"
        )
    if example:
        raise ValueError(
            f"example is {example!r} beside {name}, which brings a batch of its own; a module "
            "alone needs one: leave the example out"
        )
    return Traceable(*three)


def inputs(example: str, name: str = "the module") -> list[jax.ShapeDtypeStruct]:
    """The inputs that an example says.

    Args:
        example: "8x3x224x224"; several with commas between; of whole numbers with ":int" behind, of
            masks with ":bool".
        name: of the module, for errors.

    Raises:
        ValueError: no example, or one that cannot be read.

    >>> inputs("2x8:int,2x4")
    [ShapeDtypeStruct(shape=(2, 8), dtype=int32), ShapeDtypeStruct(shape=(2, 4), dtype=float32)]
    >>> inputs("2x8:bool")[0].dtype
    dtype('bool')
    """
    if not example:
        raise ValueError(
            f"{name} is a module, and what enters it is not said; an example must have the shapes "
            "of a batch: pass --example 8x3x224x224, of whole numbers --example 8x128:int"
        )
    read = [INPUT.fullmatch(part.strip()) for part in example.split(",")]
    if None in read or any("0" in x[1].split("x") for x in read if x):
        raise ValueError(
            f"example is {example!r}; it must be positive sizes with x between, inputs with commas "
            "between, whole numbers with :int behind, masks with :bool: pass --example "
            "8x3x224x224,8x10:int"
        )
    return [
        jax.ShapeDtypeStruct(tuple(map(int, x[1].split("x"))), KINDS.get(x[2], jnp.float32))
        for x in read
        if x
    ]


def _torch() -> Any:
    """PyTorch, where the user's program has imported it."""
    return sys.modules.get("torch")


def _kinds() -> tuple[type, ...]:
    torch = _torch()
    return (nnx.Module, linen.Module, *((torch.nn.Module,) if torch else ()))


def _is_module(found: Any) -> bool:
    return isinstance(found, _kinds())


def _called(found: Callable[..., Any], name: str) -> Any:
    """What a class or a function without arguments gives; of nnx with the keys that it takes."""
    lacking = [
        x.name
        for x in _arguments(found)
        if x.default is x.empty and x.kind not in (x.VAR_POSITIONAL, x.VAR_KEYWORD)
    ]
    if lacking == ["rngs"]:
        return _with_keys(lambda: found(rngs=nnx.Rngs(0)))
    if lacking:
        own = name.rpartition(":")[2]
        loss = not isinstance(found, type) and len(lacking) > 1  # of parameters and a batch
        returned = f"{own}, params, batch" if loss else f"{own}({lacking[0]}=...)"
        raise ValueError(
            f"{name} needs {', '.join(lacking)}; it is called without arguments: give them "
            f"defaults, or name a function such as `def ready(): return {returned}`"
        )
    try:
        return found()
    except Exception as error:  # the user's own program
        raise ValueError(
            f"{name} was called and raised {type(error).__name__}: {first_line(error)}; it must "
            "give a module or (loss, params, batch): correct it"
        ) from error


def _arguments(found: Callable[..., Any]) -> list[inspect.Parameter]:
    # A class of nnx is made by its metaclass, whose signature says nothing.
    start = found.__init__ if isinstance(found, type) else found
    try:
        every = [*inspect.signature(start).parameters.values()]
    except (TypeError, ValueError):
        return []
    return every[1:] if isinstance(found, type) else every


def _with_keys(make: Callable[[], Any]) -> Any:
    """A module of nnx: with weights, or with their shapes where there are very many."""
    shapes = nnx.eval_shape(make)
    count = sum(x.size for x in jax.tree.leaves(nnx.state(shapes, nnx.Param)))
    return make() if count <= SMALL else shapes


def _of_module(module: Any, name: str, example: str, weights: str) -> Traceable:
    entering = inputs(example, name)
    if isinstance(module, nnx.Module):
        return _of_nnx(module, entering, name)
    if isinstance(module, linen.Module):
        return _of_linen(module, entering, name)
    torch: Any = _torch()
    zeros = [np.zeros(x.shape, np.int64 if x.dtype == jnp.int32 else x.dtype) for x in entering]
    module.eval()  # chance is no part of a function of parameters and batch
    for part in module.modules():
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm):  # of all kinds of images
            part.train()
    made = from_torch(module, tuple(map(torch.from_numpy, zeros)), weights=weights or None)
    return Traceable(made.loss, made.params, made.batch)


def _of_nnx(module: nnx.Module, entering: list[Any], name: str) -> Traceable:
    module.train()
    structure, params, keys, rest = nnx.split(module, nnx.Param, nnx.RngKey, ...)
    how = _trains(module)

    def apply(params: Any, rest: Any, keys: Any, *x: Any) -> Any:
        return nnx.merge(structure, params, keys, rest, copy=True)(*x, **how)

    return _measured(apply, params, rest, keys, entering, name)


def _of_linen(module: linen.Module, entering: list[Any], name: str) -> Traceable:
    how, key = _trains(module), jax.random.key(0)

    def first(key: Any, *x: Any) -> Any:
        return module.init(key, *x, **how)

    make = _taken(lambda: jax.eval_shape(first, key, *entering), entering, name)
    if sum(x.size for x in jax.tree.leaves(make)) <= SMALL:
        zeros = [jnp.zeros(x.shape, x.dtype) for x in entering]
        make = jax.jit(first)(key, *zeros)
    variables = {**make}
    params = variables.pop("params", {})

    def apply(params: Any, rest: Any, keys: Any, *x: Any) -> Any:
        held = {"params": params, **rest}
        return module.apply(held, *x, **how, rngs=keys, mutable=[*rest])[0]

    return _measured(apply, params, variables, key, entering, name)


def _trains(module: Any) -> dict[str, Any]:
    """Those words of `TRAINS` that a call of the module takes."""
    known = inspect.signature(type(module).__call__).parameters
    return {word: value for word, value in TRAINS.items() if word in known}


def _measured(
    apply: Callable[..., Any], params: Any, rest: Any, keys: Any, entering: list[Any], name: str
) -> Traceable:
    """With the mean squared error of the first output; keys, and shapes of statistics, behind."""
    out = _taken(lambda: jax.eval_shape(apply, params, rest, keys, *entering), entering, name)
    wanted = jax.tree.leaves(out)[0]

    def loss(params: Any, batch: Any) -> Any:
        x, y, keys, *held = batch
        found = apply(params, held[0] if held else rest, keys, *x)
        return jnp.mean((jax.tree.leaves(found)[0] - y) ** 2)

    made = jax.tree.leaves((params, rest))
    if not any(isinstance(x, jax.ShapeDtypeStruct) for x in made):
        return Traceable(loss, params, (tuple(entering), wanted, keys))
    behind = jax.eval_shape(lambda *held: held, keys, rest)
    return Traceable(loss, params, (tuple(entering), wanted, *behind))


def _taken(call: Callable[[], Any], entering: list[Any], name: str) -> Any:
    try:
        return call()
    except Exception as error:  # the user's own program, on shapes that it may not take
        shapes = ", ".join("x".join(map(str, x.shape)) for x in entering)
        raise ValueError(
            f"{name} does not take an example of {shapes} ({type(error).__name__}: "
            f"{first_line(error)}); it must have the shapes that the module is called with as it "
            "trains: pass another --example, or name a function that returns (loss, params, batch)"
        ) from error


def first_line(error: BaseException) -> str:
    """What an error of a user's program says, in one line."""
    return str(error).strip().partition("\n")[0][:200]
