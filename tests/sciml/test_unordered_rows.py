"""Rows that say their order go where they belong; beside rows that say none they are refused."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpyro.distributions import LogNormal

import sciml
from sciml import diagnose
from sciml.models import Gaussian

pytestmark = pytest.mark.usefixtures("quick_compilation")

SUBSTRATE = dict(
    zip(("glucose", "fructose", "mannose", "xylose"), (0.1, 0.5, 2.0, 10.0), strict=True)
)
PRIOR = {"Vmax": LogNormal(0.0, 0.4), "Km": LogNormal(0.0, 0.6)}


def tables(count, seed):
    """Rates of an enzyme, Vmax S / (Km + S), as tables."""
    rng = np.random.default_rng(seed)
    theta = np.stack([rng.lognormal(0, sd, count) for sd in (0.4, 0.6)], axis=1)
    levels = np.array([*SUBSTRATE.values()])
    rates = theta[:, :1] * levels / (theta[:, 1:] + levels)
    seen = rates * (1 + 0.05 * rng.normal(size=rates.shape))
    return pd.DataFrame(theta, columns=[*PRIOR]), pd.DataFrame(seen, columns=[*SUBSTRATE])


@pytest.fixture(scope="module")
def found():
    data = sciml.dataset(*tables(400, 0), prior=PRIOR)
    fit = sciml.fit(Gaussian(width=8, depth=1), data, epochs=2)
    theta, seen = tables(40, 1)
    held = sciml.dataset(theta, seen)
    return fit, held, theta, seen, fit.sample(held, draws=100)


def doors(fit, held, draws):
    """Every function of truths beside draws, estimates or observations; each gives numbers."""
    estimate = fit.predict(held).estimate
    small = diagnose.Classifier(units=4, steps=5)
    at = draws.posterior[:, :1], held.observation[:1]
    return {
        "log_prob": lambda t: fit.log_prob(held, t),
        "sbc": lambda t: diagnose.sbc(draws, t).to_array(),
        "tarp": lambda t: diagnose.tarp(draws, t).to_array(),
        "coverage": lambda t: diagnose.coverage(draws, t).to_array(),
        "contraction": lambda t: diagnose.contraction(draws, t).to_array(),
        "recalibration": lambda t: diagnose.recalibration(draws, t).to_array(),
        "recovery": lambda t: diagnose.recovery(t, estimate, names=(*PRIOR,)).to_array(),
        "references": lambda t: diagnose.informed_references(held.observation, t),
        "local_c2st": lambda t: (
            diagnose.local_c2st(
                draws, t, held.observation, at=at, classifier=small, nulls=2
            ).statistic
        ),
    }


NAMES = ["log_prob", "sbc", "tarp", "coverage", "contraction", "recalibration", "recovery"]
NAMES += ["references", "local_c2st"]


@pytest.mark.parametrize("kind", ["table", "array", "data set"])
@pytest.mark.parametrize("name", NAMES)
def test_truths_in_another_order_than_rows_without_labels_are_refused(found, name, kind):
    fit, held, theta, _, draws = found
    bare = held.drop_vars("sample", errors="ignore")
    door = doors(fit, bare, draws.drop_vars("sample", errors="ignore"))[name]
    moved = theta.sample(frac=1, random_state=0)
    array = xr.DataArray(
        moved.to_numpy(),
        {"sample": moved.index, "parameter": [*PRIOR]},
        ("sample", "parameter"),
    )
    given = {"table": moved, "array": array, "data set": xr.Dataset({"parameters": array})}
    with pytest.raises(ValueError, match="the order of its rows is not known"):
        door(given[kind])
    door(theta)  # counted by pandas, in order


@pytest.mark.parametrize("name", NAMES)
def test_truths_in_another_order_go_where_they_belong(found, name):
    fit, held, theta, _, draws = found
    labels = [f"cell {i}" for i in range(len(theta))]
    held, draws = (each.assign_coords(sample=labels) for each in (held, draws))
    theta = theta.set_axis(labels)
    door = doors(fit, held, draws)[name]
    ordered, moved = (door(t) for t in (theta, theta.sample(frac=1, random_state=0)))
    np.testing.assert_allclose(*(np.asarray(each, float) for each in (moved, ordered)), rtol=1e-6)


@pytest.mark.slow
def test_observations_and_replicates_go_where_they_belong(found):
    _, held, theta, _, draws = found
    labels = [f"cell {i}" for i in range(len(theta))]
    held, draws = (each.assign_coords(sample=labels) for each in (held, draws))
    small = diagnose.Classifier(units=4, steps=5)
    at = draws.posterior[:, :3], held.observation[:3]
    how = {"classifier": small, "nulls": 2}
    ordered = diagnose.local_c2st(draws, held.parameters, held.observation, at=at, **how)
    turned = held.observation.isel(sample=slice(None, None, -1))
    moved = diagnose.local_c2st(draws, held.parameters, turned, at=(at[0], at[1][::-1]), **how)
    np.testing.assert_allclose(moved.statistic, ordered.statistic, rtol=1e-5)
    copies = held.observation.expand_dims(draw=5) + np.arange(5)[:, None, None]
    checks = [
        diagnose.predictive(held.observation, each)["check"].p_value
        for each in (copies, copies.isel(sample=slice(None, None, -1)))
    ]
    np.testing.assert_allclose(*checks)
