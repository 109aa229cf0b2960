"""The compiled programs of a configuration: its weights, its outputs, its draws."""

import functools
import zlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from wse._compilation import enable_cache

PREDICT_BATCH = 1024
DRAWN_ROWS = 2**17  # draws times observations in one call, which bounds its memory


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
    call, arrays: tuple[np.ndarray, ...], batch: int, *, axis: int = 0, filled: bool = False
) -> np.ndarray:
    """Return `call(i, *parts)` of all rows, in batches of one shape; the last is padded.

    Batch i of the arrays gives a result whose rows lie along `axis`. With `filled` a batch that is
    more than half full is padded too, so that one program serves more numbers of rows.
    """
    total = len(arrays[0])
    size = batch if filled and 2 * total > batch else min(batch, total)
    parts = []
    for i, start in enumerate(range(0, total, size)):
        rows = [array[start : start + size] for array in arrays]
        kept = len(rows[0])
        padded = [np.pad(r, [(0, size - kept)] + [(0, 0)] * (r.ndim - 1), "edge") for r in rows]
        result = np.asarray(call(i, *map(jnp.asarray, padded)))
        parts.append(np.take(result, np.arange(kept), axis=axis))
    return np.concatenate(parts, axis=axis)


def outputs_of(fit: Any, observed: np.ndarray) -> np.ndarray:
    """Return the net's outputs for many observations; members of an ensemble lead."""
    forward = program_of(fit, "__call__")
    return in_batches(
        lambda _, x: forward(fit.params, fit.inputs.forward(x)), (observed,), PREDICT_BATCH, axis=-2
    )


@functools.lru_cache(maxsize=48)
def drawn(model, inputs, outputs: int, draws: int):
    """Return the compiled `(params, key, numbers, observed) → draws`, of each by its number."""
    graph = structure(model, inputs, outputs)[0]

    def draw(params, key, numbers, observed):
        net = nnx.merge(graph, params)

        def one(number, x):
            return net.sample(jax.random.fold_in(key, number), x[None], draws)[:, 0]

        return jax.vmap(one, out_axes=1)(numbers, observed)

    return jax.jit(draw)


def draws_of(
    fit: Any, observed: np.ndarray, draws: int, seed: int, numbers: np.ndarray
) -> np.ndarray:
    """Return draws (draw, sample, param) in the scaled space.

    Those of an observation depend on the seed and on its own number, not on what is beside it.
    """
    sample = drawn(fit.model, fit.grid.inputs, len(fit.grid.parameters), draws)
    key = jax.random.key(seed)
    batch = max(1, min(PREDICT_BATCH, DRAWN_ROWS // draws))
    return in_batches(
        lambda _, n, x: sample(fit.params, key, n, fit.inputs.forward(x)),
        (numbers, observed),
        batch,
        axis=-2,
    )


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
        lambda _, y, x: log_prob(fit.params, y, fit.inputs.forward(x)),
        (targets, observed),
        PREDICT_BATCH,
        filled=True,
    )
