"""Simulations take no more memory than there is: XLA ends a process that asks for more."""

import numpy as np
import pytest

from sciml.ode import AR1, lotka_volterra, simulate
from sciml.ode.data import simulate as simulated
from sciml.ode.methods import blocks


def test_blocks_shrink_to_the_memory_that_is_free(monkeypatch):
    problem, sizes = lotka_volterra(), []
    whole = simulate(problem, samples=200, seed=1)
    one = blocks.each
    monkeypatch.setattr(
        blocks, "each", lambda f, starts: sizes.append(starts.step) or one(f, starts)
    )
    monkeypatch.setattr(blocks, "free_bytes", lambda: 20_000)
    parts = simulate(problem, samples=200, seed=1)
    assert sizes[-1] < 100
    np.testing.assert_allclose(parts.observation, whole.observation, rtol=1e-4)


@pytest.mark.parametrize("noise", [None, AR1(sd=0.1)])
def test_samples_that_memory_does_not_hold_are_refused_with_how_many_it_holds(monkeypatch, noise):
    problem = lotka_volterra()
    monkeypatch.setattr(simulated, "free_bytes", lambda: 100_000)
    with pytest.raises(
        ValueError, match=r"1000 samples of .* take about .* GB.* at most \d+"
    ) as told:
        simulate(problem, samples=1000, noise=noise)
    most = int(str(told.value).split("at most ")[1].split(",")[0])
    assert simulate(problem, samples=most, noise=noise).sizes["sample"] == most
