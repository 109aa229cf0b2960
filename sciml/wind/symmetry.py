"""The eight symmetries of a square, for speeds and for vectors: two mirrors times four turns."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from sciml.wind.coarsen import Values
from sciml.wind.names import EARTH, GRID

COUNT = 8
Square = Float[Values, "*batch channel side side"]


def symmetry(
    fields: Square, names: Sequence[str], element: int | Int[Array, ""]
) -> Float[Array, "*batch channel side side"]:
    """Turn and mirror a square of wind, components with it.

    Element e mirrors x if e ≥ 4, then turns e mod 4 quarters anticlockwise (y is up). A mirror
    changes the sign of the component along x; a quarter turn takes (u, v) to (−v, u). Block means
    of squares that whole blocks cover turn likewise.

    Args:
        fields: (…, channel, side, side).
        names: of the channels; components come in pairs, `x_wind` with `y_wind`.
        element: 0 (nothing) to 7; may be traced.

    Raises:
        ValueError: one component is there without the other, the names are too many or few, or
            there is no such element.
    """
    fields = jnp.asarray(fields)
    pairs = component_pairs(names, fields.shape[-3])
    if isinstance(element, int):
        if not 0 <= element < COUNT:
            raise ValueError(f"element is {element}; it must be 0 to {COUNT - 1}")
        return moved(fields, pairs, element)
    branches = [lambda f, e=e: moved(f, pairs, e) for e in range(COUNT)]
    return jax.lax.switch(jnp.asarray(element), branches, fields)


def moved(fields: Array, pairs: list[tuple[int, int]], element: int) -> Array:
    """Apply one element."""
    if element >= 4:
        fields = fields[..., ::-1]
        for u, _ in pairs:
            fields = fields.at[..., u, :, :].multiply(-1)
    for _ in range(element % 4):
        fields = jnp.swapaxes(fields[..., ::-1, :], -1, -2)
        for u, v in pairs:
            along, across = fields[..., u, :, :], fields[..., v, :, :]
            fields = fields.at[..., u, :, :].set(-across).at[..., v, :, :].set(along)
    return fields


def component_pairs(names: Sequence[str], count: int) -> list[tuple[int, int]]:
    """Return the positions of each pair of components."""
    if len(names) != count:
        raise ValueError(f"there are {len(names)} names for {count} channels; give one for each")
    pairs = []
    for pair in (GRID, EARTH):
        there = [name for name in pair if name in names]
        if len(there) == 1:
            raise ValueError(
                f"{there[0]} is there without its other component; a turn mixes "
                f"{' and '.join(pair)}: take both, or the speed"
            )
        if there:
            pairs.append((list(names).index(pair[0]), list(names).index(pair[1])))
    return pairs
