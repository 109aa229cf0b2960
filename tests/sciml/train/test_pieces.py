"""Training on data that are read meanwhile: every sample once, the numbers of a plain loop."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sciml.train import Recipe, loop, piecewise
from sciml.train.optimizer import optimizer
from sciml.train.pieces import Stream
from sciml.train.piecewise import train_piecewise

pytestmark = pytest.mark.usefixtures("quick_compilation")
RECIPE = Recipe(batch=4, learning_rate=0.05)
SIZES = np.array([7, 0, 13, 5, 9, 1])
X = np.random.default_rng(0).normal(size=(SIZES.sum(), 3)).astype(np.float32)
Y = X @ np.array([1.0, -2.0, 0.5], np.float32)


def stream_of(window: int, sizes=SIZES, arrays=(X, Y)) -> Stream:
    starts = np.cumsum(sizes) - sizes

    def read(piece: int):
        return tuple(a[starts[piece] : starts[piece] + sizes[piece]] for a in arrays)

    return Stream(np.asarray(sizes), window, read, arrays)


def loss(params, batch, key):
    x, y = batch
    noise = 0.1 * jax.random.normal(key, x.shape)
    return jnp.mean(jnp.square((x + noise) @ params["w"] - y))


def batches(stream: Stream, batch: int, seed: int, epochs: int, done: int = 0):
    """Batches of rows by windows, with the epoch and the step of each."""
    for epoch, index in stream.places(batch, epochs, done):
        window = stream.filled(seed, batch, epoch, index)
        for i in range(window.count):
            yield epoch, window.first + i, jax.tree.map(lambda x, i=i: x[i], window.arrays)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=12).filter(lambda sizes: sum(sizes) > 0),
    st.integers(1, 40),
    st.integers(1, 9),
    st.integers(0, 2**63),
)
def test_an_epoch_has_every_sample_once_but_for_a_last_batch(sizes, window, batch, seed):
    total = sum(sizes)
    batch = min(batch, total)
    stream = stream_of(window, np.array(sizes), (np.arange(total),))
    found = list(batches(stream, batch, seed, 2))
    for epoch in (0, 1):
        rows = [rows for at, _, (rows,) in found if at == epoch]
        assert len(rows) == total // batch
        assert all(len(row) == batch for row in rows)
        assert len(np.unique(np.concatenate(rows))) == total // batch * batch
    assert [step for _, step, _ in found] == [*range(total // batch)] * 2
    for done in {0, total // batch // 2, total // batch}:
        rest = [(epoch, step) for epoch, step, _ in batches(stream, batch, seed, 2, done)]
        whole = [(epoch, step) for epoch, step, _ in found]
        assert rest == whole[len(whole) - len(rest) :]
        assert len(whole) - len(rest) <= done  # from the start of the window that it lies in


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=12).filter(lambda sizes: sum(sizes) > 0),
    st.integers(1, 40),
    st.integers(1, 9),
    st.integers(1, 5),
)
def test_shares_of_a_window_are_the_window_each_piece_read_once(sizes, window, batch, each):
    total = sum(sizes)
    stream = stream_of(window, np.array(sizes), (np.arange(1, total + 1),))
    batch = min(batch, total)
    for place in stream.places(batch, 2, 0):
        whole = stream.filled(3, batch, *place)
        shares = [stream.filled(3, batch, *place, share=(i, each)) for i in range(each)]
        assert {(part.first, part.count) for part in shares} == {(whole.first, whole.count)}
        parts = np.stack([part.arrays[0] for part in shares])
        np.testing.assert_array_equal(parts.sum(axis=0), whole.arrays[0])
        assert ((parts != 0).sum(axis=0) <= 1).all()


@pytest.mark.parametrize("window", [4, 10, 999])
def test_equals_a_plain_loop(window):
    params, stream = {"w": jnp.zeros(3)}, stream_of(window)
    trained = train_piecewise(loss, params, stream, recipe=RECIPE, epochs=3, seed=9)
    transform = optimizer(RECIPE, 3 * 8)
    state, losses = transform.init(params), []
    for epoch, step, batch in batches(stream, 4, 9, 3):
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(9), epoch), step)
        value, gradient = jax.value_and_grad(loss)(params, batch, key)
        change, state = transform.update(gradient, state, params)
        params = optax.apply_updates(params, change)
        losses.append(value)
    np.testing.assert_allclose(trained.params["w"], params["w"], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(trained.loss, np.reshape(losses, (3, 8)).mean(1), rtol=1e-5)


def test_an_interrupted_training_goes_on_within_a_window(tmp_path, monkeypatch):
    given = {"recipe": RECIPE, "epochs": 4, "seed": 1}
    whole = train_piecewise(loss, {"w": jnp.zeros(3)}, stream_of(16), **given)
    monkeypatch.setattr(loop, "CHECKPOINT_S", -1.0)
    monkeypatch.setattr(piecewise, "FIRST_STEPS", 3)
    monkeypatch.setattr(piecewise.Steps, "count", lambda *_: 3)
    advance, steps = piecewise.Steps.advance, []

    def interrupted(self, progress, arrays, key, first, count):
        if len(steps) == 5:
            raise KeyboardInterrupt
        steps.append(count)
        return advance(self, progress, arrays, key, first, count)

    with monkeypatch.context() as patch:
        patch.setattr(piecewise.Steps, "advance", interrupted)
        with pytest.raises(KeyboardInterrupt):
            file = tmp_path / "checkpoint"
            train_piecewise(loss, {"w": jnp.zeros(3)}, stream_of(16), checkpoint=file, **given)
    done = sum(steps)
    assert done % 8 not in (0, 4)  # within an epoch, and within a window of four steps
    later: list[int] = []

    def counted(self, progress, arrays, key, first, count):
        later.append(count)
        return advance(self, progress, arrays, key, first, count)

    monkeypatch.setattr(piecewise.Steps, "advance", counted)
    resumed = train_piecewise(loss, {"w": jnp.zeros(3)}, stream_of(16), checkpoint=file, **given)
    assert sum(later) == 4 * 8 - done
    np.testing.assert_array_equal(resumed.params["w"], whole.params["w"])
    np.testing.assert_array_equal(resumed.loss, whole.loss)


def test_what_reading_raised_comes_where_the_window_would_have():
    def read(piece: int):
        raise OSError(f"piece {piece} is on a disk that has gone")

    stream = Stream(np.array([4, 4]), 4, read, ())
    with pytest.raises(OSError, match="a disk that has gone"):
        train_piecewise(loss, {"w": jnp.zeros(3)}, stream, recipe=RECIPE, epochs=1)


@pytest.mark.parametrize("ordered", [False, True])
def test_the_mean_of_a_batch_varies_as_is_said(ordered):
    """σ²/b + τ²/W, but for what is drawn without being put back."""
    pieces, size, batch, together = 64, 25, 20, 8
    values = np.random.default_rng(1).normal(size=pieces * size)
    values = np.sort(values) if ordered else values
    parts = values.reshape(pieces, size)
    stream = stream_of(together * size, np.full(pieces, size), (values,))
    found = [rows for _, _, (rows,) in batches(stream, batch, 0, 40)]
    within, between = parts.var(axis=1, ddof=1).mean(), parts.mean(axis=1).var(ddof=1)
    # Of a finite number of pieces and samples, drawn without being put back.
    among = between * (1 - together / pieces) / together
    inside = (within + between) / batch * (1 - batch / (together * size))
    measured = np.mean(found, axis=1).var()
    np.testing.assert_allclose(measured, among + inside, rtol=0.12)
    uniform = values.var() / batch
    assert (measured > 2 * uniform) == ordered
    assert ordered or measured < 1.12 * uniform
