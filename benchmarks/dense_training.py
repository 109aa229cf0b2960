"""How fast dense nets train here, beside PyTorch, plain JAX and the machine's own limits.

Contestants take turns: every round runs each of them once, so that a busy minute hits all alike.
What is printed are medians over rounds, and medians of ratios within a round.
"""

import argparse
import csv
import importlib.util
import json
import os
import statistics
import sys
import time
from pathlib import Path

import contestants
import jax
import limits
from contestants import Case

from wse._files import write_aside
from wse._processor import processor, usable_cores

ENTRIES = {
    "sciml": contestants.sciml,
    "sciml bfloat16": contestants.sciml_bfloat16,
    "sciml clip": contestants.sciml_clip,
    "jit steps": contestants.jit_steps,
    "nnx.jit": contestants.nnx_jit,
    "torch fused": contestants.torch_eager,
    "torch.compile": contestants.torch_compile,
    "XLA products": limits.xla_products,
    "NumPy products": limits.numpy_products,
    "torch products": limits.torch_products,
    "memory": limits.memory,
}
LEAST = 4  # epochs in a run, as in a call of `sciml.fit`: fresh memory at every epoch would count
# What each ratio should reach, by (width, batch): the project's own aims.
TARGETS = {
    "torch's best": {(32, 100): 4.0, (128, 100): 1.5, (512, 100): 1.35, (2048, 100): 1.15},
    "floor": {(w, b): 0.90 for w in (512, 2048) for b in (100, 1000)},
    "bfloat16": {(w, b): 1.25 for w in (512, 2048) for b in (100, 1000)},
}
TARGETS["torch's best"] |= {(width, 1000): 1.05 for width in (32, 128, 512, 2048)}


def main() -> None:
    """Measure every case and print and write what was found."""
    options = arguments()
    began = time.perf_counter()
    print(f"{machine()}\nload before: {os.getloadavg()[0]:.2f} (a quiet machine has < 0.3)")
    names = entries(options)
    results, cases = [], [Case(w, b) for b in options.batches for w in options.widths]
    for done, case in enumerate(cases):
        left_s = options.limit_s - (time.perf_counter() - began)
        deadline = time.perf_counter() + left_s / (len(cases) - done)
        results.append(measure(case, names, options, deadline))
        print(report(results[-1]), flush=True)
    print(summary(results))
    print(f"load after: {os.getloadavg()[0]:.2f}; took {time.perf_counter() - began:.0f} s")
    if options.out:
        write(options.out, results)


def arguments() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--widths", type=int, nargs="+", default=[32, 128, 512, 2048])
    parser.add_argument("--batches", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="least length of one run")
    parser.add_argument("--limit-s", type=float, default=450, help="then fewer rounds, at least 1")
    parser.add_argument("--only", nargs="+", choices=ENTRIES, help="these contestants alone")
    parser.add_argument("--without", nargs="+", choices=ENTRIES, default=[])
    parser.add_argument("--out", type=Path, help="folder for dense_training.json and .csv")
    return parser.parse_args()


def entries(options) -> list[str]:
    """Return who takes part."""
    names = [n for n in options.only or ENTRIES if n not in options.without]
    if importlib.util.find_spec("torch"):
        return names
    print("PyTorch is not installed, so it does not take part: pip install 'sciml-wse[bench]'")
    return [name for name in names if "torch" not in name]


def machine() -> str:
    """Return what measured."""
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    bfloat16 = "avx512_bf16" in flags or "amx_bf16" in flags
    return f"{usable_cores()} × {processor()}, bfloat16 products: {bfloat16}, JAX {jax.__version__}"


def measure(case: Case, names: list[str], options, deadline: float) -> dict:
    """Return, for each contestant, seconds of set-up and of an epoch in every round.

    No round begins after the deadline, except the first.
    """
    runs, setup_s, counts = {}, {}, {}
    for name in names:
        began = time.perf_counter()
        runs[name] = ENTRIES[name](case)
        runs[name](1)
        setup_s[name] = time.perf_counter() - began
        counts[name] = max(LEAST, round(options.seconds / seconds(runs[name], 1)))
        if counts[name] > LEAST:
            counts[name] = max(LEAST, round(options.seconds / seconds(runs[name], counts[name])))
    epoch_s = {name: [] for name in names}
    for done in range(options.rounds):
        if done and time.perf_counter() > deadline:
            break
        for name in names:
            epoch_s[name].append(seconds(runs[name], counts[name]))
    return {"case": case, "setup_s": setup_s, "epoch_s": epoch_s}


