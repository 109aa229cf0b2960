"""Numbers that are drawn along one axis are those of the shape, and so are first weights."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sciml._random import flat
from sciml.models.shared.linear import glorot


@settings(max_examples=10, deadline=None)
@given(
    shape=st.lists(st.integers(1, 5), max_size=4).map(tuple),
    seed=st.integers(0, 9),
    draw=st.sampled_from([jax.random.normal, jax.random.uniform, jax.random.laplace]),
)
def test_numbers_are_those_of_the_shape(shape, seed, draw):
    key = jax.random.key(seed)
    np.testing.assert_array_equal(flat(draw, key, shape), draw(key, shape))


@pytest.mark.parametrize("shape", [(3, 5), (7, 2, 4), (3, 3, 2, 5)])
def test_first_weights_are_those_of_jax(shape):
    key = jax.random.key(1)
    known = jax.nn.initializers.glorot_uniform()(key, shape)
    np.testing.assert_allclose(glorot(key, shape), known, rtol=1e-6)
