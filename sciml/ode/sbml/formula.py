"""Formulas of SBML and PEtab as JAX functions: libsbml parses, nothing is evaluated as text."""

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, reduce
from itertools import pairwise
from typing import Any

import jax.numpy as jnp
from jax.scipy.special import gammaln

Env = Mapping[str, Any]
Formula = Callable[[Env], Any]

TIME = "the time"  # no name of SBML has a blank, so that a parameter may be called time
DEEPEST = 200  # assumed: of terms within terms; Python's own limit is near 1000
CONSTANTS = {
    **{"AST_CONSTANT_E": jnp.e, "AST_CONSTANT_PI": jnp.pi, "AST_NAME_AVOGADRO": 6.02214179e23},
    **{"AST_CONSTANT_TRUE": True, "AST_CONSTANT_FALSE": False},
}


def _all(operation: Callable[[Any, Any], Any], empty: Any) -> Callable[..., Any]:
    return lambda *terms: reduce(operation, terms, empty)


def _minus(*terms: Any) -> Any:
    return -terms[0] if len(terms) == 1 else terms[0] - terms[1]


def _log(*terms: Any) -> Any:
    return jnp.log10(*terms) if len(terms) == 1 else jnp.log(terms[1]) / jnp.log(terms[0])


def _root(*terms: Any) -> Any:
    return jnp.sqrt(*terms) if len(terms) == 1 else terms[1] ** (1.0 / terms[0])


