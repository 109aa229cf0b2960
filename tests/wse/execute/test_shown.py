"""What an executor, its states and its records show of themselves: a line, or a short table."""

from html.parser import HTMLParser

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import wse

LAYERS = 20
WEIGHTS = {f"w<{i}>": np.full((6, 6), 0.1, "f4") for i in range(LAYERS)}
BATCH = np.ones((4, 6), "f4")


def loss(params, batch):
    for weight in params.values():
        batch = jnp.tanh(batch @ weight)
    return jnp.mean(batch**2)


class Cells(HTMLParser):
    """The rows of a table, as text."""

    def __init__(self, page):
        super().__init__()
        self.rows = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_data(self, data):
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


@pytest.mark.parametrize("mode", ["streaming", "pipelined"])
def test_an_executor_and_its_states_are_a_line_or_a_short_table(mode):
    executor = wse.CS2(2, mode).executor(loss, WEIGHTS, BATCH, optax.adam(1e-3))
    made = dict(Cells(executor._repr_html_()).rows)
    assert made["parameters"] == "720"
    assert made["samples of a batch"] == "4, 2 for each system"
    assert made["last step"] == "none yet"
    first = executor.init(WEIGHTS)
    state, _ = executor.train_step(first, BATCH)
    assert dict(Cells(executor._repr_html_()).rows)["last step"] == repr(executor.run)
    for shown in (executor, executor.run, first, state):
        assert "\n" not in repr(shown)
        assert len(repr(shown)) < 300
        assert len(shown._repr_html_()) < 4000
    assert f"{LAYERS} weights" in repr(state)
    # Weights and two moments of Adam, four bytes each; its count of steps.
    assert f"{3 * 720 * 4 + 4:,} bytes" in repr(state)
    rows = Cells(state._repr_html_()).rows
    assert rows[1] == ["w<0>", "float32", "6 × 6", "36"]
    assert ["…"] * 4 in rows
    assert len(rows) < LAYERS


def test_one_array_and_a_number_have_rows_too():
    executor = wse.CS2().executor(lambda p, x: jnp.mean(x * p), np.float32(2), BATCH, optax.sgd(1))
    rows = Cells(executor.init(np.float32(2))._repr_html_()).rows
    assert rows[1:] == [["it", "float32", "a number", "1"]]
