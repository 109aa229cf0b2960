"""`sciml wind`: from files to a net, from coarse files to fine ones, and to a table of scores."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from typer.testing import CliRunner

from sciml import wind
from sciml.cli.main import app
from sciml.downscale.settings import settings
from sciml.downscale.sources import Source, collected, divided
from sciml.estimator import load_downscaling
from sciml.models import LocallyScaled, SuperResolution

pytestmark = pytest.mark.usefixtures("quick_compilation")

SETTINGS = """
data:
  - {path: train.nc, part: train}
  - {path: held.nc, part: validation}
target: TARGET
model: {factor: 2, channels: 4, blocks: 1, local: 3}
recipe: {batch: 4, learning_rate: 1e-3}
patches: {size: 16, count: 8}
epochs: 2
"""


def measured(seed, times=6, y=26, x=33):
    """Wind on a latitude–longitude grid, six-hourly."""
    drawn = wind.gaussian(seed=seed, snapshots=times, n=36)
    return xr.Dataset(
        {
            name: (("time", "lat", "lon"), drawn[c].values[:, :y, :x], {"units": "m s-1"})
            for name, c in (("u10", "x_wind"), ("v10", "y_wind"))
        },
        coords={
            "time": np.datetime64("2020-01-01", "ns")
            + (100 * seed + np.arange(times)) * np.timedelta64(6, "h"),
            "lat": ("lat", 50 + 0.025 * np.arange(y), {"units": "degrees_north"}),
            "lon": ("lon", 5 + 0.04 * np.arange(x), {"units": "degrees_east"}),
        },
        attrs={"institution": "nowhere"},
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wind")
    for seed, name in enumerate(("train", "held", "test")):
        measured(seed).to_netcdf(folder / f"{name}.nc", engine="h5netcdf")
    return folder


@pytest.fixture(scope="module")
def net(folder):
    """A net that the command line has trained."""
    (folder / "wind.yaml").write_text(SETTINGS.replace("TARGET", "components"))
    found = run("train", folder / "wind.yaml", "--out", folder / "net.wind")
    assert "weights, epoch" in found.stdout
    return folder / "net.wind"


def run(*words, code=0):
    result = CliRunner().invoke(app, ["wind", *map(str, words)])
    assert result.exit_code == code, result.output
    return result


@pytest.mark.slow
def test_what_was_trained_is_what_the_file_says(net):
    trained = load_downscaling(net)
    assert trained.model == LocallyScaled(SuperResolution(2, 4, 1), 3)
    assert trained.attrs["recipe"]["batch"] == 4
    assert not net.with_suffix(".checkpoint").exists()


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_a_prediction_is_read_by_everyone(net, folder, suffix, monkeypatch):
    from sciml.downscale import commands

    out = folder / f"fine{suffix}"
    if suffix == ".zarr":
        monkeypatch.setattr(commands, "IN_MEMORY_BYTES", 1)  # one time at once
    run("predict", net, folder / "test.nc", "--coarsen", "--out", out)
    with xr.open_dataset(out, engine="zarr" if suffix == ".zarr" else "h5netcdf") as fine:
        assert dict(fine.sizes) == {"time": 6, "y": 26, "x": 32}
        assert fine.x_wind.attrs["standard_name"] == "x_wind"
        assert fine.attrs["institution"] == "nowhere"
        assert fine.attrs["input_files"] == "test.nc"
        assert "refined 2-fold by sciml wind predict" in fine.attrs["history"]
        assert len(fine.attrs["net_digest"]) == 32
        assert fine.attrs["Conventions"] == "CF-1.8"
        assert "1 last columns left out" in fine.attrs["changes"]
        assert fine.latitude.attrs["units"] == "degrees_north"
        assert fine.spatial_ref.attrs["grid_mapping_name"] == "latitude_longitude"
        assert fine.x_wind.attrs["grid_mapping"] == "spatial_ref"
        truth = measured(2)
        np.testing.assert_allclose(fine.latitude, truth.lat, atol=1e-6)
        np.testing.assert_allclose(fine.longitude, truth.lon[:32], atol=1e-6)
        means = wind.block_mean(fine.x_wind.values, 2)
        expected = wind.block_mean(truth.u10.values[:, :, :32], 2)
        np.testing.assert_allclose(means, expected, atol=1e-4)
    again = wind.open(out)  # our own reader takes it as any other file
    np.testing.assert_allclose(again.wind_speed, np.hypot(again.x_wind, again.y_wind), rtol=1e-5)
    refused = run("predict", net, folder / "test.nc", "--coarsen", "--out", "fine.grb", code=2)
    assert "as netCDF or Zarr: name fine.nc or fine.zarr" in " ".join(refused.output.split())
    if suffix == ".zarr":
        refused = run("predict", net, folder / "test.nc", "--coarsen", "--out", out, code=2)
        assert "is there already" in refused.output


def test_a_warning_is_given_once_whatever_the_pieces(net, folder, monkeypatch, caplog, tmp_path):
    from sciml.downscale import apply, commands

    monkeypatch.setattr(commands, "IN_MEMORY_BYTES", 1)
    monkeypatch.setattr(apply, "unlearned", lambda *_: ["mine: calm alone"])
    trained, coarse = load_downscaling(net), wind.coarser(wind.open(folder / "test.nc"), 2)
    trained = replace(trained, attrs=trained.attrs | {"card": "mine"})
    fine = commands.refine_file(trained, coarse, tmp_path / "a.zarr")
    assert caplog.text.count("mine: calm alone; what it adds there has not been scored") == 1
    with xr.open_zarr(fine) as stored:
        assert stored.attrs["changes"].count("calm alone") == 1


@pytest.mark.slow
def test_scores_are_a_table(net, folder):
    run("predict", net, folder / "test.nc", "--coarsen", "--out", folder / "scored.nc", "--folds")
    csv = folder / "scores.csv"
    printed = run("score", folder / "scored.nc", folder / "test.nc", "--out", csv).stdout
    assert "conservative bicubic" in printed
    table = pd.read_csv(csv).set_index(["variable", "scheme"])
    assert {"rmse_m_s", "skill_low", "ssim", "fss", "fine_energy_ratio"} <= {*table.columns}
    base = table.loc[("x_wind", "conservative bicubic")]
    assert base.skill == 0
    assert base.rmse_m_s < table.loc[("x_wind", "bicubic")].rmse_m_s
    refused = run("score", folder / "scored.nc", folder / "held.nc", code=2)
    assert "the truth lacks 6 times" in refused.output


@pytest.fixture(scope="module")
def driven(folder):
    """A coarse model on a grid of its own, three-hourly, in knots, rows from the north."""
    for seed, name in enumerate(("train", "held", "test")):
        with xr.open_dataset(folder / f"{name}.nc", engine="h5netcdf") as fine:
            near = fine.interp(lat=49.9 + 0.06 * np.arange(14), lon=4.9 + 0.1 * np.arange(16),
                               kwargs={"fill_value": "extrapolate"})  # fmt: skip
        near = (
            near.isel(time=slice(None, None, 2), lat=slice(None, None, -1)) * 1.1 + 1
        ) / 0.514444
        for component in ("u10", "v10"):
            near[component].attrs["units"] = "knots"
        for axis, unit in (("lat", "degrees_north"), ("lon", "degrees_east")):
            near[axis].attrs["units"] = unit
        near.drop_attrs(deep=False).to_netcdf(folder / f"coarse{seed}.nc", engine="h5netcdf")
    text = SETTINGS.replace("TARGET", "vector")
    for seed, name in enumerate(("train", "held")):
        text = text.replace(
            f"path: {name}.nc,", f"path: {name}.nc, coarse: {{path: coarse{seed}.nc}},"
        )
    (folder / "pairs.yaml").write_text(text)
    run("train", folder / "pairs.yaml", "--out", folder / "pairs.wind")
    return folder


@pytest.mark.slow
def test_a_coarse_model_is_learned_from_refined_and_scored(driven):
    net = load_downscaling(driven / "pairs.wind")
    assert net.correction.names == ("x_wind", "y_wind")
    assert not net.model.conservative
    fine = driven / "pairs_fine.nc"
    run("predict", driven / "pairs.wind", driven / "coarse2.nc", "--onto", driven / "test.nc",
        "--out", fine)  # fmt: skip
    with xr.open_dataset(fine, engine="h5netcdf") as found:
        assert dict(found.sizes) == {"time": 3, "y": 26, "x": 32}
        np.testing.assert_allclose(found.longitude, measured(2).lon[:32], atol=1e-6)
        assert "regridded onto blocks" in found.attrs["changes"]
    csv = driven / "pairs.csv"
    run("score", fine, driven / "test.nc", "--coarse", driven / "coarse2.nc", "--out", csv)
    table = pd.read_csv(csv).set_index(["variable", "scheme"])
    # The coarse model is a metre too fast, which interpolation keeps and the correction does not.
    assert table.loc[("x_wind", "bicubic"), "bias_m_s"] == pytest.approx(1.0, abs=0.25)
    assert abs(table.loc[("x_wind", "prediction"), "bias_m_s"]) < 0.4
    refused = run("predict", driven / "pairs.wind", driven / "coarse2.nc", "--onto",
                  driven / "test.nc", "--coarsen", "--out", fine, code=2)  # fmt: skip
    assert "give one of them" in refused.output


@pytest.mark.slow
def test_every_source_has_a_coarse_model_or_none(driven):
    text = (driven / "pairs.yaml").read_text().replace(", coarse: {path: coarse1.nc}", "")
    (driven / "one.yaml").write_text(text)
    assert "held.nc has no coarse" in run("train", driven / "one.yaml", code=2).output
    text = (driven / "pairs.yaml").read_text().replace("coarse1.nc}", "coarse1.nc, tolerance: 1}")
    (driven / "one.yaml").write_text(text)
    assert "did you mean 'tolerance_h'" in run("train", driven / "one.yaml", code=2).output


def test_maps_of_the_input_are_those_of_the_output(net, folder):
    drawn = wind.gaussian(seed=0, snapshots=1, n=16)
    mapping = {"grid_mapping_name": "lambert_conformal_conic", "standard_parallel": 50.0}
    mapping |= {"latitude_of_projection_origin": 50.0, "longitude_of_central_meridian": 5.0}
    winds = drawn[["x_wind", "y_wind"]].assign(lambert=((), 0, mapping))
    for name in ("x_wind", "y_wind"):
        winds[name].attrs |= {"standard_name": name, "grid_mapping": "lambert"}
    winds.to_netcdf(folder / "mapped.nc", engine="h5netcdf")
    run("predict", net, folder / "mapped.nc", "--out", folder / "mapped_fine.nc")
    with xr.open_dataset(folder / "mapped_fine.nc", engine="h5netcdf") as fine:
        own = fine[fine.x_wind.attrs["grid_mapping"]].attrs
        assert {name: own[name] for name in mapping} == mapping
        assert fine.x.attrs["standard_name"] == "projection_x_coordinate"
        assert float(fine.x[1] - fine.x[0]) == float(drawn.x[1] - drawn.x[0]) / 2


@pytest.mark.slow
def test_seas_without_values_come_through(net, folder):
    holed = measured(2)
    holed["u10"][:, :4, :4] = np.nan
    holed.to_netcdf(folder / "holed.nc", engine="h5netcdf")
    out = folder / "holed_fine.nc"
    run("predict", net, folder / "holed.nc", "--coarsen", "--out", out)
    with xr.open_dataset(out, engine="h5netcdf") as fine:
        assert int(np.isnan(fine.x_wind).sum()) == 6 * 16
        assert not np.isnan(fine.y_wind).any()
    assert "prediction" in run("score", out, folder / "holed.nc").stdout


def test_impossible_wind_is_refused(net, folder):
    storm = measured(2)
    storm["u10"][0, 0, 0] = 200.0
    storm.to_netcdf(folder / "storm.nc", engine="h5netcdf")
    refused = run("predict", net, folder / "storm.nc", "--out", folder / "x.nc", code=2)
    assert "200" in refused.output
    assert not (folder / "x.nc").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("epochs: 2", "epoch: 2"), "has the key 'epoch', which is not known: did you mean"),
        (("channels: 4", "chanels: 4"), "did you mean 'channels'"),
        (("batch: 4", "bach: 4"), "did you mean 'batch'"),
        (("part: validation", "prt: validation"), "did you mean 'part'"),
        (
            ("TARGET", "sped"),
            "is 'sped'; it must be one of speed, components, vector: did you mean 'speed'?",
        ),
        (("epochs: 2", "epochs: two"), "is 'two'; it must be of type int: write a whole number"),
        (("epochs: 2", "epochs: 0"), "epochs is 0; it must be 1 or more: write 60"),
        (("size: 16", "size: 15"), "Patches.size is 15; it must be a multiple of the factor 2"),
        (("epochs: 2", "seed: -1"), "seed is -1; it must be an integer from 0 to 4294967295"),
        (("epochs: 2", "epochs: true"), "is True; it must be of type int"),
        (("batch: 4", "clip: never"), "is 'never'; it must be a plain number"),
        (("batch: 4", "warmup: 2"), "Recipe.warmup is 2.0; it must be in [0, 1)"),
        (
            ("batch: 4", "schedule: cosin"),
            "it must be one of cosine, constant: did you mean 'cosine'?",
        ),
        (("part: validation", "height_m: high"), "is 'high'; it must be a plain number"),
        (("part: validation", "split: day"), "split is 'day'; it must be 'times' or 'stripes'"),
        (("factor: 2", "wind: 2"), "has wind; target and statics say it"),
        (("factor: 2", "name: UNett"), "the model is 'UNett'; did you mean 'UNet'"),
        (("part: validation", "part: train"), "no source has a part 'validation'"),
        (("held.nc", "train.nc"), "train.nc is named twice"),
        (("held.nc", "nowhere.nc"), "nowhere.nc is not a file"),
        (("TARGET", "vector\nstatics: [orography]"), "'orography' is not among"),
        (
            ("learning_rate: 1e-3", "learning_rate: fast"),
            "is 'fast'; it must be a plain number",
        ),
    ],
)
def test_mistakes_in_settings_are_told_in_one_line(folder, change, message):
    text = SETTINGS.replace(*change).replace("TARGET", "speed")
    (folder / "wrong.yaml").write_text(text)
    refused = run("train", folder / "wrong.yaml", code=2)
    assert message in refused.output
    assert "Traceback" not in refused.output


def test_settings_make_what_they_say(folder):
    (folder / "vector.yaml").write_text(SETTINGS.replace("TARGET", "vector"))
    wanted = settings(folder / "vector.yaml")
    assert wanted.model.wind == 2
    assert wanted.recipe.learning_rate == 1e-3
    assert wanted.sources[0] == Source(str(folder / "train.nc"), part="train")


def dated(days):
    """A wind that stays correlated for about a day, hourly."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(24 * days, 8, 60)).astype("float32")
    for t in range(1, len(values)):
        values[t] = 0.96 * values[t - 1] + 0.28 * values[t]
    times = np.datetime64("2020-01-01", "ns") + np.arange(len(values)) * np.timedelta64(1, "h")
    return xr.Dataset({"wind_speed": (("time", "y", "x"), values)}, coords={"time": times})


