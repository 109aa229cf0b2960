"""The study of posteriors: judged, kept, drawn."""

import sys

import numpy as np
import pytest

from sciml.figure import panels
from sciml.models import SplineFlow
from sciml.studies import STUDIES, posteriors


@pytest.fixture(scope="module")
def result(tmp_path_factory, quick_compilation):
    module = sys.modules["sciml.studies.posteriors"]  # the package's name is the function's
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
    module = sys.modules["sciml.studies.posteriors"]
    assert np.isnan(list(module.weighted(name, None, "full").values())).all()


def test_an_unknown_problem_is_named(tmp_path):
    with pytest.raises(ValueError, match="no problem 'sirr'"):
        posteriors("fast", out=tmp_path, names=["sirr"])
