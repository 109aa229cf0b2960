"""A user's training function: what it is given, what it returns, and what it computes.

What is no training function is refused here, before anything is made of it.
"""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import inspect
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from wse._numbers import positive, short
from wse._tracing import untraceable
from wse.graph import axes
from wse.graph import batch as samples
from wse.graph.outline import check_array, difference, outline, paths, shape

MODULES = ("flax.Module", "torch.Module")  # without importing them
EQUINOX = "equinox.Module"  # which a function under its jit is too
APART = (
    "pass params of `params, rest = eqx.partition(model, eqx.is_inexact_array)`, and in the loss "
    "put them together, eqx.combine(params, rest)"
)


class Program(NamedTuple):
    """What a training function computes.

    Attributes:
        closed: of parameters and batch.
        result: the shapes of what it returns.
        has_aux: whether some of these are auxiliary.
        samples: of the batch.
        doubt: why another number of samples may have been meant; empty where none was.
    """

    closed: core.ClosedJaxpr
    result: Any
    has_aux: bool
    samples: int
    doubt: str


def program_of(
    loss: Any,
    params: Any,
    batch: Any,
    *,
    has_aux: bool | None = None,
    batch_size: int | None = None,
) -> Program:
    """What a loss computes, of arguments as for `trace`.

    Raises:
        TypeError: the loss is no function.
        ValueError: a function of other arguments; no parameters, or what is none; an entry of the
            batch that is no array, or a batch without arrays that the loss cannot take; a loss that
            sums over devices, or that returns no scalar; or as many samples as no array has.
    """
    _check_said(has_aux, batch_size)
    _check_function(loss)
    _check_parameters(params)
    leaves = jax.tree.leaves(batch)
    for name, leaf in zip(paths(batch), leaves, strict=True):
        check_array("batch entry", name, leaf)
    try:
        closed, result = jax.make_jaxpr(loss, return_shape=True)(params, batch)
    except Exception as error:
        if said := _remedy(error):
            raise ValueError(said) from error
        if any(map(np.ndim, leaves)):  # else it is the loss that knows best
            raise
        raise ValueError(
            f"the batch is {batch!r:.80}, and the loss fails with it ({type(error).__name__}: "
            f"{str(error).partition(chr(10))[0]:.100}); pass the arrays that it reads, or shapes"
        ) from error
    if has_aux is None:
        has_aux = _is_pair(result, params)
    _check_result(result, has_aux)
    sizes = [np.shape(leaf) for leaf in leaves]
    first = len(closed.jaxpr.invars) - len(leaves)
    places = {x: i for i, x in enumerate(closed.jaxpr.invars[first:])}
    series = axes.series(closed.jaxpr, places)
    size = samples.batch_size(sizes, batch_size, series=series)
    leading = {x: (i, 0) for x, i in places.items() if sizes[i]}
    features = axes.features(closed.jaxpr, leading)
    doubt = "" if batch_size is not None else samples.doubt(sizes, size, series, features)
    return Program(closed, result, has_aux, size, doubt)


def _check_said(has_aux: Any, batch_size: Any) -> None:
    if not isinstance(has_aux, bool | np.bool | None):
        raise ValueError(
            f"has_aux is {short(has_aux)}; it must be True or False, or None: leave it out"
        )
    if batch_size is not None:
        positive("batch_size", batch_size, "pass the samples of the batch, or leave it out")


def _check_function(loss: Any) -> None:
    if not callable(loss):
        raise TypeError(f"loss is {loss!r:.80}; it must be a function: pass loss(params, batch)")
    said = (
        f"loss is a {type(loss).__name__}, a module that computes outputs; a loss compares them: "
        "pass loss(params, batch)"
    )
    if bases(loss) & {*MODULES}:
        raise ValueError(
            f"{said}, of PyTorch wse.from_torch's, or on the command line model.py:Net with "
            "--example"
        )
    try:
        taken = inspect.signature(loss)
    except (TypeError, ValueError):  # of a function that Python has not the lines of
        return
    try:
        taken.bind(None, None)
    except TypeError as error:
        if EQUINOX in bases(loss):
            raise ValueError(f"{said}; {APART}") from error
        raise ValueError(
            f"loss takes {taken}; it is called with two arguments, loss(params, batch): put what "
            "else it takes, as a key or statistics, in the batch, or close over it"
        ) from error


def bases(found: Any) -> set[str]:
    """The classes of it, each by its package and name."""
    kind: Any = type(found)
    return {f"{x.__module__.partition('.')[0]}.{x.__name__}" for x in kind.__mro__}


