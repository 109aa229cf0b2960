"""A traced program as one flat list of equations: calls inlined, stacked layers unrolled.

A jaxpr nests: `jit` in `jit`, a scan over stacked layers in a remat. To cut a model into layers its
equations must lie in one list. What carries its own derivative (`custom_jvp`, `custom_vjp`) stays
one equation, and so does a loop that brings no parameters of its own to each turn.
"""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from wse.graph.source import within

Atom = Any  # a core.Var or a core.Literal; JAX gives them no common public type

CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr"}
CUSTOMS = {"custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr"}
REMATS = ("checkpoint", "remat", "remat2")


@dataclass(frozen=True, order=True)
class Weight:
    """A parameter, or one slice of a stacked one: what is streamed as a whole.

    Attributes:
        leaf: the parameter's place among the leaves of the parameter tree.
        index: which slice along the leading axes; empty for the whole array.
    """

    leaf: int
    index: tuple[int, ...] = ()


@dataclass
class Flat:
    """A program being flattened.

    Attributes:
        weights: the variables that are parameters or slices of them.
        groups: for each leaf, the layer that it belongs to.
        equations: in the order of the program.
        constants: variables with the arrays that the program closed over.
        recomputed: variables made under a remat that spans layers.
        customs: whether to inline what carries its own derivative, which is then lost.
        remats: whether to inline every remat, which is then lost.
    """

    weights: dict[core.Var, Weight]
    groups: Sequence[str]
    equations: list[core.JaxprEqn] = field(default_factory=list[core.JaxprEqn])
    constants: dict[core.Var, Any] = field(default_factory=dict[core.Var, Any])
    recomputed: set[core.Var] = field(default_factory=set[core.Var])
    customs: bool = False
    remats: bool = False
    _slices: dict[Weight, core.Var] = field(default_factory=dict[Weight, core.Var])
    _casts: dict[core.Var, core.JaxprEqn] = field(default_factory=dict[core.Var, core.JaxprEqn])
    _singles: dict[core.Var, tuple[Atom, int]] = field(
        default_factory=dict[core.Var, tuple[Atom, int]]
    )

    def inline(self, closed: core.ClosedJaxpr, args: Sequence[Atom]) -> list[Atom]:
        """Append the equations of a closed jaxpr called on `args`; return its outputs."""
        held = {fresh(jax.typeof(value)): value for value in closed.consts}
        self.constants.update(held)
        return self._append(closed.jaxpr, [*held, *args])

    def call(self, function: Callable[..., Any], *args: Atom) -> list[Atom]:
        """Append what `function` does to arrays of these shapes; return its outputs."""
        return self.inline(jax.make_jaxpr(function)(*structs(args)), args)

    def _append(self, jaxpr: core.Jaxpr, args: Sequence[Atom]) -> list[Atom]:
        env: dict[core.Var, Atom] = dict(zip((*jaxpr.constvars, *jaxpr.invars), args, strict=True))
        for eqn in jaxpr.eqns:
            inputs = [_read(env, atom) for atom in eqn.invars]
            outputs = self._equation(eqn, inputs)
            env.update(zip(eqn.outvars, outputs, strict=True))
        return [_read(env, atom) for atom in jaxpr.outvars]

    def _equation(self, eqn: core.JaxprEqn, inputs: list[Atom]) -> list[Atom]:
        name = eqn.primitive.name
        if name in CALLS:
            start = len(self.equations)
            outputs = self.inline(eqn.params[CALLS[name]], inputs)
            self.equations[start:] = [within(made, eqn) for made in self.equations[start:]]
            return outputs
        if self.customs and name in CUSTOMS:
            return self.inline(eqn.params[CUSTOMS[name]], inputs)
        spans = name in REMATS and self._spans_layers(eqn.params["jaxpr"], inputs)
        if spans or (name in REMATS and self.remats):
            # Recomputing is the executor's own choice; inside one layer the user's is kept.
            start = len(self.equations)
            outputs = self._append(eqn.params["jaxpr"], inputs)
            self.recomputed.update(x for made in self.equations[start:] for x in made.outvars)
            return outputs
        if name == "scan":
            stacked = inputs[sum(turned(eqn)) :]
            if any(self._is_stack(x) for x in stacked):
                return self._unroll(eqn, inputs)
        if parts := self._parts(eqn, inputs):
            return parts
        outputs: list[Atom] = [fresh(var.aval) for var in eqn.outvars]
        self.equations.append(eqn.replace(invars=inputs, outvars=outputs))
        if (place := _one_of(eqn)) is not None and self._is_layered(inputs[0]):
            self._singles[outputs[0]] = inputs[0], place
        if name == "convert_element_type" and self._is_stack(inputs[0]):
            self._casts[outputs[0]] = self.equations[-1]
        return outputs

    def _parts(self, eqn: core.JaxprEqn, inputs: list[Atom]) -> list[Atom]:
        """What an equation takes from stacked layers, each alone; empty if it does not.

        `w[i]` at a fixed place is a slice of one, then squeezed.
        """
        name, params = eqn.primitive.name, eqn.params
        if name == "unstack" and params["axis"] == 0 and self._is_layered(inputs[0]):
            return [self._slice(inputs[0], i) for i in range(len(eqn.outvars))]
        single = name == "squeeze" and tuple(params["dimensions"]) == (0,)
        if single and isinstance(inputs[0], core.Var) and inputs[0] in self._singles:
            return [self._slice(*self._singles[inputs[0]])]
        return []

    def _is_layered(self, atom: Atom) -> bool:
        """Whether these are layers in one array: matrices, or vectors beside as many of these."""
        if not self._is_stack(atom) or len(shape := _shape(atom)) < 2 or shape[0] < 2:
            return False
        sizes = {_shape(x)[0] for x in self.weights if len(_shape(x)) > 2}
        return len(shape) > 2 or shape[0] in sizes

    def _unroll(self, eqn: core.JaxprEqn, inputs: list[Atom]) -> list[Atom]:
        """Turn a scan over stacked layers into its turns, one after another."""
        params = eqn.params
        consts, carry = turned(eqn)
        held, state, stacked = inputs[:consts], inputs[consts:][:carry], inputs[consts + carry :]
        turns = range(params["length"])
        collected: dict[int, list[Atom]] = {}
        for i in reversed(turns) if params["reverse"] else turns:
            slices = [self._slice(x, i) for x in stacked]
            out = self.inline(params["jaxpr"], [*held, *state, *slices])
            state, collected[i] = out[:carry], out[carry:]
        columns = zip(*(collected[i] for i in turns), strict=True)
        unused = [type(var) is core.DropVar for var in eqn.outvars[carry:]]
        stacks = [
            fresh(var.aval) if drop else self.call(lambda *x: jnp.stack(x), *column)[0]
            for var, drop, column in zip(eqn.outvars[carry:], unused, columns, strict=True)
        ]
        return [*state, *stacks]

    def _slice(self, stack: Atom, i: int) -> Atom:
        if (cast := self._casts.get(stack)) is not None:
            dtype, part = stack.aval.dtype, self._slice(cast.invars[0], i)
            return self.call(lambda x: jax.lax.convert_element_type(x, dtype), part)[0]
        if stack not in self.weights:
            return self.call(lambda x: jax.lax.index_in_dim(x, i, keepdims=False), stack)[0]
        whole = self.weights[stack]
        weight = Weight(whole.leaf, (*whole.index, i))
        if weight not in self._slices:
            shape = stack.aval.update(shape=stack.aval.shape[1:])
            self._slices[weight] = fresh(shape)
            self.weights[self._slices[weight]] = weight
        return self._slices[weight]

    def _is_stack(self, atom: Atom) -> bool:
        return not isinstance(atom, core.Literal) and (atom in self.weights or atom in self._casts)

    def _spans_layers(self, jaxpr: core.Jaxpr, inputs: Sequence[Atom]) -> bool:
        # Biases come with the products that they are added to, wherever they lie.
        matrices = [x for x in variables(inputs) if x in self.weights and len(_shape(x)) > 1]
        found = [self.weights[x] for x in matrices]
        loops = any(eqn.primitive.name == "scan" for eqn in jaxpr.eqns)
        return loops or len({(self.groups[w.leaf], w.index) for w in found}) > 1


