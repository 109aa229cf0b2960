"""An SBML model as a system of differential equations: what changes, how fast, and from where.

States are amounts of species, and what rate rules change. A species' name in a formula is its
concentration, amount / volume, unless the model says that it has only amounts. Reactions change
amounts: d(amount)/dt = Σ stoichiometry · kinetic law (SBML Level 3, section 4.11).
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from sciml.ode.sbml import formula
from sciml.ode.sbml.events import Jump, read_event, set_by_events
from sciml.ode.sbml.formula import TIME, Env, Formula, Moving
from sciml.ode.sbml.valid import check_document, optional_libsbml
from wse._files import as_path

MOST_BYTES = 20_000_000  # assumed: the largest curated models are a few megabytes


@dataclass(frozen=True)
class Species:
    """A species: its volume's name, and whether its name means an amount."""

    volume: str
    is_amount: bool


@dataclass(frozen=True)
class Model:
    """A model without numbers of its own conditions.

    Attributes:
        name: of the model, or of its file.
        values: name → number of every parameter, volume and species; of a species its
            concentration, or its amount where its name means one.
        starts: name → formula of what starts at something else, rules among them, in an order
            that can be computed.
        states: what changes in time, in the order of the state.
        species: by name.
        rules: name → formula of what follows from others, in an order that can be computed.
        rates: name → formula of what rate rules change.
        reactions: kinetic laws, each with (species, stoichiometry) pairs.
        events: in the order of the file.
        jumps: formulas of times at which rules or kinetic laws jump.
        reads: names that need a number, those of states among them.
        needs: name of what is computed → all names that it depends on, but for those that make
            states begin; `TIME` where it reads the time.
    """

    name: str
    values: Mapping[str, float]
    starts: Mapping[str, Formula]
    states: tuple[str, ...]
    species: Mapping[str, Species]
    rules: Mapping[str, Formula]
    rates: Mapping[str, Formula]
    reactions: tuple[tuple[Formula, tuple[tuple[str, Formula], ...]], ...]
    events: tuple[Jump, ...]
    jumps: tuple[Formula, ...]
    reads: frozenset[str]
    needs: Mapping[str, frozenset[str]]

    def lacking(self, given: Collection[str] = (), also: Collection[str] = ()) -> list[str]:
        """Return the names that are read, here or as `also` says, and have no finite number.

        What is `given`, and what a formula makes, needs none.
        """
        made = {*given, *self.starts}
        return [
            name
            for name, value in self.values.items()
            if not (math.isfinite(value) or name in made) and (name in self.reads or name in also)
        ]

    def env(self, t: Any, state: Any, constants: Env) -> dict[str, Any]:
        """Return the value of every name at a time, or at many rows of times and states."""
        found = {**constants, TIME: t}
        found |= {n: state[i] for i, n in enumerate(self.states) if n not in self.species}
        for i, name in enumerate(self.states):
            if one := self.species.get(name):
                found[name] = state[i] if one.is_amount else state[i] / found[one.volume]
        for name, rule in self.rules.items():
            found[name] = rule(found)
        return found

    def rate(self, t: Any, state: Float[Array, " state"], constants: Env) -> Float[Array, " state"]:
        """Return d(state)/dt."""
        env = self.env(t, state, constants)
        found: dict[str, Any] = dict.fromkeys(self.states, jnp.zeros((), state.dtype))
        for law, changes in self.reactions:
            speed = law(env)
            for name, count in changes:
                found[name] = found[name] + count(env) * speed
        for name, rule in self.rates.items():
            found[name] = rule(env) * self.size(name, env)
        return jnp.stack([jnp.asarray(found[name], state.dtype) for name in self.states])

    def start(self, values: Env, given: Env) -> tuple[dict[str, Any], Float[Array, " state"]]:
        """Return the values of all names at the start, and the first state.

        Initial assignments leave alone what a condition sets, as `given` says by name.
        """
        env: dict[str, Any] = {**values, TIME: 0.0}
        for name, one in self.starts.items():
            made = one(env)
            env[name] = jnp.where(given[name], env[name], made) if name in given else made
        return env, self.packed(env)

    def packed(self, env: Env) -> Float[Array, " state"]:
        """Return the state of which the values of names are known."""
        return jnp.stack([jnp.asarray(env[n]) * self.size(n, env) for n in self.states])

    def size(self, name: str, env: Env) -> Any:
        """Return amount / value of a state: the volume where its name means a concentration."""
        one = self.species.get(name)
        return 1.0 if one is None or one.is_amount else env[one.volume]


def read(path: Path | str) -> Model:
    """Read an SBML file; nothing in it is executed."""
    libsbml = optional_libsbml()
    path = as_path("path", path, "pass model.xml")
    if not path.is_file():
        raise ValueError(f"{path} is no file; it must be an SBML file: check the path")
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"{path} has more than {MOST_BYTES} bytes; no model is so large")
    document = libsbml.readSBMLFromFile(str(path))
    check_document(document, path)
    for step in ("promoteLocalParameters", "expandFunctionDefinitions"):
        options = libsbml.ConversionProperties()
        options.addOption(step, True)
        document.convert(options)
    return _Reading(document.getModel(), path).model()


