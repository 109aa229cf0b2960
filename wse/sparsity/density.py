"""How many weights are left, counted."""

from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from wse.graph.outline import paths
from wse.sparsity.masking import SparseState

if TYPE_CHECKING:
    import xarray as xr


def density(params: Any, state: SparseState) -> "xr.Dataset":
    """Count the weights that masks let be other than zero, by parameter.

    Args:
        params: the tree of parameters.
        state: of a `masked` optimizer for them.

    Returns:
        `kept`, `size` and `density` along `parameter`.

    >>> import jax.numpy as jnp
    >>> import optax
    >>> from wse.sparsity import Rule, Static, density, masked, sparsified
    >>> method = Static(0.5, Rule(keep_last=False))
    >>> weights = sparsified({"w": jnp.ones((8, 8))}, method)
    >>> density(weights, masked(optax.sgd(0.1), method).init(weights)).kept.values.tolist()
    [32]
    """
    import xarray as xr

    sizes = np.array([np.size(leaf) for leaf in jax.tree.leaves(params)])
    masks = [np.asarray(mask) for mask in jax.tree.leaves(state.masks)]
    kept = np.array(
        [mask.sum() if mask.ndim else size for mask, size in zip(masks, sizes, strict=True)]
    )
    table: Any = {
        "kept": ("parameter", kept),
        "size": ("parameter", sizes),
        "density": ("parameter", kept / np.maximum(sizes, 1)),
    }
    return xr.Dataset(table, coords={"parameter": list(paths(params))})
