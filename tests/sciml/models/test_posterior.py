import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from sciml.models import (
    INVERSE_MAPS,
    Attention,
    Convolutional,
    Dense,
    Ensemble,
    FlowMatching,
    Gaussian,
    SplineFlow,
)
from sciml.models.inverse.flow_matching import integrate
from sciml.models.inverse.gaussian import coloured, whitened
from sciml.models.inverse.spline import inverse, parameters_per_variable, spline

KEY = jax.random.key(0)
pytestmark = pytest.mark.usefixtures("quick_compilation")
SMALL = [
    Gaussian(width=16),
    SplineFlow(width=16, layers=2, bins=5),
    FlowMatching(width=16, depth=2, steps=12),
    Ensemble(SplineFlow(width=8, layers=1, bins=4), 3),
]


def kind(config):
    return "-".join(
        type(c).__name__ for c in (config, getattr(config, "member", None)) if c is not None
    )


@pytest.mark.slow
@pytest.mark.parametrize("config", SMALL, ids=kind)
def test_a_density_integrates_to_one_and_draws_follow_it(made, call, config):
    """∫ p = 1, and E[g(y)] over draws is ∫ g p for a mean, a square, a product and a step."""
    net = made(config, 3, 2, scale=0.5)
    axis = jnp.linspace(-9, 9, 181)
    grid = jnp.stack(jnp.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    x = jnp.array([[0.3, -1.0, 0.5]])
    rows = jnp.broadcast_to(x, (len(grid), 3))
    density = jnp.exp(call(net, "log_prob", grid, rows)) * (axis[1] - axis[0]) ** 2
    assert float(density.sum()) == pytest.approx(1, abs=3e-3)
    y = call(net, "sample", KEY, x, 10_000)[:, 0]
    statistics = [
        lambda y: y[:, 0],
        lambda y: y[:, 1] ** 2,
        lambda y: y[:, 0] * y[:, 1],
        lambda y: jax.nn.sigmoid(3 * (y[:, 1] - y[:, 0])),
    ]
    for g in statistics:
        expected = float((g(grid) * density).sum())
        error = float(g(y).std()) / np.sqrt(len(y))
        assert float(g(y).mean()) == pytest.approx(expected, abs=5 * error + 3e-3)


@pytest.mark.parametrize("config", SMALL[1:3], ids=kind)
def test_a_density_of_one_target_integrates_to_one(made, call, config):
    net = made(config, 3, 1, scale=0.5)
    grid = jnp.linspace(-9, 9, 4001)[:, None]
    x = jnp.broadcast_to(jnp.array([0.3, -1.0, 0.5]), (len(grid), 3))
    density = jnp.exp(call(net, "log_prob", grid, x))
    assert float(density.sum() * 18 / 4000) == pytest.approx(1, abs=2e-3)


def test_gaussian_is_its_closed_form_and_whitening_is_undone(made):
    net = made(Gaussian(width=8), 3, 3, scale=0.5)
    x = jax.random.normal(KEY, (4, 3))
    y = jax.random.normal(jax.random.key(1), (4, 3))

    @jax.jit
    def answers(x, y):
        mean, factor = net.whiten(net.context(x))
        back = coloured(whitened(y, mean, factor)[0][None], mean, factor)[0]
        return mean, factor, back, net.log_prob(y, x), net.estimate(x)

    mean, factor, back, log_prob, estimate = (np.asarray(a, np.float64) for a in answers(x, y))
    for i in range(4):
        precision = factor[i] @ factor[i].T
        off = np.asarray(y[i]) - mean[i]
        log = 0.5 * (np.linalg.slogdet(precision)[1] - 3 * np.log(2 * np.pi))
        expected = log - 0.5 * off @ precision @ off
        assert log_prob[i] == pytest.approx(expected, rel=1e-4, abs=1e-4)
    np.testing.assert_array_equal(estimate, mean)
    np.testing.assert_allclose(back, y, atol=1e-5)


@jax.jit
def of_spline(x, raw):
    """Return y, log s′, the slope by differentiation, and y of x once more."""
    y, log_slope = spline(x, raw, 4.0)
    slope = jax.vmap(jax.grad(lambda x, raw: spline(x, raw, 4.0)[0]))(x, raw)
    return y, log_slope, slope, spline(inverse(y, raw, 4.0), raw, 4.0)[0]


@settings(max_examples=8, deadline=None)
@given(st.sampled_from([2, 9]), st.integers(0, 10**6), st.floats(-6, 6))
@example(9, 153941, 0.0)  # a bin much steeper at its end than in the mean
def test_spline_is_monotonic_and_undone(bins, seed, shift):
    raw = np.random.default_rng(seed).normal(size=parameters_per_variable(bins))
    raw = np.tile(raw, (400, 1)).astype(np.float32)
    x = np.linspace(-5, 5, 400, dtype=np.float32) + np.float32(1e-3 * shift)
    y, log_slope, slope, again = map(np.asarray, of_spline(x, raw))
    assert np.diff(y).min() > 0
    np.testing.assert_allclose(again, y, atol=1e-5)
    np.testing.assert_allclose(np.log(slope), log_slope, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("outputs", [1, 3, 10])
def test_flow_changes_variables_and_is_invertible_far_out(made, call, outputs):
    net = made(SplineFlow(width=12, layers=2), 3, outputs, scale=0.3)
    x = jax.random.normal(KEY, (56, 3))
    y = jax.random.normal(jax.random.key(1), (56, outputs)).at[6:].multiply(20)
    z, log_slope = call(net, "to_normal", y, x)
    back = call(net, "from_normal", z[None], x)[0]
    np.testing.assert_allclose(back[:6], y[:6], atol=1e-5)
    np.testing.assert_allclose(back, y, rtol=1e-5, atol=1e-4)
    jacobian = jax.jit(jax.vmap(jax.jacfwd(lambda y, x: net.to_normal(y[None], x[None])[0][0])))(
        y[:6], x[:6]
    )
    np.testing.assert_allclose(np.linalg.slogdet(jacobian)[1], log_slope[:6], atol=1e-4)


def test_flow_matching_path_gives_the_density_of_its_end(made, call):
    """log p(y) = log N(z) − log |dy/dz| along the very path that draws take."""
    net = made(FlowMatching(width=12, depth=1, steps=40), 3, 2)
    x = jnp.array([[0.3, -1.0, 0.5]])
    z = jax.random.normal(KEY, (1, 1, 2))

    def path(z):
        features = net.context(x)[0]
        return integrate(lambda t, y: net.velocity(y, jnp.full((), t), features), z, 0.0, 1.0, 40)

    y, change = jax.jit(lambda z: (path(z), jax.jacfwd(path)(z)))(z[0, 0])
    expected = norm.logpdf(z).sum() - np.linalg.slogdet(change)[1]
    assert float(call(net, "log_prob", y[None], x)[0]) == pytest.approx(float(expected), abs=1e-3)


@pytest.mark.parametrize("config", SMALL, ids=kind)
def test_gradients_are_finite(made, slope, config):
    y = jnp.array([[0.0, 0.0], [30.0, -30.0], [1e-6, 4.0]])
    x = jnp.array([[0.0, 0.0, 0.0], [5.0, 5.0, 5.0], [-1.0, 1e-6, 0.0]])
    gradient = slope(made(config, 3, 2), lambda net: net.loss(y, x, KEY).mean())
    assert all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(gradient))


def shapes_of(config, inputs, outputs, batch):
    """Return the shapes of all four answers, without computing any."""

    def answers():
        net = config.build(inputs, outputs, rngs=nnx.Rngs(0))
        y, x = jnp.zeros((batch, outputs)), jnp.ones((batch, *np.atleast_1d(inputs)))
        return net.log_prob(y, x), net.loss(y, x, KEY), net.sample(KEY, x, 5), net.estimate(x)

    return [found.shape for found in jax.eval_shape(answers)]


@pytest.mark.parametrize("config", SMALL, ids=kind)
@settings(max_examples=2, deadline=None)
@given(outputs=st.integers(1, 10), inputs=st.integers(1, 7), batch=st.integers(1, 4))
def test_shapes(outputs, inputs, batch, config):
    expected = [(batch,), (batch,), (5, batch, outputs), (batch, outputs)]
    assert shapes_of(config, inputs, outputs, batch) == expected


@pytest.mark.parametrize("embedding", [Dense(8, 1), Convolutional(2, 8), Attention(8, 1, 2, 4)])
@pytest.mark.parametrize("head", [Gaussian, SplineFlow, FlowMatching])
def test_heads_take_embeddings_of_several_channels(head, embedding):
    config = head(width=8, depth=1, embedding=embedding)
    assert shapes_of(config, (60, 2), 2, 3) == [(3,), (3,), (5, 3, 2), (3, 2)]


@pytest.mark.parametrize("head", [Gaussian, SplineFlow, FlowMatching])
def test_a_head_is_missing_where_its_embedding_is(head):
    assert not head().missing
    assert not head(embedding=Dense()).missing
    assert head(embedding=Dense(missing=True)).missing
    assert Ensemble(head(embedding=Dense(missing=True))).missing


@pytest.mark.parametrize("config", SMALL, ids=kind)
def test_configurations_are_plain(config):
    assert json.loads(json.dumps(dataclasses.asdict(config)))
    assert hash(config) == hash(dataclasses.replace(config))
    assert INVERSE_MAPS[type(config).__name__] is type(config)
    assert config.targets == "unconstrained"


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(width=0), r"width is 0.*pass Gaussian\(width=64\)"),
        (lambda: Gaussian(depth=1.5), "depth is 1.5"),
        (lambda: SplineFlow(bins=1), r"bins is 1; it must be a whole number ≥ 2"),
        (lambda: SplineFlow(layers=0), "layers is 0"),
        (lambda: FlowMatching(steps=True), "steps is True"),
        (lambda: FlowMatching(width=-3), "width is -3"),
        (lambda: Attention(depth=0), "depth is 0"),
        (lambda: Attention(width=10, heads=4), "multiple of heads"),
        (lambda: Ensemble(Dense(), 0), "size is 0"),
    ],
)
def test_bad_sizes_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(embedding=Gaussian()), "must be None or a configuration"),
        (lambda: SplineFlow(embedding="Dense"), "embedding is 'Dense'"),
        (lambda: Ensemble(Ensemble(Dense())), "a single net"),
        (lambda: Ensemble(3), "member is 3"),
    ],
)
def test_wrong_parts_are_refused(make, message):
    with pytest.raises(TypeError, match=message):
        make()
