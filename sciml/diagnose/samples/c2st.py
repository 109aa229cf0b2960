"""Whether a classifier can tell two sets of draws apart."""

import warnings

import numpy as np
import xarray as xr

from sciml._labels import Labelled, by_name, labels_of, variable

UNITS_PER_PARAMETER = 10
MOST_EPOCHS = 1000
STOPPED = "Training interrupted by user"  # what scikit-learn makes of Ctrl-C


def c2st(
    reference: Labelled,
    draws: Labelled,
    *,
    folds: int = 5,
    seed: int = 0,
) -> xr.Dataset:
    """Return how often a classifier tells which set a point comes from: ½ if never, 1 if always.

    The recipe by which posteriors are compared in published benchmarks: both sets scaled by mean
    and standard deviation of the reference, a perceptron with two hidden layers of ten units a
    parameter (rectified linear, Adam), accuracy on held-out points, five folds.

    Of the larger set as many points are taken, at random, as the smaller one has: between 4000 and
    1000 points of one distribution a classifier that always names the larger set is right in four
    of five. It needs a few thousand points to see fine differences; with few, ½ says little.

    Args:
        reference: draws from the posterior that is known to be right, (draw, parameter).
        draws: from the other one; named parameters are put into the order of the reference.
        folds: of the cross-validation.
        seed: of the choice of points, the split and the classifiers.

    Returns:
        `accuracy (fold)`, their mean `score`, and `spread`, their standard deviation.

    Raises:
        ValueError: the sets have other numbers of parameters, too few points, or values that are
            not finite.

    Source: D. Lopez-Paz, M. Oquab, arXiv 1610.06545; recipe: J.-M. Lueckmann et al., AISTATS 2021,
    arXiv 2101.04653.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> near, far = rng.normal(size=(2, 200, 2)) + np.array([[[0.0]], [[3.0]]])
    >>> round(float(c2st(near, far).score), 1)
    1.0
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import KFold, cross_val_score
    from sklearn.neural_network import MLPClassifier

    points, labels = labelled_points(reference, draws, folds, seed)
    units = UNITS_PER_PARAMETER * points.shape[1]
    classifier = MLPClassifier((units, units), max_iter=MOST_EPOCHS, random_state=seed)
    split = KFold(folds, shuffle=True, random_state=seed)
    options = {"cv": split, "scoring": "accuracy", "error_score": "raise"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # more epochs change nothing here
        warnings.filterwarnings("error", STOPPED)
        try:
            accuracy = cross_val_score(classifier, points, labels, **options)
        except UserWarning as told:
            if STOPPED not in str(told):
                raise
            # A half-trained classifier would tell nothing apart, and go on as if it had not.
            raise KeyboardInterrupt from None
    return xr.Dataset(
        {
            "accuracy": ("fold", accuracy),
            "score": float(accuracy.mean()),
            "spread": float(accuracy.std(ddof=1)),
        },
        attrs={"points": len(points), "seed": seed},
    )


def labelled_points(
    reference: Labelled, draws: Labelled, folds: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return as many points of both sets, scaled by the first, and which set each is from."""
    first, second = (
        variable(given, "posterior", ("draw", "parameter")) for given in (reference, draws)
    )
    if names := labels_of(first):
        second = by_name(second, names, "the other set")
    sets = [np.asarray(points, np.float64) for points in (first, second)]
    if any(p.ndim != 2 for p in sets) or sets[0].shape[1] != sets[1].shape[1]:
        raise ValueError(
            f"draws have shapes {sets[0].shape} and {sets[1].shape}; they must be "
            "(draw, parameter) with the same parameters: take one sample of the posterior"
        )
    if min(map(len, sets)) < 2 * folds or folds < 2:
        raise ValueError(
            f"there are {len(sets[0])} and {len(sets[1])} draws and {folds} folds; "
            "there must be 2 folds or more, and twice as many draws, better 1000"
        )
    if bad := sum(int((~np.isfinite(p)).any(axis=1).sum()) for p in sets):
        raise ValueError(f"{bad} draws have values that are not finite; leave them out")
    count, rng = min(map(len, sets)), np.random.default_rng(seed)
    sets = [p if len(p) == count else rng.choice(p, count, replace=False) for p in sets]
    mean, sd = sets[0].mean(axis=0), sets[0].std(axis=0, ddof=1)
    points = (np.concatenate(sets) - mean) / np.where(sd > 0, sd, 1.0)
    return points, np.repeat([0, 1], [len(p) for p in sets])
