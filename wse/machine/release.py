"""Releases of the vendor's software: which are known, and which of them a machine had in a mode."""

import re
from typing import Any, Final

from wse._document import nearest, short

# sourced: tags of Cerebras/modelzoo, and logs of argonne-lcf/user-guides and pscedu/psc-wpdocs; all
# releases of two numbers, whose patches (as 2.0.3) are known with them.
KNOWN: Final = (
    "0.9",
    *(f"1.{i}" for i in range(10)),
    *(f"2.{i}" for i in range(11)),
)
PATCHES: Final = ("1.7.1", "2.0.2", "2.0.3", "2.1.1")  # sourced: the same; those that are named
# The first and the last release that a wafer had in a mode. The pipelined mode left the Model Zoo
# with R2.1 (sourced: its tables of models); CS-3 was announced in March 2024, after R2.1 (derived);
# CS-2 and weight streaming came in 2021, with R1.0 (derived).
HAD: Final[dict[tuple[str, str], tuple[str, str]]] = {
    ("WSE-1", "pipelined"): ("0.9", "2.0"),
    ("WSE-2", "pipelined"): ("1.0", "2.0"),
    ("WSE-2", "streaming"): ("1.0", "2.10"),
    ("WSE-3", "streaming"): ("2.2", "2.10"),
}


def version(release: Any) -> tuple[int, ...]:
    """A release as numbers, without zeros at its end.

    Raises:
        ValueError: text that is no version.

    >>> version("R1.8.0"), version("Release_2.10.0")
    ((1, 8), (2, 10))
    """
    if not isinstance(release, str):
        raise ValueError(
            f"release is {short(release)}; it must be text, as '2.0': pass it in quotes"
        )
    found = re.fullmatch(r"(?:r|release_)?(\d+(?:\.\d+)*)", release.strip().lower())
    if not found:
        near = nearest(release, [f"R{name}" for name in (*KNOWN, *PATCHES)])
        raise ValueError(
            f"release is {release!r}, which is no version: {near}; it must be numbers and dots"
        )
    numbers = [int(part) for part in found[1].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def had(wafer: str, mode: str, release: str) -> bool:
    """Whether a wafer is known to have had a known release in a mode, its patches included.

    >>> had("WSE-2", "pipelined", "R2.0.3"), had("WSE-3", "streaming", "2.0")
    (True, False)
    """
    if (wafer, mode) not in HAD:
        return False
    first, last = (_minor(version(name)) for name in HAD[wafer, mode])
    return first <= _minor(version(release)) <= last


def check(release: str, wafer: str, mode: str) -> str:
    """The release as "R2.0.3", where a machine had it in this mode.

    A wafer that nothing is known of, as a user's own, may have any known release.

    Raises:
        ValueError: no version, an unknown release, or one that the machine never had.
    """
    numbers = version(release)
    plain = ".".join(map(str, (*numbers, 0)[: max(2, len(numbers))]))
    minors = {_minor(version(name)) for name in KNOWN}
    if _minor(numbers) not in minors or len(numbers) > 3:
        raise ValueError(
            f"release is {release!r}, which is not known; known are R{KNOWN[0]} to R{KNOWN[-1]}: "
            f"{nearest(plain, KNOWN)}"
        )
    ranges = {asked: ends for asked, ends in HAD.items() if asked[0] == wafer}
    if (wafer, mode) in ranges and not had(wafer, mode, release):
        first, last = ranges[wafer, mode]
        raise ValueError(
            f"release is {release!r}, which {wafer} never had in {mode} mode; it had R{first} to "
            f"R{last}: pass one of these, or another machine or mode"
        )
    return f"R{plain}"


def latest(wafer: str, mode: str) -> str:
    """The last release that a wafer had in a mode; the last of all where nothing is known.

    >>> latest("WSE-2", "pipelined")
    'R2.0'
    """
    return f"R{HAD.get((wafer, mode), KNOWN[-1:] * 2)[1]}"


def _minor(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return (*numbers, 0, 0)[:2]
