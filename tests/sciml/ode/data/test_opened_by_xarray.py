"""A store as `xarray.open_zarr` shows it to who knows nothing of this package."""

import numpy as np
import pytest
import xarray as xr
import zarr
from numpyro.distributions import Uniform

from sciml.ode import Gaussian, Observation, RungeKutta4, System, accumulate, open_simulations

pytestmark = pytest.mark.usefixtures("quick_compilation")
GIVEN = {"seed": 5, "noise": Gaussian(Uniform(0.1, 0.2)), "method": RungeKutta4(chunk=8)}


def dosed(dose: str = "dose") -> System:
    """u' = −k u from a dose that is known."""
    return System(
        name="dosed",
        vector_field=lambda t, u, p, c: (-p[0] * u[0] * c[dose], u[0]),
        initial_state=(1.0, 0.0),
        prior={"κ 1": Uniform(0.5, 2.0)},
        conditions={dose: Uniform(1.0, 2.0)},
        observation=Observation.regular(states=(0, 1), interval=0.1, length=5),
        time_unit="h",
        observed=("level", "sum"),
    )


@pytest.mark.slow
def test_axes_labels_and_units_are_read_by_xarray(tmp_path):
    ours = accumulate(dosed(), tmp_path / "store.zarr", samples=12, **GIVEN).load()
    found = xr.open_zarr(tmp_path / "store.zarr", consolidated=False)
    assert found.sizes["sample"] == 16  # whole chunks
    assert found.written.values.tolist() == [True, True]
    found = found.isel(sample=slice(12)).drop_vars("written").load()
    assert found.time.attrs == {"units": "h"}
    assert found.attrs.items() >= {k: v for k, v in ours.attrs.items() if k != "failures"}.items()
    assert set(found.coords) == set(ours.coords)
    xr.testing.assert_equal(found, ours)
    np.testing.assert_array_equal(found.sel(parameter="κ 1").parameters, ours.parameters[:, 0])


def test_what_was_made_before_arrays_had_labels_is_read_and_grown(tmp_path):
    accumulate(dosed(), tmp_path / "store.zarr", samples=8, **GIVEN)
    group = zarr.open_group(tmp_path / "store.zarr", mode="r+")
    for name in ("time", "channel", "parameter", "level"):
        del group[name]
    assert open_simulations(tmp_path / "store.zarr").channel.values.tolist() == ["level", "sum"]
    assert accumulate(dosed(), tmp_path / "store.zarr", samples=9, **GIVEN).sizes["sample"] == 9


@pytest.mark.parametrize("name", ["dose/kg", "dose\\kg", "..", "written", "zarr.json"])
def test_a_condition_that_cannot_be_a_folder_is_refused(name, tmp_path):
    with pytest.raises(ValueError, match=r"would be a folder of the store .* rename it"):
        accumulate(dosed(name), tmp_path / "store.zarr", samples=8, **GIVEN)
    assert not list(tmp_path.iterdir())
