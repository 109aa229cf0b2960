"""The clock of the mesh: one cycle of all elements and routers at once, until nothing moves.

In a cycle each element does at most one turn of one instruction, each router sends at most one
wavelet over each of its links, and a wavelet crosses one link. Queues hold four wavelets of a
colour at each port; where the next queue is full, a wavelet waits. A wavelet that goes several ways
leaves each way as it becomes free. Of those that want the same link, the router's own ramp comes
before the links, and low colours before high ones. All decisions are taken on the state at the
start of the cycle. The result of a turn reaches the router after that cycle and the ramp's.
"""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from wse.mesh.code import MOST, Port, whole
from wse.mesh.program import Program
from wse.mesh.result import Run

QUEUE = 4  # wavelets of one colour at one port; assumed: enough to send one a cycle
DOWN = 5  # after the five ports: the queue from router to element
ORDER = (Port.RAMP, Port.NORTH, Port.EAST, Port.SOUTH, Port.WEST)  # who goes first


class State(NamedTuple):
    """The mesh between two cycles; arrays over (row, column, ...).

    Attributes:
        cycle: cycles so far.
        last: the cycle after the last turn.
        quiet: cycles since anything moved.
        stray: wavelets that met a router that has no route for them.
        data: queued wavelets, by colour, port and place in the queue.
        ready: the cycle from which each may go on.
        count: wavelets in each queue.
        served: by colour, port and output: where the first wavelet of a queue has gone already.
        memory: words of the elements.
        place: the instruction of each element, and its turns of both loops.
        held: the wavelet last received.
        busy: turns done by each element.
        traffic: wavelets sent over each output port.
    """

    cycle: Any
    last: Any
    quiet: Any
    stray: Any
    data: Any
    ready: Any
    count: Any
    served: Any
    memory: Any
    place: Any
    held: Any
    busy: Any
    traffic: Any


def simulate(program: Program, *, limit_cycles: int = 1_000_000) -> Run:
    """Run a program, cycle by cycle.

    Args:
        program: what runs.
        limit_cycles: when to give up.

    Returns:
        Cycles, memory, and what each element and link was busy with.

    Raises:
        TypeError: no program.
        ValueError: a wavelet without a route, or a limit that is no positive integer.
        RuntimeError: the elements wait for each other for ever, or the limit is reached.

    >>> import numpy as np
    >>> from wse import mesh
    >>> program = mesh.reduce(mesh.Grid(columns=4), np.ones((1, 4, 2)), "chain")
    >>> run = mesh.simulate(program)
    >>> run.memory[0, 0].tolist()
    [4.0, 4.0]
    """
    given: Any = program
    if not isinstance(given, Program):
        raise TypeError(
            f"what runs is a {type(given).__name__}; it must be a Program: pass "
            "mesh.reduce(grid, values), or kernel.program"
        )
    if not (whole(limit_cycles) and limit_cycles > 0):
        raise ValueError(
            f"limit_cycles is {limit_cycles!r}; it must be an integer from 1 to {MOST}: pass 1000"
        )
    arrays = program.arrays()
    memory = arrays.pop("memory")
    start = _start(memory, arrays["outputs"].shape[2])
    quiet = program.grid.ramp_cycles + 3  # nothing can be under way longer without an event
    state = jax.device_get(
        _run(start, arrays, program.grid.ramp_cycles, quiet, jnp.int32(limit_cycles))
    )
    if state.stray:
        raise ValueError(
            f"{state.stray} wavelets met a router without a route for them; "
            "every colour that arrives needs that port among its inputs"
        )
    if not np.array_equal(state.place[..., 0], arrays["length"]) or state.count.any():
        raise RuntimeError(_unfinished(state, arrays["length"], state.quiet >= quiet))
    here = (slice(program.grid.rows), slice(program.grid.columns))
    memory = state.memory[(*here, slice(program.words))]
    return Run(program, int(state.last), memory, state.busy[here], state.traffic[here])


def _unfinished(state: State, length: np.ndarray, stuck: bool) -> str:
    """What to say of a run that did not end: nothing can move any more, or the limit came."""
    rows, columns = np.nonzero(state.place[..., 0] < length)
    named = ", ".join(
        f"({x}, {y}) in instruction {state.place[y, x, 0]}"
        for x, y in zip(columns[:3], rows[:3], strict=True)
    )
    elements = f"{len(rows)} elements" + (f", such as {named}," if named else "")
    wavelets = f"{state.count.sum()} wavelets"
    if stuck:
        return (
            f"after {state.cycle} cycles {elements} wait for ever and {wavelets} are left over: "
            "check that sends and receives match, and that neighbours do not both send first"
        )
    return (
        f"the limit of {state.cycle} cycles is reached while {elements} are not done and "
        f"{wavelets} are under way: pass a larger limit_cycles"
    )


