"""An optax optimizer, cut into the pieces that can run as soon as their gradients are there.

The update of all parameters is traced once. Outputs that depend on the same gradients belong
together: with Adam every parameter and its moments are a piece of their own, with clipping by the
global norm all of them are one piece, which waits for the last gradient. What depends on no
gradient, such as a count of steps, is a piece too. So any optimizer is exact, and none is known by
name.
"""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.extend import core
from jax.sharding import SingleDeviceSharding

from wse.graph.equations import Flat, fresh, key, needs, program, variables
from wse.graph.outline import difference, outline, paths, shape

Arrays = Sequence[Any]


@dataclass(frozen=True)
class Piece:
    """Part of an update.

    Attributes:
        gradients: the parameters whose gradients it needs, by their places among the leaves.
        weights: the parameters that it reads.
        states: the leaves of the optimizer's state that it reads.
        new_weights: the parameters that it makes.
        new_states: the leaves of the optimizer's state that it makes.
        run: (gradients, weights, states, memory) -> (new weights, new states), compiled for the
            host; `memory` are arrays of the new ones' shapes that may be written over, None for
            each that there is not; None: the new arrays take memory of their own.
    """

    gradients: tuple[int, ...]
    weights: tuple[int, ...]
    states: tuple[int, ...]
    new_weights: tuple[int, ...]
    new_states: tuple[int, ...]
    run: Callable[[Arrays, Arrays, Arrays, Arrays | None], tuple[list[Any], list[Any]]]


@dataclass(frozen=True)
class Update:
    """An optimizer's step in pieces.

    Attributes:
        pieces: together they make every parameter and every leaf of the state, each once.
        state: the shapes of the optimizer's state, in its tree.
    """

    pieces: tuple[Piece, ...]
    state: Any

    @cached_property
    def structure(self) -> Any:
        """The tree of the optimizer's state."""
        return jax.tree.structure(self.state)

    @property
    def waits(self) -> bool:
        """Whether some parameter waits for the gradients of others."""
        return any(len(piece.gradients) > 1 for piece in self.pieces)


def cut(optimizer: Any, params: Any, arrivals: Mapping[int, int] | None = None) -> Update:
    """Trace an optimizer on the shapes of `params` and cut its step into pieces.

    Args:
        optimizer: any optax optimizer.
        params: the tree of parameters; shapes suffice.
        arrivals: for each parameter with a gradient, how many layers' gradients come after it:
            what can be updated at the same moment is one piece, for a program takes longer to
            start than to update a bias; None: pieces are as small as can be.

    Returns:
        The pieces of its step.

    Raises:
        ValueError: an optimizer that is none, that asks for more than gradients and parameters,
            whose state holds typed random keys, or whose step changes a type or a shape.
    """
    check(optimizer)
    state = jax.eval_shape(optimizer.init, params)
    _check_arrays(state)
    traced, made = jax.make_jaxpr(step(optimizer), return_shape=True)(params, params, state)
    check_step((params, state), made)
    flat = Flat({}, ())
    inputs = [fresh(var.aval) for var in traced.jaxpr.invars]
    outputs = flat.inline(traced, inputs)
    count = len(jax.tree.leaves(params))
    return Update(_pieces(flat, inputs, outputs, count, arrivals or {}), state)


def step(optimizer: Any) -> Callable[[Any, Any, Any], tuple[Any, Any]]:
    """The step of an optimizer: (gradients, params, state) -> (new params, new state).

    Raises, when it is traced:
        ValueError: the optimizer asks for more than gradients and parameters.
    """

    def run(gradients: Any, params: Any, state: Any) -> tuple[Any, Any]:
        try:
            updates, new = optimizer.update(gradients, state, params)
        except TypeError as error:
            if "required keyword-only argument" not in str(error):
                raise
            raise ValueError(
                f"the optimizer asks for more than gradients, state and parameters ({error}); an "
                "executor gives it these alone: take one without a line search or a loss to look "
                "at, such as optax.adam(1e-3)"
            ) from error
        return optax.apply_updates(params, updates), new

    return run


