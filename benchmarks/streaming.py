"""A streamed training step beside the fused one: seconds and bytes, optimizer included.

Contestants take turns: every round runs each of them once. What is printed are medians over rounds
of the ratio to the fused step of the same round, by the clock and by processor time (of all
threads, the kernel's share included: it suffers less on a busy machine), and bytes: what the
executor held on the device at its peak, beside XLA's arguments, outputs and temporaries of the
fused step.

PyTorch's own way of keeping weights on the host takes its turns too, beside plain PyTorch
(`offload.py`), and what cannot run here is named with the reason.

    XLA_PYTHON_CLIENT_MEM_FRACTION=0.05 python benchmarks/streaming.py --over-budget

takes a GPU, leaves the process a twentieth of its memory, and trains a net whose weights, moments
and gradients exceed that.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from offload import left_out, torch_steps

import wse

# The project's own aims: seconds over the fused step, recomputing and keeping residuals.
AIMS = {
    "dense 2048 x 100": (1.45, 1.15),
    "dense 2048 x 1000": (1.3, 1.3),
    "dense 2048 x 10000": (1.3, 1.3),
    "dense 512 x 1000": (1.5, 1.2),
    "dense 32 x 100": (5.0, 5.0),
    "U-Net": (1.8, 1.5),
}


class UNet(nnx.Module):
    """Two levels of 3 x 3 convolutions, 16 channels wide at the top."""

    def __init__(self, rngs: nnx.Rngs, width: int = 16):
        """Draw the weights."""
        sizes = [(2, width), (width, 2 * width), (2 * width, 4 * width)]
        self.down = nnx.List(nnx.Conv(n, m, (3, 3), rngs=rngs) for n, m in sizes)
        self.more = nnx.List(nnx.Conv(m, m, (3, 3), rngs=rngs) for _, m in sizes)
        ups = [(6 * width, 2 * width), (3 * width, width)]
        self.up = nnx.List(nnx.Conv(n, m, (3, 3), rngs=rngs) for n, m in ups)
        self.end = nnx.Conv(width, 2, (1, 1), rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Return an image of the same size."""
        kept = []
        for first, second in zip(self.down, self.more, strict=True):
            x = nnx.swish(second(nnx.swish(first(x))))
            kept.append(x)
            x = nnx.avg_pool(x, (2, 2), (2, 2))
        x = kept.pop()
        for layer in self.up:
            skip = kept.pop()
            x = jnp.concatenate(
                [jax.image.resize(x, (*skip.shape[:3], x.shape[3]), "nearest"), skip], -1
            )
            x = nnx.swish(layer(x))
        return self.end(x)


def dense(width: int, batch: int) -> tuple[Callable[..., Any], Any, Any]:
    """Return the loss, weights and a batch of the published dense net."""
    from sciml.models import Dense

    module = Dense(width, 8).build(1000, 2, rngs=nnx.Rngs(0))
    draw = np.random.default_rng(0)
    x = draw.standard_normal((batch, 1000), np.float32)
    return of(module, (x, draw.random((batch, 2), np.float32)))


def unet() -> tuple[Callable[..., Any], Any, Any]:
    """Return the same of the U-Net, on 8 images of 32 x 32."""
    x = np.random.default_rng(0).standard_normal((8, 32, 32, 2), np.float32)
    return of(UNet(nnx.Rngs(0)), (x, x))


def of(module: nnx.Module, batch: Any) -> tuple[Callable[..., Any], Any, Any]:
    """Return the mean squared error of a module as a function of its weights."""
    structure, params = nnx.split(module)

    def loss(params: Any, batch: Any) -> jax.Array:
        x, y = batch
        return jnp.mean((nnx.merge(structure, params)(x) - y) ** 2)

    return loss, jax.tree.map(np.asarray, params), jax.device_put(batch)


