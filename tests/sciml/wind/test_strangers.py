"""Whole files of other centres: their wind near the ground, or one line that says why not."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from sciml import wind
from sciml.wind.read.grib import values
from sciml.wind.read.messages import index

# What is to be had of each, or why nothing is; by the file's name behind the repository's.
REFUSED = {
    "lambert.grib2": "holds no wind",
    "sample-data_alternate-scanning.grib": "holds no wind",
    "sample-data_fields_with_missing_values.grib": "holds no wind",
    "sample-data_lambert_grid.grib": "holds no wind",
    "sample-data_reduced_gg.grib": r"on a reduced grid, .* \(reduced_gg\): bring it to a",
    "sample-data_spherical_harmonics.grib": "holds no wind",
    "grid_rotated_grid.nc": "has no wind among",
    "testdata_vertical_ensemble_in.nc": "has axes .*; they must be",
    "enfo-es_t2m-si10-si100-msp_20240101T00_S03-06.grib": "the spread of an ensemble, no wind",
}
OPENED = {
    "nam.t00z.awp21100.tm00.grib2": (1, 65, 93),
    "sample-data_regular_gg_sfc.grib": (1, 96, 192),
    "sample-data_uv_on_different_levels.grib": (2, 5, 37, 72),
    "harp_arome_arctic_whole.grb": (1, 100, 100),
    "data_north.nc": (1, 181, 360),
    "gfswave.t18z.atlocn.0p16.f001.grib2": (1, 331, 301),
    "wrf_d01_allvars_cropped.nc": (4, 8, 10),
    "enfo-em_t2m-si10-si100-msp_20240101T00_S03-06.grib": (2, 141, 151),
}


def named(shared, ending):
    """The file of this ending."""
    found = [p for p in (shared / "data/wind/strangers").iterdir() if p.name.endswith(ending)]
    if len(found) != 1:
        pytest.skip(f"needs the file {ending} of the reference data")
    return found[0]


@pytest.mark.parametrize("ending", OPENED)
def test_it_is_opened(shared, ending):
    path = named(shared, ending)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the formats' libraries
        found = wind.open(path, allow_missing=True)
    first = next(iter(found.data_vars.values()))
    assert first.shape == OPENED[ending]
    assert first.attrs.get("height_m", 10.0) == 10.0
    speed = found.wind_speed.values if "wind_speed" in found else np.abs(first.values)
    assert 0.5 < np.nanmean(speed) < 30


@pytest.mark.parametrize("ending", REFUSED)
def test_it_is_refused_in_one_line(shared, ending):
    path = named(shared, ending)
    with pytest.raises(ValueError, match=REFUSED[ending]) as said:
        wind.open(path, allow_missing=True)
    assert "\n" not in str(said.value)


@pytest.mark.slow
def test_kinds_of_level_are_asked_for_by_name(shared):
    path = named(shared, "nam.t00z.awp21100.tm00.grib2")
    jet, tropopause = (wind.open(path, level=name) for name in ("maxWind", "tropopause 0"))
    assert jet.x_wind.attrs.get("level", "maxWind 0") == "maxWind 0"
    assert float(jet.wind_speed.mean()) > float(tropopause.wind_speed.mean())
    aloft = wind.open(path, pressure_hpa=500.0)
    assert aloft.x_wind.shape == (1, 65, 93)
    assert aloft.x_wind.attrs["pressure_hpa"] == 500.0
    with pytest.raises(ValueError, match=r"level is 'pressureFromGroundLayer'; .* name one"):
        wind.open(path, level="pressureFromGroundLayer")


def test_leads_and_members_of_messages_are_chosen(shared):
    path = named(shared, "enfo-em_t2m-si10-si100-msp_20240101T00_S03-06.grib")
    whole, later = wind.open(path), wind.open(path, lead_h=6.0, member=0)
    np.testing.assert_array_equal(later.wind_speed, whole.wind_speed[1:])
    np.testing.assert_array_equal(later.time, whole.time[1:])
    with pytest.raises(ValueError, match=r"has no lead_h=9; it has 3, 6"):
        wind.open(path, lead_h=9.0)
    with pytest.raises(ValueError, match=r"has no member=3; it has 0"):
        wind.open(path, member=3)


def test_both_fields_of_one_message_are_read(shared):
    eccodes = pytest.importorskip("eccodes")
    path = named(shared, "nam.t00z.awp21100.tm00.grib2")
    found = wind.open(path)
    eccodes.codes_grib_multi_support_on()
    try:
        with path.open("rb") as stream:
            fields = {}
            while (handle := eccodes.codes_grib_new_from_file(stream)) is not None:
                short = eccodes.codes_get(handle, "shortName")
                if short in ("10u", "10v"):
                    fields[short] = eccodes.codes_get_values(handle).reshape(65, 93)
                eccodes.codes_release(handle)
    finally:
        eccodes.codes_grib_multi_support_off()
    np.testing.assert_allclose(found.x_wind[0], fields["10u"], atol=1e-5)
    np.testing.assert_allclose(found.y_wind[0], fields["10v"], atol=1e-5)


@pytest.mark.slow
def test_threads_that_read_one_file_get_their_own_fields(shared):
    """A switch of ecCodes for all threads says which field of a message comes next."""
    path = named(shared, "nam.t00z.awp21100.tm00.grib2")
    winds = [one for one in index(path) if one.kind in ("x_wind", "y_wind")]
    wanted = [(one, values(path, one)) for one in winds]

    def is_its_own(i: int) -> bool:
        message, field = wanted[i % len(wanted)]
        return np.array_equal(values(path, message), field)

    with ThreadPoolExecutor(8) as pool:
        right = list(pool.map(is_its_own, range(2000)))
    assert all(right), f"{right.count(False)} of {len(right)} are another field"


def test_a_message_that_cannot_be_read_does_not_fail_the_others(shared, tmp_path):
    good, bad = (named(shared, e) for e in ("harp_arome_arctic_whole.grb", "reduced_gg.grib"))
    path = tmp_path / "both.grib"
    path.write_bytes(bad.read_bytes() + good.read_bytes())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(
            wind.open(path, height_m=10.0).x_wind, wind.open(good, height_m=10.0).x_wind
        )
