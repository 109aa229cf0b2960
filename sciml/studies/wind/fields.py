"""The fields on which wind nets are judged: parts of which none has seen another's weather."""

import logging
from dataclasses import dataclass, field

import xarray as xr

from sciml import wind
from sciml.wind import channels
from sciml.wind.cf.names import EARTH, GRID

log = logging.getLogger(__name__)

AROME_TRAIN, AROME_TEST = slice(0, 896), slice(960, None)  # 64 columns between them
STORM_H = 9  # hours in which weather is one: of the November record (measured by decorrelation_h)


@dataclass(frozen=True)
class Parts:
    """Training and validation fields of all grids, and test fields by data set.

    `block` has the consecutive times that are drawn together for an interval; where a data set has
    none, squares of its snapshot are drawn.
    """

    train: dict[str, list[xr.DataArray]]
    validation: list[xr.DataArray]
    test: dict[str, list[xr.DataArray]]
    block: dict[str, int] = field(default_factory=dict)
    synthetic: bool = False
    source: str = ""

    def training(self, names: tuple[str, ...]) -> list[xr.DataArray]:
        """Return the training fields of some data sets, of all without names."""
        return [f for name in names or self.train for f in self.train[name]]


def components_of(winds: xr.Dataset) -> xr.DataArray:
    """Return the components of a wind as channels."""
    for pair in (GRID, EARTH):
        there = tuple(name for name in pair if name in winds)
        if there:
            return channels(winds, there)
    raise ValueError(f"there is no component among {', '.join(map(str, winds.data_vars))}")


def parts() -> Parts:
    """Return the real fields: HRRR, AROME-France and AROME-MetCoOp; the generator's without files.

    HRRR: stripes of one snapshot. AROME-France: columns to the west train, to the east test.
    AROME-MetCoOp: February 2016 trains, January 2016 validates, November 2015 tests.
    """
    try:
        hrrr = components_of(wind.open(wind.fetch("hrrr")["snapshot"]))
        arome = components_of(wind.open(wind.fetch("arome_france")["snapshot"]))
        metcoop = {n: components_of(wind.open(p)) for n, p in wind.fetch("metcoop").items()}
    except wind.DatasetUnavailable as error:
        log.warning("SYNTHETIC wind stands in for the real data sets: %s", error)
        return synthetic(128)  # which holds the patches of the full scale
    cut = {
        name: [hrrr.isel(x=columns) for columns in slices]
        for name, slices in wind.stripes(hrrr.sizes["x"]).items()
    }
    return Parts(
        train={
            "HRRR": cut["train"],
            "AROME-France": [arome.isel(x=AROME_TRAIN)],
            "MetCoOp": [metcoop["train"]],
        },
        validation=[*cut["validation"], metcoop["validation"]],
        test={
            "HRRR": cut["test"],
            "MetCoOp": [metcoop["test"]],
            "AROME-France": [arome.isel(x=AROME_TEST)],
        },
        block={"MetCoOp": STORM_H},
        source="HRRR 3 km, AROME-MetCoOp 2.5 km and AROME-France 1.3 km, components at 10 m",
    )


def synthetic(n: int = 64, seed: int = 0, times: int = 12) -> Parts:
    """Return turbulence of the generator, a run of its own for each part; `times` of training."""
    counts = {"train": times, "validation": times // 4, "test": times // 3}
    parts = wind.generate_parts(seed, counts, n)
    runs = {name: components_of(part) for name, part in parts.items()}
    return Parts(
        train={"SYNTHETIC": [runs["train"]]},
        validation=[runs["validation"]],
        test={"SYNTHETIC": [runs["test"]]},
        synthetic=True,
        source=f"SYNTHETIC: surface quasi-geostrophic turbulence, nominal units, {times} × {n}²",
    )
