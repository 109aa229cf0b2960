"""Half precision in training: plain and streamed alike, scales that move, bytes that halve."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import wse
from tests.wse.chain import chain, loss, pairs
from wse.precision import CBFLOAT16, FORMATS, Dynamic, Precision, as_precision, mixed, scaled

WIDTH, DEPTH = 16, 2


pytestmark = pytest.mark.usefixtures("quick_compilation")


def net():
    return chain(WIDTH, DEPTH)


def samples(step: int = 0):
    return pairs(WIDTH, step=step)


def by_hand(params, batch, half):
    """The same rounding, written out for this net."""
    (x, y), r = batch, half.round
    x = r(jnp.asarray(x))
    for i, layer in enumerate(params):
        x = jnp.tanh(x @ r(layer["w"]) + r(layer["b"]))
        x = r(x) if i + 1 < DEPTH else x
    return jnp.mean((x - y) ** 2)


@pytest.mark.parametrize("half", FORMATS.values(), ids=FORMATS)
def test_what_is_held_in_half_precision(half):
    """Weights, samples that enter a product, what goes between layers; targets are not."""
    with jax.enable_x64(True):
        params = jax.tree.map(jnp.asarray, net())
        run = mixed(loss, params, samples(), half)
        value, gradient = jax.jit(jax.value_and_grad(run))(params, samples())
        wanted = jax.jit(lambda p, b: by_hand(p, b, half))(params, samples())
        assert float(value) == pytest.approx(float(wanted), rel=1e-14)
        for leaf in jax.tree.leaves(gradient):
            np.testing.assert_array_equal(leaf, half.round(leaf))
        exact = jax.jit(jax.grad(loss))(params, samples())
        size = float(optax.tree.norm(exact))
        off = float(optax.tree.norm(optax.tree.sub(gradient, exact)))
        assert 0 < off < size * 20 * 2.0 ** -(half.mantissa_bits + 1)


def spectral(params, batch):
    """Two layers on the modes of a signal, with complex numbers in between."""
    x = jnp.fft.rfft(batch, axis=1)
    for layer in params:
        x = jnp.einsum("bmi,mio->bmo", x, layer["re"] + 1j * layer["im"])
    return jnp.mean(jnp.fft.irfft(x, axis=1) ** 2)


def rounded_by_hand(params, batch, half):
    def r(z):
        if not jnp.iscomplexobj(z):
            return half.round(z)
        return half.round(z.real) + 1j * half.round(z.imag)

    x = jnp.fft.rfft(r(batch), axis=1)
    for i, layer in enumerate(params):
        x = jnp.einsum("bmi,mio->bmo", x, r(layer["re"]) + 1j * r(layer["im"]))
        x = r(x) if i + 1 < len(params) else x
    return jnp.mean(jnp.fft.irfft(x, axis=1) ** 2)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["streaming", "pipelined"])
def test_complex_numbers_are_held_as_two(mode):
    draw = np.random.default_rng(0)
    params = [{k: draw.normal(size=(5, 3, 3)) for k in ("re", "im")} for _ in range(2)]
    batch = draw.normal(size=(4, 8, 3))
    with jax.enable_x64(True):
        cluster = wse.CS2(mode=mode, precision=Precision("cbfloat16"))
        executor = cluster.executor(spectral, params, batch, optax.sgd(1e-2))
        value, gradient = executor.value_and_grad(params, batch)
        params, batch = jax.tree.map(jnp.asarray, (params, batch))
        wanted = rounded_by_hand(params, batch, CBFLOAT16)
        plain = mixed(spectral, params, batch, CBFLOAT16)
        assert float(value) == pytest.approx(float(wanted), rel=1e-13)
        assert float(value) != float(spectral(params, batch))
        slopes = jax.grad(plain)(params, batch)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), gradient, slopes)


def test_a_complex_parameter_is_refused_with_what_to_do():
    with pytest.raises(
        ValueError, match=r"'w' is of complex64; .* real and imaginary parts as two"
    ):
        wse.trace(
            lambda p, x: jnp.abs(x @ p["w"]).sum(), {"w": np.ones((3, 3), "c8")}, np.ones((4, 3))
        )


PRECISION = Precision("cbfloat16", Dynamic(initial=2.0**8, run=2))


@pytest.fixture(scope="module")
def plainly_trained():
    """Parameters and state after five steps of the plain function."""
    with jax.enable_x64(True):
        params = jax.tree.map(jnp.asarray, net())
        run = mixed(loss, params, samples(), PRECISION.half)
        update = scaled(optax.adam(1e-2), PRECISION.scale)
        state = update.init(params)

        @jax.jit
        def step(params, state, batch):
            gradient = jax.grad(lambda p: state.scale * run(p, batch))(params)
            change, state = update.update(gradient, state, params)
            return optax.apply_updates(params, change), state

        for i in range(5):
            params, state = step(params, state, samples(i))
        return params, state


@pytest.mark.parametrize("mode", ["streaming", "pipelined"])
def test_emulated_training_is_that_of_the_plain_function(mode, plainly_trained):
    params, state = plainly_trained
    with jax.enable_x64(True):
        cluster = wse.CS2(mode=mode, precision=PRECISION)
        executor = cluster.executor(loss, net(), samples(), optax.adam(1e-2))
        emulated = executor.init(net())
        for i in range(5):
            emulated, _ = executor.train_step(emulated, samples(i))
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9), emulated.params, params
        )
        assert float(emulated.optimizer_state.scale) == float(state.scale) == 2.0**10


def crossed(params, batch):
    """Weights used twice, statistics of the batch, and a product that these enter by themselves."""
    (x, y), (a, c) = batch, (layer["w"] for layer in params)
    for w in (a, c, a):
        x = x @ w
        x = jnp.tanh((x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-3))
    return jnp.mean((x + (jnp.tanh(x.mean(0) @ c) @ a) - y) ** 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "half", "keep"), [(loss, "float16", True), (crossed, "cbfloat16", False)]
)
def test_gradients_of_parts_are_rounded_when_they_are_added_up(function, half, keep):
    """Each visit's gradient of a weight as a whole, as in plain JAX: bit for bit here."""
    with jax.enable_x64(True):
        run = mixed(function, net(), samples(), FORMATS[half])
        value, wanted = jax.jit(jax.value_and_grad(run))(net(), samples())
        executor = wse.CS2(mode="pipelined", precision=half).executor(
            function, net(), samples(), micro_batches=4, keep_residuals=keep
        )
        found, gradients = executor.value_and_grad(net(), samples())
        assert float(found) == pytest.approx(float(value), rel=1e-13)
        jax.tree.map(np.testing.assert_array_equal, gradients, wanted)
        jax.tree.map(lambda g: np.testing.assert_array_equal(g, FORMATS[half].round(g)), wanted)
    # Rounding stops no part: of the chain only the loss, from which all comes back, is made once.
    assert sum(x.each for x in executor.flow.segments) >= DEPTH
    assert function is not loss or not any(x.weights for x in executor.flow.segments if not x.each)


