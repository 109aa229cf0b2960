"""A user's YAML: plain values, bounded, each number what it says."""

import time

import pytest

from wse import _document
from wse._document import read


def written(tmp_path, text: str):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    return path


def test_anchors_and_merges_stay_legal(tmp_path):
    text = "base: &b {a: 1, c: [x, y]}\nmine: {<<: *b, a: 2}\nagain: *b\n"
    found = read(written(tmp_path, text))
    assert found["mine"] == {"a": 2, "c": ["x", "y"]}
    assert found["again"] == {"a": 1, "c": ["x", "y"]}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[(text, text) for text in ("1:30:00", "1:30.5", "010", "1e-3")],
        *[("0x1f", 31), ("0b11", 3), ("1_000", 1000), ("0", 0), ("-7", -7), ("2020", 2020)],
        *[("+1.5", 1.5), ("1.0e-3", 1e-3), (".5", 0.5), ("-.inf", float("-inf")), ("1.e3", 1e3)],
    ],
)
def test_numbers_are_those_on_which_versions_of_yaml_agree(tmp_path, text, value):
    found = read(written(tmp_path, f"key: {text}\n"))["key"]
    assert (found, type(found)) == (value, type(value))


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9)
)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (BOMB, "line 5: aliases expand to more than 100000 values"),
        ("a: " + "[" * 5000, "line 1: values lie more than 100 deep in each other"),
        ("a: [" + "1, " * 300_000 + "1]", "line 1: there are more than 10000 values"),
        ("a: " + "9" * 5000, "line 1: a number has 5000 digits"),
        ("a: &a [*a]", "line 1: a value holds itself"),
        ("a: 1\nb: 2\na: 3", "line 1: the key 'a' is there 2 times"),
        ("a: 2020-13-45", "month must be in 1..12"),
        ("a: !!python/object:os.system {}", "only plain values are read"),
    ],
    ids=["aliases", "depth", "flat", "digits", "circle", "twice", "date", "tag"],
)
def test_what_yaml_can_be_abused_for_is_refused_at_once(tmp_path, text, rule):
    began = time.monotonic()
    with pytest.raises(ValueError, match=rule) as caught:
        read(written(tmp_path, text))
    assert time.monotonic() - began < 5
    assert str(tmp_path / "mine.yaml") in str(caught.value)
    assert len(str(caught.value)) < 400


def test_long_values_are_cut_in_messages():
    assert len(_document.short("x" * 10**6)) < 200
    assert len(_document.short([[list(range(100))] * 100] * 100)) < 1000
