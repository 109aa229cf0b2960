"""Units of labelled arrays: one unit in any spelling, another one refused with the factor told."""

import numpy as np
import pytest
import xarray as xr

from sciml._units import factor_between, same_unit
from sciml.ode.data.evidence import check_same_unit

ONE = [
    ("mV", "millivolts"),
    ("V", "Volt"),
    ("uA/cm2", "µA cm⁻²"),
    ("mS/cm^2", "millisiemens cm-2"),
    ("kΩ", "kohm"),
    ("mM", "mmol/L"),
    ("nM", "nmol l^-1"),
    ("M", "mol L**-1"),
    ("1/s", "Hz"),
    ("1/h", "per hour"),
    ("days", "d"),
    ("Hours", "h"),
    ("MINUTES", "min"),
    ("week", "7 days"),
    ("yr", "years"),
    ("mg/(L h)", "mg/L/h"),
    ("ug/mL", "mg/L"),
    ("cells/mL", "Cells mL-1"),
    ("10^3 cells/mL", "cells/uL"),
    ("J/mol/K", "joule mol-1 K-1"),
    ("%", "percent"),
    ("1", "dimensionless"),
    ("M/S", "m/s"),
    ("hPa", "millibar"),
    ("a.u.", "a.u."),
    ("kcal", "Cal"),
    ("mH", "millihenries"),
]
SCALED = [
    ("uV", "mV", 1e-3),
    ("mV", "MV", 1e-9),
    ("mmol/L", "uM", 1e3),
    ("h", "min", 60.0),
    ("1/day", "1/h", 1 / 24),
    ("%", "1", 0.01),
    ("ng/mL", "mg/L", 1e-3),
    ("ft", "m", 0.3048),
    ("ms", "Ms", 1e-9),
    ("Cal", "cal", 1e3),
    ("kcal", "kJ", 4.184),
]
OTHERS = [
    ("mS", "ms"),  # siemens and seconds
    ("mM", "mm"),
    ("S", "s"),
    ("H", "h"),  # henry and hours
    ("pA", "Pa"),
    ("kN", "kn"),
    ("Mb", "mb"),
    ("mg/dL", "mmol/L"),
    ("year", "365 days"),
    ("cells", "copies"),
    ("Km", "km"),
    ("degC", "K"),
]


@pytest.mark.parametrize(("one", "other"), ONE)
def test_spellings_of_a_unit_are_one(one, other):
    assert same_unit(one, other)
    assert same_unit(other, one)


@pytest.mark.parametrize(("one", "other", "factor"), SCALED)
def test_another_scale_is_refused_and_the_factor_told(one, other, factor):
    found, like = (xr.DataArray(np.zeros(2), attrs={"units": unit}) for unit in (one, other))
    assert factor_between(one, other) == pytest.approx(factor, rel=1e-9)
    with pytest.raises(
        ValueError, match=rf"but '{other}' in the fit: multiply the values by "
    ) as e:
        check_same_unit(found, like, "the observations", "the fit")
    assert f"by {factor:.10g}, and write" in str(e.value)


@pytest.mark.parametrize(("one", "other"), OTHERS)
def test_other_units_are_no_multiples(one, other):
    assert not same_unit(one, other)
    assert not same_unit(other, one)
    assert factor_between(one, other) is None
    found, like = (xr.DataArray(np.zeros(2), attrs={"units": unit}) for unit in (one, other))
    with pytest.raises(ValueError, match="where it is the same, write it alike"):
        check_same_unit(found, like, "the observations", "the fit")
