"""Arrays laid over a fabric: where each axis lies, and the numbers of one device."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wse
from tests.wse.devices import run_on_8_devices
from wse.execute import fabric
from wse.execute.swarmx import SwarmX

IMAGE = fabric.Roles(0, 3, (1, 2))
FIRST = fabric.Roles(0, 1, (2, 3))


@pytest.mark.parametrize(
    ("shape", "mesh", "at", "spec"),
    [
        ((8, 16, 16, 4), (2, 2, 2), IMAGE, ("system", "row", None, "column")),
        ((8, 16, 16, 3), (1, 2, 2), IMAGE, ("system", "row", "column", None)),
        ((8, 15, 16, 4), (1, 2, 2), IMAGE, ("system", None, "row", "column")),
        ((8, 4, 16, 16), (1, 2, 2), FIRST, ("system", "column", "row", None)),
        ((8, 32), (2, 2, 2), fabric.Roles(0, 1, ()), ("system", "column")),
        ((6, 5), (2, 2, 2), fabric.Roles(0, 1, ()), ("system", None)),
        ((7,), (2, 2, 2), fabric.Roles(0, 0, ()), ()),
    ],
)
def test_where_an_activation_lies(shape, mesh, at, spec):
    assert fabric.activation(shape, mesh, at) == spec


def test_the_axes_are_those_of_the_convolution():
    def first(x, w):
        return jax.lax.conv(x, w, (1, 1), "SAME")

    closed = jax.make_jaxpr(first)(jnp.ones((2, 3, 8, 8)), jnp.ones((4, 3, 3, 3)))
    assert fabric.roles(closed, 4) == FIRST
    assert fabric.roles(closed, 2) == fabric.Roles(0, 1, ())
    assert fabric.roles(None, 4) == IMAGE


def test_a_fabric_folds_onto_the_devices_present():
    eight = tuple(range(8))
    shapes = {
        (systems, grid): SwarmX(systems, eight, grid).shape
        for systems in (1, 2, 3)
        for grid in ((1, 1), (2, 2), (1, 4), (3, 3), (4, 8))
    }
    assert shapes[1, (2, 2)] == (1, 2, 2)
    assert shapes[2, (2, 2)] == (2, 2, 2)
    assert shapes[2, (1, 4)] == (2, 1, 4)
    assert shapes[3, (2, 2)] == (3, 2, 1)
    assert shapes[1, (3, 3)] == (1, 3, 1)
    assert shapes[2, (4, 8)] == (2, 4, 1)
    assert SwarmX(2, (0,), (2, 2)).shape == (1, 1, 1)


def test_one_device_takes_any_fabric():
    params, x = {"w": jnp.ones((4, 4))}, jnp.arange(8.0).reshape(2, 4)
    executor = wse.CS2(2, fabric=(2, 3)).executor(
        lambda p, x: jnp.mean((x @ p["w"]) ** 2), params, x
    )
    assert float(executor.value_and_grad(params, x)[0]) == float(jnp.mean((x @ params["w"]) ** 2))


@pytest.mark.slow
def test_the_page_runs_on_8_devices():
    text = (Path(__file__).parents[3] / "docs/fabric.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 2
    printed = run_on_8_devices("".join(blocks) + "\nprint(float(value), len(jax.devices()))")
    value, devices = map(float, printed.split())
    assert (round(value, 4), devices) == (round(float(np.tanh(1) ** 2), 4), 8)


@pytest.mark.parametrize(
    ("window", "step", "padding", "size", "whole"),
    [
        (2, 2, "VALID", 8, False),
        (2, 2, "VALID", 4, True),  # four pieces of one
        (2, 2, "VALID", 12, True),  # four pieces of three
        (3, 2, "SAME", 16, True),
        (1, 4, "VALID", 16, False),
    ],
)
def test_an_axis_on_which_a_window_crosses_to_a_neighbour_is_whole(
    window, step, padding, size, whole
):
    def pool(x):
        return jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, window), (1, step), padding)

    (eqn,) = jax.make_jaxpr(pool)(jnp.ones((2, size))).eqns
    assert fabric.crossing(eqn.params, 1, size // 4) is whole
    assert not fabric.crossing(eqn.params, 0, 1)


@pytest.mark.slow
def test_a_fabric_gives_the_numbers_of_one_device():
    """A net of convolutions with batch norm and a dense one, by both executors."""
    printed = run_on_8_devices(
        """
        import jax, jax.numpy as jnp, numpy as np, optax, wse
        from jax import lax
        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_disable_most_optimizations", True)
        draw = np.random.default_rng(0)

        def conv(x, w):
            return lax.conv_general_dilated(
                x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

        def images(p, batch):
            x, y = batch
            x = conv(x, p["first"]["w"])
            x = jax.nn.relu((x - x.mean((0, 1, 2))) / jnp.sqrt(x.var((0, 1, 2)) + 1e-3))
            x = conv(x, p["second"]["w"])
            return jnp.mean((jnp.tanh(x).mean((1, 2)) @ p["end"]["w"] - y) ** 2)

        def normal(*shape):
            return draw.normal(size=shape) / 3

        params = {"first": {"w": normal(3, 3, 2, 4)}, "second": {"w": normal(3, 3, 4, 8)},
                  "end": {"w": normal(8, 2)}}
        batch = (normal(8, 8, 8, 2), normal(8, 2))
        value, gradients = jax.jit(jax.value_and_grad(images))(params, batch)
        plain = jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)
        runs = [(1, (2, 2), None), (2, (1, 4), None), (2, (2, 2), None), (1, (1, 4), "pipelined"),
                (2, (2, 2), "pipelined")]
        for systems, grid, mode in runs:
            more = {"micro_batches": 2} if mode else {}
            executor = wse.CS2(systems, mode, fabric=grid).executor(
                images, params, batch, optax.sgd(0.1), **more)
            found, ours = executor.value_and_grad(params, batch)
            assert abs(found - value) < 1e-12
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-12), ours, gradients)
            state, _ = executor.train_step(executor.init(params), batch)
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-12),
                         state.params, plain)
            largest = max(x.work.weight_bytes for x in executor.graph.layers)
            print(systems, grid, mode or "streaming", executor.run.peak_weight_bytes)
        """
    )
    assert [line.rsplit(" ", 1)[0] for line in printed.splitlines()] == [
        "1 (2, 2) streaming",
        "2 (1, 4) streaming",
        "2 (2, 2) streaming",
        "1 (1, 4) pipelined",
        "2 (2, 2) pipelined",
    ]
    # Resident, all weights: a quarter of 8 * (72 + 288 + 16) bytes; of the end, 8 x 2, two columns.
    held = [int(line.rsplit(" ", 1)[1]) for line in printed.splitlines()]
    assert held[4] == 8 * (72 + 288 + 16) // 4
    assert held[3] == 8 * ((72 + 288) // 4 + 16)
