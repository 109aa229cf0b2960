"""Figures of the guides, drawn with the code that stands on their pages.

python docs/figures.py            # writes docs/figures/own-ode.png and its siblings
python docs/figures.py own-ode    # this one
"""

import csv
import re
import sys
from pathlib import Path

import matplotlib.pyplot as plt

from sciml.figure import draw_calibration, panels, styled
from sciml.ode import AR1
from wse import charts

DOCS = Path(__file__).parent


def names(page: str, blocks: int = 1) -> dict:
    """Return what the first blocks of code of a page define."""
    found: dict = {}
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL)[:blocks]:
        exec(compile(block, page, "exec"), found)
    return found


def draw_own_ode(axes) -> None:
    """Draw the series of twenty samples."""
    data = names("own-ode")["data"]
    for ax, channel in zip(axes.flat, data.channel.values, strict=True):
        seen = data.observation.sel(channel=channel)[:20]
        ax.plot(seen.time, seen.T, lw=1.0, alpha=0.7)
        ax.set(xlabel="time (years)", ylabel=channel)


def draw_conditions(axes) -> None:
    """Draw what a course of doses does, and how its size shows."""
    treated = names("conditions", 2)["treated"]
    course, peak = axes.flat
    course.plot(treated.time, treated.observation[:20].T, lw=1.0, alpha=0.7)
    course.set(xlabel="time (h)", ylabel="amount in the blood")
    peak.scatter(treated.dose, treated.observation.max("time"), s=12)
    peak.set(xlabel="dose, known", ylabel="highest amount seen")


def draw_noise(axes) -> None:
    """Draw one sample as the equation has it, and as it is measured."""
    found = names("noise")
    theta = {"birth": [1.0], "death": [0.8]}
    clean = found["sciml"].simulate(found["predators"], parameters=theta)
    seen = found["sciml"].simulate(found["predators"], parameters=theta, noise=found["noise"])
    for ax, channel in zip(axes.flat, clean.channel.values, strict=True):
        ax.plot(clean.time, clean.observation.sel(channel=channel)[0], label="equation")
        ax.plot(seen.time, seen.observation.sel(channel=channel)[0], "o", ms=3, label="measured")
        ax.set(xlabel="time (years)", ylabel=channel)
    axes.flat[0].legend()


def draw_diagnostics(axes) -> None:
    """Draw the figure of the page."""
    draw_calibration(names("diagnostics")["tree"], axes)


def draw_estimate(axes) -> None:
    """Draw what each kind of layer of the page's model takes."""
    charts.bars(names("estimate")["result"], axes)


def draw_catalogue(axes) -> None:
    """Draw one sample of each of six problems, with its noise."""
    found = names("catalogue")
    shown = ["fitzhugh_nagumo", "goodwin", "hodgkin_huxley", "lorenz63", "lotka_volterra", "sir"]
    for ax, name in zip(axes.flat, shown, strict=True):
        problem = found["CATALOG"][name]()
        noise = problem.noise or AR1(sd=0.07)
        seen = found["simulate"](problem, samples=1, seed=3, noise=noise).observation[0]
        ax.plot(seen.time, seen.squeeze(), lw=1.0)
        ax.set_title(f"{name}", fontsize=9)


def draw_graph(axes) -> None:
    """Draw the work and the weights of each layer of the page's graph."""
    layers = names("graph")["graph"].layers
    at, labels = range(len(layers)), [layer.name for layer in layers]
    work, weights = axes.flat
    for shift, way in ((-0.2, "forward"), (0.2, "backward")):
        flops = [getattr(layer.work, f"{way}_flops") / 1e6 for layer in layers]
        work.barh([i + shift for i in at], flops, 0.4, label=way)
    work.set(xlabel="MFLOP", xmargin=0.75, yticks=at, yticklabels=labels)
    work.legend()
    weights.barh(at, [layer.work.weight_bytes / 1e6 for layer in layers], 0.4, color="grey")
    weights.set(xlabel="weights (MB)", yticks=at, yticklabels=labels)
    for ax in axes.flat:
        ax.invert_yaxis()


def draw_machine(axes) -> None:
    """Draw the phases of the page's estimate."""
    phases = names("machine")["result"].dataset
    ends = abs(phases[["least_s", "most_s"]].to_array().values - phases.time_s.values)
    bars = axes.barh(phases.phase.values, phases.time_s.values, xerr=ends, ecolor="grey")
    axes.bar_label(bars, [f"{x:.0f} s" for x in phases.time_s.values], padding=4)
    axes.set(xlabel="seconds; grey: interval")
    axes.invert_yaxis()


def draw_weight_streaming(axes) -> None:
    """Draw what moves and computes in the last step of the page's training."""
    names("weight-streaming")["executor"].run.figure(axes)


def draw_layer_pipelined(axes) -> None:
    """Draw the page's schedule, layers over ticks."""
    names("layer-pipelined")["executor"].run.pipeline(axes)


def rows_of(name: str) -> list[dict[str, str]]:
    """Return the rows of a file of results."""
    with (DOCS / "results" / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def draw_windows(axes) -> None:
    """Draw what the size of the window does to the validation loss, a line a seed."""
    rows = rows_of("windows.csv")
    for seed in sorted({row["seed"] for row in rows}):
        mine = [row for row in rows if row["seed"] == seed]
        sizes = [row["samples"] for row in mine]
        axes.plot(sizes, [float(row["loss"]) for row in mine], "o-", label=f"seed {seed}")
    axes.set(xlabel="samples in a window", ylabel="validation loss", ylim=(0, 0.023))
    axes.legend()


def draw_faults(axes) -> None:
    """Draw what readers made of damaged files."""
    rows = rows_of("faults.csv")
    bars = axes.barh([row["outcome"] for row in rows], [int(row["files"]) for row in rows])
    axes.bar_label(bars, padding=4)
    axes.set(xlabel="files", xmargin=0.12)
    axes.invert_yaxis()


FIGURES = {
    "own-ode": (draw_own_ode, (1, 2)),
    "conditions": (draw_conditions, (1, 2)),
    "noise": (draw_noise, (1, 2)),
    "diagnostics": (draw_diagnostics, (2, 2)),
    "estimate": (draw_estimate, (1, 1)),
    "catalogue": (draw_catalogue, (2, 3)),
    "graph": (draw_graph, (1, 2)),
    "machine": (draw_machine, (1, 1)),
    "weight-streaming": (draw_weight_streaming, (1, 1)),
    "layer-pipelined": (draw_layer_pipelined, (1, 1)),
    "windows": (draw_windows, (1, 1)),
    "faults": (draw_faults, (1, 1)),
}


def draw(page: str) -> None:
    """Write the figure of one page."""
    fill, (rows, columns) = FIGURES[page]
    with styled():
        figure, axes = panels(rows, columns, (7.0, 2.9 * rows))
        fill(axes)
        figure.savefig(DOCS / "figures" / f"{page}.png", dpi=150, bbox_inches="tight")
        plt.close("all")


if __name__ == "__main__":
    for wanted in sys.argv[1:] or FIGURES:
        draw(wanted)
