"""What the published recipe does to a wide net, and what ours does."""

import pytest

import sciml
from sciml.estimator import CollapseWarning
from sciml.models import Dense


def test_the_paper_recipe_destroys_a_wide_net():
    """A constant step of 0.002 saturates 1024 units at once; the default recipe learns."""
    data = sciml.simulate(sciml.ode.fitzhugh_nagumo(), samples=1000, seed=0)
    model = Dense(width=1024)
    with pytest.warns(CollapseWarning):
        destroyed = sciml.fit(model, data, epochs=4, recipe=sciml.train.paper())
    sound = sciml.fit(model, data, epochs=4, recipe=model.recipe().replace(batch=32))
    assert destroyed.collapsed == ("theta0", "theta1")
    assert sound.collapsed == ()
    assert float(sound.history.loss[-1]) < 0.5 * float(destroyed.history.loss[-1])