def _chained(compare: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def holds(*terms: Any) -> Any:
        return reduce(jnp.logical_and, (compare(a, b) for a, b in pairwise(terms)))

    return holds


def _piecewise(*parts: Any) -> Any:
    """Value, condition, value, condition, …, otherwise."""
    value = parts[-1] if len(parts) % 2 else jnp.nan
    pairs = list(zip(parts[0:-1:2], parts[1::2], strict=False))
    for one, holds in reversed(pairs):
        value = jnp.where(holds, one, value)
    return value


OPERATIONS: dict[str, Callable[..., Any]] = {
    "AST_PLUS": _all(lambda a, b: a + b, 0.0),
    "AST_TIMES": _all(lambda a, b: a * b, 1.0),
    "AST_MINUS": _minus,
    "AST_DIVIDE": lambda a, b: a / b,
    "AST_FUNCTION_PIECEWISE": _piecewise,
    "AST_FUNCTION_LN": jnp.log,
    "AST_FUNCTION log2": jnp.log2,
    "AST_FUNCTION_LOG": _log,
    "AST_FUNCTION_ROOT": _root,
    "AST_FUNCTION_FACTORIAL": lambda n: jnp.exp(gammaln(n + 1.0)),
    "AST_FUNCTION_CEILING": jnp.ceil,
    "AST_FUNCTION_MAX": lambda *x: reduce(jnp.maximum, x),
    "AST_FUNCTION_MIN": lambda *x: reduce(jnp.minimum, x),
    "AST_FUNCTION_REM": jnp.fmod,
    "AST_FUNCTION_QUOTIENT": lambda a, b: jnp.trunc(a / b),
    "AST_FUNCTION_SEC": lambda x: 1 / jnp.cos(x),
    "AST_FUNCTION_CSC": lambda x: 1 / jnp.sin(x),
    "AST_FUNCTION_COT": lambda x: 1 / jnp.tan(x),
    "AST_LOGICAL_AND": _all(jnp.logical_and, True),
    "AST_LOGICAL_OR": _all(jnp.logical_or, False),
    "AST_LOGICAL_XOR": _all(jnp.logical_xor, False),
    "AST_LOGICAL_NOT": jnp.logical_not,
    "AST_RELATIONAL_NEQ": lambda a, b: a != b,
    "AST_RELATIONAL_EQ": _chained(lambda a, b: a == b),
    "AST_RELATIONAL_LT": _chained(lambda a, b: a < b),
    "AST_RELATIONAL_LEQ": _chained(lambda a, b: a <= b),
    "AST_RELATIONAL_GT": _chained(lambda a, b: a > b),
    "AST_RELATIONAL_GEQ": _chained(lambda a, b: a >= b),
    **{
        f"AST_FUNCTION_{name.upper()}": getattr(jnp, name)
        for name in (
            *("abs", "exp", "floor", "sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin"),
            *("arccos", "arctan", "arcsinh", "arccosh", "arctanh"),
        )
    },
}
INVERSES: dict[str, Callable[..., Any]] = {  # of f(x, others) = y, x being the part that is read
    "AST_PLUS": lambda y, others, _: y - sum(others),
    "AST_TIMES": lambda y, others, _: y / reduce(operator.mul, others, 1.0),
    "AST_MINUS": lambda y, others, at: others[0] - y if at else y + others[0] if others else -y,
    "AST_DIVIDE": lambda y, others, _: y * others[0],
}
EQUALITIES = ("AST_RELATIONAL_EQ", "AST_RELATIONAL_NEQ")
JUMPING = tuple(f"AST_FUNCTION_{name}" for name in ("FLOOR", "CEILING", "REM", "QUOTIENT"))
POWERS = ("AST_POWER", "AST_FUNCTION_POWER")
NUMBERS = ("AST_INTEGER", "AST_REAL", "AST_REAL_E", "AST_RATIONAL")


def parsed(text: str, owner: str) -> Any:
    """Return the syntax tree of a formula in PEtab's notation, in which `log` is natural."""
    import libsbml

    if odd := [sign for sign in str(text) if not sign.isascii()]:  # the rest would be left out
        raise ValueError(
            f"{owner} has the sign {odd[0]!a}, which no formula may have: write it in ASCII, as *"
        )
    settings = libsbml.L3ParserSettings()
    settings.setParseUnits(libsbml.L3P_NO_UNITS)  # else 2 B is a number, with B for its unit
    settings.setParseLog(libsbml.L3P_PARSE_LOG_AS_LN)
    settings.setComparisonCaseSensitivity(libsbml.L3P_COMPARE_BUILTINS_CASE_SENSITIVE)
    tree = libsbml.parseL3FormulaWithSettings(str(text), settings)
    if tree is None:
        raise ValueError(f"{owner} is {str(text)[:80]!r}, which is no formula: correct it")
    logarithms = sum(_kind(node) == "AST_FUNCTION_LOG" for node in nodes(tree))
    if logarithms > len(re.findall(r"\blog10\s*\(", str(text))):
        raise ValueError(
            f"{owner} is {str(text)[:80]!r}, with a logarithm of two arguments, of which either is "
            "taken for the base elsewhere: write log(x) / log(base)"
        )
    return tree


def of(operation: str, number: float, name: str) -> Any:
    """Return the syntax tree of a number times, or divided by, a name, whatever that is called."""
    import libsbml

    tree = libsbml.parseL3Formula(f"1 {operation} it")
    tree.getChild(0).setValue(float(number))
    tree.getChild(1).setName(name)
    return tree


def compiled(tree: Any, owner: str) -> Formula:
    """Return a syntax tree as a function of the values of its names.

    NaN may be what a piecewise function is where it is not defined, and no other term.
    """
    terms = [tree]
    for node in nodes(tree):
        if _kind(node) != "AST_FUNCTION_PIECEWISE":
            terms += [node.getChild(i) for i in range(node.getNumChildren())]
    if any(_kind(term) in NUMBERS and term.getValue() != term.getValue() for term in terms):
        raise ValueError(f"{owner} has NaN as a term; it must be a number or a name: correct it")
    return _compiled(tree, owner, 0)


def names(tree: Any) -> set[str]:
    """Return the names that a syntax tree reads, time not among them."""
    return {node.getName() for node in nodes(tree) if _kind(node) == "AST_NAME"}


def nodes(tree: Any) -> Iterator[Any]:
    """Give every node of a syntax tree, parents first."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [node.getChild(i) for i in range(node.getNumChildren())]


def reads_time(tree: Any) -> bool:
    """Whether a syntax tree reads the time."""
    return any(_kind(node) == "AST_NAME_TIME" for node in nodes(tree))


def is_word(name: str) -> bool:
    """Whether a formula means something of its own by a name, as the number π by `pi`."""
    return _kind(parsed(name, "a name")) != "AST_NAME"


@dataclass(frozen=True)
class Moving:
    """Names whose values move with the time.

    Attributes:
        rules: name → formula that moves with the time, as s = time - 3.
        clocks: name → rate, a number, of what a rate rule changes steadily.
    """

    rules: Mapping[str, Any]
    clocks: Mapping[str, float]

    @classmethod
    def of(cls, rules: Mapping[str, Any], rates: Mapping[str, Any]) -> "Moving":
        """Return what moves among rules, each after those that it reads, and rate rules."""
        steady = {n: x for n, x in rates.items() if not (names(x) or reads_time(x))}
        speeds = {n: float(_compiled(x, n, 0)({})) for n, x in steady.items()}
        found = cls({}, {name: speed for name, speed in speeds.items() if speed})
        for name, tree in rules.items():
            if found.moves(tree):
                found = cls({**found.rules, name: tree}, found.clocks)
        return found

    def moves(self, tree: Any) -> bool:
        """Whether a value moves with the time otherwise than by jumps, which are found apart."""
        kind = _kind(tree)
        if kind == "AST_NAME":
            return tree.getName() in self.rules or tree.getName() in self.clocks
        parts = (tree.getChild(i) for i in range(tree.getNumChildren()))
        return kind == "AST_NAME_TIME" or (
            not kind.startswith("AST_RELATIONAL") and any(map(self.moves, parts))
        )


def times_of_jumps(tree: Any, owner: str, moving: Moving) -> list[Formula]:
    """Return the times at which a formula jumps, all by comparing the time with something."""
    found = []
    for node in nodes(tree):
        kind = _kind(node)
        sides = [node.getChild(i) for i in range(node.getNumChildren())]
        timed = [side for side in sides if moving.moves(side)]
        if not (kind.startswith("AST_RELATIONAL") or kind in JUMPING) or not timed:
            continue
        if kind in JUMPING or kind in EQUALITIES or len(timed) > 1:
            raise ValueError(_unknown(owner, node))
        others = [_compiled(side, owner, 0) for side in sides if not moving.moves(side)]
        found += [_solved(timed[0], other, owner, moving) for other in others]
    return found


def _solved(tree: Any, value: Formula, owner: str, moving: Moving) -> Formula:
    """The time at which a formula has a value, of sums and multiples of the time."""
    kind, name = _kind(tree), tree.getName()
    if kind == "AST_NAME_TIME":
        return value
    if kind == "AST_NAME" and name in moving.rules:
        return _solved(moving.rules[name], value, owner, moving)
    if kind == "AST_NAME":
        return lambda env: env[TIME] + (value(env) - env[name]) / moving.clocks[name]
    parts = [tree.getChild(i) for i in range(tree.getNumChildren())]
    at = [i for i, part in enumerate(parts) if moving.moves(part)]
    if len(at) != 1 or kind not in INVERSES or (kind == "AST_DIVIDE" and at[0]):
        raise ValueError(_unknown(owner, tree))
    others = [_compiled(part, owner, 0) for i, part in enumerate(parts) if i != at[0]]
    inverse = INVERSES[kind]

    def left(env: Env) -> Any:
        return inverse(value(env), [one(env) for one in others], at[0])

    return _solved(parts[at[0]], left, owner, moving)


def _unknown(owner: str, node: Any) -> str:
    import libsbml

    return (
        f"{owner} jumps by {libsbml.formulaToL3String(node)[:80]!r}, at times that are not known: "
        "compare the time itself with a number or a name, as time >= t_1"
    )


def _compiled(tree: Any, owner: str, depth: int) -> Formula:
    if depth > DEEPEST:
        raise ValueError(f"{owner} has terms more than {DEEPEST} deep in each other: simplify it")
    kind = _kind(tree)
    if kind in NUMBERS:
        number = float(tree.getValue())
        return lambda _: number
    if kind == "AST_NAME_TIME":
        return lambda env: env[TIME]
    if kind == "AST_NAME":
        name = tree.getName()
        return lambda env: env[name]
    if kind in CONSTANTS:
        constant = CONSTANTS[kind]
        return lambda _: constant
    parts = [_compiled(tree.getChild(i), owner, depth + 1) for i in range(tree.getNumChildren())]
    if kind in POWERS:
        return _power(tree.getChild(1), *parts)
    if kind == "AST_FUNCTION":
        kind = f"AST_FUNCTION {tree.getName()}"
    if kind not in OPERATIONS:
        what = tree.getName() or kind.removeprefix("AST_").removeprefix("FUNCTION_").lower()
        raise ValueError(
            f"{owner} uses {what}, which is not supported: known are arithmetic, powers, "
            "logarithms, trigonometry, comparisons, piecewise, min and max"
        )
    operation = OPERATIONS[kind]
    return lambda env: operation(*(part(env) for part in parts))


def _power(exponent: Any, base: Formula, power: Formula) -> Formula:
    """xʸ; of a whole number y without logarithms, which have no gradient at x = 0."""
    if _kind(exponent) in NUMBERS and (n := float(exponent.getValue())).is_integer():
        whole = int(n)
        return lambda env: base(env) ** whole
    return lambda env: base(env) ** power(env)


def _kind(tree: Any) -> str:
    return _kinds()[tree.getType()]


@cache
def _kinds() -> dict[int, str]:
    import libsbml

    codes = {n: x for n, x in vars(libsbml).items() if n.startswith("AST_") and isinstance(x, int)}
    return {x: n for n, x in codes.items()} | {libsbml.AST_UNKNOWN: "AST_UNKNOWN"}
