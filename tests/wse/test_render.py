"""Tables of text."""

from wse import _render


def test_columns_align_and_lines_end_where_words_end() -> None:
    lines = _render.text(("name", "value", "word"), [("a", "1", ""), ("bb", "10", "x")]).split("\n")
    assert lines == ["name  value  word", "a         1", "bb       10  x"]


def test_html_has_caption_rows_and_notes() -> None:
    shown = _render.html("a < b", ("x",), [("1",), ("2",)], ["note & more"])
    assert "<strong>a &lt; b</strong>" in shown
    assert shown.count("<tr>") == 3
    assert "<li>note &amp; more</li>" in shown


def test_html_sets_numbers_right_and_words_left_and_names_no_colour() -> None:
    shown = _render.html("c", ("phase", "time"), [("input", "4.6 s"), ("all", "")])
    assert shown.count("text-align:left") == 3
    assert shown.count("text-align:right") == 3
    assert "color" not in shown


def test_without_rows_there_is_no_empty_table() -> None:
    assert "<t" not in _render.html("c", ("verdict", "layer"), [], ["native: add"])
