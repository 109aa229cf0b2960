import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st

from sciml.models.convolution import convolve
from sciml.models.refinement import shuffle
from sciml.models.super_resolution import SuperResolution
from sciml.wind import bicubic, block_mean, conservative_bicubic

SMALL = SuperResolution(factor=2, channels=4, blocks=1)


def randomised(config, seed=0):
    """The net with weights that are nowhere zero."""
    net = config.build(nnx.Rngs(0))
    graph, params = nnx.split(net, nnx.Param)
    leaves, structure = jax.tree.flatten(params)
    keys = jax.random.split(jax.random.key(seed), len(leaves))
    noisy = [
        leaf + 0.1 * jax.random.normal(key, leaf.shape)
        for key, leaf in zip(keys, leaves, strict=True)
    ]
    return nnx.merge(graph, jax.tree.unflatten(structure, noisy))


@pytest.mark.parametrize("side", [1, 3, 5])
def test_convolution_and_its_gradients_are_those_of_jax(side):
    keys = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(keys[0], (2, 5, 7, 3))
    kernel = jax.random.normal(keys[1], (side, side, 3, 4))
    weight = jax.random.normal(keys[2], (2, 5, 7, 4))

    def plain(x, kernel):
        return jax.lax.conv_general_dilated(
            x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    ours, theirs = (
        jax.value_and_grad(lambda *a, f=f: jnp.vdot(f(*a), weight), argnums=(0, 1))(x, kernel)
        for f in (convolve, plain)
    )
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-3), ours, theirs)


@pytest.mark.parametrize("conservative", [True, False])
def test_the_net_starts_as_bicubic_interpolation(conservative):
    coarse = jax.random.normal(jax.random.key(0), (2, 1, 5, 6))
    net = SuperResolution(factor=3, channels=4, blocks=1, conservative=conservative).build(
        nnx.Rngs(0)
    )
    start = conservative_bicubic if conservative else bicubic
    np.testing.assert_allclose(net(coarse), start(coarse, 3), atol=1e-6)


@settings(deadline=None, max_examples=6)
@given(st.integers(2, 4), st.integers(2, 5), st.integers(2, 5), st.integers(0, 99))
def test_block_means_of_the_output_are_the_input(factor, y, x, seed):
    coarse = jax.random.normal(jax.random.key(seed), (1, 1, y, x))
    net = randomised(SuperResolution(factor=factor, channels=3, blocks=1), seed)
    np.testing.assert_allclose(block_mean(net(coarse), factor), coarse, atol=1e-5)


def test_without_the_constraint_they_are_not():
    coarse = jax.random.normal(jax.random.key(0), (1, 1, 6, 6))
    net = randomised(SuperResolution(factor=2, channels=3, blocks=1, conservative=False))
    assert jnp.abs(block_mean(net(coarse), 2) - coarse).max() > 0.01


def test_a_point_sees_only_its_receptive_field():
    coarse = jax.random.normal(jax.random.key(0), (1, 1, 20, 20))
    net = randomised(SMALL)
    reach = 2 * SMALL.blocks + 2
    changed = net(coarse.at[..., 10, 10].add(1.0)) != net(coarse)
    rows = np.flatnonzero(np.asarray(changed[0, 0].any(axis=1))) // 2
    assert rows.min() == 10 - reach
    assert rows.max() == 10 + reach


def test_shuffle_lays_channels_out_inside_their_block():
    x = jnp.arange(8.0).reshape(1, 1, 2, 4)
    np.testing.assert_array_equal(shuffle(x, 2)[0, 0], [[0, 1, 4, 5], [2, 3, 6, 7]])


def test_default_size():
    graph_and_params = nnx.split(SuperResolution().build(nnx.Rngs(0)), nnx.Param)
    assert sum(leaf.size for leaf in jax.tree.leaves(graph_and_params[1])) == 78_928


@pytest.mark.parametrize(
    "sizes", [{"factor": 1}, {"channels": 0}, {"blocks": -1}, {"blocks": True}]
)
def test_bad_sizes_are_refused(sizes):
    (name,) = sizes
    with pytest.raises(ValueError, match=f"SuperResolution.{name} is .*; it must be"):
        SuperResolution(**sizes)
