"""Dense nets of any sizes."""

from collections.abc import Sequence
from itertools import pairwise

from wse.models.shapes.workload import Layer, Workload


def perceptron(sizes: Sequence[int], name: str = "perceptron") -> Workload:
    """A chain of dense layers with biases.

    Args:
        sizes: numbers that enter, units of each hidden layer, numbers that leave.
        name: what tables call it.

    Raises:
        ValueError: fewer than two sizes, or one that is not positive.

    >>> perceptron((784, 500, 300, 10)).parameters
    545810
    """
    if len(sizes) < 2:
        raise ValueError(
            f"sizes is {sizes}; it needs inputs and outputs: pass sizes=[784, 500, 10]"
        )
    layers = tuple(
        Layer(f"dense_{i}", n, m, n * m + m) for i, (n, m) in enumerate(pairwise(sizes), start=1)
    )
    return Workload(name, layers, sizes[0], sizes[-1], origin=("chain", tuple(sizes)))
