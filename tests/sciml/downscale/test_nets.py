"""Trained nets by name: small files, checked weights, cards that say what they are."""

import shutil

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

from sciml import wind
from sciml.cli.main import app
from sciml.downscale import card, load_downscaling, net_names
from sciml.downscale.cards import net_file, nets_folder

NAMES = net_names()
MOST_BYTES = 2e6


@pytest.fixture(autouse=True)
def no_mirror(monkeypatch):
    """The package alone, without a network."""
    monkeypatch.delenv("SCIML_MIRROR", raising=False)


def test_there_are_nets():
    assert {"wind4", "wind8"} <= {*NAMES}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_net_is_small_and_what_its_card_says(name):
    said, net = card(name), load_downscaling(name)
    assert net_file(name).stat().st_size < MOST_BYTES
    assert (net.model.factor, ", ".join(net.winds)) == (said.factor, said.refines)
    assert {"HRRR", "MetCoOp", "AROME-France", "AROME-Arctic", "HRRR Idaho"} <= {*said.scores}
    assert all(-1 < skill < 1 for skill in said.scores.values())
    for word in ("CC BY 4.0", "Etalab", "public domain"):
        assert word in said.licence
    assert said.file.sha256[:12] in str(said)
    coarse = wind.generate(seed=0, snapshots=1, n=64)
    coarse = wind.coarser(coarse, said.factor)
    fine = net.predict(coarse)
    kept = wind.block_mean(fine.x_wind.values, said.factor)
    assert np.allclose(kept, coarse.x_wind, atol=1e-3)
    assert not np.allclose(
        fine.x_wind, wind.conservative_bicubic(coarse.x_wind.values, said.factor)
    )


def test_a_file_of_that_name_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(net_file("wind4"), tmp_path / "wind4")
    assert net_file("wind4") == (tmp_path / "wind4").relative_to(tmp_path)
    assert net_file(tmp_path / "absent.wind") == tmp_path / "absent.wind"


def test_a_mirror_comes_first_and_its_weights_are_checked(tmp_path, monkeypatch):
    file = card("wind4").file
    shutil.copy(nets_folder() / file.name, tmp_path / file.name)
    monkeypatch.setenv("SCIML_MIRROR", str(tmp_path))
    assert net_file("wind4") == tmp_path / file.name
    (tmp_path / file.name).write_bytes(b"other weights")
    with pytest.raises(ValueError, match=f"{file.name} has sha256 .*; the registry says"):
        load_downscaling("wind4")


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="net 'wind5' is unknown; name one of wind4, wind8"):
        load_downscaling("wind5")


@pytest.mark.slow
def test_the_commands_take_names_and_show_cards(tmp_path):
    run = CliRunner().invoke
    listed = run(app, ["wind", "nets"])
    assert listed.exit_code == 0
    assert all(name in listed.output for name in NAMES)
    shown = run(app, ["wind", "nets", "wind4"])
    assert "limits:" in shown.output
    coarse = wind.coarser(wind.generate(seed=0, snapshots=1, n=64), 4)
    coarse.to_netcdf(tmp_path / "coarse.nc", engine="h5netcdf")
    made = run(app, ["wind", "predict", "wind4", str(tmp_path / "coarse.nc"),
                     "--out", str(tmp_path / "fine.nc"), "--first-row", "south"])  # fmt: skip
    assert made.exit_code == 0, made.output
    assert (tmp_path / "fine.nc").exists()


def test_wind_that_a_net_has_not_learned_from_is_told():
    axes = {
        "latitude": ("y", np.arange(40) * 0.1, {"units": "degrees_north"}),
        "longitude": ("x", np.arange(40) * 0.1, {"units": "degrees_east"}),
    }
    fields = xr.Dataset({"x_wind": (("time", "y", "x"), np.ones((1, 40, 40)))}, axes)
    said = card("wind4")
    assert said.beyond(fields.assign_attrs(spacing_m=10_000.0), 4) == []
    assert "25 km apart" in said.beyond(fields.assign_attrs(spacing_m=100_000.0), 4)[0]
    fields.x_wind.attrs["height_m"] = 100.0
    rows, height = sorted(said.beyond(fields.isel(y=slice(3)), 4))[::-1][:2]
    assert "3 × 40 coarse points" in rows + height
    assert "height_m 100" in rows + height
