"""Arrays laid over a fabric give the numbers of plain JAX: models of the table, and operations.

Devices are counted when JAX starts, so this runs in a process of its own.
"""

import json
from pathlib import Path
from runpy import run_path

import pytest

from tests.wse.devices import run_on_8_devices

TABLE = run_path(str(Path(__file__).with_name("models.py")))

START = """
import json, runpy
import jax, jax.numpy as jnp, numpy as np, wse
from jax import lax
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_disable_most_optimizations", True)


def check(where, ours, plain):
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(plain), strict=True):
        size = float(np.max(np.abs(b), initial=0))
        np.testing.assert_allclose(a, b, atol=1e-9 * (1 + size), rtol=0, err_msg=str(where))
    print(json.dumps(where))
"""

MODELS = """
table = runpy.run_path("validation/contract/models.py")
for name, places in CASES.items():
    case = table["MODELS"][name]()
    plain = jax.jit(jax.value_and_grad(case.loss, has_aux=case.has_aux))(case.params, case.batch)
    for systems, *grid in places:
        executor = wse.CS2(systems, fabric=tuple(grid)).executor(
            case.loss, case.params, case.batch, has_aux=case.has_aux)
        ours = executor.value_and_grad(case.params, case.batch)
        check([name, systems, *grid], ours, plain)
"""

# An image of 4 x 4 pixels and 6 channels: four devices cut its height or its width.
OPERATIONS = """
def conv(x, w):
    return lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def pool(x, operation, first, window, step, padding):
    return lax.reduce_window(
        x, first, operation, (1, window, window, 1), (1, step, step, 1), padding)


OPERATIONS = {
    "sum": lambda x: pool(x, lax.add, 0.0, 2, 2, "VALID"),
    "maximum": lambda x: pool(x, lax.max, -jnp.inf, 3, 2, "SAME"),
    "steps": lambda x: x[:, ::2, 1::2],
    "nearest": lambda x: jax.image.resize(x, (8, 8, 8, 6), "nearest"),
    "Fourier": lambda x: jnp.abs(jnp.fft.fft2(x, axes=(1, 2))) ** 2,
    "remat": lambda x: jax.checkpoint(lambda x: pool(jnp.tanh(x), lax.add, 0.0, 2, 2, "VALID"))(x),
}
draw = np.random.default_rng(0)
params = {"first": draw.normal(size=(3, 3, 4, 6)) / 6, "last": draw.normal(size=(6, 3))}
batch = draw.normal(size=(8, 4, 4, 4))
for name, places in CASES.items():
    def loss(p, x):
        return jnp.mean((OPERATIONS[name](conv(x, p["first"])) @ p["last"]) ** 2)

    plain = jax.jit(jax.value_and_grad(loss))(params, batch)
    for systems, *grid in places:
        executor = wse.CS2(systems, fabric=tuple(grid)).executor(loss, params, batch)
        check([name, systems, *grid], executor.value_and_grad(params, batch), plain)
"""

Cases = dict[str, list[list[int]]]
LINE, TALL, SQUARE = [1, 1, 4], [1, 4, 1], [2, 2, 2]
QUICK: Cases = {"unet": [LINE], "convolutional": [[2, 1, 4]], "nnx_scanned": [SQUARE]}


def check(program: str, cases: Cases) -> None:
    text = f"{START}\nCASES = json.loads({json.dumps(cases)!r})\n{program}"
    found = [json.loads(line) for line in run_on_8_devices(text, 1200).splitlines()]
    assert found == [[name, *place] for name, places in cases.items() for place in places]


def test_small_models_on_a_fabric_give_the_numbers_of_plain_jax():
    check(MODELS, QUICK)


def test_operations_that_cross_pieces_give_the_numbers_of_plain_jax():
    names = ("sum", "maximum", "steps", "Fourier", "remat")
    check(OPERATIONS, {**{name: [LINE] for name in names}, "nearest": [[2, 1, 4]]})


@pytest.mark.contract
@pytest.mark.parametrize("name", TABLE["MODELS"])
def test_every_model_on_every_fabric(name):
    check(MODELS, {name: [LINE, TALL, [2, 1, 4], SQUARE]})
