"""Half precision, bit by bit: float16, bfloat16 and the vendor's cbfloat16.

>>> import jax.numpy as jnp
>>> CBFLOAT16.round(jnp.float32(1 / 3)).item()
0.33349609375
>>> hex(CBFLOAT16.encode(jnp.float32(1.0)).item())
'0x3e00'
"""

from wse.precision.format import BFLOAT16, CBFLOAT16, FLOAT16, FORMATS, Format
from wse.precision.mixed import mixed, rounded
from wse.precision.policy import Precision, as_precision
from wse.precision.scaling import Dynamic, ScaledState, scaled

__all__ = [
    "BFLOAT16",
    "CBFLOAT16",
    "Dynamic",
    "FLOAT16",
    "FORMATS",
    "Format",
    "Precision",
    "ScaledState",
    "as_precision",
    "mixed",
    "rounded",
    "scaled",
]
__dir__ = __all__.copy  # what tab completion shows
