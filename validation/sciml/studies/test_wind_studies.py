"""The studies of wind nets at toy size, on wind of the generator."""

import numpy as np
import pytest
import xarray as xr

from sciml.figure import panels
from sciml.models import Density, SuperResolution
from sciml.studies import STUDIES
from sciml.studies.wind import questions
from sciml.studies.wind.fields import Parts, components_of
from sciml.studies.wind.runs import WindRun, compared, judged_rows, shortened, skill_over
from sciml.studies.wind.terrain import grounded, terrain_runs
from sciml.wind import SurfaceQG, generate, with_hills

pytestmark = pytest.mark.usefixtures("quick_compilation")
TINY = {"updates": 20, "size": 16, "batch": 2}


@pytest.fixture(scope="module")
def toy():
    def run(seed):
        return components_of(generate(seed, 2, config=SurfaceQG(n=32, k_t=6.0, dt=0.04)))

    one = [run(0).isel(channel=[0])]  # one component, as HRRR has it
    both = [run(1)]
    return Parts(
        train={"one": one, "both": both},
        validation=[run(2)],
        test={"one": [run(3).isel(channel=[0], x=slice(a, a + 16)) for a in (0, 16)],
              "both": [run(4)]},
        block={"both": 1},
        synthetic=True,
        source="SYNTHETIC toy",
    )  # fmt: skip


def test_rows_say_what_was_trained_and_are_made_once(toy, tmp_path, monkeypatch):
    runs = [
        WindRun("vectors in draws", Density(4, 2, 1, wind=2), **TINY),
        WindRun("mean of two", SuperResolution(4, 2, 1, wind=2), seeds=2, **TINY),
        WindRun("one alone", SuperResolution(4, 2, 1), data=("one",), share=0.5, seen=True, **TINY),
    ]
    rows = judged_rows(runs, toy, tmp_path)
    assert [(r["net"], r["data"]) for r in rows] == [
        (run.name, data) for run in runs for data in ("one", "both")
    ]
    assert all(r["skill_low"] <= r["skill"] <= r["skill_high"] for r in rows)
    assert all(r["skill"] == pytest.approx(1 - (r["rmse_m_s"] / r["baseline_rmse_m_s"]) ** 2)
               for r in rows)  # fmt: skip
    assert rows[1]["draw_short_wave_ratio"] > rows[1]["short_wave_ratio"]
    first, second = (run.trained(toy, tmp_path).trained.train_s for run in runs[1].members())
    assert rows[2]["train_s"] == pytest.approx(first + second)
    assert ["seen_skill" in row for row in rows] == [False] * 4 + [True, False]
    net, learned = runs[2].trained(toy, tmp_path), shortened(toy.train["one"][0], 0.5)
    for fields, key in ((toy.test["one"], "skill"), ([learned], "seen_skill")):
        assert skill_over(compared(net, fields)) == pytest.approx(rows[4][key], abs=1e-6)
    monkeypatch.setattr(WindRun, "fitted", lambda *_: pytest.fail("trained again"))
    assert judged_rows(runs, toy, tmp_path) == rows


def test_a_share_is_of_times_or_rows(toy):
    both = toy.train["both"][0]
    assert shortened(both, 0.5).sizes["time"] == 1
    assert shortened(both.isel(time=[0]), 0.25).sizes["y"] == 8


def test_every_share_of_a_snapshot_holds_a_patch(toy):
    snapshot = np.zeros((1, 1, 1059, 112))  # the narrowest stripe that is learned from
    fields = xr.DataArray(snapshot, dims=("time", "channel", "y", "x"))
    for run in questions.sample_runs("full", toy):
        assert min(shortened(fields, run.share).shape[-2:]) >= run.size


