"""SBML models without tables: systems against closed forms, or refused by name."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpyro.distributions import Uniform

from sciml.ode import Gaussian, RungeKutta4, read_sbml, simulate

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<sbml xmlns="http://www.sbml.org/sbml/level3/version1/core" level="3" version="1"><model id="decay">
<listOfCompartments>
  <compartment id="V" size="2" spatialDimensions="3" constant="true"/>
</listOfCompartments>
<listOfSpecies>
  <species id="A" compartment="V" initialAmount="6" hasOnlySubstanceUnits="false"
   boundaryCondition="false" constant="false"/>
  <species id="B" compartment="V" initialConcentration="0" hasOnlySubstanceUnits="true"
   boundaryCondition="false" constant="false"/>
</listOfSpecies>
<listOfParameters><parameter id="k" value="0.5" constant="true"/>
<parameter id="lost" {lost} constant="true"/>
<parameter id="double" constant="false"/></listOfParameters>
<listOfRules><assignmentRule variable="double">{double}</assignmentRule></listOfRules>
<listOfReactions><reaction id="flow" reversible="false" fast="false">
    <listOfReactants><speciesReference species="A" stoichiometry="1" constant="true"/>
    </listOfReactants>
    <listOfProducts><speciesReference species="B" stoichiometry="1" constant="true"/>
    </listOfProducts><kineticLaw>{law}</kineticLaw></reaction></listOfReactions>
{events}</model></sbml>"""
MATH = '<math xmlns="http://www.w3.org/1998/Math/MathML"><apply><times/>{}</apply></math>'
EVENT = """<listOfEvents><event id="dose" useValuesFromTriggerTime="true">
<trigger initialValue="true" persistent="true"><math xmlns="http://www.w3.org/1998/Math/MathML">
<apply><geq/><csymbol encoding="text"
definitionURL="http://www.sbml.org/sbml/symbols/time">t</csymbol><cn>1</cn></apply></math></trigger>
<listOfEventAssignments><eventAssignment variable="A"><math
xmlns="http://www.w3.org/1998/Math/MathML"><cn>1</cn></math></eventAssignment>
</listOfEventAssignments></event></listOfEvents>"""
PRIOR = {"k": Uniform(0.1, 2.0), "A": Uniform(1.0, 5.0)}
TIMES = (0.0, 1.0, 2.5)


def written(folder: Path, lost: str = 'value="1"', events: str = "") -> Path:
    """A flows into B at the rate k V A lost; the amount is V A."""
    law = MATH.format("<ci>V</ci><ci>k</ci><ci>A</ci><ci>lost</ci>")
    double = MATH.format("<cn>2</cn><ci>k</ci>")
    path = folder / "model.xml"
    path.write_text(HEAD.format(lost=lost, law=law, double=double, events=events))
    return path