def _start(memory: np.ndarray, colours: int) -> State:
    shape = memory.shape[:2]
    zero = jnp.int32(0)
    return State(
        cycle=zero,
        last=zero,
        quiet=zero,
        stray=zero,
        data=jnp.zeros((*shape, colours, 6, QUEUE), jnp.float32),
        ready=jnp.zeros((*shape, colours, 6, QUEUE), jnp.int32),
        count=jnp.zeros((*shape, colours, 6), jnp.int32),
        served=jnp.zeros((*shape, colours, 5, 5), bool),
        memory=jnp.asarray(memory),
        place=jnp.zeros((*shape, 3), jnp.int32),
        held=jnp.zeros(shape, jnp.float32),
        busy=jnp.zeros(shape, jnp.int32),
        traffic=jnp.zeros((*shape, 5), jnp.int32),
    )


@partial(jax.jit, static_argnums=(2, 3))
def _run(start: State, arrays: Any, ramp: int, quiet: int, limit: Any) -> State:
    def goes_on(state: State) -> Any:
        done = jnp.all(state.place[..., 0] >= arrays["length"]) & ~jnp.any(state.count)
        return ~done & (state.quiet < quiet) & (state.cycle < limit) & (state.stray == 0)

    return jax.lax.while_loop(goes_on, partial(_cycle, arrays, ramp), start)


def _cycle(arrays: Any, ramp: int, state: State) -> State:
    """One cycle: elements and routers decide on the old state, then all moves happen."""
    turn = _turn(arrays, state)
    grant, done = _arbitrate(arrays, state)
    heads = state.data[..., :5, 0]
    push = jnp.any(grant, axis=-2)  # by colour and output
    value = jnp.einsum("yxkio,yxki->yxko", grant.astype(heads.dtype), heads)
    arriving, values = _arrivals(push, value, turn)
    now = state.cycle
    delay = jnp.array([1, 1, 1, 1, 1 + ramp, ramp], jnp.int32)
    popped = jnp.concatenate([done, turn.popped[..., None]], axis=-1)
    served = (state.served | grant) & ~done[..., None]
    data, ready, count = _shift(state, popped)
    slot = jax.nn.one_hot(count, QUEUE, dtype=bool) & arriving[..., None]
    stray = jnp.sum(arriving[..., :5] & ~arrays["inputs"])
    moved = jnp.any(grant) | jnp.any(turn.runs)
    return State(
        cycle=now + 1,
        last=jnp.where(jnp.any(turn.runs), now + 1, state.last),
        quiet=jnp.where(moved, 0, state.quiet + 1),
        stray=state.stray + stray,
        data=jnp.where(slot, values[..., None], data),
        ready=jnp.where(slot, (now + delay)[:, None], ready),
        count=count + arriving,
        served=served,
        memory=turn.memory,
        place=turn.place,
        held=turn.held,
        busy=state.busy + turn.runs,
        traffic=state.traffic + jnp.sum(push, axis=-2),
    )


class _Turn(NamedTuple):
    """What the elements do in one cycle."""

    runs: Any
    popped: Any  # by colour
    sends: Any  # by colour
    value: Any
    memory: Any
    place: Any
    held: Any


