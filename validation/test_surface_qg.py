"""Surface quasi-geostrophic turbulence: the spectrum's two slopes, and the null test."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciml.diagnose.wind.errors import skill
from sciml.estimator import Patches, fit_downscaling
from sciml.models.wind.super_resolution import SuperResolution
from sciml.train import Recipe
from sciml.wind import (
    SurfaceQG,
    block_mean,
    conservative_bicubic,
    generate,
    kinetic_spectrum,
)

pytestmark = pytest.mark.validation


def slope(spectrum, first, last):
    k = np.arange(first, last + 1)
    return np.polyfit(np.log(k), np.log(spectrum[first : last + 1]), 1)[0]


def test_the_spectrum_is_steep_at_large_scales_and_shallow_at_small_ones():
    """Mean of 10 snapshots at 256²; half a minute, with steps twice as long as advised.

    Theory has −3 and −5/3 in ranges that are infinitely long. Simulations of finite resolution
    are steeper in both: below, the bands and the values that this solver gives, ± 0.3. Measured:
    −3.73 and −1.84; with the advised steps −3.92 and −1.87.
    """
    run = generate(0, 10, config=SurfaceQG(n=256, k_t=20.0, dt=0.01))
    winds = zip(run.x_wind.values, run.y_wind.values, strict=True)
    spectrum = np.mean([kinetic_spectrum(jnp.asarray(u), jnp.asarray(v)) for u, v in winds], axis=0)
    large, small = slope(spectrum, 6, 14), slope(spectrum, 30, 60)
    assert large == pytest.approx(-3.75, abs=0.3)
    assert small == pytest.approx(-2.0, abs=0.3)


def random_phases(field, key):
    """A field with the same power spectrum and without any relation between its scales."""
    noise = jnp.fft.rfft2(jax.random.normal(key, field.shape))
    spectrum = jnp.fft.rfft2(field)
    turned = jnp.abs(spectrum) * noise / jnp.abs(noise)
    return jnp.fft.irfft2(turned.at[0, 0].set(spectrum[0, 0]), s=field.shape)


def gain(train, validation, test):
    """Skill of a small net over conservative bicubic interpolation."""
    net = fit_downscaling(
        SuperResolution(factor=4, channels=32, blocks=4),
        train,
        validation,
        recipe=Recipe(batch=8, learning_rate=1.5e-3),
        epochs=120,
        patches=Patches(size=64, count=32),
    )
    coarse = block_mean(jnp.asarray(test), 4)
    baseline = np.asarray(conservative_bicubic(coarse, 4))
    return skill(net.refine(np.asarray(coarse)), test, baseline)


def test_scales_are_related_in_the_turbulence_and_not_in_its_null():
    """The same spectrum with random phases leaves a net only the gain of a linear filter.

    For nearly Gaussian fields the best estimate is linear. Measured: 0.254 and 0.141.
    """
    splits = np.split(generate(0, 36).x_wind.values, [24, 28])
    keys = iter(jax.random.split(jax.random.key(0), 99))
    null = [
        np.stack([random_phases(jnp.asarray(field), next(keys)) for field in fields])
        for fields in splits
    ]
    turbulent, linear = gain(*splits), gain(*null)
    assert turbulent > 0.18
    assert linear < 0.75 * turbulent