class _Reading:
    """A libsbml model, being taken apart."""

    def __init__(self, model: Any, path: Path) -> None:
        self.source, self.path = model, path
        self.owner = path.name
        self.trees: list[Any] = []  # of what depends on time while it is solved

    def model(self) -> Model:
        source = self.source
        self._refuse()
        species = {
            x.getId(): Species(x.getCompartment(), self._amount(x))
            for x in self.source.getListOfSpecies()
        }
        rules, rates = self._rules("isAssignment"), self._rules("isRate")
        volumes = {x.getId() for x in source.getListOfCompartments()}
        if moving := volumes & {*rules, *rates}:
            raise ValueError(
                f"{self.owner} has volumes that change, {', '.join(sorted(moving))}; only constant "
                "volumes are supported: write concentrations by rate rules"
            )
        switched = dict.fromkeys(set_by_events(source))
        states = tuple(x for x in {**species, **rates, **switched} if x not in rules)
        self.trees = [*rules.values(), *rates.values()]
        reactions = tuple(self._reaction(x) for x in source.getListOfReactions())
        read = {name for tree in self._every_tree() for name in formula.names(tree)}
        rules |= {  # the name of a reaction means its rate
            x.getId(): x.getKineticLaw().getMath()
            for x in source.getListOfReactions()
            if x.getId() in read
        }
        starts = self._sizes(species) | {
            x.getSymbol(): x.getMath()
            for x in source.getListOfInitialAssignments()
            if x.isSetMath()
        }
        starts = {**{n: x for n, x in starts.items() if n not in rules}, **rules}
        starts = _ordered(starts, self.owner)
        kept = {name: one for name, one in species.items() if name not in rules}
        rules = _ordered(rules, self.owner)
        moving = Moving.of(rules, rates)
        return Model(
            name=source.getId() or self.path.stem,
            values=self._values(),
            starts=self._compiled(starts),
            states=states,
            species=kept,
            rules=self._compiled(rules),
            rates=self._compiled(rates),
            reactions=reactions,
            events=tuple(
                read_event(x, source, states, self.owner) for x in source.getListOfEvents()
            ),
            jumps=tuple(
                time
                for tree in self.trees
                for time in formula.times_of_jumps(tree, f"a rate of {self.owner}", moving)
            ),
            reads=frozenset({*read, *states, *self._counted(species)}),
            needs=_needed(starts, states, kept),
        )

    def _refuse(self) -> None:
        source = self.source
        for rule in source.getListOfRules():
            if rule.isAlgebraic():
                raise ValueError(
                    f"{self.owner} has algebraic rules, which are no differential equations: "
                    "solve them first"
                )
        for reaction in source.getListOfReactions():
            if reaction.isSetFast() and reaction.getFast():
                raise ValueError(
                    f"reaction {reaction.getId()} of {self.owner} is fast; equilibria within a "
                    "step are not supported: give it a rate"
                )

    def _every_tree(self) -> list[Any]:
        """Return the formulas that are there, of events too."""
        source = self.source
        parts = [
            *source.getListOfRules(),
            *source.getListOfInitialAssignments(),
            *(x.getKineticLaw() for x in source.getListOfReactions()),
            *(x for event in source.getListOfEvents() for x in event.getListOfEventAssignments()),
        ]
        return [x.getMath() for x in parts if x is not None and x.isSetMath()]

    def _amount(self, species: Any) -> bool:
        volume = self.source.getCompartment(species.getCompartment())
        flat = volume is not None and volume.getSpatialDimensionsAsDouble() == 0
        return bool(species.getHasOnlySubstanceUnits() or flat or volume is None)

    def _counted(self, species: Mapping[str, Species]) -> set[str]:
        """Names of what turns reactions into changes of values: volumes, factors and counts."""
        source = self.source
        sides = [
            x
            for reaction in source.getListOfReactions()
            for x in (*reaction.getListOfReactants(), *reaction.getListOfProducts())
            if self._changes(x.getSpecies())
        ]
        math_of = [x.getStoichiometryMath() for x in sides if x.isSetStoichiometryMath()]
        names = {name for one in math_of for name in formula.names(one.getMath())}
        names |= {one.volume for one in species.values() if not one.is_amount}
        names |= {x.getConversionFactor() for x in (source, *source.getListOfSpecies())}
        return names | {x.getId() for x in sides}

    def _rules(self, kind: str) -> dict[str, Any]:
        rules = [x for x in self.source.getListOfRules() if getattr(x, kind)() and x.isSetMath()]
        return {x.getVariable(): x.getMath() for x in rules}

    def _compiled(self, trees: Mapping[str, Any]) -> dict[str, Formula]:
        owner = self.owner
        return {name: formula.compiled(x, f"{name} of {owner}") for name, x in trees.items()}

    def _values(self) -> dict[str, float]:
        found = {x.getId(): self._volume(x) for x in self.source.getListOfCompartments()}
        found |= {
            x.getId(): x.getValue() if x.isSetValue() else float("nan")
            for x in self.source.getListOfParameters()
        }
        for x in self.source.getListOfSpecies():
            amount, share = x.getInitialAmount(), x.getInitialConcentration()
            said = share if x.isSetInitialConcentration() else float("nan")  # else 0 in level 2
            found[x.getId()] = amount if x.isSetInitialAmount() else said
        for reaction in self.source.getListOfReactions():
            for x in (*reaction.getListOfReactants(), *reaction.getListOfProducts()):
                if x.getId():
                    found[x.getId()] = x.getStoichiometry() if x.isSetStoichiometry() else 1.0
        return found

    def _volume(self, compartment: Any) -> float:
        """The size of a compartment, NaN where the file leaves it open."""
        size = compartment.getSize() if compartment.isSetSize() else float("nan")
        if size <= 0:
            raise ValueError(
                f"the size of {compartment.getId()} of {self.owner} is {size}; it must be positive"
            )
        flat = compartment.getSpatialDimensionsAsDouble() == 0 or self.source.getLevel() == 1
        return 1.0 if flat and not compartment.isSetSize() else size

    def _sizes(self, species: Mapping[str, Species]) -> dict[str, Any]:
        """Formulas of species that start as an amount and mean a concentration, or conversely."""
        found = {}
        for x in self.source.getListOfSpecies():
            one, amount = species[x.getId()], x.isSetInitialAmount()
            if not math.isfinite(x.getInitialAmount() if amount else x.getInitialConcentration()):
                continue  # no formula is made of it, so that it counts as lacking
            if amount and not one.is_amount:
                found[x.getId()] = formula.of("/", x.getInitialAmount(), one.volume)
            elif x.isSetInitialConcentration() and one.is_amount and one.volume:
                found[x.getId()] = formula.of("*", x.getInitialConcentration(), one.volume)
        return found

    def _reaction(self, reaction: Any) -> Any:
        law = reaction.getKineticLaw()
        if law is None or law.getMath() is None:
            raise ValueError(
                f"reaction {reaction.getId()} of {self.owner} has no kinetic law: add its rate"
            )
        self.trees.append(law.getMath())
        sides = ((reaction.getListOfReactants(), -1.0), (reaction.getListOfProducts(), 1.0))
        changes = [
            (one.getSpecies(), self._count(one, sign))
            for side, sign in sides
            for one in side
            if self._changes(one.getSpecies())
        ]
        owner = f"the rate of {reaction.getId()} of {self.owner}"
        return formula.compiled(law.getMath(), owner), tuple(changes)

    def _changes(self, name: str) -> bool:
        species = self.source.getSpecies(name)
        return not (species.getBoundaryCondition() or species.getConstant())

    def _count(self, one: Any, sign: float) -> Formula:
        """The stoichiometry, with the factor that turns extents into amounts."""
        factor = self.source.getConversionFactor() if self.source.isSetConversionFactor() else ""
        species = self.source.getSpecies(one.getSpecies())
        factor = species.getConversionFactor() if species.isSetConversionFactor() else factor
        if one.isSetStoichiometryMath():
            count = formula.compiled(one.getStoichiometryMath().getMath(), self.owner)
        elif one.getId():
            name = one.getId()
            count = lambda env: env[name]  # noqa: E731
        else:
            number = one.getStoichiometry() if one.isSetStoichiometry() else 1.0
            if not math.isfinite(number):
                raise ValueError(
                    f"the stoichiometry of {one.getSpecies()} in a reaction of {self.owner} is "
                    f"{number}; it must be finite: correct it"
                )
            count = lambda _: number  # noqa: E731
        if not factor:
            return lambda env: sign * count(env)
        return lambda env: sign * count(env) * env[factor]


def _ordered(trees: Mapping[str, Any], owner: str) -> dict[str, Any]:
    """Formulas in an order in which each reads what was computed before."""
    reads = {name: sorted(formula.names(tree) & {*trees}) for name, tree in trees.items()}
    try:
        return {name: trees[name] for name in TopologicalSorter(reads).static_order()}
    except CycleError as error:
        circle = ", ".join(dict.fromkeys(error.args[1]))
        raise ValueError(
            f"{owner} has rules that need each other: {circle}: break the circle"
        ) from None


def _needed(
    trees: Mapping[str, Any], states: Collection[str], species: Mapping[str, Species]
) -> dict[str, frozenset[str]]:
    """What each of the formulas depends on, of which each reads those before it."""
    found: dict[str, frozenset[str]] = {}
    for name, tree in trees.items():
        read = formula.names(tree)
        read |= {species[n].volume for n in read & {*species} if not species[n].is_amount}
        through = (found.get(n, frozenset()) for n in read - {*states})
        clock = {TIME} if formula.reads_time(tree) else set[str]()
        found[name] = frozenset(read | clock).union(*through)
    return found