def check(optimizer: Any) -> None:
    """Refuse what is no optimizer."""
    if not all(callable(getattr(optimizer, name, None)) for name in ("init", "update")):
        raise ValueError(
            f"optimizer is {optimizer!r}; it must have init and update, as those of optax have: "
            "pass optax.adam(1e-3)"
        )


def check_step(before: tuple[Any, Any], after: tuple[Any, Any]) -> None:
    """Refuse a step that makes other arrays than it takes: the one after it could not be made."""
    for what, old, new in zip(("parameters", "state"), before, after, strict=True):
        here, there = ([shape(x) for x in jax.tree.leaves(tree)] for tree in (new, old))
        if here != there:
            raise ValueError(
                f"a step of the optimizer makes {what} with "
                f"{difference(outline(new), outline(old))}; what it takes must keep type and "
                "shape: mend the optimizer's update"
            )


def first_state(optimizer: Any, params: Any) -> Iterator[Any]:
    """Yield the leaves of an optimizer's first state; with Adam, only one of them is in memory."""
    traced = jax.make_jaxpr(optimizer.init)(params)
    flat = Flat({}, ())
    inputs = [fresh(var.aval) for var in traced.jaxpr.invars]
    leaves = jax.tree.leaves(params)
    compiled: dict[Any, Any] = {}
    for output in flat.inline(traced, inputs):
        used = needs(program((), [output], flat.equations).jaxpr, [output])
        held = {x: v for x, v in flat.constants.items() if x in used}
        given = {x: v for x, v in zip(inputs, leaves, strict=True) if x in used}
        closed = program([*held, *given], [output], flat.equations)
        number = key(closed)
        if number not in compiled:
            # Run piece by piece: zeros of a shape are one program for all models.
            compiled[number] = core.jaxpr_as_fun(closed)
        with jax.default_device(jax.local_devices(backend="cpu")[0]):
            leaf = np.asarray(compiled[number](*held.values(), *given.values())[0])
        leaf.flags.writeable = False  # a number that is written into the program is NumPy's own
        yield leaf


def _check_arrays(state: Any) -> None:
    """Refuse what is no plain array: the store keeps bytes."""
    for name, leaf in zip(paths(state), jax.tree.leaves(state), strict=True):
        if jnp.issubdtype(leaf.dtype, jax.dtypes.extended):
            raise ValueError(
                f"{name!r} of the optimizer's state is of {leaf.dtype}, a typed random key; a "
                "store keeps plain arrays: pass mode='pipelined', where there is no store, or an "
                "optimizer that draws nothing"
            )


def _pieces(
    flat: Flat,
    inputs: list[core.Var],
    outputs: list[Any],
    count: int,
    arrivals: Mapping[int, int],
) -> tuple[Piece, ...]:
    sources = _sources(flat, inputs[:count])
    groups = [_union(sources, [x]) for x in outputs]
    # A frozen parameter needs no gradient, but its place in the update is beside it.
    together = _components(count, groups)
    ready: dict[int, int] = {}
    for leaf, place in arrivals.items():
        ready[together[leaf]] = min(place, ready.get(together[leaf], place))
    free: list[int] = []
    members: dict[tuple[str, int], list[int]] = {}
    for i, group in enumerate(groups):
        home = together[min(group)] if group else -1
        at = ("at", ready[home]) if home in ready else ("of", home)
        (members.setdefault(at, []) if group else free).append(i)
    compiled: dict[Any, Any] = {}
    return tuple(
        _piece(flat, inputs, outputs, count, made, compiled)
        for made in (*members.values(), free)
        if made
    )


