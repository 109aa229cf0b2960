"""The studies at fast scale: what they return, what they draw, what they refuse."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.figure import Figure

from sciml.cli.main import Name
from sciml.figure import draw_recovery
from sciml.studies import STUDIES, figure2, figure3, store, table4
from sciml.studies.description import Study
from sciml.studies.figure2 import crossover_samples
from sciml.studies.figure3 import wide_wins
from sciml.studies.inverse import net
from sciml.studies.page import write_page
from sciml.studies.reproduce import reproduce


@pytest.fixture(scope="module")
def times():
    return figure2("fast", out=None)


@pytest.fixture(scope="module")
def estimates():
    return figure3("fast", out=None)


def test_command_line_names_the_studies():
    assert [name.value for name in Name] == list(STUDIES)


def test_table4_has_the_published_and_our_rows(times):
    table = STUDIES["table4"].tables(table4("fast"))["table4"]
    assert list(table.columns[:10]) == [
        "units",
        "parameters",
        "machine",
        "source",
        "status",
        "batch",
        "setup_s",
        "train_s",
        "total_s",
        "samples_per_s",
    ]
    assert len(table) == 16 + 24
    assert sorted(set(table.parameters)) == [39_490, 243_970, 2_352_130, 31_428_610]
    assert set(table.source) == {"published", "measured", "predicted", "emulated"}
    emulated = table[table.source == "emulated"]
    assert emulated.machine.str.fullmatch(r"this CPU emulating [124] CS-2s? \(.*\)").all()
    assert (emulated.epochs_measured < 10).all()
    assert (emulated.samples_per_s > 0).all()
    measured = table[table.source == "measured"]
    assert (measured.batch == 100).all()
    assert (measured.epochs_measured < 1000).all()
    assert (measured.samples_per_s > 0).all()
    assert np.allclose(measured.total_s, measured.setup_s + measured.train_s)
    assert np.allclose(measured.train_s, 1e6 / measured.samples_per_s)
    # Wider nets train more slowly here, by far more than on the CS-2.
    assert measured.samples_per_s.is_monotonic_decreasing


def test_table4_equals_the_published_file(times, shared):
    published = pd.read_csv(shared / "data" / "wse" / "table4.csv").set_index("units")
    cs2, cpu = times.sel(row="CS-2, published"), times.sel(row="CPU, published")
    for name in ("setup_s", "train_s", "total_s", "samples_per_s"):
        np.testing.assert_allclose(cs2[name], published[f"cs2_{name}"])
    np.testing.assert_allclose(cpu.total_s, published.cpu_total_s)
    np.testing.assert_allclose(cpu.samples_per_s, published.cpu_samples_per_s)
    np.testing.assert_array_equal(times.parameters, published.parameters)


def test_calibrated_rows_hold_the_published_totals_and_say_so(times):
    ours, theirs = times.sel(row="CS-2, predicted"), times.sel(row="CS-2, published")
    np.testing.assert_allclose(ours.total_s, theirs.total_s, rtol=0.01)
    assert str(ours.status.item()) == "calibrated"


def test_crossover_is_where_the_times_meet(times):
    cpu, cs2 = times.sel(row="CPU, measured"), times.sel(row="CS-2, predicted")
    samples = times.crossover_samples.values
    never = cpu.samples_per_s.values >= cs2.samples_per_s.values
    np.testing.assert_array_equal(np.isinf(samples), never)
    with np.errstate(invalid="ignore"):
        ours = cpu.setup_s + samples / cpu.samples_per_s
        theirs = cs2.setup_s + samples / cs2.samples_per_s
    np.testing.assert_allclose(ours[~never], theirs[~never])


def test_crossover_of_the_published_times():
    """With the brief's own rates: 512 units cross between 0.9 and 1 of its million samples."""
    found = crossover_samples(
        setup_s=np.array([185.4, 100.0, -5.0]),
        slow_per_s=np.array([4512.1, 10.0, 1.0]),
        fast_per_s=np.array([174454.2, 5.0, 2.0]),
    )
    assert 0.8e6 < found[0] < 0.9e6
    assert np.isinf(found[1])
    assert found[2] == 0


def test_figure2_draws(times, tmp_path):
    ax = Figure().subplots()
    drawn = figure2("fast", ax=ax)
    np.testing.assert_array_equal(drawn.parameters, times.parameters)
    assert ax.get_xscale() == ax.get_yscale() == "log"
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert {"CS-2, model (calibrated)", "this CPU, measured", "set-up", "training"} <= set(labels)
    assert sum("CS-2 wins" in text.get_text() for text in ax.texts) == 4


def test_table4_draws_rates():
    ax = Figure().subplots()
    table4("fast", ax=ax)
    assert len(ax.lines) == 4


@pytest.mark.slow
def test_the_wide_net_estimates_better(estimates):
    """The claim of the published Figure 3, at every seed in the mean squared error."""
    assert wide_wins(estimates)
    assert estimates.sizes["seed"] >= 3
    mse = estimates.mse.sel(regime="all").mean("parameter")
    assert (mse.sel(units=256) < mse.sel(units=32)).all()
    assert float(estimates.r2.sel(regime="all", units=256).mean()) > 0.98
    tables = STUDIES["figure3"].tables(estimates)
    assert set(tables["figure3"].regime) == {"all", "spiking", "quiescent"}
    assert len(tables["figure3_seeds"]) == 2 * 3 * 2


