"""Masks in blocks, and nets that hold the kept blocks alone."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

import sciml
from wse.sparsity import (
    Magnitude,
    PackedSteps,
    RigL,
    Rule,
    Static,
    blockwise,
    masked,
    packed,
    sparsified,
    unpacked,
)
from wse.sparsity.masking import first_masks

pytestmark = pytest.mark.usefixtures("quick_compilation")

ALL = Rule(keep_last=False)
METHODS = [Static(0.7, block=4), Magnitude(0.7, block=4)]


def net():
    """A Flax net whose sizes no block divides, its weights, and a batch."""
    module = sciml.models.Dense(22, 2).build(18, 3, rngs=nnx.Rngs(0))
    structure, params = nnx.split(module)
    draw = np.random.default_rng(0)
    batch = (draw.normal(size=(5, 18)).astype("f4"), draw.random((5, 3)).astype("f4"))

    def loss(params, batch):
        x, y = batch
        return jnp.mean((nnx.merge(structure, params)(x) - y) ** 2)

    return loss, params, batch


def close(found, wanted):
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS, ids=["static", "magnitude"])
def test_a_packed_net_is_the_masked_one_forward_backward_and_under_adam(method):
    loss, params, batch = net()
    wanted, weights = sparsified(params, method), packed(params, method)
    close(unpacked(weights), wanted)
    inner = optax.adamw(1e-2, weight_decay=0.1)
    dense = masked(inner, method)
    state, held = jax.jit(dense.init)(params), jax.jit(inner.init)(weights)
    pairs = jax.jit(jax.value_and_grad(loss)), jax.jit(jax.value_and_grad(blockwise(loss)))
    for _ in range(4):
        (value, gradient), (found, packed_gradient) = (
            pairs[0](wanted, batch),
            pairs[1](weights, batch),
        )
        assert float(found) == pytest.approx(float(value), rel=1e-5)
        within = jax.tree.map(lambda m, g: jnp.where(m, g, 0), state.masks, gradient)
        close(unpacked(packed_gradient), within)
        change, state = dense.update(gradient, state, wanted)
        wanted = optax.apply_updates(wanted, change)
        change, held = inner.update(packed_gradient, held, weights)
        weights = optax.apply_updates(weights, change)
    close(unpacked(weights), wanted)
    sizes = [np.size(x) for x in jax.tree.leaves(held[0].mu)]
    assert sum(sizes) < 0.6 * sum(np.size(x) for x in jax.tree.leaves(params))


def test_a_mask_has_whole_blocks_and_as_many_in_each_column():
    params = {"w": np.random.default_rng(1).normal(size=(64, 40)).astype("f4")}
    for kind in (Static, Magnitude):
        mask = np.asarray(first_masks(params, kind(0.75, rule=ALL, block=8))["w"])
        blocks = mask.reshape(8, 8, 5, 8)
        assert (blocks.all((1, 3)) == blocks.any((1, 3))).all()
        assert (blocks.any((1, 3)).sum(0) == 2).all()
    sums = np.abs(params["w"]).reshape(8, 8, 5, 8).sum((1, 3))
    kept = blocks.any((1, 3))
    for column in range(5):
        assert sums[kept[:, column], column].min() > sums[~kept[:, column], column].max()


@pytest.mark.parametrize("kind", [Static, Magnitude])
@pytest.mark.parametrize(
    ("shape", "block", "density", "reached"),
    [
        # Of a column 1 or 3 rows of 7, or 4 or 6: 39 or 52 of 91 weights are nearest to a half.
        ((7, 13), 3, 0.5, (39 / 91, 52 / 91)),
        ((7, 13), 3, 0.7, (64 / 91,)),  # six rows in six columns, four in the others
        ((10, 10), 8, 0.7, (68 / 100,)),  # the narrow column alone has the low block
        ((1001, 30), 8, 0.37, (0.37,)),
        ((65, 64), 8, 0.5, (32 / 65, 33 / 65)),
        ((13, 7), 3, 0.2, (19 / 91,)),
        ((64, 13), 8, 0.5, (0.5,)),
    ],
)
def test_as_many_weights_are_kept_as_whole_blocks_allow(kind, shape, block, density, reached):
    weights = {"w": np.random.default_rng(5).normal(size=shape).astype("f4")}
    method = kind(1 - density, rule=ALL, block=block)
    mask = np.asarray(first_masks(weights, method)["w"])
    assert min(abs(mask.mean() - one) for one in reached) < 1e-3
    held = packed(weights, method)["w"]
    assert held.layout.density == pytest.approx(mask.mean())
    assert f"in blocks of {block}, {mask.mean():.1%} kept" in repr(held)
    close(unpacked({"w": held})["w"] != 0, mask)
    tops = range(0, shape[1], block)
    blocks = [mask[:, i : i + block].all(1)[::block].sum() for i in tops]
    assert len(set(blocks)) == 1


@pytest.mark.slow
def test_what_is_no_product_from_the_right_is_done_on_the_dense_matrix():
    params = {"w": np.random.default_rng(2).normal(size=(16, 12)).astype("f4")}
    method = Static(0.5, rule=ALL, block=4)
    x = np.random.default_rng(3).normal(size=(2, 3, 16)).astype("f4")
    functions = [
        lambda p, x: x @ p["w"],
        lambda p, x: x[0, 0] @ p["w"],
        lambda p, x: (x @ p["w"]) @ p["w"].T,
        lambda p, x: jax.jit(lambda w: jnp.sum(w**2))(p["w"]) + x.sum(),
        lambda p, x: jax.lax.scan(lambda c, r: (c, r @ p["w"]), 0.0, x)[1],
        lambda p, x: jnp.einsum("bci,io->boc", x, p["w"].astype("bfloat16").astype("f4")),
        lambda p, x: p,
    ]
    for function in functions:
        wanted = function(sparsified(params, method), x)
        close(blockwise(function)(packed(params, method), x), wanted)


@pytest.mark.slow
def test_steps_on_packed_weights_go_on_from_dense_ones_where_they_stopped():
    loss, params, batch = net()
    method = Magnitude(0.7, block=4)
    made = lambda: PackedSteps(method).executor(loss, params, batch, optax.adam(1e-2))  # noqa: E731
    steps = made()
    others = jax.tree.map(lambda w: w[::-1] + 1, params)
    close(steps.init(others).params, sparsified(others, method))
    states = [steps.init(params)]
    for _ in range(3):
        states.append(steps.train_step(states[-1], batch)[0])
    again = made().init(jax.tree.map(np.asarray, states[2].params), states[2].optimizer_state)
    state, value = steps.train_step(again, batch)
    close(state.params, states[3].params)
    assert float(value) == pytest.approx(
        float(loss(states[2].params, jax.tree.map(jnp.asarray, batch))), rel=1e-5
    )
    masks = first_masks(params, method)
    outside = jax.tree.map(lambda m, w: jnp.where(m, 0, w), masks, state.params)
    assert not any(np.any(x) for x in jax.tree.leaves(outside))


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda w: Static(0.9, block=0), "block is 0; it must be a positive integer"),
        (lambda w: Magnitude(0.9, block=2.5), r"block is 2\.5; it must be a positive integer"),
        (
            lambda w: packed(w, Static(0.5, rule=ALL)),
            r"method is Static\(sparsity=0\.5.*; packed weights need",
        ),
        (lambda w: packed(w, RigL(0.5, steps=9)), r"method is RigL\("),
        (lambda w: PackedSteps(0.9), r"method is 0\.9; packed weights need masks"),
        (lambda w: PackedSteps(Static(0.5, block=8)).executor(sum, w, w), "optimizer is None"),
        (lambda w: packed(w, Static(0.9, rule=ALL, block=8)), "of 2 blocks .* 0.2 would be kept"),
        (lambda w: sparsified(w, Static(0.9, rule=ALL, block=8)), "makes 0 whole ones"),
        (lambda w: sparsified(w, Static(0.2, rule=ALL, block=8)), "makes 2 whole ones"),
        (lambda w: sparsified(w, Static(0.2, rule=ALL, block=10**7)), "makes 1 whole ones"),
        (
            lambda w: packed({"w": np.ones((3, 16, 16))}, Static(0.5, rule=ALL, block=8)),
            r"block is 8 for a parameter of shape \(3, 16, 16\)",
        ),
        (
            lambda w: jax.jit(lambda w: packed(w, Magnitude(0.5, rule=ALL, block=8)))(w),
            "call packed outside jit",
        ),
    ],
)
def test_refusals_are_clear(make, message):
    with pytest.raises(ValueError, match=message):
        make({"w": np.ones((16, 16), "f4")})
