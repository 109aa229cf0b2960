"""Blocks of samples: on an accelerator of little memory, and of a field that calls Python."""

import time

import jax
import numpy as np
import pytest

from sciml.ode import RungeKutta4
from sciml.ode.methods.blocks import in_blocks


def test_an_accelerator_without_the_memory_is_given_half(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    sizes = []

    def twice(rows):
        sizes.append(len(rows))
        if len(rows) > 10:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory")
        return 2 * rows

    rows = np.arange(100, dtype=np.float32)[:, None]
    found = in_blocks(twice, (rows,), RungeKutta4(chunk=1))
    np.testing.assert_array_equal(found, 2 * rows)
    assert sizes == [32, 16, *[8] * 13]
    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL"):
        in_blocks(lambda _: broken(), (rows,), RungeKutta4(chunk=1))


def broken():
    raise jax.errors.JaxRuntimeError("INTERNAL: not of memory")


def test_what_calls_python_is_called_by_one_thread():
    inside, most = [], []

    def wrapped(row):
        inside.append(row)
        most.append(len(inside))
        time.sleep(0.01)  # as a library that computes in memory of its own
        return 2 * inside.pop()

    def double(rows):
        return jax.pure_callback(wrapped, jax.ShapeDtypeStruct(rows.shape, rows.dtype), rows)

    rows = np.arange(20, dtype=np.float32)[:, None]
    found = in_blocks(jax.jit(double), (rows,), RungeKutta4(chunk=1), progress=False)
    np.testing.assert_array_equal(found, 2 * rows)
    assert len(most) == 20
    assert max(most) == 1
