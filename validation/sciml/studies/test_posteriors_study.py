"""The study of posteriors: judged, kept, drawn."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from sciml.diagnose import sbc
from sciml.figure import panels
from sciml.models import SplineFlow
from sciml.ode import CATALOG
from sciml.studies import STUDIES, posteriors

PAGE = Path(__file__).parents[3] / "docs" / "lab" / "posteriors.md"


@pytest.fixture(scope="module")
def result(tmp_path_factory, quick_compilation):
    module = sys.modules["sciml.studies.inverse.posteriors"]  # the package's name is the function's
    folder = tmp_path_factory.mktemp("results")
    _, axes = panels(1, 2, (7.0, 2.0))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "SAMPLES": 200,
            "EPOCHS": 2,
            "TESTS": 80,
            "DRAWS": 60,
            "HELD": 100,
            "PROPOSALS": (120,),
        }.items():
            patch.setitem(getattr(module, name), "fast", value)
        patch.setitem(module.REFERENCE_DRAWS, "fast", 100)
        patch.setattr(module, "EMBEDS", SplineFlow(width=8, depth=1, layers=1, bins=4))
        first = posteriors("fast", out=folder, ax=axes, names=["sir"])
        patch.setattr(module, "fit", None)  # kept runs are read, not made again
        again = posteriors("fast", out=folder, names=["sir"])
    return first, again, axes


def test_each_problem_is_judged(result):
    first, again, _ = result
    assert first.problem.values.tolist() == ["sir"]
    for whose in ("net", "recalibrated", "weighted"):
        assert 0 <= float(first[f"{whose}_points"][0]) <= 100
        assert 0 <= float(first[f"{whose}_p"][0]) <= 1
        assert 0 <= float(first[f"{whose}_ranks_p"][0]) <= 1
        assert 0.3 <= float(first[f"{whose}_c2st"][0]) <= 1
        np.testing.assert_array_equal(first[f"{whose}_points"], again[f"{whose}_points"])
    assert 0 < float(first.efficiency[0]) <= 1
    assert float(first.proposals[0]) == 120
    np.testing.assert_array_equal(first.log_density, again.log_density)
    assert list(STUDIES["posteriors"].tables(first)["posteriors"]["problem"]) == ["sir"]


def test_it_is_drawn_with_its_labels(result):
    axes = result[2]
    assert axes[0].get_xlabel() == "worst deviation of coverage (points)"
    assert [t.get_text() for t in axes[0].get_yticklabels()] == ["sir"]


@pytest.mark.parametrize("name", ["hodgkin_huxley_stochastic", "hodgkin_huxley", "lorenz96"])
@pytest.mark.usefixtures("untyped")
def test_weights_are_left_out_where_there_is_no_likelihood_or_it_is_dear(name):
    module = sys.modules["sciml.studies.inverse.posteriors"]
    assert np.isnan(list(module.weighted(name, None, "full").values())).all()


class Shifted:
    """Draws of the prior, a fifth too large whatever was seen."""

    grid = SimpleNamespace(dimensions=("sample", "time"))

    def sample(self, seen, draws: int, seed: int = 0) -> xr.Dataset:
        prior = np.random.default_rng(seed).lognormal(
            np.log([0.4, 0.125]), [0.5, 0.2], (draws, seen.sizes["sample"], 2)
        )
        return xr.Dataset({"posterior": (("draw", "sample", "parameter"), 1.2 * prior)})


@pytest.mark.usefixtures("untyped")
def test_draws_are_moved_by_other_pairs_than_judge_them(monkeypatch):
    module = sys.modules["sciml.studies.inverse.posteriors"]
    asked = []
    unseen = module.unseen
    monkeypatch.setattr(module, "unseen", lambda *who: asked.append(who) or unseen(*who))
    monkeypatch.setitem(module.HELD, "fast", 3000)
    found = module.recalibrated("sir", Shifted(), "fast")
    raw = sbc(Shifted().sample(unseen("sir", 300, 9), 200), unseen("sir", 300, 9))
    assert asked == [("sir", 3000, module.HELD_SEED), ("sir", 300, module.TEST_SEED)]
    assert module.HELD_SEED != module.TEST_SEED
    assert float(raw.ecdf_p.min()) < 1e-6
    assert found["recalibrated_ranks_p"] > 0.01
    assert found["recalibrated_points"] < 8  # 300 tests: the band of 95 % is 8 points wide
    assert found["recalibrated_c2st"] > 0.9  # calibrated on average, and still the prior


def test_the_page_says_what_the_table_has():
    table = pd.read_csv(PAGE.parents[1] / "results" / "posteriors.csv", index_col="problem")
    assert list(table.index) == sorted(CATALOG)
    assert set(table.index[table.net_points > 2]) == {"van_der_pol", "hodgkin_huxley_stochastic"}
    assert ((table.net_ranks_p > 0.05).sum(), (table.net_p > 0.05).sum()) == (9, 8)
    assert 0.75 < table.recalibrated_points.min() < table.recalibrated_points.max() < 1.75
    assert (table.recalibrated_p > 0.05).all()
    (failed,) = table.index[table.recalibrated_ranks_p <= 0.05]
    assert failed == "hodgkin_huxley"
    assert (table.recalibrated_c2st - table.net_c2st).abs().max() < 0.02
    weighed = table.dropna(subset="weighted_points")
    assert len(weighed) == 10
    assert 0.95 < weighed.weighted_points.min() < weighed.weighted_points.max() < 1.75
    assert set(weighed.index[weighed.weighted_p <= 0.05]) == {"goodwin"}
    assert (weighed.drop("slcp").weighted_c2st - 0.5).abs().max() < 0.03
    text = PAGE.read_text(encoding="utf-8")
    assert "coverage within 2 points for all thirteen" in text
    said = {"slcp": (0.768, 0.571), "fitzhugh_nagumo": (0.847, 0.497), "goodwin": (0.686, 0.509)}
    for name, (net, weighted) in said.items():
        assert f"{net:.3f} → {weighted:.3f}" in text
        assert tuple(table.loc[name, ["net_c2st", "weighted_c2st"]]) == pytest.approx(
            (net, weighted), abs=6e-4
        )


def test_an_unknown_problem_is_named(tmp_path):
    with pytest.raises(ValueError, match="no problem 'sirr'"):
        posteriors("fast", out=tmp_path, names=["sirr"])
