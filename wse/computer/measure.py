"""Ten seconds of micro-benchmarks: what `Rates` holds, measured here and now."""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

import os
import platform
from collections.abc import Callable
from itertools import product
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
from tqdm.auto import tqdm

from wse.computer.rates import CHANNELS, PIXELS, SIZES, WORKING_BYTES, Rates

LEAST_S = 0.004  # of each round, so that the clock's own steps do not count
ROUNDS = 5
CHAIN = 64  # small kernels in a row, by which one is told from a call
SPEC = ("NHWC", "HWIO", "NHWC")


def measure() -> Rates:
    """Measure this computer; takes about ten seconds, on a quiet one."""
    count = len(SIZES) ** 3 + 2 * len(PIXELS) * len(CHANNELS) + 3
    with tqdm(total=count, unit="rate", leave=False, desc="measuring this computer") as bar:

        def timed(program: Callable[..., Any], *args: Any) -> float:
            bar.update()
            return seconds(jax.jit(program), *args)

        call_s = timed(lambda x: x + 1, jnp.ones(8))
        kernel_s = max(timed(_chain, jnp.ones((8, 8))) - call_s, CHAIN * 1e-8) / CHAIN
        spent = kernel_s, call_s
        products = tuple(_product(timed, size, spent) for size in product(SIZES, repeat=3))
        return Rates(
            computer=computer(),
            versions=f"jax {jax.__version__}",
            products=products,
            convolutions=tuple(
                _convolution(timed, result, pixels, channels, spent)
                for result, pixels, channels in product(("image", "kernel"), PIXELS, CHANNELS)
            ),
            bandwidth=tuple(_bandwidth(nbytes, call_s) for nbytes in WORKING_BYTES),
            slow_per_s=_slow(timed, spent),
            kernel_s=kernel_s,
            call_s=call_s,
        )


def seconds(program: Callable[..., Any], *args: Any) -> float:
    """Median seconds of a call over a few rounds, each long enough for the clock.

    Not the least: a kernel by itself finds its data in the caches, which it does not within a step.
    """
    jax.block_until_ready(program(*args))
    began = perf_counter()
    jax.block_until_ready(program(*args))
    calls = max(1, round(LEAST_S / max(perf_counter() - began, 1e-7)))
    rounds: list[float] = []
    for _ in range(ROUNDS):
        began = perf_counter()
        for _ in range(calls):
            result = program(*args)
        jax.block_until_ready(result)  # pyright: ignore[reportPossiblyUnboundVariable]
        rounds.append((perf_counter() - began) / calls)
    return median(rounds)


def computer() -> str:
    """The processor's name, the cores that may be used, and the device."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    name = names[0] if names else platform.processor() or "unknown processor"
    affinity: Any = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count()
    device = jax.devices()[0]
    beside = "" if device.platform == "cpu" else f", {device.device_kind}"
    return f"{name}, {cores} cores{beside}"


def _chain(x: Any) -> Any:
    for _ in range(CHAIN):
        x = x @ x  # a product is not fused with its neighbours
    return x


def _net(total: float, spent: tuple[float, float]) -> float:
    """Seconds without those that every kernel and every call takes."""
    return max(total - sum(spent), 0.05 * total)


def _product(timed: Any, size: tuple[int, ...], spent: tuple[float, float]) -> float:
    m, n, k = size
    took = timed(jnp.matmul, jnp.ones((m, k)), jnp.ones((k, n)))
    return 2 * m * n * k / _net(took, spent)


def _convolution(
    timed: Any, result: str, pixels: int, channels: int, spent: tuple[float, float]
) -> float:
    side = int(pixels**0.5) // 2
    image = jnp.ones((4, side, side, channels))
    kernel = jnp.ones((3, 3, channels, channels))

    def forward(image: Any, kernel: Any) -> Any:
        return jax.lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=SPEC)

    def backward(image: Any, cotangent: Any) -> Any:
        return jax.vjp(lambda kernel: forward(image, kernel), kernel)[1](cotangent)

    took = timed(forward, image, kernel) if result == "image" else timed(backward, image, image)
    return 2 * 9 * channels * channels * 4 * side * side / _net(took, spent)


def _bandwidth(nbytes: int, call_s: float) -> float:
    """Of x + y: two arrays read, one written.

    The result takes the place of x, as in a training step: fresh memory would first have to be had
    from the system.
    """
    size = nbytes // 12
    add: Any = jax.jit(jnp.add, donate_argnums=0)
    x, y = jnp.zeros(size), jnp.ones(size)

    def once(_: Any) -> Any:
        nonlocal x
        x = add(x, y)
        return x

    took = seconds(once, None)
    return nbytes / max(took - call_s, 0.05 * took)


def _slow(timed: Any, spent: tuple[float, float]) -> float:
    """Of logistic functions, an exponential and a quotient each."""
    size = 2**18
    return 2 * size / _net(timed(jax.nn.sigmoid, jnp.ones(size)), spent)
