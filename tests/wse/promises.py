"""What an executor promises of the bytes that it moves and holds."""

from typing import Any

import jax
import numpy as np


def moved(executor: Any, params: Any) -> dict[str, float]:
    """Bytes of the last step beside what they should be, in the order of the promise.

    Weights come in once a visit of their layer (1), gradients go out once (1), and at most the
    weights of two layers are on a device at a time (2, of the largest).
    """
    layers, run = executor.graph.layers, executor.run
    visits = sum((1 + x.demand.any) * x.work.weight_bytes for x in layers)
    pairs = [p for x in layers for p in zip(x.weights, x.demand.weights, strict=True)]
    trained = {weight for weight, asked in pairs if asked}
    arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(params)]
    gradients = sum(arrays[w.leaf][w.index].nbytes for w in trained)
    return {
        "weights_in": run.total_bytes("broadcast") / visits,
        "gradients_out": run.total_bytes("gradient") / gradients,
        "layers_held": run.peak_weight_bytes / max(x.work.weight_bytes for x in layers),
    }
