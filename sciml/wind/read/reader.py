"""From files of any format to wind in metres per second on (time, y, x)."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from traceback import walk_tb
from typing import Unpack

import numpy as np
import xarray as xr

from sciml.wind.cf.changes import changed
from sciml.wind.cf.check import Report, check, order, places, said_uneven, times
from sciml.wind.cf.level import Choice, Level
from sciml.wind.cf.names import IN_M_S, SCALARS, found
from sciml.wind.cf.schema import conform
from sciml.wind.cf.times import hours, moments
from sciml.wind.read.formats import winds_of
from wse._files import as_path

log = logging.getLogger(__name__)

IN_MEMORY_BYTES = 2**28  # a quarter of a gigabyte: what is smaller is read at once
SHOWN = 300  # characters of a library's message
STILL_M_S = 1e-3  # what packing may leave of a zero
MINIMAL_ZEROS = 2  # rows of exact zeros at an edge that make an extension zone

Paths = Path | str | Sequence[Path | str]


def open(
    paths: Paths,
    *,
    allow_missing: bool = False,
    lazy: bool | None = None,
    **choice: Unpack[Choice],
) -> xr.Dataset:
    """Read wind from netCDF (classic, 4), HDF5 of the WIND Toolkit, Zarr, GRIB 1 or 2, or WRF.

    Several files are several times, or several variables, of one grid. What is done to the
    content is said in the attribute `changes`: units converted (knots, km/h), axes turned so that
    y and x ascend, longitudes continued across 360°, zones of zeros around a limited area cut off,
    a height chosen, times sorted, identical duplicates dropped. What is doubtful is refused; times
    without dates and points that are not evenly spaced are warned of.

    Args:
        paths: one file or Zarr group, or several.
        allow_missing: let NaN through (`check` says where it is).
        lazy: True leaves everything on disk as dask arrays, and `check` to the caller, since it
            reads all; False reads all; None reads datasets up to a quarter of a gigabyte.
        **choice: what is wanted of files that hold more than one wind:
            `height_m`: which of several heights; 10 m without it, where it is among them.
            `pressure_hpa`: which of several pressure levels; all stay, as an axis, without it.
            `model_level`: of WRF output, U and V of this level instead of U10 and V10.
            `level`: of GRIB files, another kind of level by its name, as "tropopause".
            `variable`: which variables are the wind, by their names in the file.
            `member`: which member of an ensemble; all stay, as an axis, without it.
            `lead_h`: which hour of forecasts from several starts; times are those for which
            fields are valid.
            `first_row`: "south" or "north", of files whose coordinates do not tell.
            `beside`: further variables, in SI units: air_temperature, surface_air_pressure,
            surface_roughness_length, and winds at other heights, as x_wind_100m.

    Returns:
        On (time, [member], [height or pressure], y, x) in single precision and m s-1: `x_wind`,
        `y_wind` along the grid's axes, `eastward_wind`, `northward_wind` where the points'
        latitudes are known, `wind_speed`; of the file, `wind_from_direction`, `land_mask`,
        `orography` if it has them. A file of one component gives that one. Coordinates `time`,
        `latitude` and `longitude` (y and x on latitude–longitude grids, else (y, x), with
        `grid_angle`), `y` and `x` in metres; attributes `spacing_m`, `changes` and the file's own.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a file cannot be read or is cut off, grids differ, a chunk, a unit or a level
            is not there, or `check` refuses the values.

    >>> from tempfile import TemporaryDirectory
    >>> from sciml.wind import gaussian
    >>> with TemporaryDirectory() as folder:
    ...     winds = gaussian(seed=0, snapshots=2, n=16)
    ...     winds.to_netcdf(f"{folder}/mine.nc", engine="h5netcdf")
    ...     fields = open(f"{folder}/mine.nc")
    >>> fields.wind_speed.dims
    ('time', 'y', 'x')
    """
    level = Level(**choice)
    several = (
        paths if isinstance(paths, Iterable) and not isinstance(paths, str | Mapping) else [paths]
    )
    listed = [as_path("path", path, 'pass "winds.nc", or a list of such') for path in several]
    if not listed:
        raise ValueError("paths is empty; name at least one file")
    origin = ", ".join(map(str, listed))
    with said_plainly([*map(str, listed)]):
        opened = [winds_of(path, level) for path in listed]
        pieces = [conform(stored, name, level) for name, stored in united(listed, opened)]
        winds = one_after_another(pieces, [str(path) for path in listed])
        winds = without_extension(winds).assign_attrs(files=", ".join(p.name for p in listed))
        size = sum(winds[name].nbytes for name in winds.data_vars)
        stays = size > IN_MEMORY_BYTES if lazy is None else lazy
        winds = winds if stays else winds.load()
    if stays:
        report = Report(origin, (*places(winds), *order(winds), *times(winds)))
    else:
        for stored in opened:
            stored.close()
        report = check(winds, origin=origin, allow_missing=allow_missing)
    report.refuse()
    return told(report, winds)


def told(report: Report, winds: xr.Dataset) -> xr.Dataset:
    """Log what was found; warn where what comes after would go wrong in silence, and mark that."""
    is_even = True
    for finding in report.findings:
        is_even = is_even and finding.kind != "spacing"
        undated = finding.kind == "no dates" and winds.sizes["time"] > 1
        grave = finding.kind in ("spacing", "strength") or undated
        level = logging.WARNING if grave else logging.INFO
        log.log(level, "%s: %s", report.origin, finding.text)
    return winds if is_even else said_uneven(winds)


@contextmanager
def said_plainly(names: list[str]) -> Iterator[None]:
    """Within, what the libraries of the formats raise becomes one line that names the files.

    They raise whatever damaged bytes lead them to, some of it only when values are read.
    """
    try:
        yield
    except (FileNotFoundError, PermissionError, ImportError):
        raise
    except Exception as error:
        said = " ".join(str(error).split()) or "its bytes make no sense"
        if isinstance(error, ValueError) and any(name in said for name in names):
            raise
        if isinstance(error, ValueError) and is_ours(error):
            raise ValueError(f"{', '.join(names)}: {said}") from error
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise ValueError(
            f"{', '.join(names)}: {kind}{said[:SHOWN]}; the file is damaged, or of a kind that is "
            "not read: fetch it again, or write it with another tool"
        ) from error


def is_ours(error: Exception) -> bool:
    """Tell what this package refuses from what a library of a format raises."""
    *_, (frame, _) = walk_tb(error.__traceback__)
    return str(frame.f_globals.get("__name__")).partition(".")[0] == __name__.partition(".")[0]


def united(paths: list[Path], opened: list[xr.Dataset]) -> list[tuple[str, xr.Dataset]]:
    """Return each file with its name; those of other variables at the same times become one."""
    groups: list[tuple[str, xr.Dataset]] = []
    for path, stored in zip(paths, opened, strict=True):
        for at, (name, group) in enumerate(groups):
            if complements(group, stored):
                merged = xr.merge(
                    [group, stored], compat="override", join="exact", combine_attrs="drop_conflicts"
                )
                groups[at] = (f"{name}, {path}", merged)
                break
        else:
            groups.append((str(path), stored))
    return groups


def complements(one: xr.Dataset, other: xr.Dataset) -> bool:
    """Tell whether two contents hold other winds of the same times and grid."""
    kinds = [
        {(f.kind, f.height_m, f.pressure_hpa) for f in found(part) if f.kind not in SCALARS}
        for part in (one, other)
    ]
    if kinds[0] & kinds[1] or not (kinds[0] and kinds[1]) or dict(one.sizes) != dict(other.sizes):
        return False
    shared = {*map(str, one.coords)} & {*map(str, other.coords)}
    return all(np.array_equal(one.coords[n].values, other.coords[n].values) for n in shared)


def one_after_another(pieces: list[xr.Dataset], names: list[str]) -> xr.Dataset:
    """Return pieces of one grid joined in time, in order, each time once."""
    first = pieces[0]
    for piece, name in zip(pieces, names, strict=False):
        tell_of_starts(piece, name)
    for piece, name in zip(pieces[1:], names[1:], strict=False):
        same_grid(first, piece, names[0], name)
    winds = first
    if len(pieces) > 1:
        if any("time" not in piece.coords for piece in pieces):
            raise ValueError(f"{', '.join(names)} lack dates; open them one by one")
        winds = xr.concat(
            pieces,
            "time",
            coords="minimal",
            compat="override",
            data_vars="minimal",
            join="override",
            combine_attrs="override",
        )
    return in_order(winds, ", ".join(names))


def tell_of_starts(piece: xr.Dataset, name: str) -> None:
    """Warn of times that go forth and back within one file."""
    steps = hours(moments(piece["time"], f"time of {name}")) if "time" in piece.coords else ()
    if np.any(back := np.less(steps, 0)) and np.any(np.greater(steps, 0)):
        log.warning(
            "%s: time goes back at index %d, as where forecasts of several starts follow each "
            "other: the times are sorted; if they are of several, select those of one",
            *(name, int(back.argmax()) + 1),
        )


def same_grid(first: xr.Dataset, piece: xr.Dataset, one: str, other: str) -> None:
    """Refuse a piece of another grid or other variables."""
    if {*first.data_vars} != {*piece.data_vars}:
        raise ValueError(
            f"{one} has {', '.join(map(str, first.data_vars))} and {other} "
            f"{', '.join(map(str, piece.data_vars))}; they must have the same, or "
            "each a part of one wind, at the same times and points in the same order"
        )
    names = [n for n in ("y", "x", "latitude", "longitude") if n in first.coords]
    for name in names:
        a = first[name].values
        b = piece[name].values if name in piece.coords else np.array([])
        if a.shape != b.shape or not np.allclose(a, b, rtol=1e-6, atol=1e-5):
            raise ValueError(
                f"{one} and {other} differ in {name} ({a.shape} and {b.shape} points); files that "
                "are opened together must have one grid: open them one by one"
            )
    if [first.sizes[a] for a in ("y", "x")] != [piece.sizes[a] for a in ("y", "x")]:
        raise ValueError(f"{one} and {other} have grids of different sizes; open them one by one")


def in_order(winds: xr.Dataset, origin: str) -> xr.Dataset:
    """Return the dataset with times ascending, identical duplicates dropped, both said."""
    if "time" not in winds.coords or winds.sizes["time"] < 2:
        return winds
    ranks = np.argsort(winds["time"].values, kind="stable")
    if not np.array_equal(ranks, np.arange(len(ranks))):
        winds = changed(winds.isel(time=ranks), "times sorted")
    stamps = winds["time"].values
    keep = np.concatenate([[True], stamps[1:] != stamps[:-1]])
    for at in np.flatnonzero(~keep):
        a, b = winds.isel(time=at - 1), winds.isel(time=at)
        if any(not a[name].variable.equals(b[name].variable) for name in winds.data_vars):
            raise ValueError(
                f"{origin} has two different fields for {stamps[at]} (index {at}); keep one"
            )
    if not keep.all():
        said = f"{(~keep).sum()} identical duplicates in time dropped"
        winds = changed(winds.isel(time=keep), said)
    return winds


def without_extension(winds: xr.Dataset) -> xr.Dataset:
    """Cut off rows and columns at the edges in which every component is zero.

    Limited-area models pad their fields for the Fourier transform (AROME by 11 points); a calm
    that is 0.0 along whole rows, at the first and the last time, has not been seen.
    """
    names = [name for name in IN_M_S if name in winds]
    ends = winds[names].isel(time=[0, -1])
    quiet = [np.abs(ends[n].values) < STILL_M_S for n in names]
    zeros = np.stack([plane.all(axis=tuple(range(plane.ndim - 2))) for plane in quiet]).min(axis=0)
    if zeros.all():
        return winds
    for axis, lines in (("y", zeros.all(axis=-1)), ("x", zeros.all(axis=0))):
        low, high = int(lines.argmin()), int(lines[::-1].argmin())
        low, high = (n if n >= MINIMAL_ZEROS else 0 for n in (low, high))
        if low or high:
            winds = winds.isel({axis: slice(low, winds.sizes[axis] - high)})
            said = f"a zone of zeros cut off along {axis}: {low} first, {high} last"
            winds = changed(winds, said)
    return winds
