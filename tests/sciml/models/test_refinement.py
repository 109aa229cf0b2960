"""What holds for every net that refines wind, and the size of each."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st

from sciml.models import (
    REFINEMENTS,
    SRCNN,
    Cascade,
    Density,
    FlowRefinement,
    Generative,
    LocallyScaled,
    SuperResolution,
    UNet,
)
from sciml.models.wind.refinement import shuffle, unshuffle
from sciml.models.wind.square_convolution import convolve
from sciml.models.wind.unet import primes
from sciml.train.parts import MOST_FLOPS_OF_A_WEIGHT
from sciml.wind import Tiles, bicubic, block_mean, conservative_bicubic, refine_located

KEY = jax.random.key(0)
SMALL = [
    SuperResolution(2, channels=3, blocks=1),
    SRCNN(2, channels=8, narrow=6),
    UNet(2, channels=2, blocks=1),
    Cascade(2, channels=3, blocks=1),
    Density(2, channels=3, blocks=1),
    Generative(2, channels=3, blocks=1),
    FlowRefinement(2, channels=3, blocks=1, steps=1),
]
KNOWN = [dataclasses.replace(config, wind=2, statics=1) for config in SMALL]
DRAWING = [config for config in KNOWN if config.probabilistic]
ONE_PASS = (Density, Generative)
pytestmark = pytest.mark.usefixtures("quick_compilation")


def kind(config):
    return type(config).__name__


def fields(seed, *shape):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def case(config, y, x, seed=0):
    """Coarse wind and static fields of the right shape."""
    fine = (config.factor * y, config.factor * x)
    statics = fields(seed + 1, 1, config.statics, *fine) if config.statics else None
    return fields(seed, 1, config.wind, y, x), statics


@partial(jax.jit, static_argnums=0)
def called(structure, params, coarse, statics):
    return nnx.merge(structure, params)(coarse, statics)


def call(net, coarse, statics=None):
    """Compiled without `nnx.jit`, which changes the net while it traces: tiles are threads."""
    return called(*nnx.split(net), coarse, statics)


@partial(jax.jit, static_argnums=(0, 4))
def sampled(structure, params, coarse, key, draws, statics, corner):
    return nnx.merge(structure, params).sample(coarse, key, draws, statics, corner=corner)


def sample(net, coarse, key, draws, statics=None, corner=(0, 0)):
    place = tuple(map(jnp.asarray, corner))
    return sampled(*nnx.split(net), coarse, key, draws, statics, place)


@pytest.mark.parametrize("config", [*SMALL, *map(LocallyScaled, SMALL)], ids=repr)
def test_a_separable_loss_is_the_mean_over_samples(config, monkeypatch):
    """Trainings take the samples of such a loss one by one where that is faster."""
    net = config.build(nnx.Rngs(0))
    plain = isinstance(config, LocallyScaled) and not config.probabilistic
    inner = getattr(config, "net", config)
    assert net.separable == (plain or not isinstance(inner, Cascade | FlowRefinement))
    if not net.separable:
        return
    draw = jax.random.normal(KEY, (2, 1, config.wind, 8, 8))  # the same noise in every sample
    given = lambda _, __, shape: jnp.broadcast_to(draw, shape)  # noqa: E731
    monkeypatch.setattr("sciml.models.wind.generative.flat", given)
    fine = fields(1, 3, config.wind, 8, 8)

    @jax.jit
    def loss(some):
        return net.loss(block_mean(some, config.factor), some, None, KEY)

    alone = [loss(fine[i : i + 1]) for i in range(3)]
    assert float(loss(fine)) == pytest.approx(float(np.mean(alone)), rel=1e-5)
    assert np.std(alone) > 0.01 * np.mean(alone)


def largest(params):
    return max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(params))


@pytest.mark.parametrize("config", SMALL, ids=kind)
def test_no_weight_costs_more_than_the_bound_that_spares_a_trace(config):
    structure, params = nnx.split(config.build(nnx.Rngs(0)), nnx.Param)

    def loss(params, fine):
        net = nnx.merge(structure, params)
        return net.loss(block_mean(fine, config.factor), fine, None, KEY)

    fine = fields(1, 2, config.wind, 16, 16)
    flops = jax.jit(jax.grad(loss)).lower(params, fine).cost_analysis()["flops"]
    weights = sum(leaf.size for leaf in jax.tree.leaves(params))
    assert flops < MOST_FLOPS_OF_A_WEIGHT * weights * fine.size


def test_the_table_is_complete():
    wrapping = {"LocallyScaled"}  # around one of these
    assert {kind(config) for config in SMALL} == set(REFINEMENTS) - wrapping


def assert_means_are_kept(net, coarse, statics):
    """Of the estimate and of draws."""
    found = [call(net, coarse, statics)]
    if net.config.probabilistic:
        found += list(sample(net, coarse, KEY, 2, statics))
    for fine in found:
        assert fine.shape[1] == net.config.wind
        np.testing.assert_allclose(block_mean(fine, net.config.factor), coarse, atol=1e-5)


@pytest.mark.parametrize("config", KNOWN, ids=kind)
def test_block_means_of_estimate_and_draws_are_the_input(refining, config):
    assert_means_are_kept(refining(config), *case(config, 4, 5))


@pytest.mark.slow
@settings(deadline=None, max_examples=4)
@given(data=st.data())
def test_they_are_for_every_factor_size_and_number_of_channels(refining, data):
    config = data.draw(st.sampled_from(SMALL), "net")
    factors = st.sampled_from([2, 4, 8]) if isinstance(config, Cascade) else st.integers(2, 6)
    config = dataclasses.replace(
        config,
        factor=data.draw(factors, "factor"),
        wind=data.draw(st.integers(1, 2), "wind"),
        statics=data.draw(st.integers(0, 2), "statics"),
    )
    sizes = [data.draw(st.integers(2, 5), name) for name in "yx"]
    assert_means_are_kept(refining(config), *case(config, *sizes))


@pytest.mark.parametrize("config", KNOWN, ids=kind)
def test_without_the_constraint_they_are_not(refining, config):
    free = dataclasses.replace(config, conservative=False)
    coarse, statics = case(free, 4, 5)
    np.testing.assert_allclose(
        call(free.build(nnx.Rngs(0)), coarse, statics), bicubic(coarse, 2), atol=1e-6
    )
    net = refining(free)
    assert jnp.abs(block_mean(call(net, coarse, statics), 2) - coarse).max() > 0.01
    if free.probabilistic:
        one, other = block_mean(sample(net, coarse, KEY, 2, statics), 2)
        assert jnp.abs(one - other).max() > 0.01


@pytest.mark.parametrize("config", KNOWN, ids=kind)
def test_each_starts_as_conservative_bicubic_interpolation(config):
    coarse, statics = case(config, 4, 5)
    net = config.build(nnx.Rngs(0))
    start = conservative_bicubic(coarse, 2)
    np.testing.assert_allclose(call(net, coarse, statics), start, atol=1e-6)


def long(config):
    """A case long enough for reach and tiles."""
    return case(config, 4, 2 * config.reach + 12)


LARGER = [
    SRCNN(3, channels=3, narrow=2),
    UNet(4, channels=2, blocks=1),
    UNet(3, channels=2, blocks=1),
    Cascade(4, channels=3, blocks=1),
]


@pytest.mark.parametrize(
    "config", [*KNOWN, *LARGER], ids=lambda config: f"{kind(config)} {config.factor}"
)
def test_a_point_sees_no_farther_than_its_reach(refining, config):
    """Perturb one coarse point: at most the reach, and at least that less two cells."""
    coarse, statics = long(config)
    net, at = refining(config), coarse.shape[-1] // 2
    moved = coarse.at[..., 1, at].add(1.0)

    def farthest(function):
        changed = function(net, moved) != function(net, coarse)
        cells = np.flatnonzero(np.asarray(changed).any(axis=tuple(range(changed.ndim - 1))))
        return np.abs(cells // config.factor - at).max()

    met = isinstance(config, SuperResolution | Density | Generative | FlowRefinement)
    found = farthest(lambda net, coarse: call(net, coarse, statics))
    assert config.reach - (0 if met else 2) <= found <= config.reach
    if isinstance(config, ONE_PASS):
        draw = farthest(lambda net, coarse: sample(net, coarse, KEY, 2, statics))
        assert draw <= config.reach


def test_a_draw_of_a_flow_sees_farther_and_says_so(refining):
    config = FlowRefinement(2, channels=2, blocks=1, steps=1)
    assert config.reach_of_draws == 16
    coarse, _ = case(config, 2, 40)
    net = refining(config)
    changed = sample(net, coarse.at[..., 20].add(1.0), KEY, 1) != sample(net, coarse, KEY, 1)
    far = np.abs(np.flatnonzero(np.asarray(changed).any(axis=(0, 1, 2, 3))) // 2 - 20).max()
    assert config.reach < far <= config.reach_of_draws


@pytest.mark.parametrize("config", KNOWN, ids=kind)
def test_tiles_give_what_the_whole_domain_gives(refining, config):
    """Estimates and, where one evaluation makes them, draws; with terrain and an offset."""
    coarse, statics = long(config)
    net, tiles = refining(config), Tiles(size=6, reach=config.reach, blend=1)

    def tiled(function):
        def refine(part, window):
            return function(part[None], window.cut(statics, 2), window.corner)

        return refine_located(refine, coarse[0], 2, tiles)

    def estimate(part, known, corner):
        del corner  # an estimate is the same everywhere
        return call(net, part, known)[0]

    def drawn(part, known, corner):
        return sample(net, part, KEY, 2, known, corner)[:, 0]

    for way in [estimate, *([drawn] if isinstance(config, ONE_PASS) else [])]:
        whole = way(coarse, statics, (0, 0))
        np.testing.assert_allclose(tiled(way), whole, atol=1e-5)


@pytest.mark.parametrize("config", [*KNOWN, LocallyScaled(KNOWN[0])], ids=kind)
def test_the_loss_is_finite_and_reaches_every_weight_from_what_is_known(refining, config):
    coarse, statics = case(config, 4, 5)
    fine = conservative_bicubic(coarse, 2) + 0.1 * fields(9, 1, 2, 8, 10)
    structure, start = nnx.split(config.build(nnx.Rngs(0)), nnx.Param)

    @jax.jit
    @jax.value_and_grad
    def loss(params, fine):
        return nnx.merge(structure, params).loss(coarse, fine, statics, KEY)

    value, slopes = loss(nnx.state(refining(config), nnx.Param), fine)
    assert jnp.isfinite(value)
    for path, leaf in jax.tree.leaves_with_path(slopes):
        assert jnp.isfinite(leaf).all(), path
        assert jnp.abs(leaf).max() > 0, path
    first, slopes = loss(start, fine)  # where draws coincide and roots are at 0
    assert jnp.isfinite(first)
    assert all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(slopes))
    value, slopes = loss(start, jnp.full_like(fine, jnp.nan))
    assert float(value) == pytest.approx(0, abs=1e-4)
    assert largest(slopes) < 1e-6
    value, slopes = loss(start, fine.at[..., :4, :].set(jnp.nan))
    assert 1e-3 < float(value) < np.inf
    assert 1e-6 < largest(slopes) < np.inf


@pytest.mark.parametrize("config", KNOWN, ids=kind)
def test_static_fields_count_and_must_be_as_many_as_built_for(refining, config):
    coarse, statics = case(config, 4, 5)
    net = refining(config)
    assert statics is not None
    assert jnp.abs(call(net, coarse, statics) - call(net, coarse, 0 * statics)).max() > 1e-3
    with pytest.raises(ValueError, match="0 static channels were passed to a net for 1"):
        net(coarse)
    with pytest.raises(ValueError, match=r"1 static .* for 0; .*with statics=1"):
        refining(dataclasses.replace(config, statics=0))(coarse, statics)


@pytest.mark.parametrize("config", DRAWING, ids=kind)
def test_draws_differ_and_follow_their_key(refining, config):
    coarse, statics = case(config, 4, 5)
    net = refining(config)
    draws = sample(net, coarse, KEY, 2, statics)
    assert draws.shape == (2, 1, 2, 8, 10)
    assert jnp.abs(draws[0] - draws[1]).max() > 1e-3
    np.testing.assert_array_equal(draws, sample(net, coarse, KEY, 2, statics))
    assert jnp.abs(draws - sample(net, coarse, jax.random.key(1), 2, statics)).max() > 1e-3


@pytest.mark.parametrize("config", [Generative(2), FlowRefinement(2)], ids=kind)
def test_a_loss_that_draws_asks_for_a_key(refining, config):
    coarse, _ = case(config, 3, 3)
    with pytest.raises(ValueError, match="pass a key"):
        refining(config).loss(coarse, bicubic(coarse, 2))


def conv(inputs, outputs, side=3):
    return side**2 * inputs * outputs + outputs


def residual(inputs, outputs, c, blocks, conditions=0):
    film = (conditions + 1) * 2 * c if conditions else 0
    return conv(inputs, c) + blocks * (2 * conv(c, c) + film) + conv(c, outputs)


@pytest.mark.parametrize(
    ("config", "weights"),
    [
        (SuperResolution(), 78_928),
        (SuperResolution(3, 8, 2, wind=2, statics=1), residual(2 + 9, 18, 8, 2)),
        (SRCNN(wind=2, statics=1), conv(3, 64, 9) + conv(64, 32, 1) + conv(32, 2, 5)),
        (
            UNet(6, channels=4, blocks=2, statics=1),
            conv(2, 4)
            + 2 * 2 * (conv(4, 4) + conv(8, 8))
            + 2 * 2 * conv(16, 16)
            + conv(4, 8, 1)
            + conv(8, 16, 1)
            + conv(16, 8, 1)
            + conv(8, 4, 1)
            + conv(4, 1),
        ),
        (Cascade(8, 8, 2, wind=2, statics=1), residual(2 + 4, 8, 8, 2, conditions=6)),
        (Density(3, 8, 2, statics=1), residual(1 + 9, 18, 8, 2)),
        (
            Generative(3, 8, 2, statics=1),
            residual(10, 9, 8, 2) + residual(19, 9, 8, 2) + residual(10, 9, 8, 1),
        ),
        (
            FlowRefinement(3, 8, 2, statics=1),
            residual(10, 9, 8, 2) + residual(19, 9, 8, 2, conditions=17),
        ),
    ],
    ids=kind,
)
def test_number_of_weights(config, weights):
    net = nnx.eval_shape(lambda: config.build(nnx.Rngs(0)))
    assert sum(leaf.size for leaf in jax.tree.leaves(nnx.state(net, nnx.Param))) == weights


@pytest.mark.parametrize("config", [type(config) for config in SMALL], ids=lambda c: c.__name__)
@pytest.mark.parametrize(
    "sizes", [{"factor": 1}, {"channels": 0}, {"wind": 0}, {"statics": -1}, {"channels": True}]
)
def test_bad_sizes_are_refused(config, sizes):
    (name,) = sizes
    with pytest.raises(ValueError, match=f"{config.__name__}.{name} is .*; it must be"):
        config(**sizes)


def test_a_spread_of_zero_is_refused():
    with pytest.raises(ValueError, match=r"spread is 0\.0; it must be positive"):
        FlowRefinement(spread=0.0)


@pytest.mark.parametrize("side", [1, 3, 5])
def test_convolution_and_its_gradients_are_those_of_jax(side):
    keys = jax.random.split(KEY, 3)
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


def test_shuffle_lays_channels_out_inside_their_block():
    x = jnp.arange(8.0).reshape(1, 1, 2, 4)
    np.testing.assert_array_equal(shuffle(x, 2)[0, 0], [[0, 1, 4, 5], [2, 3, 6, 7]])


def test_unshuffle_undoes_shuffle():
    x = fields(0, 2, 3, 4, 2 * 9)
    assert shuffle(x, 3).shape == (2, 2, 9, 12)
    np.testing.assert_array_equal(unshuffle(shuffle(x, 3), 3), x)


def test_levels_of_a_u_net_are_prime_factors():
    assert [primes(n) for n in (2, 12, 13, 15)] == [[2], [2, 2, 3], [13], [3, 5]]
    assert UNet(12, channels=4).widths == [4, 8, 16, 32]
