"""`wse.pmap`: the same function on every system, with `jax.pmap`'s meaning."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from wse.swarmx import SwarmX, leaf_axes


def pmap(
    fun: Callable[..., Any],
    axis_name: str | None = None,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    *,
    devices: Sequence[Any] | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
    backend: str | None = None,
    engine: str = "mesh",
) -> Callable[..., Any]:
    """`jax.pmap`, with any number of systems on the devices present.

    Each slice of the mapped arguments is what one system sees; collectives over `axis_name` go
    between systems. Systems are folded evenly onto the devices of one mesh (system, row, column),
    where `jax.pmap` needs a device for each, so this nests and composes with shardings inside.

    Args:
        fun: what one system runs.
        axis_name: what collectives call the systems.
        in_axes: for each argument, the axis that is dealt out; None: every system gets all of it.
        out_axes: for each output, the axis along which systems are laid; None: the first system's.
        static_broadcasted_argnums: arguments that are compiled in.
        devices: which to use; all that are present and divide the systems if left out.
        axis_size: the number of systems, where no argument says it.
        donate_argnums: arguments whose memory may be used again.
        backend: whose devices, as "cpu", where `devices` does not say it.
        engine: "mesh", or "pmap": `jax.pmap` itself.

    Returns:
        The mapped function, compiled.

    Raises:
        ValueError: another engine, or mapped axes of different sizes.

    >>> import jax.numpy as jnp
    >>> pmap(lambda x: x - jax.lax.pmean(x, "system"), "system")(jnp.arange(4.0))
    Array([-1.5, -0.5,  0.5,  1.5], dtype=float32)
    """
    if engine not in ("mesh", "pmap"):
        raise ValueError(f"engine is {engine!r}; it must be 'mesh' or 'pmap': pass that")
    static = _places(static_broadcasted_argnums)
    if engine == "pmap":
        return jax.pmap(
            fun,
            axis_name,
            in_axes=in_axes,
            out_axes=out_axes,
            static_broadcasted_argnums=static,
            devices=devices,
            backend=backend,
            axis_size=axis_size,
            donate_argnums=donate_argnums,
        )

    present = tuple(devices or (jax.devices(backend) if backend else ()))
    run = _runner(fun, axis_name, (in_axes, out_axes), static, (axis_size, present))
    compiled = jax.jit(
        run,
        static_argnums=(0, *(i + 1 for i in static)),
        donate_argnums=tuple(i + 1 for i in _places(donate_argnums)),
    )

    def mapped_call(*args: Any, **named: Any) -> Any:
        # Inside another program its own layout holds: two meshes in one are refused.
        traced = any(isinstance(x, Tracer) for x in jax.tree.leaves((args, named)))
        return compiled(not traced, *args, **named)

    return mapped_call


def _runner(
    fun: Callable[..., Any],
    axis_name: str | None,
    axes_of: tuple[Any, Any],
    static: tuple[int, ...],
    systems: tuple[int | None, tuple[Any, ...]],
) -> Callable[..., Any]:
    """The function of all systems: whether to lay it over the devices, then its arguments."""
    in_axes, out_axes = axes_of
    axis_size, devices = systems

    def run(laid: bool, *args: Any, **named: Any) -> Any:
        mapped = [arg for i, arg in enumerate(args) if i not in static]
        axes = _spread(in_axes, args, static)
        count = axis_size or _count(mapped, axes, named)
        swarm = SwarmX(count, devices) if laid else SwarmX()

        def one(*inner: Any, **inner_named: Any) -> Any:
            left = iter(inner)
            return fun(
                *(a if i in static else next(left) for i, a in enumerate(args)), **inner_named
            )

        inputs = tuple(swarm.lay(x, axis) for x, axis in zip(mapped, axes, strict=True))
        keywords = swarm.lay(named, 0)
        outputs = jax.vmap(
            lambda inner, named: one(*inner, **named),
            in_axes=(tuple(axes), 0),
            axis_name=axis_name,
            axis_size=count,
        )(inputs, keywords)
        return _collect(outputs, out_axes)

    return run


def _places(numbers: int | Sequence[int]) -> tuple[int, ...]:
    return (numbers,) if isinstance(numbers, int) else tuple(numbers)


def _spread(in_axes: Any, args: Sequence[Any], static: Sequence[int]) -> list[Any]:
    """One entry of axes for each argument that is not static."""
    if in_axes is None or isinstance(in_axes, int):
        return [in_axes] * (len(args) - len(static))
    return [axes for i, axes in enumerate(in_axes) if i not in static]


def _count(mapped: Sequence[Any], axes: Sequence[Any], named: Any) -> int:
    """The number of systems that the mapped arguments show."""
    for arg, axis in [*zip(mapped, axes, strict=True), (named, 0)]:
        full = leaf_axes(arg, axis)
        for leaf, at in zip(jax.tree.leaves(arg), full, strict=True):
            if at is not None:
                return np.shape(leaf)[at]
    raise ValueError("no argument is mapped; the number of systems is unknown: pass axis_size=2")


def _collect(outputs: Any, out_axes: Any) -> Any:
    leaves, structure = jax.tree.flatten(outputs)
    moved = [
        leaf[0] if axis is None else jnp.moveaxis(leaf, 0, axis)
        for leaf, axis in zip(leaves, leaf_axes(outputs, out_axes), strict=True)
    ]
    return jax.tree.unflatten(structure, moved)