def _piece(
    flat: Flat,
    inputs: list[core.Var],
    outputs: list[Any],
    count: int,
    made: list[int],
    compiled: dict[Any, Any],
) -> Piece:
    wanted = [outputs[i] for i in made]
    used = needs(program((), wanted, flat.equations).jaxpr, wanted)
    place = [i for i, var in enumerate(inputs) if var in used]
    read = [*flat.constants, *(inputs[i] for i in place)]
    closed = program(read, wanted, flat.equations)
    values = tuple(flat.constants.values())
    number = (key(closed), tuple(map(id, values)))
    if number not in compiled:
        function = core.jaxpr_as_fun(closed)
        # With a place for its results, JAX hands back none of the arguments: steps share no array.
        compiled[number] = (
            jax.jit(function, out_shardings=_host()),
            _writing_over(function),
            jax.jit(partial(_blank, [var.aval for var in wanted]), out_shardings=_host()),
        )
    fresh_memory, given_memory, blank = compiled[number]
    weights = sum(i < count for i in made)

    def run(
        gradients: Arrays, old: Arrays, states: Arrays, memory: Arrays | None
    ) -> tuple[list[Any], list[Any]]:
        args = (*values, *gradients, *old, *states)
        if memory is None:
            new = fresh_memory(*args)
        else:
            if not all(map(_is_usable, memory)):
                pairs = zip(memory, blank(), strict=True)
                memory = [array if _is_usable(array) else zeros for array, zeros in pairs]
            new = given_memory([*map(_put, args)], memory)
        return new[:weights], new[weights:]

    return Piece(
        gradients=tuple(i for i in place if i < count),
        weights=tuple(i - count for i in place if count <= i < 2 * count),
        states=tuple(i - 2 * count for i in place if i >= 2 * count),
        new_weights=tuple(i for i in made if i < count),
        new_states=tuple(i - count for i in made if i >= count),
        run=run,
    )


def _writing_over(function: Callable[..., Any]) -> Callable[[Arrays, Arrays], list[Any]]:
    """A function whose results take the place of arrays that nothing else refers to any more."""

    def run(args: Arrays, memory: Arrays) -> list[Any]:
        del memory
        return function(*args)

    return jax.jit(run, donate_argnums=1, keep_unused=True, out_shardings=_host())


def _host() -> Any:
    return SingleDeviceSharding(jax.local_devices(backend="cpu")[0])


def _put(array: Any) -> Any:
    """An array as a step makes them: a program that met others would be compiled again."""
    return array if isinstance(array, jax.Array) else jax.device_put(array, _host())


def _is_usable(array: Any) -> bool:
    """Tell memory for a result. JAX leaves alone what a view in NumPy still refers to."""
    return array is not None and not array.is_deleted()


def _blank(like: Sequence[Any]) -> list[Any]:
    """Memory for results, made by one program: one for each would take as long as a small step."""
    return [jnp.zeros(each.shape, each.dtype) for each in like]


def _sources(flat: Flat, gradients: Sequence[core.Var]) -> dict[Any, frozenset[int]]:
    """For each variable, the gradients that it depends on."""
    found: dict[Any, frozenset[int]] = {var: frozenset((i,)) for i, var in enumerate(gradients)}
    for eqn in flat.equations:
        if inputs := _union(found, eqn.invars):
            found.update(dict.fromkeys(eqn.outvars, inputs))
    return found


def _union(sources: Mapping[Any, frozenset[int]], atoms: Sequence[Any]) -> frozenset[int]:
    return frozenset[int]().union(*(sources.get(x, ()) for x in variables(atoms)))


def _components(count: int, groups: Sequence[frozenset[int]]) -> list[int]:
    """For each gradient, the least one that some output binds it to."""
    home = list(range(count))

    def root(i: int) -> int:
        while home[i] != i:
            i = home[i]
        return i

    for group in groups:
        least = min(map(root, group), default=0)
        for i in group:
            home[root(i)] = least
    return [root(i) for i in range(count)]