def fused(loss: Callable[..., Any], params: Any, batch: Any) -> tuple[Callable[[], None], int]:
    """Return a step of plain JAX in one program, and its bytes."""
    optimizer = optax.adam(1e-4)

    def step(params: Any, state: Any, batch: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(params, batch)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, value

    held = [jax.tree.map(jnp.array, params), optimizer.init(params)]
    program = jax.jit(step, donate_argnums=(0, 1)).lower(*held, batch).compile()
    memory = program.memory_analysis()
    used = memory.argument_size_in_bytes + memory.output_size_in_bytes
    used += memory.temp_size_in_bytes - memory.alias_size_in_bytes

    def run() -> None:
        held[0], held[1], value = program(*held, batch)
        jax.block_until_ready((held, value))

    return run, used


def streamed(
    loss: Callable[..., Any], params: Any, batch: Any, keep: bool
) -> tuple[Callable[[], None], Callable[[], wse.Run]]:
    """Return a streamed step, and the record of the last one."""
    executor = wse.CS2().executor(loss, params, batch, optax.adam(1e-4), keep_residuals=keep)
    held = [executor.init(params)]

    def run() -> None:
        held[0], _ = executor.train_step(held[0], batch)

    return run, lambda: executor.run


def seconds(step: Callable[[], None], steps: int) -> tuple[float, float]:
    """Seconds of one step by the clock and of processors, after one that does not count."""
    step()
    start, spent = time.perf_counter(), time.process_time()
    for _ in range(steps):
        step()
    return (time.perf_counter() - start) / steps, (time.process_time() - spent) / steps


def measure(name: str, case: tuple[Any, Any, Any], rounds: int, steps: int) -> None:
    """Run all contestants in turns and print what was found."""
    whole, whole_bytes = fused(*case)
    again, again_run = streamed(*case, keep=False)
    kept, kept_run = streamed(*case, keep=True)
    contestants = {"fused": whole, "recomputing": again, "keeping": kept}
    times = [{n: seconds(f, steps) for n, f in contestants.items()} for _ in range(rounds)]
    base = statistics.median(x["fused"][0] for x in times)
    print(f"{name}: fused {1e3 * base:.1f} ms, {whole_bytes / 1e6:.1f} MB")
    for way, record, aim in zip(
        ("recomputing", "keeping"), (again_run, kept_run), AIMS[name], strict=True
    ):
        run = record()
        by_clock, by_processor = (
            sorted(x[way][i] / x["fused"][i] for x in times) for i in range(2)
        )
        kinds = ("broadcast", "forward", "backward", "gradient", "update")
        spent = {k: 1e3 * sum(e.seconds for e in run.events if e.kind == k) for k in kinds}
        print(
            f"  {way}: {statistics.median(by_clock):.2f} ({by_clock[0]:.2f} to {by_clock[-1]:.2f}; "
            f"aim {aim}), of processors {statistics.median(by_processor):.2f} "
            f"({by_processor[0]:.2f} to {by_processor[-1]:.2f}), peak "
            f"{run.peak_bytes / 1e6:.1f} MB = 1/{whole_bytes / run.peak_bytes:.1f}; ms "
            + ", ".join(f"{k} {v:.1f}" for k, v in spent.items()),
            flush=True,
        )


def beside(shape: tuple[int, int] | None, rounds: int, steps: int) -> None:
    """Print what keeping weights on the host costs PyTorch, of its own plain step."""
    try:
        contestants = torch_steps(shape)
    except ModuleNotFoundError:
        return  # `left_out` has said so
    times = [{n: seconds(f, steps) for n, f in contestants.items()} for _ in range(rounds)]
    by_clock, by_processor = (
        sorted(x["torch, offloaded"][i] / x["torch"][i] for x in times) for i in range(2)
    )
    plain = statistics.median(x["torch"][1] for x in times)
    print(
        f"  PyTorch: plain {1e3 * plain:.1f} ms of processors; with weights on the host "
        f"{statistics.median(by_clock):.2f} ({by_clock[0]:.2f} to {by_clock[-1]:.2f}), of "
        f"processors {statistics.median(by_processor):.2f}",
        flush=True,
    )


def over_budget(limit_bytes: int, width: int = 4096, batch: int = 64, steps: int = 3) -> None:
    """Train a net whose weights, moments and gradients are a fifth more than the device holds."""
    layer_bytes = 4 * width**2
    depth = -(-6 * limit_bytes // (5 * 4 * layer_bytes))
    draw = np.random.default_rng(0)
    weight = draw.standard_normal((width, width), np.float32) / np.float32(width) ** 0.5
    params = [{"w": weight.copy()} for _ in range(depth)]
    x = draw.standard_normal((batch, width), np.float32)

    def loss(params: Any, batch: Any) -> jax.Array:
        x, y = batch
        for layer in params:
            x = jnp.tanh(x @ layer["w"])
        return jnp.mean((x - y) ** 2)

    print(f"{depth} layers of {layer_bytes / 1e6:.0f} MB for {limit_bytes / 1e9:.1f} GB of memory")
    run, record = streamed(loss, params, (x, x), keep=False)
    for _ in range(steps):
        start = time.perf_counter()
        run()
        print(
            f"  streamed: {time.perf_counter() - start:.2f} s, {record().peak_bytes / 1e9:.2f} GB"
        )
    try:
        fused(loss, params, (x, x))[0]()
    except (jax.errors.JaxRuntimeError, MemoryError) as error:
        print(f"  fused: {str(error).splitlines()[0]}")
    else:
        print("  fused: it fitted after all")


def main() -> None:
    """Measure every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--over-budget", action="store_true")
    parser.add_argument("--only", nargs="*", metavar="CASE")
    parser.add_argument("--ours", action="store_true", help="without PyTorch")
    options = parser.parse_args()
    if options.over_budget:
        memory = jax.devices()[0].memory_stats()
        if memory is None:
            print("over budget: not run, there is no GPU")
            return
        over_budget(memory["bytes_limit"])
        return
    if not options.ours:
        print("\n".join(left_out()))
    print(f"load before: {os.getloadavg()[0]:.1f}; {os.cpu_count()} cores; jax {jax.__version__}")
    sizes = {"U-Net": None}
    dense_sizes = [(512, 1000), (2048, 100), (32, 100)]
    if jax.default_backend() == "gpu":  # where a step takes as long as its weights' way there
        dense_sizes += [(2048, 1000), (2048, 10_000)]
    sizes |= {f"dense {n} x {m}": (n, m) for n, m in dense_sizes}
    for name in options.only or sizes:
        shape = sizes[name]
        measure(name, dense(*shape) if shape else unet(), options.rounds, options.steps)
        if not options.ours:
            beside(shape, options.rounds, options.steps)


if __name__ == "__main__":
    main()
