"""Models that libsbml writes: what their names mean, when rates jump, what rules make visible."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import libsbml
import numpy as np
import pytest
from numpyro.distributions import Uniform

from sciml.ode import read_sbml

PRIOR = {"k": Uniform(0.1, 5.0)}


def formula(text: str, **names: str) -> Any:
    """A formula; `names` replace its words, whatever they would mean as text."""
    tree = libsbml.parseL3Formula(text)
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if node.isName() and node.getName() in names:
            node.setName(names[node.getName()])
        waiting += [node.getChild(i) for i in range(node.getNumChildren())]
    return tree


def written(
    folder: Path,
    law: Any,
    *,
    rules: Mapping[str, str] | None = None,
    rates: Mapping[str, str] | None = None,
    level: tuple[int, int] = (3, 1),
    volumes: tuple[str, float] = ("V", 1.0),
    **values: float,
) -> Path:
    """A of initial amount 3 in a volume is lost by a law; numbers of parameters by name."""
    document = libsbml.SBMLDocument(*level)
    model = document.createModel()
    volume, a = model.createCompartment(), model.createSpecies()
    volume.setId(volumes[0])
    volume.setSize(volumes[1])
    volume.setConstant(True)
    a.setId("A")
    a.setCompartment(volume.getId())
    if "A" not in values:
        a.setInitialAmount(3.0)
    values.pop("A", None)
    for flag in (a.setHasOnlySubstanceUnits, a.setBoundaryCondition, a.setConstant):
        flag(False)
    made = {**(rules or {}), **(rates or {})}
    for name in {**{"k": 1.0}, **values, **made}:
        parameter = model.createParameter()
        parameter.setId(name)
        parameter.setConstant(name not in made)
        if name not in (rules or {}):
            parameter.setValue(values.get(name, 1.0))
    for create, said in ((model.createAssignmentRule, rules), (model.createRateRule, rates)):
        for name, text in (said or {}).items():
            rule = create()
            rule.setVariable(name)
            rule.setMath(formula(text))
    reaction = model.createReaction()
    reaction.setId("loss")
    reaction.setReversible(False)
    if level[0] == 3:
        reaction.setFast(False)
    left = reaction.createReactant()
    left.setSpecies("A")
    left.setStoichiometry(1.0)
    if level[0] == 3:
        left.setConstant(True)
    reaction.createKineticLaw().setMath(law if not isinstance(law, str) else formula(law))
    libsbml.writeSBMLToFile(document, str(folder / "model.xml"))
    return folder / "model.xml"


def read(path: Path, observed: tuple[str, ...] = ("A",)) -> Any:
    return read_sbml(path, PRIOR, times=[0.0, 1.0, 4.0], observed=observed)


@pytest.mark.parametrize("name", ["time", "pi", "avogadro", "infinity"])
def test_a_name_is_a_name_whatever_it_means_elsewhere(tmp_path: Path, name: str) -> None:
    """dA/dt = -k name A of a parameter of that name, seen at another time than its value."""
    system = read(written(tmp_path, formula("k * it * A", it=name), **{name: 2.0}))
    slope = system.vector_field(7.0, jnp.array([1.5]), (0.5,))
    np.testing.assert_allclose(slope, [-1.5], rtol=1e-6)


def test_a_volume_may_be_called_pi(tmp_path: Path) -> None:
    """The concentration of A is 3 / 2, and its amount in the state."""
    path = written(tmp_path, formula("k * it * A", it="pi"), volumes=("pi", 2.0))
    system = read(path)  # a volume that does not say how many dimensions it has
    np.testing.assert_allclose(system.initial_state((1.0,)), [3.0])
    np.testing.assert_allclose(system.vector_field(0.0, jnp.array([3.0]), (1.0,)), [-3.0])


PULSE = "k * piecewise(1000, {0} >= 1.7 && {0} < 1.701, 0)"


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("time", {}),
        ("s", {"rules": {"s": "time"}}),
        ("s / 2", {"rules": {"s": "2 * since + 6", "since": "time - 3"}}),
        ("s", {"rates": {"s": "1"}, "s": 0.0}),
        ("1.7 + s", {"rates": {"s": "-2"}, "s": 3.4}),
    ],
)
def test_a_pulse_is_found_however_the_time_is_written(tmp_path: Path, name, options) -> None:
    """By the time itself, by rules of it, and by what runs as a clock."""
    law = PULSE.format(name)
    if "-2" in str(options):  # runs down, from 1.7 to 1.7 - 0.002 later
        law = "k * piecewise(1000, s <= 0 && s > -0.002, 0)"
    system = read(written(tmp_path, law, **options))
    np.testing.assert_allclose(sorted(system.jumps), [1.7, 1.701], rtol=1e-6)


def test_a_rule_that_hides_when_rates_jump_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, PULSE.format("s"), rules={"s": "time^2"})
    with pytest.raises(ValueError, match=r"jumps by 'time\^2', at times that are not known"):
        read(path)


def test_what_a_rule_switches_is_compared_at_known_times(tmp_path: Path) -> None:
    """A rule that jumps alone has its jumps where its own conditions are."""
    rules = {"dose": "piecewise(2, time < 3, 0)"}
    system = read(written(tmp_path, "k * piecewise(A, dose > 1, 0)", rules=rules))
    assert {*system.jumps} == {3.0}


def test_a_species_without_a_value_is_not_zero(tmp_path: Path) -> None:
    """In level 2 either, of which libsbml says 0."""
    for level in ((3, 1), (2, 4)):
        with pytest.raises(ValueError, match="A of model have no value in the file"):
            read(written(tmp_path, "k * A", level=level, A=np.nan))


def test_an_infinite_power(tmp_path: Path) -> None:
    system = read(written(tmp_path, "k * A * (1 + 0.5^inf)"))
    np.testing.assert_allclose(system.vector_field(0.0, jnp.array([2.0]), (1.0,)), [-2.0])


def test_what_a_rule_makes_of_states_is_observed(tmp_path: Path) -> None:
    """Beside a state, in the order asked for; the volume is 2, so that A is 3 / 2."""
    rules = {"total": "q * A + 1", "far": "k * A", "late": "time + A"}
    path = written(tmp_path, "k * V * A", rules=rules, volumes=("V", 2.0), q=4.0)
    system = read(path, observed=("total", "A"))
    state = jnp.array([[3.0], [6.0]])
    seen = jax.jit(system.observation.transform)(state[:, [*system.observation.states]])
    np.testing.assert_allclose(seen, [[7.0, 1.5], [13.0, 3.0]])
    for name, why in (("far", "its rule reads k"), ("late", "its rule reads the time")):
        with pytest.raises(ValueError, match=f"{name} of model is observed and {why}"):
            read(path, observed=(name,))
