"""PEtab problems against closed forms: whatever order their tables have, or refused by name."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import laplace, norm

import sciml
from sciml.ode import Diffrax, read_petab, simulate
from sciml.ode.sbml.tables import tables

# Implicit steps take thrice as long to compile, and are needed where a system is stiff.
EXPLICIT = Diffrax("Tsit5", rtol=1e-8, atol=1e-9, max_steps=100_000, dtype="float64", chunk=256)

SBML = """<?xml version="1.0" encoding="UTF-8"?>
<sbml xmlns="http://www.sbml.org/sbml/level3/version1/core" level="3" version="1">
<model id="decay">
<listOfCompartments>
  <compartment id="V" size="2" spatialDimensions="3" constant="true"/>
</listOfCompartments>
<listOfSpecies>
  <species id="A" compartment="V" initialAmount="6" hasOnlySubstanceUnits="false"
   boundaryCondition="false" constant="false"/>
  <species id="B" compartment="V" initialConcentration="0" hasOnlySubstanceUnits="false"
   boundaryCondition="false" constant="false"/>
</listOfSpecies>
<listOfParameters>
  <parameter id="k" value="0.5" constant="true"/>
  <parameter id="source" value="0" constant="false"/>
</listOfParameters>
<listOfReactions>
  <reaction id="flow" reversible="false" fast="false">
    <listOfReactants><speciesReference species="A" stoichiometry="1" constant="true"/>
    </listOfReactants>
    <listOfProducts><speciesReference species="B" stoichiometry="2" constant="true"/>
    </listOfProducts>
    <kineticLaw>{law}</kineticLaw>
  </reaction>
  <reaction id="feed" reversible="false" fast="false">
    <listOfProducts><speciesReference species="A" stoichiometry="1" constant="true"/>
    </listOfProducts>
    <kineticLaw><math xmlns="http://www.w3.org/1998/Math/MathML">
      <apply><times/><ci>V</ci><ci>source</ci></apply></math></kineticLaw>
  </reaction>
</listOfReactions>
{events}
</model></sbml>
"""
LAW = """<math xmlns="http://www.w3.org/1998/Math/MathML">
<apply><times/><ci>V</ci><ci>k</ci><ci>A</ci></apply></math>"""
CLOCK = (
    """<csymbol encoding="text" definitionURL="http://www.sbml.org/sbml/symbols/time">t</csymbol>"""
)
MATH = '<math xmlns="http://www.w3.org/1998/Math/MathML">{}</math>'
MORE = "<apply><plus/><ci>A</ci><cn>4</cn></apply>"


def event(trigger: str, value: str = MORE, sets: str = "A", before: str = "true") -> str:
    """An event; `before`: whether its trigger counts as true before the start."""
    return (
        f'<event id="dose_{sets}" useValuesFromTriggerTime="true">'
        f'<trigger initialValue="{before}" persistent="true">{MATH.format(trigger)}</trigger>'
        f'<listOfEventAssignments><eventAssignment variable="{sets}">{MATH.format(value)}'
        "</eventAssignment></listOfEventAssignments></event>"
    )


def events(*each: str) -> str:
    return f"<listOfEvents>{''.join(each)}</listOfEvents>"


def since(left: str, least: float = 1.5) -> str:
    return f"<apply><geq/>{left}<cn>{least}</cn></apply>"


YAML = """format_version: 1
parameter_file: parameters.tsv
problems:
- sbml_files: [model.xml]
  condition_files: [conditions.tsv]
  measurement_files: [measurements.tsv]
  observable_files: [observables.tsv]
