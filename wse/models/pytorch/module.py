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
from wse.models.pytorch.nodes import WEIGHTS, check_graph, kind_of, run
from wse.models.pytorch.refused import Refused, at, refuse_calls, remedy
from wse.models.pytorch.weights import load, read_weights

BACKWARD = "its own backward pass"
WHOLE = (  # not taken apart
    *("scaled_dot_product_attention", "celu", "elu", "log_sigmoid_forward", "mish", "selu"),
    *("softplus", "std", "max_unpool2d", "max_unpool3d", "_safe_softmax"),
)


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
    are constants; in training mode batch norm takes the batch's own and keeps none. Parameters
    with `requires_grad` off stay among `params`, with a gradient of zero: where an optimizer
    decays weights, leave them out (`optax.masked`). Numbers of 64 bits are of 32 unless JAX is told
    otherwise: products of integers wrap round from 2^31 on.

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
    check_graph(program.graph_module)

    shapes: Any = tuple(map(_shape, inputs)) or {k: _shape(x) for k, x in by_name.items()}
    order = program.call_spec.in_spec.child(1).context  # as export has put them

    def apply(params: Mapping[str, Any], *inputs: Any, **by_name: Any) -> Any:
        check_complete(params, known)
        return run(program, values, params, ordered(shapes, order, inputs, by_name))

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
            calls = refuse_calls(type(module).__name__)
            with torch.enable_grad(), refuse_own_backward(module), _plain(module), calls:
                program = torch.export.export(module, inputs, by_name, strict=False)
            mark_detached(program)
            return program.run_decompositions(table)
    except Exception as error:  # export raises kinds of its own, of many modules
        if isinstance(error, Refused) or (type(error) is ValueError and BACKWARD in str(error)):
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
            f"{type(module).__name__} does not export ({type(error).__name__}: {reason})"
            f"{at(error)}; torch.export must take it: {remedy(error)}"
        ) from error


@contextmanager
def _plain(module: Any) -> Generator[None]:
    """Export within this without counts of batches.

    Norms in training whose averages count their batches take the share of the next one.
    """
    import torch

    kind = torch.nn.modules.batchnorm._NormBase  # pyright: ignore[reportPrivateUsage]
    counting = [x for x in module.modules() if isinstance(x, kind) and x.momentum is None]
    try:
        for one in counting:
            one.momentum = 1 / (1 + int(one.num_batches_tracked or 0))
        yield
    finally:
        for one in counting:
            one.momentum = None


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
        elif spec.kind.name == "TOKEN":  # of what raises errors
            made[name] = ("token", name, np.zeros(0))
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
    return np.array(plain.numpy())  # a copy: PyTorch changes its own in place


def _shape(tensor: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(tuple(tensor.shape), kind_of(tensor.dtype))
