"""The field viewer: its numbers are those of the scores; it stands still without widgets."""

import io

import numpy as np
import pytest
from PIL import Image

from sciml import diagnose, wind
from sciml.figure import FieldViewer, view

WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(scope="module")
def truth():
    speed = wind.gaussian(seed=0, snapshots=3, n=32).wind_speed
    return speed.assign_coords(time=[0.0, 6.0, 12.0])


@pytest.fixture(scope="module")
def guesses(truth):
    coarse = wind.block_mean(truth.values, 4)
    return {
        "block": np.asarray(wind.block(coarse, 4)),
        "bicubic": np.asarray(wind.bicubic(coarse, 4)),
    }


@pytest.fixture(scope="module")
def viewer(truth, guesses) -> FieldViewer:
    return view(truth, guesses, 4)


def test_panels_show_coarse_estimate_truth_error_and_spectra(viewer, truth, guesses):
    figure = viewer.figure(1, "block")
    images = [np.asarray(ax.images[0].get_array()) for ax in figure.axes if ax.images]
    fields = [wind.block_mean(truth.values, 4)[1], guesses["block"][1], truth.values[1]]
    for shown, field in zip(images, [*fields, fields[1] - fields[2]], strict=True):
        np.testing.assert_allclose(shown, field, atol=1e-5)
    spectra = figure.axes[-1]
    found = diagnose.cosine_spectrum(truth.values[1], spacing_m=viewer.spacing_m)
    np.testing.assert_allclose(spectra.lines[0].get_ydata(), found.energy, rtol=1e-4)
    assert spectra.get_xlabel() == "wavelength (km)"


def test_fields_share_one_scale_and_the_error_is_symmetric_about_zero(viewer):
    *speeds, error = [ax.images[0].get_clim() for ax in viewer.figure().axes if ax.images]
    assert len(set(speeds)) == 1
    assert error[0] == -error[1] < 0


def test_scores_are_those_of_the_diagnoses(viewer, truth, guesses):
    shown = viewer.table(2)
    for guess in guesses.values():
        assert f"{diagnose.rmse(guess[2], truth.values[2]):.4g}" in shown
    assert "hour 12.0 of the run" in shown


def test_a_slider_and_buttons_redraw(viewer):
    pytest.importorskip("ipywidgets")
    row, picture, table = viewer.widget().children
    samples, schemes = row.children
    seen = {(picture.value, table.value)}
    schemes.value = "block"
    seen.add((picture.value, table.value))
    samples.value = 2
    seen.add((picture.value, table.value))
    assert len(seen) == 3
    with Image.open(io.BytesIO(picture.value)) as drawn:
        assert drawn.size == (864, 486)


def test_a_notebook_gets_widgets_and_a_still_figure(viewer):
    pytest.importorskip("ipywidgets")
    shown = viewer._repr_mimebundle_()
    assert {WIDGET, "image/png"} <= set(shown)
    assert shown["text/plain"] == "FieldViewer(3 samples, block, bicubic)"


def test_without_widgets_the_figure_stands_still(viewer, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert set(viewer._repr_mimebundle_()) == {"image/png", "text/plain"}


def test_arrays_need_a_spacing_and_are_numbered(truth, guesses):
    made = view(truth.values, guesses, 4, spacing_m=1000.0)
    assert made.names == ("sample 0", "sample 1", "sample 2")
    with pytest.raises(ValueError, match="spacing_m is not given"):
        view(truth.values, guesses, 4)


def test_what_does_not_fit_is_refused(viewer, truth, guesses):
    with pytest.raises(ValueError, match="estimate 'low' has shape"):
        view(truth, {"low": guesses["block"][:, ::4, ::4]}, 4)
    with pytest.raises(ValueError, match="there is no estimate"):
        view(truth, {}, 4)
    with pytest.raises(ValueError, match="sample is 3; it must be from 0 to 2"):
        viewer.figure(3)
    with pytest.raises(ValueError, match="scheme is 'net'; it must be one of block, bicubic"):
        viewer.table(0, "net")
