"""The graph of an exported module, step by step: each operation by the table, in JAX."""

# torch is an extra, and what a graph holds has no static type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache, partial
from operator import getitem
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wse.models.pytorch.frames import line, place
from wse.models.pytorch.layers import LAYERS, PLACES
from wse.models.pytorch.matrices import MATRICES
from wse.models.pytorch.resizing import RESIZING
from wse.models.pytorch.shaping import SHAPING
from wse.models.pytorch.spectra import SPECTRA
from wse.models.pytorch.table import ARITHMETIC

OPERATIONS = {**ARITHMETIC, **SHAPING, **LAYERS, **RESIZING, **SPECTRA, **MATRICES}
CHANCE = (
    *("bernoulli", "exponential", "multinomial", "normal", "rand", "rand_like"),
    *("randint", "randn", "randn_like", "randperm", "uniform"),
)
ERRORS = ("_linalg_check_errors",)  # where PyTorch raises one, numbers are none here
LIBRARIES = ("aten", "transformers", "wse")
WEIGHTS = ("parameter", "frozen")  # the latter have `requires_grad` off: their gradient is zero
# Where an array lies, and in which kind of number: the latter is taken from what export says.
ADDED_UP = ("cumprod", "cumsum", "linalg_vector_norm", "mean", "prod", "sum")
ELSEWHERE = ("device", "layout", "pin_memory", "memory_format", "non_blocking", "dtype")


def kind_of(kind: Any) -> Any:
    """A kind of number of PyTorch as JAX has it: of 64 bits only where JAX is told so.

    Raises:
        ValueError: JAX has no such numbers, as complex ones of 32 bits.
    """
    name = str(kind).removeprefix("torch.")
    if not _known(name):
        raise ValueError(f"a tensor is of {kind}, which JAX has not: use a wider kind")
    return jax.dtypes.canonicalize_dtype(name)


@cache
def _known(name: str) -> bool:
    try:
        return jnp.empty(0, jax.dtypes.canonicalize_dtype(name)).size == 0
    except TypeError:
        return False


def check_graph(owner: Any) -> None:
    """Refuse what is not mapped, before anything is computed, in branches too.

    Raises:
        ValueError: the first operation that is not.
    """
    for node in owner.graph.nodes:
        if node.op == "call_function":
            _operation(node)
        elif node.op == "get_attr" and _is_graph(getattr(owner, node.target)):
            check_graph(getattr(owner, node.target))


def run(
    program: Any,
    values: Mapping[str, tuple[str, str, Any]],
    params: Mapping[str, Any],
    inputs: tuple[Any, ...],
) -> Any:
    """What a program gives of parameters and inputs.

    Args:
        program: of `torch.export`.
        values: what stands at each placeholder: kind, name, and the array where it is no input.
        params: the parameters by name.
        inputs: of the module, in the program's order.

    Raises:
        ValueError: an operation that is not mapped with such arguments.
    """

    def entering() -> Iterator[Any]:
        waiting = iter(inputs)
        for node in program.graph.nodes:
            if node.op == "placeholder":
                kind, name, array = values[node.name]
                got = params[name] if kind in WEIGHTS else array
                made = jnp.asarray(next(waiting) if kind == "input" else got)
                yield jax.lax.stop_gradient(made) if kind == "frozen" else made

    held = _walked(program.graph_module, entering())
    wanted = program.graph_signature.user_outputs
    by_name = {node.name: value for node, value in held.items()}
    given = [node for node in program.graph.nodes if node.name in wanted]
    _refuse_lost(given, held)
    found = [by_name[name] if isinstance(name, str) else name for name in wanted]
    return found[0] if len(found) == 1 else tuple(found)


def _walked(owner: Any, entering: Iterator[Any]) -> dict[Any, Any]:
    """What every node of a graph holds."""
    held: dict[Any, Any] = {}
    for node in owner.graph.nodes:
        if node.op == "placeholder":
            held[node] = next(entering)
        elif node.op == "get_attr":
            held[node] = getattr(owner, node.target)
        elif node.op == "call_function":
            with jax.named_scope(place(node)):
                held[node] = _called(node, held)
    return held


def _branch(owner: Any, *given: Any) -> tuple[Any, ...]:
    """What one of two branches gives."""
    held = _walked(owner, iter(given))
    (last,) = (node for node in owner.graph.nodes if node.op == "output")
    _refuse_lost(last.all_input_nodes, held)
    return tuple(map(jnp.asarray, _filled(last.args[0], held)))


def branched(truth: Any, yes: Any, no: Any, given: Any) -> Any:
    """One of two graphs, by a value."""
    return jax.lax.cond(
        jnp.asarray(truth).reshape(()), partial(_branch, yes), partial(_branch, no), *given
    )


