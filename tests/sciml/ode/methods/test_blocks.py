"""Blocks of samples on an accelerator, whose memory holds fewer than were asked for."""

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