def _one_of(eqn: core.JaxprEqn) -> int | None:
    """Return which one along the first axis an equation slices; None if it does something else."""
    if eqn.primitive.name != "slice":
        return None
    first, *rest = zip(eqn.params["start_indices"], eqn.params["limit_indices"], strict=True)
    whole = [(0, size) for size in _shape(eqn.invars[0])[1:]]
    return first[0] if first[1] - first[0] == 1 and rest == whole else None


def turned(eqn: core.JaxprEqn) -> tuple[int, int]:
    """Return how many inputs of a scan every turn reads as they are, and how many it carries.

    What comes behind these is read slice by slice. JAX says so in numbers, from 0.11 on by trees.
    """
    params: Any = eqn.params
    if "num_carry" in params:
        return params["num_consts"], params["num_carry"]
    same, carried, _ = params["ft_in"].unpack()
    return len(same), len(carried)


def fresh(aval: Any) -> core.Var:
    """Return a new variable of this shape and type."""
    return core.Var(aval)


def variables(atoms: Iterable[Atom]) -> list[core.Var]:
    """Return those that are variables; literals are written into their equation."""
    return [atom for atom in atoms if not isinstance(atom, core.Literal)]


def structs(atoms: Iterable[Atom]) -> list[jax.ShapeDtypeStruct]:
    """Return shapes and types, on which a function can be traced."""
    return [jax.ShapeDtypeStruct(atom.aval.shape, atom.aval.dtype) for atom in atoms]


