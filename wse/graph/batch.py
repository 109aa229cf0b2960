"""How many samples a batch has, and which of its arrays hold them."""

from collections.abc import Collection, Iterable, Sequence
from math import prod

Shape = Sequence[int]


def batch_size(
    shapes: Iterable[Shape], stated: int | None = None, *, series: Collection[int] = ()
) -> int:
    """Return the number of samples of a batch; they lie along the leading axes of its arrays.

    Args:
        shapes: of the arrays of the batch. Those whose leading axis is as long as there are samples
            hold samples; all others, such as masks and statistics, are shared by all samples.
        stated: how many samples there are; 1: the whole batch is one, as a graph of many nodes is;
            None: as many as the leading axis of the largest array is long, and 1 where there is no
            array.
        series: which of the arrays a loop reads turn by turn, as time: they do not say how many
            samples there are if another array does.

    Raises:
        ValueError: no array holds as many samples as stated.

    >>> batch_size([(64, 5), (256,), (64,)])
    64
    >>> batch_size([(8, 3), (101, 2)], stated=8)
    8
    >>> batch_size([(50, 3), (50, 50)], stated=1)
    1
    >>> batch_size([(50, 32, 16), (32,)], series={0})
    32
    """
    shapes = [tuple(shape) for shape in shapes]
    found = [shape for shape in shapes if len(shape)]
    if found and not any(map(prod, found)):
        raise ValueError(
            f"the batch has 0 samples, its arrays the shapes {', '.join(map(str, found[:3]))}; it "
            "must have some: pass arrays, or jax.ShapeDtypeStruct of their shapes"
        )
    if stated is None:
        plain = [x for i, x in enumerate(shapes) if len(x) and i not in series]
        others = {shapes[i][1] for i in series if len(shapes[i]) > 1}
        told = [x for x in plain if x[0] in others]
        return max(told or found, key=prod)[0] if found else 1
    if stated != 1 and stated not in (leading := dict.fromkeys(shape[0] for shape in found)):
        raise ValueError(
            f"batch_size is {stated!r}, and the leading axes of the batch are "
            f"{', '.join(map(str, leading)) or 'none'} long: samples lead, so transpose arrays in "
            "which they do not, and transpose them back within the loss; or pass 1 if the whole "
            "batch is one sample"
        )
    return stated


def doubt(
    shapes: Iterable[Shape],
    size: int,
    series: Collection[int] = (),
    features: Collection[int] = (),
) -> str:
    """Say that a number of samples was guessed where arrays disagree; empty where they agree.

    And where a loop reads those `series` turn by turn, whose turns were taken for samples, or where
    `features` were, along which weights are multiplied.

    >>> doubt([(12, 8)], 12, features={0}).partition(",")[0]
    'array 1 of the batch'
    """
    shapes = [tuple(shape) for shape in shapes]
    for i in features:
        if shapes[i][:1] == (size,):
            return (
                f"array {i + 1} of the batch, {shapes[i]}, meets weights along its first axis, as "
                f"features or members of an ensemble do; its {size} are taken for samples: let "
                "samples lead, and turn the array within the loss, as jnp.moveaxis(x, 0, -1)"
            )
    for i in series:
        if shapes[i][0] == size:
            return (
                f"array {i + 1} of the batch, {shapes[i]}, is read turn by turn along its first "
                f"axis, as time is, and its {size} turns are taken for samples: let samples lead, "
                "and turn the array within the loss, as jnp.swapaxes(x, 0, 1)"
            )
    along = {i for i in series if shapes[i][1:2] == (size,)}
    other = sorted({x[0] for i, x in enumerate(shapes) if len(x) and i not in along} - {size})
    if not other:
        return ""
    return (
        f"the batch is read as {size} samples, by its largest array; other arrays are "
        f"{', '.join(map(str, other[:3]))} long and taken to be shared by all samples: "
        "pass batch_size=... with the loss, on the command line --batch-size"
    )
