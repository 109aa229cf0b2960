"""A test on the simulations of the training is told, and no other."""

import pytest

import sciml
from sciml.train import Recipe

SAID = "simulations that the net was trained on"
NOISE = sciml.ode.Gaussian(0.1)


@pytest.fixture(scope="module")
def system():
    return sciml.ode.van_der_pol()


@pytest.fixture(scope="module")
def fit(system):
    data = sciml.simulate(system, samples=60)
    net = sciml.models.Gaussian(width=8, depth=1)
    return sciml.fit(net, data, 0.2, epochs=2, noise=NOISE, recipe=Recipe(batch=20))


@pytest.mark.parametrize("noise", [None, NOISE])
def test_one_seed_for_training_and_test_is_told_once(system, fit, noise, caplog, tmp_path):
    test = sciml.simulate(system, samples=20, noise=noise)
    for found in (fit.replace(), sciml.load(fit.save(tmp_path / "a.fit"))):
        caplog.clear()
        found.sample(test.isel(sample=slice(None, None, -1)), draws=5)
        found.predict(test)
        assert caplog.text.count(SAID) == 1


def test_another_seed_other_rows_and_bare_observations_are_not(system, fit, caplog):
    data = sciml.simulate(system, samples=80)
    for test in (sciml.simulate(system, samples=20, seed=1), data.isel(sample=slice(60, None))):
        fit.predict(test)
    fit.predict(data.observation)
    fit.predict(data.observation.values)
    assert SAID not in caplog.text


def test_parameters_of_a_few_values_are_not_compared(caplog):
    """Of whole numbers many simulations have the same."""
    theta = [[float(i % 4)] for i in range(40)]
    data = sciml.dataset(theta, [[x[0], 1.0 + i] for i, x in enumerate(theta)], names=["n"])
    data.attrs["support"] = '{"n": [-1, 5]}'
    fit = sciml.fit(sciml.models.Dense(4, 1), data, epochs=1, recipe=Recipe(batch=20))
    fit.predict(data)
    assert SAID not in caplog.text
