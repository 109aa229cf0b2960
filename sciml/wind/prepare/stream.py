"""Batches from disk to the device, the next one read while the present one is used."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int

from sciml.wind.cf.kinds import of_fields
from sciml.wind.prepare.patches import Plan

THREAD = "wind reader"


@of_fields
def stream(
    fields: xr.DataArray, plan: Plan, batch: int, *, ahead: int = 2, whole: bool = True
) -> Iterator[Float[Array, "batch channel size size"]]:
    """Yield the squares of a plan on the device, `batch` at a time.

    Threads read ahead, a batch each, so that waiting for the disk and copying overlap. Each chunk
    on disk is read once for a batch, however many squares lie in it. At most ahead + 2 batches are
    in memory: those being read or waiting, and the one in use.

    Args:
        fields: (time, channel, y, x), such as `channels` gives, best opened lazily.
        plan: which squares, in which order.
        batch: squares at once.
        ahead: batches read before they are asked for.
        whole: leave out a last batch that is smaller, so that one shape is compiled.

    Raises:
        ValueError: sizes are not positive, or the plan reaches beyond the fields.
        Exception: whatever reading raised, where the batch would have come.

    >>> import numpy as np
    >>> from sciml import wind
    >>> winds = wind.channels(wind.gaussian(seed=0, snapshots=4, n=32), ("x_wind", "y_wind"))
    >>> plan = wind.scattered(4, 32, 32, size=16, count=2, seed=0)
    >>> [batch.shape for batch in wind.stream(winds, plan, batch=4)]
    [(4, 2, 16, 16), (4, 2, 16, 16)]
    """
    if batch < 1 or ahead < 1:
        raise ValueError(f"batch is {batch} and ahead {ahead}; both must be positive")
    check_reach(fields, plan)

    def one(start: int) -> Array:
        return jax.device_put(read(fields, Plan(plan.corners[start : start + batch], plan.size)))

    end = len(plan) - len(plan) % batch if whole else len(plan)
    with ThreadPoolExecutor(ahead, thread_name_prefix=THREAD) as readers:
        waiting: deque[Future[Array]] = deque()
        try:
            for start in range(0, end, batch):
                waiting.append(readers.submit(one, start))
                if len(waiting) > ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for batch_to_come in waiting:
                batch_to_come.cancel()


def read(fields: xr.DataArray, plan: Plan) -> Float[np.ndarray, "patch channel size size"]:
    """Read the squares of a plan at once, every chunk that they lie in once.

    Whole chunks are asked for and squares are cut from them in memory: a graph for each square
    costs dask ten times what reading them does.
    """
    from dask.base import compute

    data, size = fields.transpose("time", "channel", "y", "x").data, plan.size
    corners = plan.corners.tolist()
    chunks = getattr(data, "chunks", None)
    if chunks is None:
        return np.stack([data[t, :, y : y + size, x : x + size] for t, y, x in corners])
    edges = [np.cumsum((0, *lengths)) for lengths in chunks[2:]]
    boxes = {}
    places = []
    for t, *corner in corners:
        first, last = zip(
            *(around(edge, at, size) for edge, at in zip(edges, corner, strict=True)), strict=True
        )
        box = (t, first, last)
        if box not in boxes:
            boxes[box] = data[t, :, first[0] : last[0], first[1] : last[1]]
        places.append((box, [a - b for a, b in zip(corner, first, strict=True)]))
    found = dict(zip(boxes, compute(*boxes.values()), strict=True))
    return np.stack([found[box][:, y : y + size, x : x + size] for box, (y, x) in places])


def around(edges: Int[np.ndarray, " edge"], start: int, size: int) -> tuple[int, int]:
    """Return where the chunks begin and end that points from `start` on lie in."""
    first = int(np.searchsorted(edges, start, side="right")) - 1
    last = int(np.searchsorted(edges, start + size, side="left"))
    return int(edges[first]), int(edges[last])


def check_reach(fields: xr.DataArray, plan: Plan) -> None:
    """Refuse squares that are not wholly inside."""
    if {*fields.dims} != {"time", "channel", "y", "x"}:
        raise ValueError(
            f"fields are on {fields.dims}; they must be on (time, channel, y, x): pass "
            "sciml.wind.channels(winds, names)"
        )
    limits = [fields.sizes["time"] - 1, *(fields.sizes[a] - plan.size for a in ("y", "x"))]
    wrong = (plan.corners < 0) | (plan.corners > np.array(limits))
    if wrong.any():
        at = int(wrong.any(axis=1).argmax())
        raise ValueError(
            f"patch {at} at {tuple(plan.corners[at].tolist())} (time, y, x) of size {plan.size} "
            f"is not inside fields of {dict(fields.sizes)}"
        )