def test_the_store_keeps_what_half_precision_cannot():
    executor = wse.CS2(precision="cbfloat16").executor(loss, net(), samples(), optax.sgd(1e-3))
    state = executor.init(net())
    for _ in range(3):
        state, _ = executor.train_step(state, samples())
    weights = state.params[0]["w"]
    assert weights.dtype == np.float32
    assert (np.asarray(CBFLOAT16.round(jnp.asarray(weights))) != weights).any()


@pytest.mark.slow
def test_bytes_halve_and_sparse_ones_are_four_each():
    params = net()
    size = DEPTH * (WIDTH**2 + WIDTH)

    def sent(**options):
        executor = wse.CS2(**options).executor(loss, params, samples(), optax.sgd(0.1))
        executor.train_step(executor.init(params), samples())
        return executor.run.total_bytes("broadcast") / 2, executor.run.total_bytes("gradient")

    assert sent(precision="bfloat16") == (2 * size, 2 * size)
    rule = wse.sparsity.Rule(keep_last=False)
    few = 4 * DEPTH * round(WIDTH**2 / 10) + 2 * DEPTH * WIDTH
    sparse = wse.sparsity.Static(0.9, rule=rule)
    assert sent(precision="bfloat16", sparsity=sparse) == (few, few)


def test_an_overflow_changes_nothing_but_the_scale():
    optimizer = scaled(optax.adam(0.1), Dynamic(initial=8.0, run=2))
    params = {"w": jnp.ones(3)}
    state = first = optimizer.init(params)
    change, state = optimizer.update({"w": jnp.array([1.0, np.inf, 2.0])}, state, params)
    assert (np.asarray(change["w"]) == 0).all()
    assert float(state.scale) == 4.0
    assert int(state.skipped) == 1
    jax.tree.map(np.testing.assert_array_equal, state.inner, first.inner)


