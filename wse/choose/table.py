"""A training on several machines: time, energy, cost, and from how many samples which one wins.

A machine takes T(S) = T_setup + S tau for S samples. Of two, i is the faster one from

    S = max(0, (T_setup,i - T_setup,j) / (tau_j - tau_i))   samples on, where tau_i < tau_j,

and never where it is slower in both. Energy is power times T; cost is price times T.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wse import _render
from wse.choose.figure import Bounds, draw

if TYPE_CHECKING:
    import xarray as xr

HEADER = ("machine", "set-up", "a sample", "in all", "at least", "at most", "energy", "cost")
JOULES_PER_KWH = 3.6e6
NAN = float("nan")


@dataclass(frozen=True)
class Candidate:
    """What one machine would take.

    Attributes:
        name: as "8 x H100".
        setup_s: seconds before the first sample: least, as estimated, most.
        sample_s: seconds of one sample: likewise.
        power_w: of all devices together: likewise; NaN where it is not known.
        price_per_h: of all devices together; NaN where none was given.
        refused: why it cannot train the model; empty: it can.
        binding: what takes longest of training.
        cautions: what was stretched.
        why: who or what chose machine, mode and release, and which attention is meant.
    """

    name: str
    setup_s: Bounds = (NAN, NAN, NAN)
    sample_s: Bounds = (NAN, NAN, NAN)
    power_w: Bounds = (NAN, NAN, NAN)
    price_per_h: float = NAN
    refused: str = ""
    binding: str = ""
    cautions: tuple[str, ...] = ()
    why: str = ""

    def total_s(self, samples: int | float) -> Bounds:
        """Seconds in all for so many samples."""
        low, mid, high = (a + samples * b for a, b in zip(self.setup_s, self.sample_s, strict=True))
        return low, mid, high

    def energy_kwh(self, samples: int | float) -> Bounds:
        """Kilowatt-hours of the devices."""
        total = self.total_s(samples)
        low, mid, high = (w * t / JOULES_PER_KWH for w, t in zip(self.power_w, total, strict=True))
        return low, mid, high

    def beats_from(self, other: "Candidate") -> float:
        """From how many samples this one is the faster; infinite: never.

        >>> cpu = Candidate("cpu", (0, 0, 0), (1e-3,) * 3)
        >>> Candidate("wafer", (100, 100, 100), (5e-4,) * 3).beats_from(cpu)
        200000.0
        >>> cpu.beats_from(Candidate("wafer", (100, 100, 100), (5e-4,) * 3))
        inf
        """
        return crossover(self.setup_s[1], self.sample_s[1], other.setup_s[1], other.sample_s[1])

    def interval_from(self, other: "Candidate") -> tuple[float, float]:
        """The least and the most that `beats_from` may be, by the ends of both machines' times."""
        (a, _, b), (c, _, d) = self.setup_s, self.sample_s
        (e, _, f), (g, _, h) = other.setup_s, other.sample_s
        return crossover(a, c, f, h), crossover(b, d, e, g)


def crossover(
    setup_s: int | float, sample_s: float, other_setup_s: int | float, other_s: float
) -> float:
    """From how many samples the first of two is faster for good; infinite: never."""
    if sample_s >= other_s:
        return 0.0 if sample_s == other_s and setup_s < other_setup_s else float("inf")
    return max(0.0, (setup_s - other_setup_s) / (other_s - sample_s))


