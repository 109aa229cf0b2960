"""Dates of fields; forecasts, by start and lead, are at the time for which they are valid."""

import logging
import re
from typing import Any

import numpy as np
import xarray as xr

from sciml._units import TIME
from sciml.wind.cf.names import axis_of
from sciml.wind.cf.units import in_si

log = logging.getLogger(__name__)

LEAD = re.compile(r"step|lead|lead_?time|forecast_period|fhour|forecast_hour|prediction_timedelta")
START = "forecast_reference_time"  # CF's name of a start; its `time` is that of validity


def with_dates(content: xr.Dataset, names: list[str], origin: str, said: list[str]) -> xr.Dataset:
    """Return a dataset with dates on the axes of time of variables, where one along each has them.

    By CF such a variable has the axis' own name; that of starts of forecasts is none. Where there
    is no axis of time, one that is none of ours and has dates becomes it; leads and months stay.
    """
    on = {str(d): axis_of(str(d), content[n]) for n in names for d in content[n].dims}
    wanted = "time" if "time" in on.values() else None
    for dim in (d for d, axis in on.items() if axis == wanted and d.lower() != "month"):
        own = content.variables.get(dim)
        if is_dates(own) or (own is not None and is_lead(content, dim)):
            continue
        along = {str(n): v for n, v in content.variables.items() if v.dims == (dim,)}
        dated = [n for n, v in along.items() if is_dates(v) and not is_start(n, v)]
        stated = [n for n in dated if along[n].attrs.get("standard_name") == "time"]
        dated = stated or dated
        if len(dated) == 1:
            content = content.assign_coords({dim: along[dated[0]]})
            said.append(f"dates of {dated[0]} read along {dim}")
            if wanted is None and "time" not in content.variables:
                content = content.rename({dim: "time"})
        elif dated:
            log.warning(
                "%s of %s has no dates, and %s hold dates along it: name one, .assign_coords(%s=…)",
                *(dim, origin, ", ".join(dated), dim),
            )
    return content


def is_dates(variable: Any) -> bool:
    """Tell dates of any calendar."""
    if variable is None or variable.dtype.kind != "O" or not variable.size:
        return variable is not None and variable.dtype.kind == "M"
    return bool(getattr(np.ravel(variable.values)[0], "calendar", ""))  # of cftime


def valid(content: xr.Dataset, origin: str, lead_h: float | None) -> xr.Dataset:
    """Return a dataset whose `time` is when its fields are valid, without an axis of leads.

    Of forecasts from one start the leads become the times. Of several starts one lead is taken.
    By CF `time` is that of validity, beside a `forecast_reference_time`; other tools call the start
    so, and write a `valid_time`, or leads as an axis.
    """
    name = next((str(n) for n in content.variables if is_lead(content, str(n))), None)
    if name is None:
        if lead_h is not None and content.attrs.get("lead_h") != lead_h:
            refuse(origin, lead_h, [])
        return content
    leads = as_hours(content[name], origin)
    along = axis = name in content.dims  # only leads counted from starts make an axis beside time
    if lead_h is not None:
        at = int(np.abs(leads - lead_h).argmin())
        if not np.isclose(leads[at], lead_h):
            refuse(origin, lead_h, list(leads))
        content = content.isel({content[name].dims[0]: [at]}) if content[name].ndim else content
        leads = leads[at : at + 1]
    if along and leads.size == 1:
        content, along = content.isel({name: 0}), False
    time = content.variables.get("time")
    if time is None or not np.issubdtype(time.dtype, np.datetime64):
        return content
    starts = axis and time.dims != (name,)
    moments = validity(content, name, (leads, starts), origin)
    content = content.drop_vars(["valid_time", name], errors="ignore")
    if not along:
        return content.assign_coords(time=(time.dims, np.reshape(moments, time.shape)))
    if "time" in content.dims:
        content = content.isel(time=0)
    content = content.drop_vars("time").rename({name: "time"})
    return content.assign_coords(time=("time", np.ravel(moments)))


def validity(
    content: xr.Dataset, name: str, told: tuple[np.ndarray, bool], origin: str
) -> np.ndarray:
    """Return for when the fields are valid, by leads and whether `time` is known to be starts."""
    (leads, is_known), time, along = told, content.variables["time"], name in content.dims
    given = content.variables.get("valid_time")
    if given is not None and given.size == (leads.size if along else time.size):
        return given.values
    if along and is_known and time.size > 1:
        raise ValueError(
            f"{origin} has {time.size} starts of forecasts and {leads.size} leads; name one lead: "
            f"open(path, lead_h={leads[0]:g}), or --lead on the command line"
        )
    starts = [v for n, v in content.variables.items() if is_start(str(n), v)]
    said = time.attrs.get("standard_name")
    is_known = is_known or said == START
    if not is_known and (time.dims == (name,) or starts or said == "time"):
        return time.values
    if not is_known and leads.any():
        raise ValueError(
            f"{origin} has time {time.values.ravel()[0]} and {name} {leads[0]:g} h, and does not "
            "say whether time is the start or that of validity: set its standard_name to "
            f"{START!r} or 'time'"
        )
    start = starts[0].values if along and starts and starts[0].size == 1 else time.values
    hours = np.round(leads * 3600).astype("timedelta64[s]")
    return start + (hours if along or hours.size == start.size else hours[0])


def is_start(name: str, variable: xr.Variable) -> bool:
    """Tell the start of forecasts that stands beside `time`."""
    named = name in (START, "reftime") or variable.attrs.get("standard_name") == START
    return named and name != "time" and np.issubdtype(variable.dtype, np.datetime64)


def is_lead(content: xr.Dataset, name: str) -> bool:
    """Tell the time since the start of a forecast, along an axis or alone."""
    variable: Any = content.variables[name]
    if variable.ndim > 1 or (variable.ndim == 1 and variable.dims != (name,)):
        return False
    standard = variable.attrs.get("standard_name")
    if standard is not None:
        return standard == "forecast_period"
    return bool(LEAD.fullmatch(name.lower())) and variable.dtype.kind in "mif"


def as_hours(lead: xr.DataArray, origin: str) -> np.ndarray:
    """Return leads in hours; the unit is the file's, and hours where it states none."""
    values: Any = np.atleast_1d(lead.values)
    if values.dtype.kind == "m":
        return values / np.timedelta64(1, "h")
    seconds = in_si(lead.attrs.get("units", "h"), TIME, f"{lead.name} of {origin}")
    return values.astype(np.float64) * (seconds / 3600)


def refuse(origin: str, lead_h: float, leads: list[Any]) -> None:
    """Refuse a lead that is not there."""
    has = ", ".join(f"{lead:g}" for lead in leads) or "none"
    raise ValueError(f"{origin} has no lead_h={lead_h:g}; it has {has}: name one of them")
