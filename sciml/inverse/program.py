"""The compiled programs of a configuration: its weights, its outputs, its draws."""

import functools
import zlib
from typing import Any

import jax
import numpy as np
from flax import nnx

from sciml.models.inverse.ensemble import Ensemble
from wse._compilation import enable_cache

PREDICT_BATCH = 1024
TURNS = (4, 32, 128)  # assumed: draws of an observation in one turn, the least that hold all asked
DRAWN_ROWS = 2**17  # draws times observations in one call, which bounds its memory
FEW_ROWS = 1024  # assumed: as many in a call for little


@functools.lru_cache(maxsize=48)
def structure(model, inputs, outputs: int, dot_general=None):
    """Return the graph and the abstract parameters of a configuration, without any array."""
    enable_cache()  # a fit that was loaded is not trained
    abstract = nnx.eval_shape(
        lambda: model.build(inputs, outputs, rngs=nnx.Rngs(0), dot_general=dot_general)
    )
    return nnx.split(abstract)


def initial_params(model, inputs, outputs: int, seed: int):
    """Return fresh weights, drawn in one compiled program."""
    return drawing(model, inputs, outputs)(jax.random.key(seed))


@functools.lru_cache(maxsize=48)
def drawing(model, inputs, outputs: int):
    """Return the compiled `key → weights` of a configuration."""

    def draw(key):
        return nnx.state(model.build(inputs, outputs, rngs=nnx.Rngs(params=key)))

    return jax.jit(draw)


def is_posterior(model) -> bool:
    """Tell whether a configuration gives a density, not a point."""
    return getattr(model, "targets", "unit") == "unconstrained"


@functools.lru_cache(maxsize=48)
def program(model, inputs, outputs: int, method: str, *last):
    """Return the compiled `(params, *first) → net.method(*first, *last)` of a configuration."""
    graph = structure(model, inputs, outputs)[0]
    return jax.jit(lambda params, *first: getattr(nnx.merge(graph, params), method)(*first, *last))


def program_of(fit: Any, method: str, *last):
    """Return the compiled method of the net of a fit."""
    return program(fit.model, fit.grid.inputs, len(fit.grid.parameters), method, *last)


def in_batches(
    call, arrays: tuple[np.ndarray, ...], sizes: tuple[int, ...], *, axis: int = 0
) -> np.ndarray:
    """Return `call(*parts)` of all rows, in batches of one of these sizes; the last is padded.

    So a program is compiled once for whatever number of rows, and all rows of a call go through
    the same one: two programs may differ in the last bit. Results have rows along `axis`.
    """
    total = len(arrays[0])
    size = size_for(total, sizes)
    parts = []
    for start in range(0, max(total, 1), size):
        rows = [array[start : start + size] for array in arrays]
        kept = len(rows[0])
        padded = [np.pad(r, [(0, size - kept)] + [(0, 0)] * (r.ndim - 1), "edge") for r in rows]
        result = np.asarray(call(*padded))
        parts.append(np.take(result, np.arange(kept), axis=axis))
    return np.concatenate(parts, axis=axis)


def size_for(total: int, sizes: tuple[int, ...]) -> int:
    """Return the least size that holds all, if they fill half of it, or the next less."""
    fits = next((i for i, size in enumerate(sizes) if size >= total), len(sizes) - 1)
    return sizes[fits] if 2 * total >= sizes[fits] else sizes[max(fits - 1, 0)]


def few_sizes() -> tuple[int, ...]:
    """Return the sizes of batches of observations."""
    return (*(size for size in (1, 32) if size < PREDICT_BATCH), PREDICT_BATCH)


def outputs_of(fit: Any, observed: np.ndarray) -> np.ndarray:
    """Return the net's outputs for many observations; members of an ensemble lead."""
    forward = program_of(fit, "__call__")
    return in_batches(
        lambda x: forward(fit.params, fit.inputs.forward(x)),
        (observed,),
        few_sizes(),
        axis=-2,
    )


@functools.lru_cache(maxsize=48)
def drawn(model, inputs, outputs: int, draws: int):
    """Return the compiled `(params, key, numbers, turns, observed) → draws`, of each its own."""
    graph = structure(model, inputs, outputs)[0]

    def draw(params, key, numbers, turns, observed):
        net = nnx.merge(graph, params)

        def one(number, turn, x):
            own = jax.random.fold_in(jax.random.fold_in(key, number), turn)
            return net.sample(own, x[None], draws)[:, 0]

        return jax.vmap(one, out_axes=1)(numbers, turns, observed)

    return jax.jit(draw)


def draws_of(
    fit: Any, observed: np.ndarray, draws: int, seed: int, numbers: np.ndarray
) -> np.ndarray:
    """Return draws (draw, sample, param) in the scaled space.

    Those of an observation depend on the seed and on its own number, not on what is beside it.
    They come in turns of one size, so that few programs serve whatever number is asked.
    """
    each = turn_of(fit.model, draws)
    turns = -(-draws // each)
    sample = drawn(fit.model, fit.grid.inputs, len(fit.grid.parameters), each)
    key = jax.random.key(seed)
    most = max(1, min(PREDICT_BATCH, DRAWN_ROWS // each))
    found = in_batches(
        lambda i, turn: sample(fit.params, key, numbers[i], turn, fit.inputs.forward(observed[i])),
        (np.repeat(np.arange(len(observed)), turns), np.tile(np.arange(turns), len(observed))),
        (min(most, max(1, FEW_ROWS // each)), most),
        axis=-2,
    )
    of_each = found.reshape(each, len(observed), turns, found.shape[-1])
    return np.moveaxis(of_each, 2, 0).reshape(-1, *of_each.shape[1::2])[:draws]


def turn_of(model: Any, draws: int) -> int:
    """Return how many draws make a turn, in which all members of an ensemble give as many."""
    least = next((size for size in TURNS if size >= draws), TURNS[-1])
    members = model.size if isinstance(model, Ensemble) else 1
    return -(-least // members) * members


def in_order(observed: np.ndarray, first: int = 0) -> np.ndarray:
    """Return the numbers of observations by their places, from that of the first one on."""
    return (first + np.arange(len(observed))).astype(np.uint32)


def by_contents(observed: np.ndarray) -> np.ndarray:
    """Return a number of each observation that its values alone give."""
    return np.array([zlib.crc32(row.tobytes()) for row in observed], np.uint32)


def densities_of(fit: Any, targets: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Return log densities (sample,) in the scaled space."""
    log_prob = program_of(fit, "log_prob")
    return in_batches(
        lambda y, x: log_prob(fit.params, y, fit.inputs.forward(x)),
        (targets, observed),
        few_sizes(),
    )
