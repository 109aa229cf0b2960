"""Weighted draws: what they are worth, evened out, drawn from."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sciml.reference.weights import effective, largest_power, systematic


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1, 7, 100]))
def test_each_is_drawn_as_often_as_its_share_says(seed, count):
    """Evenly spaced points fall into an interval of n points' length n times, or once more."""
    share = jax.nn.softmax(3 * jax.random.normal(jax.random.key(seed), (20,)))
    drawn = np.bincount(systematic(share, jax.random.key(seed + 1), count), minlength=20)
    assert drawn.sum() == count
    assert (np.abs(drawn - count * np.asarray(share)) < 1 + 1e-3).all()


def test_equal_shares_are_worth_all_of_their_draws():
    assert float(effective(jnp.full(8, 1 / 8))) == pytest.approx(8)
    assert float(effective(jnp.eye(8)[3])) == pytest.approx(1)


@pytest.mark.parametrize("least", [5.0, 30.0, 60.0])
def test_the_largest_power_leaves_just_enough(least):
    """Of w = e^(−x²/2) on a fine grid the effective number under wᵇ falls as 1/√b."""
    grid = jnp.linspace(-300, 300, 6001)
    power = largest_power(-0.5 * grid**2, least, 10.0)
    known = (10 * 2 * np.sqrt(np.pi) / least) ** 2  # Σ w = √(2π/b)/h, Σ w² = √(π/b)/h, h = 0.1
    assert float(power) == pytest.approx(min(known, 10.0), rel=1e-3)
    assert float(largest_power(-0.5 * grid**2, least)) == pytest.approx(min(known, 1.0), rel=1e-3)
