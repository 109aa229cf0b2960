"""Weight sparsity: masks that a training step keeps, prunes or moves.

>>> import jax, jax.numpy as jnp, optax
>>> method = Static(0.75, rule=Rule(keep_last=False))
>>> params = sparsified({"w": jnp.ones((4, 4))}, method)
>>> optimizer = masked(optax.sgd(0.1), method)
>>> updates, state = optimizer.update(params, optimizer.init(params), params)
>>> int(jnp.count_nonzero(optax.apply_updates(params, updates)["w"]))
4
"""

from wse.sparsity.blockwise import blockwise
from wse.sparsity.density import density
from wse.sparsity.dynamic import SET, RigL
from wse.sparsity.fixed import Magnitude, Static
from wse.sparsity.gradual import Gradual
from wse.sparsity.masking import SparseState, masked, sparsified
from wse.sparsity.method import Method
from wse.sparsity.packed_steps import PackedSteps
from wse.sparsity.packing import PackedMatrix, packed, unpacked
from wse.sparsity.selection import Rule
from wse.sparsity.zeros import activation_zeros

__all__ = [
    "Gradual",
    "Magnitude",
    "Method",
    "PackedMatrix",
    "PackedSteps",
    "RigL",
    "Rule",
    "SET",
    "SparseState",
    "Static",
    "activation_zeros",
    "blockwise",
    "density",
    "masked",
    "packed",
    "sparsified",
    "unpacked",
]
__dir__ = __all__.copy  # what tab completion shows