@pytest.mark.slow
def test_regimes_add_up(estimates):
    samples = estimates.samples.to_series()
    assert samples["all"] == samples["spiking"] + samples["quiescent"] == 2000
    assert samples["quiescent"] / 2000 == pytest.approx(0.0723, abs=0.02)  # published: 7.23 %


@pytest.mark.slow
def test_figure3_draws(estimates):
    axes = Figure().subplots(2, 2)
    draw_recovery(estimates, axes)
    assert [ax.get_title(loc="left").split()[0] for ax in axes.flat] == ["32", "32", "256", "256"]
    with pytest.raises(ValueError, match=r"plt\.subplots"):
        draw_recovery(estimates, axes[0])


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda out: table4("medium", out=out), "'fast' or 'full'"),
        (lambda out: table4(out=out, batch=0), "batch is 0"),
        (lambda out: table4(out=out, batch=2000), "batch is 2000"),
        (lambda out: figure3(out=out, seeds=2), "at least 3"),
    ],
)
def test_bad_arguments_are_refused_before_work(tmp_path, call, error):
    with pytest.raises(ValueError, match=error):
        call(tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_an_unwritable_folder_is_refused_before_work(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        table4("fast", out=tmp_path / "file")


@pytest.fixture
def tiny(monkeypatch):
    """Sizes so small that a study takes a second."""
    import sys

    module = sys.modules["sciml.studies.table4"]
    monkeypatch.setattr(module, "FAST_EPOCHS", dict.fromkeys(module.WIDTHS, 1))
    monkeypatch.setattr(net, "SAMPLES", 100)
    monkeypatch.setattr(module, "SAMPLES", 100)
    rows = {"this CPU emulating 2 CS-2s (streaming), emulated": ("streaming", 2)}
    monkeypatch.setattr(module.emulation, "ROWS", rows)


@pytest.mark.filterwarnings("ignore::sciml.estimator.CollapseWarning")
@pytest.mark.usefixtures("tiny")
def test_reproduce_leaves_tables_figures_and_a_page(tmp_path, monkeypatch):
    page = reproduce([STUDIES["table4"], STUDIES["figure2"]], "fast", out=tmp_path)
    names = {path.name for path in tmp_path.iterdir() if path.is_file()}
    assert names == {
        "index.html",
        "table4.csv",
        "table4.nc",
        "figure2.csv",
        "figure2.nc",
        "figure2.png",
        "figure2.svg",
    }
    text = page.read_text(encoding="utf-8")
    for expected in ("figure2.png", "47,580", "revision", "calibrated", "seed"):
        assert expected in text
    assert "<th>training (s)</th>" in text
    assert "<th>train_s</th>" not in text
    assert not list(tmp_path.rglob(".*"))
    # A second call trains nothing: the runs are kept.
    monkeypatch.setattr(net, "fit", None)
    reproduce([STUDIES["table4"]], "fast", out=tmp_path)


@pytest.mark.usefixtures("untyped")
def test_a_damaged_run_is_made_anew(tmp_path, caplog):
    identity = {"run": "toy", "seed": 1}
    path = store.run_file(tmp_path, identity, ".fit")
    path.parent.mkdir()
    path.write_bytes(b"half a file")

    class Toy:
        def save(self, target):
            target.write_bytes(b"whole")

    made = store.kept(tmp_path, identity, ".fit", lambda checkpoint: Toy())
    assert isinstance(made, Toy)
    assert path.read_bytes() == b"whole"
    assert "made anew" in caplog.text


def test_runs_are_named_by_their_content(tmp_path):
    one = store.run_file(tmp_path, {"run": "a", "seed": 1}, ".fit")
    assert one == store.run_file(tmp_path, {"seed": 1, "run": "a"}, ".fit")
    assert one != store.run_file(tmp_path, {"run": "a", "seed": 2}, ".fit")


def test_an_empty_folder_gives_an_empty_page(tmp_path):
    assert "<section" not in write_page(tmp_path).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("attrs", "said", "not_said"),
    [
        ({"scale": "fast", "synthetic": "true", "source": "eddies"}, "SYNTHETIC", "full scale"),
        ({"scale": "full", "synthetic": "false", "source": "MET Norway"}, "MET Norway", "SYNTH"),
        ({"scale": "fast"}, "smaller and shorter than published", "Data:"),
    ],
)
def test_the_page_says_scale_and_data_where_they_are_read_first(
    tmp_path, monkeypatch, attrs, said, not_said
):
    toy = Study("toy", "A toy", "About.", "Nothing.", print, lambda _: {"toy": pd.DataFrame()})
    monkeypatch.setattr("sciml.studies.STUDIES", {"toy": toy})
    xr.Dataset({"a": 1.0}, attrs=attrs).to_netcdf(tmp_path / "toy.nc")
    shown = write_page(tmp_path).read_text(encoding="utf-8").partition("<details>")[0]
    assert said in shown
    assert not_said not in shown
