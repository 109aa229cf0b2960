"""A small GPT learns text that ships with Python, streamed, as it does in plain JAX."""

import codecs
import contextlib
import io
from importlib import import_module
from pathlib import Path
from runpy import run_path

import jax
import numpy as np
import optax
import pytest

import wse

GPT = run_path(str(Path(__file__).with_name("models.py")))["gpt"]
LENGTH, STEPS = 24, 120


def zen() -> np.ndarray:
    """The Zen of Python (T. Peters, PEP 20) as numbers of its characters."""
    with contextlib.redirect_stdout(io.StringIO()):
        text = codecs.decode(import_module("this").s, "rot13")
    letters = sorted(set(text))
    return np.array([letters.index(letter) for letter in text])


def entropy(text: np.ndarray) -> float:
    """What a model that knows only how often each letter comes must pay per letter, in nats."""
    shares = np.bincount(text) / len(text)
    return float(-np.sum(shares * np.log(shares)))


def test_a_gpt_learns_the_zen_of_python_as_in_plain_jax():
    text = zen()
    starts = np.random.default_rng(0).integers(0, len(text) - LENGTH, (STEPS, 16))
    windows = text[starts[..., None] + np.arange(LENGTH)]
    with jax.enable_x64(True):
        case = GPT(windows[0], int(text.max()) + 1, 32)
        keys = jax.vmap(lambda i: jax.random.split(jax.random.key(i), 16))(np.arange(STEPS))
        optimizer = optax.adam(1e-2)
        executor = wse.CS2(systems=2).executor(case.loss, case.params, case.batch, optimizer)
        streamed, values = executor.init(case.params), []
        for tokens, key in zip(windows, keys, strict=True):
            streamed, value = executor.train_step(streamed, (tokens, key))
            values.append(float(value))

        def turn(held, batch):
            value, gradients = jax.value_and_grad(case.loss)(held[0], batch)
            updates, state = optimizer.update(gradients, held[1], held[0])
            return (optax.apply_updates(held[0], updates), state), value

        first = (jax.tree.map(jax.numpy.asarray, case.params), optimizer.init(case.params))
        _, plain = jax.jit(lambda held: jax.lax.scan(turn, held, (windows, keys)))(first)
    assert values[0] > np.log(text.max() + 1)
    assert np.mean(values[-10:]) < entropy(text) - 0.5
    assert values == pytest.approx(np.asarray(plain).tolist(), rel=1e-6)
    assert "embedding#2" in [layer.name for layer in executor.graph.layers]
