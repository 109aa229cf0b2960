"""YAML of users: plain values alone, bounded in depth and in what aliases expand to."""

# PyYAML annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import re
from collections import Counter
from typing import Any

import yaml

MOST_NODES = 100_000  # assumed: of a specification, aliases written out
MOST_VALUES = 10_000  # assumed: written in the text; a tenth of a second to read
MOST_DEPTH = 100  # assumed
LONG = re.compile(r"[-+]?[0-9_]{400,}")  # digits, more than any float holds

# Neither 1:30:00, which YAML 1.1 reads by base 60, nor 010, which is 8 there and 10 in YAML 1.2.
INT = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)$")
FLOAT = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|\.[0-9_]+(?:[eE][-+]?[0-9]+)?"
    r"|\.(?:inf|Inf|INF))$|\.(?:nan|NaN|NAN)$"
)


class _Loader(yaml.SafeLoader):
    """Makes plain values and nothing else."""


def _resolvers() -> None:
    numbers = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
    _Loader.yaml_implicit_resolvers = {
        first: [pair for pair in pairs if pair[0] not in numbers]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    _Loader.add_implicit_resolver(numbers[0], INT, list("-+0123456789"))
    _Loader.add_implicit_resolver(numbers[1], FLOAT, list("-+0123456789."))


_resolvers()


def load(text: str) -> Any:
    """Return what a YAML text holds.

    Raises:
        yaml.YAMLError: it is no YAML, or has tags that would make Python objects.
        ValueError: it is nested too deeply, holds too many values or has aliases that expand to
            too many, an integer has too many digits, or a key is there twice.
    """
    _check_events(text)
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _check_nodes(node)
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _check_events(text: str) -> None:
    depth = values = 0
    for event in yaml.parse(text, _Loader):
        values += isinstance(event, yaml.NodeEvent)
        line = event.start_mark.line + 1
        if values > MOST_VALUES:
            raise ValueError(
                f"line {line}: there are more than {MOST_VALUES} values; no specification is so "
                "long: keep data in files of their own"
            )
        if isinstance(event, yaml.ScalarEvent) and LONG.fullmatch(event.value):
            raise ValueError(
                f"line {line}: a number has {len(event.value)} digits; write it as 1.0e10, or put "
                "it in quotes if it is text"
            )
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MOST_DEPTH:
            raise ValueError(
                f"line {line}: values lie more than {MOST_DEPTH} deep in each other; no setting "
                "needs that: close the brackets"
            )


def _check_nodes(root: yaml.Node, above: tuple[int, ...] = (), sizes: Any = None) -> int:
    """Return how many nodes there are with aliases written out, in time linear in the text."""
    sizes = {} if sizes is None else sizes
    if id(root) in above:
        raise ValueError(f"line {root.start_mark.line + 1}: a value holds itself; write it out")
    if id(root) not in sizes:
        children = _children(root)
        inside = (*above, id(root))
        sizes[id(root)] = 1 + sum(_check_nodes(child, inside, sizes) for child in children)
    if sizes[id(root)] > MOST_NODES:
        raise ValueError(
            f"line {root.start_mark.line + 1}: aliases expand to more than {MOST_NODES} values; "
            "no specification is so long: write out what is needed"
        )
    return sizes[id(root)]


def _children(node: yaml.Node) -> list[Any]:
    if isinstance(node, yaml.SequenceNode):
        return [*node.value]
    if not isinstance(node, yaml.MappingNode):
        return []
    pairs: list[tuple[Any, Any]] = node.value
    names = Counter(str(key.value) for key, _ in pairs if isinstance(key, yaml.ScalarNode))
    for name, count in names.items():
        if count > 1 and name != "<<":
            raise ValueError(
                f"line {node.start_mark.line + 1}: the key {name[:80]!r} is there {count} times; "
                "one would be lost: leave one"
            )
    return [part for pair in pairs for part in pair]