def _turn(arrays: Any, state: State) -> _Turn:
    colours = state.count.shape[2]
    at, i, j = (state.place[..., n] for n in range(3))
    code = jnp.take_along_axis(arrays["code"], at[..., None, None], axis=2)[:, :, 0]
    operation, source, target, inner, outer, hold = (code[..., n] for n in range(6))
    first, second, result = (
        code[..., n] + i * code[..., n + 1] + j * code[..., n + 2] for n in (6, 9, 12)
    )
    keeps = (hold > 0) & (i > 0)
    listens = jax.nn.one_hot(source, colours, dtype=bool)
    arrived = (state.count[..., DOWN] > 0) & (state.ready[..., DOWN, 0] <= state.cycle)
    has_input = (source < 0) | keeps | jnp.any(listens & arrived, axis=-1)
    speaks = jax.nn.one_hot(target, colours, dtype=bool)
    free = state.count[..., Port.RAMP] < QUEUE
    has_output = (target < 0) | jnp.any(speaks & free, axis=-1)
    runs = (at < arrays["length"]) & has_input & has_output
    takes = (source >= 0) & ~keeps & runs
    head = jnp.sum(jnp.where(listens, state.data[..., DOWN, 0], 0), axis=-1)
    wavelet = jnp.where(keeps, state.held, head)
    a, b, old = (_read(state.memory, address) for address in (first, second, result))
    x = jnp.where(source >= 0, wavelet, b)
    value = jnp.choose(operation, [x, a + x, a * x, old + a * x], mode="clip")
    stored = jnp.where(runs & (target < 0), value, old)
    rows, columns = jnp.indices(at.shape)
    memory = state.memory.at[rows, columns, result].set(stored, mode="drop")
    turned = runs & (i + 1 >= inner)
    finished = turned & (j + 1 >= outer)
    place = jnp.stack(
        [
            at + finished,
            jnp.where(turned, 0, i + runs),
            jnp.where(finished, 0, j + turned),
        ],
        axis=-1,
    )
    return _Turn(
        runs,
        listens & takes[..., None],
        speaks & runs[..., None],
        value,
        memory,
        place,
        jnp.where(takes, head, state.held),
    )


def _read(memory: Any, address: Any) -> Any:
    return jnp.take_along_axis(memory, address[..., None], axis=-1, mode="clip")[..., 0]


def _arbitrate(arrays: Any, state: State) -> tuple[Any, Any]:
    """Which queue sends over which output, and which queues have sent their first everywhere."""
    outputs = arrays["outputs"]
    waits = (state.count[..., :5] > 0) & (state.ready[..., :5, 0] <= state.cycle)
    back = jnp.eye(5, dtype=bool).at[Port.RAMP, Port.RAMP].set(False)
    goal = outputs[..., None, :] & ~back
    wants = waits[..., None] & goal & ~state.served & _space(state.count)[..., None, :]
    # One winner per output among (port in its order, colour).
    ordered = jnp.stack([wants[..., port, :] for port in ORDER], axis=2)
    y, x, ports, colours, _ = ordered.shape
    queue = ordered.reshape(y, x, ports * colours, 5)
    place = jnp.arange(ports * colours)[:, None]
    winner = jnp.min(jnp.where(queue, place, ports * colours), axis=2, keepdims=True)
    first = (place == winner).reshape(ordered.shape)
    grant = jnp.stack([first[:, :, ORDER.index(Port(n))] for n in range(5)], axis=3)
    done = waits & jnp.all(~goal | state.served | grant, axis=-1)
    return grant, done


def _space(count: Any) -> Any:
    """Whether the queue behind each output, by colour, can take a wavelet."""
    free = count < QUEUE
    beyond = [_move(free[..., port.opposite], (-port.step[0], -port.step[1])) for port in ORDER[1:]]
    return jnp.stack([*beyond, free[..., DOWN]], axis=-1)


def _arrivals(push: Any, value: Any, turn: _Turn) -> tuple[Any, Any]:
    """What arrives in every queue, and its value: from neighbours, the element, the router."""

    def gather(array: Any, up: Any) -> Any:
        links = [_move(array[..., port.opposite], port.opposite.step) for port in ORDER[1:]]
        return jnp.stack([*links, up, array[..., Port.RAMP]], axis=-1)

    sent = jnp.where(turn.sends, turn.value[..., None], 0)
    return gather(push, turn.sends), gather(value, sent)


def _move(array: Any, step: tuple[int, int]) -> Any:
    """Shift an array over (row, column) by (columns, rows); zeros come in from outside."""
    columns, rows = step
    edges = [(max(rows, 0), max(-rows, 0)), (max(columns, 0), max(-columns, 0))]
    padded = jnp.pad(array, [*edges, *[(0, 0)] * (array.ndim - 2)])
    y, x = max(-rows, 0), max(-columns, 0)
    return padded[y : y + array.shape[0], x : x + array.shape[1]]


def _shift(state: State, popped: Any) -> tuple[Any, Any, Any]:
    """The queues after their first wavelets left."""

    def next_up(array: Any) -> Any:
        return jnp.where(popped[..., None], jnp.roll(array, -1, axis=-1), array)

    return next_up(state.data), next_up(state.ready), state.count - popped
