"""Complex values, dates, spans of time and text are never taken for numbers in silence."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpyro.distributions import Uniform

import sciml
from sciml import diagnose
from sciml.train import Recipe

RNG = np.random.default_rng(0)
THETA, X = RNG.uniform(0.2, 0.4, (30, 2)), RNG.normal(size=(30, 3))
pytestmark = pytest.mark.usefixtures("untyped")
NAMES = ("a", "b")
AXES = ("sample", "feature")
FIELDS = RNG.normal(size=(6, 16, 16))


def with_one(values, odd):
    changed = values.astype(object)
    changed.flat[1] = odd
    return changed


KINDS = {
    "complex": lambda v: v + 1j,
    "text": lambda v: v.astype(str),
    "bytes": lambda v: v.astype("S"),
    "dates": lambda v: np.full(v.shape, "2020-01-01", "datetime64[ns]"),
    "spans": lambda v: np.full(v.shape, 5, "timedelta64[h]"),
    "one text": lambda v: with_one(v, "1.5"),
    "one complex": lambda v: with_one(v, 1j),
    "one date": lambda v: with_one(v, pd.Timestamp("2020-01-01")),
    "NA of pandas": lambda v: with_one(v, pd.NA),
}


@pytest.fixture(scope="module")
def fit():
    data = sciml.dataset(THETA, X, names=NAMES)
    return sciml.fit(sciml.models.Gaussian(8, 1), data, epochs=1, recipe=Recipe(batch=10))


@pytest.fixture(scope="module")
def net():
    return sciml.estimator.fit_downscaling(
        sciml.models.SuperResolution(2, 4, 1), FIELDS, FIELDS[:1], epochs=1,
        recipe=Recipe(batch=2), patches=sciml.estimator.Patches(8, 2),
    )  # fmt: skip


def data_with(**given):
    data = sciml.dataset(THETA, X, names=NAMES)
    return data.assign({name: (data[name].dims, values) for name, values in given.items()})


SIR = sciml.ode.sir()
PRIOR = {"rate": Uniform(0.1, 1.0)}


def decay(p):
    return np.exp(-p["rate"] * np.arange(3))


def boxed(values):
    return sciml.ode.BlackBox(lambda p: values, PRIOR)


BORDERS = {
    "dataset x": (X, lambda v: sciml.dataset(THETA, v, names=NAMES)),
    "dataset x labelled": (
        X, lambda v: sciml.dataset(THETA, xr.DataArray(v, dims=AXES), names=NAMES),
    ),
    "dataset x table": (X, lambda v: sciml.dataset(THETA, pd.DataFrame(v), names=NAMES)),
    "dataset theta": (THETA, lambda v: sciml.dataset(v, X, names=NAMES)),
    "dataset theta table": (THETA, lambda v: sciml.dataset(pd.DataFrame(v, columns=NAMES), X)),
    "dataset time": (np.arange(3.0), lambda v: sciml.dataset(THETA, X, names=NAMES, time=v)),
    "fit x": (X, lambda v: sciml.fit(sciml.models.Dense(8, 1), data_with(observation=v))),
    "fit theta": (THETA, lambda v: sciml.fit(sciml.models.Dense(8, 1), data_with(parameters=v))),
    "simulate": (THETA[:2], lambda v: sciml.simulate(SIR, parameters=v)),
    "time of a box": (
        np.arange(3.0),
        lambda v: sciml.simulate(sciml.ode.BlackBox(decay, PRIOR, time=v), 4),
    ),
    "c2st": (THETA, lambda v: diagnose.c2st(THETA, v)),
    "recovery": (THETA, lambda v: diagnose.recovery(v, THETA, names=NAMES)),
    "rmse": (FIELDS, lambda v: diagnose.rmse(v, FIELDS)),
    "crps": (FIELDS, lambda v: diagnose.crps(v, FIELDS[0])),
    "quantiles": (FIELDS, lambda v: diagnose.quantile_bias(v, FIELDS, [0.5])),
    "spectrum": (FIELDS, lambda v: diagnose.cosine_spectrum(v, spacing_m=1.0)),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("border", BORDERS)
def test_no_border_takes_them(border, kind):
    values, call = BORDERS[border]
    with pytest.raises(TypeError, match="must be real numbers, and"):
        call(KINDS[kind](values))


@pytest.mark.parametrize("kind", KINDS)
def test_nor_do_conditions_boxes_and_nets(kind, fit, net):
    odd = KINDS[kind]
    with pytest.raises(ValueError, match="the condition dose"):
        sciml.dataset(THETA, X, {"dose": odd(np.ones(30))}, names=NAMES)
    with pytest.raises(ValueError, match="real numbers"):
        sciml.simulate(boxed(odd(np.ones(5))), 4)
    for ask in (fit.predict, lambda x: fit.sample(x, draws=2)):
        with pytest.raises(TypeError, match="real numbers"):
            ask(xr.DataArray(odd(X), dims=AXES))
    with pytest.raises(TypeError, match="real numbers"):
        fit.log_prob(data_with(), xr.DataArray(odd(THETA), dims=("sample", "parameter")))
    with pytest.raises(TypeError, match="real numbers"):
        net.refine(odd(FIELDS[:, :8, :8]))
    with pytest.raises(TypeError, match="real numbers"):
        net.predict(xr.Dataset({"field": (("time", "y", "x"), odd(FIELDS))}))


def test_what_is_masked_is_missing():
    x = np.ma.masked_greater(np.arange(6.0).reshape(2, 3), 4)
    found = sciml.dataset(np.ones((2, 1)), x).observation
    np.testing.assert_array_equal(found, [[0, 1, 2], [3, 4, np.nan]])
    with pytest.raises(ValueError, match="theta0 of sample 1 is nan"):
        sciml.dataset(np.ma.masked_greater([[1.0], [5.0]], 4), np.ones((2, 3)))


def test_numbers_among_objects_are_numbers_and_None_is_missing():
    exact = np.array([[Decimal("0.5"), 1, 2.0], [None, True, np.float32(3)]], object)
    found = sciml.dataset([[1.0], [2.0]], exact)
    np.testing.assert_array_equal(found.observation, [[0.5, 1, 2], [np.nan, 1, 3]])
    assert found.observation.dtype == np.float32


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.float16, "Int64", "Float32"])
def test_every_type_of_real_numbers_is_taken(dtype):
    table = pd.DataFrame(np.arange(12).reshape(4, 3) % 2).astype(dtype)
    found = sciml.dataset(table, table)
    np.testing.assert_array_equal(found.parameters, np.arange(12).reshape(4, 3) % 2)


def test_a_bare_array_is_refused_by_what_takes_a_dataset(net):
    with pytest.raises(TypeError, match="coarse is a ndarray; predict takes a Dataset"):
        net.predict(FIELDS)
