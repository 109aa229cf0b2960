"""Tiles give what the whole domain gives, whatever their size, and read no more than they say."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st

from sciml.models import SuperResolution
from sciml.wind import (
    Tiles,
    block_mean,
    conservative_bicubic,
    refine_located,
    refine_tiled,
    refined_rows,
)

RNG = np.random.default_rng(0)


def numpy_bicubic(coarse):
    """Three points of reach on each side: two of the cubic and one whose mean is restored."""
    return np.asarray(conservative_bicubic(coarse, 2))


WHOLE = RNG.gamma(2, 4, (23, 37)).astype(np.float32)
FINE = numpy_bicubic(WHOLE[None])[0]


@pytest.mark.slow
@settings(deadline=None, max_examples=6)
@given(st.sampled_from([5, 8, 13]), st.integers(0, 2))
def test_tiles_that_reach_far_enough_leave_no_seam(size, blend):
    tiled = refine_tiled(numpy_bicubic, WHOLE, 2, Tiles(size, reach=3, blend=blend))
    np.testing.assert_allclose(tiled, FINE, atol=1e-5)


def test_a_net_on_tiles_is_the_net_on_the_whole():
    model = SuperResolution(factor=2, channels=4, blocks=1)
    net = model.build(nnx.Rngs(0))
    state = jax.tree.map(
        lambda p: p + 0.1 * RNG.normal(size=p.shape).astype(np.float32), nnx.state(net, nnx.Param)
    )
    nnx.update(net, state)  # away from the baseline, where the last convolution is zero

    compiled = nnx.jit(net)

    def refine(coarse):
        return compiled(jnp.asarray(coarse)[:, None])[:, 0]

    whole = np.asarray(refine(WHOLE[None]))[0]
    tiled = refine_tiled(refine, WHOLE, 2, Tiles(size=8, reach=2 * model.blocks + 2, blend=2))
    assert np.abs(whole - FINE).max() > 0.01
    np.testing.assert_allclose(tiled, whole, atol=1e-5)


def test_a_function_that_one_thread_may_call_is_called_by_one():
    net = SuperResolution(factor=2, channels=4, blocks=1).build(nnx.Rngs(0))
    compiled = nnx.jit(lambda net, part: net(part))  # takes the net apart, and puts it together

    def refine(coarse):
        return compiled(net, jnp.asarray(coarse)[:, None])[:, 0]

    wide = np.tile(WHOLE, (1, 40))
    whole = np.asarray(refine(wide[None]))[0]
    tiled = refine_tiled(refine, wide, 2, Tiles(size=20, reach=4, blend=2))
    np.testing.assert_allclose(tiled, whole, atol=1e-5)


@pytest.mark.parametrize("threads", [False, True])
def test_tiles_side_by_side_only_where_asked(threads):
    seen, together = set(), threading.Barrier(2)

    def refine(part, window):
        if threads and window.left:  # the first call is alone: it may compile
            together.wait(timeout=60)
        seen.add(threading.get_ident())
        return numpy_bicubic(part[None])[0]

    tiles = Tiles(13, reach=3, blend=0)
    tiled = refine_located(refine, WHOLE[:13], 2, tiles, threads=threads)
    np.testing.assert_allclose(tiled, numpy_bicubic(WHOLE[None, :13])[0], atol=1e-5)
    assert (seen == {threading.get_ident()}) is not threads


def uneven(coarse):
    """A scheme that looks at all it is given, so that no reach is enough."""
    return np.repeat(np.repeat(coarse + coarse.mean(), 2, -1), 2, -2)


def test_where_no_reach_is_enough_mixing_turns_the_jump_into_a_slope():
    smooth = np.add.outer(np.arange(24.0), np.arange(40.0)).astype(np.float32)
    jumps = []
    for blend in (0, 4):
        tiled = refine_tiled(uneven, smooth, 2, Tiles(8, reach=0, blend=blend))
        jumps.append(np.abs(np.diff(block_mean(tiled, 2), axis=1) - 1).max())
    assert jumps[1] < 0.3 * jumps[0]


def test_block_means_are_kept_even_where_neighbours_disagree():
    def noisy(coarse):
        noise = RNG.normal(size=(1, 2 * coarse.shape[1], 2 * coarse.shape[2])).astype(np.float32)
        spread = np.repeat(np.repeat(np.asarray(block_mean(noise, 2)), 2, -1), 2, -2)
        return np.repeat(np.repeat(coarse, 2, -1), 2, -2) + noise - spread

    tiled = refine_tiled(noisy, WHOLE, 2, Tiles(8, reach=1, blend=3))
    np.testing.assert_allclose(block_mean(tiled, 2), WHOLE, atol=1e-5)


class Counted:
    """An array on disk: what is read of it at once is remembered."""

    def __init__(self, values):
        self.values, self.read = values, set()
        self.shape, self.ndim, self.dtype = values.shape, values.ndim, values.dtype

    def __getitem__(self, at):
        part = self.values[at]
        self.read.add(part.shape)
        return part


def test_memory_is_bounded_and_one_shape_is_compiled():
    stored = Counted(np.tile(WHOLE, (6, 1)))
    rows = list(refined_rows(numpy_bicubic, stored, 2, Tiles(8, reach=3, blend=1)))
    assert stored.read == {(16, 16)}
    assert max(len(part) for part in rows) <= 2 * (8 + 2)
    np.testing.assert_allclose(
        np.concatenate(rows), numpy_bicubic(stored.values[None])[0], atol=1e-5
    )


def test_times_are_refined_one_by_one():
    times = np.stack([WHOLE, WHOLE[::-1]])
    tiled = refine_tiled(numpy_bicubic, times, 2, Tiles(8, 3, 1))
    np.testing.assert_allclose(tiled, numpy_bicubic(times), atol=1e-5)


def test_channels_draws_and_static_fields_keep_their_place():
    winds, terrain = RNG.normal(size=(2, 13, 19)), RNG.normal(size=(26, 38))

    def refine(part, window):
        assert part.shape == (2, window.rows, window.columns)
        fine = np.repeat(np.repeat(part, 2, -1), 2, -2) + window.cut(terrain, 2)
        return np.stack([fine, -fine, 0 * fine + window.cut(terrain, 2)])

    tiled = refine_located(refine, winds, 2, Tiles(4, reach=1, blend=1))
    whole = np.repeat(np.repeat(winds, 2, -1), 2, -2) + terrain
    assert tiled.shape == (3, 2, 26, 38)
    np.testing.assert_allclose(tiled[0], whole, atol=1e-5)
    np.testing.assert_allclose(tiled[1], -whole, atol=1e-5)
    np.testing.assert_allclose(tiled[2], np.stack([terrain] * 2), atol=1e-5)


def test_wrong_tiles_and_schemes_are_refused():
    with pytest.raises(ValueError, match="at least twice the blend"):
        Tiles(size=7, reach=0, blend=4)
    with pytest.raises(ValueError, match=r"with factor 3 it must give \(1, 69, 111\)"):
        refine_tiled(numpy_bicubic, WHOLE, 3)
