"""Gaussian wind, random phases, hills, the kept parts, and spectral interpolation."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

from sciml import wind
from sciml.wind import SurfaceQG, kinetic_spectrum
from sciml.wind.make.terrain import hills

SMALL = SurfaceQG(n=32, k_t=6.0, dt=0.04)


def spectrum(winds):
    pairs = zip(winds.x_wind.values, winds.y_wind.values, strict=True)
    return np.mean([kinetic_spectrum(jnp.asarray(u), jnp.asarray(v)) for u, v in pairs], axis=0)


def test_gaussian_wind_has_the_spectrum_that_was_asked_for():
    slope = -2.5
    winds = wind.gaussian(0, 60, 64, spectrum=lambda k: k**slope)
    k = np.arange(2, 28)
    fitted = np.polyfit(np.log(k), np.log(spectrum(winds)[2:28]), 1)[0]
    assert fitted == pytest.approx(slope, abs=0.05)
    assert float((winds.wind_speed**2).mean()) == pytest.approx(64, rel=0.1)
    assert wind.check(winds).good


def test_gaussian_wind_is_gaussian_and_free_of_divergence():
    winds = wind.gaussian(1, 40, 32)
    u, v = winds.x_wind.values, winds.y_wind.values
    kx, ky = np.fft.rfftfreq(32, 1 / 32), np.fft.fftfreq(32, 1 / 32)[:, None]
    divergence = np.fft.irfft2(1j * (kx * np.fft.rfft2(u) + ky * np.fft.rfft2(v)))
    assert np.abs(divergence).max() < 1e-4
    kurtosis = (u**4).mean() / (u**2).mean() ** 2
    assert kurtosis == pytest.approx(3, abs=0.35)
    assert wind.gaussian(1, 2, 32).equals(wind.gaussian(1, 2, 32))
    with pytest.raises(ValueError, match="n is 15; it must be a whole number, at least 16"):
        wind.gaussian(0, 1, 15)


def test_the_two_slopes_are_in_the_atmosphere_s_order():
    from sciml.wind.make.gaussian import two_slopes

    k = np.array([0.1, 0.2, 1e4, 2e4])
    e = np.log2(two_slopes(k)[1::2] / two_slopes(k)[::2])
    np.testing.assert_allclose(e, [-3, -5 / 3], atol=0.05)


def test_random_phases_keep_the_spectrum_and_nothing_else():
    winds = wind.gaussian(0, 2, 32)
    null = wind.random_phases(winds, 0)
    np.testing.assert_allclose(spectrum(null), spectrum(winds), rtol=2e-4, atol=1e-6)
    for name in ("x_wind", "y_wind"):
        np.testing.assert_allclose(null[name].mean(), winds[name].mean(), atol=1e-4)
        assert abs(np.corrcoef(null[name].values.ravel(), winds[name].values.ravel())[0, 1]) < 0.4
    u, v = null.x_wind.values, null.y_wind.values
    np.testing.assert_allclose(null.wind_speed, np.hypot(u, v), rtol=1e-5)
    k = np.fft.fftfreq(32, 1 / 32)
    divergence = np.fft.ifft2(1j * (k * np.fft.fft2(u) + k[:, None] * np.fft.fft2(v))).real
    assert np.abs(divergence).max() < 1e-2
    with pytest.raises(ValueError, match="both sides must be even"):
        wind.random_phases(winds.isel(x=slice(1, None)), 0)


def test_hills_speed_the_wind_up_by_what_is_stated():
    winds = wind.gaussian(0, 3, 32)
    over = wind.with_hills(winds, 5, gain=0.2)
    height = over.orography
    change = np.clip(0.2 * (height - height.mean()) / height.std(), -0.8, 0.8)
    np.testing.assert_allclose(over.x_wind, winds.x_wind * (1 + change), rtol=1e-4, atol=1e-5)
    direction = np.arctan2(over.y_wind, over.x_wind)
    np.testing.assert_allclose(direction, np.arctan2(winds.y_wind, winds.x_wind), atol=1e-4)
    assert float(height.min()) == 0
    assert float(height.std()) == pytest.approx(300, rel=1e-4)
    assert wind.covariates(over, ("orography",)).shape == (1, 32, 32)
    waves = np.abs(np.fft.rfft2(hills(5, 32)))
    assert waves[10:22, 10:].max() < 1e-3 * waves[0, 1]
    with pytest.raises(ValueError, match="an even square"):
        wind.with_hills(winds.isel(x=slice(8)), 0)


@pytest.fixture
def quick(monkeypatch):
    """Gaussian fields in place of a run, which `test_surface_qg` tests."""

    def instead(seed, snapshots, config):
        return wind.gaussian(seed, snapshots, config.n)

    monkeypatch.setattr("sciml.wind.make.store.generate", instead)


def test_parts_are_made_once_and_independent(tmp_path, quick, monkeypatch):
    counts = {"train": 2, "test": 2}
    made = wind.generate_parts(0, counts, config=SMALL, terrain_gain=0.2, folder=tmp_path)
    monkeypatch.setattr("sciml.wind.make.store.generate", lambda *_, **__: pytest.fail("again"))
    again = wind.generate_parts(0, counts, config=SMALL, terrain_gain=0.2, folder=tmp_path)
    for name in counts:
        assert made[name].identical(again[name])
    seeds = {json.loads(part.attrs["made_of"])["seed"] for part in made.values()}
    assert len(seeds) == 2
    assert not made["train"].x_wind.equals(made["test"].x_wind)
    np.testing.assert_array_equal(made["train"].orography, made["test"].orography)
    attrs = made["train"].attrs
    assert attrs["synthetic"] == "true"
    assert json.loads(attrs["made_of"])["k_t"] == 6
    assert {"versions", "revision", "machine"} <= set(attrs)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_kept_part_opens_like_any_other_file(tmp_path, quick):
    made = wind.generate_parts(0, {"test": 2}, config=SMALL, folder=tmp_path)["test"]
    (path,) = tmp_path.iterdir()
    opened = wind.open(path, lazy=True)
    assert opened.x_wind.chunks[0] == (1, 1)
    np.testing.assert_array_equal(opened.x_wind, made.x_wind)


def test_a_part_that_could_not_be_written_leaves_nothing(tmp_path, quick, monkeypatch):
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        wind.generate_parts(0, {"test": 1}, config=SMALL, folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_spectral_interpolation_continues_a_cosine_exactly():
    np.testing.assert_allclose(wind.spectral(jnp.ones((8, 13)), 3), 1.0, rtol=1e-5)
    points = np.cos(np.pi * 3 * (np.arange(12) + 0.5) / 12)[None].repeat(10, 0)
    expected = np.cos(np.pi * 3 * (np.arange(48) + 0.5) / 48)[None].repeat(40, 0)
    np.testing.assert_allclose(wind.spectral(jnp.asarray(points), 4), expected, atol=1e-5)
