"""Predictions are scored where stations observe: at their places, times, heights and units."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from typer.testing import CliRunner

from sciml import wind
from sciml.cli.main import app
from sciml.downscale.at_stations import station_scores

pytestmark = pytest.mark.usefixtures("untyped")
HOURS = pd.date_range("2020-01-01", periods=6, freq="h")
N = 32
SPEED, FROM = "wind_speed (m/s)", "wind_dir"


def on_grid(lat, lon, dims=("y", "x")):
    """Wind towards east and north on any grid of 32² points."""
    drawn = wind.gaussian(seed=0, snapshots=6, n=N)
    fields = {
        name: (("time", *dims), drawn[own].values, {"units": "m s-1", "standard_name": name})
        for name, own in (("eastward_wind", "x_wind"), ("northward_wind", "y_wind"))
    }
    places = {
        "lat": (lat[0], lat[1], {"units": "degrees_north"}),
        "lon": (lon[0], lon[1], {"units": "degrees_east"}),
    }
    return wind.conform(xr.Dataset(fields, {"time": HOURS, **places}), "a test")


def straight():
    steps = np.arange(N)
    return on_grid(("lat", 50 + 0.02 * steps), ("lon", 359.8 + 0.03 * steps), ("lat", "lon"))


def turned():
    """Rows and columns thirty degrees off the parallels."""
    b, a = np.meshgrid(np.arange(N), np.arange(N), indexing="ij")
    north, east = 0.02 * (0.87 * b + 0.5 * a), 0.02 * (0.87 * a - 0.5 * b)
    lat = 60 + north
    return on_grid((("y", "x"), lat), (("y", "x"), 10 + east / np.cos(np.radians(lat))))


def observed(fine, rows, columns):
    """What stations at points of a grid would have told of it, as a table has it."""
    at = fine.isel(y=xr.DataArray(rows, dims="s"), x=xr.DataArray(columns, dims="s"))
    where = {n: at[n].values for n in ("latitude", "longitude")}
    u, v = (at[n].values.ravel() for n in ("eastward_wind", "northward_wind"))
    return pd.DataFrame(
        {
            "station": np.tile(np.arange(len(rows)), 6),
            "lat": np.tile(where["latitude"], 6),
            "lon": np.tile((where["longitude"] + 180) % 360 - 180, 6),
            "time": np.repeat(HOURS, len(rows)),
            SPEED: np.hypot(u, v),
            FROM: np.degrees(np.arctan2(-u, -v)) % 360,
        }
    )


@pytest.fixture(scope="module")
def fine():
    return straight()


@pytest.fixture(scope="module")
def table(fine):
    return observed(fine, [0, 3, 9, 31], [0, 14, 20, 31])


def scored(fine, table, coarse=None, *, height_m=None, **options):
    coarse = wind.coarser(fine, 4) if coarse is None else coarse
    return station_scores(fine, wind.open_stations(table, height_m=height_m), 4, coarse, **options)


def of_prediction(scores):
    return scores[scores.scheme == "prediction"].set_index("variable")


@pytest.mark.parametrize("method", ["nearest", "bilinear"])
@pytest.mark.parametrize("grid", [straight, turned])
def test_what_stations_tell_of_a_field_is_the_field(grid, method):
    """On rows and columns that are turned too, and across the meridian of Greenwich."""
    fine = grid()
    table = observed(fine, [0, 3, 9, 31, 15], [0, 14, 20, 31, 16])
    found = of_prediction(scored(fine, table, method=method))
    assert {*found.index} == {"wind_speed", "eastward_wind", "northward_wind"}
    assert (found.observations == 30).all()
    np.testing.assert_allclose(found.rmse_m_s, 0, atol=2e-3)
    np.testing.assert_allclose(found.skill, 1, atol=1e-4)


def test_between_points_the_nearest_is_taken_or_four(fine, table):
    """A field that is linear in its places is bilinear there."""
    line = fine.assign({n: 0 * fine[n] + 5 for n in fine.data_vars})
    line["eastward_wind"] = line.eastward_wind + 30 * (fine.latitude - 50)
    for name in line.data_vars:
        line[name].attrs = fine[name].attrs
    one = table[table.station == 1].assign(lat=50.067, lon=0.11, **{SPEED: 1.0, FROM: 270.0})
    biases = {
        how: of_prediction(scored(line, one, fine.pipe(wind.coarser, 4), method=how)).bias_m_s
        for how in ("nearest", "bilinear")
    }
    assert biases["bilinear"].eastward_wind == pytest.approx(4 + 30 * 0.067, abs=2e-3)
    assert biases["nearest"].eastward_wind == pytest.approx(4 + 30 * 0.06, abs=2e-3)


def as_netcdf(table):
    cube = table.rename(columns={SPEED: "ws", FROM: "wd"}).set_index(["time", "station"])
    cube = cube.to_xarray()
    cube = cube.assign(lat=cube.lat.isel(time=0), lon=cube.lon.isel(time=0))
    units = {"ws": "m s-1", "wd": "degree", "lat": "degrees_north", "lon": "degrees_east"}
    for name, unit in units.items():
        cube[name].attrs["units"] = unit
    return cube


TABLES = {
    "semicolons": lambda t, p: t.to_csv(p / "t.csv", sep=";", index=False) or p / "t.csv",
    "netcdf": lambda t, p: as_netcdf(t).to_netcdf(p / "t.nc", engine="h5netcdf") or p / "t.nc",
    "index": lambda t, p: t.set_index(["station", "time"]),
    "unnamed index": lambda t, p: t.set_index("time").rename_axis(None),
    "knots": lambda t, p: t.assign(sknt=t[SPEED] / wind.units.KNOT_M_S).drop(columns=SPEED),
    "towards": lambda t, p: t.assign(wind_to_direction=t[FROM] + 180 - 360 * (t[FROM] > 180)).drop(
        columns=FROM
    ),
    "zone": lambda t, p: t.assign(time=t.time.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")),
    "zone in text": lambda t, p: t.assign(time=t.time.astype(str) + "+00:00"),
    "digits": lambda t, p: t.assign(time=t.time.dt.strftime("%Y%m%d%H").astype(int)),
    "order": lambda t, p: t.iloc[::-1],
    "twice": lambda t, p: pd.concat([t, t]),
    "heights": lambda t, p: pd.concat([t.assign(height=10), t.assign(height=80, **{SPEED: 1.0})]),
    "altitudes": lambda t, p: t.assign(altitude=t.station * 100),
    "missing": lambda t, p: pd.concat([t, t.assign(**{SPEED: "M"})]),
    "components": lambda t, p: t.assign(
        **{
            "u10 (km/h)": -3.6 * t[SPEED] * np.sin(np.radians(t[FROM])),
            "v10 (km/h)": -3.6 * t[SPEED] * np.cos(np.radians(t[FROM])),
        }
    ).drop(columns=[SPEED, FROM]),
}


@pytest.mark.parametrize("kind", TABLES)
def test_tables_of_every_kind_say_the_same(fine, table, kind, tmp_path):
    known = of_prediction(scored(fine, table))
    found = of_prediction(scored(fine, TABLES[kind](table, tmp_path)))
    pd.testing.assert_frame_equal(found, known, rtol=1e-3, atol=1e-4)


def test_times_count_as_one_within_the_tolerance(fine, table, caplog):
    early = table.assign(time=table.time - pd.Timedelta(minutes=8))
    with pytest.raises(ValueError, match=r"within 0 h .* the nearest is 480 s away: name a larger"):
        scored(fine, early)
    both = pd.concat([early, early.assign(time=early.time - pd.Timedelta("5min"), **{SPEED: 1.0})])
    found = of_prediction(scored(fine, both, tolerance_h=0.5))
    np.testing.assert_allclose(found.rmse_m_s, 0, atol=1e-5)  # the nearer one
    assert "of their 48 observations 24 are scored" in caplog.text


def test_what_is_elsewhere_or_at_other_times_is_left_out_and_told(fine, table, caplog):
    known = of_prediction(scored(fine, table))
    far = table.assign(lat=table.lat + 5, **{SPEED: table[SPEED] + 3})
    later = table.assign(time=table.time + pd.Timedelta("20D"))
    caplog.clear()
    pd.testing.assert_frame_equal(
        of_prediction(scored(fine, pd.concat([table, far, later]))), known
    )
    assert "4 of 8 stations are on the grid; of their 48 observations 24 are" in caplog.text
    few = scored(fine, table[table.time != HOURS[2]])
    assert (few.observations == 20).all()
    assert "at 5 of 6 times" in caplog.text


def test_directions_to_which_the_wind_blows_are_told(fine, table, caplog):
    scored(fine, table.assign(wind_dir=(table[FROM] + 180) % 360))
    assert "are directions those to which the wind blows?" in caplog.text


@pytest.mark.parametrize(
    ("times", "told"), [(1.9438, True), (3.6, True), (1 / 3.6, True), (1.2, False)]
)
def test_winds_of_another_unit_are_told(fine, table, times, told, caplog):
    """Knots in a column that says m/s, and the like."""
    other = table.assign(**{SPEED: times * table[SPEED]})
    scored(fine, other)
    assert told == any(f"are {times:.2f} times as strong" in x.message for x in caplog.records)
    assert told == ("half-way to knots" in caplog.text)


def test_another_height_is_told(fine, table, caplog):
    low = fine.assign({n: fine[n].assign_attrs(height_m=10.0) for n in fine.data_vars})
    scored(low, table.assign(height=80.0), height_m=80.0)
    assert "wind_speed is at height_m 10.0 in the prediction and 80.0" in caplog.text


NOLEAP = xr.date_range("2020-01-01", periods=6, freq="h", calendar="noleap", use_cftime=True)
WRONG = {
    "the unit of wind_speed of the table is not told": {"rename": {SPEED: "wind_speed"}},
    "holds '01/02/2020 00:00', which may be of several": {"time": "01/02/2020 00:00"},
    "a day and no hour": {"time": "2020-01-01"},
    "calendars of the stations": {"time": np.repeat(NOLEAP.values, 4)},
    "2 columns of time": {"valid_time": "2020-01-01T00:00"},
    "is in 'cet': give times in UTC": {
        "time": "2020-01-01T00:00",
        "rename": {"time": "time (CET)"},
    },
    "equal values far from all others": {SPEED: [99.0, 1, 2, 3] * 6},
    "wind_dir of the table has 6 values that are not": {FROM: [990.0, 1, 2, 3] * 6},
    "reaches 36, of no unit: multiply tens of degrees by 10": {FROM: [36.0, 9, 18, 27] * 6},
    "holds '12KT', which is no number": {SPEED: "12KT"},
    "none of 4 stations .* is on the grid": {"rename": {"lat": "lon", "lon": "lat"}},
    "0 columns of latitude": {"rename": {"lat": "where"}},
    "holds 4 values from 10 to 40, 10 at 1 of 4 stations": {"height": [10, 20, 30, 40] * 6},
    "no wind among": {"rename": {SPEED: "what"}},
    "there are two observations at": {"station": 0, "lat": 50.1, "lon": 0.1},
}


@pytest.mark.parametrize("said", WRONG)
def test_what_cannot_be_aligned_is_refused(fine, table, said):
    changes = WRONG[said] | {}
    names = changes.pop("rename", {})
    with pytest.raises(ValueError, match=said):
        scored(fine, table.assign(**changes).rename(columns=names))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"lat,lon,time,sknt\n", "holds no observation"),
        (b"", "is no table that can be read"),
        (b"lat,lon,time,sknt\n1,2,2020-01-01T00:00,3\n1,2,2020-01-01T01:00,3,4\n", "is no table"),
        (bytes(range(128, 200)), "is no table that can be read"),
    ],
)
def test_files_that_are_no_table_are_told_in_one_line(tmp_path, content, said):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(ValueError, match=said) as told:
        wind.open_stations(tmp_path / "t.csv")
    assert "\n" not in str(told.value)


def test_draws_are_scored_at_stations(fine, table):
    noise = np.random.default_rng(0).normal(0, 1, (6, 6, 1, 1))
    draws = (fine + xr.DataArray(noise, dims=("draw", "time", "y", "x")).isel(y=0, x=0)).transpose(
        "time", "draw", "y", "x"
    )
    for name in draws.data_vars:
        draws[name].attrs = fine[name].attrs
    found = of_prediction(scored(draws, table, wind.coarser(fine, 4)))
    assert (found.crps_m_s < 1).all()
    assert (found.spread_skill > 0).all()


def test_the_command_takes_a_table_in_place_of_the_truth(fine, table, tmp_path):
    fine.drop_vars("spatial_ref").assign_attrs(refinement_factor=4).to_netcdf(tmp_path / "fine.nc")
    table.to_csv(tmp_path / "stations.csv", index=False)
    words = ["wind", "score", str(tmp_path / "fine.nc"), str(tmp_path / "stations.csv")]
    alone = CliRunner().invoke(app, words)
    assert alone.exit_code == 2
    assert "do not tell what was refined: name one, and as --coarse" in alone.output
    out = tmp_path / "scores.csv"
    # Of a fine file the block means are taken.
    words += ["--coarse", str(tmp_path / "fine.nc"), "--out", str(out), "--method", "bilinear"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "wind_speed: skill 100.0%" in result.output
    kept = pd.read_csv(out)
    assert {*kept.scheme} >= {"prediction", "conservative bicubic"}


def test_observations_state_their_unit_and_their_place():
    hours = np.datetime64("2020-01-01", "ns") + np.arange(2) * np.timedelta64(1, "h")
    places = {"latitude": ("y", np.linspace(50, 51, 16)), "longitude": ("x", np.linspace(5, 6, 16))}
    fine = wind.gaussian(0, 2, 16).assign_coords(time=hours)[["wind_speed"]].assign_coords(places)
    speeds = ("observation", [5.0, 6.0], {"units": "knots"})
    spots = {"latitude": [50.2, 50.4], "longitude": [5.2, 5.4], "time": hours}
    spots = {name: ("observation", values) for name, values in spots.items()}
    seen = xr.Dataset({"wind_speed": speeds}, spots)
    with pytest.raises(ValueError, match=r"wind_speed is in knots; it must be in m s-1"):
        station_scores(fine, seen, 4, wind.coarser(fine, 4))
    seen["wind_speed"].attrs["units"] = "m s-1"
    lost = seen.assign_coords(latitude=("observation", [50.2, np.nan]))
    with pytest.raises(ValueError, match="1 observations have no latitude or longitude"):
        station_scores(fine, lost, 4, wind.coarser(fine, 4))
