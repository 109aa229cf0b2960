"""Collectives by their equations: published figures, bounds, and the best pattern of all."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wse.machine import collective

SIZES = st.integers(1, 200)


def test_a_row_of_wse_2_by_the_published_equation():
    # From the published form of the model, with one word.
    assert collective.reduce((757, 1), 1, "chain").model_cycles == 4537
    assert collective.reduce((757, 1), 1, "two-phase").model_cycles == pytest.approx(1027, abs=1)
    assert collective.broadcast((757, 1)).cycles == 1 + 756 + 5


def test_an_all_reduce_over_the_wafer_takes_microseconds():
    whole = collective.all_reduce((757, 996))
    assert whole.cycles >= collective.hop_bound_cycles((757, 996)) == 3502
    assert 4.1e-6 < whole.seconds(850e6) < 4.8e-6


def test_the_hop_bound_to_the_centre_of_the_stencil_solver():
    # BiCGStab on CS-1 used 600 x 595 elements; its all-reduce took below about 1.5 us (recalled).
    cycles = collective.hop_bound_cycles((600, 595), centre=True)
    assert cycles == pytest.approx(1196, abs=2)
    assert cycles / 850e6 < 1.5e-6


def test_each_pattern_is_best_somewhere():
    best = {
        collective.reduce((pes, 1), words).patterns[0]
        for pes in (4, 16, 64, 256, 757)
        for words in (1, 10, 100, 1000, 10_000)
    }
    assert best == set(collective.PATTERNS)


@example(5, 1, 3)  # a star of short vectors waits for the farthest
@given(SIZES, SIZES, st.integers(1, 3))
def test_the_best_is_no_slower_than_any_and_none_beats_the_hops(pes, words, spacing):
    cycles = {
        pattern: collective.reduce((pes, 1), words, pattern, spacing=spacing).cycles
        for pattern in collective.PATTERNS
    }
    best = collective.reduce((pes, 1), words, spacing=spacing).cycles
    assert best == min(cycles.values())
    if pes > 1:
        assert best >= words + (pes - 1) * spacing
        assert best >= words * 1 + collective.MESSAGE_CYCLES


@given(SIZES, SIZES, st.sampled_from(collective.PATTERNS))
def test_more_words_or_elements_never_take_less(pes, words, pattern):
    one = collective.reduce((pes, 1), words, pattern).cycles
    assert collective.reduce((pes, 1), words + 1, pattern).cycles >= one
    if pattern in ("star", "chain"):
        assert collective.reduce((pes + 1, 1), words, pattern).cycles >= one


@given(SIZES, SIZES, SIZES)
def test_two_axes_follow_each_other(columns, rows, words):
    both = collective.reduce((columns, rows), words).cycles
    assert both == sum(
        collective.reduce(shape, words).cycles for shape in ((columns, 1), (rows, 1))
    )
    everywhere = collective.all_reduce((columns, rows), words).cycles
    assert everywhere == both + collective.broadcast((columns, rows), words).cycles


def test_alone_there_is_nothing_to_do():
    assert collective.all_reduce((1, 1), 100).cycles == 0


@pytest.mark.parametrize(
    ("shape", "words", "pattern", "match"),
    [
        ((0, 1), 1, None, "columns is 0"),
        ((1, 0), 1, None, "rows is 0"),
        ((2, 2), 0, None, "words is 0"),
        ((2, 2), 1, "ring", "pattern is 'ring'"),
    ],
)
def test_wrong_input_is_refused(shape, words, pattern, match):
    with pytest.raises(ValueError, match=match):
        collective.reduce(shape, words, pattern)
