"""Which machine: crossovers, Table 4, energy, cost, refusals."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wse
from wse.choose import Candidate, Comparison
from wse.machine import processors
from wse.workload import dense

# Table 4 of the OSTI brief: units, set-up of the CS-2, samples per second of CPU and CS-2.
TABLE4 = (
    (32, 173.7, 47_577.9, 204_956.5),
    (128, 173.0, 20_864.8, 217_493.3),
    (512, 185.4, 4_512.1, 174_454.2),
    (2048, 801.5, 388.2, 112_483.5),
)


@pytest.mark.parametrize(("units", "setup_s", "cpu", "wafer"), TABLE4)
def test_the_crossover_of_table_4(units: int, setup_s: float, cpu: float, wafer: float):
    published = setup_s / (1 / cpu - 1 / wafer)
    found = wse.compare(dense(width=units), machines=["table 4 cpu", "cs2"])
    (start, first), (crossing, second) = found.wins
    assert (start, first, second) == (0, "Table 4 CPU", "CS-2")
    assert crossing == pytest.approx(published, rel=0.25)
    low, high = found.candidates[1].interval_from(found.candidates[0])
    assert low < published < high


seconds = st.floats(1e-6, 1e3)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(seconds, seconds), min_size=1, max_size=6), st.integers(1, 10**9))
def test_the_winner_is_the_fastest_at_every_number_of_samples(machines, samples):
    each = tuple(Candidate(str(i), (a,) * 3, (b / 1e3,) * 3) for i, (a, b) in enumerate(machines))
    found = Comparison("net", samples, each)
    *_, (_, name) = [(at, name) for at, name in found.wins if at <= samples]
    named = next(one for one in each if one.name == name)
    least = min(one.total_s(samples)[1] for one in each)
    assert named.total_s(samples)[1] == pytest.approx(least, rel=1e-9)
    assert [at for at, _ in found.wins] == sorted(at for at, _ in found.wins)


@settings(deadline=None, max_examples=40)
@given(seconds, seconds, seconds, seconds)
def test_at_the_crossover_both_take_as_long(a, b, c, d):
    one, other = Candidate("one", (a,) * 3, (b,) * 3), Candidate("other", (c,) * 3, (d,) * 3)
    at = one.beats_from(other)
    if 0 < at < math.inf:
        assert one.total_s(at)[1] == pytest.approx(other.total_s(at)[1], rel=1e-6)
        assert other.beats_from(one) == math.inf


def test_energy_and_cost_are_power_and_price_by_time():
    net = dense(width=256)
    asked = ["cs2", "2 x h100", "cpu node"]
    found = wse.compare(net, machines=asked, price={"h100": 3.0, "cs2": 60}).dataset
    again = wse.compare(net, machines=asked[::-1], samples=2_000_000).dataset
    pair = found.sel(machine="2 x H100", bound="estimate")
    assert float(pair.energy_kwh) == pytest.approx(float(pair.total_s) * 1400 / 3.6e6)
    assert float(pair.cost) == pytest.approx(float(pair.total_s) * 6.0 / 3600)
    assert math.isnan(float(found.cost.sel(machine="CPU node", bound="estimate")))
    for name in found.machine.values:  # neither the order nor the samples change a machine's rate
        for key in ("setup_s", "sample_s"):
            np.testing.assert_allclose(
                found[key].sel(machine=name), again[key].sel(machine=name), rtol=1e-6
            )
    assert bool((found.total_s.diff("bound") >= 0).all())


@pytest.mark.parametrize("written", ["8 x h100", "8xH100", "8*h100", "8 × h100", "8X H100"])
def test_what_does_not_fit_is_listed_with_its_reason(written):
    found = wse.compare("GPT-J-6B", machines=["h100", written], batch=64)
    assert found.fastest == "8 x H100"
    assert "pass '2 x H100' or more" in found.dataset.refused.sel(machine="H100").item()
    assert not bool(found.dataset.fits.sel(machine="H100"))
    assert "H100 cannot: GPT-J-6B needs" in str(found)
    assert "<table>" in found._repr_html_()
    assert json.loads(json.dumps(found.document()))["machines"][0]["setup_s"] == [None] * 3
    assert wse.compare("GPT-J-6B", machines=["2 x h100"], batch=64).able


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"machines": ["h10"]}, "did you mean 'h100'"),
        ({"machines": []}, "empty; pass one or more"),
        ({"machines": ["cs2", "CS-2"]}, "'CS-2' twice"),
        ({"machines": ["cs2"], "samples": 0}, "samples is 0"),
        ({"machines": ["cs2"], "samples": True}, "samples is True"),
        ({"machines": ["cs2"], "batch": 0}, "batch is 0"),
        ({"machines": ["cs2"], "batch": 2_000_000}, "batch is 2000000 with 1000000 samples"),
        ({"machines": ["cs2"], "price": {"h100": 2}}, "which is not compared"),
        ({"machines": ["cs2"], "price": {"cs2": -1}}, "price of 'cs2' is -1"),
        ({"machines": ["8 x h100"], "price": {"8 x h100": 20}}, r"8 devices.*\{'H100': 2\.5\}"),
        ({"machines": ["cs2"], "price": {"cs2": 1, "CS-2": 2}}, "price names 'CS-2' twice"),
        ({"machines": ["cs2"], "price": {"cs2": float("nan")}}, "price of 'cs2' is nan"),
        ({"machines": ["8 x h100"], "batch": 100}, "they must divide it: pass batch=104"),
    ],
)
def test_nonsense_is_refused(options, match):
    with pytest.raises(ValueError, match=match):
        wse.compare(dense(), **options)


def test_what_is_no_model_is_told_so_and_not_of_its_batch():
    pair = {"init": None, "apply": None}
    with pytest.raises(ValueError, match=r"model is a dict; it must be a wse.workload"):
        wse.compare(pair, {"w": np.ones((3, 2))}, np.ones((8, 3)))


def test_a_figure_has_a_line_to_a_machine_and_a_dot_to_a_crossing():
    found = wse.compare(dense(width=512), machines=["table 4 cpu", "cs2", "h100"])
    ax = found.draw()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        one.name for one in found.able
    ]
    dots = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o"]
    assert dots == [at for at, _ in found.wins if at >= 1]


def test_wafers_refuse_what_only_processors_are_and_the_other_way_round():
    with pytest.raises(ValueError, match="no wafer"):
        wse.inference(dense(), machine="h100")
    with pytest.raises(ValueError, match="systems is 0"):
        processors.Processors(processors.H100, 0)
    assert wse.specification.find("4 x cs2").systems == 4
