"""What an SBML file states beside its equations: the unit of its times, and constraints."""

import logging
from pathlib import Path
from typing import Any

from sciml._units import factor_between
from sciml.ode.sbml.valid import optional_libsbml

log = logging.getLogger(__name__)

SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
NEAR = 1e-6  # of a multiplier of seconds


def time_unit(path: Path | str, given: str | None) -> str:
    """Return the unit of the times of an SBML file that was read: its own, or the one given.

    Raises:
        ValueError: the unit given is not the file's.
    """
    source = optional_libsbml().readSBMLFromFile(str(path)).getModel()
    name = stated(source)
    seconds = name[1] if name else float("nan")
    known = next((n for n, s in SECONDS.items() if abs(seconds / s - 1) < NEAR), None)
    ratio = factor_between(given, f"{seconds!r} s")  # None of NaN
    if ratio is not None and abs(ratio - 1) >= NEAR:
        known = known or f"{seconds:g} s"
        raise ValueError(
            f"time_unit is {given!r} and {path} has its times in {known!r}; it must be the file's: "
            "leave time_unit out, and give times in that unit"
        )
    return given or known or (name[0] if name else "s")


def warn_of_constraints(path: Path | str) -> None:
    """Say that constraints of an SBML file, by which it tells where it holds, are not watched."""
    if count := optional_libsbml().readSBMLFromFile(str(path)).getModel().getNumConstraints():
        said = "%s has %d constraints, which are not watched: solutions that break them are kept"
        log.warning(said, path, count)


def stated(source: Any) -> tuple[str, float] | None:
    """Return the name of a model's unit of time and its seconds, NaN where it is no time."""
    name = source.getTimeUnits() or "time"  # of level 2, which redefines the word
    definition = source.getUnitDefinition(name)
    if definition is None:
        return ("second", 1.0) if name == "second" else None
    seconds = 1.0
    for unit in definition.getListOfUnits():
        exponent = unit.getExponentAsDouble()
        seconds *= (unit.getMultiplier() * 10.0 ** unit.getScale()) ** exponent
        if not (unit.isDimensionless() or (unit.isSecond() and exponent == 1)):
            return name, float("nan")
    return name, seconds