"""
PARAMETERS = [
    ("k", "log10", "1e-2", "1e2", "0.5", "1"),
    ("gain", "lin", "0", "10", "3", "1"),
    ("sd_a", "log", "1e-3", "1e1", "0.2", "1"),
    ("start", "lin", "0", "10", "5", "0"),
]
MEASURED = [
    ("a", "", "plain", 1.0, 3.5, "gain", "sd_a"),
    ("a", "", "plain", 3.0, 1.5, "gain", "0.3"),
    ("a", "", "full", 3.0, 3.1, "2", "sd_a"),
    ("b", "", "plain", 2.0, 4.0, "", ""),
    ("b", "", "full", 0.5, 2.0, "", ""),
    ("b", "", "full", 3.0, 9.0, "", ""),
]
CONDITIONS = [("plain", "", "0"), ("full", "start", "0")]


def written(folder: Path, **changes: object) -> Path:
    """Write a problem whose solution is known; `changes` replace its parts."""
    parts = {"law": LAW, "events": "", "yaml": YAML, **changes}
    text = SBML.format(law=parts["law"], events=parts["events"])
    (folder / "model.xml").write_text(text.replace(*parts.get("changed", ("", "", 0))))
    observables = [
        ("a", "observableParameter1_a * A", "noiseParameter1_a", "lin", "laplace"),
        ("b", changes.get("formula", "B"), "0.1", "log10", "normal"),
    ]
    tables = {
        "parameters": (
            [
                "parameterId",
                "parameterScale",
                "lowerBound",
                "upperBound",
                "nominalValue",
                "estimate",
            ],
            parts.get("parameters", PARAMETERS),
        ),
        "conditions": (["conditionId", "A", "source"], parts.get("conditions", CONDITIONS)),
        "measurements": (
            [
                *("observableId", "preequilibrationConditionId", "simulationConditionId", "time"),
                *("measurement", "observableParameters", "noiseParameters"),
            ],
            parts.get("measured", MEASURED),
        ),
        "observables": (
            [
                *("observableId", "observableFormula", "noiseFormula"),
                *("observableTransformation", "noiseDistribution"),
            ],
            observables,
        ),
    }
    for name, (columns, rows) in tables.items():
        frame = pd.DataFrame(rows, columns=columns)
        order = [*changes["order"](frame.columns)] if "order" in changes else [*columns]
        frame = frame[order]
        table, old, new = parts.get("rename", ("", "", ""))
        frame = frame.rename(columns={old: new}) if table == name else frame
        frame.to_csv(folder / f"{name}.tsv", sep="\t", index=False)
    (folder / "problem.yaml").write_text(parts["yaml"])
    return folder / "problem.yaml"


def changed(which: str, low="", nominal="") -> list[tuple[str, ...]]:
    """The parameters, one of them with another lower bound or nominal value."""
    return [
        (n, scale, low or lower, upper, nominal or value, *rest) if n == which else row
        for row in PARAMETERS
        for n, scale, lower, upper, value, *rest in [row]
    ]


def expected() -> float:
    k, gain, sd = 0.5, 3.0, 0.2

    def a(start, t):
        return start * math.exp(-k * t)

    def b(start, t):
        return 2 * (start - a(start, t))

    total = laplace.logpdf(3.5, gain * a(3, 1.0), sd) + laplace.logpdf(1.5, gain * a(3, 3.0), 0.3)
    total += laplace.logpdf(3.1, 2 * a(5, 3.0), sd)
    for start, t, x in ((3, 2.0, 4.0), (5, 0.5, 2.0), (5, 3.0, 9.0)):
        total += norm.logpdf(np.log10(x), np.log10(b(start, t)), 0.1) - math.log(x * math.log(10))
    return total


@pytest.mark.slow
def test_the_likelihood_is_the_closed_form(tmp_path: Path) -> None:
    found = read_petab(written(tmp_path))
    assert found.log_likelihood() == pytest.approx(expected(), rel=1e-6)
    assert [*found.nominal] == ["log10(k)", "gain", "ln(sd_a)"]
    assert found.nominal["log10(k)"] == pytest.approx(math.log10(0.5))
    with pytest.raises(ValueError, match="lack or have too many"):
        found.log_likelihood({"gain": 3.0})


@pytest.mark.slow
def test_a_solver_that_fails_is_told_with_its_likelihood(tmp_path: Path, caplog) -> None:
    found = read_petab(written(tmp_path), method=replace(EXPLICIT, max_steps=2))
    assert math.isnan(found.log_likelihood())
    assert "fails at 6 of 6 measurements: the likelihood is NaN" in caplog.text
    caplog.clear()
    found = read_petab(written(tmp_path), method=EXPLICIT)
    assert math.isfinite(found.log_likelihood())
    assert "fails" not in caplog.text


@pytest.mark.slow
@settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(draw=st.randoms(use_true_random=False))
def test_the_order_of_rows_and_columns_says_nothing(tmp_path: Path, draw) -> None:
    def shuffled(rows):
        return draw.sample([*rows], len(rows))

    path = written(
        tmp_path,
        parameters=shuffled(PARAMETERS),
        conditions=shuffled(CONDITIONS),
        measured=shuffled(MEASURED),
        order=shuffled,
    )
    found = read_petab(path, method=EXPLICIT)
    assert found.log_likelihood() == pytest.approx(expected(), rel=1e-6)
    swapped = {name: found.nominal[name] for name in reversed([*found.nominal])}
    assert found.log_likelihood(swapped) == pytest.approx(expected(), rel=1e-6)


@pytest.mark.slow
def test_a_dose_is_given_at_its_time(tmp_path: Path) -> None:
    rows = [("a", "", "plain", t, 1.0, "1", "1.0") for t in (1.0, 2.0, 3.0)]
    rows += [("b", "", "plain", 3.0, 1.0, "", "")]
    found = read_petab(
        written(tmp_path, events=events(event(since(CLOCK))), measured=rows), method=EXPLICIT
    )
    said = simulate(found.problem, parameters=np.array([[*found.nominal.values()]]))
    k, dosed = 0.5, 3 * math.exp(-0.75) + 4
    a = [3 * math.exp(-k), dosed * math.exp(-k * 0.5), dosed * math.exp(-k * 1.5)]
    b = 2 * (3 - 3 * math.exp(-0.75) + dosed - a[2])
    np.testing.assert_allclose(said.observation[0, :4], [*a, b], rtol=1e-5)


def seen(path: Path) -> np.ndarray:
    """The noise-free observations at the nominal parameters."""
    found = read_petab(path, method=EXPLICIT)
    said = simulate(found.problem, parameters=np.array([[*found.nominal.values()]]))
    return said.observation.values[0, : len(found.measurements)]


@pytest.mark.slow
def test_a_dose_after_the_last_time_of_a_condition_changes_nothing(tmp_path: Path) -> None:
    """Another condition is measured for longer, and has it."""
    rows = [("a", "", "plain", 1.0, 1.0, "1", "1.0"), ("a", "", "full", 3.0, 1.0, "1", "1.0")]
    path = written(tmp_path, events=events(event(since(CLOCK))), measured=rows)
    wanted = [3 * math.exp(-0.5), (5 * math.exp(-0.75) + 4) * math.exp(-0.75)]
    np.testing.assert_allclose(seen(path), wanted, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "compare", "start"),
    [("true", "geq", 3.0), ("false", "geq", 7.0), ("true", "gt", 7.0), ("false", "gt", 7.0)],
)
def test_what_is_on_from_the_start_fires_where_the_file_says_so(
    tmp_path: Path, before: str, compare: str, start: float
) -> None:
    """What is on at 0 may count as on before it; what `time > 0` says is off at 0, and on after."""
    rows = [("a", "", "plain", t, 1.0, "1", "1.0") for t in (0.0, 2.0)]
    given = events(event(since(CLOCK, 0.0).replace("geq", compare), before=before))
    path = written(tmp_path, events=given, measured=rows)
    np.testing.assert_allclose(seen(path), [start, start * math.exp(-1)], rtol=1e-6)


@pytest.mark.slow
def test_doses_at_times_of_their_conditions(tmp_path: Path) -> None:
    """The time is within a sum; it is 1.5 in one condition and 2 in the other, which is fed."""
    later = since(f"<apply><minus/>{CLOCK}<ci>source</ci></apply>")
    both = [("plain", "", "0"), ("full", "start", "0.5")]
    rows = [("a", "", name, t, 1.0, "1", "1.0") for name in ("plain", "full") for t in (1.75, 3.0)]
    path = written(tmp_path, events=events(event(later)), measured=rows, conditions=both)
    k, s = 0.5, 0.5

    def fed(start, t, s):
        return s / k + (start - s / k) * math.exp(-k * t)

    plain, full = fed(3, 1.5, 0) + 4, fed(5, 2.0, s) + 4
    wanted = [fed(plain, 0.25, 0), fed(plain, 1.5, 0), fed(5, 1.75, s), fed(full, 1.0, s)]
    np.testing.assert_allclose(seen(path), wanted, rtol=1e-6)


@pytest.mark.slow
def test_events_of_one_moment_read_the_values_before_it(tmp_path: Path) -> None:
    """A and B are exchanged."""
    swap = events(event(since(CLOCK), "<ci>B</ci>"), event(since(CLOCK), "<ci>A</ci>", "B"))
    rows = [("a", "", "plain", 1.5, 1.0, "1", "1.0"), ("b", "", "plain", 1.5, 1.0, "", "")]
    path = written(tmp_path, events=swap, measured=rows)
    a = 3 * math.exp(-0.75)
    np.testing.assert_allclose(seen(path), [2 * (3 - a), a], rtol=1e-6)


@pytest.mark.slow
def test_an_event_switches_a_parameter(tmp_path: Path) -> None:
    """Nothing feeds A until 1.5, then 2 a time; another event may not wait for it."""
    switch = event(since(CLOCK), "<cn>2</cn>", "source")
    rows = [("a", "", "plain", t, 1.0, "1", "1.0") for t in (1.0, 3.0)]
    path = written(tmp_path, events=events(switch), measured=rows)
    left, k = 3 * math.exp(-0.75), 0.5
    wanted = [3 * math.exp(-k), 2 / k + (left - 2 / k) * math.exp(-k * 1.5)]
    np.testing.assert_allclose(seen(path), wanted, rtol=1e-6)
    later = since(f"<apply><minus/>{CLOCK}<ci>source</ci></apply>")
    with pytest.raises(ValueError, match="triggered by source"):
        read_petab(written(tmp_path, events=events(switch, event(later)), measured=rows))


@pytest.mark.slow
def test_before_it_is_measured_the_time_has_not_begun(tmp_path: Path) -> None:
    """What is switched on at 9 is off while the system comes to rest."""
    slow = "<piecewise><piece><ci>V</ci><apply><lt/>{}<cn>9</cn></apply></piece>"
    slow = slow.format(CLOCK) + "<otherwise><cn>9</cn></otherwise></piecewise>"
    law = MATH.format(f"<apply><times/>{slow}<ci>k</ci><ci>A</ci></apply>")
    rows = [("a", "before", "after", 0.0, 1.0, "1", "1.0")]
    conditions = [("before", "", "2"), ("after", "", "0")]
    changed = ('stoichiometry="2"', 'stoichiometry="0"')
    found = read_petab(
        written(tmp_path, law=law, conditions=conditions, measured=rows, changed=changed)
    )
    said = simulate(found.problem, parameters=np.array([[*found.nominal.values()]]))
    np.testing.assert_allclose(said.observation[0, 0], 4.0, rtol=1e-6)


@pytest.mark.slow
def test_a_system_rests_before_it_is_measured(tmp_path: Path) -> None:
    conditions = [("before", "", "2"), ("after", "", "1"), ("fresh", "start", "1")]
    rows = [
        ("a", "before", name, t, 1.0, "1", "1.0") for name in ("after", "fresh") for t in (0, 2)
    ]
    measured = [*rows, ("b", "before", "after", 0.0, 1.0, "", "")]
    with pytest.raises(ValueError, match="all 1 simulations"):  # B grows for ever: it never rests
        path = written(tmp_path, conditions=conditions, measured=measured)
        never = read_petab(path)
        simulate(never.problem, parameters=np.array([[*never.nominal.values()]]))
    sink = LAW.replace("<ci>A</ci>", "<ci>A</ci><cn>1</cn>")
    path = written(tmp_path, conditions=conditions, measured=rows, law=sink)
    text = (tmp_path / "model.xml").read_text().replace('stoichiometry="2"', 'stoichiometry="0"')
    (tmp_path / "model.xml").write_text(text)
    found = read_petab(path)
    said = simulate(found.problem, parameters=np.array([[*found.nominal.values()]]))
    decay = math.exp(-1.0)
    wanted = [4, 2 + 2 * decay, 5, 2 + 3 * decay]
    np.testing.assert_allclose(said.observation[0, :4], wanted, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:R² of")  # one epoch teaches nothing
def test_it_is_simulated_with_its_noise_and_fitted(tmp_path: Path) -> None:
    found = read_petab(written(tmp_path), method=EXPLICIT)
    data = simulate(found.problem, 100, noise=found.problem.noise)
    assert data.observation.sizes == {"sample": 100, "feature": len(MEASURED)}
    assert [*data.parameter.values] == [*found.problem.prior]
    fit = sciml.fit(sciml.models.Dense(8, 1), data, epochs=1)
    assert fit.predict(data).sizes["parameter"] == 3


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"formula": "__import__('os').system('true')"}, "no formula"),
        ({"formula": "B\u00a0+ 1"}, r"observableFormula of b has the sign '\\xa0'"),
        ({"formula": "B * 2·A"}, "has the sign"),
        ({"formula": "2 B"}, "is '2 B', which is no formula"),
        ({"formula": "log(B, 10)"}, "a logarithm of two arguments"),
        ({"formula": "log10(A) + log(10, B)"}, "a logarithm of two arguments"),
        ({"formula": "B + lost"}, "reads 'lost', which is not there"),
        ({"formula": "delay(B, 1)"}, "uses delay, which is not supported"),
        ({"yaml": YAML.replace("1\n", "2.0.0\n", 1)}, "version 1 is read"),
        ({"yaml": YAML.replace("model.xml", "../model.xml")}, "outside its folder"),
        ({"yaml": YAML.replace("model.xml", "none.xml")}, "is no file"),
        ({"events": events(event(since("<ci>A</ci>")))}, "triggered by A"),
        (
            {
                "events": events(
                    event(f"<apply><or/>{since(CLOCK)}{since('<ci>flow</ci>')}</apply>")
                )
            },
            "triggered by flow",
        ),
        (
            {"events": events(event(since(f"<apply><floor/>{CLOCK}</apply>")))},
            r"jumps by 'floor\(time\)'",
        ),
        ({"events": events(event(since(f"<apply><sin/>{CLOCK}</apply>")))}, "jumps by 'sin"),
        ({"events": events(event(f"<apply><eq/>{CLOCK}<cn>1</cn></apply>"))}, "jumps by 'time =="),
        (
            {"events": events(event(since(f"<apply><minus/>{CLOCK}<ci>k</ci></apply>")))},
            "time that is estimated, by k",
        ),
        (
            {"events": events(event(f"<apply><and/>{since(CLOCK)}{since('<ci>k</ci>')}</apply>"))},
            "time that is estimated, by k",
        ),
        (
            {"events": events(event(since(CLOCK)), event(since(CLOCK)).replace("dose_A", "two"))},
            "set A, A at the same time",
        ),
        ({"measured": [("a", "", "none", 1.0, 1.0, "1", "1")]}, "condition 'none'"),
        ({"measured": [("c", "", "plain", 1.0, 1.0, "1", "1")]}, "'c' is measured"),
        ({"measured": [("b", "", "plain", math.inf, 1.0, "", "")]}, "infinite"),
        ({"measured": [("b", "", "plain", 1.0, "x", "", "")]}, "must be a number"),
        (
            {"parameters": [*PARAMETERS, PARAMETERS[0]]},
            "parameters.tsv, row 5: parameterId is 'k'; it is there more than once",
        ),
        (
            {"parameters": [(*PARAMETERS[0][:1], "ln", *PARAMETERS[0][2:])]},
            "parameterScale is 'ln'",
        ),
        ({"conditions": [("plain", "lost", "0"), CONDITIONS[1]]}, "is 'lost', which is no number"),
        (
            {"conditions": [("plain", "source", "0"), CONDITIONS[1]]},
            "'source', whose value the mod",
        ),
        ({"conditions": [("plain", "inf", "0"), CONDITIONS[1]]}, "row 1: A is 'inf'"),
        (
            {"parameters": [*PARAMETERS, ("pi", *PARAMETERS[3][1:])], "formula": "pi * B"},
            "reads 'pi', which is a word of formulas and a name of the problem",
        ),
        ({"conditions": [("", "", "0"), CONDITIONS[1]]}, "row 1: conditionId is ''"),
        ({"measured": [("b", "", "", 1.0, 1.0, "", "")]}, "row 1: simulationConditionId is ''"),
        ({"measured": [("b", "", "plain", 1.0, "inf", "", "")]}, "measurement is 'inf'"),
        ({"measured": [MEASURED[4], ("b", "", "full", 1.0, 0.0, "", "")]}, "row 2: .* scale log10"),
        ({"measured": [("a", "", "plain", 1.0, 1.0, "1", "-1")]}, "noiseParameters is '-1'"),
        ({"parameters": [(*PARAMETERS[0][:-1], "True"), *PARAMETERS[1:]]}, "estimate is 'True'"),
        ({"parameters": [(*PARAMETERS[0][:-1], "2"), *PARAMETERS[1:]]}, "must be 0 or 1"),
        (
            {"parameters": [("k", "log10", "0", *PARAMETERS[0][3:]), *PARAMETERS[1:]]},
            "lowerBound is '0'; it must be above 0 on the scale log10",
        ),
        ({"rename": ("observables", "observableTransformation", "transformation")}, "looks like"),
        ({"rename": ("measurements", "noiseParameters", "noiseParams")}, "looks like"),
        ({"rename": ("measurements", "noiseParameters", "measurement")}, "'measurement' twice"),
        ({"measured": [("a", "", "plain", 1.0, 1.0, "1;2", "1")]}, "row 1: observableParameters"),
        ({"measured": [("a", "", "plain", 1.0, 1.0, "", "1")]}, "has 0 values, .* a read 1 as"),
        ({"measured": [("b", "", "plain", 1.0, 1.0, "", "1")]}, "b read 0 as noiseParameter"),
        ({"measured": [("a", "", "plain", 1.0, 1.0, "inf", "1")]}, "'inf'; it must be finite"),
        ({"parameters": changed("k", nominal="1e3")}, "row 1: nominalValue .* 0.01 to 100"),
        ({"parameters": changed("gain", low="10")}, "row 2: lowerBound .* below upperBound, 10"),
        (
            {"parameters": [*PARAMETERS, ("sourc", *PARAMETERS[3][1:])]},
            "'sourc' is read nowhere, and 'source'",
        ),
        (
            {"parameters": [*PARAMETERS, ("A", *PARAMETERS[3][1:])]},
            "'A' is set by the conditions as well",
        ),
        ({"changed": ('id="k" value="0.5"', 'id="k"'), "parameters": PARAMETERS[1:]}, "k of mod"),
        ({"changed": ('stoichiometry="2"', 'stoichiometry="NaN"')}, "of B in a reaction .* nan"),
        ({"changed": ('initialConcentration="0"', "")}, "B of model.xml .* condition 'plain'"),
        ({"law": LAW.replace("<ci>A</ci>", "<notanumber/>")}, "flow of model.xml has NaN as"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(tmp_path: Path, changes, said) -> None:
    with pytest.raises(ValueError, match=said):
        read_petab(written(tmp_path, **changes))


def test_a_prior_stays_within_the_bounds(tmp_path: Path) -> None:
    """A uniform one that is wider, and a normal one with one bound alone."""
    path, table = written(tmp_path), tmp_path / "parameters.tsv"
    kinds = {"gain": ("uniform", "-5; 4"), "k": ("parameterScaleNormal", "0; 1")}
    frame = pd.read_csv(table, sep="\t", dtype=str)
    for at, key in enumerate(("objectivePriorType", "objectivePriorParameters")):
        frame[key] = [kinds.get(n, ("", ""))[at] for n in frame["parameterId"]]
    frame.loc[0, "upperBound"] = ""
    frame.to_csv(table, sep="\t", index=False)
    prior = read_petab(path).problem.prior
    assert (prior["gain"].low, prior["gain"].high) == (0, 4)
    frame.loc[0, "objectivePriorType"], frame.loc[0, "objectivePriorParameters"] = "uniform", ""
    frame.to_csv(table, sep="\t", index=False)
    with pytest.raises(ValueError, match="prior of k is uniform, its scale log10"):
        read_petab(path)  # of k itself, not of its logarithm
    inside = prior["log10(k)"].support(np.array([-2.5, 3.0]))
    assert inside.tolist() == [False, True]


@pytest.mark.parametrize("kind", ["logUniform", "Uniform", "gamma", "lognormal"])
def test_a_prior_that_the_format_does_not_know_is_refused(tmp_path: Path, kind) -> None:
    """Of version 2 as well: the bounds of logUniform are not those of the logarithm."""
    path, table = written(tmp_path), tmp_path / "parameters.tsv"
    frame = pd.read_csv(table, sep="\t", dtype=str)
    frame["objectivePriorType"] = [kind, "", "", ""]
    frame["objectivePriorParameters"] = ["1e-2; 1e1", "", "", ""]
    frame.to_csv(table, sep="\t", index=False)
    with pytest.raises(ValueError, match=f"objectivePriorType of k is '{kind}'; .* logNormal"):
        read_petab(path)


def test_how_lines_end_and_begin_says_nothing(tmp_path: Path) -> None:
    path = written(tmp_path)
    plain = tables(path)
    for table in tmp_path.glob("*.tsv"):
        text = table.read_bytes().replace(b"\n", b"\r\n")
        table.write_bytes(b"\xef\xbb\xbf" + text)
    assert tables(path).measurements.equals(plain.measurements)
    assert tables(path).parameters.equals(plain.parameters)
    wide = tmp_path / "measurements.tsv"
    wide.write_bytes(wide.read_bytes().replace(b"\r\n", b"\tmore\r\n").replace(b"\tmore", b"", 1))
    with pytest.raises(ValueError, match="more cells than names"):
        tables(path)


def test_a_file_that_is_no_sbml_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    for text in ("", "<sbml/>", "not xml", SBML[:400]):
        (tmp_path / "model.xml").write_text(text)
        with pytest.raises(ValueError, match="no valid SBML"):
            read_petab(path)
