"""Compiled turns in calls so short that Ctrl-C is heard and a checkpoint written in between."""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from sciml.train import loop


class Pace:
    """How many turns a compiled call takes, so that it lasts some two seconds.

    Longer ones would keep Ctrl-C and the checkpoint waiting.
    """

    def __init__(self):
        """Know nothing yet: the first call compiles, the second is measured."""
        self.calls, self.turns, self.spent_s = 0, 0, 0.0

    def __call__(self, run: Callable, state: Any, at: int, left: int) -> tuple[Any, int]:
        """Return the state after some turns from `at`, of so many that are left, and how many."""
        each_s = self.spent_s / max(self.turns, 1)
        count = min(left, max(1, round(loop.CALL_S / each_s)) if self.turns else 1)
        began = time.perf_counter()
        state = jax.block_until_ready(run(state, jnp.int32(at), jnp.int32(count)))
        self.calls += 1
        if self.calls > 1:
            self.turns, self.spent_s = (
                self.turns + count,
                self.spent_s + time.perf_counter() - began,
            )
        return state, count


def bare(tree: Any) -> Any:
    """Return a pytree with random keys as the numbers that they are."""
    return jax.tree.map(lambda x: jax.random.key_data(x) if is_key(x) else x, tree)


def keyed(like: Any, tree: Any) -> Any:
    """Return a pytree with random keys where another has them."""
    return jax.tree.map(lambda k, x: jax.random.wrap_key_data(x) if is_key(k) else x, like, tree)


def is_key(x: Any) -> bool:
    """Tell whether an array holds random keys."""
    return jnp.issubdtype(jnp.result_type(x), jax.dtypes.prng_key)
