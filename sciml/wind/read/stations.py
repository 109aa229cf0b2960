"""Wind at stations and masts: tables of observations, each with its place and its time."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float

from sciml._units import plain
from sciml.wind.cf.check import SENSE, STRONGEST_M_S, apart
from sciml.wind.cf.components import named
from sciml.wind.cf.level import Level
from sciml.wind.cf.names import EARTH, Found, is_plane, points_to, recognised, usual_place
from sciml.wind.cf.schema import NEAR_SURFACE_M
from sciml.wind.cf.times import UTC, Times, moments
from sciml.wind.cf.units import degrees, metres_per_second, place_of, refuse_other_angles
from sciml.wind.read.formats import content
from wse._files import as_path

TEXT = (".csv", ".tsv", ".txt")
STORED = (".nc", ".nc4", ".cdf", ".zarr")
KINDS = ("wind_speed", *EARTH, "wind_from_direction")
PLACES = ("latitude", "longitude")
ALONG = "observation"
HEAD = re.compile(r"\s*(.+?)\s*[\[(]\s*(.*?)\s*[\])]\s*")  # a column's name and unit: ff (m s-1)
WHEN = re.compile(r"((obs|valid)_?)?(date_?)?time(stamp)?(_?utc)?|(date|valid)(_?utc)?")
HEIGHT = re.compile(r"((wind|sensor|instrument|anemometer)_)?height(_above_ground|_agl)?(_?m)?")
MISSING = {"", "m", "na", "n/a", "nan", "nat", "null", "none", "-", "--", "missing", "vrb"}
TENS, SOME = 36, 20  # assumed: of so many directions in degrees one is beyond
UNITS = {"sknt": "knots"}  # sourced: Iowa Environmental Mesonet, wind speed of ASOS downloads
DAY = r"\d{8}|\d{4}-\d\d?-\d\d?"
STAMPS = {10: "%Y%m%d%H", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}  # by their digits

Rows = dict[str, xr.DataArray]
Values = Float[np.ndarray, " observation"]


def are_stations(paths: list[Path]) -> bool:
    """Tell tables, and files whose winds are on no rows and columns; what is damaged is neither."""
    for path in paths:
        if path.suffix.lower() in TEXT:
            return True
        with suppress(Exception):
            if path.suffix.lower() in STORED:
                with content(path, Level()) as stored:
                    known = [v for n, v in stored.data_vars.items() if recognised(str(n), v)]
                    if known and not any(map(is_plane, known)):
                        return True
    return False


def open_stations(
    table: Path | str | pd.DataFrame | xr.Dataset, *, height_m: float | None = None
) -> xr.Dataset:
    """Read observations of wind, each with its place and time: CSV, netCDF, pandas or xarray.

    Columns are found by their usual names (`lat`, `lon`, `time`, `wind_speed`, `wind_dir`, `u10`,
    `v10`, `height`) and units by attributes or in brackets, as "ff (m/s)". Directions are those
    from which the wind blows, clockwise from north; times without a zone are in UTC.

    Args:
        table: a path, or a table.
        height_m: which of several heights above ground; 10 m without it, where it is among them.

    Returns:
        On (observation): wind_speed, eastward_wind, northward_wind in m/s, what there is of them,
        with time, latitude and longitude.

    Raises:
        ValueError: a column lacks or is there twice, its unit is not told, or values are none.

    >>> import pandas as pd
    >>> from sciml import wind
    >>> one = {"lat": [50.0], "lon": [5.0], "time": ["2020-01-01T00:00Z"], "wind_dir": [270.0]}
    >>> seen = wind.open_stations(pd.DataFrame(one | {"wind_speed (knots)": [10.0]}))
    >>> round(float(seen.eastward_wind[0]), 3)
    5.144
    """
    rows, origin = flat(table)
    if not all(row.size for row in rows.values()):
        raise ValueError(f"{origin} holds no observation: name a table with rows")
    winds = of_winds(rows, height_m, origin)
    fields = {kind: in_m_s(rows[one.name], kind, origin) for kind, one in winds.items()}
    time = one_of([n for n, v in rows.items() if is_time(n, v)], "time", rows, origin)
    coords: dict[str, Any] = {"time": (ALONG, dates(rows[time], origin))}
    for place, most in zip(PLACES, (90.0, 360.0), strict=True):
        name = one_of([n for n, v in rows.items() if is_place(n, v, place)], place, rows, origin)
        values = numbers(rows[name], origin)
        refuse_beyond(values, (-most, most), name, origin)
        coords[place] = (ALONG, values)
    seen = xr.Dataset(with_vectors(fields), coords)
    heights = {one.height_m for one in winds.values() if one.height_m is not None}
    for column in [name for name in rows if HEIGHT.fullmatch(name.lower())]:
        seen, height = at_height(
            seen, numbers(rows[column], origin), height_m, f"{column} of {origin}"
        )
        heights = {height}
    for field in seen.data_vars.values() if len(heights) == 1 else ():
        field.attrs["height_m"] = min(heights)
    lost = ~(np.isfinite(seen.latitude.values) & np.isfinite(seen.longitude.values))
    return seen.isel({ALONG: ~lost})


def flat(table: Any) -> tuple[Rows, str]:
    """Return the columns of a table, one value an observation, and what messages call it."""
    origin = "the table"
    if isinstance(table, str | Path):
        path = as_path("table", table, "pass stations.csv")
        origin, table = str(path), text(path) if path.suffix.lower() in TEXT else None
        if table is None:
            with content(path, Level()) as stored:
                table = stored.load()
    if isinstance(table, pd.DataFrame):
        if isinstance(table.index, pd.DatetimeIndex) and table.index.name is None:
            table = table.rename_axis("time")
        return columns(table.reset_index() if any(table.index.names) else table, origin), origin
    if not isinstance(table, xr.Dataset):
        raise TypeError(
            f"stations are a {type(table).__name__}; pass a path, a DataFrame of pandas or an "
            "xarray Dataset"
        )
    known = [
        f.dims
        for n, f in table.data_vars.items()
        if (w := recognised(str(n), f)) and w.kind in KINDS
    ]
    axes = max(known, key=len, default=())
    sizes = {axis: table.sizes[axis] for axis in axes}
    rows = {}
    for name, variable in table.variables.items():
        if {*variable.dims} <= {*axes}:
            values = variable.set_dims(sizes).transpose(*axes).values.reshape(-1)
            own = xr.DataArray(values, dims=ALONG, name=str(name), attrs=variable.attrs)
            rows[str(name)] = own
    return rows, origin


def text(path: Path) -> pd.DataFrame:
    """Return a table of text, whose columns are parted by what its head has most of."""
    try:
        with path.open(encoding="utf-8-sig") as stream:
            head = next((line for line in stream if line.strip() and line[0] != "#"), "")
        parted = max(",;\t", key=head.count)
        said: Any = {"sep": parted if parted in head else r"\s+", "skipinitialspace": True}
        return pd.read_csv(
            path, dtype=str, keep_default_na=False, encoding="utf-8-sig", comment="#", **said
        )
    except ValueError as error:  # of decoding too
        raise ValueError(
            f"{path} is no table that can be read: {' '.join(str(error).split())}"
        ) from error


def columns(table: pd.DataFrame, origin: str) -> Rows:
    """Return the columns of a table with the units that stand in brackets in its head."""
    rows: Rows = {}
    for at, head in enumerate(map(str, table.columns)):
        said = HEAD.fullmatch(head)
        name, unit = (said[1], said[2]) if said else (head.strip(), UNITS.get(head.strip().lower()))
        if name in rows:
            raise ValueError(f"{origin} has the column {name} twice: keep one")
        attrs = {} if unit is None else {"units": unit}
        values = table.iloc[:, at].to_numpy()
        spelled = re.sub(r"[\s.-]+", "_", name)
        rows[spelled] = xr.DataArray(values, dims=ALONG, name=spelled, attrs=attrs)
    return rows


def is_time(name: str, column: xr.DataArray) -> bool:
    """Tell when an observation was made."""
    return bool(WHEN.fullmatch(name.lower())) or column.attrs.get("standard_name") == "time"


def is_place(name: str, column: xr.DataArray, place: str) -> bool:
    """Tell where a station is, by attributes or by a usual name."""
    stated = place_of(column.attrs.get("units"))
    named_so = usual_place(name, {} if stated else column.attrs) == place and stated in ("", place)
    return column.attrs.get("standard_name") == place or stated == place or named_so


def one_of(names: list[str], what: str, rows: Rows, origin: str) -> str:
    """Return the only column of a kind; refuse none and several."""
    if len(names) != 1:
        raise ValueError(
            f"{origin} has {len(names)} columns of {what} ({', '.join(names or rows)}); it must "
            f"have one value for each observation: name the column {what}, and no other"
        )
    return names[0]


def wanted(heights: set[float], height_m: float | None) -> float | None:
    """Return which of some heights is taken: that which is asked for, 10 m, or the only one."""
    if height_m is not None or NEAR_SURFACE_M in heights:
        return NEAR_SURFACE_M if height_m is None else height_m
    return next(iter(heights)) if len(heights) == 1 else None


def at_height(
    seen: xr.Dataset, column: Values, height_m: float | None, said: str
) -> tuple[xr.Dataset, float]:
    """Return the observations of one height; refuse what may be the altitudes of stations."""
    heights = {float(height) for height in column[np.isfinite(column)]}
    height = wanted(heights, height_m)
    here = np.isclose(column, np.nan if height is None else height)
    places = [np.stack([seen[n].values[at] for n in PLACES]) for at in (here, slice(None))]
    kept, known = (np.unique(one, axis=1).shape[1] for one in places)
    if height is None or not here.any() or (height_m is None and kept < known):
        raise ValueError(
            f"{said} holds {len(heights)} values from {min(heights, default=np.nan):g} to "
            f"{max(heights, default=np.nan):g}, {height or NEAR_SURFACE_M:g} at {kept} of {known} "
            "stations: name one as height_m (--height-m); if it is no height of instruments above "
            "ground, call it altitude"
        )
    return seen.isel({ALONG: here}), height


def of_winds(rows: Rows, height_m: float | None, origin: str) -> dict[str, Found]:
    """Return the column of each kind of wind at the height that is wanted."""
    known = [f for n, v in rows.items() if (f := recognised(n, v)) and f.kind in KINDS]
    height = wanted({f.height_m for f in known if f.height_m is not None}, height_m)
    winds = {}
    for kind in KINDS:
        same = [f for f in known if f.kind == kind]
        same = [f for f in same if len(same) == 1 or f.height_m == height]
        if any(f.height_m not in (None, height) for f in same):
            continue  # of another height than the others
        if same:
            winds[kind] = rows_of(same, kind, rows, origin)
    if "wind_speed" not in winds and not {*EARTH} & {*winds}:
        raise ValueError(
            f"{origin} has no wind {'' if height is None else f'at {height:g} m '}among "
            f"{', '.join(rows)}: name columns wind_speed (m s-1), wind_direction, or u10 (m s-1) "
            "and v10 (m s-1)"
        )
    return winds


def rows_of(same: list[Found], kind: str, rows: Rows, origin: str) -> Found:
    """Return the only one of several columns."""
    name = one_of([f.name for f in same], kind, rows, origin)
    return next(f for f in same if f.name == name)


def numbers(column: xr.DataArray, origin: str) -> Values:
    """Return a column as numbers, NaN for the usual marks of what is missing."""
    if column.dtype.kind in "fiu":
        return column.values.astype(np.float64)
    said = pd.Series(column.values).astype(str).str.strip()
    missing = said.str.lower().isin(MISSING)
    found: Any = pd.to_numeric(said.where(~missing), errors="coerce")
    values = np.asarray(found, np.float64)
    if (wrong := np.isnan(values) & ~missing.to_numpy()).any():
        raise ValueError(
            f"{column.name} of {origin} holds {said[int(wrong.argmax())]!r}, which is no number: "
            "leave it empty where there is none"
        )
    return values


def in_m_s(column: xr.DataArray, kind: str, origin: str) -> xr.DataArray:
    """Return a wind in m/s, or a direction in degrees from which it blows, if they can be."""
    said = f"{column.name} of {origin}"
    values = column.copy(data=numbers(column, origin))
    if kind == "wind_from_direction":
        refuse_other_angles(values, said)
        known = values.values[np.isfinite(values.values)]
        if "units" not in column.attrs and known.size >= SOME and known.max() <= TENS:
            raise ValueError(
                f"{said} reaches {known.max():g}, of no unit: multiply tens of degrees by 10, or "
                f"name the column '{column.name} (degree)'"
            )
        values = values * degrees(values, said)
        span = SENSE[1][1:3]
    elif "units" not in column.attrs:
        raise ValueError(
            f"the unit of {said} is not told; write it in the head of the column, as "
            f"'{column.name} (m s-1)', (km/h) or (knots), or as .attrs['units']"
        )
    else:
        values = values * metres_per_second(column.attrs["units"], said)
        span = (SENSE[0][1] if kind == "wind_speed" else -STRONGEST_M_S, STRONGEST_M_S)
        if (marks := apart(values.values)).any():
            raise ValueError(
                f"{said} has {int(marks.sum())} equal values far from all others "
                f"({values.values[marks][0]:g} m/s): missing values? leave them empty"
            )
    refuse_beyond(values.values, span, str(column.name), origin)
    if kind == "wind_from_direction" and points_to(column):
        values = (values + 180.0) % 360.0
    return named(values, kind)


def refuse_beyond(values: Values, span: tuple[float, float], name: str, origin: str) -> None:
    """Refuse what no wind or place is, as marks of missing values."""
    wrong = (values < span[0]) | (values > span[1])
    if wrong.any():
        raise ValueError(
            f"{name} of {origin} has {int(wrong.sum())} values that are not {span[0]:g} to "
            f"{span[1]:g}, the first {values[int(wrong.argmax())]:g}: missing values? leave them "
            "empty"
        )


def with_vectors(fields: dict[str, xr.DataArray]) -> dict[str, xr.DataArray]:
    """Return speed and components, what follows of them from what is there."""
    if "wind_speed" not in fields and {*EARTH} <= {*fields}:
        length: Any = np.hypot(fields[EARTH[0]], fields[EARTH[1]])
        fields["wind_speed"] = named(length, "wind_speed")
    if {"wind_speed", "wind_from_direction"} <= {*fields} and not {*EARTH} & {*fields}:
        strength, source = fields["wind_speed"], np.radians(fields["wind_from_direction"])
        for name, part in zip(EARTH, (np.sin(source), np.cos(source)), strict=True):
            fields[name] = named(xr.where(strength == 0, 0.0, -strength * part), name)
    return {name: field for name, field in fields.items() if name != "wind_from_direction"}


def dates(column: xr.DataArray, origin: str) -> Times:
    """Return when observations were made, in UTC; refuse text that may be of several dates."""
    said = f"{column.name} of {origin}"
    values = column.values
    if values.dtype.kind in "iu" and not column.attrs.get("units"):
        values = values.astype(str)
    if values.dtype.kind not in "SUO" or not isinstance(values.ravel()[:1].tolist()[0], str):
        return moments(column, said)
    if (zone := plain(column.attrs.get("units", "utc"))) not in UTC:
        raise ValueError(f"{said} is in {zone!r}: give times in UTC, or with their zone, as +01:00")
    stamps = pd.Series(values).astype(str).str.strip()
    if stamps.str.fullmatch(DAY).all():
        raise ValueError(f"{said} holds {stamps[0]}, a day and no hour: write 2020-12-31T18:00")
    first = stamps[0]
    form = STAMPS.get(len(first), "ISO8601") if first.isdigit() else "ISO8601"
    try:
        made = pd.to_datetime(stamps, format=form, utc=True)
    except ValueError as error:
        raise ValueError(
            f"{said} holds {first!r}, which may be of several dates, or is none: write "
            "2020-12-31T18:00, in UTC or with its zone"
        ) from error
    return np.asarray(made.dt.tz_localize(None).to_numpy(), "datetime64[ns]")
