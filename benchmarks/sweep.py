"""How many estimates a second `wse.sweep` makes: `python benchmarks/sweep.py`.

With `--model ResNet-50` of that model, the first sweep, which finds layouts, told apart.
"""

import argparse
import time

import numpy as np

import wse
from wse.models import shapes


def main() -> None:
    """Print cases, seconds of a processor and cases per second of the best of five sweeps."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--model", default="")
    name = asked.parse_args().model
    nets = {h: shapes.get("GPT-J-6B", hidden_size=h) for h in (1024, 2048, 4096, 8192)}
    if name:
        nets = {0: shapes.get(name)}
    axes = {"systems": [2**n for n in range(8)], "density": np.linspace(0.1, 1, 64)}
    seconds = []
    for _ in range(5):
        start = time.process_time()
        found = wse.sweep(nets, range(64, 64 * 65, 64), **axes)
        seconds.append(time.process_time() - start)
    cases = found.step_s.size
    print(f"{cases} estimates in {min(seconds):.3f} s: {cases / min(seconds):,.0f} a second")
    print(f"the first sweep took {seconds[0]:.3f} s: {cases / seconds[0]:,.0f} a second")


if __name__ == "__main__":
    main()
