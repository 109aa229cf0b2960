import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st

import wse
from sciml.estimator.downscaling import Patches, cut, fit_downscaling
from sciml.models.convolution import convolve
from sciml.models.refinement import shuffle
from sciml.models.super_resolution import SuperResolution
from sciml.train import Recipe
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


def test_patches_are_parts_of_the_field_in_all_eight_symmetries():
    field = jnp.arange(100.0).reshape(1, 10, 10)
    patches = np.asarray(cut(field, jax.random.key(0), Patches(size=3, count=200)))
    steps = {(int(p[0, 1] - p[0, 0]), int(p[1, 0] - p[0, 0])) for p in patches}
    assert steps == {(a, b) for i in (1, -1) for j in (10, -10) for a, b in ((i, j), (j, i))}
    assert {int(p.min()) for p in patches} <= {10 * y + x for y in range(8) for x in range(8)}


@pytest.fixture(scope="module")
def waves():
    """Fields whose subgrid part follows from the coarse one: waves of random phase."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:32, :32]
    phases = rng.uniform(0, 2 * np.pi, (12, 2, 1, 1))
    return (8 + np.sin(x * 0.6 + phases[:, 0]) + np.sin(y * 0.5 + phases[:, 1])).astype("float32")


def test_training_beats_interpolation_on_held_out_fields(waves):
    net = fit_downscaling(
        SuperResolution(factor=4, channels=8, blocks=1),
        waves[:8],
        waves[8:9],
        recipe=Recipe(batch=4, learning_rate=1e-2),
        epochs=250,
        patches=Patches(size=32, count=2),
    )
    truth = waves[9:]
    coarse = np.asarray(block_mean(jnp.asarray(truth), 4))
    fine = net.refine(coarse)
    baseline = np.asarray(conservative_bicubic(jnp.asarray(coarse), 4))
    assert ((fine - truth) ** 2).mean() < 0.5 * ((baseline - truth) ** 2).mean()
    np.testing.assert_allclose(block_mean(jnp.asarray(fine), 4), coarse, atol=1e-4)
    assert net.mean == pytest.approx(waves[:8].mean())


def test_same_seed_same_weights(waves):
    once, again = (
        fit_downscaling(
            SMALL,
            waves,
            waves[:1],
            recipe=Recipe(batch=4),
            epochs=2,
            patches=Patches(16, 1),
            seed=3,
        )
        for _ in range(2)
    )
    jax.tree.map(np.testing.assert_array_equal, once.trained.params, again.trained.params)


def test_streamed_training_gives_the_weights_of_plain_jax(waves):
    options = {"recipe": Recipe(4, 1e-3), "epochs": 2, "patches": Patches(16, 2)}
    plain = fit_downscaling(SMALL, waves, waves[:1], **options)
    for executor in (wse.CS2(), wse.CS2(systems=4)):
        found = fit_downscaling(SMALL, waves, waves[:1], executor, **options)
        assert found.trained.loss == pytest.approx(plain.trained.loss, rel=1e-4)
        for a, b in zip(
            jax.tree.leaves(found.trained.params),
            jax.tree.leaves(plain.trained.params),
            strict=True,
        ):
            np.testing.assert_allclose(a, b, atol=2e-5)


@pytest.mark.parametrize(
    ("patches", "message"),
    [
        (Patches(15, 1), "Patches.size is 15; it must be a multiple of the factor 2"),
        (Patches(64, 1), r"Patches.size is 64 but the fields are 32×32 points; a patch must fit"),
    ],
)
def test_patches_that_do_not_fit_are_refused(waves, patches, message):
    with pytest.raises(ValueError, match=message):
        fit_downscaling(SMALL, waves, waves[:1], recipe=Recipe(4), epochs=1, patches=patches)


def test_empty_patches_are_refused():
    with pytest.raises(ValueError, match=r"Patches\.count is 0; it must be positive"):
        Patches(count=0)
