"""Six problems of the public PEtab collection at their published optimum."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import solve_ivp
from scipy.stats import norm

from sciml.ode import read_petab, simulate

PROBLEMS = (
    *("Bertozzi_PNAS2020", "Boehm_JProteomeRes2014", "Bruno_JExpBot2016"),
    *("Crauste_CellSystems2017", "Perelson_Science1996", "Rahman_MBS2016"),
)
# sourced: negative log-likelihoods of the collection's own table
PUBLISHED = {
    "Boehm_JProteomeRes2014": -138.22,
    "Crauste_CellSystems2017": -190.96,
    "Bruno_JExpBot2016": 46.688,
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_likelihood_of_the_published_simulations_is_found(shared: Path, name: str) -> None:
    folder = shared / "data" / "petab" / name
    found = read_petab(next(folder.glob("*.yaml")))
    said = found.log_likelihood()
    if name in PUBLISHED:
        assert said == pytest.approx(PUBLISHED[name], rel=1e-4)
    if name == "Perelson_Science1996":  # its simulations are of other parameters than its optimum
        return
    # The collection's own simulations, under the noise of the tables, without our solver.
    made = pd.read_csv(next(folder.glob("*imulat*.tsv")), sep="\t")
    table = pd.read_csv(next(folder.glob("parameters*.tsv")), sep="\t").set_index("parameterId")
    key = "observableTransformation"
    rules = pd.read_csv(next(folder.glob("observables*.tsv")), sep="\t").set_index("observableId")
    column = "simulation" if "simulation" in made else "measurement"
    total = 0.0
    for x, row in zip(found.observed.values, made.to_dict("records"), strict=True):
        rule = rules.loc[row["observableId"]]
        sd = row.get("noiseParameters")
        sd = rule["noiseFormula"] if sd is None or str(sd) == "nan" else sd
        sd = float(table["nominalValue"].get(sd, sd))
        log10 = key in rule and rule[key] == "log10"
        y = row[column]
        if log10:
            total += norm.logpdf(math.log10(x), math.log10(y), sd) - math.log(x * math.log(10))
        else:
            total += norm.logpdf(x, y, sd)
    assert said == pytest.approx(total, rel=1e-3)


def test_the_model_of_perelson_is_solved_as_scipy_does(shared: Path) -> None:
    folder = shared / "data" / "petab" / "Perelson_Science1996"
    found = read_petab(next(folder.glob("*.yaml")))
    c, delta, made, infected = 2.06, 0.53, 480.0, 3.9e-7 * 11000.0

    def field(t, u):
        del t
        sick, _, old, new = u
        grown = delta * made * sick
        return [infected * old - delta * sick, grown - c * (old + new), -c * old, grown - c * new]

    times = found.measurements["time"].astype(float)
    start = [15061.32075, 1.86e6, 1.86e6, 0.0]
    solved = solve_ivp(field, (0, times.max()), start, t_eval=times, rtol=1e-9, atol=1e-3)
    parameters = np.array([[*found.nominal.values()]])
    said = simulate(found.problem, parameters=parameters).observation[0, : len(times)]
    np.testing.assert_allclose(said, solved.y[1], rtol=1e-4)
