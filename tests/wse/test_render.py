"""Tables of text."""

from wse import render


def test_columns_align_and_lines_end_where_words_end() -> None:
    lines = render.text(("name", "value", "word"), [("a", "1", ""), ("bb", "10", "x")]).split("\n")
    assert lines == ["name  value  word", "a         1", "bb       10  x"]


def test_html_has_caption_rows_and_notes() -> None:
    shown = render.html("a < b", ("x",), [("1",), ("2",)], ["note & more"])
    assert "<caption>a &lt; b</caption>" in shown
    assert shown.count("<tr>") == 3
    assert "<li>note &amp; more</li>" in shown
