"""A PEtab problem as a task for nets and samplers."""

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import xarray as xr

from sciml.ode.methods.diffrax_method import Diffrax
from sciml.ode.methods.solver import solver
from sciml.ode.mistakes import Vouched
from sciml.ode.sbml import conditions, formula, model, stated
from sciml.ode.sbml.bounded import LABELS, SCALED, UNSCALED, one_of, prior_of
from sciml.ode.sbml.cells import nearest
from sciml.ode.sbml.events import fires, together
from sciml.ode.sbml.noise import RowNoise
from sciml.ode.sbml.tables import Tables, cells, column, is_number, number, tables
from sciml.ode.static import Static
from wse._files import as_path

log = logging.getLogger(__name__)

# Tolerances at which published optima are reproduced; states of these models span decades.
METHOD = Diffrax("Kvaerno5", 1e-7, 1e-8, 100_000, dtype="float64", chunk=256, derivatives="forward")


@dataclass(frozen=True)
class Petab:
    """A problem of others, ready for `simulate`, `fit` and the reference samplers.

    Attributes:
        problem: parameters on the scales of the file, such as log10(k1), with its priors, and the
            measured rows as features; `problem.noise` is the file's.
        observed: the measurements, in the order of the file.
        nominal: the published parameters, by the same names.
        measurements: the table of measurements.
    """

    problem: Static
    observed: xr.DataArray
    nominal: Mapping[str, float]
    measurements: pd.DataFrame

    def log_likelihood(self, parameters: Mapping[str, float] | None = None) -> float:
        """Return ln p(measurements | parameters), of the published ones where none are given.

        It is NaN, and a warning is logged, where the solver fails.

        Raises:
            ValueError: a parameter is missing, or one is not known.
        """
        given = self.nominal if parameters is None else parameters
        if {*given} != {*self.problem.prior}:
            odd = ", ".join(sorted({*given} ^ {*self.problem.prior}))
            raise ValueError(f"parameters lack or have too many: {odd}: pass each of the problem")
        if lost := [name for name, value in given.items() if not np.isfinite(value)]:
            raise ValueError(
                f"{lost[0]} is {given[lost[0]]}; it must be a number: pass parameters="
            )
        with jax.enable_x64(True):
            clean = self._solve(jnp.array([[float(given[n]) for n in self.problem.prior]]))[0]
            sd = np.split(np.asarray(clean), 2)[1]  # NaN where the solver fails
            if (sd <= 0).any():
                row = int((sd <= 0).argmax())
                raise ValueError(
                    f"the standard deviation of row {row + 1} is {sd[row]:g}; it must be above 0: "
                    "correct noiseFormula or the parameters"
                )
            if lost := int(np.isnan(np.split(np.asarray(clean), 2)).any(axis=0).sum()):
                log.warning(
                    "the solver fails at %d of %d measurements: the likelihood is NaN; read the "
                    "problem with another method= than %s, or correct the parameters",
                    *(lost, len(sd), self.problem.method),
                )
            return float(self.problem.noise.log_density(jnp.asarray(self.observed.values), clean))

    @cached_property
    def _solve(self) -> Any:
        """The compiled solution, which all likelihoods share."""
        return jax.jit(solver(self.problem, self.problem.method))