@pytest.mark.slow
@settings(
    max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(turned=st.booleans(), observed=st.permutations(["A", "B"]))
def test_a_model_is_its_closed_form(tmp_path: Path, turned: bool, observed) -> None:
    """Whatever the order of prior and channels; A is a concentration, B an amount."""
    prior = dict(reversed(PRIOR.items())) if turned else PRIOR
    system = read_sbml(written(tmp_path), prior, times=TIMES, observed=observed)
    data = simulate(system, parameters={"A": [3.0, 4.0], "k": [0.5, 1.5]})
    t = np.array(TIMES)
    for row, (k, start) in enumerate([(0.5, 3.0), (1.5, 4.0)]):
        a = start * np.exp(-k * t)
        seen = data.observation[row].sel(channel=["A", "B"])
        np.testing.assert_allclose(seen, np.stack([a, 2 * (start - a)], axis=1), atol=2e-3)


def test_one_species_alone_with_noise(tmp_path: Path) -> None:
    """What is not in the prior has the value of the file."""
    system = read_sbml(
        written(tmp_path), {"k": PRIOR["k"]}, times=TIMES, observed=("A",), noise=Gaussian(sd=0.1)
    )
    data = simulate(system, parameters={"k": [0.5]})
    np.testing.assert_allclose(data.observation[0], 3 * np.exp(-0.5 * np.array(TIMES)), atol=1e-3)


@pytest.mark.parametrize(
    ("prior", "changes", "said"),
    [
        ({"q": Uniform(0, 1)}, {}, "the prior names 'q', which decay does not have"),
        ({"double": Uniform(0, 1)}, {}, "'double', which a rule makes"),
        ({"V": Uniform(0, 1)}, {}, "the volumes of A are estimated"),
        (PRIOR, {"lost": ""}, "lost of decay have no value"),
        (PRIOR, {"events": EVENT}, "decay has events, dose"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, prior, changes, said) -> None:
    with pytest.raises(ValueError, match=said):
        read_sbml(written(tmp_path, **changes), prior, times=TIMES, observed=("A",))


def test_what_is_no_state_is_not_observed(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"observed is .*each must be a state of decay or .*: A, B, dou"
    ):
        read_sbml(written(tmp_path), PRIOR, times=TIMES, observed=("k",))


def test_the_name_of_a_reaction_is_its_rate(tmp_path: Path) -> None:
    """B gains twice what A loses, since a second reaction is as fast as the first."""
    path = written(tmp_path)
    again = (
        '<reaction id="again" reversible="false" fast="false"><listOfProducts><speciesReference '
        'species="B" stoichiometry="1" constant="true"/></listOfProducts><kineticLaw>'
        f"{MATH.format('<ci>flow</ci>')}</kineticLaw></reaction></listOfReactions>"
    )
    path.write_text(path.read_text().replace("</listOfReactions>", again))
    system = read_sbml(path, PRIOR, times=TIMES, observed=("A", "B"))
    theta = np.array([[0.5, 3.0]])
    found = simulate(system, parameters=theta, method=RungeKutta4(substeps=32)).observation[0]
    left = 3.0 * np.exp(-0.5 * 2 / 2 * np.array(TIMES))
    np.testing.assert_allclose(found[:, 0], left, rtol=1e-5)
    np.testing.assert_allclose(found[:, 1], 2 * 2 * (3.0 - left), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('size="2"', "", "V of decay have no value"),
        ('Concentration="0"', 'Concentration="INF"', "B of decay have no value"),
        ('stoichiometry="1"', 'stoichiometry="INF"', "of A in a reaction of model.xml is inf"),
        ('species="A" stoich', 'id="n" species="A" stoich', None),
        (
            '(species="A") stoichiometry="1"',
            r'id="n" \1 stoichiometry="NaN"',
            "n of decay have no value",
        ),
        ('size="2"', 'size="-2"', "size of V of model.xml is -2.0; it must be positive"),
        ('<parameter id="lost"', '<parameter id="k" value="1" constant="true"/>\\g<0>', "'k'"),
        ('variable="double"', 'variable="A"', "'A' occurs in both a rule and reaction 'flow'"),
        ('variable="double"', 'variable="none"', "'none'"),
        ("<ci>V</ci>", "<ci>W</ci>", "uses 'W' that is not the id"),
        ('species="B"', 'species="Q"', "references species 'Q', which is undefined"),
        ('compartment="V"', 'compartment="W"', "compartment 'W' which is not defined"),
        ('id="double"', r"\g<0> units='furlong'", None),
        ('id="double"', r"id='unread' constant='true'/><parameter id='double'", None),
        (
            'level="3" version="1"',
            r'\g<0> xmlns:comp="http://www.sbml.org/sbml/level3/version1/comp/version1" '
            'comp:required="true"',
            "uses the package comp of SBML",
        ),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(tmp_path: Path, old, new, said) -> None:
    """What its solution would silently leave out; units, of which nothing is computed, apart."""
    path = written(tmp_path)
    path.write_text(re.sub(old, new, path.read_text()))
    if said is None:
        assert read_sbml(path, PRIOR, times=TIMES, observed=("A",)).name == "decay"
        return
    with pytest.raises(ValueError, match=said):
        read_sbml(path, PRIOR, times=TIMES, observed=("A",))


MINUTES = """<listOfUnitDefinitions><unitDefinition id="tick"><listOfUnits>
<unit kind="second" exponent="1" scale="0" multiplier="{}"/></listOfUnits></unitDefinition>
</listOfUnitDefinitions>"""


@pytest.mark.parametrize(
    ("seconds", "given", "unit"),
    [
        (60, None, "min"),
        (3600, "h", "h"),
        (3600, "hours", "hours"),
        (7, None, "tick"),
        (7, "generation", "generation"),
        (None, None, "s"),
        (None, "h", "h"),
    ],
)
def test_the_unit_of_time_is_the_files(tmp_path: Path, seconds, given, unit) -> None:
    path = written(tmp_path)
    if seconds:
        own = f'<model id="decay" timeUnits="tick">{MINUTES.format(seconds)}'
        path.write_text(path.read_text().replace('<model id="decay">', own))
    system = read_sbml(path, PRIOR, times=TIMES, observed=["A"], time_unit=given)
    assert system.time_unit == unit
    for other in ("h", "hours", "seconds") if seconds == 60 else ():
        with pytest.raises(ValueError, match="its times in 'min'"):
            read_sbml(path, PRIOR, times=TIMES, observed=["A"], time_unit=other)


def test_constraints_are_not_watched_and_it_says_so(tmp_path: Path, caplog) -> None:
    path = written(tmp_path)
    rule = MATH.replace("times", "lt").format("<ci>A</ci><cn>1</cn>")
    text = f"<listOfConstraints><constraint>{rule}</constraint></listOfConstraints>"
    path.write_text(path.read_text().replace("<listOfReactions>", f"{text}<listOfReactions>"))
    read_sbml(path, PRIOR, times=TIMES, observed=["A"])
    assert "1 constraints, which are not watched" in caplog.text
