"""How well parameters can be known, against closed forms; by labels; refused where it is not."""

import numpy as np
import pytest
import xarray as xr
from numpyro.distributions import LogNormal, Normal, Uniform

import sciml
from sciml.ode import (
    AR1,
    Diffrax,
    Gaussian,
    Missing,
    Observation,
    Poisson,
    Static,
    System,
    Truncated,
)
from sciml.reference import laplace

A = np.array([[1.0, 0.2], [0.5, -1.0], [0.3, 0.8], [-0.7, 0.1]])
PRIOR = {"slope": Normal(0.0, 2.0), "offset": Normal(1.0, 0.5)}
WITHIN = 0.12  # of 4000 measurements: four times √(2/4000), and a little of their correlation


def line(noise, prior=PRIOR, unit=1.0):
    """A linear task, x = A θ / unit under a noise."""
    return Static("line", prior, len(A), noise, solution=lambda theta: A @ theta / unit)


def found(problem, theta, **options):
    return laplace(problem, theta, draws=4000, **options).covariance.values


def close(one, other):
    """Compare covariances by their largest entries."""
    return np.abs(one - other).max() <= WITHIN * np.abs(other).max()


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_a_linear_task_has_its_posterior_covariance(unit):
    prior = {"slope": Normal(0.0, 2.0 * unit), "offset": Normal(unit, 0.5 * unit)}
    expected = np.linalg.inv(A.T @ A / 0.3**2 + np.diag([1 / 4, 1 / 0.25]))
    theta = unit * np.array([[0.4, -1.0], [3.0, 0.7]])
    for one in found(line(Gaussian(sd=0.3), prior, unit), theta) / unit**2:
        assert close(one, expected)
    half = found(line(Missing(Gaussian(sd=0.3), fraction=0.5), prior, unit), theta[:1]) / unit**2
    assert close(half[0], np.linalg.inv(A.T @ A / 0.3**2 / 2 + np.diag([1 / 4, 1 / 0.25])))


@pytest.mark.slow
def test_counts_and_correlated_noise_of_an_equation():
    decay = System(
        "decay",
        lambda _t, x, p: -p * x,
        (100.0,),
        {"rate": Uniform(0.1, 2.0)},
        Observation.regular(interval=0.2, length=12),
        noise=Poisson(),
    )
    t, rate = 0.2 * np.arange(12), 0.7
    mean, slope = 100 * np.exp(-rate * t), -100 * t * np.exp(-rate * t)
    counts = found(decay, {"rate": [rate]})[0, 0, 0]
    assert counts == pytest.approx(1 / (slope**2 / mean).sum(), rel=WITHIN)
    adaptive = found(decay, {"rate": [rate]}, method=Diffrax(dtype="float64"))[0, 0, 0]
    assert adaptive == pytest.approx(counts, rel=1e-3)  # of the same draws
    lag = np.abs(np.subtract.outer(np.arange(12), np.arange(12)))
    exact = 1 / (slope @ np.linalg.solve(0.5**2 * 0.8**lag, slope))
    noise = AR1(sd=0.5, correlation=0.8)
    assert found(decay, {"rate": [rate]}, noise=noise)[0, 0, 0] == pytest.approx(exact, rel=WITHIN)


def test_levels_and_the_curvature_of_a_prior():
    noise = Gaussian(sd=Uniform(0.1, 1.0), estimate=True)
    task = line(noise)
    data = sciml.simulate(task, parameters=[[0.4, -1.0]], levels={"sd": 0.5}, noise=noise)
    told = laplace(task, data, draws=4000)
    assert told.parameter.values.tolist() == ["slope", "offset", "noise_sd"]
    assert float(told.sd[0, 2]) ** 2 == pytest.approx(0.5**2 / (2 * len(A)), rel=WITHIN)
    with pytest.raises(ValueError, match="without the level sd that the noise samples"):
        laplace(task, [[0.4, -1.0]])
    far = {"size": LogNormal(0.0, 0.5)}  # at exp(−2): P = ((1 − ln θ) / 0.25 − 1) / θ²
    one = Static("one", far, 1, Gaussian(sd=1e3))
    theta = np.exp(-2.0)
    assert found(one, [[theta]])[0, 0, 0] == pytest.approx(theta**2 / (3 / 0.25 - 1), rel=1e-3)


def test_parameters_are_aligned_by_their_labels():
    task = line(Gaussian(sd=0.3))
    told = laplace(task, [[0.4, -1.0], [3.0, 0.7]], draws=100)
    swapped = xr.DataArray(
        [[-1.0, 0.4], [0.7, 3.0]],
        dims=("sample", "parameter"),
        coords={"sample": ["b", "a"], "parameter": ["offset", "slope"]},
    )
    again = laplace(task, swapped, draws=100)
    np.testing.assert_array_equal(again.covariance, told.covariance)
    assert again.sample.values.tolist() == ["b", "a"]
    assert again.other.values.tolist() == ["slope", "offset"]


def test_what_cannot_be_known_is_nan_and_said():
    both = Static(
        "sum",
        {"a": Uniform(0.0, 1.0), "b": Uniform(0.0, 1.0)},
        3,
        Gaussian(sd=0.1),
        solution=lambda theta: np.ones(3) * theta.sum(),
    )
    with pytest.warns(UserWarning, match="2 of 2 covariances are NaN"):
        assert np.isnan(laplace(both, [[0.2, 0.3], [0.4, 0.5]], draws=100).sd).all()


def test_what_has_no_answer_is_refused(untyped):
    task = line(Gaussian(sd=0.3))
    with pytest.raises(ValueError, match="draws is 75; it must be a multiple of 50"):
        laplace(task, [[0.4, -1.0]], draws=75)
    with pytest.raises(ValueError, match="shape"):
        laplace(task, [[0.4, -1.0, 2.0]])
    with pytest.raises(ValueError, match="noise is None"):
        laplace(sciml.ode.fitzhugh_nagumo(), [[0.4, 0.4]])
    with pytest.raises(ValueError, match=r"parameters\[1\] is \[2.\], outside the prior of one"):
        laplace(Static("one", {"a": Uniform(0.0, 1.0)}, 1, Gaussian(sd=1.0)), [[0.5], [2.0]])
    rule = Truncated({"a": Uniform(0.0, 1.0), "b": Uniform(0.0, 1.0)}, inside="a + b < 1")
    below = Static("below", {("a", "b"): rule}, 2, Gaussian(sd=1.0))
    with pytest.raises(ValueError, match="outside the prior of below"):
        laplace(below, [[0.7, 0.8]])
    with pytest.raises(TypeError, match=r"call the function, as sciml\.ode\.sir"):
        laplace("sir", [[0.4, 0.1]])  # pyright: ignore[reportArgumentType]
