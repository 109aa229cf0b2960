"""What operations beside products read and write: norms, activations, scans of a recurrence.

A compiler fuses elementwise operations into what reads them, so that memory is met where it cannot:

    E = sum(reads + writes)      of reductions, running sums, concatenations, lookups, sorts, loops
      + sum(2 n)                 of n numbers that were made for a product to read

A loop counts every turn: what it carries is read and written, and what its body does.
"""

# JAX annotates only part of what it gives.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from dataclasses import dataclass

from jax.extend import core

from wse.graph.equations import depends, variables
from wse.graph.flops import CONVOLUTION, inner_programs, laid_out, numbers, products
from wse.graph.layers import Graph

PRODUCTS = frozenset({"dot_general", CONVOLUTION, "ragged_dot_general"})
WHOLE = ("reduce", "cum", "arg", "scatter", "select_and", "dynamic_update")  # starts of names
WHOLE_TOO = frozenset({"concatenate", "pad", "gather", "sort", "fft", "top_k", "rng_bit_generator"})
LOOPS = frozenset({"scan", "while"})


@dataclass(frozen=True)
class Beside:
    """What a forward pass does beside products.

    Attributes:
        moved: numbers of a sample that are read and written, E.
        turns: of loops without products, of all samples at once.
    """

    moved: int
    turns: int


def of_graph(model: Graph) -> Beside:
    """What a graph does beside products.

    >>> import jax.numpy as jnp
    >>> import wse
    >>> params, batch = jnp.ones((4, 2)), jnp.ones((3, 4))
    >>> of_graph(wse.trace(lambda p, x: jnp.mean(jnp.cumsum(x @ p, axis=1)), params, batch)).moved
    6
    """
    programs = [layer.jaxpr.jaxpr for layer in model.layers]
    pairs = zip(programs, model.layers, strict=True)
    moved = sum(_moved(one, one.invars[len(layer.weights) :]) for one, layer in pairs)
    return Beside(moved // model.batch_size, sum(map(_turns, programs)))


def _turns(program: core.Jaxpr) -> int:
    loops = [
        eqn
        for eqn in program.eqns
        if eqn.primitive.name == "scan" and not any(map(products, inner_programs(eqn)))
    ]
    return sum(eqn.params["length"] for eqn in loops)


def _moved(program: core.Jaxpr, moving: list[core.Var]) -> int:
    varies, same = depends(program, moving), laid_out(program)
    fused: set[core.Var] = set()  # made by what a compiler fuses, and not yet written
    count = 0
    for eqn in program.eqns:
        name = eqn.primitive.name
        read = [x for x in dict.fromkeys(variables(eqn.invars)) if x in varies]
        if not read:
            continue
        if name in PRODUCTS:
            written = {same.get(x, x) for x in read} & fused
            count += 2 * numbers(written)
            fused -= written
        elif inner := inner_programs(eqn):
            turns = eqn.params.get("length", 1)
            count += turns * sum(_moved(one, _given(eqn, one, varies)) for one in inner)
            if name in LOOPS:
                count += numbers(read) + numbers(eqn.outvars)
        elif name in WHOLE_TOO or name.startswith(WHOLE):
            count += numbers(read) + numbers(eqn.outvars)
        elif eqn.outvars[0] not in same:
            fused.update(eqn.outvars)
    return count


def _given(eqn: core.JaxprEqn, inner: core.Jaxpr, varies: set[core.Var]) -> list[core.Var]:
    """What a called program is given that depends on the batch."""
    if len(inner.invars) != len(eqn.invars):
        return inner.invars
    pairs = zip(inner.invars, eqn.invars, strict=True)
    return [x for x, y in pairs if isinstance(y, core.Var) and y in varies]
