"""Masks: which parameters, how many weights, which weights go and come."""

from functools import cache
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optax import tree_utils

from wse.sparsity import SET, Gradual, Magnitude, RigL, Rule, Static, density, masked, sparsified
from wse.sparsity.method import Renewal, largest
from wse.sparsity.selection import erdos_renyi_kernel

pytestmark = pytest.mark.usefixtures("quick_compilation")


ALL = Rule(keep_last=False)
METHODS = {
    "static": Static(0.75, rule=ALL),
    "magnitude": Magnitude(0.75, rule=ALL),
    "gradual": Gradual(0.75, begin=2, end=9, every=3, rule=ALL),
    "set": SET(0.75, steps=20, every=4, rule=ALL),
    "rigl": RigL(0.75, steps=20, every=4, rule=ALL),
}


def net(seed: int = 0):
    draw = np.random.default_rng(seed)
    return {
        "a": jnp.asarray(draw.normal(size=(7, 9)), jnp.float32),
        "b": jnp.asarray(draw.normal(size=(9, 3)), jnp.float32),
        "bias": jnp.asarray(draw.normal(size=3), jnp.float32),
    }


def gradient(params, step):
    draw = np.random.default_rng(step)
    return jax.tree.map(lambda w: jnp.asarray(draw.normal(size=w.shape), w.dtype), params)


@cache
def trained(method):
    """Return (params, state) before and after each of twelve updates."""
    params = sparsified(net(), method)
    optimizer = masked(optax.adamw(1e-1, weight_decay=0.1), method)
    state, update = jax.jit(optimizer.init)(params), jax.jit(optimizer.update)
    found = [(params, state)]
    for step in range(12):
        change, state = update(gradient(params, step), state, params)
        params = optax.apply_updates(params, change)
        found.append((params, state))
    return found


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_weights_outside_the_mask_are_zero_and_moments_too(method):
    for params, state in trained(method):
        for name in ("a", "b"):
            out = ~np.asarray(state.masks[name])
            assert (np.asarray(params[name])[out] == 0).all()
            for moment in ("mu", "nu"):
                kept = tree_utils.tree_get(state, moment)[name]
                assert (np.asarray(kept)[out] == 0).all()
        assert state.masks["bias"].shape == ()
        assert (np.asarray(params["bias"]) != 0).all()


@pytest.mark.parametrize("name", ["static", "magnitude", "set", "rigl"])
def test_densities_are_exact_at_every_step(name):
    for params, state in trained(METHODS[name]):
        counted = density(params, state)
        assert counted.kept.values.tolist() == [16, 7, 3]  # a quarter of 63 and 27; all of 3
        assert counted.density.sel(parameter="bias") == 1


def test_gradual_pruning_follows_its_cubic():
    """s(t) = s_f (1 − (1 − (t − 2)/7)³) at t = 2, 5, 8 and at the end, t = 9."""
    method = METHODS["gradual"]
    counts = [int(state.masks["a"].sum()) for _, state in trained(method)]
    for step in range(13):
        at = max(x for x in (2, 5, 8, 9) if x <= max(step, 2))
        share = 0.75 * (1 - (1 - (at - 2) / 7) ** 3)
        exact = 16 if at == 9 else round(63 - (63 - 16) * share / 0.75)
        assert counts[step] == exact
    masks = [np.asarray(state.masks["a"]) for _, state in trained(method)]
    assert all((new <= old).all() for old, new in pairwise(masks))


def test_fixed_masks_stay():
    for name in ("static", "magnitude"):
        masks = [np.asarray(state.masks["a"]) for _, state in trained(METHODS[name])]
        assert all((mask == masks[0]).all() for mask in masks)


def test_one_shot_pruning_keeps_the_largest():
    params = net()
    kept = np.asarray(sparsified(params, Magnitude(0.75, rule=ALL))["a"])
    sizes = np.abs(np.asarray(params["a"]))
    assert sizes[kept != 0].min() > sizes[kept == 0].max()


