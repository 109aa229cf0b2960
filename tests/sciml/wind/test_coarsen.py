import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from skimage.measure import block_reduce
from skimage.transform import resize

from sciml import diagnose, wind
from sciml.wind import (
    block_mean,
    conservative_bicubic,
    crop,
    restore_means,
    restore_means_above,
)
from sciml.wind.prepare.upsample import METHODS

QUICK = settings(deadline=None, max_examples=20)
SHAPES, FACTORS = [(2, 2), (2, 7), (5, 3)], [1, 2, 5]  # few, since every new one is compiled
SPEEDS = st.floats(0, 100, width=32)


@st.composite
def coarse_and_factor(draw):
    coarse = draw(hnp.arrays(np.float32, draw(st.sampled_from(SHAPES)), elements=SPEEDS))
    return jnp.asarray(coarse), draw(st.sampled_from(FACTORS))


@pytest.mark.slow
@QUICK
@given(coarse_and_factor())
def test_conservative_bicubic_has_the_block_means_of_its_input(case):
    coarse, factor = case
    fine = conservative_bicubic(coarse, factor)
    rounding = 1e-6 * max(float(coarse.max()), 1e-30)  # eight roundings of the largest speed
    np.testing.assert_allclose(block_mean(fine, factor), coarse, atol=rounding)


@QUICK
@given(coarse_and_factor(), st.integers(0, 2**31))
def test_restoring_means_never_moves_away_from_the_truth(case, seed):
    like, factor = case
    rng = np.random.default_rng(seed)
    shape = tuple(factor * side for side in like.shape)
    truth, guess = (jnp.asarray(rng.normal(size=shape), jnp.float32) for _ in range(2))
    moved = restore_means(guess, block_mean(truth, factor))
    assert jnp.sum((moved - truth) ** 2) <= jnp.sum((guess - truth) ** 2) * (1 + 1e-5) + 1e-6


def waterline(cell, mean):
    """max(cell − τ, 0) with this mean, τ by bisection."""
    low, high = cell.min() - mean - 1, cell.max()
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(cell - middle, 0).mean() > mean else (low, middle)
    return np.maximum(cell - low, 0)


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 2**31))
def test_speeds_with_given_means_are_not_negative_and_nearest(seed):
    rng = np.random.default_rng(seed)
    coarse = rng.gamma(0.5, 2, (2, 3, 4)) * rng.integers(0, 2, (2, 3, 4))
    fine = rng.normal(1, 3, (2, 9, 12))
    moved = np.asarray(restore_means_above(fine, coarse))
    assert moved.min() >= 0
    np.testing.assert_allclose(block_mean(moved, 3), coarse, atol=1e-5)
    for n, j, i in np.ndindex(coarse.shape):
        block = (n, slice(3 * j, 3 * j + 3), slice(3 * i, 3 * i + 3))
        expected = waterline(fine[block], coarse[n, j, i])
        np.testing.assert_allclose(moved[block], expected, atol=1e-4)


def test_where_nothing_is_too_small_only_means_are_restored():
    fine, coarse = np.full((4, 6), 5.0, np.float32), np.full((2, 3), 4.0, np.float32)
    fine[0, 0] = 3.0
    np.testing.assert_allclose(restore_means_above(fine, coarse), restore_means(fine, coarse))
    np.testing.assert_allclose(restore_means_above(fine, coarse, 4.5), 4.5)


@QUICK
@given(st.integers(1, 6), st.integers(6, 20), st.integers(6, 20))
def test_crop_keeps_the_largest_whole_blocks(factor, y, x):
    field = jnp.arange(y * x, dtype=jnp.float32).reshape(y, x)
    cut = crop(field, factor)
    assert cut.shape == (y // factor * factor, x // factor * factor)
    np.testing.assert_array_equal(cut, field[: cut.shape[0], : cut.shape[1]])


def test_block_mean_agrees_with_scikit_image():
    field = np.random.default_rng(0).gamma(2, 4, (12, 20)).astype(np.float32)
    expected = block_reduce(field, (4, 4), np.mean)
    np.testing.assert_allclose(block_mean(jnp.asarray(field), 4), expected, rtol=1e-5)


@pytest.mark.parametrize(("name", "order"), [("block", 0), ("bilinear", 1)])
def test_interpolation_agrees_with_scikit_image_away_from_the_edge(name, order):
    coarse = np.random.default_rng(1).gamma(2, 4, (9, 11)).astype(np.float32)
    expected = resize(coarse, (36, 44), order=order, mode="edge", anti_aliasing=False)
    ours = METHODS[name](jnp.asarray(coarse), 4)
    np.testing.assert_allclose(ours[8:-8, 8:-8], expected[8:-8, 8:-8], atol=1e-4)


def keys_kernel(s):
    s = abs(s)
    if s < 1:
        return 1.5 * s**3 - 2.5 * s**2 + 1
    return -0.5 * s**3 + 2.5 * s**2 - 4 * s + 2 if s < 2 else 0.0


def test_bicubic_is_keys_cubic_convolution_with_half_pixel_centres():
    coarse = np.random.default_rng(2).gamma(2, 4, (8, 9))
    places = [(i + 0.5) / 4 - 0.5 for i in range(36)]
    matrix = np.array([[keys_kernel(p - j) for j in range(9)] for p in places])
    matrix /= matrix.sum(1, keepdims=True)
    expected = matrix[:32, :8] @ coarse @ matrix.T
    ours = METHODS["bicubic"](jnp.asarray(coarse, jnp.float32), 4)
    np.testing.assert_allclose(ours[:24], expected[:24], atol=1e-4)


@pytest.mark.parametrize("name", METHODS)
def test_a_constant_field_stays_constant(name):
    fine = METHODS[name](jnp.full((2, 3, 5), 7.0), 3)
    assert fine.shape == (2, 9, 15)
    np.testing.assert_allclose(fine, 7.0, rtol=1e-6)


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize("name", [*METHODS, "crop", "block_mean", "pair", "subgrid"])
def test_a_factor_is_a_whole_number_and_a_field_has_two_axes(name):
    also = {"crop": crop, "block_mean": block_mean, "pair": wind.pair}
    act = {**METHODS, **also, "subgrid": diagnose.subgrid_variance}[name]
    for factor in (0, -2, 2.0, 2.5, "2", True, None):
        with pytest.raises(ValueError, match=r"factor is .*; it must be a whole number, at least"):
            act(jnp.zeros((8, 8)), factor)
    act(jnp.zeros((8, 8)), np.int64(2))
    with pytest.raises(ValueError, match="a field has 1 axes; its last ones must be y, x"):
        act(jnp.zeros(8), 2)


def test_wrong_factors_are_refused():
    field = jnp.zeros((8, 8))
    with pytest.raises(ValueError, match=r"factor is 3 on a 8×8 field; it must divide both sides"):
        block_mean(field, 3)
    with pytest.raises(ValueError, match="factor is 9 on a 8×8 field; it must be between 1 and 8"):
        crop(field, 9)
    with pytest.raises(ValueError, match="common multiple"):
        restore_means(field, jnp.zeros((3, 2)))
