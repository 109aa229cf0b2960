"""A coarse and a fine model of one turbulence: the coarse one is run, not averaged."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciml import wind
from sciml.wind.make.surface_qg import SurfaceQG, resolved, ring, run, to_grid, velocity
from sciml.wind.make.two_resolutions import large_scales, together

FINE, COARSE = SurfaceQG(n=32, dt=0.02), SurfaceQG(n=16, dt=0.02)


def test_large_scales_are_the_field_at_the_middles_of_blocks():
    theta = ring(FINE, jax.random.key(0), 1.0)  # of wavenumber 4, which both grids hold
    found = to_grid(large_scales(theta, 16))
    # Half a fine cell beyond every second point, by a grid four times as fine.
    dense = np.zeros((128, 65), complex)
    for rows in (np.s_[:16], np.s_[-16:]):
        dense[rows, :17] = np.asarray(theta)[rows]
    there = np.asarray(to_grid(jnp.asarray(16 * dense)))[2::8, 2::8]
    np.testing.assert_allclose(found, there, atol=1e-4 * np.abs(there).max())


def test_one_model_twice_is_one_model():
    """A fine model of which nothing is cut off agrees with itself."""
    theta = ring(FINE, jax.random.key(0), 1.0) * resolved(32)
    same = together(FINE, FINE, theta, jax.random.key(1), 5)
    alone = run(FINE, theta, jax.random.key(1), 5)
    for one in same:
        np.testing.assert_allclose(one, alone, atol=1e-4 * np.abs(np.asarray(alone)).max())


@pytest.mark.slow
def test_the_coarse_model_loses_the_fine_one_with_time():
    theta = run(FINE, ring(FINE, jax.random.key(0), 1.0), jax.random.key(2), 100)
    off = []
    for steps in (1, 25, 100):
        fine, coarse = together(FINE, COARSE, theta, jax.random.key(1), steps)
        seen = np.stack(velocity(COARSE, large_scales(fine, 16)))
        off.append(float(np.sqrt(np.mean((seen - np.stack(velocity(COARSE, coarse))) ** 2))))
    assert off[0] < off[1] < off[2]


@pytest.mark.slow
def test_what_is_made_matches_and_is_no_average():
    made = wind.generate_two(0, 2, 32, 2)
    pairs = wind.matched(made["coarse"], made["fine"], 2)
    assert pairs.agreement.times == (2, 2, 2)
    assert pairs.agreement.correlation > 0.9
    assert max(map(abs, pairs.agreement.shift_cells)) < 0.2
    assert np.abs(pairs.coarse.values - wind.block_mean(pairs.fine.values, 2)).max() > 0.1
    assert made["coarse"].attrs["synthetic"] == "true"
    with pytest.raises(ValueError, match="n 33 and factor 2"):
        wind.generate_two(0, 2, 33, 2)
