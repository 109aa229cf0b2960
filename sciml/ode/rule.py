"""A condition on parameters as text, such as "a + b < 1": parsed, never executed."""

import ast
from collections.abc import Mapping
from functools import cache, reduce
from itertools import pairwise
from typing import Any

import jax.numpy as jnp

LONGEST = 1000  # assumed: characters; a rule that is longer was made by a program
OPERATIONS = {
    ast.Add: jnp.add,
    ast.Sub: jnp.subtract,
    ast.Mult: jnp.multiply,
    ast.Div: jnp.divide,
    ast.Pow: jnp.power,
    ast.USub: jnp.negative,
    ast.Lt: jnp.less,
    ast.LtE: jnp.less_equal,
    ast.Gt: jnp.greater,
    ast.GtE: jnp.greater_equal,
    ast.And: jnp.logical_and,
    ast.Or: jnp.logical_or,
    ast.Not: jnp.logical_not,
}
FUNCTIONS = {"abs": jnp.abs, "exp": jnp.exp, "log": jnp.log, "sqrt": jnp.sqrt}


@cache
def parsed(rule: Any) -> ast.expr:
    """Return the tree of a rule, refusing what is no comparison of formulas."""
    try:
        if not isinstance(rule, str) or len(rule) > LONGEST:
            raise TypeError(f"it is no text of at most {LONGEST} characters")
        tree = ast.parse(rule.strip(), mode="eval").body
        if not isinstance(tree, ast.Compare | ast.BoolOp | ast.UnaryOp):
            raise TypeError(f"it compares nothing, being of {type(tree).__name__}")
        value_of(tree, dict.fromkeys(names_in(tree), 0.5))
    except (SyntaxError, TypeError, ValueError, KeyError, RecursionError) as error:
        raise ValueError(
            f"the rule is {rule!r} ({error}); it must compare formulas of the parameters, as "
            f"'a + b < 1 and a < b', with + - * / **, and, or, not, {', '.join(FUNCTIONS)}"
        ) from error
    return tree


def names_in(tree: ast.expr) -> set[str]:
    """Return the names of the parameters that a rule speaks of."""
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} - {*FUNCTIONS}


def holds(rule: Any, values: Mapping[str, Any]) -> Any:
    """Tell where a rule holds, of arrays by the name of their parameter; traceable."""
    return jnp.asarray(value_of(parsed(rule), values), bool)


def value_of(tree: ast.expr, values: Mapping[str, Any]) -> Any:
    """Return what a tree comes to."""
    match tree:
        case ast.Name(id=name):
            return values[name]
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return float(number)
        case ast.UnaryOp(op=op, operand=operand):
            return OPERATIONS[type(op)](value_of(operand, values))
        case ast.BinOp(left=left, op=op, right=right):
            return OPERATIONS[type(op)](value_of(left, values), value_of(right, values))
        case ast.BoolOp(op=op, values=several):
            return reduce(OPERATIONS[type(op)], [value_of(one, values) for one in several])
        case ast.Compare(left=left, ops=ops, comparators=others):
            pairs = pairwise(value_of(one, values) for one in (left, *others))
            found = [OPERATIONS[type(op)](*pair) for op, pair in zip(ops, pairs, strict=True)]
            return reduce(jnp.logical_and, found)
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]):
            return FUNCTIONS[name](value_of(argument, values))
    raise TypeError(f"{ast.unparse(tree)} is not known")
