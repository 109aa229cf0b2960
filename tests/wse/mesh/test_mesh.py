"""The stepped mesh: what it computes equals NumPy, what it takes equals the model's cycles."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wse import mesh
from wse.machine import collective
from wse.mesh import Grid, Instruction, Port, Program, Route, Stream
from wse.mesh.patterns import receive, send

GRID = Grid(16, 8)  # one size, compiled once; parts of it take part


def whole(seed: int, *shape: int) -> np.ndarray:
    """Whole numbers: their sums are exact in any order."""
    return np.random.default_rng(seed).integers(-9, 10, size=shape).astype(float)


@pytest.mark.parametrize("pattern", collective.PATTERNS)
@pytest.mark.parametrize(("pes", "words"), [(2, 1), (4, 5), (7, 16), (11, 2), (16, 1), (16, 64)])
def test_a_row_reduces_in_the_cycles_of_the_model(pattern, pes, words):
    values = whole(pes, 1, pes, words)
    run = mesh.simulate(mesh.reduce(GRID, values, pattern))
    np.testing.assert_array_equal(run.memory[0, 0], values.sum((0, 1)))
    model = collective.reduce((pes, 1), words, pattern)
    assert run.cycles == model.cycles
    assert run.hops == model.phases[0].energy


@pytest.mark.parametrize(("columns", "rows", "words"), [(16, 8, 1), (3, 5, 7), (5, 2, 40)])
def test_a_rectangle_reduces_to_all_in_the_cycles_of_the_model(columns, rows, words):
    values = whole(0, rows, columns, words)
    run = mesh.simulate(mesh.all_reduce(GRID, values))
    part = run.memory[:rows, :columns]
    np.testing.assert_array_equal(part, np.broadcast_to(values.sum((0, 1)), part.shape))
    model = collective.all_reduce((columns, rows), words).cycles
    assert run.cycles == model


def test_a_broadcast_reaches_all_in_the_cycles_of_the_model():
    values = whole(1, 8, 16, 20)
    run = mesh.simulate(mesh.broadcast(GRID, values))
    np.testing.assert_array_equal(run.memory, np.broadcast_to(values[0, 0], values.shape))
    assert run.cycles == collective.broadcast((16, 8), 20).cycles


def test_the_published_form_stays_close_where_words_are_many():
    for pattern in collective.PATTERNS:
        phase = collective.reduce((16, 1), 64, pattern).phases[0]
        assert phase.model_cycles == pytest.approx(phase.cycles, rel=0.1)


def test_a_matrix_times_a_vector_equals_numpy():
    matrix, vector = whole(2, 32, 48), whole(3, 48)
    kernel = mesh.matvec(GRID, matrix, vector)
    run = mesh.simulate(kernel.program)
    np.testing.assert_array_equal(kernel.result(run.memory), matrix @ vector)
    # One multiply-add a cycle: no element can be faster than its own block.
    assert run.cycles > matrix.size / 128
    assert run.busy.sum() >= matrix.size


def test_a_dealt_out_vector_sums_like_numpy():
    values = whole(4, 128 * 5)
    kernel = mesh.total(GRID, values)
    assert kernel.result(mesh.simulate(kernel.program).memory) == values.sum()


@pytest.mark.parametrize("steps", [1, 2])
def test_a_stencil_equals_numpy(steps):
    field = whole(5, 24, 48)
    kernel = mesh.stencil(GRID, field, centre=2.0, neighbours=-1.0, steps=steps)
    run = mesh.simulate(kernel.program)
    for _ in range(steps):
        u = np.pad(field, 1)
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        field = 2 * field - around
    np.testing.assert_array_equal(kernel.result(run.memory), field)


def test_one_hop_a_cycle_and_two_cycles_a_ramp():
    cells = [(x, 0) for x in range(9)]
    for hops in (1, 8):
        draft_routes = {(cells[0], 0): Route(frozenset({Port.RAMP}), frozenset({Port.EAST}))}
        for cell in cells[1:hops]:
            draft_routes[cell, 0] = Route(frozenset({Port.WEST}), frozenset({Port.EAST}))
        draft_routes[cells[hops], 0] = Route(frozenset({Port.WEST}), frozenset({Port.RAMP}))
        code = {cells[0]: [send(0, 3)], cells[hops]: [receive(0, 3)]}
        run = mesh.simulate(Program(GRID, draft_routes, code, {(0, 0): np.arange(3.0)}, 3))
        # Three words leave one a cycle; each takes both ramps, its hops and the turn that sends it.
        assert run.cycles == 3 + 2 + 2 + hops + 1
        np.testing.assert_array_equal(run.memory[0, hops], [0, 1, 2])


def test_a_link_carries_one_wavelet_a_cycle_whatever_their_colours():
    west, ramp, east = (frozenset({p}) for p in (Port.WEST, Port.RAMP, Port.EAST))
    routes = {((0, 0), 0): Route(ramp, east), ((1, 0), 0): Route(west, east)}
    routes |= {((1, 0), 1): Route(ramp, east), ((2, 0), 0): Route(west, ramp)}
    routes |= {((2, 0), 1): Route(west, ramp)}
    code = {(0, 0): [send(0, 32)], (1, 0): [send(1, 32)], (2, 0): [receive(1, 32), receive(0, 32)]}
    memory = {(0, 0): np.ones(32), (1, 0): 2 * np.ones(32)}
    run = mesh.simulate(Program(GRID, routes, code, memory, 32))
    assert run.traffic[0, 1, Port.EAST] == 64
    assert run.cycles > 64
    assert run.traffic.max() <= run.cycles


@pytest.mark.usefixtures("untyped")
def test_elements_that_wait_for_each_other_are_named():
    program = Program(GRID, {}, {(1, 0): [receive(0, 4)]}, {}, 4)
    with pytest.raises(RuntimeError, match=r"\[1, 0\].* wait for ever"):
        mesh.simulate(program)


def test_a_wavelet_without_a_route_is_an_error():
    routes = {((0, 0), 0): Route(frozenset({Port.RAMP}), frozenset({Port.EAST}))}
    with pytest.raises(ValueError, match="without a route"):
        mesh.simulate(Program(GRID, routes, {(0, 0): [send(0, 1)]}, {}, 1))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"words": 12_289}, "each element needs 49156 bytes; it has 49152"),
        ({"code": {(16, 0): []}}, "off the grid"),
        ({"routes": {((0, 0), 24): Route(frozenset(), frozenset())}}, "a router has 24"),
        ({"routes": {((0, 0), 0): Route(frozenset(), frozenset({Port.NORTH}))}}, "north, off"),
    ],
)
def test_what_the_hardware_lacks_is_refused(change, match):
    fields = {"grid": GRID, "routes": {}, "code": {}, "memory": {}, "words": 1}
    with pytest.raises(ValueError, match=match):
        Program(**{**fields, **change})


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"operation": "divide"}, "operation is 'divide'"),
        ({"operation": "add", "inner": 0}, "at least one"),
        ({"operation": "add", "hold": True}, "hold needs"),
        ({"operation": "fma", "target": 1}, "cannot send"),
    ],
)
def test_instructions_that_mean_nothing_are_refused(fields, match):
    with pytest.raises(ValueError, match=match):
        Instruction(**fields)


def test_a_size_that_the_grid_does_not_divide_is_refused():
    with pytest.raises(ValueError, match="must divide that"):
        mesh.matvec(GRID, whole(0, 33, 48), whole(0, 48))
    with pytest.raises(ValueError, match="no more than that"):
        mesh.reduce(GRID, whole(0, 9, 16, 1))


@settings(deadline=None, max_examples=8)
@given(
    st.integers(1, 16), st.integers(1, 8), st.integers(1, 64), st.sampled_from(collective.PATTERNS)
)
def test_any_part_of_the_grid_sums(columns, rows, words, pattern):
    values = whole(columns, rows, columns, words)
    run = mesh.simulate(mesh.reduce(GRID, values, pattern))
    np.testing.assert_array_equal(run.memory[0, 0], values.sum((0, 1)))
    model = collective.reduce((columns, rows), words, pattern)
    assert run.cycles == model.cycles
    assert run.hops == sum(
        phase.energy * (rows if n == 0 and columns > 1 else 1)
        for n, phase in enumerate(model.phases)
    )


def test_the_heat_map_shows_elements_and_links():
    run = mesh.simulate(mesh.reduce(GRID, whole(0, 8, 16, 64)))
    ax = run.figure()
    assert ax.get_xlabel() == "column"
    (links,) = ax.collections
    assert len(links.get_segments()) == 8 * 15 + 7
    assert run.busy_share.max() <= 1


def test_streams_step_through_memory():
    # The second column of a 3 x 2 block into the first.
    step = Instruction("move", second=Stream(1, 2), result=Stream(0, 2), inner=3)
    run = mesh.simulate(Program(GRID, {}, {(0, 0): [step]}, {(0, 0): np.arange(6.0)}, 6))
    np.testing.assert_array_equal(run.memory[0, 0], [1, 1, 3, 3, 5, 5])
    assert run.cycles == 3
