"""How long the explorer takes to redraw, under every slider: `python benchmarks/explorer.py`.

Sliders are moved as a notebook moves them; a redraw is the estimate, the picture and the table that
the notebook then gets; aim: 0.2 s.
"""

import statistics
import time
from itertools import product
from typing import Any

from tqdm import tqdm

import wse
from wse.models import shapes
from wse.show.explorer import DENSITIES, SYSTEMS

AIM_S = 0.2


def main() -> None:
    """Print the median and the slowest redraw of each workload."""
    for name, batch in (("GPT-J-6B", 768), ("GPT-3-175B", 768), ("U-Net-5K", 192)):
        sliders = wse.explore(shapes.get(name), batch=batch).widget().children[0].children
        parts = {slider.description: slider for slider in sliders}
        seconds = []
        places = product(SYSTEMS, DENSITIES, ("CS-2", "CS-3"))
        for place in tqdm(list(places), name, leave=False):
            chosen = zip(("systems", "density", "machine"), place, strict=True)
            seconds += [moved(parts[part], value) for part, value in chosen]
        seconds = [s for s in seconds if s is not None]
        print(
            f"{name:12} {len(seconds)} redraws: median {1e3 * statistics.median(seconds):.0f} ms, "
            f"slowest {1e3 * max(seconds):.0f} ms; {sum(s > AIM_S for s in seconds)} above the aim "
            f"of {1e3 * AIM_S:.0f} ms"
        )


def moved(slider: Any, value: Any) -> float | None:
    """Move a slider and return the seconds until all is drawn; None if it stands there."""
    if slider.value == value:
        return None
    start = time.perf_counter()
    slider.value = value
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
