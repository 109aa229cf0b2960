"""Of what kind the parts of a mesh program are: what is another is refused before it is read."""

# What is checked is of any kind.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnnecessaryIsInstance=false

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wse.mesh.code import Grid, Instruction, Place, Port, Route, whole


def check_kinds(grid: Any, routes: Any, code: Any, memory: Any) -> None:
    """Refuse the first part that is of another kind.

    Raises:
        ValueError: no grid, no dictionary, a place that is none, code that is no row of
            instructions, a route that is none, or memory that single precision does not hold.
    """
    if not isinstance(grid, Grid):
        raise ValueError(f"grid is {grid!r}; it must be a Grid: pass Grid(columns=2, rows=1)")
    for name, value in (("routes", routes), ("code", code), ("memory", memory)):
        if not isinstance(value, Mapping):
            raise ValueError(
                f"{name} is {_named(value)}; it must be a dictionary by place: pass {{}} for none"
            )
    for key, route in routes.items():
        if not (isinstance(key, tuple) and len(key) == 2):
            raise ValueError(
                f"a route has the key {key!r}; it must be a place and a colour: pass ((0, 0), 0)"
            )
        _check_place(key[0])
        _check_route(key, route)
    for place, steps in code.items():
        _check_place(place)
        _check_steps(place, steps)
    for place, values in memory.items():
        _check_place(place)
        _check_words(place, values)


def _check_place(place: Any) -> None:
    if not (isinstance(place, tuple) and len(place) == 2 and all(map(whole, place))):
        raise ValueError(
            f"a place is {place!r}; it must be two integers, column and row: pass (0, 0)"
        )


def _check_route(key: Any, route: Any) -> None:
    ports = (*route.inputs, *route.outputs) if _is_route(route) else (None,)
    if not all(isinstance(port, Port) for port in ports):
        raise ValueError(
            f"the route of {key} is {_named(route)}; it must be one Route, which no switch changes "
            "on the way: pass Route({Port.RAMP}, {Port.EAST})"
        )


def _is_route(route: Any) -> bool:
    sets = (set, frozenset)
    return isinstance(route, Route) and all(
        isinstance(x, sets) for x in (route.inputs, route.outputs)
    )


def _check_steps(place: Place, steps: Any) -> None:
    row = isinstance(steps, Sequence) and not isinstance(steps, str)
    for step in steps if row else (steps,):
        if not (row and isinstance(step, Instruction)):
            raise ValueError(
                f"element {place} is to run {_named(step)}; a program is a straight line without "
                "tasks, loops or branches: pass a list of Instructions, repeated where it loops"
            )


def _check_words(place: Place, values: Any) -> None:
    words = np.asarray(values)
    wrong = words.ravel()[:1] if words.dtype.kind not in "fiub" else _too_large(words)
    wrong = [np.ma.masked] if np.ma.is_masked(values) else wrong
    if len(wrong):
        raise ValueError(
            f"memory of element {place} holds {wrong[0]!r}; words are real numbers of single "
            "precision: pass such, scaled where they are larger"
        )


def _too_large(words: NDArray[Any]) -> NDArray[Any]:
    """What is finite, but would not be in single precision."""
    return words[np.isfinite(words) & (np.abs(words) > np.finfo(np.float32).max)]


def _named(value: Any) -> str:
    """The kind of a value, and as much of it as a line holds."""
    said = repr(value)
    return f"a {type(value).__name__}, {said if len(said) <= 60 else said[:60] + '…'}"


def check_circles(routes: Mapping[tuple[Place, int], Route]) -> None:
    """Refuse a colour that is routed in a circle, on which a wavelet would never end.

    Raises:
        ValueError: some routers send a colour on to each other.
    """
    onward: dict[Any, list[Any]] = {}
    for (place, colour), route in routes.items():
        for port in route.outputs - {Port.RAMP}:
            beyond = ((place[0] + port.step[0], place[1] + port.step[1]), colour)
            if beyond in routes and port.opposite in routes[beyond].inputs:
                onward.setdefault((place, colour), []).append(beyond)
    try:
        TopologicalSorter(onward).prepare()
    except CycleError as error:
        place, colour = error.args[1][0]
        raise ValueError(
            f"colour {colour} is routed in a circle of {len(error.args[1]) - 1} routers, one of "
            f"them at {place}; a wavelet on it would never end: end the route at one of them, or "
            "go on in another colour"
        ) from None