def read_petab(path: Path | str, *, method: Diffrax = METHOD) -> Petab:
    """Read a PEtab problem (version 1): an SBML model, conditions, measurements and parameters.

    Estimated parameters, those of the noise among them, become parameters on their own scales, with
    the file's priors within its bounds. Formulas are parsed by libsbml; no text is executed.

    Args:
        path: the problem's YAML file; all other files lie in its folder.
        method: the integrator, of the family Diffrax.

    Raises:
        ValueError: a file that is damaged or of another version, or what is not supported, by
            name: delays, events of states, algebraic rules, volumes that change, measurements at
            infinite time, preequilibration of some measurements alone.
        ImportError: python-libsbml is not installed.

    >>> found = sciml.ode.read_petab("problem.yaml")  # doctest: +SKIP
    """
    model.optional_libsbml()
    with named(as_path("path", path, "pass problem.yaml")):
        found = tables(path)
        made = model.read(found.model)
        rows = _Rows(found, made)
        solve = Vouched(rows.solution(method))
        prior = {rows.labels[i]: prior_of(found.parameters.loc[i]) for i in rows.estimated}
    stated.warn_of_constraints(found.model)
    problem = Static(
        name=found.name,
        prior=prior,
        features=len(found.measurements),
        noise=rows.noise(),
        reference=str(path),
        solution=solve,
        method=method,
    )
    nominal = {
        rows.labels[i]: float(SCALED[rows.scales[i]](rows.nominal[i])) for i in rows.estimated
    }
    observed = xr.DataArray(
        [number(x, "a measurement") for x in found.measurements["measurement"]], dims="feature"
    )
    return Petab(problem, observed, nominal, found.measurements)


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Within, errors that name no file of a problem name the problem."""
    try:
        yield
    except ValueError as error:
        if str(path.parent.resolve()) in str(error) or str(path) in str(error):
            raise
        raise ValueError(f"{path}: {error}") from None


class _Rows:
    """The tables of a problem, put together row by row of the measurements."""

    def __init__(self, found: Tables, made: model.Model) -> None:
        self.found, self.model = found, made
        table = found.parameters
        self.ids = [*table["parameterId"]]
        self.place = {name: i for i, name in enumerate(self.ids)}
        self.scales = [
            one_of(x or "lin", (*LABELS,), "parameterScale") for x in table["parameterScale"]
        ]
        self.estimated = [i for i, x in enumerate(table["estimate"]) if float(x or 0) == 1]
        nominal = column(table, "nominalValue")
        self.nominal = np.array(
            [
                number(x, f"nominalValue of {n}") if x else np.nan
                for n, x in zip(self.ids, nominal, strict=True)
            ]
        )
        fixed = {*range(len(self.ids))} - {*self.estimated}
        if lost := [self.ids[i] for i in sorted(fixed) if np.isnan(self.nominal[i])]:
            raise ValueError(f"{lost[0]} is not estimated and has no nominalValue: add it")
        if not self.estimated:
            raise ValueError(
                f"no parameter is estimated of {len(self.ids)}; set estimate to 1 for one at least"
            )
        self.labels = {i: LABELS[self.scales[i]].format(self.ids[i]) for i in range(len(self.ids))}
        self.observables = found.observables.set_index("observableId")
        self.seen = {  # names that formulas of observables read
            name
            for key in ("observableFormula", "noiseFormula")
            for owner, text in self.observables[key].items()
            for name in formula.names(formula.parsed(str(text), f"{key} of {owner}"))
        }
        self._check_words()
        self._measured()

    def _check_words(self) -> None:
        """Refuse names of which formulas of observables would take something else by that word."""
        known = {*self.ids, *self.model.values, *self.model.rules}
        for key in ("observableFormula", "noiseFormula"):
            for owner, text in self.observables[key].items():
                words = sorted(known & {*re.findall(r"[A-Za-z_]\w*", str(text))})
                if odd := [word for word in words if formula.is_word(word)]:
                    raise ValueError(
                        f"{key} of {owner} reads {odd[0]!r}, which is a word of formulas and a "
                        "name of the problem as well: rename it in the problem"
                    )

    def _measured(self) -> None:
        """Conditions and times of the measurements, each pair of conditions once."""
        rows = self.found.measurements
        if odd := {*rows["observableId"]} - {*self.observables.index}:
            row = [*rows["observableId"]].index(sorted(odd)[0])
            raise ValueError(
                f"{sorted(odd)[0]!r} is measured and no observable, in row {row + 1} of the "
                "measurements: add it to the observables"
            )
        before = column(rows, "preequilibrationConditionId")
        pairs = list(zip(before, rows["simulationConditionId"], strict=True))
        self.pairs = list(dict.fromkeys(pairs))
        names = [*self.found.conditions["conditionId"]]
        if odd := {n for pair in pairs for n in pair if n} - {*names}:
            raise ValueError(
                f"condition {sorted(odd)[0]!r} is measured and not there: add it to the conditions"
            )
        self.pair = np.array([self.pairs.index(pair) for pair in pairs])
        self.time = np.array([number(x, "a time") for x in rows["time"]])
        if (odd := ~(np.isfinite(self.time) & (self.time >= 0))).any():
            raise ValueError(
                f"a time of the measurements is negative or infinite, {self.time[odd][0]:g}; only "
                "finite times from 0 on are supported: give the time by which the system rests"
            )
        each = [np.unique(self.time[self.pair == i]) for i in range(len(self.pairs))]
        width = max(map(len, each))
        times = np.stack([np.pad(x, (0, width - len(x)), mode="edge") for x in each])
        at = [int(np.searchsorted(each[p], t)) for p, t in zip(self.pair, self.time, strict=True)]
        self.at, self.times = np.array(at), times
        self.before = np.array([names.index(a) if a else -1 for a, _ in self.pairs])
        self.rows = np.array([names.index(b) for _, b in self.pairs])

    def settings(self) -> conditions.Settings:
        """What conditions and parameters set in the model."""
        table, known = self.found.conditions, {*self.model.values, *self.model.states}
        columns = [x for x in table.columns if x not in ("conditionId", "conditionName")]
        if odd := [x for x in columns if x not in known]:
            raise ValueError(f"conditions set {odd[0]!r}, which the model does not have: remove it")
        if odd := [x for x in columns if x in self.model.rules]:
            raise ValueError(
                f"conditions set {odd[0]!r}, which a rule of the model makes: remove it"
            )
        names = (*columns, *(x for x in self.ids if x in known and x not in columns))
        shape = len(table), len(names)
        value, index = np.full(shape, np.nan), np.full(shape, -1)
        for j, name in enumerate(names):
            for i in range(len(table)):
                cell = str(table[name][i]) if name in columns else name
                if not cell or cell.lower() == "nan":
                    continue
                value[i, j], index[i, j] = self._said(cell, f"{name} of a condition")
        self._check_read(columns)
        for i, condition in enumerate(table["conditionId"]):
            given = [
                n for j, n in enumerate(names) if index[i, j] >= 0 or not np.isnan(value[i, j])
            ]
            if lost := self.model.lacking(given, self.seen):
                raise ValueError(
                    f"{', '.join(lost)} of {self.found.model.name} have no value under condition "
                    f"{condition!r}: give each one in the model, the conditions or the parameters"
                )
        return conditions.Settings(names, value, index)

    def _check_read(self, columns: list[str]) -> None:
        """Refuse parameters of the table that something else sets, and names that are misspelt."""
        mine = {*self.model.values, *self.model.states}
        tables = (
            *((self.found.conditions, name) for name in columns),
            *((self.found.measurements, n) for n in ("observableParameters", "noiseParameters")),
        )
        said = {part for table, name in tables for x in column(table, name) for part in cells(x)}
        for name in (n for n in self.ids if n not in said):
            if name in mine and name in {*columns, *self.model.rules}:
                raise ValueError(
                    f"parameter {name!r} is set by "
                    f"{'the conditions' if name in columns else 'a rule of the model'} as well, "
                    "so that its value would count nowhere: leave one out"
                )
            if name in mine | self.seen:
                continue
            if like := nearest(name, (mine | self.seen) - {*self.ids}):
                raise ValueError(
                    f"parameter {name!r} is read nowhere, and {like!r} looks like it: correct it"
                )
            log.warning("parameter %r of %s is read nowhere", name, self.found.name)

    def _said(self, cell: str, owner: str) -> tuple[float, int]:
        """A cell as a number, or NaN, and as the index of a parameter, or −1."""
        if is_number(cell):
            return float(cell), -1
        if cell in self.place:
            return np.nan, self.place[cell]
        if cell in self.model.starts or cell in self.found.conditions:
            raise ValueError(
                f"{owner} is {cell!r}, whose value the model or the conditions make: give a number "
                "or a parameter of the table"
            )
        if np.isfinite(self.model.values.get(cell, np.nan)):
            return float(self.model.values[cell]), -1
        raise ValueError(f"{owner} is {cell!r}, which is no number and no parameter: correct it")

    def noise(self) -> RowNoise:
        """What the observables say of the noise, row by row."""
        table = self.observables.loc[self.found.measurements["observableId"]]
        scales = column(table, "observableTransformation")
        kinds = [
            one_of(x or "normal", ("normal", "laplace"), "noiseDistribution")
            for x in column(table, "noiseDistribution")
        ]
        named = (one_of(x or "lin", (*LABELS,), "observableTransformation") for x in scales)
        return RowNoise(tuple(named), tuple(kind == "laplace" for kind in kinds))

    def all_parameters(self, theta: Any) -> Any:
        """All parameters of the table, on linear scale."""
        values = [jnp.asarray(x) for x in self.nominal]
        for place, i in enumerate(self.estimated):
            values[i] = UNSCALED[self.scales[i]](theta[place])
        return jnp.stack(values)

    def solution(self, method: Diffrax) -> Any:
        """The map from the estimated parameters to predictions and scales of all rows."""
        settings = self.settings()
        course, events = self._course(settings)
        solve = conditions.solution(self.model, settings, course, method, events)
        parts = [
            self._observable(name)
            for name in dict.fromkeys(self.found.measurements["observableId"])
        ]

        def one(theta):
            parameters = self.all_parameters(theta)
            states, constants = solve(parameters)
            y = jnp.zeros(len(self.time), parameters.dtype)
            sd = jnp.zeros(len(self.time), parameters.dtype)
            for rows, see in parts:
                here, made = see(parameters, states, constants)
                y, sd = y.at[rows].set(here), sd.at[rows].set(made)
            return jnp.concatenate([y, sd])

        return one

    def _observable(self, name: str) -> Any:
        """The rows of an observable, and the map to its predictions and scales."""
        rows = np.flatnonzero(self.found.measurements["observableId"] == name)
        said = self.observables.loc[name]
        trees = {
            key: formula.parsed(said[key], f"{key} of {name}")
            for key in ("observableFormula", "noiseFormula")
        }
        functions = {key: formula.compiled(tree, f"{key} of {name}") for key, tree in trees.items()}
        holes = self._placeholders(name, rows)
        known = {*self.model.values, *self.model.states, *self.model.rules, *self.place, *holes}
        read = formula.names(trees["observableFormula"]) - known
        read |= formula.names(trees["noiseFormula"]) - known - {name}
        if read:
            raise ValueError(f"observable {name} reads {sorted(read)[0]!r}, which is not there")
        pair, at, time = self.pair[rows], self.at[rows], self.time[rows]

        def see(parameters, states, constants):
            here = {n: x[pair] for n, x in constants.items()}
            env = self.model.env(jnp.asarray(time), states[pair, at].T, here)
            env |= {n: parameters[i] for n, i in self.place.items() if n not in env}
            for hole, (value, index) in holes.items():
                env[hole] = conditions.value_of(value, index, parameters)
            y = functions["observableFormula"](env)
            return y, functions["noiseFormula"]({**env, name: y})

        return rows, see

    def _placeholders(self, name: str, rows: np.ndarray) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, word in (("observableParameters", "observable"), ("noiseParameters", "noise")):
            if key not in self.found.measurements:
                continue
            given = [cells(str(x)) for x in self.found.measurements[key].iloc[rows]]
            if len({len(x) for x in given}) > 1:
                raise ValueError(f"{key} of {name} differ in number from row to row: complete them")
            for k in range(len(given[0])):
                said = [self._said(x[k], f"{key} of {name}") for x in given]
                found[f"{word}Parameter{k + 1}_{name}"] = tuple(
                    np.array(x) for x in zip(*said, strict=True)
                )
        return found

    def _course(self, settings: conditions.Settings) -> tuple[conditions.Course, list[Any]]:
        """The ways through the model, and the different events on them."""
        unknown = self.nominal.copy()
        unknown[self.estimated] = np.nan
        on, events = [], []
        with jax.enable_x64(True):
            for row, times in zip(self.rows.tolist(), self.times, strict=True):
                env, _ = self.model.start(*settings.values(self.model, jnp.asarray(unknown), row))
                said = [(t, e) for e in self.model.events for t in fires(e, env)]
                moments = sorted({t for t, _ in said if t <= times[-1]})
                on.append([(t, [e for at, e in said if at == t]) for t in moments])
                events += [group for _, group in on[-1] if group not in events]
        width = 1 + max(map(len, on))
        ends = np.tile(self.times[:, -1:], width)
        kinds = np.zeros(ends.shape, int)
        for i, moments in enumerate(on):
            for j, (t, group) in enumerate(moments):
                ends[i, j], kinds[i, j] = t, 1 + events.index(group)
        course = conditions.Course(self.before, self.rows, self.times, ends, kinds)
        return course, [together(group) for group in events]