def program(
    inputs: Sequence[core.Var], outputs: Sequence[Atom], equations: Sequence[core.JaxprEqn]
) -> core.ClosedJaxpr:
    """Return the jaxpr of these equations, without those that no output needs.

    An input may be a value that one of the equations makes: then that is not made again.
    """
    given = set(inputs)
    needed = set(variables(outputs)) - given
    kept: list[core.JaxprEqn] = []
    for eqn in reversed(equations):
        if needed & set(eqn.outvars):
            kept.append(eqn)
            needed |= set(variables(eqn.invars)) - given
    kept.reverse()
    names = core.DebugInfo("jit", "layer", ("",) * len(inputs), ("",) * len(outputs))
    jaxpr = core.Jaxpr((), list(inputs), list(outputs), kept, debug_info=names)
    return core.ClosedJaxpr(jaxpr, ())


def alone(eqn: core.JaxprEqn) -> tuple[list[core.Var], Callable[..., list[Any]]]:
    """Return the variables that an equation reads, each once, and the function of them."""
    inputs = list(dict.fromkeys(variables(eqn.invars)))
    return inputs, core.jaxpr_as_fun(program(inputs, eqn.outvars, [eqn]))


def closing(flat: Flat, inputs: Sequence[core.Var], outputs: Sequence[Atom]) -> core.ClosedJaxpr:
    """Return what a flattened program makes of `inputs`, closed over the arrays that it holds."""
    jaxpr = program([*flat.constants, *inputs], outputs, flat.equations).jaxpr
    jaxpr = jaxpr.replace(constvars=jaxpr.invars[: len(flat.constants)], invars=list(inputs))
    return core.ClosedJaxpr(jaxpr, list(flat.constants.values()))


def without_remats(closed: core.ClosedJaxpr) -> core.ClosedJaxpr:
    """Return the same program, of which nothing asks to be computed again."""
    if not any(eqn.primitive.name in REMATS for eqn in closed.jaxpr.eqns):
        return closed
    flat, inputs = Flat({}, (), remats=True), [fresh(x.aval) for x in closed.jaxpr.invars]
    return closing(flat, inputs, flat.inline(closed, inputs))


