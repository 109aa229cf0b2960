"""A module of PyTorch as a JAX function of its parameters, by way of `torch.export`."""

# torch is an extra, and what a graph holds has no static type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

import logging
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wse.models.pytorch.backward import refuse_own_backward
from wse.models.pytorch.detached import mark_detached
from wse.models.pytorch.entering import call, check_complete, check_width, entered, ordered, squared
from wse.models.pytorch.frames import line, place
from wse.models.pytorch.layers import LAYERS
from wse.models.pytorch.resizing import RESIZING
from wse.models.pytorch.shaping import SHAPING
from wse.models.pytorch.spectra import SPECTRA
from wse.models.pytorch.table import ARITHMETIC
from wse.models.pytorch.weights import load, read_weights

OPERATIONS = {**ARITHMETIC, **SHAPING, **LAYERS, **RESIZING, **SPECTRA}
CHANCE = (
    *("bernoulli", "exponential", "multinomial", "normal", "rand", "rand_like"),
    *("randint", "randn", "randn_like", "randperm", "uniform"),
)
LIBRARIES = ("aten", "transformers", "wse")
WHOLE = (  # not taken apart
    *("scaled_dot_product_attention", "celu", "elu", "log_sigmoid_forward", "mish", "selu"),
    *("softplus", "std"),
)
WEIGHTS = ("parameter", "frozen")  # the latter have `requires_grad` off: their gradient is zero
# Where an array lies, and in which kind of number: the latter is taken from what export says.
ADDED_UP = ("cumprod", "cumsum", "linalg_vector_norm", "mean", "prod", "sum")
ELSEWHERE = ("device", "layout", "pin_memory", "memory_format", "non_blocking", "dtype")


@dataclass(frozen=True)
class FromTorch:
    """A module as JAX sees it.

    Attributes:
        params: its parameters by name, as arrays; of a module on the device meta, their shapes.
        apply: `apply(params, *inputs)` → what the module returns; by name if the example was.
        loss: `loss(params, batch)` → the mean squared error of the first output, or the loss that
            was given; `batch` is the inputs and what the output is compared with.
        batch: shapes of a batch as the example's.
    """

    params: Mapping[str, Any]
    apply: Callable[..., Any]
    loss: Callable[[Any, Any], Any]
    batch: Any

    def __repr__(self) -> str:
        """One line: the parameters, and the shapes that enter."""
        count = sum(x.size for x in self.params.values())
        shapes = ", ".join("x".join(map(str, x.shape)) for x in jax.tree.leaves(self.batch[0]))
        return f"FromTorch({count:,} parameters; of {shapes})"


def from_torch(
    module: Any,
    example: Any,
    *,
    loss: Callable[..., Any] | None = None,
    weights: Path | str | None = None,
) -> FromTorch:
    """A module of PyTorch as a JAX function of its parameters.

    `torch.export` writes the module down, decomposed to core ATen, and each operation is mapped to
    JAX by a table. Shapes are those of the example. Buffers, such as the averages of batch norm,
    are constants; in training mode batch norm takes the batch's own and keeps none. Numbers of 64
    bits are of 32 unless JAX is told otherwise: products of integers wrap round from 2^31 on.

    Args:
        module: a `torch.nn.Module`, its weights in memory.
        example: a tensor, a tuple of those, or a mapping from the names of arguments, as the module
            is called with.
        loss: `loss(outputs, target)` in JAX; None: the mean squared error of the first output.
        weights: a safetensors file with the module's state, which is loaded into it first.

    Returns:
        Parameters, the function, a loss and the shapes of a batch, as `wse.trace`, `wse.check`,
        `wse.estimate` and `wse.CS2().executor` take them.

    Raises:
        ImportError: PyTorch is not installed: the extra `torch`.
        ValueError: a file in place of a module, no tensor in the example, a module that does not
            export, an operation that is not mapped (with its line in the source), chance (dropout
            in training mode), a backward pass of its own, or weights of another model.

    Example:
        >>> import wse                                                    # doctest: +SKIP
        >>> made = wse.from_torch(torch.nn.Linear(3, 2), torch.ones(4, 3))  # doctest: +SKIP
        >>> wse.check(made.loss, made.params, made.batch).verdict           # doctest: +SKIP
        'native'
    """
    _check_module(module)
    inputs, by_name = entered(example)
    if weights is not None:
        load(module, read_weights(weights), str(weights))
    program = _exported(module, inputs, by_name)
    values = _values(program, _first_names(module))
    known = {name: array for kind, name, array in values.values() if kind in WEIGHTS}
    for node in program.graph.nodes:
        if node.op == "call_function":
            _operation(node)

    shapes: Any = tuple(map(_shape, inputs)) or {k: _shape(x) for k, x in by_name.items()}
    order = program.call_spec.in_spec.child(1).context  # as export has put them

    def apply(params: Mapping[str, Any], *inputs: Any, **by_name: Any) -> Any:
        check_complete(params, known)
        return _run(program, values, params, ordered(shapes, order, inputs, by_name))

    outputs = jax.eval_shape(partial(call, apply), known, shapes)
    first = jax.tree.leaves(outputs)[0]

    def measured(params: Mapping[str, Any], batch: Any) -> Any:
        given, wanted = batch
        out = call(apply, params, given)
        if loss is not None:
            return loss(out, wanted)
        return squared(jax.tree.leaves(out)[0], wanted)

    return FromTorch(known, apply, measured, (shapes, first))


