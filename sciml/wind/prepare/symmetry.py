"""The eight symmetries of a square, for speeds and for vectors: two mirrors times four turns."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int

from sciml._labels import last
from sciml.wind.cf.names import vector_pairs
from sciml.wind.prepare.coarsen import Values

COUNT = 8
Fields = Float[Values, "*batch channel y x"] | xr.DataArray


def symmetry(
    fields: Fields, names: Sequence[str], element: int | np.integer | Int[Array, ""]
) -> Float[Array, "*batch channel y_out x_out"]:
    """Turn and mirror a field of wind, components with it.

    Element e mirrors x if e ≥ 4, then turns e mod 4 quarters anticlockwise (y is up). A mirror
    changes the sign of the component along x; a quarter turn takes (u, v) to (−v, u). Block means
    of fields that whole blocks cover turn likewise.

    Args:
        fields: (…, channel, y, x).
        names: of the channels; components come in pairs, `x_wind` with `y_wind`, `x_wind_100m`
            with `y_wind_100m`.
        element: 0 (nothing) to 7; may be traced where fields are square.

    Raises:
        ValueError: one component is there without the other, the names are too many or few, or
            there is no such element.

    >>> import numpy as np
    >>> east = np.stack([np.ones((2, 2)), np.zeros((2, 2))])  # a west wind
    >>> symmetry(east, ("x_wind", "y_wind"), 1)[:, 0, 0].tolist()  # a quarter turn: a south wind
    [-0.0, 1.0]
    """
    fields = jnp.asarray(last(fields, "channel", "y", "x"))
    pairs = component_pairs(names, fields.shape[-3])
    element = int(element) if isinstance(element, np.integer) else element
    if isinstance(element, int) and not 0 <= element < COUNT:
        raise ValueError(f"element is {element}; it must be 0 to {COUNT - 1}")
    mirror, turns = element // 4, element % 4
    flip_x = mirror ^ (turns // 2)  # a half turn flips both axes, a quarter exchanges them too
    flip_y = (turns == 1) | (turns == 2)
    fields = where(flip_x, flipped(fields, pairs, 0), fields)
    fields = where(flip_y, flipped(fields, pairs, 1), fields)
    return where(turns % 2, transposed(fields, pairs), fields)


def inverse(element: int) -> int:
    """Return the element that undoes another: mirrors undo themselves, turns go back."""
    return element if element >= 4 else -element % 4


def where(chosen: int | Array, changed: Array, fields: Array) -> Array:
    """Return one of two fields; their shapes may differ if the choice is not traced."""
    if isinstance(chosen, int):
        return changed if chosen else fields
    return jnp.where(chosen, changed, fields)


def flipped(fields: Array, pairs: list[tuple[int, int]], along: int) -> Array:
    """Mirror x (0) or y (1), and the component along it."""
    fields = fields[..., ::-1] if along == 0 else fields[..., ::-1, :]
    for pair in pairs:
        fields = fields.at[..., pair[along], :, :].multiply(-1)
    return fields


def transposed(fields: Array, pairs: list[tuple[int, int]]) -> Array:
    """Exchange x and y, and the components along them."""
    order = list(range(fields.shape[-3]))
    for u, v in pairs:
        order[u], order[v] = v, u
    return jnp.swapaxes(fields, -1, -2)[..., jnp.array(order), :, :]


def component_pairs(names: Sequence[str], count: int) -> list[tuple[int, int]]:
    """Return the positions of each pair of components."""
    if len(names) != count:
        raise ValueError(f"there are {len(names)} names for {count} channels; give one for each")
    pairs = []
    for pair in vector_pairs(names):
        there = [name for name in pair if name in names]
        if len(there) == 1:
            raise ValueError(
                f"{there[0]} is there without its other component; a turn mixes "
                f"{' and '.join(pair)}: take both, or the speed"
            )
        if there:
            pairs.append((list(names).index(pair[0]), list(names).index(pair[1])))
    return pairs