def without_repeats(
    flat: Flat, inputs: Iterable[core.Var], outputs: Sequence[Atom]
) -> tuple[list[core.JaxprEqn], list[Atom]]:
    """Return the equations, and outputs, without those that make again what one before them made.

    As a loss beside metrics does, which asks the net twice; XLA leaves such out as well. Of what
    samples and weights make together alone: all else is cheap to make at every visit.
    """
    same, first = dict[Atom, Atom](), dict[Atom, Atom]()  # what stands for it; what made it first
    seen = dict[Any, list[core.JaxprEqn]]()
    moving, trained, kept = set(inputs), set(flat.weights), list[core.JaxprEqn]()
    for each in flat.equations:
        eqn = each.replace(invars=[_read(same, atom, atom) for atom in each.invars])
        sources = [x for x in (moving, trained) if x.intersection(variables(eqn.invars))]
        for found in sources:
            found.update(eqn.outvars)
        twin = None
        if not eqn.effects and flat.recomputed.isdisjoint(eqn.outvars):
            read = [_read(first, atom, atom) for atom in eqn.invars]
            known = tuple(_literal(x) if isinstance(x, core.Literal) else x for x in read)
            before = seen.setdefault((eqn.primitive.name, known), [])
            twin = next((x for x in before if _says_the_same(x, eqn)), None)
            before += [eqn] if twin is None else []
        if twin is not None:
            first.update(zip(eqn.outvars, twin.outvars, strict=True))
        if twin is not None and len(sources) == 2:
            same.update(zip(eqn.outvars, twin.outvars, strict=True))
        else:
            kept.append(eqn)
    return kept, [_read(same, atom, atom) for atom in outputs]


def _says_the_same(one: core.JaxprEqn, other: core.JaxprEqn) -> bool:
    """Whether two equations of one kind differ in what they read and write alone."""
    return one is other or hashable([*one.params.items()]) == hashable([*other.params.items()])


def depends(jaxpr: core.Jaxpr, marked: Iterable[core.Var]) -> set[core.Var]:
    """Return every variable that depends on one of the marked ones, those included."""
    found = set(marked)
    for eqn in jaxpr.eqns:
        if found.intersection(variables(eqn.invars)):
            found.update(eqn.outvars)
    return found


def needs(jaxpr: core.Jaxpr, wanted: Iterable[Atom]) -> set[core.Var]:
    """Return every variable that one of the wanted ones depends on, those included."""
    found = set(variables(wanted))
    for eqn in reversed(jaxpr.eqns):
        if found.intersection(eqn.outvars):
            found.update(variables(eqn.invars))
    return found


def key(closed: core.ClosedJaxpr) -> tuple[Any, ...]:
    """Return what two jaxprs have in common if, and only if, they compute the same.

    Variables are numbered by appearance. A parameter of an equation that cannot be compared
    counts as equal to itself alone.
    """
    return (_key(closed.jaxpr), tuple(id(value) for value in closed.consts))


def _key(jaxpr: core.Jaxpr) -> tuple[Any, ...]:
    number: dict[Any, int] = {}

    def name(atom: Atom) -> Any:
        if isinstance(atom, core.Literal):
            return _literal(atom)
        return (number.setdefault(atom, len(number)), str(atom.aval))

    head = tuple(name(var) for var in (*jaxpr.constvars, *jaxpr.invars))
    body = tuple(
        (
            eqn.primitive.name,
            tuple(name(atom) for atom in eqn.invars),
            tuple(name(atom) for atom in eqn.outvars),
            tuple((k, hashable(v)) for k, v in sorted(eqn.params.items())),
        )
        for eqn in jaxpr.eqns
    )
    return (head, body, tuple(name(atom) for atom in jaxpr.outvars))


def hashable(value: Any) -> Any:
    """Return what compares equal for a parameter of an equation that says the same."""
    if isinstance(value, core.ClosedJaxpr):
        return key(value)
    if isinstance(value, core.Jaxpr):
        return _key(value)
    if isinstance(value, (tuple, list)):
        return tuple(hashable(item) for item in value)
    if isinstance(value, (float, np.ndarray, np.generic)):  # by bits: 0.0 == -0.0, nan != nan
        array = np.asarray(value)
        return (str(array.dtype), array.shape, array.tobytes())
    try:
        hash(value)
    except TypeError:
        return id(value)
    return (type(value).__name__, value)


def _literal(atom: core.Literal) -> tuple[str, str, bytes]:
    return ("literal", str(atom.aval), np.asarray(atom.val).tobytes())


def _read(env: dict[core.Var, Atom], atom: Atom, usual: Any = None) -> Atom:
    if isinstance(atom, core.Literal):
        return atom
    return env[atom] if usual is None else env.get(atom, usual)


def _shape(atom: Atom) -> tuple[int, ...]:
    return atom.aval.shape