def _check_module(module: Any) -> None:
    if isinstance(module, str | Path):
        kind = Path(module).suffix
        raise ValueError(
            f"module is the file {str(module)!r}; a {kind or 'file'} is not opened, since a pickle "
            "may run anything: build the module and load its weights from safetensors"
        )
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            "PyTorch is not installed; it reads modules: run pip install '.[torch]' in the clone"
        ) from error
    if not isinstance(module, torch.nn.Module):
        raise ValueError(
            f"module is a {type(module).__name__}; it must be a torch.nn.Module: pass the module"
        )


def _exported(module: Any, inputs: tuple[Any, ...], by_name: dict[str, Any]) -> Any:
    import torch

    try:
        with _quiet():
            table = torch.export.default_decompositions()
            # Taken apart, attention lies otherwise in memory, and a view that follows may fail;
            # the others have a branch that overflows where it is not taken: its gradient is 0 inf.
            for name in [x for x in table if str(x).split(".")[1] in WHOLE]:
                table.pop(name)
            with torch.enable_grad(), refuse_own_backward(module):
                program = torch.export.export(module, inputs, by_name, strict=False)
            mark_detached(program)
            return program.run_decompositions(table)
    except Exception as error:  # export raises kinds of its own, of many modules
        if type(error) is ValueError and "its own backward pass" in str(error):
            raise
        reason = str(error).strip().partition("\n")[0][:300]
        if _refuses(module, inputs, by_name):
            entered = (*inputs, *by_name.values())
            shapes = ", ".join("x".join(map(str, tuple(x.shape))) for x in entered)
            raise ValueError(
                f"{type(module).__name__} does not take an example of {shapes} ({reason}); it must "
                "have the shapes that the module is called with: pass another example"
            ) from error
        raise ValueError(
            f"{type(module).__name__} does not export ({type(error).__name__}: {reason}); "
            "torch.export must take it: write what depends on values with torch.where"
        ) from error


@contextmanager
def _quiet() -> Generator[None]:
    """Keep from the reader what PyTorch logs and prints on its way: a refusal is one line."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _refuses(module: Any, inputs: tuple[Any, ...], by_name: dict[str, Any]) -> bool:
    """Whether the module cannot be called with such inputs either, of whatever values."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    try:
        with _quiet(), FakeTensorMode(allow_non_fake_inputs=True) as mode:
            faked = {name: mode.from_tensor(x) for name, x in by_name.items()}
            module(*map(mode.from_tensor, inputs), **faked)
    except Exception as error:  # whatever the user's module raises
        named = type(error).__name__  # as where it branches on values, or counts them
        return not any(word in named for word in ("DataDependent", "DynamicOutput"))
    return False


def _first_names(module: Any) -> dict[str, str]:
    """The first name of every parameter: one that is shared has several, and counts once."""
    first: dict[int, str] = {}
    named = module.named_parameters(remove_duplicate=False)
    return {name: first.setdefault(id(tensor), name) for name, tensor in named}