def _remedy(error: Exception) -> str:
    """What to do about what JAX says of a loss; empty where the loss itself knows best."""
    if said := untraceable(error):
        return f"loss {said}"
    said = str(error).partition("\n")[0]
    if "unbound axis name" in said:
        return (
            f"loss sums over devices by a name ({said:.80}); systems share a batch without being "
            "told: take psum or pmean out, or put jax.vmap(..., axis_name=...) about it"
        )
    if "Tensor" in said and "Tracer" in said:
        return f"loss calls PyTorch ({said:.120}): write it in jax.numpy, or use wse.from_torch"
    if "from a different trace level" in said:
        return (
            f"loss changes a state of Flax that it closes over ({said.partition('(')[0].strip()}): "
            "pass graph, params, rest = nnx.split(model, nnx.Param, ...) with rest in the batch, "
            "and begin the loss with nnx.merge(graph, params, rest)"
        )
    if "not a valid JAX type" in said:
        return f"loss returns what is no array ({said:.200}): return arrays alone"
    return ""


def _is_pair(result: Any, params: Any) -> bool:
    """Whether a loss returns auxiliary outputs.

    Raises:
        ValueError: they are its gradient, by all that can be seen.
    """
    if not (isinstance(result, tuple) and len(result) == 2):
        return False
    leaves = jax.tree.leaves(params)
    plain = len(leaves) == 1 and np.ndim(leaves[0]) < 2  # as any metric might be
    if not plain and not difference(outline(result[1]), outline(params)):
        raise ValueError(
            "loss returns a tree of the shapes of its params beside the scalar, as "
            "jax.value_and_grad does; gradients are taken here: pass the loss itself, or "
            "has_aux=True if these are no gradients, on the command line --has-aux"
        )
    return True


def _check_parameters(params: Any) -> None:
    _check_states(params)
    names, leaves = paths(params), jax.tree.leaves(params)
    if not names:
        raise ValueError(
            "params has no arrays; a training changes some: pass the parameters of the model; one "
            "that has none cannot be trained"
        )
    modules = jax.tree.leaves(params, is_leaf=lambda x: EQUINOX in bases(x))
    apart = APART if any(EQUINOX in bases(x) for x in modules) else ""
    for path, leaf in zip(names, leaves, strict=True):
        check_array("parameter", path, leaf, apart)
        found = shape(leaf)
        if not jnp.issubdtype(found.dtype, jnp.floating):
            remedy = (
                "keep its real and imaginary parts as two, and add up re + 1j * im in the loss"
                if jnp.issubdtype(found.dtype, jnp.complexfloating)
                else apart or "split it off and pass it in the batch"
            )
            raise ValueError(
                f"parameter {path!r} is of {found.dtype}; parameters must be of floating point: "
                f"{remedy}"
            )


def _check_states(params: Any) -> None:
    """Refuse what a training does not change among the parameters, where Flax says so."""
    if isinstance(params, Mapping) and "params" in params and "batch_stats" in params:
        raise ValueError(
            f"params has the collections {', '.join(map(str, params))}; statistics are no "
            "parameters: pass variables['params'], and the others in the batch"
        )
    if "flax.TrainState" in bases(params):
        raise ValueError("params is a TrainState, whose step is no parameter: pass its params")
    nnx: Any = sys.modules.get("flax.nnx")
    if nnx is None:
        return
    kinds = (nnx.BatchStat, nnx.RngState, nnx.Cache)
    held = jax.tree.leaves(params, is_leaf=lambda x: isinstance(x, nnx.Variable))
    if found := [type(x).__name__ for x in held if isinstance(x, kinds)]:
        raise ValueError(
            f"params has {', '.join(dict.fromkeys(found))} among its variables, which are no "
            "parameters: pass graph, params, rest = nnx.split(model, nnx.Param, ...), and rest in "
            "the batch"
        )


def _check_result(result: Any, has_aux: bool) -> None:
    if has_aux and not (isinstance(result, tuple) and len(result) == 2):
        raise ValueError(
            "with has_aux=True, loss must return (scalar, auxiliary outputs); it returns "
            f"{jax.tree.structure(result)}"
        )
    value: Any = result[0] if has_aux else result
    if jax.tree.structure(value) != jax.tree.structure(0):
        raise ValueError(
            f"loss returns {jax.tree.structure(value)}; it must return one scalar: return "
            "(scalar, all else), and pass has_aux=True"
        )
    if value.shape != () or not jnp.issubdtype(value.dtype, jnp.floating):
        raise ValueError(
            f"loss has shape {value.shape} and type {value.dtype}; it must be a scalar of floating "
            "point: take the mean over the batch"
        )
