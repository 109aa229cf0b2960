"""Collectives at the size of a wafer: stepped cycle by cycle, against the model and the paper.

A row of 757 elements is the width of the grid that programs address on WSE-2.
"""

import numpy as np
import pytest

from wse import mesh
from wse.machine import collective

pytestmark = pytest.mark.validation

WIDTH = mesh.Grid(757)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [("star", 1), ("tree", 1), ("tree", 32), ("two-phase", 1), ("two-phase", 64), ("chain", 1)],
)
def test_a_row_of_the_wafer(pattern, words):
    values = np.random.default_rng(0).integers(-9, 10, size=(1, 757, words)).astype(float)
    run = mesh.simulate(mesh.reduce(WIDTH, values, pattern))
    np.testing.assert_array_equal(run.memory[0, 0], values.sum((0, 1)))
    model = collective.reduce((757, 1), words, pattern)
    assert run.cycles == model.cycles
    assert run.cycles == pytest.approx(model.model_cycles, rel=0.34 if pattern == "star" else 0.05)
    if pattern == "chain":
        assert run.cycles == 4537  # what the published equation gives


@pytest.mark.parametrize("words", [1, 48])
def test_an_all_reduce_over_a_rectangle(words):
    values = np.random.default_rng(1).integers(-9, 10, size=(24, 32, words)).astype(float)
    run = mesh.simulate(mesh.all_reduce(mesh.Grid(32, 24), values))
    np.testing.assert_array_equal(run.memory, np.broadcast_to(values.sum((0, 1)), values.shape))
    model = collective.all_reduce((32, 24), words).cycles
    assert run.cycles == model


def test_a_large_product():
    draw = np.random.default_rng(2)
    matrix = draw.integers(-9, 10, size=(320, 320)).astype(float)
    vector = draw.integers(-9, 10, size=320).astype(float)
    kernel = mesh.matvec(mesh.Grid(32, 32), matrix, vector)
    run = mesh.simulate(kernel.program)
    np.testing.assert_array_equal(kernel.result(run.memory), matrix @ vector)
    # The vector comes down, the products are added, the sums go along: all three take their time.
    least = 10 + 31 + 10 * 10 + 31
    assert least < run.cycles < 3 * least