def _is_graph(held: Any) -> bool:
    return type(held).__name__ == "GraphModule"


def _called(node: Any, held: Mapping[Any, Any]) -> Any:
    operation = _operation(node)
    _refuse_lost(node.all_input_nodes, held)
    given = _filled([*node.args], held)
    named = {k: _filled(v, held) for k, v in node.kwargs.items() if k not in ELSEWHERE}
    meta = node.meta.get("val")
    # In what is given, where what enters could not hold the sum; norms of complex ones are real.
    if _plain(node) in ADDED_UP and not jnp.iscomplexobj(given[0]):
        given[0] = jnp.asarray(given[0], kind_of(meta.dtype))
    try:
        out = operation(*given, **named)
    except OverflowError as error:
        raise ValueError(
            f"operation {node.target} has an integer beyond 32 bits{line(node)}; JAX holds 32 "
            "unless it is told: jax.config.update('jax_enable_x64', True)"
        ) from error
    except (TypeError, ArithmeticError, LookupError, ValueError, NotImplementedError) as error:
        reason = str(error).strip().partition("\n")[0][:200]
        if type(error) is ValueError and reason.count(":"):  # of our own, with its remedy
            raise ValueError(f"{reason}{line(node)}") from error
        raise ValueError(
            f"operation {node.target} is not mapped to JAX with such arguments ({reason})"
            f"{line(node)}: write it in other operations, or report it"
        ) from error
    if isinstance(meta, list | tuple):
        return tuple(_as_said(node, *pair) for pair in zip(out, meta, strict=False))
    return _as_said(node, out, meta)


def _refuse_lost(read: list[Any], held: Mapping[Any, Any]) -> None:
    """Refuse to go on from a part of a result that the table's operation does not compute."""
    for node in read:
        if held[node] is None:
            source = (node.args or (node,))[0]
            raise ValueError(
                f"operation {getattr(source, 'target', source)} gives its values alone here, not "
                f"their places or what else is read{line(node)}: use the values, or report it"
            )


def _filled(value: Any, held: Mapping[Any, Any]) -> Any:
    if isinstance(value, list | tuple):
        return [_filled(one, held) for one in value]
    return held[value] if type(value).__name__ == "Node" else value


def _as_said(node: Any, out: Any, said: Any) -> Any:
    """An array in the kind of number that export says; shapes must be those that it says."""
    if out is None or said is None or not isinstance(out, jax.Array | np.ndarray):
        return out
    if tuple(out.shape) != tuple(said.shape):
        raise ValueError(
            f"{node.target} gives {tuple(out.shape)}; PyTorch gives {tuple(said.shape)}"
            f"{line(node)}: please report it"
        )
    return jnp.asarray(out, kind_of(said.dtype))


def _operation(node: Any) -> Callable[..., Any]:
    """The JAX function of a node."""
    name = str(node.target)
    if name.startswith("<built-in function"):
        name = str(node.target.__name__)
        if name == "getitem":
            return node.target
    plain = _plain(node)
    if name == "cond":
        return branched
    if name == "with_effects":  # which keeps in order what may raise errors
        name, plain = str(node.args[1]), str(node.args[1]).split(".")[1]
        if plain in ERRORS:
            return _passed
    if plain in PLACES and any(
        x.target is getitem and x.args[1] == 1 and x.users for x in node.users
    ):
        return PLACES[plain]
    if plain in ("as_strided", "as_strided_scatter") and not _lies_in_rows(node):
        raise ValueError(
            f"operation {name} counts in the memory of a tensor that does not lie in it row by row"
            f"{line(node)}: call .contiguous() before"
        )
    if plain in OPERATIONS and plain != name:
        return OPERATIONS[plain]
    if plain in CHANCE:
        raise ValueError(
            f"operation {name} draws random numbers{line(node)}; a function of parameters and "
            "batch has none: call module.eval() before, or pass them in as an input"
        )
    near = get_close_matches(plain, OPERATIONS, n=1, cutoff=0.8)
    hint = f", near {near[0]!r} which is" if near else ""
    raise ValueError(
        f"operation {name} is not mapped to JAX{hint}{line(node)}: write it in other operations, "
        "or report it"
    )


def _passed(token: Any, *_: Any, **__: Any) -> tuple[Any]:
    """The token of what raises errors, where nothing else is done."""
    return (token,)


def _plain(node: Any) -> str:
    """The name of a node's operation, without its library and the kinds of its arguments."""
    name = str(node.target)
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and parts[0] in LIBRARIES else name


def _lies_in_rows(node: Any) -> bool:
    """Whether the tensor of a node lies in memory as its numbers follow, from the beginning."""
    tensor = node.args[0].meta.get("val")
    return tensor is None or (tensor.is_contiguous() and tensor.storage_offset() == 0)
