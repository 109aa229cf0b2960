"""The stepped mesh: what it computes equals NumPy, what it takes equals the model's cycles."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wse import mesh
from wse.machine import collective
from wse.mesh import Grid, Instruction, Port, Program, Route, Stream
from wse.mesh.code import MOST
from wse.mesh.patterns import receive, send

GRID = Grid(16, 8)  # one size, compiled once; parts of it take part
RAMP = frozenset({Port.RAMP})


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
    routes = {((1, 0), 0): Route(frozenset({Port.WEST}), RAMP)}
    program = Program(GRID, routes, {(1, 0): [receive(0, 4)]}, {}, 4)
    with pytest.raises(RuntimeError, match=r"1 elements, such as \(1, 0\) in .* 0, wait for ever"):
        mesh.simulate(program)


@pytest.mark.usefixtures("untyped")
def test_a_limit_that_is_reached_is_no_deadlock():
    program = mesh.reduce(GRID, whole(0, 8, 16, 4))
    rule = r"the limit of 10 cycles is reached while \d+ elements, such as .* larger limit_cycles"
    with pytest.raises(RuntimeError, match=rule) as caught:
        mesh.simulate(program, limit_cycles=10)
    assert "for ever" not in str(caught.value)
    for limit in (0, -1, 2.5, 10**10):
        with pytest.raises(ValueError, match=r"limit_cycles is .* must be an integer from 1"):
            mesh.simulate(program, limit_cycles=limit)


def test_a_wavelet_without_a_route_is_an_error():
    routes = {((0, 0), 0): Route(frozenset({Port.RAMP}), frozenset({Port.EAST}))}
    with pytest.raises(ValueError, match="without a route"):
        mesh.simulate(Program(GRID, routes, {(0, 0): [send(0, 1)]}, {}, 1))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"words": 0}, "words is 0; it must be a positive integer"),
        ({"memory": {(2, 1): np.ones(2)}}, r"memory of element \(2, 1\) has 2 words; .* has 1"),
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
    ("step", "match"),
    [
        (
            Instruction("move", result=Stream(9999)),
            "result reaches address 9999; .* words 0 to 1: ",
        ),
        (Instruction("move", result=Stream(3)), "result reaches .* 3; .* or pass words=4"),
        (Instruction("move", result=Stream(-1)), "result reaches address -1; .* that Stream$"),
        (Instruction("move", second=Stream(9999)), "second reaches address 9999"),
        (Instruction("add", first=Stream(2)), "first reaches address 2"),
        (Instruction("move", result=Stream(0, 1), inner=3), "second reaches address 2"),
        (Instruction("move", second=Stream(1, -1), inner=3), "second reaches address -1"),
        (
            Instruction("move", second=Stream(0, 0, MOST), outer=MOST),
            "second reaches address 46116",
        ),
        (Instruction("move", source=24), "receives colour 24; a router has 24, from 0"),
        (Instruction("move", target=-1), "sends colour -1; a router has 24"),
        (Instruction("move", source=4), "receives colour 4, .* Port.RAMP among the outputs; "),
        (Instruction("move", target=5), "sends colour 5, .* Port.RAMP among the inputs; "),
        (Instruction("move", source=5, target=5), "sends colour 5, "),
    ],
)
def test_an_instruction_that_cannot_run_is_named(step, match):
    east = frozenset({Port.EAST})
    out, into = Route(RAMP, east), Route(east, RAMP)
    routes = {((3, 1), 4): out, ((3, 1), 5): into}
    code = {(0, 0): [Instruction("move")], (3, 1): [Instruction("move")] * 2 + [step]}
    with pytest.raises(ValueError, match=rf"^element \(3, 1\), instruction 2 \(from 0\):? {match}"):
        Program(GRID, routes, code, {}, 2)


def test_operands_that_are_not_used_may_point_anywhere():
    east, far = frozenset({Port.EAST}), Stream(-1, 77)
    routes = {((0, 0), 0): Route(RAMP, east), ((1, 0), 0): Route(frozenset({Port.WEST}), RAMP)}
    code = {
        (0, 0): [Instruction("move", target=0, first=far, result=far, inner=2)],
        (1, 0): [Instruction("move", source=0, first=far, second=far, inner=2)],
    }
    memory = {place: np.array([place[0] + 5.0, 9.0]) for place in code}
    run = mesh.simulate(Program(GRID, routes, code, memory, 2))
    np.testing.assert_array_equal(run.memory[0, :2], [[5, 9], [5, 9]])


OFFSETS = st.integers(-1, 3)


@settings(deadline=None, max_examples=40)
@given(
    st.integers(1, 30), st.tuples(*[st.builds(Stream, st.integers(-1, 9), OFFSETS, OFFSETS)] * 3),
    st.sampled_from(["move", "add", "multiply", "fma"]), st.integers(1, 4), st.integers(1, 3),
)  # fmt: skip
def test_addresses_in_range_run_as_numpy_and_others_are_refused(words, streams, name, inner, outer):
    first, second, result = streams
    step = Instruction(name, None, None, first, second, result, inner, outer)
    turns = [(i, j) for j in range(outer) for i in range(inner)]
    at = [[s.base + i * s.inner + j * s.outer for s in streams] for i, j in turns]
    used = [address for row in at for address in (row[1:] if name == "move" else row)]
    memory = {(2, 1): np.arange(words) - 3.0}
    if min(used) < 0 or max(used) >= words:
        with pytest.raises(ValueError, match=r"element \(2, 1\), instruction 0 .* reaches address"):
            Program(GRID, {}, {(2, 1): [step]}, memory, words)
        return
    run = mesh.simulate(Program(GRID, {}, {(2, 1): [step]}, memory, words))
    expected = memory[2, 1].astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):  # squares of squares leave float32
        for a, b, to in at:
            x, y = (0 if name == "move" else expected[a]), expected[b]
            values = {"move": y, "add": x + y, "multiply": x * y, "fma": expected[to] + x * y}
            expected[to] = values[name]
    np.testing.assert_array_equal(run.memory[1, 2], expected)
    assert not np.delete(run.memory.reshape(128, -1), 16 + 2, axis=0).any()


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Stream(inner=2.5), "inner of a Stream is 2.5; addresses are whole"),
        (lambda: Stream(2**31), "base of a Stream is 2147483648"),
        (lambda: Instruction("move", inner=2.5), "inner of an instruction is 2.5 turns"),
        (lambda: Instruction("move", outer=2**31), "outer of an instruction is 2147483648 turns"),
        (lambda: Instruction("move", source=0.5), "source of an instruction is 0.5; a colour"),
        (lambda: Instruction("move", inner=True), "inner of an instruction is True turns"),
        (lambda: Grid(2.5), "columns is 2.5; it must be a positive integer"),
        (lambda: Program(GRID, {}, {}, {}, 2.5), "words is 2.5; it must be a positive integer"),
    ],
)
def test_numbers_that_are_not_whole_are_refused(make, match):
    with pytest.raises(ValueError, match=match):
        make()


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


EAST = frozenset({Port.EAST})
MOVE = Instruction("move")


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("fields", "match"),
    [
        (lambda: {"grid": (2, 1)}, r"grid is \(2, 1\); it must be a Grid"),
        (lambda: {"code": [MOVE]}, "code is a list, .*; it must be a dictionary by place"),
        (lambda: {"code": {"a": [MOVE]}}, "a place is 'a'; it must be two integers"),
        (lambda: {"code": {(0.5, 0): [MOVE]}}, r"a place is \(0.5, 0\)"),
        (
            lambda: {"code": {(0, 0): {"main": [MOVE]}}},
            r"element \(0, 0\) is to run a dict, .* without task",
        ),
        (
            lambda: {"code": {(0, 0): MOVE}},
            "is to run a Instruction, .* pass a list of Instructions",
        ),
        (
            lambda: {"code": {(0, 0): [[MOVE] * 2]}},
            "is to run a list, .* without tasks, loops or branches",
        ),
        (lambda: {"code": {(0, 0): "move"}}, "is to run a str, 'move'; "),
        (lambda: {"routes": {(0, 0): Route(RAMP, EAST)}}, "a place is 0; it must be two integers"),
        (
            lambda: {"routes": {((0, 0), 0): (RAMP, EAST)}},
            r"the route of \(\(0, 0\), 0\) is a tuple",
        ),
        (
            lambda: {"routes": {((0, 0), 0): [Route(RAMP, EAST)] * 2}},
            "one Route, which no switch changes",
        ),
        (
            lambda: {"routes": {((0, 0), 0): Route(Port.RAMP, Port.EAST)}},
            "is a Route, .* pass Route",
        ),
        (lambda: {"routes": {((0, 0), 0): Route({"ramp"}, {"east"})}}, "is a Route, .* pass Route"),
        (
            lambda: {"memory": {(0, 0): ["a"]}},
            r"memory of element \(0, 0\) holds .*'a'.*; words are real",
        ),
        (
            lambda: {"memory": {(0, 0): [1j]}},
            "holds .*1j.*; words are real numbers of single precision",
        ),
        (
            lambda: {"memory": {(0, 0): [1.0, 1e39]}},
            "holds .*1e.39.*; words are real numbers of single",
        ),
        (lambda: {"memory": {(0, 0): None}}, "holds None; words are real numbers"),
        (
            lambda: {"memory": {(0, 0): np.ma.masked_greater([1.0, 9.0], 3)}},
            "holds masked; words are real numbers",
        ),
    ],
)
def test_parts_of_another_kind_are_refused(fields, match):
    given = {"grid": GRID, "routes": {}, "code": {}, "memory": {}, "words": 2}
    with pytest.raises(ValueError, match=match):
        Program(**{**given, **fields()})


@pytest.mark.usefixtures("untyped")
def test_operands_of_another_kind_are_refused():
    for fields in ({"second": 3}, {"first": (0, 1)}, {"result": None}):
        with pytest.raises(ValueError, match=r"of an instruction is .*; addresses are a Stream"):
            Instruction("move", **fields)
    with pytest.raises(ValueError, match="hold is 'yes'; it must be True or False"):
        Instruction("move", source=0, hold="yes")
    with pytest.raises(
        TypeError, match=r"what runs is a Kernel; it must be a Program: .*\.program"
    ):
        mesh.simulate(mesh.matvec(Grid(2), np.ones((2, 2)), np.ones(2)))


def test_values_that_are_no_numbers_are_computed_with():
    memory = {(0, 0): [np.nan, np.inf], (1, 0): np.array([True, False])}
    run = mesh.simulate(Program(Grid(2), {}, {}, memory, 2))
    np.testing.assert_array_equal(run.memory[0], [[np.nan, np.inf], [1, 0]])


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(st.integers(0, 23), st.integers(0, 6), st.integers(0, 3), st.integers(0, 3), st.booleans())
def test_a_circle_of_routes_is_refused_and_a_line_is_not(colour, x, y, turns, closed):
    """Round a square of four routers, entered at one of them."""
    ring = [
        ((x, y), "EAST"),
        ((x + 1, y), "SOUTH"),
        ((x + 1, y + 1), "WEST"),
        ((x, y + 1), "NORTH"),
    ]
    ring = [(place, Port[name]) for place, name in ring[turns:] + ring[:turns]]
    routes = {}
    for number, (place, out) in enumerate(ring):
        source = ring[number - 1][1].opposite
        inputs = {Port.RAMP} if number == 0 and not closed else {source, Port.RAMP}
        last = number == 3 and not closed
        routes[place, colour] = Route(frozenset(inputs), RAMP if last else frozenset({out}))
    code = {ring[0][0]: [Instruction("move", target=colour)]}
    if closed:
        with pytest.raises(
            ValueError, match=rf"colour {colour} is routed in a circle of 4 routers"
        ):
            Program(GRID, routes, code, {}, 1)
        return
    code[ring[3][0]] = [Instruction("move", source=colour)]
    assert mesh.simulate(Program(GRID, routes, code, {}, 1)).traffic.sum() > 0


def test_a_size_that_the_grid_does_not_divide_is_refused():
    with pytest.raises(ValueError, match="must divide that"):
        mesh.matvec(GRID, whole(0, 33, 48), whole(0, 48))
    with pytest.raises(ValueError, match="no more than that"):
        mesh.reduce(GRID, whole(0, 9, 16, 1))


@pytest.mark.slow
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
    program = mesh.reduce(GRID, whole(0, 8, 16, 64))
    run, total = mesh.simulate(program), mesh.total(GRID, whole(0, 8 * 16))
    assert max(map(len, map(repr, (program, run, total)))) < 120
    assert repr(run).startswith(f"Run({run.cycles} cycles on 16 x 8 elements")
    said = run._repr_html_()
    assert said.startswith(f"<div><strong>{run!r}")
    assert said.count("<tr>") <= 1 + 13  # a long table shows its first and last rows
    assert f">{run.busy[7, 15]}<" in said
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


def test_lists_are_taken_as_arrays_are():
    grid = Grid(2, 2)
    for kernel, expected in (
        (mesh.total(grid, [1, 2, 3, 4]), 10),
        (mesh.matvec(grid, [[1, 2], [3, 4]], [5, 6]), [17, 39]),
        (mesh.stencil(grid, [[0, 1], [1, 0]], centre=1.0), [[0.5, 1], [1, 0.5]]),
    ):
        np.testing.assert_array_equal(kernel.result(mesh.simulate(kernel.program).memory), expected)
    memory = mesh.simulate(mesh.reduce(grid, [[[1], [2]], [[3], [4]]])).memory
    assert memory[0, 0, 0] == 10


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda g: mesh.total(g, [[1, 2], [3, 4]]), r"values has shape \(2, 2\) .* along value"),
        (lambda g: mesh.matvec(g, [1, 2], [1, 2]), r"matrix has shape \(2,\) .* along m, n"),
        (
            lambda g: mesh.matvec(g, [[1, 2], [3, 4]], [1, 2, 3]),
            "vector has 3 numbers for 2 columns",
        ),
        (
            lambda g: mesh.stencil(g, [["a", "b"]] * 2),
            "field has shape .* type <U1; .* real numbers",
        ),
        (lambda g: mesh.broadcast(g, [1.0, 2.0]), "along rows, columns, words"),
        (lambda g: mesh.reduce(g, np.ones((2, 2, 1), complex)), "type complex128; .* real numbers"),
    ],
)
def test_values_of_another_form_are_refused(make, match):
    with pytest.raises(ValueError, match=match):
        make(Grid(2, 2))
