"""A quarter of a minute of micro-benchmarks: what `Rates` holds, measured here and now."""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from statistics import median
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
from tqdm.auto import tqdm

from wse._processor import processor, usable_cores
from wse.computer.rates import CHANNELS, PIXELS, SIZES, WORKING_BYTES, Rates
from wse.computer.timings import Convolution

LEAST_S = 0.004  # of each round, so that the clock's own steps do not count
ROUNDS = 5
SEVERAL = 4  # kernels in a program, so that the call counts for little
CHAIN = 64  # small kernels in a row, by which one is told from a call
SPEC = ("NHWC", "HWIO", "NHWC")


def measure() -> Rates:
    """Measure this computer; takes about fifteen seconds, on a quiet one."""
    count = len(SIZES) ** 3 + 2 * len(PIXELS) * len(CHANNELS) + 3
    with tqdm(total=count, unit="rate", leave=False, desc="measuring this computer") as bar:

        def timed(program: Callable[..., Any], *args: Any) -> float:
            bar.update()
            return seconds(program, *args)

        call_s = timed(jax.jit(lambda x: x + 1), jnp.ones(8))
        kernel_s = max(timed(jax.jit(_chain), jnp.ones((8, 8))) - call_s, CHAIN * 1e-8) / CHAIN
        spent = kernel_s, call_s / SEVERAL
        products = tuple(
            rate
            for rows in SIZES
            for rate in _products(
                timed, [(rows, *rest) for rest in product(SIZES, repeat=2)], spent
            )
        )
        return Rates(
            computer=computer(),
            versions=f"jax {jax.__version__}",
            products=products,
            convolutions=tuple(
                _convolutions(timed, [*product(("image", "kernel"), PIXELS, CHANNELS)], spent)
            ),
            bandwidth=tuple(_bandwidth(nbytes, call_s) for nbytes in WORKING_BYTES),
            slow_per_s=_slow(timed, (kernel_s, call_s)),
            kernel_s=kernel_s,
            call_s=call_s,
            together=together(),
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
    device = jax.devices()[0]
    beside = "" if device.platform == "cpu" else f", {device.device_kind}"
    return f"{processor()}, {usable_cores()} cores{beside}"


def together() -> bool:
    """Whether products that are alike run side by side here; assumed of all but processors."""
    return jax.default_backend() != "cpu"


def _chain(x: Any) -> Any:
    for _ in range(CHAIN):
        x = x @ x  # a product is not fused with its neighbours
    return x


def convolution_seconds(convolution: Convolution, rates: Rates) -> float:
    """Measure one convolution, without what every kernel takes and the call."""
    operands = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in convolution.operands]
    took = seconds(_each(convolution, *operands))
    return _net(took / SEVERAL, (rates.kernel_s, rates.call_s / SEVERAL))


def _each(kernel: Callable[..., Any], *shapes: Any) -> Callable[[], Any]:
    """Several kernels as one program: own operands and fresh memory for results, as in a step."""
    operands = [[_filled(shape, 1.0 + i) for shape in shapes] for i in range(SEVERAL)]
    program: Any = jax.jit(lambda operands: [kernel(*each) for each in operands])
    return lambda: program(operands)


def _filled(shape: Any, value: float) -> Any:
    dtype = getattr(shape, "dtype", jnp.float32)
    return jnp.full(getattr(shape, "shape", shape), value, dtype)


def _net(total: float, spent: tuple[float, float]) -> float:
    """Seconds without those that every kernel and every call takes."""
    return max(total - sum(spent), 0.05 * total)


def _products(timed: Any, sizes: Sequence[tuple[int, ...]], spent: Any) -> Iterator[float]:
    """Rates of products."""
    programs = _compiled(_each(jnp.matmul, (m, k), (k, n)) for m, n, k in sizes)
    for (m, n, k), program in zip(sizes, programs, strict=True):
        yield 2 * m * n * k / _net(timed(program) / SEVERAL, spent)


def _compiled(programs: Iterable[Callable[[], Any]]) -> list[Callable[[], Any]]:
    """Programs that were compiled side by side: one by one, a card's convolutions take minutes."""
    made = [*programs]
    with ThreadPoolExecutor(usable_cores()) as pool:
        jax.block_until_ready([once.result() for once in [pool.submit(x) for x in made]])
    return made


def _convolutions(
    timed: Any, cases: Sequence[tuple[str, int, int]], spent: tuple[float, float]
) -> Iterator[float]:
    """Rates of convolutions."""
    made = [_convolution(*case) for case in cases]
    programs = _compiled(program for program, _ in made)
    for program, (_, flops) in zip(programs, made, strict=True):
        yield flops / _net(timed(program) / SEVERAL, spent)


def _convolution(result: str, pixels: int, channels: int) -> tuple[Callable[[], Any], int]:
    """A program of convolutions, and the FLOPs of each."""
    side = int(pixels**0.5) // 2
    of_image, of_kernel = (4, side, side, channels), (3, 3, channels, channels)

    def forward(image: Any, kernel: Any) -> Any:
        return jax.lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=SPEC)

    def backward(image: Any, cotangent: Any) -> Any:
        shape = jax.ShapeDtypeStruct(of_kernel, jnp.float32)
        return jax.linear_transpose(lambda kernel: forward(image, kernel), shape)(cotangent)

    flops = 2 * 9 * channels * channels * 4 * side * side
    if result == "image":
        return _each(forward, of_image, of_kernel), flops
    return _each(backward, of_image, of_image), flops


def _bandwidth(nbytes: int, call_s: float) -> float:
    """Of x + y, two arrays read, one written, in the place of x: fresh memory takes time to get."""
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
    return 2 * size / _net(timed(jax.jit(jax.nn.sigmoid), jnp.ones(size)), spent)