def test_the_scale_grows_after_a_run_of_good_steps_and_stays_in_its_bounds():
    optimizer = scaled(optax.sgd(0.1), Dynamic(initial=2.0, run=3, least=1.0, most=4.0))
    params, found = {"w": jnp.ones(2)}, []
    state = optimizer.init(params)
    for value in (1, 1, 1, 1, 1, 1, np.inf, np.nan, np.inf):
        _, state = optimizer.update({"w": jnp.array([value, 1.0])}, state, params)
        found.append(float(state.scale))
    assert found == [2, 2, 4, 4, 4, 4, 2, 1, 1]


def test_scaled_gradients_give_the_update_of_the_unscaled_ones():
    params, gradient = {"w": jnp.ones(3)}, {"w": jnp.array([1.0, -2.0, 0.5])}
    plain, _ = optax.sgd(0.1).update(gradient, optax.sgd(0.1).init(params), params)
    optimizer = scaled(optax.sgd(0.1), 1024.0)
    large = jax.tree.map(lambda g: 1024 * g, gradient)
    change, state = optimizer.update(large, optimizer.init(params), params)
    np.testing.assert_array_equal(change["w"], plain["w"])
    assert float(state.scale) == 1024


def test_scaling_saves_gradients_that_would_vanish():
    """A gradient of 1e-9 is zero in float16, and is not when the loss is scaled by 2^15."""

    def tiny(params, x):
        return 1e-9 * jnp.sum(x @ params["w"])

    params, x = {"w": jnp.ones((3, 2))}, jnp.ones((4, 3))
    run = mixed(tiny, params, x, FORMATS["float16"])
    assert (np.asarray(jax.grad(run)(params, x)["w"]) == 0).all()
    large = jax.grad(lambda p: 2.0**15 * run(p, x))(params)["w"] / 2.0**15
    np.testing.assert_allclose(large, 4e-9, rtol=2e-3)


def test_auxiliary_outputs_stay():
    def with_aux(params, batch):
        value = loss(params, batch)
        return value, {"twice": 2 * value}

    run = mixed(with_aux, net(), samples(), CBFLOAT16, has_aux=True)
    value, aux = jax.jit(run)(net(), samples())
    assert float(aux["twice"]) == 2 * float(value)


def test_names_bring_the_recommended_scaling():
    assert as_precision("float16").scale == as_precision("cbfloat16").scale == Dynamic()
    assert as_precision("bfloat16").scale == 1.0
    assert as_precision(None) is None


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: as_precision("float8"), "format is 'float8'"),
        (lambda: as_precision(16), "precision is 16"),
        (lambda: Precision("float16", 0.0), r"scale is 0\.0"),
        (lambda: Dynamic(initial=0.0), "least, initial, most are"),
        (lambda: Dynamic(factor=1.0), r"factor, run are 1\.0, 2000"),
    ],
)
def test_refusals_are_clear(make, message):
    with pytest.raises(ValueError, match=message):
        make()