def test_amounts_of_generated_wind_are_kept_apart(toy, monkeypatch):
    """Runs are kept by the name of their data: two amounts under one name would share nets."""
    wind = generate(0, 2, config=SurfaceQG(n=32, k_t=6.0, dt=0.04))
    asked = []

    def parts(seed, counts, n):
        asked.append((counts["train"], n))
        return dict.fromkeys(counts, wind)

    monkeypatch.setattr("sciml.wind.generate_parts", parts)
    made = [questions.synthetic(128), *map(questions.generated, ("fast", "full"))]
    assert asked == [(12, 128), (12, 64), (96, 128)]
    run = WindRun("toy", SuperResolution(4, 2, 1), **TINY)
    assert len({str(run.identity(fields.source)) for fields in made}) == 3


def test_a_study_leaves_a_table_and_a_figure(toy, tmp_path, monkeypatch):
    def runs(scale, of):
        return [WindRun("toy", SuperResolution(4, 2, 1), seen=True, **TINY)]

    monkeypatch.setattr(questions, "synthetic", lambda: toy)
    study = questions.made("toy", "A toy", "about", runs)
    figure, axes = panels(1, 2, (8.0, 4.0))
    dataset = study.run("fast", out=tmp_path, ax=axes)
    assert dataset.attrs["synthetic"] == "true"
    assert "SYNTHETIC" in figure.get_suptitle()
    assert "both, fields seen in training" in axes[0].get_legend_handles_labels()[1]
    table = study.tables(dataset)["toy"]
    assert list(table["synthetic"].unique()) == ["true"]


def test_a_net_that_sees_the_ground_is_given_it(tmp_path):
    small = SurfaceQG(n=32, k_t=6.0, dt=0.04)
    flat = generate(0, 2, config=small)
    over = {name: grounded(with_hills(flat, seed)) for seed, name in enumerate(("own", "other"))}
    assert float(over["own"].sel(channel="orography").std()) > 100
    level = grounded(flat)
    assert list(level.channel.values) == ["x_wind", "y_wind", "orography"]
    assert not level.sel(channel="orography").any()
    fields = Parts(train={"hills": [over["own"]]}, validation=[over["own"]], test={
        "own": [over["own"]], "other": [over["other"]], "flat": [level]}, source="SYNTHETIC toy",
    )  # fmt: skip
    blind, seeing = (SuperResolution(4, 4, 1, wind=2, statics=n) for n in (0, 1))
    runs = [WindRun(str(n), net, **TINY) for n, net in enumerate((blind, seeing))]
    rows = judged_rows(runs, fields, tmp_path)
    assert [(row["net"], row["data"]) for row in rows] == [
        (net, data) for net in "01" for data in fields.test
    ]
    assert rows[3]["weights"] > rows[0]["weights"]
    assert np.isfinite([row["skill"] for row in rows]).all()


@pytest.mark.parametrize(
    ("name", "runs_of"),
    {
        "wind_skill": questions.skill_runs,
        "wind_size": questions.size_runs,
        "wind_size_generated": questions.size_runs,
        "wind_limits": questions.limit_runs,
        "wind_limits_generated": questions.limit_runs,
        "wind_samples": questions.sample_runs,
        "wind_draws": questions.draw_runs,
        "wind_terrain": terrain_runs,
    }.items(),
)
def test_what_studies_would_train_fits_their_data(toy, name, runs_of):
    assert name in STUDIES
    for scale in ("fast", "full"):
        runs = runs_of(scale, toy)
        judged = {str((run.identity(""), run.folds, run.seeds)) for run in runs}
        assert len(judged) == len(runs)


def test_a_net_of_pairs_is_judged_beside_bicubic_of_the_coarse_model(tmp_path):
    dataset = STUDIES["two_sources"].run("fast", out=tmp_path)
    table = STUDIES["two_sources"].tables(dataset)["two_sources"].set_index("scheme")
    assert table.loc["bicubic", "below_bicubic"] == 0
    assert table.loc["net of pairs, folded", "rmse_m_s"] < table.loc["bicubic", "rmse_m_s"]
    again = STUDIES["two_sources"].run("fast", out=tmp_path)  # read, not trained
    assert again.rmse_m_s.equals(dataset.rmse_m_s)
