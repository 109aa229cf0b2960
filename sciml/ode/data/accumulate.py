"""Simulations that outgrow memory, one sitting, or one machine: chunks, each with its own key."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from sciml._arguments import check_whole, whole_seed
from sciml._numbers import short
from sciml._session import as_usual
from sciml.ode import conditions, prior
from sciml.ode.data import store
from sciml.ode.data.identity import check_same, identity
from sciml.ode.data.labels import check_some_valid, labelled
from sciml.ode.ignored import warn_of_ignored
from sciml.ode.methods.accuracy import is_judged, without_exploded
from sciml.ode.methods.blocks import in_blocks
from sciml.ode.methods.solver import (
    Method,
    Problem,
    Solvable,
    chosen_method,
    sight,
    solvable,
    solver,
)
from sciml.ode.observe.channels import check_channels
from sciml.ode.observe.noise import Noise, check_noise, measure
from sciml.ode.system import System
from wse._files import as_path

if TYPE_CHECKING:
    from dask.delayed import Delayed

COMPILED: dict[str, Callable] = {}  # the last program of this process, shared by its tasks


@as_usual
def accumulate(
    problem: Problem,
    path: Path | str,
    *,
    samples: int,
    seed: int = 0,
    noise: Noise | None = None,
    method: Method | None = None,
    client: Any = None,
) -> xr.Dataset:
    """Simulate into a store until it holds so many samples; go on where an earlier call ended.

    Chunk i draws from `fold_in(key(seed), i)`, and is written whole, `method.chunk` samples. So
    a store that grew from 1000 to 5000 samples holds the same numbers as one made with 5000, and
    a kill at any moment loses at most the chunk being written. A chunk that lacks a file is
    simulated again.

    Args:
        problem: the system, or the static task.
        path: the folder of the store, which is made if there is none.
        samples: how many there shall be in all; there may be more already.
        seed: of the draws and of the noise.
        noise: of the measurement, drawn once; None stores what the solver gives.
        method: the integrator, and the size of a chunk.
        client: a `distributed.Client`, whose workers then simulate; they must see `path`. A chunk
            whose worker dies is written by another. The numbers stay the same, up to rounding if
            the machines differ.

    Returns:
        The first `samples` simulations, opened lazily as by `open_simulations`.

    Raises:
        ValueError: the store holds another problem, seed, noise or method, which is named; or as
            `simulate` does.
        TypeError: the client is none.

    >>> from tempfile import TemporaryDirectory
    >>> from sciml.ode import lotka_volterra
    >>> with TemporaryDirectory() as folder:
    ...     store = accumulate(lotka_volterra(), f"{folder}/foxes.zarr", samples=20)
    >>> store.sizes["sample"]
    20
    """
    check_client(client)
    there = as_path("path", path, 'pass a folder, as "runs.zarr"')
    place, seed = str(there.absolute()), whole_seed(seed)
    work = Work(solvable(problem), place, seed, noise, chosen_method(problem, method))
    chunks = prepare(work, samples)
    for _ in tqdm(written(work, chunks, client), total=len(chunks), unit="chunk", leave=False):
        pass
    return store.open_simulations(path).isel(sample=slice(samples))


@as_usual
def distribute(
    problem: Problem,
    path: Path | str,
    *,
    samples: int,
    seed: int = 0,
    noise: Noise | None = None,
    method: Method | None = None,
) -> "Delayed":
    """Plan the same work as `accumulate` for Dask: one task per chunk, which writes its own files.

    Nothing is simulated before `.compute()`, which takes any scheduler: "threads", "processes",
    or a `distributed.Client`, whose workers must see `path`. The numbers are those of
    `accumulate`, up to rounding if the machines differ.

    Returns:
        A task whose result is the number of chunks that were written.

    Raises:
        ValueError: as `accumulate`; that all of a chunk failed, when computed.

    >>> import tempfile
    >>> import sciml
    >>> folder = tempfile.mkdtemp() + "/prey.zarr"
    >>> plan = sciml.ode.distribute(sciml.ode.lotka_volterra(), folder, samples=10)
    >>> data = plan.compute(scheduler="threads")
    >>> sciml.ode.open_simulations(folder).sizes["sample"]
    10
    """
    from dask.delayed import delayed

    there = as_path("path", path, 'pass a folder, as "runs.zarr"')
    place, seed = str(there.absolute()), whole_seed(seed)
    work = Work(solvable(problem), place, seed, noise, chosen_method(problem, method))
    shared = delayed(work)
    one = delayed(write_chunk)
    return delayed(len)([one(shared, index) for index in prepare(work, samples)])


@dataclass(frozen=True)
class Work:
    """What it takes to simulate any chunk of a store."""

    problem: Solvable
    path: str
    seed: int
    noise: Noise | None
    method: Method
    token: str = field(default_factory=lambda: uuid4().hex)


def prepare(work: Work, samples: int) -> list[int]:
    """Make the store or check that it is the same, make room, return the chunks to be written."""
    check_whole(1, samples=samples)
    check_noise(work.noise)
    check_channels(work.noise, work.problem.observed, repr(work.problem.name))
    like = template(work)  # refuses what cannot be solved
    mine = identity(work.problem, settings(work), work.method.dtype)
    if not Path(work.path).exists():
        store.create(work.path, like, work.method.chunk, mine)
    check_same(work.path, mine, store.opened(work.path, "r").identity)
    return store.grow(work.path, samples)


def check_client(client: Any) -> None:
    """Refuse what hands out no tasks."""
    asked = (getattr(client, name, None) for name in ("map", "submit", "cancel"))
    hands_out = all(map(callable, asked))
    if client is not None and not hands_out:
        raise TypeError(
            f"client is {short(client)}; it must be a distributed.Client: for Dask's own "
            "schedulers call distribute(...).compute(scheduler='processes')"
        )


def written(work: Work, chunks: list[int], client: Any) -> Iterator[int]:
    """Yield each chunk when it has been written, here or by the workers of a client."""
    one = partial(write_chunk, work)
    if client is None:
        yield from map(one, chunks)
        return
    futures = client.map(one, chunks, pure=False, key=f"chunk-{work.token}")
    try:
        yield from (future.result() for future in futures)
    finally:
        client.cancel(futures)


@as_usual
def write_chunk(work: Work, index: int) -> int:
    """Simulate one chunk and write it; return its index."""
    problem, method = work.problem, work.method
    draw, add = jax.random.split(jax.random.fold_in(jax.random.key(work.seed), index))
    theta = prior.draw(problem.prior, method.chunk, draw, problem.name)
    theta = conditions.rows(problem, theta, draw)
    with jax.enable_x64(method.dtype == "float64"):
        clean = in_blocks(compiled(work), (theta,), method, progress=False)
        if isinstance(problem, System) and is_judged(problem, method):
            clean = without_exploded(problem, sight(problem), method, theta, clean)
        seen, levels = measure(work.noise, add, jnp.asarray(clean))
    data = labelled(problem, theta, clean, (np.asarray(seen), levels, work.noise), settings(work))
    if index == 0:
        check_some_valid(problem, data.valid.values, settings(work))
    store.write(work.path, index, data)
    return index


def compiled(work: Work) -> Callable:
    """Return the compiled solver, one for all chunks that this process simulates."""
    if work.token not in COMPILED:
        COMPILED.clear()
        COMPILED[work.token] = jax.jit(solver(work.problem, work.method))
    return COMPILED[work.token]


def template(work: Work) -> xr.Dataset:
    """Return one sample of zeros, labelled as those of the store, without solving anything."""
    problem, method, noise = work.problem, work.method, work.noise
    drawn = prior.draw(problem.prior, 1, jax.random.key(0), problem.name)
    drawn = conditions.rows(problem, drawn, jax.random.key(0))
    with jax.enable_x64(method.dtype == "float64"):
        theta = jax.ShapeDtypeStruct(drawn.shape, jnp.dtype(method.dtype))
        clean = jax.eval_shape(solver(problem, method), theta)
        shapes = jax.eval_shape(partial(measure, noise), jax.random.key(0), clean)
    warn_of_ignored(problem, drawn[0])
    seen, levels = jax.tree.map(lambda s: np.zeros(s.shape, s.dtype), shapes)
    levels = {name: levels[name] for name in (noise.prior if noise else {})}
    return labelled(problem, drawn, np.zeros((1, 1)), (seen, levels, noise), settings(work))


def settings(work: Work) -> dict[str, Any]:
    """Return what it takes to make the store again."""
    return {
        "seed": work.seed,
        "noise": work.noise.describe() if work.noise else None,
        "method": work.method.describe(),
        "chunk": work.method.chunk,
    }