def seconds(run, count: int) -> float:
    """Return the seconds of one epoch out of `count`."""
    began = time.perf_counter()
    run(count)
    return (time.perf_counter() - began) / count


def ratios(result: dict) -> dict[str, float]:
    """Return medians over rounds of our speed against others', and of the floor's share."""
    case, epoch_s = result["case"], result["epoch_s"]

    def against(fast: str, slow: list[float]) -> float:
        return statistics.median(s / f for f, s in zip(epoch_s[fast], slow, strict=True))

    found = {name: against("sciml", times) for name, times in epoch_s.items() if "sciml" in epoch_s}
    found.pop("memory", None)
    rivals = [found[name] for name in ("torch fused", "torch.compile") if name in found]
    if rivals:
        found["torch's best"] = min(rivals)
    if {"sciml", "XLA products", "memory"} <= set(epoch_s):
        pairs = zip(epoch_s["XLA products"], epoch_s["memory"], strict=True)
        found["floor"] = against("sciml", [limits.floor_s(case, p, m) for p, m in pairs])
    if {"sciml", "sciml bfloat16"} <= set(epoch_s):
        found["bfloat16"] = against("sciml bfloat16", epoch_s["sciml"])
    return found


def report(result: dict) -> str:
    """Return the table of one case."""
    case, found = result["case"], ratios(result)
    rounds = len(next(iter(result["epoch_s"].values())))
    title = f"{case.width} units, batch {case.batch}, {case.parameters:,} parameters"
    lines = [
        f"\n{title}; rounds: {rounds}",
        f"{'':16}{'samples/s':>12}{'best':>12}{'set-up s':>10}{'sciml is':>10}",
    ]
    for name, times in result["epoch_s"].items():
        if name == "memory":
            rate = limits.bandwidth_bytes_s(statistics.median(times)) / 1e9
            lines.append(f"{'memory':16}{rate:>12.1f} GB/s")
            continue
        rate, best = (case.samples / t for t in (statistics.median(times), min(times)))
        ratio = f"{found[name]:>9.2f}×" if name in found else ""
        lines.append(
            f"{name:16}{rate:>12,.0f}{best:>12,.0f}{result['setup_s'][name]:>10.1f}{ratio}"
        )
    return "\n".join(lines)


def summary(results: list[dict]) -> str:
    """Return reached ratios beside their targets."""
    lines = [f"\n{'':8}{'units':>6}{'batch':>7}{'reached':>10}{'target':>9}"]
    for name, targets in TARGETS.items():
        for result in results:
            key = (result["case"].width, result["case"].batch)
            found = ratios(result).get(name)
            if found and key in targets:
                verdict = "" if found >= targets[key] else "  missed"
                sizes = f"{key[0]:>6}{key[1]:>7}"
                lines.append(f"{name:13}{sizes}{found:>10.2f}{targets[key]:>9.2f}{verdict}")
    return "\n".join(lines)


def write(folder: Path, results: list[dict]) -> None:
    """Write every measured number as JSON, and medians as CSV."""
    folder.mkdir(parents=True, exist_ok=True)
    head = {"machine": machine(), "argv": sys.argv[1:]}
    cases = [vars(r["case"]) | r | {"case": None, "ratios": ratios(r)} for r in results]
    with write_aside(folder / "dense_training.json") as aside:
        aside.write_text(json.dumps(head | {"cases": cases}, indent=1))
    with write_aside(folder / "dense_training.csv") as aside, aside.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["units", "batch", "contestant", "samples_per_s", "setup_s", "sciml_ratio"])
        for r in results:
            case, found = r["case"], ratios(r)
            for name, times in r["epoch_s"].items():
                rate = case.samples / statistics.median(times)
                ratio = found.get(name, "")
                rows.writerow([case.width, case.batch, name, rate, r["setup_s"][name], ratio])


if __name__ == "__main__":
    main()
