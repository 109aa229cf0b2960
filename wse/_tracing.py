"""What JAX cannot trace of a user's function, in words that say what to write instead."""

import jax

UNTRACEABLE = {  # the first kind that an error is of counts
    jax.errors.TracerBoolConversionError: (
        "decides by a value (if, and, or, max, while): write jnp.where(condition, a, b)"
    ),
    jax.errors.TracerArrayConversionError: (
        "calls NumPy or SciPy: take the function of this name from jax.numpy"
    ),
    jax.errors.ConcretizationTypeError: (
        "makes a Python number of a value (float, int, math): leave it, or use jax.numpy"
    ),
    jax.errors.NonConcreteBooleanIndexError: (
        "picks entries by a condition, so that their number is open: write jnp.where(condition, "
        "x, 0)"
    ),
}


def untraceable(error: Exception) -> str:
    """Return what a function does that JAX cannot trace, and the remedy; empty if it is another."""
    return next((said for kind, said in UNTRACEABLE.items() if isinstance(error, kind)), "")
