"""How fast dense nets train on a graphics card, beside PyTorch on the same card.

    python benchmarks/gpu.py                 # or make bench-gpu, which installs what it needs
    python benchmarks/gpu.py --anyway --widths 32 --batches 100   # to try the program without one

Dense nets of 8 layers, in float32 (TF32 products, as both libraries offer) and bfloat16, and wind
nets with `--wind`. Contestants take turns, and medians over rounds are printed. What an H100
showed is in docs/lab/h100.md.
"""

import argparse
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import contestants
import jax
import numpy as np
import pandas as pd
import wind
from contestants import RATE, Case

from wse._files import write_aside

FLOPS_OF_A_WEIGHT = 6  # forward and backward, products and additions


def main() -> None:
    """Measure every case; print and write what was found."""
    options = arguments()
    kind, platform = jax.devices()[0].device_kind, jax.default_backend()
    if platform != "gpu" and not options.anyway:
        sys.exit(
            f"JAX finds {kind} ({platform}), no GPU: install the extra gpu on a machine that has "
            "one, or try the program here with --anyway"
        )
    jax.config.update("jax_default_matmul_precision", "tensorfloat32")
    print(f"{kind}, JAX {jax.__version__}")
    rows = []
    for width in options.widths:
        for batch in options.batches:
            case = Case(width, batch, samples=max(10_000, batch) if platform == "gpu" else batch)
            for name, seconds in measured(case, options).items():
                work = FLOPS_OF_A_WEIGHT * case.parameters * case.samples
                row = {"net": f"8 × {width}", "batch": batch, "who": name}
                row |= {"samples_per_s": round(case.samples / seconds)}
                row |= {"tflop_per_s": round(work / seconds / 1e12, 3), "device": kind}
                rows.append(row)
                print(*row.values(), sep="\t", flush=True)
    for row in winds(options, kind) if options.wind else ():
        rows.append(row)
        print(*row.values(), sep="\t", flush=True)
    if options.out:
        with write_aside(options.out) as aside:
            pd.DataFrame(rows).to_csv(aside, index=False)


def arguments() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--widths", type=int, nargs="+", default=[512, 2048])
    parser.add_argument("--batches", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="least length of one run")
    parser.add_argument("--wind", action="store_true", help="wind nets too")
    parser.add_argument("--anyway", action="store_true", help="on whatever device JAX finds")
    parser.add_argument("--out", type=Path, help="a CSV file")
    return parser.parse_args()


def winds(options: argparse.Namespace, kind: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of wind nets, trained and asked, on patches of 128 x 128."""
    for batch in (16, 64) if kind != "cpu" else (2,):
        case = wind.Case(batch=batch, updates=8 if kind != "cpu" else 1)
        runs = {"sciml": wind.ours(case)}
        runs["sciml"]["training"].pop("one program")
        if importlib.util.find_spec("torch"):
            runs["torch.compile"] = wind.theirs(case)
            runs["torch.compile bfloat16"] = wind.theirs(case, bfloat16=True)
        for what, count in (("training", case.batch * case.updates), ("inference", case.batch)):
            several = {
                name: repeated(ways[what]["sciml"] if name == "sciml" else ways[what])
                for name, ways in runs.items()
            }
            for name, seconds in in_turns(several, options).items():
                row = {"net": f"wind 64 × 8, {what}", "batch": batch, "who": name}
                yield row | {"samples_per_s": round(count / seconds), "device": kind}


def repeated(run: Callable[[], Any]) -> Callable[[int], None]:
    """Return what runs it so many times."""

    def several(count: int) -> None:
        for _ in range(count):
            run()

    return several


def measured(case: Case, options: argparse.Namespace) -> dict[str, float]:
    """Return the median seconds of an epoch of each contestant, who take turns."""
    runs = {"sciml": contestants.sciml(case), "sciml bfloat16": contestants.sciml_bfloat16(case)}
    if importlib.util.find_spec("torch"):
        runs["torch.compile"] = torch_on_card(case)
        runs["torch.compile bfloat16"] = torch_on_card(case, bfloat16=True)
    return in_turns(runs, options)


def in_turns(
    runs: dict[str, Callable[[int], None]], options: argparse.Namespace
) -> dict[str, float]:
    """Return the median seconds of one run of each, after one that does not count."""
    counts = {}
    for name, run in runs.items():
        run(1)
        counts[name] = max(1, round(options.seconds / timed(run, 1)))
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(options.rounds):
        for name, run in runs.items():
            found[name].append(timed(run, counts[name]))
    return {name: statistics.median(values) for name, values in found.items()}


def timed(run: Callable[[int], None], count: int) -> float:
    """Return the seconds of one epoch out of `count`."""
    began = time.perf_counter()
    run(count)
    return (time.perf_counter() - began) / count


def torch_on_card(case: Case, bfloat16: bool = False) -> Callable[[int], None]:
    """PyTorch with data on the card, the fused Adam and a compiled net."""
    import torch
    from torch import nn

    torch.set_float32_matmul_precision("high")  # TF32
    torch._dynamo.config.recompile_limit = 64  # of all cases; beyond it nets run uncompiled
    where = "cuda" if torch.cuda.is_available() else "cpu"
    pairs = zip(case.sizes[:-1], case.sizes[1:], strict=True)
    layers = [part for n, m in pairs for part in (nn.Linear(n, m), nn.SiLU())]
    net = nn.Sequential(*layers[:-1], nn.Sigmoid()).to(where)
    adam = torch.optim.Adam(net.parameters(), lr=RATE, fused=True)
    x, y = (torch.from_numpy(np.asarray(part)).to(where) for part in case.data())
    ready = torch.compile(net, dynamic=False)

    def epochs(count: int) -> None:
        for _ in range(count):
            for rows in torch.randperm(case.samples, device=where).split(case.batch):
                adam.zero_grad(set_to_none=True)
                with torch.autocast(where, torch.bfloat16, enabled=bfloat16):
                    loss = nn.functional.mse_loss(ready(x[rows]).float(), y[rows])
                loss.backward()
                adam.step()
        if where == "cuda":
            torch.cuda.synchronize()

    return epochs


if __name__ == "__main__":
    main()
