"""The study of covariances: kept, judged, tabled, drawn."""

import sys

import numpy as np
import pytest

from sciml.figure import panels
from sciml.studies import STUDIES, covariance
from sciml.studies.inverse.covariance import EXACT, LEARNED, LIKELY, Size, ellipsoid, path

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # nets as small as these are poor


def test_each_covariance_is_judged_and_kept(tmp_path, monkeypatch):
    module = sys.modules["sciml.studies.inverse.covariance"]  # the package's name is the function's
    small = Size(samples=200, epochs=3, tests=40, weighed=8, measured=50, seeds=1, width=16)
    monkeypatch.setitem(module.SIZES, "fast", small)
    _, ax = panels(1, 1, (5.5, 3.8))
    found = covariance(out=tmp_path, ax=ax)
    assert found.covariance.values.tolist() == [LEARNED, LIKELY, EXACT]
    assert ((found.held >= 0) & (found.held <= 1)).all()
    assert (found.sd_ratio.sel(covariance=EXACT) == 1).all()
    assert found.smallest.notnull().sum("truth").values.tolist() == [[40, 40, 8]]
    assert ax.get_xlabel() == "level of the region (%)"
    monkeypatch.setattr(module, "judged", None)  # kept runs are read, not made again
    np.testing.assert_array_equal(covariance(out=tmp_path).held, found.held)
    tables = STUDIES["covariance"].tables(found)
    assert list(tables["covariance"]["covariance"]) == [LEARNED, LIKELY, EXACT]
    assert list(tables["covariance_own_noise"]["unknown"]) == ["a", "b", "c", "sigma"]


def test_ellipsoids_of_a_normal_density_hold_what_they_say():
    rng = np.random.default_rng(0)
    factor = np.array([[2.0, 0.0, 0.0], [1.0, 0.5, 0.0], [-3.0, 0.2, 0.1]])
    errors = rng.normal(size=(4000, 3)) @ factor.T
    levels = ellipsoid(errors, np.broadcast_to(factor @ factor.T, (4000, 3, 3)))
    assert (levels <= 0.8).mean() == pytest.approx(0.8, abs=0.02)


def test_paths_without_noise_solve_the_equation():
    import jax

    import sciml

    problem = sciml.ode.fitzhugh_nagumo_ramsay()
    theta = np.array([[0.2, 0.2, 3.0, 0.0]], np.float32)
    seen = path(theta, jax.random.split(jax.random.key(0), 1))
    exact = sciml.simulate(problem, parameters=theta[:, :3]).observation
    assert float(np.abs(seen - exact.values).mean()) < 0.1  # Euler's steps of 0.025: late at spikes