def _values(program: Any, first: Mapping[str, str]) -> dict[str, tuple[str, str, Any]]:
    """What stands at each placeholder: kind, name, and the array where it is no input."""
    made: dict[str, tuple[str, str, Any]] = {}
    buffers = {**dict(program.named_buffers()), **program.constants}
    parameters = dict(program.named_parameters())
    for spec in program.graph_signature.input_specs:
        name = spec.arg.name
        if spec.kind.name == "USER_INPUT":
            made[name] = ("input", name, None)
        elif spec.kind.name == "PARAMETER":
            array = parameters[spec.target]
            array = _shape(array) if array.is_meta else _array(array)
            kind = "parameter" if parameters[spec.target].requires_grad else "frozen"
            made[name] = (kind, first.get(spec.target, spec.target), array)
        elif spec.kind.name in ("BUFFER", "CONSTANT_TENSOR"):
            if buffers[spec.target].is_meta:
                raise ValueError(
                    f"buffer {spec.target!r} is on the device meta, so that it has no numbers: "
                    "build the module on the processor"
                )
            array = _array(buffers[spec.target])
            check_width(f"buffer {spec.target!r}", array)
            made[name] = ("constant", spec.target, array)
        elif spec.kind.name == "TOKEN":  # of what raises errors: its operation is refused by name
            continue
        else:
            raise ValueError(
                f"the module takes {spec.kind.name.lower()} {spec.target!r}; only tensors are read"
            )
    return made


def _array(tensor: Any) -> Any:
    import torch

    plain = tensor.detach().cpu()
    if plain.dtype == torch.bfloat16:
        return jnp.asarray(plain.float().numpy(), jnp.bfloat16)
    return np.asarray(plain.numpy())


def _shape(tensor: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(tuple(tensor.shape), _dtype(tensor.dtype))


def _dtype(kind: Any) -> Any:
    """A kind of number of PyTorch as JAX has it: of 64 bits only where JAX is told so."""
    return jax.dtypes.canonicalize_dtype(str(kind).removeprefix("torch."))


def _run(
    program: Any,
    values: Mapping[str, tuple[str, str, Any]],
    params: Mapping[str, Any],
    inputs: tuple[Any, ...],
) -> Any:
    held: dict[Any, Any] = {}
    waiting = iter(inputs)
    for node in program.graph.nodes:
        if node.op == "placeholder":
            kind, name, array = values[node.name]
            got = params[name] if kind in WEIGHTS else array
            made = jnp.asarray(next(waiting) if kind == "input" else got)
            held[node] = jax.lax.stop_gradient(made) if kind == "frozen" else made
        elif node.op == "call_function":
            with jax.named_scope(place(node)):
                held[node] = _called(node, held)
    wanted = program.graph_signature.user_outputs
    by_name = {node.name: value for node, value in held.items()}
    given = [node for node in program.graph.nodes if node.name in wanted]
    _refuse_lost(given, held)
    found = [by_name[name] if isinstance(name, str) else name for name in wanted]
    return found[0] if len(found) == 1 else tuple(found)


def _called(node: Any, held: Mapping[Any, Any]) -> Any:
    operation = _operation(node)
    _refuse_lost(node.all_input_nodes, held)
    given = _filled([*node.args], held)
    named = {k: _filled(v, held) for k, v in node.kwargs.items() if k not in ELSEWHERE}
    meta = node.meta.get("val")
    if _plain(node) in ADDED_UP:  # in what is given, where what enters could not hold the sum
        given[0] = jnp.asarray(given[0], _dtype(meta.dtype))
    try:
        out = operation(*given, **named)
    except OverflowError as error:
        raise ValueError(
            f"operation {node.target} has an integer beyond 32 bits{line(node)}; JAX holds 32 "
            "unless it is told: jax.config.update('jax_enable_x64', True)"
        ) from error
    except (TypeError, IndexError, KeyError, ValueError, NotImplementedError) as error:
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
    return jnp.asarray(out, _dtype(said.dtype))


def _operation(node: Any) -> Callable[..., Any]:
    """The JAX function of a node."""
    name = str(node.target)
    if name.startswith("<built-in function"):
        name = str(node.target.__name__)
        if name == "getitem":
            return node.target
    plain = _plain(node)
    if plain == "as_strided" and not _lies_in_rows(node):
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


def _plain(node: Any) -> str:
    """The name of a node's operation, without its library and the kinds of its arguments."""
    name = str(node.target)
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and parts[0] in LIBRARIES else name


def _lies_in_rows(node: Any) -> bool:
    """Whether the tensor of a node lies in memory as its numbers follow, from the beginning."""
    tensor = node.args[0].meta.get("val")
    return tensor is None or (tensor.is_contiguous() and tensor.storage_offset() == 0)