def test_moves_happen_when_they_are_due_and_fade_as_a_cosine():
    method = RigL(0.5, steps=1000, rule=ALL)
    assert [t for t in range(1, 1001) if method.due(t)] == [100, 200, 300, 400, 500, 600, 700]
    assert float(method.share(0)) == pytest.approx(0.3)
    assert float(method.share(375)) == pytest.approx(0.15)
    assert float(method.share(750)) == pytest.approx(0, abs=1e-7)


def test_rigl_drops_the_smallest_and_grows_the_largest_gradient():
    """Six weights, three kept; one moves: 0.1 goes, the place of gradient −9 comes."""
    mask = jnp.array([[True, False, True], [False, True, False]])
    weight = jnp.array([[0.1, 0.0, -2.0], [0.0, 3.0, 0.0]])
    slope = jnp.array([[1.0, 5.0, 100.0], [-9.0, 0.0, 2.0]])
    method = RigL(0.5, steps=400, drop=1.0, rule=ALL)
    step = 300 * 2 / 3  # half a turn of the cosine: (1 + cos 2π/3) / 2 = 1/4 of 3 weights
    key = jax.random.key(0)
    new = method.renew(Renewal(mask, weight, slope, key, 3, 3, step))
    assert new.tolist() == [[False, False, True], [True, True, False]]


def test_a_dropped_weight_may_come_back_at_once_and_keeps_its_value():
    mask, weight = jnp.array([True, True, False]), jnp.array([0.1, 2.0, 0.0])
    slope = jnp.array([7.0, 0.0, 1.0])
    method = RigL(0.5, steps=400, drop=1.0, rule=ALL)
    assert method.renew(Renewal(mask, weight, slope, jax.random.key(0), 2, 2, 150)).tolist() == [
        True,
        True,
        False,
    ]


def test_set_moves_as_many_at_random_and_not_twice_the_same():
    a = [np.asarray(state.masks["a"]) for _, state in trained(METHODS["set"])]
    moved = round(16 * float(METHODS["set"].share(4)))
    assert 0 < (a[3] & ~a[4]).sum() <= moved
    other = SET(0.75, steps=20, every=4, rule=ALL, seed=1)
    assert (np.asarray(trained(other)[4][1].masks["a"]) != a[4]).any()


def test_a_weight_that_comes_is_zero_until_its_next_update():
    states = trained(METHODS["rigl"])
    (_, before), (params, at), (after, _) = states[3], states[4], states[5]
    new = np.asarray(at.masks["a"] & ~before.masks["a"])
    assert new.any()
    assert (np.asarray(params["a"])[new] == 0).all()
    assert (np.asarray(after["a"])[new] != 0).all()


def test_who_is_sparse():
    params = {
        "embedding": jnp.ones((4, 4)),
        "layers": {
            str(i): {"kernel": jnp.ones((4, 4)), "bias": jnp.ones((2, 4))} for i in range(11)
        },
        "LayerNorm": {"scale": jnp.ones((4, 4))},
        "vector": jnp.ones(4),
    }

    def names(rule):
        chosen = rule.chosen(params)
        kept = density(params, optax_state(params)).parameter.values
        return [name for name, yes in zip(kept, chosen, strict=True) if yes]

    def optax_state(params):
        return masked(optax.sgd(1.0), Static(0.5)).init(params)

    kernels = {f"layers.{i}.kernel" for i in range(11)}
    assert set(names(Rule())) == kernels - {"layers.10.kernel"}
    assert set(names(Rule(keep_last=False))) == kernels
    assert names(Rule(only=("LAYERS.3.*",), keep_last=False)) == ["layers.3.kernel"]
    assert set(names(Rule(exempt=("*kernel", "*norm*"), keep_last=False))) == {
        "embedding",
        *(f"layers.{i}.bias" for i in range(11)),
    }


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.lists(st.integers(1, 9), min_size=2, max_size=4).map(tuple), min_size=1, max_size=5
    ),
    st.floats(0.01, 1.0),
)
def test_erdos_renyi_kernel_keeps_the_total_and_the_ratios(shapes, share):
    found = erdos_renyi_kernel(shapes, share)
    sizes = [np.prod(shape) for shape in shapes]
    assert sum(x * n for x, n in zip(found, sizes, strict=True)) == pytest.approx(
        share * sum(sizes)
    )
    assert all(0 <= x <= 1 + 1e-12 for x in found)
    free = [x * n / sum(s) for x, n, s in zip(found, sizes, shapes, strict=True) if x < 1 - 1e-9]
    assert free == pytest.approx([free[0]] * len(free) if free else [])


