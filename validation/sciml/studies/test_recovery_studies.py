"""Studies of many runs: cached, resumed, tabled with intervals, drawn."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t

from sciml.figure import draw_runs, panels
from sciml.models import Dense
from sciml.ode import AR1
from sciml.studies import JOINT, NOISE, SAMPLES, WIDTH
from sciml.studies.inverse import recovery_runs
from sciml.studies.inverse.recovery_runs import Run, by_parameter, summary
from sciml.studies.inverse.recovery_study import Cases, study_of

pytestmark = pytest.mark.filterwarnings("ignore::sciml.estimator.CollapseWarning")
SMALL = Run("dense 8", Dense(width=8, depth=1), None, "fixed", samples=100, epochs=3)


def runs(scale: str) -> tuple[Run, ...]:
    """Return one run of every way of training."""
    assert scale == "fast"
    noisy = replace(SMALL, noise=AR1(sd=0.28))
    return (SMALL, noisy, *(replace(noisy, training=name) for name in ("fresh", "online")))


STUDY = study_of(Cases("small", "A small study", "about", "published", runs))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def dataset(folder):
    return STUDY.run("fast", out=folder, seeds=2)


def test_every_run_is_judged_by_regime_and_parameter(dataset):
    assert dataset.sizes["run"] == 8
    assert dataset.r2.dims == ("run", "regime", "parameter")
    assert np.isfinite(dataset.mse).all()
    rows = by_parameter(dataset)
    assert len(rows) == 8 * 3 * 2
    assert set(rows["training"]) == {"fixed", "fresh", "online"}


def test_runs_are_read_where_they_are_kept(dataset, folder, monkeypatch):
    def never(*_, **__):
        raise AssertionError("trained again")

    monkeypatch.setattr(recovery_runs, "fit", never)
    again = STUDY.run("fast", out=folder, seeds=2)
    np.testing.assert_array_equal(again.mse, dataset.mse)
    assert not list(folder.glob("runs/*.checkpoint"))


def test_cheap_nets_can_have_more_seeds():
    cases = Cases("two", "Two", "about", "published", lambda _: (SMALL, replace(SMALL, net="b")))
    assert [run.seed for run in cases.repeated("fast", None)] == [0, 1, 2, 0, 1, 2]
    cases = replace(cases, seeds=2, more={"b": 2})
    found = [(run.net, run.seed) for run in cases.repeated("fast", None)]
    assert found == [(SMALL.net, 0), (SMALL.net, 1), *(("b", seed) for seed in range(4))]
    assert len(cases.repeated("fast", 1)) == 3


def test_means_have_students_intervals(dataset):
    table = summary(dataset)
    assert list(table["noise"]) == ["none", *["AR1 sd 0.28"] * 3]
    assert (table["seeds"] == 2).all()
    first = dataset.mse.sel(regime="all").mean("parameter").values[:2]
    assert table["mse"][0] == pytest.approx(first.mean())
    assert table["mse_half"][0] == pytest.approx(t.ppf(0.975, 1) * first.std(ddof=1) / np.sqrt(2))
    one = summary(dataset.isel(run=[0]))
    assert np.isnan(one["mse_half"][0])
    assert len(summary(dataset, each=True)) == 2 * len(table)


def test_scores_are_drawn_with_their_names(dataset):
    _, axes = panels(1, 2, (7.0, 3.0))
    draw_runs(summary(dataset), axes)
    labels = [label.get_text() for label in axes[0].get_yticklabels()]
    assert labels[0] == "dense 8, no noise, 100 samples"
    assert labels[-1] == "dense 8, AR1 sd 0.28, online"
    assert axes[0].get_xlabel() == "1 − R²"


def test_noise_levels_are_targets_of_their_own(folder):
    from numpyro.distributions import Uniform

    noise = AR1(sd=Uniform(0.1, 0.4), estimate=True)
    scores = recovery_runs.judged(replace(SMALL, noise=noise, training="fresh"), folder)
    assert scores.parameter.values.tolist() == ["theta0", "theta1", "noise_sd"]


@pytest.mark.parametrize("study", [NOISE, WIDTH, SAMPLES, JOINT])
def test_each_study_has_a_figure_and_is_told(study):
    figure, axes = study.axes("full")
    assert len(axes) == 2
    assert figure.get_size_inches()[1] > 1
    assert study.about.endswith(".")
    assert study.published.endswith(".")


@pytest.mark.usefixtures("untyped")
def test_a_wrong_scale_is_named(folder):
    with pytest.raises(ValueError, match="scale is 'huge'"):
        STUDY.run("huge", out=folder)
    with pytest.raises(ValueError, match="seeds is 0"):
        STUDY.run("fast", out=folder, seeds=0)
