"""Events of SBML at known times: when they fire, and what they set."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sciml.ode.sbml import formula
from sciml.ode.sbml.formula import TIME, Formula, Moving

NEAR = 1e-9  # of a time: just before it, and just after it


@dataclass(frozen=True)
class Jump:
    """An event of the time alone: when it fires, and what it sets.

    Attributes:
        trigger: whether it is on, and `times` at which that may change; it reads the names `reads`.
        begins: whether it counts as on before the start, so that it does not fire there.
        early: whether what it sets is computed when it fires, before other events of that moment.
        sets: name → formula of the values.
    """

    name: str
    trigger: Formula
    reads: tuple[str, ...]
    times: tuple[Formula, ...]
    begins: bool
    early: bool
    sets: Mapping[str, Formula]


def set_by_events(source: Any) -> list[str]:
    """Return the parameters that events of a model set, so that they change in time."""
    named = [
        one.getVariable()
        for event in source.getListOfEvents()
        for one in event.getListOfEventAssignments()
    ]
    return [name for name in named if source.getParameter(name) is not None]


def read_event(event: Any, source: Any, states: Collection[str], file: str) -> Jump:
    """Return an event of libsbml, or refuse by name one at times that are not known."""
    name = event.getId() or event.getName() or "an event"
    owner, trigger = f"event {name} of {file}", event.getTrigger()
    if trigger is None or (tree := trigger.getMath()) is None:
        raise ValueError(f"{owner} has no trigger: write one, as time >= ...")
    changing = {*(x.getId() for x in source.getListOfSpecies() if not x.getConstant())}
    changing |= {r.getVariable() for r in source.getListOfRules()} | {*set_by_events(source)}
    changing |= {x.getId() for x in source.getListOfReactions()}  # which means its rate
    if (moving := formula.names(tree) & changing) or not formula.reads_time(tree):
        what = ", ".join(sorted(moving)) or "no time"
        raise ValueError(
            f"{owner} is triggered by {what}; only events at given times "
            "are supported: write its trigger as time >= ..."
        )
    if event.isSetDelay() or event.isSetPriority():
        raise ValueError(
            f"{owner} has a delay or a priority, which are not supported: "
            "put the delay into the time of its trigger"
        )
    sets = {
        x.getVariable(): x.getMath() for x in event.getListOfEventAssignments() if x.isSetMath()
    }
    if odd := [one for one in sets if one not in states]:
        raise ValueError(
            f"{owner} sets {', '.join(odd)}; events may set species and parameters alone: remove it"
        )
    return Jump(
        name,
        formula.compiled(tree, owner),
        tuple(sorted(formula.names(tree))),
        tuple(formula.times_of_jumps(tree, owner, Moving({}, {}))),
        not trigger.isSetInitialValue() or trigger.getInitialValue(),
        not event.isSetUseValuesFromTriggerTime() or event.getUseValuesFromTriggerTime(),
        {one: formula.compiled(x, owner) for one, x in sets.items()},
    )


def together(group: list[Jump]) -> Mapping[str, Formula]:
    """Return what events of one moment set: all read the values before it."""
    sets = [name for event in group for name in event.sets]
    if len({*sets}) < len(sets) or not (len(group) == 1 or all(event.early for event in group)):
        raise ValueError(
            f"events {', '.join(event.name for event in group)} set {', '.join(sets)} at the same "
            "time, in an order that SBML leaves open: put a little time between them"
        )
    return {name: value for event in group for name, value in event.sets.items()}


def fires(event: Jump, env: Mapping[str, Any]) -> list[float]:
    """Return the times at which the trigger of an event becomes true."""
    times = sorted({float(one(env)) for one in event.times})
    lost = [name for name in event.reads if not np.isfinite(env.get(name, np.nan))]
    if lost or not np.isfinite(times).all():
        raise ValueError(
            f"event {event.name} fires at a time that is estimated, by "
            f"{', '.join(lost) or times}, which is not supported: set estimate to 0 for it"
        )

    def on(t: float) -> bool:
        return bool(event.trigger({**env, TIME: t}))

    soon = NEAR * min((t for t in times if t > 0), default=1.0)
    begun = on(soon) and not on(0.0)  # as time > 0 does, whatever counts before the start
    first = [0.0] if begun or (on(0.0) and not event.begins) else []
    return first + [t for t in times if t > 0 and on(t * (1 + NEAR)) and not on(t * (1 - NEAR))]