@dataclass(frozen=True)
class Comparison:
    """A training on several machines.

    Attributes:
        model: its name.
        samples: processed, every epoch counted.
        candidates: the machines, as they were asked.

    >>> import wse
    >>> found = wse.compare(wse.workload.dense(width=512), machines=["cs2", "A100"])
    >>> found.able[0].name == found.fastest
    True
    """

    model: str
    samples: int
    candidates: tuple[Candidate, ...]

    @property
    def able(self) -> tuple[Candidate, ...]:
        """Machines that can train the model, the fastest first."""
        found = [one for one in self.candidates if not one.refused]
        return tuple(sorted(found, key=lambda one: one.total_s(self.samples)[1]))

    @property
    def fastest(self) -> str:
        """The machine that is through first."""
        return self.able[0].name

    @property
    def wins(self) -> tuple[tuple[float, str], ...]:
        """From how many samples on which machine is the fastest of all, from none on."""
        lines = [(one.setup_s[1], one.sample_s[1], one.name) for one in self.able]
        here, found = 0.0, list[tuple[float, str]]()
        while True:
            setup_s, sample_s, name = min(lines, key=lambda x: (x[0] + here * x[1], x[1]))
            found.append((here, name))
            ahead = [
                max(here, crossover(a, b, setup_s, sample_s)) for a, b, _ in lines if b < sample_s
            ]
            if not ahead:
                return tuple(found)
            here = min(ahead)
            # At the crossing itself both are equal: go on with the one that is faster per sample.
            lines = [x for x in lines if x[1] < sample_s]

    @property
    def dataset(self) -> "xr.Dataset":
        """Labelled, by machine: `setup_s`, `sample_s`, `total_s`, `energy_kwh`, `cost`, `refused`.

        Times and energies have a `bound`: low, estimate, high. `beats_from` by machine and other:
        from how many samples the machine is faster than the other, infinite where never. NaN where
        a machine cannot train the model.
        """
        import xarray as xr

        each, n = self.candidates, self.samples
        names = [one.name for one in each]
        dims = ("machine", "bound")
        seconds = {"units": "s"}
        beats = [
            [NAN if x is y or x.refused or y.refused else x.beats_from(y) for y in each]
            for x in each
        ]
        return xr.Dataset(
            {
                "setup_s": (dims, [one.setup_s for one in each], seconds),
                "sample_s": (dims, [one.sample_s for one in each], seconds),
                "total_s": (dims, [one.total_s(n) for one in each], seconds),
                "energy_kwh": (dims, [one.energy_kwh(n) for one in each], {"units": "kWh"}),
                "cost": (
                    dims,
                    [[one.price_per_h * t / 3600 for t in one.total_s(n)] for one in each],
                    {"units": "of the price"},
                ),
                "beats_from": (
                    ("machine", "other"),
                    beats,
                    {"units": "samples", "long_name": "faster from so many samples on"},
                ),
                "fits": ("machine", [not one.refused for one in each]),
                "refused": ("machine", [one.refused for one in each]),
                "binding": ("machine", [one.binding for one in each]),
            },
            coords={"machine": names, "other": names, "bound": ["low", "estimate", "high"]},
            attrs={"model": self.model, "samples": n, "fastest": self.fastest},
        )

    def draw(self, ax: Any = None) -> Any:
        """Total time over samples, a line and its interval for each machine.

        Dots show where the fastest machine changes, a grey line the samples asked for.

        Args:
            ax: axes to draw on; None: new ones.

        Returns:
            The axes.
        """
        lines = [(one.name, one.setup_s, one.sample_s) for one in self.able]
        return draw(lines, self.wins, self.samples, ax)

    def document(self) -> dict[str, object]:
        """All of it in types that JSON knows; what is not known is None."""
        found = self.dataset
        table = {name: _render.finite(found[name].values.tolist()) for name in _VARIABLES}
        rows = [
            {name: values[i] for name, values in table.items()} for i in range(len(self.candidates))
        ]
        return {
            "model": self.model,
            "samples": self.samples,
            "fastest": self.fastest,
            "wins": [{"from_samples": at, "machine": name} for at, name in self.wins],
            "machines": [
                {
                    "name": one.name,
                    **row,
                    "refused": one.refused,
                    "cautions": list(one.cautions),
                    "why": one.why,
                }
                for one, row in zip(self.candidates, rows, strict=True)
            ],
        }

    def __repr__(self) -> str:
        """One line: what was asked, and the fastest."""
        names = ", ".join(one.name for one in self.candidates)
        return f"Comparison({self._caption()} on {names}: {self.fastest} is the fastest)"

    def __str__(self) -> str:
        """The machines as a table for a terminal."""
        return "\n".join(
            (self._caption(), "", _render.text(HEADER, self._rows()), "", *self._notes())
        )

    def _repr_html_(self) -> str:
        """The machines as a table for a notebook."""
        return _render.html(self._caption(), HEADER, self._rows(), self._notes())

    def _caption(self) -> str:
        return f"{self.model}, {self.samples:,} samples"

    def _rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = []
        for one in self.able:
            low, mid, high = one.total_s(self.samples)
            cost = one.price_per_h * mid / 3600
            times = (time(one.setup_s[1]), time(one.sample_s[1]), time(mid), time(low), time(high))
            energy = one.energy_kwh(self.samples)[1]
            rows.append((one.name, *times, _known(energy, " kWh"), _known(cost, "")))
        return rows + [
            (one.name, *["-"] * (len(HEADER) - 1)) for one in self.candidates if one.refused
        ]

    def _notes(self) -> list[str]:
        first, *later = self.wins
        changes = (f"{later_name} from {_count(at)} samples on" for at, later_name in later)
        best, *rest = self.able
        unsure = [
            one.name for one in rest if one.total_s(self.samples)[0] < best.total_s(self.samples)[2]
        ]
        told = [f"fastest: {'; '.join((f'{first[1]} for few samples', *changes))}"]
        if unsure:
            told.append(
                f"at {_count(self.samples)} samples the intervals of {', '.join(unsure)} overlap "
                f"that of {best.name}: either may win"
            )
        told += [f"{one.name} cannot: {one.refused}" for one in self.candidates if one.refused]
        told += [f"{one.name}: for {one.why}" for one in self.able if one.why]
        return told + [
            f"caution, {one.name}: {caution}" for one in self.able for caution in one.cautions
        ]


_VARIABLES = ("setup_s", "sample_s", "total_s", "energy_kwh", "cost")


def time(seconds: int | float) -> str:
    """A time to be read, in the largest unit that leaves 1 or more.

    >>> time(90), time(2e-6), time(7200)
    ('90 s', '2 µs', '2 h')
    """
    for size, unit in ((172_800.0, "d"), (7200.0, "h"), (1.0, "s"), (1e-3, "ms")):
        if seconds >= size:
            scale = {"d": 86_400.0, "h": 3600.0}.get(unit, size)
            return f"{seconds / scale:,.3g} {unit}" if seconds / scale < 1000 else _long(seconds)
    return f"{seconds * 1e6:.3g} µs"


def _long(seconds: int | float) -> str:
    return f"{seconds:,.0f} s" if seconds < 7200 else f"{seconds / 86_400:,.0f} d"


def _count(number: int | float) -> str:
    return f"{number:,.0f}" if number < 1e6 else f"{number:.3g}"


def _known(number: float, unit: str) -> str:
    return "-" if number != number else f"{number:,.3g}{unit}"
