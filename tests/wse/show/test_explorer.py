"""The explorer: its numbers are those of estimate and sweep; it stands still without widgets."""

import gc
import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import wse
from wse.models import shapes
from wse.show import controls, explorer
from wse.show.explorer import SYSTEMS, Choice, Explorer, explore


@pytest.fixture(scope="module")
def gpt() -> Explorer:
    return explore(shapes.get("GPT-J-6B"), batch=128)


def test_its_numbers_are_those_of_the_estimate(gpt):
    choice = Choice("CS-3", systems=4, batch=128, density=0.25)
    machine = wse.CS3(4, mode="streaming")
    said = wse.estimate(shapes.get("GPT-J-6B").sparse(0.25), batch=128, machine=machine)
    assert gpt.estimate(choice).summary() == said.summary()
    assert f"{said.samples_per_s:,.4g}" in gpt.table(choice)


def test_rates_over_systems_are_those_of_a_sweep_with_a_growing_batch(gpt):
    curve = gpt.figure(Choice(systems=2, batch=128)).axes[1].lines[0]
    assert list(curve.get_xdata()) == list(SYSTEMS)
    rates = curve.get_ydata()
    found = wse.sweep(shapes.get("GPT-J-6B"), [64 * n for n in SYSTEMS], systems=SYSTEMS)
    own = [float(found.samples_per_s.sel(batch=64 * n, systems=n).squeeze()) for n in SYSTEMS]
    assert np.allclose(rates, own)
    assert np.all(np.diff(rates) > 0)


def test_the_figure_is_a_picture_with_labelled_axes(gpt):
    figure = gpt.figure(gpt.choice)
    labels = [(ax.get_xlabel(), ax.get_ylabel()) for ax in figure.axes]
    assert labels == [("time, set-up grey (h)", ""),
                      ("systems, weight streaming", "samples per second")]  # fmt: skip
    with Image.open(io.BytesIO(gpt.png(gpt.choice))) as picture:
        assert picture.size == (774, 306)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [({"systems": 3}, "divide"), ({"mode": "pipelined", "systems": 2}, "pass systems=1")],
)
def test_what_cannot_be_is_said_in_place_of_numbers(gpt, changes, rule):
    choice = replace(gpt.choice, **changes)
    assert rule in gpt.table(choice)
    assert rule in gpt.figure(choice).texts[0].get_text().replace("\n", " ")


def test_sliders_redraw_the_figure(gpt):
    pytest.importorskip("ipywidgets")
    row, picture, table = gpt.widget().children
    parts = {part.description: part for part in row.children}
    assert set(parts) == {"machine", "mode", "systems", "batch", "density"}
    before = picture.value, table.value
    parts["systems"].value = 8
    assert picture.value != before[0]
    assert "8 x CS-2" in table.value


def test_the_figure_and_the_table_share_an_estimate(gpt, monkeypatch):
    asked = []

    def counted(*args, **more):
        asked.append(more["machine"].systems)
        return wse.estimate(*args, **more)

    monkeypatch.setattr(explorer, "estimate", counted)
    choice = replace(gpt.choice, systems=16, density=0.05)
    gpt.png(choice)
    gpt.table(choice)
    assert asked == [16]


def test_a_dense_net_starts_pipelined_and_a_traced_function_is_taken():
    import jax.numpy as jnp

    dense = explore(wse.workload.dense(width=512))
    assert dense.choice.mode == "pipelined"
    assert "CS-2" in dense.table(dense.choice)

    def loss(w, x):
        return jnp.mean(jnp.tanh(x @ w) ** 2)

    traced = explore(loss, jnp.ones((8, 4)), jnp.ones((16, 8)))
    assert traced.choice.batch == 16
    assert traced.estimate(traced.choice).samples_per_s > 0


WIDGET = "application/vnd.jupyter.widget-view+json"


def test_a_notebook_gets_sliders_and_a_still_figure(gpt):
    pytest.importorskip("ipywidgets")
    shown = gpt._repr_mimebundle_()
    assert {WIDGET, "image/png"} <= set(shown)
    assert shown["text/plain"] == "Explorer(GPT-J-6B)"


def test_without_widgets_the_figure_stands_still(gpt, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert set(gpt._repr_mimebundle_()) == {"image/png", "text/plain"}


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_is_collected_after_a_redraw_and_not_within(enabled):
    before, seen = gc.isenabled(), []
    (gc.enable if enabled else gc.disable)()
    try:
        with pytest.raises(ZeroDivisionError), controls.uncollected():
            seen.append(gc.isenabled())
            1 / 0  # noqa: B018
        assert seen == [False]
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()