def test_a_parameter_without_numbers_takes_no_part():
    found = erdos_renyi_kernel([(0, 4), (10, 10), (2, 2)], 0.5)
    assert found[1:] == erdos_renyi_kernel([(10, 10), (2, 2)], 0.5)
    method = Static(0.5, rule=Rule(distribution="erdos-renyi-kernel", keep_last=False))
    made = sparsified({"a": np.ones((0, 4)), "b": np.ones((8, 8))}, method)
    assert np.count_nonzero(made["b"]) == 32
    assert made["a"].shape == (0, 4)


@settings(max_examples=12, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=3), st.data())
def test_largest_marks_exactly_as_many(shape, data):
    size = int(np.prod(shape))
    # XLA takes subnormal numbers for zero, and so they tie with it.
    drawn = st.floats(-3, 3, width=32, allow_subnormal=False)
    values = data.draw(st.lists(drawn, min_size=size, max_size=size))
    count = data.draw(st.integers(0, size))
    score = np.array(values, np.float32).reshape(shape)
    mask = np.asarray(largest(jnp.asarray(score), count))
    assert mask.shape == tuple(shape)
    assert mask.sum() == count
    if 0 < count < size:
        assert score[mask].min() >= score[~mask].max()


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Static(1.0), r"sparsity is 1\.0; it must be in \[0, 1\)"),
        (lambda: RigL(0.5, steps=0), "steps, every are 0, 100"),
        (lambda: SET(0.5, steps=10, drop=0.0), r"drop, stop are 0\.0, 0\.75"),
        (lambda: Gradual(0.5, begin=9, end=3), "begin, end, every are 9, 3, 100"),
        (lambda: Gradual(0.5, begin=1, end=3, initial=0.9), r"initial is 0\.9"),
        (lambda: Rule(distribution="fair"), "distribution is 'fair'"),
        (lambda: sparsified({"w": jnp.ones((3, 3))}, Static(0.5)), "no parameter is sparse"),
    ],
)
def test_refusals_are_clear(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_an_update_needs_the_weights():
    optimizer = masked(optax.sgd(0.1), METHODS["static"])
    with pytest.raises(ValueError, match="params is None"):
        optimizer.update(net(), optimizer.init(net()))


def test_moments_of_another_shape_are_left_alone():
    """Adafactor keeps row and column sums of large matrices."""
    method = Static(0.5, rule=ALL)
    optimizer = masked(optax.adafactor(1e-3, min_dim_size_to_factor=4), method)
    params = sparsified(net(), method)
    change, _ = jax.jit(lambda p, g: optimizer.update(g, optimizer.init(p), p))(
        params, gradient(params, 0)
    )
    new = optax.apply_updates(params, change)
    assert int((new["a"] == 0).sum()) == 63 - 32


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.lists(st.integers(1, 40), min_size=1, max_size=4).map(tuple), min_size=1, max_size=6
    ),
    st.floats(0, 0.999),
)
def test_counts_are_the_nearest_to_the_density_and_never_none(shapes, sparsity):
    params = {f"layers.{i}": np.empty(shape) for i, shape in enumerate(shapes)}
    if all(len(shape) == 1 for shape in shapes):
        with pytest.raises(ValueError, match="no parameter is sparse"):
            ALL.counts(params, sparsity)
        return
    for shape, count in zip(shapes, ALL.counts(params, sparsity), strict=True):
        if len(shape) == 1:
            assert count is None
        else:
            size = int(np.prod(shape))
            assert 1 <= count <= size
            assert count == 1 or abs(count - size * (1 - sparsity)) <= 0.5 + 1e-9
