"""Convolutional nets on the grid of one CS-2: memory, time, what binds, where to lay out anew.

python benchmarks/convolutions.py --out docs/results/convolutions.csv

Times are of one sample of training, from `wse.estimate` at the batch given: compute alone, by
layouts and what kernels of transformers reach of these. The interval is that of the compute.
"""

import argparse
import csv
from itertools import pairwise
from pathlib import Path

from sciml import models
from sciml.downscale.objective import traceable
from wse import estimate, traced, workloads
from wse.graph.trace import trace
from wse.machine.catalog import CS2
from wse.models.shapes.convolution import convolution
from wse.models.shapes.segmentation import Segmentation, segmentation
from wse.models.shapes.workload import Layer, Workload
from wse.predict import arrays, grid

FIELDS = (
    *("net", "samples_at_once", "memory_gb_per_sample", "ms_per_sample", "least_ms", "most_ms"),
    *("peak_percent", "binding", "norm_percent", "move_percent", "lay_out_anew_before"),
)


def vgg16() -> Workload:
    """VGG-16 of 224 pixels, its dense head included (arXiv 1409.1556, configuration D)."""
    layers, c, side = [], 3, 224
    for stage, (k, count) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))):
        for i in range(count):
            name = f"stage_{stage}.{i}"
            layers.append(convolution(name, (c, k), (side, side), taps=9, extra=k))
            c = k
        side //= 2
    sizes = (512 * 49, 4096, 4096, 1000)
    heads = [Layer(f"head_{i}", n, m, n * m + m) for i, (n, m) in enumerate(pairwise(sizes))]
    return Workload("VGG-16", (*layers, *heads), 3 * 224 * 224, 1000)


def diffusion() -> Workload:
    """The convolutions of a diffusion U-Net for 256 pixels: four a level, attention left out."""
    down = (128, 128, 256, 256, 512, 512)
    blocks = ("3x3_conv",) * 4
    net = Segmentation(
        down,
        down[-2::-1],
        (256, 256),
        input_channels=3,
        outputs=3,
        convs_per_block=blocks,
        norm=True,
    )
    return segmentation("diffusion U-Net 256^2", net)


def wind(name: str, net: object) -> Workload:
    """A net of `sciml` on patches of 96 x 96, four times finer than what it reads."""
    made = traceable(net, 4, 96)
    return traced.workload(trace(*made), name)


def nets() -> list[tuple[Workload, int]]:
    """Every net, and samples of a step."""
    wide = {"filters": [32, 64, 128, 256], "channels": 3}
    return [
        (workloads.get("U-Net-5K"), 1),
        (workloads.unet("U-Net 50,000^2", size=(50_000,) * 2, **wide), 1),
        (workloads.unet("U-Net 3-D 256^3", size=(256,) * 3, filters=[32, 64, 128, 256]), 1),
        (workloads.unet("U-Net 3-D 512^3", size=(512,) * 3, filters=[32, 64, 128, 256]), 1),
        (workloads.get("ResNet-50"), 256),
        (workloads.get("RetinaNet"), 16),
        (vgg16(), 256),
        (diffusion(), 32),
        *((wind(name, net), 256) for name, net in WIND.items()),
    ]


WIND = {
    "wind SRCNN": models.SRCNN(),
    "wind super-resolution": models.SuperResolution(),
    "wind U-Net": models.UNet(),
}


def row(net: Workload, batch: int) -> dict[str, object]:
    """One net's figures; where it does not fit, why."""
    size_gb = arrays.plans(net)[0].bytes_per_sample / 1e9
    told: dict[str, object] = {"net": net.name, "memory_gb_per_sample": f"{size_gb:.3g}"}
    try:
        found = estimate(net, batch=batch, samples=batch, machine="cs2")
    except ValueError as error:
        return {**told, "binding": str(error).partition(", computed")[0]}
    step = found.step
    assert step is not None
    laid = grid.laid_out(net, CS2, step.held)
    parts, cycles = [x.parts() for x in laid], sum(x.cycles for x in laid)
    shares = {name: 100 * sum(x[name] for x in parts) / cycles for name in grid.PARTS}
    compute = next(x for x in found.phases if x.name == "compute")
    moved = [x.name for x, y in zip(laid, parts, strict=True) if y["move"] > 0.05 * x.cycles]
    ms = [1e3 * time_s / batch for time_s in (compute.time_s, *compute.interval_s)]
    done = sum(x.forward_flops + x.backward_flops for x in net.layers)
    others = {name: share for name, share in shares.items() if name != "compute"}
    binding = "compute" if shares["compute"] > 50 else f"compute, {max(others, key=others.get)}"
    return {
        **told,
        "samples_at_once": step.held,
        "ms_per_sample": f"{ms[0]:.3g}",
        "least_ms": f"{ms[1]:.3g}",
        "most_ms": f"{ms[2]:.3g}",
        "peak_percent": f"{1e5 * done / ms[0] / CS2.peak_fp16_flops_per_s:.3g}",
        "binding": f"{binding} ({shares['compute']:.0f} % compute)",
        "norm_percent": f"{shares['norm']:.2g}",
        "move_percent": f"{shares['move']:.2g}",
        "lay_out_anew_before": " ".join(moved[:8]),
    }


def main() -> None:
    """Write the table."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--out", type=Path, required=True)
    path = asked.parse_args().out
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, FIELDS, restval="", lineterminator="\n")
        table.writeheader()
        for net, batch in nets():
            table.writerow(row(net, batch))
            file.flush()


if __name__ == "__main__":
    main()
