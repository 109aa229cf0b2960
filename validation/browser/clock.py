"""The first hour by the clock: what a newcomer does, how long it takes, and how its pages look.

    python -m validation.browser.clock [--site docs/_build/html] [--out .cache/clock]

Clones this repository, installs the clone into an environment of its own, and answers four
questions there with problems that no page has. Then every page given is opened at two widths, on
light and on dark, and photographed. The table says what took longer than it may, and what is wider
than its window or did not load; so does the exit status.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from validation.browser.lab import ROOT, browser

WIDTHS = (1280, 700)
SCHEMES = ("light", "dark")
PAGES = (
    "index.html",
    "quickstart.html",
    "own-ode.html",
    "how-sure.html",
    "wind.html",
    "own-fields.html",
    "cerebras.html",
    "which-machine.html",
    "scaling-out.html",
    "results/index.html",
)

INSTALL = """
git clone --quiet {root} clone
{python} -m venv environment
cd clone
../environment/bin/python -m pip install --quiet --no-compile -c constraints.txt '.[lab]'
"""

# A cup cools: how fast, and how warm is the room?
OWN_ODE = """
import matplotlib.pyplot as plt
import sciml
from numpyro.distributions import Uniform
from sciml.ode import Gaussian, Observation, System

cup = System(
    name="cup",
    vector_field=lambda t, u, p: (-p[0] * (u[0] - p[1]),),
    initial_state=(90.0,),
    prior={"rate": Uniform(0.01, 0.2), "room": Uniform(10.0, 30.0)},
    observation=Observation.regular(interval=2.0, length=15),
    time_unit="min",
)
noise = Gaussian(sd=0.5)
data = sciml.simulate(cup, samples=3000)
fit = sciml.fit(sciml.models.SplineFlow(), data, validation=0.1, epochs=40, noise=noise)
mine = sciml.simulate(cup, parameters={"rate": [0.06], "room": [21.0]}, noise=noise, seed=3)
draws = fit.sample(mine, draws=500)
assert not draws.flagged.any(), draws
mean = draws.posterior.mean("draw")[0]
assert abs(float(mean[0]) - 0.06) < 0.01, mean
assert abs(float(mean[1]) - 21.0) < 2.0, mean
sciml.figure.draw_pairs({"net": draws.posterior[:, 0]}, plt.subplots(2, 2)[1])
plt.savefig("own-ode.png")
"""

OWN_WIND = """
import subprocess
import sys
from pathlib import Path
import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from sciml import wind

drawn = wind.gaussian(seed=5, snapshots=4, n=48)
axis = {"units": "m", "standard_name": "projection_x_coordinate"}
places = {"x": ("x", 2500.0 * np.arange(48), axis)}
places["y"] = ("y", 2500.0 * np.arange(48), axis | {"standard_name": "projection_y_coordinate"})
places["time"] = np.datetime64("2021-03-01", "ns") + np.arange(4) * np.timedelta64(6, "h")
knots = {"units": "knots"}
winds = {n: (("time", "y", "x"), drawn[n].values / 0.514444, knots) for n in ("x_wind", "y_wind")}
xr.Dataset(winds, places).to_netcdf("mine.nc", engine="h5netcdf")
sciml = Path(sys.executable).with_name("sciml")
command = [sciml, "wind", "predict", "wind4", "mine.nc", "--coarsen", "--out", "fine.nc"]
subprocess.run(command, check=True)
fine = wind.open("fine.nc")
assert fine.wind_speed.shape[1:] == (48, 48), fine
fine.wind_speed[0].plot()
plt.savefig("own-wind.png")
"""

OWN_MODEL = """
import jax.numpy as jnp
import numpy as np
from flax import linen

class Mixer(linen.Module):
    @linen.compact
    def __call__(self, x):
        for _ in range(4):
            y = jnp.swapaxes(linen.LayerNorm()(x), 1, 2)
            x = x + jnp.swapaxes(linen.Dense(x.shape[1])(linen.gelu(linen.Dense(64)(y))), 1, 2)
            y = linen.Dense(256)(linen.LayerNorm()(x))
            x = x + linen.Dense(x.shape[2])(linen.gelu(y))
        return linen.Dense(10)(x.mean(axis=1))
