"""A params file that was written to do harm is refused in one short line, at once."""

import time

import pytest

from wse import _document
from wse.job import read

BOMB = "model:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"  a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9)
)
MERGES = "model:\n  a0: &a0 {x: 1}\n" + "".join(
    f"  a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 10)}]}}\n" for i in range(1, 9)
)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (BOMB, "aliases expand to more than 100000 values"),
        (MERGES, "aliases expand to more than 100000 values"),
        ("model: " + "[" * 5000, "more than 100 deep"),
        ("model: " + "{" * 5000, "more than 100 deep"),
        ("- " * 5000, "more than 100 deep"),
        ("model: &a {b: *a}", "holds itself"),
        ("model: {a: 1, a: 2}", "the key 'a' is there 2 times"),
        ("model: {}\noptimizer: {}\nmodel: {}", "the key 'model' is there 2 times"),
        (b"model: \xff\xfe", "no YAML text in UTF-8"),
        (b"model: \x00", "no YAML text in UTF-8"),
        ("model: {a: 1}".encode("utf-16"), "no YAML text in UTF-8"),
        (b"#" * (_document.MOST_BYTES + 1), "is larger than"),
        ('model: {a: !!int ""}', "a tag that does not fit its value"),
        ("model: {a: !!bool maybe}", "a tag that does not fit its value"),
        ("model: {a: !!timestamp now}", "a tag that does not fit its value"),
        ("model: {a: !<" + "t" * 9000 + "> 1}", "only plain values are read: remove the tag"),
        ("model: *" + "a" * 9000, "found undefined alias"),
        ("model: {a: " + "1" * 5000 + "}", "a number has 5000 digits"),
        ("optimizer: {learning_rate: 0x" + "f" * 9000 + "}", "it must be a plain number"),
        ("optimizer: {learning_rate: " + "x" * 9000 + "}", "it must be a plain number"),
        ("optimizer: " + "x" * 9000, "it must hold names and values"),
        ("runconfig: {max_steps: [" + "1, " * 9000 + "]}", "it must be of type int"),
        ("x" * 900 + ": 1", "which is not known"),
    ],
    ids=range(23),
)
def test_it_is_refused_at_once(tmp_path, text, rule):
    path = tmp_path / "params.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    began = time.process_time()
    with pytest.raises(ValueError, match=rule) as caught:
        read(path)
    assert time.process_time() - began < 10  # bombs take hours
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_anchors_and_merges_are_read(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text(
        "train_input: &in {data_dir: a, batch_size: 4}\n"
        "eval_input: {<<: *in, data_dir: b}\n"
        "model: {hidden_sizes: &s [8, 8], again: *s}\n"
    )
    said = read(path)
    assert (said.eval_input.data_dir, said.eval_input.batch_size) == ("b", 4)
    assert said.model["again"] == [8, 8]