def test_parts_that_share_weather_are_refused():
    winds = dated(20)
    near = {"train": ["2020-01-01", "2020-01-10"], "validation": ["2020-01-11", "2020-01-15"]}
    with pytest.raises(ValueError, match=r"are 1 h apart but the weather lasts"):
        divided(Source("a.nc", times=near), winds)
    far = {"train": ["2020-01-01", "2020-01-10"], "validation": ["2020-01-14", "2020-01-15"]}
    parts = divided(Source("a.nc", times=far), winds)
    assert parts["train"][0].sizes["time"] == 240
    with pytest.raises(ValueError, match="at least 32 columns must lie between"):
        divided(Source("a.nc", columns={"train": [0, 20], "test": [25, 60]}), winds)
    apart = divided(Source("a.nc", columns={"train": [0, 20], "test": [52, 60]}), winds)
    assert apart["test"][0].sizes["x"] == 8
    with pytest.raises(ValueError, match="no time lies in train"):
        divided(Source("a.nc", times={"train": ["2030-01-01", "2030-01-02"]}), winds)
    automatic = divided(Source("a.nc", split="times"), winds)
    assert set(automatic) == {"train", "validation", "test"}


@pytest.mark.parametrize(
    ("ways", "message"),
    [
        ({}, "divided by nothing; give one of"),
        ({"part": "train", "split": "times"}, "divided by part and split"),
        ({"part": "training"}, "has a part 'training'"),
        ({"split": "days"}, "split is 'days'"),
    ],
)
def test_a_source_is_divided_in_one_way(ways, message):
    with pytest.raises(ValueError, match=message):
        Source("a.nc", **ways)


def test_grids_of_several_formats_are_learned_together(shared):
    """GRIB, netCDF of WRF and of the WIND Toolkit's kind become fields of one pool."""
    data = shared / "data" / "wind"
    fields = collected(
        [
            Source(str(data / "meteonet_arpege_0p1deg" / "arpege_10m_NW.grib"), part="train"),
            Source(str(data / "loaders" / "wrf_mercator_sample.nc"), part="train"),
            Source(str(data / "loaders" / "cmip6_uas_noleap.nc"), part="validation"),
        ],
        "components",
    )
    assert [f.sizes["channel"] for f in fields["train"]] == [2, 2]
    assert fields["validation"][0].channel.size == 1
