"""What is held out and trained on too is told, whatever brought it there."""

import numpy as np
import pytest
import xarray as xr

import sciml
from sciml import estimator, models, wind
from sciml.train import Recipe

SAID = "trained on too"
FIT = {"epochs": 2, "recipe": Recipe(batch=20)}
HOW = {"recipe": Recipe(2), "epochs": 1, "patches": estimator.Patches(16, 4)}
NET = models.SuperResolution(factor=4, channels=4, blocks=1)


@pytest.fixture(scope="module")
def runs() -> tuple[np.ndarray, np.ndarray]:
    """Return parameters and observations of 80 runs."""
    theta = np.random.default_rng(0).uniform(size=(80, 2))
    return theta, np.stack([theta.sum(axis=1), theta.prod(axis=1), theta[:, 0] ** 2], axis=1)


def table(theta: np.ndarray, x: np.ndarray) -> xr.Dataset:
    return sciml.dataset(theta, x, names=["a", "b"], bounds={"a": (0, 1), "b": (0, 1)})


def said(caplog) -> list[str]:
    found = [x.getMessage() for x in caplog.records if SAID in x.getMessage()]
    caplog.clear()
    return found


def test_a_table_that_holds_its_runs_twice_is_told(runs, caplog) -> None:
    """Unshuffled, shuffled, in another precision; a few copies are no matter."""
    theta, x = runs
    order = np.random.default_rng(1).permutation(160)
    twice = [np.concatenate([one, one]) for one in runs]
    for made in (table(*twice), table(*(one[order].astype("f4") for one in twice))):
        sciml.fit(models.Dense(8, 1), made, 0.25, **FIT)
        (line,) = said(caplog)
        assert "of 40 held-out simulations are trained on too" in line
    sciml.fit(models.Dense(8, 1), table(theta, x), 0.25, **FIT)
    assert said(caplog) == []


@pytest.mark.parametrize("noise", [None, sciml.ode.Gaussian(0.1)])
def test_a_validation_set_of_the_training_is_told(runs, noise, caplog) -> None:
    """With noise too, which is drawn anew: the simulations below it are the same."""
    data = table(*runs)
    part = data.isel(sample=slice(None, None, 4))
    sciml.fit(models.Dense(8, 1), data, part, noise=noise, **FIT)
    (line,) = said(caplog)
    assert line.startswith("20 of 20 held-out simulations")
    rest = data.isel(sample=np.flatnonzero(np.arange(80) % 4))
    sciml.fit(models.Dense(8, 1), rest, part, noise=noise, **FIT)
    assert said(caplog) == []


def test_wind_that_is_learned_and_held_out_is_told(caplog) -> None:
    fine = np.random.default_rng(0).normal(size=(8, 16, 16)).astype("f4")
    estimator.fit_downscaling(NET, fine[:6], fine[5:], **HOW)
    (line,) = said(caplog)
    assert line.startswith("1 of 3 held-out fields")
    estimator.fit_downscaling(NET, fine[:6], fine[6:], **HOW)
    assert said(caplog) == []


def test_fields_of_which_nothing_is_known_are_not_compared(caplog) -> None:
    """As of times that a file lacks, in both parts."""
    fine = np.random.default_rng(0).normal(size=(8, 16, 16)).astype("f4")
    fine[[0, 7]] = np.nan
    estimator.fit_downscaling(NET, fine[:6], fine[6:], **HOW)
    assert said(caplog) == []


def test_hours_that_are_learned_and_held_out_are_told(caplog) -> None:
    winds = wind.gaussian(seed=0, snapshots=9, n=16)
    hours = np.datetime64("2020-01-01", "ns") + np.arange(9) * np.timedelta64(1, "h")
    fields = wind.channels(winds.assign_coords(time=hours), ("x_wind", "y_wind"))
    net = models.Between(steps=2, channels=4, blocks=1)
    estimator.fit_between(net, fields[:6], fields[4:], **HOW)
    (line,) = said(caplog)
    assert line.startswith("2 of 5 held-out fields")
    estimator.fit_between(net, fields[:6], fields[6:], **HOW)
    assert said(caplog) == []
