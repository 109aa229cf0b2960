"""`wse.pmap`: the same function on every system, with `jax.pmap`'s meaning."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from wse._numbers import one_of
from wse.execute.swarmx import SwarmX


def pmap(
    fun: Callable[..., Any],
    axis_name: str | None = None,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    *,
    devices: Sequence[Any] | Mesh | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
    backend: str | None = None,
    engine: str = "mesh",
) -> Callable[..., Any]:
    """`jax.pmap`, with any number of systems on the devices present.

    Each slice of the mapped arguments is what one system sees; collectives over `axis_name` go
    between systems. Systems are folded evenly onto the devices present, where `jax.pmap` needs a
    device for each, and this nests. With a mesh for `devices`, `fun` may hold shardings over its
    other axes, as rows and columns within a system. Collectives take no `axis_index_groups`
    (NotImplementedError), as under `jax.vmap`: nest two mapped functions, one axis for the groups.

    Args:
        fun: what one system runs.
        axis_name: what collectives call the systems.
        in_axes: for each argument, static ones too, the axis that is dealt out; None: every system
            gets all of it.
        out_axes: for each output, the axis along which systems are laid; None: the first system's.
        static_broadcasted_argnums: arguments that are compiled in.
        devices: which to use; all that are present and divide the systems if left out. Or a mesh
            of them with an axis "system", whose size divides the systems.
        axis_size: the number of systems, where no argument says it.
        donate_argnums: arguments whose memory may be used again.
        backend: whose devices, as "cpu", where `devices` does not say it.
        engine: "mesh", or "pmap": `jax.pmap` itself, of which each call on a CPU must be awaited.

    Returns:
        The mapped function, compiled.

    Raises:
        TypeError: no function.
        ValueError: another engine, mapped axes of different sizes, other axes than arguments, or a
            mesh that the systems do not fold onto.

    >>> import jax.numpy as jnp
    >>> pmap(lambda x: x - jax.lax.pmean(x, "system"), "system")(jnp.arange(4.0))
    Array([-1.5, -0.5,  0.5,  1.5], dtype=float32)
    """
    one_of("engine", engine, ("mesh", "pmap"))
    if not callable(fun):
        raise TypeError(f"fun is {fun!r:.80}; it must be a function: pass what one system runs")
    static = _places(static_broadcasted_argnums)
    meshed = isinstance(devices, Mesh)
    if engine == "pmap":
        if isinstance(devices, Mesh):
            raise ValueError("devices is a mesh; 'pmap' takes devices: pass engine='mesh'")
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
    present = devices if meshed else tuple(devices or (jax.devices(backend) if backend else ()))
    run = _runner(fun, axis_name, in_axes, out_axes, static, axis_size, present)
    donated = tuple(i + 1 for i in _places(donate_argnums))
    compiled = jax.jit(run, static_argnums=(0, *(i + 1 for i in static)), donate_argnums=donated)

    @wraps(fun)
    def mapped_call(*args: Any, **named: Any) -> Any:
        # Inside another program its own layout holds: two meshes in one are refused.
        traced = _is_traced((args, named)) or _is_traced(jnp.zeros(()))
        outputs = compiled(meshed or not traced, *args, **named)
        # A function may close over what is traced, as inside `jax.grad`.
        return outputs if traced or _is_traced(outputs) else _awaited(outputs)

    return mapped_call


def _is_traced(tree: Any) -> bool:
    return any(isinstance(x, Tracer) for x in jax.tree.leaves(tree))


def _awaited(outputs: Any) -> Any:
    """On several devices of a CPU, wait: programs with collectives starve each other of threads."""
    places = {device for leaf in jax.tree.leaves(outputs) for device in leaf.devices()}
    several = len(places) > 1 and all(device.platform == "cpu" for device in places)
    return jax.block_until_ready(outputs) if several else outputs


def _runner(
    fun: Callable[..., Any],
    axis_name: str | None,
    in_axes: Any,
    out_axes: Any,
    static: tuple[int, ...],
    axis_size: int | None,
    devices: tuple[Any, ...] | Mesh,
) -> Callable[..., Any]:
    """The function of all systems: whether to lay it over the devices, then its arguments."""

    def run(laid: bool, *args: Any, **named: Any) -> Any:
        mapped = [arg for i, arg in enumerate(args) if i not in static]
        axes = _spread(in_axes, args, static)
        count = axis_size or _count(mapped, axes, named)
        mesh = _mesh(count, devices) if laid else None

        def one(inner: Any, named: Any) -> Any:
            left = iter(inner)
            return fun(*(a if i in static else next(left) for i, a in enumerate(args)), **named)

        inputs = tuple(_lay(mesh, x, axis) for x, axis in zip(mapped, axes, strict=True))
        keywords = _lay(mesh, named, 0)
        outputs = jax.vmap(
            one,
            in_axes=(tuple(axes), 0),
            axis_name=axis_name,
            axis_size=count,
            spmd_axis_name="system" if isinstance(devices, Mesh) else None,
        )(inputs, keywords)
        return _collect(outputs, out_axes)

    return run


def _places(numbers: int | Sequence[int]) -> tuple[int, ...]:
    return (numbers,) if isinstance(numbers, int) else tuple(numbers)


def _spread(in_axes: Any, args: Sequence[Any], static: Sequence[int]) -> list[Any]:
    """One entry of axes for each argument that is not static."""
    if in_axes is None or isinstance(in_axes, int):
        return [in_axes] * (len(args) - len(static))
    if not isinstance(in_axes, (tuple, list)) or len(in_axes) != len(args):
        example = (0, *[None] * (len(args) - 1))
        raise ValueError(
            f"in_axes is {in_axes!r} for {len(args)} arguments; it must hold an entry for each, "
            f"static ones too: pass in_axes={example}"
        )
    return [axes for i, axes in enumerate(in_axes) if i not in static]


def _mesh(count: int, devices: tuple[Any, ...] | Mesh) -> Mesh | None:
    """Where the systems lie; None: all on one device."""
    if not isinstance(devices, Mesh):
        swarm = SwarmX(count, devices)
        return swarm.mesh if swarm.parallel else None
    if count % devices.shape.get("system", count + 1):
        raise ValueError(
            f"devices is a mesh of {dict(devices.shape)} for {count} systems; it must have an axis "
            f'"system" whose size divides them: pass one of size {count}'
        )
    return devices


def _lay(mesh: Mesh | None, tree: Any, axes: Any) -> Any:
    """Within a program: lay each array's mapped axis along the systems."""
    return tree if mesh is None else _changed(tree, axes, partial(_laid, mesh))