"""
PORT = "environment/bin/wse port model.py:Mixer --example 32x49x128 --out port.html"


@dataclass(frozen=True)
class Step:
    """Something that a newcomer does: shell commands, and the seconds that it may take."""

    name: str
    command: str
    may_take_s: float


STEPS = (
    Step("clone, install, first figure", INSTALL + "cd ..\n{script} own_ode.py", 90),
    Step("own ODE, installed", "{script} own_ode.py", 300),
    Step("own wind file", "{script} own_wind.py", 300),
    Step("own model's port page", PORT, 180),
)


def clocked(folder: Path) -> Iterator[tuple[str, float, float]]:
    """Do the steps in an empty folder; yields the name of each, its seconds and what it may."""
    scripts = {"own_ode.py": OWN_ODE, "own_wind.py": OWN_WIND, "model.py": OWN_MODEL}
    for name, text in scripts.items():
        (folder / name).write_text(text)
    unset = ("PYTHONPATH", "JAX_COMPILATION_CACHE_DIR", "XLA_FLAGS", "SCIML_SHARED")
    environment = {name: text for name, text in os.environ.items() if name not in unset}
    environment |= {"HOME": str(folder), "MPLBACKEND": "Agg", "TQDM_DISABLE": "1"}
    words = {"root": ROOT, "python": sys.executable, "script": "environment/bin/python"}
    for step in STEPS:
        began = time.perf_counter()
        command = "set -e\n" + step.command.format(**words)
        subprocess.run(["bash", "-c", command], cwd=folder, env=environment, check=True)
        yield step.name, time.perf_counter() - began, step.may_take_s


def looked_at(pages: list[Path], pictures: Path) -> Iterator[str]:
    """Photograph pages at each width and scheme; yields what is wrong with them."""
    for scheme in SCHEMES:
        with browser(scheme) as page:
            complaints: list[str] = []
            page.on("pageerror", lambda error, kept=complaints: kept.append(str(error)))
            for path in pages:
                for width in WIDTHS:
                    page.set_viewport_size({"width": width, "height": 900})
                    page.goto(path.resolve().as_uri())
                    page.wait_for_timeout(300)
                    complaints += page.evaluate(FAULTS)
                    name = f"{path.parent.name}-{path.stem}-{width}-{scheme}.png"
                    page.screenshot(path=pictures / name, full_page=True)
                    yield from (f"{name}: {text}" for text in complaints)
                    complaints.clear()


# What is wider than the window, unless its own box scrolls, and images that are not there.
FAULTS = """() => {
    const faults = [];
    const wide = document.documentElement.scrollWidth - window.innerWidth;
    if (wide > 1) faults.push(`${wide} px wider than its window`);
    for (const image of document.images)
        if (image.complete && !image.naturalWidth) faults.push(`no image ${image.src}`);
    for (const code of document.querySelectorAll('pre')) {
        const over = code.scrollWidth - code.clientWidth;
        if (over > 1) faults.push(`${over} px of code to scroll: ${code.innerText.slice(0, 40)}`);
    }
    return faults;
}"""


def main() -> int:
    """Do both, print the table, return how many things are not as they should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--site", type=Path, default=ROOT / "docs" / "_build" / "html")
    parser.add_argument("--out", type=Path, default=ROOT / ".cache" / "clock")
    parser.add_argument("--only-look", action="store_true", help="at what an earlier run left")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if not given.only_look and any(given.out.iterdir()):
        parser.error(f"{given.out} holds files; give an empty folder")
    late = 0
    for name, took, may in () if given.only_look else clocked(given.out):
        sys.stdout.write(f"{took:6.0f} s  of {may:.0f}  {name}\n")
        sys.stdout.flush()
        late += took > may
    pictures = given.out / "pictures"
    pictures.mkdir(exist_ok=True)
    pages = [given.site / name for name in PAGES] + [given.out / "port.html"]
    faults = list(looked_at([path for path in pages if path.is_file()], pictures))
    sys.stdout.write("".join(f"{fault}\n" for fault in faults))
    return late + len(faults)


if __name__ == "__main__":
    sys.exit(main())
