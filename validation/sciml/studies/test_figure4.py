"""Figure 4 at fast scale on the real fields, and at a toy size without them."""

import importlib

import numpy as np
import pytest
from matplotlib.figure import Figure

from sciml import wind
from sciml.diagnose.wind.spectra import cosine_spectrum
from sciml.estimator import Patches
from sciml.figure.wind.fields import draw_fields
from sciml.models.wind.generative import Generative
from sciml.models.wind.super_resolution import SuperResolution
from sciml.studies.figure4 import (
    SIZES,
    STUDY,
    Size,
    figure4,
    net_wins,
    ported,
    sized,
    split_fields,
    tables,
)
from sciml.train import Recipe
from sciml.wind import DatasetUnavailable, SurfaceQG, block_mean, generate

MODULE = importlib.import_module("sciml.studies.figure4")  # the package exports the function

TOY = Size(
    SuperResolution(factor=4, channels=4, blocks=1),
    epochs=20,
    drawing=Generative(factor=4, channels=4, blocks=1),
    drawn_epochs=4,
    recipe=Recipe(batch=4),
    patches=Patches(size=16, count=8),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("toy")


@pytest.fixture
def toy(folder, monkeypatch):
    """The study at toy size, cut off from every file: on 32 × 32 points of the generator."""

    def unavailable(name):
        raise DatasetUnavailable(name)

    def small(seed, counts):
        runs = enumerate(counts, start=len(counts) * seed)
        config = SurfaceQG(n=32, k_t=6.0, dt=0.04)
        return {part: generate(i, 4, config=config) for i, part in runs}

    monkeypatch.setattr(wind, "fetch", unavailable)
    monkeypatch.setattr(wind, "generate_parts", small)
    monkeypatch.setitem(SIZES, "fast", TOY)
    return lambda ax=None, seed=0: figure4("fast", out=folder, ax=ax, seed=seed)


def test_without_data_everything_says_synthetic(toy, caplog):
    figure, panels = STUDY.axes("fast")
    dataset = toy(ax=panels)
    assert dataset.attrs["synthetic"] == "true"
    assert "SYNTHETIC" in figure.get_suptitle()
    assert "SYNTHETIC wind stands in" in caplog.text
    assert tables(dataset)["figure4"].synthetic.unique() == ["true"]


def test_the_result_holds_fields_scores_and_their_making(toy):
    dataset = toy()
    assert list(dataset.scheme.values) == [
        "block",
        "bilinear",
        "bicubic",
        "conservative bicubic",
        "CNN",
    ]
    assert dataset.estimate.dims == ("scheme", "sample", "y", "x")
    assert dataset.sizes["sample"] == 2
    assert dataset.loss.sizes["epoch"] == 20
    for scheme in ("CNN", "conservative bicubic"):
        means = block_mean(dataset.estimate.sel(scheme=scheme).values, 4)
        np.testing.assert_allclose(means, dataset.coarse, atol=1e-4)
    assert {"source", "licence", "seed", "model", "train_s", "versions"} <= set(dataset.attrs)
    np.testing.assert_allclose(dataset.x_lo[0], dataset.x[:4].mean())
    np.testing.assert_allclose(block_mean(dataset.draw.values, 4), dataset.coarse, atol=1e-4)


def test_the_machine_is_asked_of_the_net_and_of_what_is_inside_it(toy):
    inside = toy()
    assert list(inside.net.values) == ["SuperResolution"]
    assert list(inside.unknown.values) == ["none"]
    both = ported(sized(4, 2))
    assert list(both.net.values) == ["LocallyScaled", "SuperResolution"]
    assert list(both.unknown.values) == ["reduce_window_sum", "none"]
    assert set(both.unsupported.values) == {"none"}
    assert (both.portable > 15).all()
    assert (both.predicted_setup_s > both.predicted_train_s).all()
    assert list(tables(inside)["figure4_machine"].net) == ["SuperResolution"]


def test_a_second_call_reads_what_the_first_one_kept(toy, monkeypatch):
    first = toy()
    monkeypatch.setattr(MODULE, "fit_downscaling", lambda *_, **__: pytest.fail("trained again"))
    assert first.identical(toy())


def test_a_broken_file_is_made_anew(toy, folder, caplog):
    first = toy()
    (path,) = (folder / "runs").glob("*.nc")
    path.write_bytes(path.read_bytes()[:1000])
    again = toy()
    assert "made anew" in caplog.text
    np.testing.assert_array_equal(first.estimate, again.estimate)


def test_another_seed_is_another_run(toy):
    assert not toy(seed=1).estimate.equals(toy().estimate)


def test_wrong_arguments_are_refused(toy):
    panels = Figure().subplots(2, 3)
    with pytest.raises(ValueError, match=r"axes have shape \(2, 3\); they must be \(2, 7\)"):
        draw_fields(toy(), panels)
    with pytest.raises(ValueError, match="scheme is 'magic'; it must be one of block"):
        draw_fields(toy(), Figure().subplots(2, 7), "magic")


@pytest.fixture(scope="module")
def real(shared):
    """The study at fast scale on the real fields."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCIML_MIRROR", str(shared / "data" / "wind"))
        yield figure4("fast")


def test_no_date_is_in_two_splits(shared, monkeypatch):
    monkeypatch.setenv("SCIML_MIRROR", str(shared / "data" / "wind"))
    fields, attrs = split_fields(0)
    months = {
        split: set(np.datetime_as_string(field.time.values, "M")) for split, field in fields.items()
    }
    assert months == {"train": {"2016-02"}, "validation": {"2016-01"}, "test": {"2015-11"}}
    assert attrs["synthetic"] == "false"
    assert attrs["data"].startswith("metcoop ")


@pytest.mark.slow
def test_the_net_beats_every_interpolation_on_the_held_out_month(real):
    """Conservative bicubic is the honest baseline; 49 hours of training give a small gain."""
    assert net_wins(real)
    assert real.attrs["test_fields"] == 67
    assert float(real.skill.sel(scheme="CNN")) > 0.02
    assert 1.20 < float(real["rmse"].sel(scheme="conservative bicubic")) < 1.22
    assert abs(float(real["bias"].sel(scheme="CNN"))) < 1e-4


@pytest.mark.slow
def test_the_real_figure_is_not_marked_synthetic(real):
    figure, panels = STUDY.axes("fast")
    draw_fields(real, panels)
    assert "AROME-MetCoOp" in figure.get_suptitle()
    assert "SYNTHETIC" not in figure.get_suptitle()
    assert "LocallyScaled" in figure.get_suptitle()
    assert [ax.get_title() for ax in panels[0]][-4:] == [
        "one draw",
        "truth, 2.5 km",
        "CNN − truth",
        "spectra",
    ]
    assert all(ax.collections for ax in panels[:, 1:-1].flat)  # the coast of Norway


@pytest.mark.slow
def test_a_draw_has_short_waves_that_the_estimate_has_not(real):
    shortest = {
        name: cosine_spectrum(field.values, spacing_m=2500.0).energy[-20:].sum()
        for name, field in {
            "truth": real.truth,
            "draw": real.draw,
            "CNN": real.estimate.sel(scheme="CNN"),
        }.items()
    }
    assert shortest["CNN"] < 0.01 * shortest["truth"]
    assert 0.3 < shortest["draw"] / shortest["truth"] < 1.5  # 0.39
