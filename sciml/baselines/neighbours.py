"""Estimates from summary features: trees, and the nearest simulations."""

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from sciml._labels import Observed
from sciml._numbers import short
from sciml.baselines.features import Features, Summary
from sciml.baselines.labelled import data_of, labelled, valid_of
from sciml.ode.conditions import beside
from sciml.ode.data.evidence import check_same_grid

ROUNDING = 1e-6  # derived: some roundings of single precision; what varies less is constant


def extra_trees(
    train: xr.Dataset,
    test: Observed,
    *,
    features: Features | None = None,
    trees: int = 300,
    seed: int = 0,
) -> xr.Dataset:
    """Return estimates of the test parameters by extremely randomised trees.

    The estimate is the mean over the trees, of all parameters together; `spread` is the
    standard deviation over the trees.

    Args:
        train: simulations to learn from; failed ones are left out.
        test: observations to invert.
        features: of observations; default `Summary()`.
        trees: how many.
        seed: of the trees.

    Returns:
        `estimate (sample, parameter)` and `spread (sample, parameter)`.

    Raises:
        ValueError: no valid training sample, an observation without any value, or the test set has
            another grid than the training set.

    Source: Geurts, Ernst, Wehenkel, Mach. Learn. 63:3-42, 2006.

    >>> from sciml.ode import fitzhugh_nagumo, simulate
    >>> neuron = fitzhugh_nagumo()
    >>> train, test = (simulate(neuron, samples=n, seed=n) for n in (50, 3))
    >>> extra_trees(train, test, trees=5).estimate.shape
    (3, 2)
    """
    from sklearn.ensemble import ExtraTreesRegressor

    known, asked = both_of(train, test)
    x, theta, at = prepared(known, asked, features or Summary())
    targets = theta[:, 0] if theta.shape[1] == 1 else theta  # scikit-learn warns of one column
    forest = ExtraTreesRegressor(trees, random_state=seed).fit(x, targets)
    votes = np.stack([tree.predict(at.astype(np.float32)) for tree in forest.estimators_])
    votes = votes.reshape(len(votes), len(at), -1)
    return labelled(known, asked, votes.mean(axis=0), "extra_trees", spread=votes.std(axis=0))


def nearest_neighbours(
    train: xr.Dataset,
    test: Observed,
    *,
    features: Features | None = None,
    k: int = 5,
) -> xr.Dataset:
    """Return the mean parameters of the k most similar simulations, weighted by 1/distance.

    Distances are Euclidean between features that are scaled to unit variance on the training
    samples. Features that do not vary there (an initial value without noise) do not count, and one
    that lies beyond all of them counts as the nearest of them, as it does for trees: noise that
    the training samples lack would otherwise decide alone.

    Args:
        train: simulations to search; failed ones are left out.
        test: observations to invert.
        features: of observations; default `Summary()`.
        k: how many neighbours.

    Returns:
        `estimate (sample, parameter)` and `spread (sample, parameter)`, the standard deviation
        over the neighbours.

    Raises:
        ValueError: as `extra_trees`, or k is below 1 or above the number of valid training samples.

    >>> from sciml.ode import sir, simulate
    >>> train, test = (simulate(sir(), samples=n, seed=n) for n in (200, 3))
    >>> nearest_neighbours(train, test, k=5).estimate.shape
    (3, 2)
    """
    from sklearn.neighbors import NearestNeighbors

    known, asked = both_of(train, test)
    x, theta, at = prepared(known, asked, features or Summary())
    if not 1 <= k <= len(x):
        raise ValueError(f"k is {k}; it must lie between 1 and {len(x)}, the training samples")
    distance, index = NearestNeighbors(n_neighbors=k).fit(x).kneighbors(at)
    weight = 1 / np.maximum(distance, 1e-12)
    weight = (weight / weight.sum(axis=1, keepdims=True))[..., None]
    near = theta[index]
    mean = (weight * near).sum(axis=1)
    spread = np.sqrt((weight * (near - mean[:, None]) ** 2).sum(axis=1))
    return labelled(known, asked, mean, "nearest_neighbours", spread=spread)


def both_of(train: Any, test: Any) -> tuple[xr.Dataset, xr.Dataset]:
    """Return a training set, and observations in its axes, as data sets."""
    if not isinstance(train, xr.Dataset) or "parameters" not in train:
        raise TypeError(
            f"train is {short(train)}; it must be a Dataset with observation and parameters: pass "
            "what simulate or sciml.dataset gives"
        )
    train = data_of(train)
    return train, data_of(test, train.observation)


def prepared(
    train: xr.Dataset, test: xr.Dataset, features: Features
) -> tuple[Float[np.ndarray, "sample feature"], np.ndarray, Any]:
    """Return scaled features and parameters of valid training samples, and features of the test.

    Conditions are features as well. Features that are missing are replaced by the training median.
    Those that do not vary in the training set become 0, and all of the test are moved into the
    range of the training set.
    """
    check_same_grid(test.observation, train.observation, "the training set")
    valid, _ = valid_of(train), valid_of(test)
    if not valid.any():
        raise ValueError(
            f"no training sample is valid, of {valid.size}; simulate again with other parameters"
        )
    x, at = features(train)[valid], features(test)
    given, own = beside(train, test)
    x, at = np.concatenate([x, given[valid]], axis=1), np.concatenate([at, own], axis=1)
    middle = np.nan_to_num(np.nanmedian(x, axis=0))
    x, at = (np.where(np.isfinite(rows), rows, middle) for rows in (x, at))
    centre, sd = x.mean(axis=0), x.std(axis=0)
    scale = np.where(sd > ROUNDING * np.abs(x).max(axis=0), sd, np.inf)
    x, at = ((rows - centre) / scale for rows in (x, at))
    return x, train.parameters.values[valid], np.clip(at, x.min(axis=0), x.max(axis=0))
