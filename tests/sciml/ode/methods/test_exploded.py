"""Solutions that only a fixed step has made large count as failed; true growth does not."""

import numpy as np
import numpyro.distributions as dist
import pytest

import sciml
from sciml.ode import Observation, RungeKutta4, StepWarning, System, accumulate


def linear(rate):
    """The equation du/dt = rate u from 1, by which a solution grows or decays."""
    return System(
        name="linear",
        vector_field=lambda t, u, p: [p[0] * u[0]],
        initial_state=(1.0,),
        prior={"rate": rate},
        observation=Observation(times=tuple(np.linspace(0, 20, 21)), states=(0,)),
    )


def test_a_step_beyond_stability_fails_its_samples():
    decay = linear(dist.Uniform(-40.0, -0.1))
    with pytest.warns(StepWarning) as said:
        data = sciml.simulate(decay, samples=200, seed=0, method=RungeKutta4(substeps=4))
    assert any("by the step alone: they count as failed" in str(w.message) for w in said)
    rate = data.parameters.values[:, 0]
    # At four steps in a unit of time the method is stable up to a rate of 4 × 2.785.
    assert not data.valid.values[rate < -12].any()
    assert data.valid.values[rate > -11].all()
    assert float(abs(data.observation).max()) <= 1
    assert data.attrs["failures"] == int((~data.valid).sum())


def test_true_growth_is_kept():
    growth = linear(dist.Uniform(-1.0, 1.0))
    data = sciml.simulate(growth, samples=200, seed=0, method=RungeKutta4(substeps=8))
    assert data.valid.all()
    assert float(data.observation.max()) > 1e6


@pytest.mark.filterwarnings("ignore::sciml.ode.StepWarning")
def test_a_store_has_the_same_failures(tmp_path):
    decay = linear(dist.Uniform(-40.0, -0.1))
    accumulate(decay, tmp_path / "a.zarr", samples=64, method=RungeKutta4(substeps=4, chunk=64))
    data = sciml.ode.open_simulations(tmp_path / "a.zarr")
    assert 0 < int(data.valid.sum()) < 64
    assert float(abs(data.observation).max()) <= 1