def _laid(mesh: Mesh, leaf: Any, axis: int | None) -> Any:
    if axis is None or not -np.ndim(leaf) <= axis < np.ndim(leaf):
        return leaf  # out of range: `jax.vmap` says so
    spec = PartitionSpec(*[None] * (axis % np.ndim(leaf)), "system")
    return jax.lax.with_sharding_constraint(leaf, NamedSharding(mesh, spec))


def _count(mapped: Sequence[Any], axes: Sequence[Any], named: Any) -> int:
    """The number of systems that the mapped arguments show."""
    sizes: dict[int, str] = {}
    places = [f"argument {i}" for i in range(len(mapped))]
    for name, arg, axis in zip([*places, "keywords"], [*mapped, named], [*axes, 0], strict=True):
        full = _leaf_axes(arg, axis)
        for leaf, at in zip(jax.tree.leaves(arg), full, strict=True):
            if at is None:
                continue
            shape = np.shape(leaf)
            if not -len(shape) <= at < len(shape):
                raise ValueError(
                    f"{name} is mapped along axis {at} and has shape {shape}; systems take apart "
                    "an axis that it has: name one in in_axes, or None for what all share"
                )
            sizes.setdefault(shape[at], f"{name} of shape {shape} along axis {at}")
    if len(sizes) == 1:
        return next(iter(sizes))
    if sizes:
        raise ValueError(
            "inconsistent sizes: "
            + ", ".join(f"{where} has {size}" for size, where in sizes.items())
            + "; each system takes one: give them one size, or None in in_axes for what all share"
        )
    raise ValueError("no argument is mapped; the number of systems is unknown: pass axis_size=2")


def _collect(outputs: Any, out_axes: Any) -> Any:
    def moved(leaf: Any, axis: int | None) -> Any:
        return leaf[0] if axis is None else jnp.moveaxis(leaf, 0, axis)

    return _changed(outputs, out_axes, moved)


def _changed(tree: Any, axes: Any, change: Callable[[Any, int | None], Any]) -> Any:
    leaves, structure = jax.tree.flatten(tree)
    return jax.tree.unflatten(structure, map(change, leaves, _leaf_axes(tree, axes)))


def _leaf_axes(tree: Any, axes: Any) -> list[int | None]:
    """One axis for each leaf, from a tree of axes that may stop short of the leaves."""
    full = jax.tree.broadcast(axes, tree, is_leaf=lambda x: x is None)
    return jax.tree.structure(tree).flatten_up_to(full)
