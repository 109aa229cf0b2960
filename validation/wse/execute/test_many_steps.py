"""Thousands of steps on more systems than cores end."""

from tests.wse.devices import run_on_8_devices


def test_3000_steps_on_8_systems_and_2_cores_do_not_hang():
    printed = run_on_8_devices(
        """
        import os
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
        import jax, jax.numpy as jnp, numpy as np, wse, optax

        def loss(p, x):
            return jnp.mean((jnp.tanh(x @ p["a"]["w"]) @ p["b"]["w"]) ** 2)

        params = {n: {"w": np.ones((4, 4), "f4") / 4} for n in "ab"}
        x = np.ones((8, 4), "f4")
        executor = wse.CS2(8).executor(loss, params, x, optax.sgd(0.01))
        state = executor.init(params)
        for _ in range(3000):
            state, value = executor.train_step(state, x)
        print(state.step)
        """,
        timeout_s=600,
    )
    assert printed.split() == ["3000"]
