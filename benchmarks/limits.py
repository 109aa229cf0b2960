"""What no training of the net can beat: its products alone, and the bytes that Adam must move."""

import jax
import jax.numpy as jnp
import numpy as np
from contestants import Case, Epochs
from jax import lax

ADAM_BYTES = 28  # per parameter: read weight, two moments and gradient, write all but the gradient
MEMORY_FLOATS = 2**26  # 256 MiB, eight times the largest cache that we met


def xla_products(case: Case) -> Epochs:
    """All products of a step, forward and backward, by XLA in one compiled loop."""
    weights = [jnp.asarray(w) for w in matrices(case)]
    x = jnp.asarray(case.data()[0][: case.batch])

    def step(_, state):
        x, _ = state
        products = list(step_products(x, weights, lax.dot_general))
        touched = sum(p[0, 0] for p in products)  # ties the next step to this one
        return x.at[0, 0].add(1e-30 * touched), products

    zeros = [jnp.zeros_like(w) for w in weights]
    run = jax.jit(lambda x, count: lax.fori_loop(0, count, step, (x, zeros)))
    return lambda count: jax.block_until_ready(run(x, count * case.steps)) and None


def numpy_products(case: Case) -> Epochs:
    """The same products by NumPy's BLAS."""
    weights, x = matrices(case), case.data()[0][: case.batch]

    def product(left, right, dimensions):
        ((of_left,), (of_right,)), _ = dimensions
        return (left.T if of_left == 0 else left) @ (right.T if of_right == 1 else right)

    def epochs(count: int) -> None:
        for _ in range(count * case.steps):
            list(step_products(x, weights, product))

    return epochs


def torch_products(case: Case) -> Epochs:
    """The same products by PyTorch."""
    import torch

    weights = [torch.from_numpy(w) for w in matrices(case)]
    x = torch.from_numpy(case.data()[0][: case.batch])

    def product(left, right, dimensions):
        ((of_left,), (of_right,)), _ = dimensions
        return (left.T if of_left == 0 else left) @ (right.T if of_right == 1 else right)

    def epochs(count: int) -> None:
        with torch.no_grad():
            for _ in range(count * case.steps):
                list(step_products(x, weights, product))

    return epochs


def step_products(x, weights, product):
    """Yield the weight gradients of a linear net, last layer first, from products alone."""
    inputs = [x]
    for weight in weights:
        inputs.append(product(inputs[-1], weight, (((1,), (0,)), ((), ()))))
    gradient = inputs.pop()
    found = []
    for layer in reversed(range(len(weights))):
        found.append(product(inputs[layer], gradient, (((0,), (0,)), ((), ()))))
        if layer:
            gradient = product(gradient, weights[layer], (((1,), (1,)), ((), ())))
    return found[::-1]


def matrices(case: Case) -> list[np.ndarray]:
    """Return random weights that keep the size of what passes through."""
    draw = np.random.default_rng(0)
    pairs = zip(case.sizes[:-1], case.sizes[1:], strict=True)
    return [draw.standard_normal((n, m), np.float32) / np.float32(n) ** 0.5 for n, m in pairs]


def memory(_: Case) -> Epochs:
    """Scale 256 MiB in place, once an epoch: 512 MiB moved."""
    scale = jax.jit(
        lambda a, n: lax.fori_loop(0, n, lambda _, a: 0.999999 * a, a), donate_argnums=0
    )
    held = [jnp.ones(MEMORY_FLOATS)]

    def epochs(count: int) -> None:
        held[0] = scale(held[0], count)
        held[0].block_until_ready()

    return epochs


def bandwidth_bytes_s(epoch_s: float) -> float:
    """Return the memory bandwidth from the seconds of an epoch of `memory`."""
    return 8 * MEMORY_FLOATS / epoch_s


def floor_s(case: Case, products_s: float, memory_s: float) -> float:
    """Return the least seconds of an epoch: products, then Adam's bytes from memory."""
    adam_s = case.steps * ADAM_BYTES * case.parameters / bandwidth_bytes_s(memory_s)
    return products_s + adam_s
