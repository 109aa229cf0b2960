"""How fields differ from point to point: structure functions, gradients and distributions."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy.stats import wasserstein_distance

from sciml._numbers import real
from sciml.diagnose.wind.alike import Field, alike, warn_of_uneven


def structure_function(
    *components: Field, distances: Sequence[int], order: float = 2.0
) -> Float[np.ndarray, " distance"]:
    """Return S_p(r) = ⟨|w(s + r) − w(s)|ᵖ⟩ over all places s, with r along x and along y.

    Args:
        *components: u and v for the length of the vector's increment, or one field.
        distances: r, in points.
        order: p.

    Raises:
        ValueError: a distance is not positive or too long, or shapes differ.

    >>> import numpy as np
    >>> field = np.arange(16.0).reshape(4, 4)
    >>> structure_function(field, distances=[1, 2]).tolist()
    [8.5, 34.0]
    """
    parts = alike(*components)
    warn_of_uneven(*components)
    shapes = {component.shape for component in parts}
    longest = min(parts[0].shape[-2:]) - 1 if parts else 0
    if len(shapes) != 1 or not all(1 <= r <= longest for r in distances):
        raise ValueError(
            f"distances are {list(distances)} points on fields of {sorted(shapes)}; each must be 1 "
            f"to {longest}, and the fields of one shape"
        )
    stack = np.stack(parts)

    def moment(r: int) -> float:
        steps = (stack[..., r:] - stack[..., :-r], stack[..., r:, :] - stack[..., :-r, :])
        lengths = [np.linalg.norm(step, axis=0).ravel() for step in steps]
        return float(np.mean(np.concatenate(lengths) ** order))

    return np.array([moment(r) for r in distances])


def gradient_length(field: Field, *, spacing_m: float) -> Float[np.ndarray, "*sample y_in x_in"]:
    """Return |∇w| by differences over one cell, at the middle of each four points, per second.

    >>> import numpy as np
    >>> field = np.arange(16.0).reshape(4, 4)
    >>> gradient_length(field, spacing_m=1.0).shape
    (3, 3)
    """
    (fine,) = alike(field)
    warn_of_uneven(field)
    along_x = np.diff(fine, axis=-1)
    along_y = np.diff(fine, axis=-2)
    along_x = (along_x[..., 1:, :] + along_x[..., :-1, :]) / 2
    along_y = (along_y[..., 1:] + along_y[..., :-1]) / 2
    return np.hypot(along_x, along_y) / spacing_m


def distribution_distance(estimate: Field, truth: Field) -> float:
    """Return the Wasserstein-1 distance between the values of two fields, in their unit.

    ∫ |F⁻¹(p) − G⁻¹(p)| dp: how far values must move to make one distribution the other, wherever
    in the fields they are. Apply it to speeds, or to `gradient_length`.

    >>> import numpy as np
    >>> truth = np.array([1.0, 2.0, 4.0])
    >>> round(distribution_distance(truth + 0.5, truth), 3)
    0.5
    """
    values = (real(each, "the fields").ravel() for each in (estimate, truth))
    return float(wasserstein_distance(*values))


def quantile_bias(
    estimate: Field, truth: Field, levels: Sequence[float]
) -> Float[np.ndarray, " level"]:
    """Return quantile(estimate) − quantile(truth): at 0.99 and beyond, what is lost of extremes.

    >>> import numpy as np
    >>> truth = np.array([1.0, 2.0, 4.0])
    >>> quantile_bias(truth + 0.5, truth, [0.5]).tolist()
    [0.5]
    """
    ours, theirs = (np.quantile(real(f, "the fields"), levels) for f in (estimate, truth))
    return ours - theirs
