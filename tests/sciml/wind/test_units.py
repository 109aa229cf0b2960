"""Units as tools and people spell them: read as what they are, or refused by name."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from sciml import wind
from sciml._units import LENGTH, PRESSURE, SPEED, same_unit, size_of
from sciml.wind.cf.units import metres_per_second

LENGTHS = {"m": 1.0, "metre": 1.0, "meters": 1.0, "km": 1e3, "kilometers": 1e3, "cm": 0.01}
LENGTHS |= {
    "ft": 0.3048,
    "feet": 0.3048,
    "miles": 1609.344,
    "nautical miles": 1852.0,
    "nmi": 1852.0,
}
TIMES = {
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "hr": 3600.0,
    "hour": 3600.0,
}
JOINED = ("{}/{}", "{} / {}", "{} per {}", "{} {}-1", "{}.{}-1", "{} {}^-1", "{} {}**-1", "{}·{}⁻¹")
JOINED += ("{} {}^{{-1}}", "{}*{}-1", "{} {}−1", "{}_per_{}", "{} {} -1")
AROUND = ("{}", "[{}]", "({})", " {} ", "${}$")
SPEEDS = {"knots": 1852 / 3600, "kt": 1852 / 3600, "KTS": 1852 / 3600, "kn": 1852 / 3600}
SPEEDS |= {"mph": 0.44704, "kmh": 1 / 3.6, "kph": 1 / 3.6, "mps": 1.0, "ms-1": 1.0, "ms⁻¹": 1.0}
SPEEDS |= {"kmh-1": 1 / 3.6, "cms-1": 0.01, "M S-1": 1.0, "fps": 0.3048}
UNCLEAR = (
    "",
    "1",
    "m",
    "m s",
    "m/s-1",
    "m/s/s",
    "m2 s-1",
    "10 m/s",
    "0.1 m s-1",
    "nm/h",
    "ms",
    "%",
)
UNCLEAR += ("knots/h", "furlongs per fortnight", "Pa", "m s-1 at 10 m", "m-s-1", "beaufort")


@given(
    length=st.sampled_from([*LENGTHS]),
    time=st.sampled_from([*TIMES]),
    joined=st.sampled_from(JOINED),
    around=st.sampled_from(AROUND),
    capital=st.booleans(),
)
def test_a_length_over_a_time_is_a_speed_however_it_is_spelled(
    length, time, joined, around, capital
):
    spelled = around.format(joined.format(length, time))
    found = metres_per_second(spelled.upper() if capital else spelled, "u")
    assert found == pytest.approx(LENGTHS[length] / TIMES[time], rel=1e-12)


def test_speeds_have_names_and_what_is_none_is_refused():
    for name, size in SPEEDS.items():
        assert metres_per_second(name, "u") == pytest.approx(size, rel=1e-12)
    for name in (*UNCLEAR, None, 5):
        with pytest.raises(ValueError, match=r"the unit of u is .*; it must be a speed, as m s-1"):
            metres_per_second(name, "u")


def file_of(**units):
    """Wind in km/h on a map, with what lies beside it in the units that are given."""
    on, unit = ("time", "lat", "lon"), {"u": "km h⁻¹"} | units
    values = {"u": 36.0, "v": 0.0, "t2m": 10.0, "ps": 1000.0, "z0": 10.0, "orog": 100.0}
    fields = {
        name: (on, np.full((1, 2, 3), value), {"units": unit.get(name, "m/s")})
        for name, value in values.items()
        if name in ("u", "v") or name in units
    }
    places = {"lat": [50.0, 51.0], "lon": [5.0, 6.0, 7.0]}
    coords = {n: (n, v, {"units": unit.get(n, "degrees")}) for n, v in places.items()}
    return xr.Dataset(fields, coords | {"time": [np.datetime64("2020-01-01", "ns")]})


@pytest.mark.parametrize(
    ("name", "kind", "units"),
    [
        ("t2m", "air_temperature", {"°C": 283.15, "deg_C": 283.15, "K": 10.0, "degF": 260.9278}),
        ("ps", "surface_air_pressure", {"millibars": 1e5, "hPa": 1e5, "N m-2": 1e3, "kPa": 1e6}),
        ("z0", "surface_roughness_length", {"cm": 0.1, "metres": 10.0}),
        ("orog", "orography", {"geopotential metres": 100.0, "J/kg": 10.19716, "dam": 1000.0}),
    ],
)
def test_what_lies_beside_is_read_in_the_units_of_tools(name, kind, units):
    for unit, value in units.items():
        beside = () if kind == "orography" else (kind,)
        found = wind.conform(file_of(**{name: unit}), "a test", wind.Level(beside=beside))
        np.testing.assert_allclose(found[kind].values, value, rtol=1e-6)
        np.testing.assert_allclose(found.eastward_wind.values, 10.0)
    for unit in ("furlong", "", "mPa"):
        if kind == "orography":
            assert kind not in wind.conform(file_of(**{name: unit}), "a test")
            continue
        with pytest.raises(ValueError, match=rf"the unit of {name} of a test is '{unit}'; it must"):
            wind.conform(file_of(**{name: unit}), "a test", wind.Level(beside=(kind,)))


@pytest.mark.parametrize(
    "spelled", ["degrees_north", "degree_N", "degreesN", "degrees", "deg", "°N"]
)
def test_latitudes_are_told_by_every_unit_of_cf_and_by_plain_degrees(spelled):
    east = spelled.replace("north", "east").replace("N", "E")
    found = wind.conform(file_of(lat=spelled, lon=east), "a test")
    assert found.latitude.values.tolist() == [50.0, 51.0]
    assert found.longitude.values.tolist() == [5.0, 6.0, 7.0]


def test_longitudes_to_the_west_are_refused():
    with pytest.raises(ValueError, match="the unit of lon is 'degrees_west'; a longitude must be"):
        wind.conform(file_of(lon="degrees_west"), "a test")


def test_a_letter_that_is_another_unit_is_refused():
    with pytest.raises(ValueError, match=r"the unit of t2m of a test is 'F'; it must be one of K"):
        wind.conform(file_of(t2m="F"), "a test", wind.Level(beside=("air_temperature",)))


@pytest.mark.parametrize("unit", ["Mm s-1", "Mm/s", "[Mm s⁻¹]", "Mbar", "Mb"])
def test_mega_is_not_read_as_milli(unit):
    assert size_of(unit, SPEED) is None
    assert size_of(unit, PRESSURE) is None
    assert not same_unit(unit, unit.lower())


def test_old_files_in_capitals_are_read():
    assert size_of("M/S", SPEED) == size_of("M S-1", SPEED) == 1
    assert size_of("MB", PRESSURE) == size_of("MBAR", PRESSURE) == 100
    assert size_of("MM", LENGTH) == 1e-3


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("K", "kelvin", True),
        ("degC", "celsius", True),
        ("K", "degC", False),
        ("degF", "degC", False),
        ("K", "m", False),
        ("hPa", "millibar", True),
        ("gpm", "m", True),
        ("m", "s", False),
    ],
)
def test_units_that_are_one(one, other, same):
    assert same_unit(one, other) is same_unit(other, one) is same
