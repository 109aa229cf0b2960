"""What a net gains that sees the ground: wind of the generator over hills."""

from typing import Any

import xarray as xr

from sciml import wind
from sciml.models import LocallyScaled, SuperResolution
from sciml.studies.description import Scale
from sciml.studies.wind.fields import Parts
from sciml.studies.wind.questions import FAST, made
from sciml.studies.wind.runs import WindRun
from sciml.wind import channels
from sciml.wind.cf.names import GRID
from sciml.wind.make.store import PARTS

GAIN = 0.2  # of the speed, one standard deviation above the mean height
NAMES = {"flat": "flat ground", "hills": "the same hills", "other": "other hills"}


def hilly(scale: Scale) -> Parts:
    """Return generated wind over flat ground and over hills, with the height of the ground.

    Tests are over flat ground, over the hills of the training and over others.
    """
    n, counts = (64, (12, 3, 4)) if scale == "fast" else (128, (24, 4, 8))
    named: dict[str, int] = dict(zip(PARTS, counts, strict=True))
    flat = wind.generate_parts(0, named, n)
    hills = wind.generate_parts(0, named, n, terrain_gain=GAIN)
    other = wind.generate_parts(1, {"test": counts[-1]}, n, terrain_gain=GAIN)
    tests = {"flat": flat["test"], "hills": hills["test"], "other": other["test"]}
    return Parts(
        train={"flat": [grounded(flat["train"])], "hills": [grounded(hills["train"])]},
        validation=[grounded(flat["validation"]), grounded(hills["validation"])],
        test={NAMES[name]: [grounded(fields)] for name, fields in tests.items()},
        synthetic=True,
        source="SYNTHETIC: surface quasi-geostrophic turbulence over flat ground and hills",
    )


def grounded(winds: xr.Dataset) -> xr.DataArray:
    """Return both components and the height of the ground, 0 where there are no hills."""
    if "orography" not in winds:
        level = winds["x_wind"].isel(time=0, drop=True) * 0
        winds = winds.assign(orography=level.assign_attrs(units="m"))
    return channels(winds, GRID, ("orography",))


def terrain_runs(scale: Scale, of: Parts) -> list[WindRun]:
    """Return nets over flat ground, over hills that they do not see, and that they see."""
    del of
    more: dict[str, Any] = FAST if scale == "fast" else {"updates": 2500, "size": 64}
    sizes = (8, 1) if scale == "fast" else (32, 4)
    runs = []
    for factor in (4, 8):
        blind = LocallyScaled(SuperResolution(factor, *sizes, wind=2))
        seeing = LocallyScaled(SuperResolution(factor, *sizes, wind=2, statics=1))
        runs += [
            WindRun("flat ground", blind, data=("flat",), **more),
            WindRun("hills, not seen", blind, data=("hills",), **more),
            WindRun("hills, seen", seeing, data=("hills",), **more),
        ]
    return runs


WIND_TERRAIN = made(
    "wind_terrain",
    "Skill of wind nets that see the ground",
    "Both components of generated wind, averaged over blocks and refined again. A net learns over "
    "flat ground, over hills that it does not see, or with their height as a further channel; "
    "each is judged over flat ground, over the same hills in other weather, and over other hills. "
    "The hills change the speed by a stated factor, to have something to learn: not physics.",
    terrain_runs,
    hilly,
)
